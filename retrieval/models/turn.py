"""Turns, their trace steps, and the snapshots that citations rest on."""

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from knowledge.models import AgentClient, Document, KnowledgeBase, Source

if TYPE_CHECKING:
    from knowledge.permissions import Reader

# A turn that nobody has used for so long is over.
IDLE = timedelta(hours=24)


class TurnQuerySet(models.QuerySet["Turn"]):
    """Turns by whether they still take searches, and by who may look at them."""

    def open(self) -> Self:
        """Neither ended nor idle for a day."""
        return self.filter(ended_at__isnull=True, used_at__gt=Now() - IDLE)


class Turn(models.Model):
    """One answer being composed by an agent, with bindings.

    `knowledge_base_ids` are the client's bindings as far as the owner might search them
    when the turn began; each search is narrowed again to what holds at its moment.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    client = models.ForeignKey(
        AgentClient,
        verbose_name=_("agent client"),
        on_delete=models.CASCADE,
        related_name="turns",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("acts for"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    knowledge_base_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("knowledge bases"), default=list
    )
    conversation_id = models.UUIDField(_("conversation"), null=True)
    started_at = models.DateTimeField(_("started"), db_default=Now())
    used_at = models.DateTimeField(_("last used"), db_default=Now())
    ended_at = models.DateTimeField(_("ended"), null=True)

    objects = TurnQuerySet.as_manager()

    class Meta:
        """Newest first."""

        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        ordering = ["-started_at", "-pk"]

    def __str__(self) -> str:
        """Return the id that the agent knows."""
        return str(self.public_id)


class TurnStep(models.Model):
    """One search of a turn, as its trace keeps it.

    `query` is scrubbed. `hits` and `withheld` are lists of {"ref", "revision", "score",
    "knowledge_base"}: what the agent was given, best first, and what the context budget
    kept from it (S3-LOG-01). `knowledge_base_ids` is the list that was searched.
    """

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="steps")
    query = models.TextField(_("query"), blank=True)
    count = models.PositiveSmallIntegerField(_("passages asked for"))
    knowledge_base_ids = ArrayField(
        models.BigIntegerField(), verbose_name=_("searched"), default=list
    )
    tuning_version = models.PositiveIntegerField(_("settings"), default=0)
    hits = models.JSONField(_("given"), default=list)
    withheld = models.JSONField(_("withheld"), default=list)
    labels = models.JSONField(_("labels"), default=list)
    citations_saved = models.BooleanField(_("citations saved"), default=False)
    stage_ms = models.JSONField(_("milliseconds by stage"), default=dict)
    at = models.DateTimeField(_("at"), db_default=Now())

    class Meta:
        """In the order of the turn."""

        verbose_name = _("trace step")
        verbose_name_plural = _("trace steps")
        ordering = ["turn", "pk"]

    def __str__(self) -> str:
        """Return what was searched for."""
        return self.query


class SnapshotQuerySet(models.QuerySet["Snapshot"]):
    """Snapshots by reader."""

    def visible_to(self, reader: "Reader") -> Self:
        """Those of knowledge bases that the reader may search at this moment.

        Where the source still stands it must be one that a search reaches; of a deleted
        one the saved words remain.
        """
        if not reader.searchable:
            return self.none()
        return self.filter(
            models.Q(source__isnull=True)
            | models.Q(source__in=Source.objects.visible_to(reader)),
            knowledge_base_id__in=reader.searchable,
        )


class Snapshot(models.Model):
    """A numbered citation of a turn or an ask, with what it pointed to, kept for good.

    An ask's passage S1 is number 1; sentences that it quotes come after its passages.
    `text` is what was shown of `ref`, which `cut` tells when it was not all
    of it. A source that moves takes its snapshots along to the other knowledge base,
    one that is deleted leaves them: `removed_at` is then set by the database. `purged_at`
    tells that the words were erased; `text_sha256` stays.
    """

    turn = models.ForeignKey(
        Turn, on_delete=models.CASCADE, null=True, related_name="snapshots"
    )
    interaction = models.ForeignKey(
        "retrieval.Interaction",
        on_delete=models.CASCADE,
        null=True,
        related_name="snapshots",
    )
    number = models.PositiveIntegerField(_("number"))
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="+"
    )
    source = models.ForeignKey(
        Source, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    document = models.ForeignKey(
        Document, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    revision = models.BigIntegerField(_("revision"))
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    ref = models.CharField(_("ref"), max_length=60)
    text = models.TextField(_("text"), blank=True)
    text_sha256 = models.CharField(_("SHA-256 of the text"), max_length=64)
    cut = models.BooleanField(_("shown in part"), default=False)
    title = models.CharField(_("title"), max_length=300, blank=True)
    clause_path = models.TextField(_("section"), blank=True)
    layer = models.CharField(_("layer"), max_length=60)
    file = models.CharField(_("file"), max_length=500, blank=True)
    page = models.PositiveIntegerField(_("page"), null=True)
    lines = models.CharField(_("lines"), max_length=24)
    date = models.DateField(_("date"), null=True)
    date_source = models.CharField(_("date read from"), max_length=12, blank=True)
    text_origin = models.CharField(_("read as"), max_length=4)
    places = models.JSONField(_("where the matched passages sit"), default=list)
    score = models.FloatField(_("fused score"))
    indexed_at = models.DateTimeField(_("indexed"))
    saved_at = models.DateTimeField(_("saved"), db_default=Now())
    removed_at = models.DateTimeField(_("removed"), null=True)
    purged_at = models.DateTimeField(_("erased"), null=True)

    objects = SnapshotQuerySet.as_manager()

    class Meta:
        """Numbered from 1 within a turn or an ask, and each place once (D24)."""

        verbose_name = _("citation")
        verbose_name_plural = _("citations")
        ordering = ["turn", "interaction", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["turn", "number"], name="snapshot_number_once"
            ),
            models.UniqueConstraint(fields=["turn", "ref"], name="snapshot_ref_once"),
            models.UniqueConstraint(
                fields=["interaction", "number"], name="snapshot_number_once_in_ask"
            ),
            models.UniqueConstraint(
                fields=["interaction", "ref"], name="snapshot_ref_once_in_ask"
            ),
            models.CheckConstraint(
                condition=models.Q(turn__isnull=True)
                ^ models.Q(interaction__isnull=True),
                name="snapshot_of_turn_or_ask",
            ),
            models.CheckConstraint(
                condition=models.Q(number__gt=0), name="snapshot_number_positive"
            ),
        ]
        indexes = [
            models.Index(fields=["revision"], name="snapshot_by_revision"),
        ]

    def __str__(self) -> str:
        """Return the mark and what it points to."""
        return f"[{self.number}] {self.ref}"
