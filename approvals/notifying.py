"""Telling people of pending questions: an outbox, and the worker that empties it.

`notify` writes rows in the transaction of what they tell of. What a message says is
made when it is sent, see `approvals.messages`.
"""

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from approvals.mailing import MailError, send_mail
from approvals.messages import message_of
from approvals.models import Contact, Notification, PendingQuestion
from approvals.models.notification import ContactKind, Event, Pace
from approvals.rights import Rights
from approvals.webhooks import WebhookError, secret_of, send_signed
from knowledge.models import User
from knowledge.models.audit import record

logger = logging.getLogger(__name__)

MOST_ATTEMPTS: Final = 8
# Minutes before the next attempt, by those that failed.
PAUSES: Final = (1, 2, 5, 15, 60, 180, 360, 720)


# --- Writing the outbox --------------------------------------------------------------


def notify(pending: PendingQuestion, event: Event) -> None:
    """Have everybody told who is to act; call it in the act's own transaction.

    Told again of the same question only after it was answered in between, and of an
    answer that waits each time that it is written.
    """
    contacts = Contact.objects.live().filter(pace=Pace.EACH)
    is_answer = event == Event.AWAITING
    write(
        notifications(
            contacts,
            pending,
            event,
            pending.version if is_answer else pending.revision,
            Rights(),
        )
    )


def write(rows: Iterable[Notification]) -> None:
    """Put notifications into the outbox, those that are not there."""
    Notification.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)


def notifications(
    contacts: Iterable[Contact],
    pending: PendingQuestion,
    event: Event,
    round_number: int,
    rights: Rights,
) -> list[Notification]:
    """Return what those of some contacts are to be told who may act on a question."""
    may = rights.who_may_do(pending, event)
    return [
        Notification(contact=contact, pending=pending, event=event, round=round_number)
        for contact in contacts
        if contact.user_id in may
    ]


# --- Emptying it ---------------------------------------------------------------------


def due() -> QuerySet[Notification]:
    """Return what is to be sent now."""
    return Notification.objects.filter(
        sent_at=None, dropped_at=None, next_at__lte=timezone.now()
    ).order_by("next_at", "pk")


def send_due() -> int:
    """Send all that is due; returns how many were taken.

    An attempt is counted before it is made, so that a message which kills the worker
    is not tried for ever. One that was sent just before the worker died is sent again,
    under the same id.
    """
    give_up()
    sent = 0
    while (notification := take_next()) is not None:
        try:
            sent += deliver(notification)
        except (MailError, WebhookError) as error:
            put_off(notification, str(error))
        except Exception as error:
            # Whatever it is, the other messages must not wait for it.
            logger.exception("Notification %s could not be made", notification.pk)
            kind = type(error).__name__
            put_off(
                notification, _("It could not be sent (%(kind)s).") % {"kind": kind}
            )
    return sent


def give_up() -> None:
    """Drop what is due after its last attempt: the worker died with each of them."""
    for notification in due().filter(attempts__gte=MOST_ATTEMPTS):
        put_off(notification, notification.problem or _("It could not be sent."))


def take_next() -> Notification | None:
    """Return one that is due, its attempt counted, or None."""
    with transaction.atomic():
        rows = due().select_for_update(of=("self",), skip_locked=True)
        notification = rows.select_related("contact__user", "pending").first()
        if notification is not None:
            pause = PAUSES[min(notification.attempts, len(PAUSES) - 1)]
            notification.attempts += 1
            notification.next_at = timezone.now() + timedelta(minutes=pause)
            notification.save(update_fields=["attempts", "next_at"])
    return notification


def put_off(notification: Notification, problem: str) -> None:
    """Note why an attempt failed; the last one gives up."""
    notification.problem = problem[:300]
    if notification.attempts >= MOST_ATTEMPTS:
        notification.dropped_at, notification.note = timezone.now(), ""
    notification.save(update_fields=["problem", "dropped_at", "note"])
    logger.warning(
        "Notification %s was not sent (attempt %s): %s",
        notification.pk,
        notification.attempts,
        problem,
    )


def deliver(notification: Notification) -> int:
    """Send one, or drop it where there is nothing left to say; returns how many went.

    Raises MailError or WebhookError.
    """
    contact = notification.contact
    message = message_of(notification)
    if message is None:
        notification.dropped_at, notification.note = timezone.now(), ""
        notification.save(update_fields=["dropped_at", "note"])
        return 0
    if message.version and not notification.version:
        # Before it goes: a reply may come before the next statement. What is sent twice
        # approves no more than what was shown first.
        notification.version = message.version
        notification.save(update_fields=["version"])
    if contact.kind == ContactKind.EMAIL:
        send_mail(
            contact.address,
            subject=message.subject,
            text=message.text,
            message_id=str(notification.public_id),
            takes_replies=notification.pending is not None,
        )
    else:
        send_signed(
            contact.address,
            secrets_of(contact)[0],
            str(notification.public_id),
            message.payload,
        )
    notification.sent_at = timezone.now()
    notification.problem = notification.note = ""
    notification.save(update_fields=["sent_at", "problem", "note"])
    return 1


# --- Secrets -------------------------------------------------------------------------


def secrets_of(contact: Contact) -> list[str]:
    """Return the secrets that a contact signs with now, the newest first."""
    return [
        secret_of(f"contact:{contact.pk}:{number}") for number in contact.secret_numbers
    ]


@transaction.atomic
def rotate_secret(contact: Contact, *, actor: User) -> str:
    """Give a contact a new secret and return it; the old one holds for a day (REL-W1)."""
    row = Contact.objects.select_for_update(of=("self",)).get(pk=contact.pk)
    row.secret_number += 1
    row.rotated_at = timezone.now()
    row.save(update_fields=["secret_number", "rotated_at"])
    record(actor, "gave a new secret to", row)
    return secrets_of(row)[0]
