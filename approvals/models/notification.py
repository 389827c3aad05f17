"""Who is told of pending questions and how, what they were told, what they replied."""

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from approvals.models.question import PendingQuestion
from knowledge.models import Layer

if TYPE_CHECKING:
    from knowledge.models import User

# How long the secret that was replaced still holds, so that nothing is lost meanwhile.
ROTATION: Final = timedelta(hours=24)


class ContactKind(models.TextChoices):
    """The way to a person."""

    EMAIL = "email", _("e-mail")
    WEBHOOK = "webhook", _("webhook")


class Pace(models.TextChoices):
    """How often a contact is told."""

    EACH = "each", _("of each question")
    DAILY = "daily", _("once a day, of all that wait")
    WEEKLY = "weekly", _("once a week, of all that wait")


class ContactQuerySet(models.QuerySet["Contact"]):
    """Contacts by whose they are."""

    def administered_by(self, user: "User") -> Self:
        """Everybody's own; a superuser looks after all."""
        if user.is_active and user.is_superuser:
            return self
        return self.filter(user=user) if user.is_active else self.none()

    def live(self) -> Self:
        """Those in use, of people whose account is."""
        return self.filter(is_active=True, user__is_active=True)


class Contact(models.Model):
    """One way in which a person is told of pending questions (S2-APR-02).

    `address` is one of e-mail, or where signed messages go. The secret of a webhook is
    in no row: it follows from the contact and `secret_number`, see
    `approvals.notifying.secrets_of`.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("person"),
        on_delete=models.CASCADE,
        related_name="contacts",
    )
    kind = models.CharField(
        _("way"), max_length=7, choices=ContactKind, default=ContactKind.EMAIL
    )
    address = models.CharField(
        _("address"),
        max_length=500,
        help_text=_("Of e-mail, or of a webhook that takes signed messages."),
    )
    pace = models.CharField(_("told"), max_length=6, choices=Pace, default=Pace.EACH)
    takes_escalations = models.BooleanField(
        _("also told of what grows old"),
        default=False,
        help_text=_("Of questions that nobody answered for days, whoever has them."),
    )
    layer = models.ForeignKey(
        Layer,
        verbose_name=_("layer for replies"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_(
            "Where an answer goes that is a reply, unless the reply names one."
        ),
    )
    is_active = models.BooleanField(_("in use"), default=True)
    secret_number = models.PositiveIntegerField(default=1, editable=False)
    rotated_at = models.DateTimeField(null=True, editable=False)
    digest_at = models.DateTimeField(_("last summary"), null=True, editable=False)

    objects = ContactQuerySet.as_manager()

    class Meta:
        """By person."""

        verbose_name = _("contact")
        verbose_name_plural = _("contacts")
        ordering = ["user__username", "kind", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=ContactKind.values)
                & models.Q(pace__in=Pace.values),
                name="contact_choices_known",
            ),
            models.UniqueConstraint(
                fields=["user", "kind", "address"], name="contact_once"
            ),
        ]

    def __str__(self) -> str:
        """Return the person and the way; an address may be a secret."""
        return f"{self.user} ({self.get_kind_display()})"

    @property
    def secret_numbers(self) -> tuple[int, ...]:
        """The numbers of the secrets that hold now, the newest first."""
        holds = self.rotated_at and timezone.now() - self.rotated_at < ROTATION
        newest = self.secret_number
        return (newest, newest - 1) if holds else (newest,)


class Event(models.TextChoices):
    """What a notification tells of."""

    ASKED = "asked", _("a new question")
    AWAITING = "awaiting", _("an answer that waits for approval")
    REMINDER = "reminder", _("a question that still waits")
    ESCALATED = "escalated", _("a question that has grown old")
    DIGEST = "digest", _("summary")
    REFUSED = "refused", _("a reply that was not taken")


class Notification(models.Model):
    """One message to one contact: the outbox of mails and webhooks.

    Written in the transaction of what it tells of; the worker sends it. Its words are
    made when it is sent, from what its receiver may see then. `public_id` is stable
    over attempts, and is what a reply comes back with. `round` tells a later message of
    the same question from the first. `version` is that of the question whose written
    answer it showed, 0 where it showed none: a reply approves that one alone. `note` is
    what a refused reply is told, until it is.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    contact = models.ForeignKey(
        Contact,
        verbose_name=_("contact"),
        on_delete=models.CASCADE,
        related_name="notifications",
    )
    pending = models.ForeignKey(
        PendingQuestion,
        verbose_name=_("pending question"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="notifications",
    )
    event = models.CharField(_("tells of"), max_length=9, choices=Event)
    round = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=0)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(_("made"), db_default=Now())
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    next_at = models.DateTimeField(_("next attempt"), db_default=Now())
    sent_at = models.DateTimeField(_("sent"), null=True)
    dropped_at = models.DateTimeField(_("given up"), null=True)
    problem = models.CharField(_("last problem"), max_length=300, blank=True)

    class Meta:
        """Newest first."""

        verbose_name = _("notification")
        verbose_name_plural = _("notifications")
        ordering = ["-created_at", "-pk"]
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(
                condition=models.Q(event__in=Event.values),
                name="notification_event_known",
            ),
            models.UniqueConstraint(
                fields=["pending", "contact", "event", "round"],
                name="notification_once",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_at"],
                condition=models.Q(sent_at__isnull=True, dropped_at__isnull=True),
                name="notification_due",
            )
        ]

    def __str__(self) -> str:
        """Return its id."""
        return str(self.public_id)

    @property
    def takes_replies(self) -> bool:
        """Whether its time for replies has not run out."""
        ends = self.created_at + timedelta(days=settings.STRATA_REPLY_DAYS)
        return timezone.now() < ends


class ReceivedReply(models.Model):
    """A reply that was taken: its id has its effect once (REL-W3).

    `door` is "hook" with the contact's number, or "mail".
    """

    door = models.CharField(max_length=30)
    event_id = models.CharField(max_length=200)
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="replies"
    )
    at = models.DateTimeField(db_default=Now())

    class Meta:
        """Each id once."""

        verbose_name = _("reply")
        verbose_name_plural = _("replies")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["door", "event_id"], name="reply_once")
        ]

    def __str__(self) -> str:
        """Return its id."""
        return self.event_id
