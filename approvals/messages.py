"""What messages about pending questions say, made when they are sent.

From what the receiver may see at that moment: who has lost the right meanwhile is told
nothing, and a question that is settled is told of no more. Bank details are taken out
once more, also where the deployment keeps raw questions.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals import instruction
from approvals.models import Contact, Notification, PendingQuestion
from approvals.models.notification import ContactKind, Event
from approvals.models.question import State
from approvals.queue import Backlog, awaiting_for, backlog_of, waiting_for
from approvals.rights import ANSWER, APPROVE, may_do
from knowledge.scrubbing import scrub

# Questions and wordings that a message shows.
MOST_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Message:
    """What one notification says: a subject and lines, and the same for a program.

    `version` is that of the question whose written answer it shows, 0 where it shows
    none.
    """

    subject: str
    text: str
    payload: dict[str, Any]
    version: int = 0


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
    if event == Event.AWAITING and is_overtaken(notification):
        return None
    if not waits_for(pending, event) or not may_do(contact.user, pending, event):
        return None
    return question_message(notification, pending, event)


def is_overtaken(notification: Notification) -> bool:
    """Tell whether a later message to the same contact tells of the newer answer."""
    return Notification.objects.filter(
        contact=notification.contact_id,
        pending=notification.pending_id,
        event=notification.event,
        pk__gt=notification.pk,
    ).exists()


def waits_for(pending: PendingQuestion, event: Event) -> bool:
    """Tell whether a question still waits for what a message asks for."""
    if event == Event.ESCALATED:
        return pending.state == State.PENDING
    is_answer = event == Event.AWAITING
    return pending.state == State.PENDING and pending.is_awaiting_approval == is_answer


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
    awaits = pending.is_awaiting_approval
    if awaits:
        lines += [
            "",
            _("This answer was written:"),
            "",
            f"    {scrub(pending.question_as_answered)}",
            *(f"    {line}" for line in scrub(pending.answer).split("\n")),
        ]
        if pending.also_asked:
            lines += [
                "",
                _("It would be found by these wordings, too:"),
                "",
                *(f"    {scrub(each)}" for each in pending.also_asked),
            ]
    lines += ["", _("See it in the portal: %(link)s") % {"link": link_to(pending)}]
    if takes_replies(notification.contact):
        lines += ["", how_to_reply(pending)]
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
        version=pending.version if awaits else 0,
    )


def refused_message(notification: Notification, pending: PendingQuestion) -> Message:
    """Return what a reply that was not taken is answered with."""
    subject = _("Your reply to question %(number)s was not taken") % {
        "number": pending.pk
    }
    lines = [scrub(notification.note), ""]
    if pending.state == State.PENDING and not pending.is_awaiting_approval:
        lines += [
            _("Reply to this message to try again, or see the question in the portal:"),
            link_to(pending),
            "",
            how_to_reply(pending),
        ]
    else:
        lines += [_("See it in the portal: %(link)s") % {"link": link_to(pending)}]
    return Message(subject, "\n".join(lines), {})


def digest_of(contact: Contact) -> Message | None:
    """Return a summary of all that waits for a person, or None where nothing does."""
    user = contact.user
    backlog = backlog_of(user) if user.has_perm(ANSWER) else Backlog(0, None)
    answers = awaiting_for(user).count() if user.has_perm(APPROVE) else 0
    waits = [
        sentence
        for count, sentence in (
            (backlog.count, questions_wait(backlog.count)),
            (answers, answers_wait(answers)),
        )
        if count
    ]
    if not waits:
        return None
    shown = list(waiting_for(user)[:MOST_SHOWN]) if backlog.count else []
    lines = [f"{each}." for each in waits]
    days = 0
    if backlog.oldest_at is not None:
        days = (timezone.now() - backlog.oldest_at).days
        lines.append(
            ngettext(
                "The oldest has waited for %(days)s day.",
                "The oldest has waited for %(days)s days.",
                days,
            )
            % {"days": days}
        )
    if answers:
        lines += [
            "",
            _("Approve in the portal: %(link)s") % {"link": link_to_answers()},
        ]
    lines.append("")
    for each in shown:
        lines += [f"- {scrub(each.question)}", f"  {link_to(each)}"]
    text = "\n".join(lines)
    return Message(
        waits[0],
        text,
        {
            "type": "digest",
            "text": f"{waits[0]}\n\n{text}",
            "waiting": backlog.count,
            "awaiting_approval": answers,
            "oldest_days": days,
            "questions": [
                {"number": each.pk, "text": scrub(each.question), "link": link_to(each)}
                for each in shown
            ],
        },
    )


def questions_wait(count: int) -> str:
    """Return how many questions wait for an answer, as a sentence without its dot."""
    return ngettext(
        "%(count)s question waits for an answer",
        "%(count)s questions wait for an answer",
        count,
    ) % {"count": count}


def answers_wait(count: int) -> str:
    """Return how many answers wait for approval, as a sentence without its dot."""
    return ngettext(
        "%(count)s answer waits for approval",
        "%(count)s answers wait for approval",
        count,
    ) % {"count": count}


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


def how_to_reply(pending: PendingQuestion) -> str:
    """Return how a reply is written."""
    if pending.is_awaiting_approval:
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


def link_to_answers() -> str:
    """Return the address of the answers that wait for approval."""
    path = reverse("admin:approvals_pendingquestion_changelist")
    return f"{settings.BASE_URL}{path}?show=approval"
