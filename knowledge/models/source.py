"""Sources, where text comes from, and their original files."""

import uuid
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from knowledge.models.knowledge_base import KnowledgeBase, Layer

if TYPE_CHECKING:
    from knowledge.permissions import Reader


# The folder of the storage that holds the originals.
ORIGINALS = "originals"


def storage_name(original: "Original", filename: str) -> str:
    """Return a generated path: nothing of a caller's file name reaches the disk."""
    key = uuid.uuid4().hex
    return str(PurePosixPath(ORIGINALS, key[:2], key))


class Original(models.Model):
    """A file exactly as it came in, kept to be handed back."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="originals"
    )
    file = models.FileField(_("file"), upload_to=storage_name, max_length=120)
    name = models.CharField(_("name"), max_length=255)
    kind = models.CharField(_("kind"), max_length=20)
    size = models.PositiveBigIntegerField(_("size in bytes"))
    sha256 = models.CharField("SHA-256", max_length=64, db_index=True)
    modified_at = models.DateTimeField(_("modified"), null=True, blank=True)
    created_at = models.DateTimeField(_("received"), auto_now_add=True)

    class Meta:
        """Plain words for the admin."""

        verbose_name = _("original file")
        verbose_name_plural = _("original files")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(sha256__regex="^[0-9a-f]{64}$"),
                name="original_sha256_is_hex",
            )
        ]

    def __str__(self) -> str:
        """Return the name it came with."""
        return self.name


class SourceKind(models.TextChoices):
    """Where a source's text comes from (D6)."""

    TEXT = "text", _("text")
    DOCUMENT = "document", _("document")
    FOLDER = "folder", _("folder")
    PAGE = "page", _("page")
    SITE = "site", _("site")
    QA = "qa", _("question-answer pairs")
    CATALOG = "catalog", _("catalogue")
    MEMORY = "memory", _("memory")


class Purpose(models.TextChoices):
    """What a source is declared to be for."""

    PRODUCTS = "products", _("products")
    DOCUMENTATION = "documentation", _("documentation")
    FAQ = "faq", _("FAQ")
    OTHER = "other", _("other")


class SourceState(models.TextChoices):
    """How far a source is; exactly these five (S2-REF-03)."""

    PENDING = "pending", _("pending")
    PROCESSING = "processing", _("processing")
    REPROCESSING = "reprocessing", _("reprocessing")
    READY = "ready", _("ready")
    FAILED = "failed", _("failed")


class SourceQuerySet(models.QuerySet["Source"]):
    """Sources by reader."""

    def visible_to(self, reader: "Reader") -> Self:
        """Those a search of this reader may reach now: granted, on, not expired.

        Of a person's memory, only what their conversation may recall.
        """
        if not reader.searchable:
            return self.none()
        live = self.filter(knowledge_base_id__in=reader.searchable).live()
        return live.filter(recalled_by(reader)) if reader.recalls else live

    def live(self) -> Self:
        """Those switched on and not expired, by the database's clock."""
        return self.filter(
            models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=Now()),
            enabled=True,
        )

    def hidden(self) -> Self:
        """Those that `live` leaves out: switched off or expired."""
        return self.filter(models.Q(enabled=False) | models.Q(expires_at__lte=Now()))

    def hidden_from(self, reader: "Reader") -> Self:
        """Those of the reader's knowledge bases that `visible_to` leaves out."""
        sources = self.filter(knowledge_base_id__in=reader.searchable)
        if reader.recalls:
            is_hidden = models.Q(enabled=False) | models.Q(expires_at__lte=Now())
            return sources.filter(is_hidden | ~recalled_by(reader))
        return sources.hidden()


def recalled_by(reader: "Reader") -> models.Q:
    """Return the condition that a source is a statement this reader may recall."""
    from knowledge.models.memory import Statement

    matching = Statement.objects.recalled_by(reader)
    return models.Q(pk__in=matching.values("source_id"))


