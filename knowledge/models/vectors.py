"""Vectors, in tables of their own that exist only beside the extension (R8).

Rows die with their passage or space by the database's own keys (see the migrations),
so that deleting a passage asks nothing of a table that may not be there.
"""

from django.db import connection, models
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from knowledge.models.document import Document
from knowledge.models.passage import Passage


class SpaceState(models.TextChoices):
    """Whether queries use a space."""

    BUILDING = "building", _("building")
    ACTIVE = "active", _("active")
    RETIRED = "retired", _("retired")


class EmbeddingSpace(models.Model):
    """What made a set of vectors: model, dimension, prefixes, chunker (D5)."""

    fingerprint = models.CharField(max_length=64, unique=True)
    model_id = models.CharField(_("model"), max_length=200)
    dimension = models.PositiveIntegerField(_("dimensions"))
    query_prefix = models.CharField(max_length=200, blank=True)
    passage_prefix = models.CharField(max_length=200, blank=True)
    chunker_version = models.CharField(max_length=20)
    context_version = models.CharField(max_length=20)
    token_format = models.CharField(max_length=40, blank=True)
    state = models.CharField(
        _("state"), max_length=10, choices=SpaceState, default=SpaceState.BUILDING
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        """One space answers queries."""

        verbose_name = _("embedding space")
        verbose_name_plural = _("embedding spaces")
        constraints = [
            models.UniqueConstraint(
                fields=["state"],
                condition=models.Q(state="active"),
                name="space_active_once",
            ),
            models.UniqueConstraint(
                fields=["id", "dimension"], name="space_has_dimension"
            ),
        ]

    def __str__(self) -> str:
        """Return the model and its dimension."""
        return f"{self.model_id} ({self.dimension})"


class PassageVectorQuerySet(models.QuerySet["PassageVector"]):
    """Vectors as one set."""

    def attach(self, document: Document, space: EmbeddingSpace, *, after: int) -> int:
        """Give a document's passages with ids above `after` their vectors and tokens.

        Taken from what was staged, else from any passage of the same text. All inside
        the database, so that a large source needs no memory here. Returns how many
        passages have a vector afterwards.
        """
        given = {
            "space": space.pk,
            "dimension": space.dimension,
            "document": document.pk,
            "after": after,
        }
        with connection.cursor() as cursor:
            cursor.execute(ATTACH_VECTORS, given)
            attached = cursor.rowcount
            cursor.execute(ATTACH_TOKENS, given)
            cursor.execute(CLEAR_STAGED, given)
        return int(attached)


ATTACH_VECTORS = """
INSERT INTO knowledge_passagevector
    (space_id, passage_id, knowledge_base_id, dimension, embedded_sha256, embedding)
SELECT %(space)s, p.id, p.knowledge_base_id, %(dimension)s, p.embedded_sha256,
       COALESCE(s.embedding, twin.embedding)
FROM knowledge_passage p
LEFT JOIN knowledge_stagedvector s
       ON s.space_id = %(space)s AND s.embedded_sha256 = p.embedded_sha256
LEFT JOIN LATERAL (
    SELECT v.embedding FROM knowledge_passagevector v
    WHERE v.space_id = %(space)s AND v.embedded_sha256 = p.embedded_sha256 LIMIT 1
) twin ON s.id IS NULL
WHERE p.document_id = %(document)s AND p.id > %(after)s
  AND COALESCE(s.embedding, twin.embedding) IS NOT NULL
"""
ATTACH_TOKENS = """
INSERT INTO knowledge_passagetokens (space_id, passage_id, packed)
SELECT %(space)s, p.id, COALESCE(s.packed, twin.packed)
FROM knowledge_passage p
LEFT JOIN knowledge_stagedvector s
       ON s.space_id = %(space)s AND s.embedded_sha256 = p.embedded_sha256
LEFT JOIN LATERAL (
    SELECT t.packed FROM knowledge_passagevector v
    JOIN knowledge_passagetokens t
      ON t.passage_id = v.passage_id AND t.space_id = v.space_id
    WHERE v.space_id = %(space)s AND v.embedded_sha256 = p.embedded_sha256
      AND v.passage_id <> p.id
    LIMIT 1
) twin ON s.id IS NULL
WHERE p.document_id = %(document)s AND p.id > %(after)s
  AND length(COALESCE(s.packed, twin.packed)) > 0
"""
CLEAR_STAGED = """
DELETE FROM knowledge_stagedvector s USING knowledge_passage p
WHERE s.space_id = %(space)s AND s.embedded_sha256 = p.embedded_sha256
  AND p.document_id = %(document)s AND p.id > %(after)s
"""


class PassageVector(models.Model):
    """The vector of one passage in one space; of unit length.

    `embedded_sha256` is what was embedded: the same text under the same space is never
    embedded twice (D4).
    """

    space = models.ForeignKey(
        EmbeddingSpace, on_delete=models.DO_NOTHING, related_name="vectors"
    )
    passage = models.ForeignKey(
        Passage, on_delete=models.DO_NOTHING, related_name="vectors"
    )
    knowledge_base_id = models.BigIntegerField()
    dimension = models.PositiveIntegerField()
    embedded_sha256 = models.CharField(max_length=64)
    # No fixed dimension: several spaces share the table. A constraint ties each row to
    # its space's dimension.
    embedding = VectorField()

    objects = PassageVectorQuerySet.as_manager()

    class Meta:
        """One vector for each passage and space."""

        constraints = [
            models.UniqueConstraint(
                fields=["space", "passage"], name="vector_once_in_space"
            ),
        ]
        indexes = [
            models.Index(fields=["space", "embedded_sha256"], name="vector_by_sha256"),
            models.Index(
                fields=["knowledge_base_id", "space"], name="vector_by_knowledge_base"
            ),
        ]

    def __str__(self) -> str:
        """Return whose vector it is."""
        return f"{self.passage_id} in {self.space_id}"


class PassageTokens(models.Model):
    """A passage's token vectors, packed by `knowledge.inference.tokens` (D11)."""

    space = models.ForeignKey(EmbeddingSpace, on_delete=models.DO_NOTHING)
    passage = models.ForeignKey(
        Passage, on_delete=models.DO_NOTHING, related_name="token_vectors"
    )
    packed = models.BinaryField()

    class Meta:
        """One row for each passage and space."""

        constraints = [
            models.UniqueConstraint(
                fields=["space", "passage"], name="tokens_once_in_space"
            ),
        ]

    def __str__(self) -> str:
        """Return whose tokens they are."""
        return f"{self.passage_id} in {self.space_id}"


class StagedVector(models.Model):
    """A vector computed for a run that has not published yet.

    Kept by what was embedded, so that an attempt which was killed half-way leaves its
    work to the next one, and a large source never has all its vectors in memory. Swept
    once it is a day old.
    """

    space = models.ForeignKey(EmbeddingSpace, on_delete=models.DO_NOTHING)
    embedded_sha256 = models.CharField(max_length=64)
    embedding = VectorField()
    packed = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        """Once for each text and space."""

        constraints = [
            models.UniqueConstraint(
                fields=["space", "embedded_sha256"], name="staged_once_in_space"
            ),
        ]

    def __str__(self) -> str:
        """Return what was embedded."""
        return self.embedded_sha256
