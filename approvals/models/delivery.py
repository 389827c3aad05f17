"""The outbox: what each agent client is to be told, once."""

import uuid
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from approvals.models.question import Channel, PendingQuestion
from knowledge.models import AgentClient

if TYPE_CHECKING:
    from knowledge.models import User


class SubscriberQuerySet(models.QuerySet["Subscriber"]):
    """Subscribers by who looks after their clients."""

    def administered_by(self, user: "User") -> Self:
        """Those whose client the person looks after."""
        return self.filter(client__in=AgentClient.objects.administered_by(user))


class Subscriber(models.Model):
    """An agent client as the outbox knows it, and as the gate knows where it asks.

    `last_sequence` is the number of its newest delivery; whoever adds one holds this
    row, so that numbers come without a gap and become visible in their order (D24).
    With a `push_url`, deliveries are also sent there, signed with a secret that follows
    from the portal's key and `secret_number`; `push_after` is when to try again after
    `push_attempts` that failed in a row.
    """

    client = models.OneToOneField(
        AgentClient,
        verbose_name=_("agent client"),
        on_delete=models.CASCADE,
        related_name="subscriber",
        primary_key=True,
    )
    channel = models.CharField(
        _("channel"),
        max_length=6,
        choices=[
            (str(channel), channel.label)
            for channel in Channel
            if channel is not Channel.PORTAL
        ],
        default=Channel.API,
        help_text=_("Where the people are whose questions it asks."),
    )
    last_sequence = models.BigIntegerField(default=0, editable=False)
    push_url = models.URLField(
        _("send answers to"),
        max_length=500,
        blank=True,
        help_text=_("An address that takes signed messages. Empty: it asks by itself."),
    )
    secret_number = models.PositiveIntegerField(default=1, editable=False)
    push_attempts = models.PositiveIntegerField(
        _("failed attempts"), default=0, editable=False
    )
    push_after = models.DateTimeField(_("next attempt"), null=True, editable=False)
    push_problem = models.CharField(
        _("last problem"), max_length=300, blank=True, editable=False
    )

    objects = SubscriberQuerySet.as_manager()

    class Meta:
        """By client."""

        verbose_name = _("delivery to an agent client")
        verbose_name_plural = _("deliveries to agent clients")
        ordering = ["client__name", "client_id"]
        default_permissions = ("view", "change")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    channel__in=[Channel.VOICE, Channel.WIDGET, Channel.API]
                ),
                name="subscriber_channel_known",
            ),
        ]

    def __str__(self) -> str:
        """Return the client's name."""
        return str(self.client)


class DeliveryKind(models.TextChoices):
    """What a delivery tells."""

    ANSWER = "answer", _("answer")
    CHANGED = "changed", _("changed answer")
    WITHDRAWN = "withdrawn", _("withdrawn answer")


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """Deliveries by what still counts."""

    def current(self) -> Self:
        """Those that no later revision of their entry has overtaken."""
        return self.filter(revision=models.F("pending__announced_revision"))


class Delivery(models.Model):
    """One revision of an approved answer for one agent client (R17).

    `delivery_id` is stable, for the receiver to know a repetition by. `sequence` counts
    up for each client. The words are not kept here: they are read when they are handed
    out, so that what was withdrawn or overtaken is never handed out. `hidden_at` is when
    its client came by it and might not see it; it gets a new number once its client may.
    """

    client = models.ForeignKey(
        AgentClient,
        verbose_name=_("agent client"),
        on_delete=models.CASCADE,
        related_name="deliveries",
    )
    pending = models.ForeignKey(
        PendingQuestion,
        verbose_name=_("pending question"),
        on_delete=models.CASCADE,
        related_name="deliveries",
    )
    revision = models.PositiveIntegerField(_("revision"))
    kind = models.CharField(_("kind"), max_length=9, choices=DeliveryKind)
    delivery_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    sequence = models.BigIntegerField(_("number"))
    created_at = models.DateTimeField(_("made"), db_default=Now())
    hidden_at = models.DateTimeField(_("passed over"), null=True)
    pushed_at = models.DateTimeField(_("sent"), null=True)
    acknowledged_at = models.DateTimeField(_("acknowledged"), null=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        """In the order of their numbers."""

        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        ordering = ["client", "sequence"]
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["client"],
                name="delivery_hidden",
                condition=models.Q(hidden_at__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["client", "sequence"], name="delivery_number_once"
            ),
            models.UniqueConstraint(
                fields=["client", "pending", "revision"], name="delivery_once"
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=DeliveryKind.values),
                name="delivery_kind_known",
            ),
        ]

    def __str__(self) -> str:
        """Return its id."""
        return str(self.delivery_id)
