"""Telling people of pending questions: an outbox, and the worker that empties it.

`notify` writes rows in the transaction of what they tell of. What a message says is
made when it is sent, from what its receiver may see at that moment: who has lost the
right meanwhile is told nothing, and a question that is settled is told of no more.
Bank details are taken out once more, also where the deployment keeps raw questions.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals import instruction
from approvals.mailing import MailError, send_mail
from approvals.models import Contact, Notification, PendingQuestion
from approvals.models.notification import ContactKind, Event, Pace
from approvals.webhooks import WebhookError, secret_of, send_signed
from knowledge.models import User
from knowledge.models.audit import record
from knowledge.scrubbing import scrub

logger = logging.getLogger(__name__)

MOST_ATTEMPTS: Final = 8
# Minutes before the next attempt, by those that failed.
PAUSES: Final = (1, 2, 5, 15, 60, 180, 360, 720)
# Questions and wordings that a message shows.
MOST_SHOWN: Final = 10
_ANSWER: Final = "approvals.answer_pendingquestion"
_APPROVE: Final = "approvals.approve_pendingquestion"


@dataclass(frozen=True, slots=True)
class Message:
    """What one notification says: a subject and lines, and the same for a program."""

    subject: str
    text: str
    payload: dict[str, Any]


# --- Writing the outbox --------------------------------------------------------------


def notify(pending: PendingQuestion, event: Event) -> None:
    """Have everybody told who is to act; call it in the act's own transaction.

    Told again of the same question only after it was answered in between.
    """
    contacts = Contact.objects.live().filter(pace=Pace.EACH)
    write(
        event,
        pending,
        entitled(contacts, pending, event),
        round_number=pending.revision,
    )


def write(
    event: Event,
    pending: PendingQuestion,
    contacts: Iterable[Contact],
    *,
    round_number: int,
) -> None:
    """Put a notification for each contact into the outbox, if it is not there."""
    Notification.objects.bulk_create(
        [
            Notification(
                contact=contact, pending=pending, event=event, round=round_number
            )
            for contact in contacts
        ],
        ignore_conflicts=True,
    )


def entitled(
    contacts: QuerySet[Contact], pending: PendingQuestion, event: Event
) -> list[Contact]:
    """Return the contacts of those who may act on a question, at this moment."""
    may: dict[int, bool] = {}
    for contact in contacts.select_related("user"):
        if contact.user_id not in may:
            may[contact.user_id] = may_act(contact.user, pending, event)
    return [
        contact for contact in contacts.select_related("user") if may[contact.user_id]
    ]


def may_act(user: User, pending: PendingQuestion, event: Event) -> bool:
    """Tell whether a person may do what a message asks for, at this moment."""
    if event == Event.AWAITING:
        if pending.four_eyes and pending.author_id == user.pk:
            return False
        right = _APPROVE
    else:
        right = _ANSWER
    own = PendingQuestion.objects.administered_by(user)
    return (
        user.is_active and user.has_perm(right) and own.filter(pk=pending.pk).exists()
    )


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
    sent = 0
    while (notification := take_next()) is not None:
        try:
            sent += deliver(notification)
        except (MailError, WebhookError) as error:
            put_off(notification, str(error))
    return sent


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
        notification.dropped_at = timezone.now()
    notification.save(update_fields=["problem", "dropped_at"])
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
        notification.dropped_at = timezone.now()
        notification.save(update_fields=["dropped_at"])
        return 0
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
    notification.sent_at, notification.problem = timezone.now(), ""
    notification.save(update_fields=["sent_at", "problem"])
    return 1


# --- What it says --------------------------------------------------------------------


def message_of(notification: Notification) -> Message | None:
    """Return what a notification says now, or None where it says nothing any more."""
    contact = notification.contact
    if not (contact.is_active and contact.user.is_active):
        return None
    if notification.event == Event.DIGEST:
        return digest_of(contact)
    pending = notification.pending
    if pending is None:
        return None
    event = Event(notification.event)
    if event == Event.REFUSED:
        return refused_message(notification, pending)
    waits = pending.state == "pending" and pending.is_awaiting_approval == (
        event == Event.AWAITING
    )
    if not waits or not may_act(contact.user, pending, event):
        return None
    return question_message(notification, pending, event)


def question_message(
    notification: Notification, pending: PendingQuestion, event: Event
) -> Message:
    """Return a message about one question."""
    subject = {
        Event.ASKED: _("Question %(number)s waits for an answer"),
        Event.AWAITING: _("The answer to question %(number)s waits for approval"),
        Event.REMINDER: _("Question %(number)s still waits for an answer"),
        Event.ESCALATED: _("Question %(number)s has waited for long"),
    }[event] % {"number": pending.pk}
    question = scrub(pending.question)
    wordings = other_wordings(pending)
    lines = [
        _("The documents did not answer this question:"),
        "",
        f"    {question}",
        *(f"    {each}" for each in wordings),
        "",
        asked_line(pending),
    ]
    if event == Event.AWAITING:
        lines += [
            "",
            _("This answer was written:"),
            "",
            f"    {scrub(pending.question_as_answered)}",
            *(f"    {line}" for line in scrub(pending.answer).split("\n")),
        ]
    lines += ["", _("See it in the portal: %(link)s") % {"link": link_to(pending)}]
    if takes_replies(notification.contact):
        lines += ["", how_to_reply(event)]
    lines += ["", f"{instruction.TITLE}", "", instruction.as_text()]
    text = "\n".join(lines)
    return Message(
        subject,
        text,
        {
            "type": f"question.{event}",
            "text": f"{subject}\n\n{text}",
            "question": {
                "number": pending.pk,
                "text": question,
                "wordings": wordings,
                "language": pending.language,
                "channel": pending.channel,
                "asked_count": pending.asked_count,
                "asker_count": pending.asker_count,
                "first_asked_at": pending.first_asked_at.isoformat(),
                "link": link_to(pending),
            },
            "reply_to": settings.BASE_URL
            + reverse("hook-reply", args=[notification.public_id]),
        },
    )


def refused_message(notification: Notification, pending: PendingQuestion) -> Message:
    """Return what a reply that was not taken is answered with."""
    subject = _("Your reply to question %(number)s was not taken") % {
        "number": pending.pk
    }
    text = "\n".join(
        [
            scrub(notification.note),
            "",
            _("Reply to this message to try again, or see the question in the portal:"),
            link_to(pending),
            "",
            how_to_reply(Event.ASKED),
        ]
    )
    return Message(subject, text, {})


def digest_of(contact: Contact) -> Message | None:
    """Return a summary of all that waits for a person, or None where nothing does."""
    user = contact.user
    if not user.has_perm(_ANSWER):
        return None
    waiting = PendingQuestion.objects.administered_by(user).open()
    count = waiting.count()
    if not count:
        return None
    oldest = waiting.order_by("first_asked_at").first()
    days = (timezone.now() - oldest.first_asked_at).days if oldest else 0
    shown = list(waiting[:MOST_SHOWN])
    subject = ngettext(
        "%(count)s question waits for an answer",
        "%(count)s questions wait for an answer",
        count,
    ) % {"count": count}
    lines = [
        f"{subject}.",
        ngettext(
            "The oldest has waited for %(days)s day.",
            "The oldest has waited for %(days)s days.",
            days,
        )
        % {"days": days},
        "",
    ]
    for each in shown:
        lines += [f"- {scrub(each.question)}", f"  {link_to(each)}"]
    text = "\n".join(lines)
    return Message(
        subject,
        text,
        {
            "type": "digest",
            "text": f"{subject}\n\n{text}",
            "waiting": count,
            "oldest_days": days,
            "questions": [
                {"number": each.pk, "text": scrub(each.question), "link": link_to(each)}
                for each in shown
            ],
        },
    )


def other_wordings(pending: PendingQuestion) -> list[str]:
    """Return other ways in which it was asked, scrubbed."""
    texts = pending.wordings.exclude(text="").values_list("text", flat=True)
    words = dict.fromkeys(scrub(text) for text in texts[: 4 * MOST_SHOWN])
    words.pop(scrub(pending.question), None)
    return list(words)[:MOST_SHOWN]


def asked_line(pending: PendingQuestion) -> str:
    """Return how often it was asked, by how many and where, as a sentence."""
    return _(
        "Asked %(asked)s times by %(askers)s people, first on %(day)s (%(channel)s)."
    ) % {
        "asked": pending.asked_count,
        "askers": pending.asker_count,
        "day": pending.first_asked_at.date().isoformat(),
        "channel": pending.get_channel_display(),
    }


def how_to_reply(event: Event) -> str:
    """Return how a reply is written."""
    if event == Event.AWAITING:
        return _("To approve it, reply with the single word: Approve")
    return _(
        "To answer, reply to this message with the answer. Before it you can write, each "
        "on a line of its own: “Question:” with the question as it is to be published, "
        "“Layer:” with the layer's name, “Keep:” with a marked detail that stays. To "
        "ignore the question, reply “Ignore:” with the reason."
    )


def takes_replies(contact: Contact) -> bool:
    """Tell whether what a contact replies reaches the portal."""
    return contact.kind == ContactKind.WEBHOOK or bool(
        settings.STRATA_REPLY_ADDRESS and settings.STRATA_MAIL_HOOK_SECRETS
    )


def link_to(pending: PendingQuestion) -> str:
    """Return the address of a question in the portal."""
    path = reverse("admin:approvals_pendingquestion_change", args=[pending.pk])
    return f"{settings.BASE_URL}{path}"


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
