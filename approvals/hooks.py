"""The doors for replies: signed messages of webhooks, and mails that a server hands on.

Neither has a session; the signature over the bytes is what lets in. Whatever is wrong
with it answers one 401, and a question that its sender may not settle one 404.
"""

import json
import logging
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from approvals.mailing import MARKER, message_replied_to
from approvals.models import Notification
from approvals.models.notification import ContactKind, Event
from approvals.notifying import secrets_of
from approvals.receiving import Outcome, Receipt, take_reply
from approvals.replies import Mail, Reply, read_mail, read_reply
from approvals.webhooks import SignatureError, secret_of, verify
from knowledge.models.audit import record

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 64 * 1024
# A mail carries its quote, often twice, and pictures of signatures.
MOST_MAIL_BYTES: Final = 512 * 1024
_STATUS: Final = {
    Outcome.TAKEN: 200,
    Outcome.ALREADY: 200,
    Outcome.REFUSED: 422,
    Outcome.LATE: 409,
    Outcome.NOT_FOUND: 404,
}


@csrf_exempt
@require_POST
def reply(request: HttpRequest, public_id: str) -> JsonResponse:
    """Take the reply to a message of a webhook: {"text": "…"}, signed."""
    body = body_of(request, MOST_BYTES)
    if body is None:
        return answer(413)
    notification = find(public_id)
    try:
        event_id = verify(request.headers, body, secrets_for(notification))
    except SignatureError:
        return answer(401)
    if notification is None:
        return answer(401)
    said = reply_in(body)
    if said is None:
        return answer(400, 'The body must be JSON with a "text".')
    contact = notification.contact
    return told(
        take_reply(notification, said, door=f"hook {contact.pk}", event_id=event_id)
    )


@csrf_exempt
@require_POST
def mail(request: HttpRequest) -> JsonResponse:
    """Take a mail as it came (message/rfc822), handed on by the mail server, signed.

    What answers nothing (a holiday notice, a mail to another address) is taken and
    dropped, so that the server does not try for ever.
    """
    body = body_of(request, MOST_MAIL_BYTES)
    if body is None:
        return answer(413)
    try:
        verify(request.headers, body, settings.STRATA_MAIL_HOOK_SECRETS or [_closed()])
    except SignatureError:
        return answer(401)
    read = read_mail(body, MARKER)
    notification = replied_to(read)
    if notification is None or read.is_automatic or not read.message_id:
        return JsonResponse({"status": "dropped"})
    contact = notification.contact
    if read.sender != contact.address.casefold():
        record(None, "dropped a reply from another address to", contact)
        return JsonResponse({"status": "dropped"})
    receipt = take_reply(
        notification, read_reply(read.text), door="mail", event_id=read.message_id
    )
    if receipt.kept:
        tell_sender(notification, receipt.kept)
    return told(receipt)


def body_of(request: HttpRequest, most: int) -> bytes | None:
    """Return the bytes that were sent, or None where they are too many."""
    # No more is read than is wanted, whatever length was announced.
    body = request.read(most + 1)
    return body if len(body) <= most else None


def find(public_id: str) -> Notification | None:
    """Return the message that is replied to, of a contact that is in use."""
    try:
        key = UUID(public_id)
    except ValueError:
        return None
    rows = Notification.objects.select_related("contact__user", "pending")
    return rows.filter(
        public_id=key, contact__is_active=True, contact__user__is_active=True
    ).first()


def secrets_for(notification: Notification | None) -> list[str]:
    """Return what a reply must be signed with; of no message, what nobody has."""
    if notification is None or notification.contact.kind != ContactKind.WEBHOOK:
        return [_closed()]
    return secrets_of(notification.contact)


def _closed() -> str:
    """Return a secret that nobody is ever told, so that a closed door takes its time."""
    return secret_of("nobody")


def reply_in(body: bytes) -> Reply | None:
    """Return what a message says, or None where it is not in the form."""
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    text = said.get("text") if isinstance(said, dict) else None
    return read_reply(text) if isinstance(text, str) else None


def replied_to(read: Mail) -> Notification | None:
    """Return the message that a mail replies to, by the address it went to."""
    if not settings.STRATA_REPLY_ADDRESS:
        return None
    for address in read.recipients:
        key = message_replied_to(address)
        found = find(str(key)) if key is not None else None
        if found is not None and found.contact.kind == ContactKind.EMAIL:
            return found
    return None


def tell_sender(notification: Notification, sentence: str) -> None:
    """Have the sender of a mail told why it was not taken."""
    rounds = Notification.objects.filter(
        pending=notification.pending,
        contact=notification.contact,
        event=Event.REFUSED,
    )
    Notification.objects.bulk_create(
        [
            Notification(
                contact=notification.contact,
                pending=notification.pending,
                event=Event.REFUSED,
                round=rounds.count(),
                note=sentence,
            )
        ],
        ignore_conflicts=True,
    )
    logger.info("A reply by mail was not taken; its sender is told.")


def told(receipt: Receipt) -> JsonResponse:
    """Return what became of a reply as a response."""
    if receipt.outcome in {Outcome.TAKEN, Outcome.ALREADY}:
        return JsonResponse({"status": str(receipt.outcome)})
    return answer(_STATUS[receipt.outcome], receipt.sentence)


def answer(status: int, sentence: str = "") -> JsonResponse:
    """Return a refusal, which is the same for all of its kind."""
    said = {
        400: "The body cannot be read.",
        401: "The signature does not fit.",
        404: "There is no such message.",
        413: "The body is too long.",
    }.get(status, "")
    return JsonResponse({"error": sentence or said}, status=status)
