"""The source register: what was decided about candidates, and what may never enter."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from knowledge.models.knowledge_base import KnowledgeBase

# As the database reads it: at least one character that is not white space.
NOT_BLANK = r"\S"


class Decision(models.TextChoices):
    """What was decided about a candidate."""

    ACCEPTED = "accepted", _("accepted")
    REJECTED = "rejected", _("rejected")


class RegisterEntry(models.Model):
    """A candidate source of a knowledge base, and whether it may come in (D7).

    A rejected one stops the file, or the folder of files, that `location` names.
    """

    knowledge_base = models.ForeignKey(
        KnowledgeBase,
        verbose_name=_("knowledge base"),
        on_delete=models.CASCADE,
        related_name="register",
    )
    title = models.CharField(
        _("what it is"),
        max_length=300,
        help_text=_("In words, such as: price list of our suppliers."),
    )
    location = models.CharField(
        _("path or file name"),
        max_length=500,
        blank=True,
        help_text=_(
            "A file such as prices.csv or sales/prices.csv, a folder such as sales, or "
            "an address. Where it is rejected, it is stopped at every upload."
        ),
    )
    decision = models.CharField(_("decision"), max_length=10, choices=Decision)
    reason = models.TextField(
        _("reason"),
        help_text=_("A sentence. Whoever uploads what is rejected reads it."),
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("decided by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    decided_at = models.DateTimeField(
        _("decided"), default=timezone.now, editable=False
    )

    class Meta:
        """One decision for each place of a knowledge base."""

        verbose_name = _("register entry")
        verbose_name_plural = _("register entries")
        ordering = ["-decided_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["knowledge_base", "location"],
                condition=~models.Q(location=""),
                name="register_entry_location_once",
                violation_error_message=_(
                    "The register of this knowledge base already has this place."
                ),
            ),
            models.CheckConstraint(
                condition=models.Q(decision__in=Decision.values),
                name="register_entry_decision_known",
            ),
            models.CheckConstraint(
                condition=models.Q(reason__regex=NOT_BLANK),
                name="register_entry_has_reason",
                violation_error_message=_("Give a reason."),
            ),
            models.CheckConstraint(
                condition=models.Q(title__regex=NOT_BLANK),
                name="register_entry_says_what",
                violation_error_message=_("Say what it is."),
            ),
        ]

    def __str__(self) -> str:
        """Return what it is."""
        return self.title


class RuleKind(models.TextChoices):
    """By what a never-rule tells what may not enter."""

    NAME = "name", _("by path or file name")
    FORMAT = "format", _("by format")
    CONTENT = "content", _("by words in it")


class FileFormat(models.TextChoices):
    """The formats that are told apart by content (`knowledge.extraction.sniff`)."""

    TEXT = "text", _("plain text")
    MARKDOWN = "markdown", _("Markdown")
    LOG = "log", _("log")
    CSV = "csv", _("CSV table")
    JSON = "json", _("JSON")
    DOCX = "docx", _("Word document")
    PDF = "pdf", _("PDF")


class NeverRule(models.Model):
    """What may never enter a knowledge base, or any (D7, S2-ING-12).

    `pattern` is a name with `*` and `?`, one of `FileFormat`, or a plain phrase; it is
    never a regular expression.
    """

    knowledge_base = models.ForeignKey(
        KnowledgeBase,
        verbose_name=_("knowledge base"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="never_rules",
    )
    kind = models.CharField(_("recognised"), max_length=10, choices=RuleKind)
    pattern = models.CharField(
        _("pattern"),
        max_length=200,
        help_text=_(
            "A name such as *.pst or contacts/*, a format such as csv, or words such as "
            "purchase price. Capitals and line breaks make no difference."
        ),
    )
    reason = models.TextField(
        _("reason"),
        help_text=_("A sentence. Whoever uploads such a file reads it."),
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("added by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )
    created_at = models.DateTimeField(_("added"), auto_now_add=True)

    class Meta:
        """Each rule once for a knowledge base, and once for all of them."""

        verbose_name = _("never-rule")
        verbose_name_plural = _("never-rules")
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["knowledge_base", "kind", "pattern"],
                name="never_rule_once",
                violation_error_message=_("This knowledge base already has this rule."),
            ),
            models.UniqueConstraint(
                fields=["kind", "pattern"],
                condition=models.Q(knowledge_base__isnull=True),
                name="never_rule_for_all_once",
                violation_error_message=_("This rule already holds for all."),
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=RuleKind.values),
                name="never_rule_kind_known",
            ),
            models.CheckConstraint(
                condition=~models.Q(kind="format")
                | models.Q(pattern__in=FileFormat.values),
                name="never_rule_format_known",
                violation_error_message=_("There is no such format."),
            ),
            models.CheckConstraint(
                condition=models.Q(pattern__regex=NOT_BLANK),
                name="never_rule_has_pattern",
                violation_error_message=_("Give a pattern."),
            ),
            models.CheckConstraint(
                condition=models.Q(reason__regex=NOT_BLANK),
                name="never_rule_has_reason",
                violation_error_message=_("Give a reason."),
            ),
        ]

    def __str__(self) -> str:
        """Return its pattern and what that is compared with."""
        return f"{self.pattern} ({self.get_kind_display()})"
