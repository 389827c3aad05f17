"""Contacts and signed replies for tests."""

import base64
import json
import secrets
import time
from typing import Any

from django.test import Client

from approvals.models import Contact, Notification, PendingQuestion
from approvals.models.notification import ContactKind, Event
from approvals.notifying import secrets_of
from approvals.webhooks import SECRET_PREFIX, sign
from knowledge.models import User


def new_secret() -> str:
    """Return a new secret for signing, as Standard Webhooks writes them."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(24)).decode("ascii")


def mail_contact(user: User, **fields: object) -> Contact:
    """Return a contact by mail."""
    return Contact.objects.create(
        user=user, address=f"{user.username}@bank.example", **fields
    )


def hook_contact(
    user: User, url: str = "https://chat.example/in", **more: object
) -> Contact:
    """Return a contact by webhook."""
    return Contact.objects.create(
        user=user, kind=ContactKind.WEBHOOK, address=url, **more
    )


def told(
    contact: Contact,
    pending: PendingQuestion,
    event: Event = Event.ASKED,
    *,
    version: int = 0,
) -> Notification:
    """Return the message about a question that a contact has got.

    `version` is that of the answer which it showed.
    """
    return Notification.objects.update_or_create(
        contact=contact, pending=pending, event=event, defaults={"version": version}
    )[0]


def signed_reply(
    notification: Notification,
    said: dict[str, Any] | bytes,
    *,
    event_id: str = "msg-1",
    secret: str = "",
    at: int | str | None = None,
    client: Client | None = None,
    changed: bytes | None = None,
) -> tuple[int, dict[str, str]]:
    """Send a reply and return status and body; `changed` are the bytes really sent."""
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    moment = int(time.time()) if at is None else at
    headers = sign(
        body,
        secret or secrets_of(notification.contact)[0],
        moment,  # type: ignore[arg-type]
        event_id,
    )
    response = (client or Client(raise_request_exception=False)).post(
        f"/hooks/replies/{notification.public_id}",
        changed if changed is not None else body,
        content_type="application/json",
        headers=headers,
    )
    return response.status_code, response.json()
