"""Passages: stored chunks, the unit of retrieval and citation."""

from typing import TYPE_CHECKING, Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import connection, models
from django.utils.translation import gettext_lazy as _

from knowledge.models.document import Document
from knowledge.models.knowledge_base import KnowledgeBase, Layer
from knowledge.models.source import Source

if TYPE_CHECKING:
    from knowledge.permissions import Reader


class TextOrigin(models.TextChoices):
    """How a passage's characters were read."""

    TEXT = "text", _("text")
    OCR = "ocr", _("OCR")


class PassageQuerySet(models.QuerySet["Passage"]):
    """Passages by reader; the only door to them."""

    def visible_to(self, reader: "Reader") -> Self:
        """Those a search of this reader may find now.

        Granted knowledge bases, minus denied ones; the source's switch and expiry are
        part of the query (S2-ING-10). Only current revisions have passages.

        The few sources that are off or expired are taken out, which costs one look-up
        for each query; joining the source of each row would cost one for each row.
        What is remembered about a person is taken out in the same way, but for what
        this reader's conversation may recall (S3-VIS-06).
        """
        if not reader.searchable:
            return self.none()
        hidden = Source.objects.hidden_from(reader)
        return self.filter(knowledge_base_id__in=reader.searchable).exclude(
            source__in=hidden
        )

    def hidden_from(self, reader: "Reader") -> Self:
        """Those of the reader's knowledge bases that `visible_to` leaves out."""
        return self.filter(source__in=Source.objects.hidden_from(reader))

    def delete_of(self, source: Source, *, up_to: int | None = None) -> None:
        """Delete a source's passages in one statement, those up to an id or all.

        Their vectors go by the database's own keys; Django would first read each row
        to find them.
        """
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM knowledge_passage "
                "WHERE source_id = %s AND (%s::bigint IS NULL OR id <= %s)",
                [source.pk, up_to, up_to],
            )


class Passage(models.Model):
    """One stored chunk of a current revision.

    `text` is `document.text[start:end]`, and what is quoted. `context` (document title
    and clause path) is embedded and indexed with it, never quoted (D8). `terms` is what
    ingest writes for the keyword branch, `codes` for the literal branch.
    """

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="passages"
    )
    layer = models.ForeignKey(Layer, on_delete=models.RESTRICT, related_name="passages")
    source = models.ForeignKey(
        Source, on_delete=models.CASCADE, related_name="passages"
    )
    document = models.ForeignKey(
        Document, on_delete=models.CASCADE, related_name="passages"
    )
    ordinal = models.PositiveIntegerField(_("number in the document"))
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    text = models.TextField(_("text"))
    context = models.TextField(_("context"), blank=True)
    clause_path = models.TextField(_("clause path"), blank=True)
    page = models.PositiveIntegerField(_("page"), null=True)
    line_start = models.PositiveIntegerField(_("first line"))
    line_end = models.PositiveIntegerField(_("last line"))
    text_origin = models.CharField(
        _("read as"), max_length=4, choices=TextOrigin, default=TextOrigin.TEXT
    )
    cut_start = models.BooleanField(_("begins inside a sentence"), default=False)
    cut_end = models.BooleanField(_("stops inside a sentence"), default=False)
    metadata = models.JSONField(_("metadata"), default=dict)
    embedded_sha256 = models.CharField(max_length=64)
    terms = models.TextField()
    codes = ArrayField(models.CharField(max_length=80), default=list)
    search_vector = models.GeneratedField(
        expression=SearchVector("terms", config="simple"),
        output_field=SearchVectorField(),
        db_persist=True,
    )

    objects = PassageQuerySet.as_manager()

    class Meta:
        """Indexes for the three branches."""

        verbose_name = _("passage")
        verbose_name_plural = _("passages")
        ordering = ["document", "ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["id", "knowledge_base"], name="passage_in_knowledge_base"
            ),
            models.CheckConstraint(
                condition=models.Q(end__gt=models.F("start")),
                name="passage_span_not_empty",
            ),
        ]
        indexes = [
            models.Index(fields=["document", "ordinal"], name="passage_by_document"),
            # A word is looked up within the knowledge bases in reach, so that a small
            # reach costs little however frequent the word is elsewhere. New rows go into
            # the indexes at once (fastupdate): in a list of their own, each search of
            # each reader would read all of them until the next vacuum.
            GinIndex(
                models.Func(
                    models.F("knowledge_base"), template="ARRAY[%(expressions)s]"
                ),
                "search_vector",
                name="passage_search_vector",
                fastupdate=False,
            ),
            GinIndex(fields=["codes"], name="passage_codes", fastupdate=False),
            GinIndex(
                fields=["metadata"],
                opclasses=["jsonb_path_ops"],
                name="passage_meta",
                fastupdate=False,
            ),
        ]

    def __str__(self) -> str:
        """Return the ref's span."""
        return f"{self.start}-{self.end}"
