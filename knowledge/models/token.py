"""API tokens: hashed, scoped, expiring, revoked at once (REL-T1 to T5)."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from knowledge.models.agent import AgentClient
from knowledge.models.knowledge_base import KnowledgeBase


class TokenKind(models.TextChoices):
    """Who holds a token, and so what it may say."""

    PERSON = "person", _("person: a program of your own")
    TRUSTED_HOST = "trusted_host", _("trusted host: may name layers")
    AGENT_CLIENT = "agent_client", _("agent client: a model drives it; names no layer")


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """Tokens by whether they still open anything."""

    def live(self) -> Self:
        """Neither revoked nor expired, and their owner is active."""
        return self.filter(
            revoked_at__isnull=True, expires_at__gt=Now(), owner__is_active=True
        )


class ApiToken(models.Model):
    """A key that acts for its owner, within its scope.

    The token itself is shown once and never stored: `prefix` finds the row, `digest`
    (SHA-256, hex) checks it. What it reaches is its scope intersected with what the
    owner may see at that moment; the scope of an agent client's token is what the
    client is bound to.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        on_delete=models.CASCADE,
        related_name="api_tokens",
    )
    name = models.CharField(_("name"), max_length=120)
    kind = models.CharField(
        _("kind"), max_length=12, choices=TokenKind, default=TokenKind.PERSON
    )
    client = models.ForeignKey(
        AgentClient,
        verbose_name=_("agent client"),
        on_delete=models.CASCADE,
        related_name="tokens",
        null=True,
        blank=True,
        editable=False,
    )
    prefix = models.CharField(_("begins with"), max_length=12, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    covers_all = models.BooleanField(
        _("all of the owner's knowledge bases"),
        default=False,
        help_text=_("Otherwise only those chosen below."),
    )
    knowledge_bases = models.ManyToManyField(
        KnowledgeBase, verbose_name=_("knowledge bases"), blank=True, related_name="+"
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        """Newest first."""

        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=TokenKind.values), name="token_kind_known"
            ),
            models.CheckConstraint(
                condition=models.Q(kind=TokenKind.AGENT_CLIENT, client__isnull=False)
                | (
                    ~models.Q(kind=TokenKind.AGENT_CLIENT)
                    & models.Q(client__isnull=True)
                ),
                name="token_of_agent_has_client",
            ),
        ]

    def __str__(self) -> str:
        """Return the name and how the token begins."""
        return f"{self.name} ({self.prefix}…)"