class Source(models.Model):
    """One thing that text comes from, with a switch of its own.

    `generation` counts what was asked for (an upload, a replacement, a re-index); a
    run publishes only while its own generation is still the newest.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    knowledge_base = models.ForeignKey(
        KnowledgeBase,
        verbose_name=_("knowledge base"),
        on_delete=models.CASCADE,
        related_name="sources",
    )
    layer = models.ForeignKey(
        Layer,
        verbose_name=_("layer"),
        on_delete=models.RESTRICT,
        related_name="sources",
    )
    kind = models.CharField(
        _("kind"), max_length=10, choices=SourceKind, default=SourceKind.DOCUMENT
    )
    purpose = models.CharField(
        _("purpose"), max_length=15, choices=Purpose, default=Purpose.DOCUMENTATION
    )
    title = models.CharField(_("title"), max_length=300)
    path = models.CharField(
        _("path"),
        max_length=500,
        help_text=_("Relative to the uploaded folder; citations show it."),
    )
    original = models.ForeignKey(
        Original,
        verbose_name=_("original file"),
        on_delete=models.RESTRICT,
        related_name="sources",
        null=True,
        blank=True,
    )
    content_sha256 = models.CharField("SHA-256", max_length=64, blank=True)
    state = models.CharField(
        _("state"), max_length=12, choices=SourceState, default=SourceState.PENDING
    )
    state_reason = models.TextField(_("reason"), blank=True)
    # The version of the keyword branch's terms that its passages have; 0 asks for them
    # to be written anew.
    terms_version = models.PositiveSmallIntegerField(
        default=0, editable=False, db_index=True
    )
    enabled = models.BooleanField(
        _("on"), default=True, help_text=_("Off: no search finds it, from now on.")
    )
    expires_at = models.DateTimeField(
        _("expires"),
        null=True,
        blank=True,
        help_text=_("From then on no search finds it."),
    )
    generation = models.PositiveIntegerField(default=1, editable=False)
    passage_count = models.PositiveIntegerField(_("passages"), default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("added by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(_("added"), auto_now_add=True)
    changed_at = models.DateTimeField(_("last changed"), null=True, blank=True)
    indexed_at = models.DateTimeField(_("last indexed"), null=True, blank=True)

    objects = SourceQuerySet.as_manager()

    class Meta:
        """One source for each path of a layer and each content of a knowledge base."""

        verbose_name = _("source")
        verbose_name_plural = _("sources")
        ordering = ["-created_at", "-pk"]
        permissions = [
            ("switch_source", "Can switch a source on and off"),
            ("reindex_source", "Can index a source again"),
            ("purge_source", "Can erase a source and every copy of its words"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["layer", "path"],
                name="source_path_once",
                violation_error_message=_("This layer already has a source there."),
            ),
            models.UniqueConstraint(
                fields=["knowledge_base", "content_sha256"],
                condition=~models.Q(content_sha256=""),
                name="source_content_once",
                violation_error_message=_(
                    "This knowledge base already has a source with the same content."
                ),
            ),
            models.UniqueConstraint(
                fields=["id", "layer", "knowledge_base"], name="source_in_layer"
            ),
            models.UniqueConstraint(
                fields=["id", "knowledge_base"], name="source_in_knowledge_base"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=SourceState.values),
                name="source_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=SourceKind.values),
                name="source_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(purpose__in=Purpose.values),
                name="source_purpose_known",
            ),
            # The worst possible outcome, made impossible (S2-ING-06).
            models.CheckConstraint(
                condition=~models.Q(state="ready", passage_count=0),
                name="source_ready_has_passages",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="failed", state_reason=""),
                name="source_failed_has_reason",
            ),
        ]
        indexes = [
            models.Index(fields=["knowledge_base", "state"], name="source_by_state"),
            # Each search asks which sources it must leave out; few have a reason.
            models.Index(
                fields=["knowledge_base"],
                condition=models.Q(enabled=False) | models.Q(expires_at__isnull=False),
                name="source_perhaps_hidden",
            ),
        ]

    def __str__(self) -> str:
        """Return the title."""
        return self.title

    def get_absolute_url(self) -> str:
        """Return the portal page that shows the current text."""
        return reverse("portal:source", args=[self.public_id])
