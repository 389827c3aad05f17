"""Document revisions, which never change, and their structure map."""

import secrets
from typing import TYPE_CHECKING, Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils.translation import gettext_lazy as _

from knowledge.models.knowledge_base import KnowledgeBase
from knowledge.models.source import Original, Source

if TYPE_CHECKING:
    from knowledge.permissions import Reader


def random_number() -> int:
    """Return a number for refs: 53 random bits, so that it counts nothing (D2)."""
    return secrets.randbits(53) or 1


class DateSource(models.TextChoices):
    """Where a document's date was read."""

    FRONT_MATTER = "front_matter", _("front matter")
    FILE = "file", _("file")


class DocumentQuerySet(models.QuerySet["Document"]):
    """Revisions by reader."""

    def visible_to(self, reader: "Reader") -> Self:
        """Revisions, current or not, of sources that the reader may reach now."""
        return self.filter(source__in=Source.objects.visible_to(reader))


class Document(models.Model):
    """One immutable extracted text of a source (D2).

    Offsets into `text` are Unicode code points, half open. `pages` is a list of
    {"number", "start", "end", "width", "height", "extractor"} and empty but for PDF;
    `blocks` a list of [kind, start, end, level]; `ocr_spans` a list of [start, end].
    `supersedes` names the files that it says it replaces, one a line. `names` are the
    keys by which a question may call it (`knowledge.naming`).

    What an older version stored has neither text nor hash: its passages are found, and
    cannot be quoted, until the file is ingested again (S1-ING-08).
    """

    number = models.BigIntegerField(
        _("number"), default=random_number, unique=True, editable=False
    )
    source = models.ForeignKey(
        Source, on_delete=models.CASCADE, related_name="documents"
    )
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="documents"
    )
    original = models.ForeignKey(
        Original, on_delete=models.RESTRICT, related_name="documents", null=True
    )
    title = models.CharField(_("title"), max_length=300)
    kind = models.CharField(_("format"), max_length=20)
    text = models.TextField(_("text"))
    text_sha256 = models.CharField(_("SHA-256 of the text"), max_length=64, blank=True)
    pages = models.JSONField(_("pages"), default=list)
    blocks = models.JSONField(_("blocks"), default=list)
    ocr_spans = models.JSONField(_("spans read by OCR"), default=list)
    front_matter = models.JSONField(_("front matter"), default=dict)
    properties = models.JSONField(_("properties"), default=dict)
    report = models.JSONField(_("what was not extracted, and why"), default=list)
    date = models.DateField(_("date"), null=True)
    date_source = models.CharField(
        _("date read from"), max_length=12, choices=DateSource, blank=True
    )
    supersedes = models.CharField(_("supersedes"), max_length=500, blank=True)
    names = ArrayField(models.CharField(max_length=80), default=list)
    is_current = models.BooleanField(_("current"), default=False)
    # The request whose run published these passages last; tells a run that was killed
    # after publishing that it has nothing left to publish.
    generation = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(_("indexed"), auto_now_add=True)
    superseded_at = models.DateTimeField(_("replaced"), null=True)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        """A source has one current revision at most."""

        verbose_name = _("document revision")
        verbose_name_plural = _("document revisions")
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["source"],
                condition=models.Q(is_current=True),
                name="document_current_once",
            ),
            models.UniqueConstraint(fields=["id", "source"], name="document_of_source"),
            models.UniqueConstraint(
                fields=["id", "knowledge_base"], name="document_in_knowledge_base"
            ),
            models.CheckConstraint(
                condition=models.Q(date__isnull=True, date_source="")
                | models.Q(date__isnull=False, date_source__in=DateSource.values),
                name="document_date_has_source",
            ),
            models.CheckConstraint(
                condition=models.Q(number__gt=0), name="document_number_positive"
            ),
            models.CheckConstraint(
                condition=models.Q(text="") | ~models.Q(text_sha256=""),
                name="document_text_has_hash",
            ),
        ]
        indexes = [
            models.Index(
                fields=["supersedes"],
                condition=~models.Q(supersedes=""),
                name="document_by_superseded",
            ),
            GinIndex(
                models.Func(
                    models.F("knowledge_base"), template="ARRAY[%(expressions)s]"
                ),
                "names",
                name="document_by_name",
            ),
        ]

    def __str__(self) -> str:
        """Return the title."""
        return self.title

    @property
    def keeps_text(self) -> bool:
        """Whether its text is stored, so that it can be opened and quoted."""
        return bool(self.text_sha256)

    def ref(self, start: int, end: int) -> str:
        """Return the ref of a span, `d<number>:<start>-<end>`."""
        return f"d{self.number}:{start}-{end}"


class Section(models.Model):
    """A heading or numbered clause with its offsets; a row of the structure map.

    `key` is the number as it is looked up, empty where there is none or where the row
    was written before numbers were looked up. `unit` is what the number counts, an
    `article` say, empty where the text does not tell.
    """

    document = models.ForeignKey(
        Document, on_delete=models.CASCADE, related_name="sections"
    )
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="sections"
    )
    ordinal = models.PositiveIntegerField()
    kind = models.CharField(max_length=10)
    unit = models.CharField(max_length=12, blank=True)
    number = models.CharField(max_length=60, blank=True)
    key = models.CharField(max_length=60, blank=True)
    label = models.CharField(max_length=120, blank=True)
    title = models.CharField(max_length=500, blank=True)
    level = models.PositiveSmallIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    path = models.JSONField(default=list)

    class Meta:
        """In the order of the text."""

        verbose_name = _("section")
        verbose_name_plural = _("sections")
        ordering = ["document", "ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["document", "ordinal"], name="section_ordinal_once"
            ),
            models.CheckConstraint(
                condition=models.Q(end__gte=models.F("start")),
                name="section_span_in_order",
            ),
        ]
        indexes = [
            # Looked up within the knowledge bases in reach, as passages are.
            models.Index(
                fields=["knowledge_base", "key"],
                condition=~models.Q(key=""),
                name="section_by_key",
            ),
        ]

    def __str__(self) -> str:
        """Return the clause path."""
        return " > ".join(self.path)
