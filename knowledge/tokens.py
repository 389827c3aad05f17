"""Making and checking API tokens. The token itself is never stored."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from knowledge.models import AgentClient, ApiToken, KnowledgeBase, User
from knowledge.models.audit import record
from knowledge.models.token import TokenKind
from knowledge.permissions import Reader

START = "strata_"
PREFIX_LENGTH = 12
# A token's last use is told to this many seconds, so that a busy agent does not write a
# row with every request.
USE_RESOLUTION = timedelta(seconds=60)


def digest_of(token: str) -> str:
    """Return what is stored of a token: SHA-256, hex."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def shown_prefix(token: str) -> str:
    """Return what may be told of a token, in logs for instance: how it begins.

    Of a text that is no token of ours nothing is told, since it may be a password.
    """
    if token.startswith(START) and len(token) > PREFIX_LENGTH:
        return token[:PREFIX_LENGTH].encode("ascii", "replace").decode()
    return "something else"


def draw_token() -> str:
    """Return a new token of 256 random bits whose beginning no other token has."""
    while True:
        token = START + secrets.token_urlsafe(32)
        if not ApiToken.objects.filter(prefix=token[:PREFIX_LENGTH]).exists():
            return token


@transaction.atomic
def create_token(
    *,
    owner: User,
    name: str,
    kind: str = TokenKind.PERSON,
    knowledge_bases: Iterable[KnowledgeBase] | None = None,
    lifetime: timedelta = timedelta(days=90),
    actor: User | None,
) -> tuple[ApiToken, str]:
    """Create a token and return (row, token); the token cannot be shown again.

    `knowledge_bases` None covers all that the owner may see, now and later. The token
    holds 256 random bits and is derived from nothing.
    """
    row, token = store_token(
        owner=owner,
        name=name,
        kind=kind,
        covers_all=knowledge_bases is None,
        lifetime=lifetime,
    )
    if knowledge_bases is not None:
        row.knowledge_bases.set(knowledge_bases)
    record(actor, "created token", row, kind=kind, owner=str(owner))
    return row, token


@transaction.atomic
def create_agent_token(
    client: AgentClient,
    *,
    name: str,
    lifetime: timedelta = timedelta(days=90),
    actor: User | None,
) -> tuple[ApiToken, str]:
    """Create a token of an agent client and return (row, token), shown this once.

    It acts for the client's owner and reaches what the client is bound to.
    """
    row, token = store_token(
        owner=client.owner,
        name=name,
        kind=TokenKind.AGENT_CLIENT,
        client=client,
        lifetime=lifetime,
    )
    record(actor, "created token", row, kind=row.kind, owner=str(client.owner))
    record(actor, "gave token to", client, token=str(row))
    return row, token


def store_token(*, lifetime: timedelta, **fields: Any) -> tuple[ApiToken, str]:
    """Draw a token and store what is kept of it."""
    token = draw_token()
    row = ApiToken.objects.create(
        prefix=token[:PREFIX_LENGTH],
        digest=digest_of(token),
        expires_at=timezone.now() + lifetime,
        **fields,
    )
    return row, token


@transaction.atomic
def revoke_token(row: ApiToken, *, actor: User | None) -> None:
    """End a token now."""
    ApiToken.objects.filter(pk=row.pk, revoked_at__isnull=True).update(revoked_at=Now())
    record(actor, "revoked token", row)


def find_token(token: str) -> ApiToken | None:
    """Return the live row of a token, or None whatever is wrong with it.

    The work is the same for each wrong token: one digest, one look at the database.
    """
    row = (
        ApiToken.objects.live()
        .select_related("owner", "client")
        .filter(digest=digest_of(token))
        .first()
    )
    if row is None:
        return None
    now = timezone.now()
    ApiToken.objects.filter(
        Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - USE_RESOLUTION),
        pk=row.pk,
    ).update(last_used_at=now)
    return row


def reader_of(row: ApiToken) -> Reader:
    """Return the reader that a token is: its owner, within its scope."""
    limit = None
    if not row.covers_all:
        scope = row.client if row.client is not None else row
        limit = frozenset(scope.knowledge_bases.values_list("pk", flat=True))
    return Reader(
        user_id=row.owner_id,
        limit=limit,
        token_id=row.pk,
        is_agent=row.kind == TokenKind.AGENT_CLIENT,
        recalls_memory=row.client is not None and row.client.recalls_memory,
    )
