"""Receipts: what was read and checked, signed and chained, and never changed."""

from typing import TYPE_CHECKING, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from knowledge.models import KnowledgeBase, Source
from retrieval.models.question_set import administered_ids

if TYPE_CHECKING:
    from knowledge.models import User
    from knowledge.permissions import Reader


class ReceiptKind(models.TextChoices):
    """What a receipt is for."""

    DRAFT = "draft", _("checked draft")
    EXTRACTIVE = "extractive", _("sentences word for word")


class ReceiptQuerySet(models.QuerySet["Receipt"]):
    """Receipts by reader and by member of staff."""

    def visible_to(self, reader: "Reader") -> Self:
        """Those of which the reader may read every source at this moment.

        Where a source still stands it must be one that a search reaches; of a deleted
        one the knowledge base that it was in last decides.
        """
        if not reader.searchable:
            return self.none()
        is_open = models.Q(knowledge_base_id__in=reader.searchable) & (
            models.Q(source__isnull=True)
            | models.Q(source__in=Source.objects.visible_to(reader))
        )
        return self.reading_only(is_open)

    def administered_by(self, user: "User") -> Self:
        """Those whose knowledge bases the person works on, every one of them.

        What was read in a knowledge base that is gone is a superuser's.
        """
        if user.is_active and user.is_superuser:
            return self
        return self.reading_only(models.Q(knowledge_base__in=administered_ids(user)))

    def reading_only(self, is_open: models.Q) -> Self:
        """Those whose reads all meet a condition."""
        reads = ReceiptRead.objects.filter(receipt=models.OuterRef("pk"))
        return self.filter(models.Exists(reads), ~models.Exists(reads.exclude(is_open)))


class Receipt(models.Model):
    """One receipt. The database refuses every change and deletion.

    `signed` is what was signed, in its canonical form; docs/receipts.md describes its
    members. `sha256` is its hash, which the next receipt's signed part names as
    `previous`; numbers have no gap. Everything else here repeats what `signed` says,
    to be looked up by.
    """

    number = models.PositiveBigIntegerField(_("number"), unique=True)
    public_id = models.CharField(_("id"), max_length=40, unique=True)
    kind = models.CharField(_("kind"), max_length=10, choices=ReceiptKind)
    interaction = models.UUIDField(_("interaction"), null=True, db_index=True)
    signed = models.TextField(_("signed part"))
    sha256 = models.CharField(_("SHA-256 of the signed part"), max_length=64)
    signature = models.CharField(_("signature"), max_length=128)
    key_id = models.CharField(_("key"), max_length=64)
    issued_at = models.DateTimeField(_("issued"), db_index=True)

    objects = ReceiptQuerySet.as_manager()

    class Meta:
        """Newest first."""

        verbose_name = _("receipt")
        verbose_name_plural = _("receipts")
        ordering = ["-number"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(number__gt=0), name="receipt_number_positive"
            ),
        ]

    def __str__(self) -> str:
        """Return the id."""
        return self.public_id


class ReceiptWords(models.Model):
    """The words of one part of a receipt, beside its signed part.

    `part` is question, draft, unchecked/0, read/0/text, read/0/title or read/0/file.
    The one change that the database lets through takes `salt` and `text` away and says
    so in the other columns.
    """

    receipt = models.ForeignKey(Receipt, on_delete=models.PROTECT, related_name="words")
    part = models.CharField(_("part"), max_length=40)
    salt = models.CharField(max_length=32, null=True)  # noqa: DJ001
    text = models.TextField(_("text"), null=True)  # noqa: DJ001
    removed_at = models.DateTimeField(_("words removed"), null=True)
    removal_key = models.CharField(max_length=64, blank=True)
    removal_signature = models.CharField(max_length=128, blank=True)

    class Meta:
        """A part has its words, or the note that they were removed."""

        verbose_name = _("words of a receipt")
        verbose_name_plural = _("words of receipts")
        ordering = ["receipt", "part"]
        constraints = [
            models.UniqueConstraint(
                fields=["receipt", "part"], name="receipt_part_once"
            ),
            models.CheckConstraint(
                condition=models.Q(
                    salt__isnull=False,
                    text__isnull=False,
                    removed_at__isnull=True,
                    removal_key="",
                    removal_signature="",
                )
                | (
                    models.Q(
                        salt__isnull=True, text__isnull=True, removed_at__isnull=False
                    )
                    & ~models.Q(removal_key="")
                    & ~models.Q(removal_signature="")
                ),
                name="receipt_words_or_removal",
            ),
        ]

    def __str__(self) -> str:
        """Return the part."""
        return self.part


class ReceiptRead(models.Model):
    """Where the source of one passage that a receipt read stands today.

    It decides who may open the receipt, and follows the source: one that moves takes
    the row along to the other knowledge base, one that is deleted leaves it with
    `removed_at`, set by the database. Without a knowledge base nobody opens it.
    """

    receipt = models.ForeignKey(Receipt, on_delete=models.PROTECT, related_name="reads")
    position = models.PositiveSmallIntegerField()
    revision = models.BigIntegerField(_("revision"))
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    source = models.ForeignKey(
        Source, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    removed_at = models.DateTimeField(_("removed"), null=True)

    class Meta:
        """In the order of the receipt."""

        verbose_name = _("passage of a receipt")
        verbose_name_plural = _("passages of receipts")
        ordering = ["receipt", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["receipt", "position"], name="receipt_read_once"
            ),
        ]
        indexes = [models.Index(fields=["revision"], name="receipt_by_revision")]

    def __str__(self) -> str:
        """Return the revision."""
        return f"d{self.revision}"
