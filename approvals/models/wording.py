"""The ways in which a gap was asked, and how far the asks have been looked through."""

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from approvals.models.question import Channel, PendingQuestion
from knowledge.models import AgentClient
from retrieval.models import Interaction


class WordingQuerySet(models.QuerySet["Wording"]):
    """Wordings by what they count for."""

    def of(self, pending: PendingQuestion) -> Self:
        """Those of a question and of what was merged into it."""
        return self.filter(
            models.Q(pending=pending) | models.Q(pending__original=pending)
        )


class Wording(models.Model):
    """One ask that the documents did not answer, in the words of that time.

    `text` is scrubbed (R16), and "" once it is past its keeping time. `pending` is null
    where another wording of it was answered soon after, so that nobody has to be asked.
    `caller` is a keyed hash of who asked, or of which conversation of an agent, for
    counting. `finds` tells whether it was found when it was asked again. `vector` are
    float32 numbers in the space whose fingerprint is `space`. `told_at` is when the
    asker saw, in the portal, what became of it.
    """

    pending = models.ForeignKey(
        PendingQuestion,
        verbose_name=_("pending question"),
        on_delete=models.CASCADE,
        related_name="wordings",
        null=True,
    )
    interaction = models.OneToOneField(
        Interaction,
        verbose_name=_("interaction"),
        on_delete=models.SET_NULL,
        related_name="wording",
        null=True,
    )
    text = models.TextField(_("wording"), blank=True)
    digest = models.CharField(max_length=64, editable=False, db_index=True)
    language = models.CharField(_("language"), max_length=2, blank=True)
    channel = models.CharField(_("channel"), max_length=6, choices=Channel)
    asker = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("asked by"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    client = models.ForeignKey(
        AgentClient,
        verbose_name=_("agent client"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    caller = models.CharField(max_length=80, editable=False)
    at = models.DateTimeField(_("asked"))
    finds = models.BooleanField(_("finds the answer"), null=True)
    vector = models.BinaryField(null=True, editable=False)
    space = models.CharField(max_length=64, blank=True, editable=False)
    told_at = models.DateTimeField(_("seen by the asker"), null=True)

    objects = WordingQuerySet.as_manager()

    class Meta:
        """In the order in which they were asked."""

        verbose_name = _("wording")
        verbose_name_plural = _("wordings")
        ordering = ["at", "pk"]
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["space"],
                name="wording_to_compare",
                condition=models.Q(pending__isnull=False) & ~models.Q(text=""),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(channel__in=Channel.values),
                name="wording_channel_known",
            ),
        ]

    def __str__(self) -> str:
        """Return its number: what it says is not for every reader of a label."""
        return f"wording {self.pk}"


class SettlingMark(models.Model):
    """How far the asks have been looked through: one row.

    All chains of asks that began before `settled_before` are settled.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    settled_before = models.DateTimeField()

    class Meta:
        """No more than one row."""

        verbose_name = _("settling mark")
        verbose_name_plural = _("settling marks")
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=models.Q(pk=1), name="settling_mark_is_one"
            ),
        ]

    def __str__(self) -> str:
        """Return the time."""
        return self.settled_before.isoformat()
