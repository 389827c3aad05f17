"""What is remembered about a person, and the conversations it may be bound to."""

import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from knowledge.models.source import Source

if TYPE_CHECKING:
    from knowledge.permissions import Reader

# A conversation ends when nothing has been said in it for so long.
IDLE = timedelta(hours=24)
LONGEST_STATEMENT = 2000


def idle_end() -> datetime:
    """Return when a conversation ends in which something is said now."""
    return timezone.now() + IDLE


class ConversationQuerySet(models.QuerySet["Conversation"]):
    """Conversations by whom they are with, and whether they go on."""

    def open_to(self, reader: "Reader") -> Self:
        """Those of this person that have not ended, by the database's clock."""
        return self.filter(owner=reader.user_id, ends_at__gt=Now())


class Conversation(models.Model):
    """A talk with one person. Its id is drawn here and known to who started it.

    `ends_at` moves on with everything that is said, and is set to now by ending it.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("person"),
        on_delete=models.CASCADE,
        related_name="conversations",
    )
    started_at = models.DateTimeField(_("started"), auto_now_add=True)
    ends_at = models.DateTimeField(_("ends"), default=idle_end, db_index=True)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        """Newest first."""

        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        ordering = ["-started_at", "-pk"]

    def __str__(self) -> str:
        """Return its id."""
        return str(self.public_id)


class StatementQuerySet(models.QuerySet["Statement"]):
    """Statements by who may recall them."""

    def recalled_by(self, reader: "Reader") -> Self:
        """Those about this person that their conversation may recall (S3-VIS-06).

        One that names a conversation matches in that one alone, while it goes on.
        """
        matches = models.Q(conversation__isnull=True)
        if reader.conversation_id is not None:
            matches |= models.Q(
                conversation__in=Conversation.objects.open_to(reader).filter(
                    public_id=reader.conversation_id
                )
            )
        return self.filter(matches, owner=reader.user_id)


class Statement(models.Model):
    """One thing that is remembered: a source in the person's own knowledge base."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("person"),
        on_delete=models.CASCADE,
        related_name="statements",
    )
    source = models.OneToOneField(
        Source, on_delete=models.CASCADE, related_name="statement"
    )
    conversation = models.ForeignKey(
        Conversation,
        verbose_name=_("conversation"),
        on_delete=models.RESTRICT,
        related_name="statements",
        null=True,
        blank=True,
    )
    text = models.CharField(_("text"), max_length=LONGEST_STATEMENT)
    digest = models.CharField(max_length=64, editable=False)
    created_at = models.DateTimeField(_("remembered"), auto_now_add=True)

    objects = StatementQuerySet.as_manager()

    class Meta:
        """Newest first; the same words once in each conversation and once in none."""

        verbose_name = _("statement")
        verbose_name_plural = _("statements")
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "conversation", "digest"],
                name="statement_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        """Return its id: what it says is for its person alone."""
        return str(self.public_id)
