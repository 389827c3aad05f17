"""Reports of what quotes a source, and what of it changes or goes with its text."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from knowledge.models import KnowledgeBase, Original, Source


class Act(models.TextChoices):
    """What is done to a source."""

    REPLACEMENT = "replacement", _("replaced")
    REMOVAL = "removal", _("removed")


class Moment(models.TextChoices):
    """When it was looked at."""

    BEFORE = "before", _("before it goes live")
    AFTER = "after", _("as it went live")


class ImpactReport(models.Model):
    """What rested on a source's text when another took its place, or nothing did.

    One is made before, where somebody looks first; it holds the new file in `original`
    and, once that was put in its place, the source's `generation`. One is made as the
    new text goes live, and names the one before as `earlier`. `figures` are counts by
    kind (citation, receipt, answer) and outcome (stands, changes, vanishes, before).
    A source that moves takes its reports along; of a deleted one they stay, and a purge
    takes its name out of them.
    """

    source = models.ForeignKey(
        Source,
        verbose_name=_("source"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    knowledge_base = models.ForeignKey(
        KnowledgeBase,
        verbose_name=_("knowledge base"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    title = models.CharField(_("title"), max_length=300, blank=True)
    path = models.CharField(_("path"), max_length=500, blank=True)
    act = models.CharField(_("what is done"), max_length=12, choices=Act)
    moment = models.CharField(_("looked at"), max_length=6, choices=Moment)
    earlier = models.OneToOneField(
        "self",
        verbose_name=_("report before"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="later",
    )
    original = models.ForeignKey(
        Original,
        verbose_name=_("new file"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    generation = models.PositiveIntegerField(null=True, editable=False)
    old_revision = models.BigIntegerField(_("old revision"), null=True)
    new_revision = models.BigIntegerField(_("new revision"), null=True)
    figures = models.JSONField(_("figures"), default=dict)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("by"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    made_at = models.DateTimeField(_("at"), db_default=Now())

    class Meta:
        """Newest first; a text goes live in the place of another once."""

        verbose_name = _("impact report")
        verbose_name_plural = _("impact reports")
        ordering = ["-made_at", "-pk"]
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["source", "old_revision", "new_revision"],
                condition=models.Q(act=Act.REPLACEMENT, moment=Moment.AFTER),
                name="impact_of_publication_once",
            ),
        ]

    def __str__(self) -> str:
        """Return the source's title, as far as it may be named."""
        return self.title or str(_("an erased source"))


class ImpactSpan(models.Model):
    """One quoted span that changes or vanishes.

    `kind` and `key` name what quotes it; its words stay where they are quoted. `now` is
    what stands in their place in the new text, "" if nothing does.
    """

    report = models.ForeignKey(
        ImpactReport, on_delete=models.CASCADE, related_name="spans"
    )
    kind = models.CharField(max_length=10)
    key = models.CharField(max_length=60)
    outcome = models.CharField(max_length=10)
    revision = models.BigIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    now = models.TextField(blank=True)

    class Meta:
        """In the order of what quotes them."""

        verbose_name = _("quoted span")
        verbose_name_plural = _("quoted spans")
        ordering = ["report", "pk"]
        default_permissions = ()

    def __str__(self) -> str:
        """Return where it is."""
        return f"d{self.revision}:{self.start}-{self.end}"
