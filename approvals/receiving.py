"""Taking replies: a person's answer that came by mail or webhook (S2-APR-02).

A reply goes through the same verbs as the admin's pages, with the same checks, and the
person's right is looked up now. Each reply has its effect once, by a unique key in the
transaction of the effect (REL-W3). Whatever is refused is in the audit.
"""

from dataclasses import dataclass
from enum import StrEnum

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from approvals.actions import approve, ignore, propose_answer
from approvals.errors import (
    ApprovalError,
    ConflictError,
    ForbiddenError,
    PrivacyError,
)
from approvals.models import Notification, PendingQuestion, ReceivedReply
from approvals.models.notification import Event
from approvals.replies import Reply
from approvals.rights import ANSWER, APPROVE, may_act
from approvals.texts import refusal
from knowledge.actions import ActionError
from knowledge.models import Layer, User
from knowledge.models.audit import record
from knowledge.scrubbing import scrub


class Outcome(StrEnum):
    """What became of a reply."""

    TAKEN = "taken"
    ALREADY = "already"
    REFUSED = "refused"
    LATE = "late"
    NOT_FOUND = "not found"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a sender is told: the outcome, and a sentence where it was not taken.

    `kept` is the sentence as it may be stored until it is told.
    """

    outcome: Outcome
    sentence: str = ""
    kept: str = ""


def take_reply(
    notification: Notification, reply: Reply, *, door: str, event_id: str
) -> Receipt:
    """Do what a reply says, once."""
    with transaction.atomic():
        received = claim(notification, door, event_id)
        if received is None:
            return Receipt(Outcome.ALREADY)
        receipt = act_on(notification, reply)
        if receipt.outcome is not Outcome.TAKEN:
            # It had no effect, and may come again.
            received.delete()
    return receipt


def claim(notification: Notification, door: str, event_id: str) -> ReceivedReply | None:
    """Note a reply's id, or return None where it is noted; others wait meanwhile."""
    try:
        with transaction.atomic():
            return ReceivedReply.objects.create(
                door=door, event_id=event_id, notification=notification
            )
    except IntegrityError:
        return None


def act_on(notification: Notification, reply: Reply) -> Receipt:
    """Do what a reply says, within the caller's transaction."""
    person = notification.contact.user
    pending = notification.pending
    if pending is None:
        record(person, "came too late for", notification, act="reply")
        sentence = _("This question has been deleted.")
        return Receipt(Outcome.LATE, sentence, sentence)
    if not may_act(person, pending, APPROVE if reply.approves else ANSWER):
        record(person, "was refused", pending, act="reply")
        return Receipt(Outcome.NOT_FOUND)
    try:
        refuse_late(notification, pending, reply, person)
        carry_out(pending, reply, notification, person)
    except ForbiddenError:
        return Receipt(Outcome.NOT_FOUND)
    except ConflictError as error:
        return Receipt(Outcome.LATE, str(error), str(error))
    except ActionError as error:
        record(person, "sent a reply that was refused to", pending)
        return Receipt(Outcome.REFUSED, str(error), scrub(kept_words(error)))
    return Receipt(Outcome.TAKEN)


def kept_words(error: ActionError) -> str:
    """Return why a reply was refused, without the bank details that it names."""
    if isinstance(error, PrivacyError):
        return refusal(error.marks, hides_bank_details=True)
    return str(error)


def refuse_late(
    notification: Notification, pending: PendingQuestion, reply: Reply, person: User
) -> None:
    """Raise ConflictError for a reply that is past its time."""
    if problem := lateness_of(notification, pending, reply):
        record(person, "came too late for", pending, act="reply")
        raise ConflictError(problem)


def lateness_of(
    notification: Notification, pending: PendingQuestion, reply: Reply
) -> str:
    """Return why a reply is past its time, "" where it is not."""
    if not notification.takes_replies:
        return _("This message is too old to reply to. Answer in the portal.")
    if reply.approves:
        # Nobody approves what they were not shown.
        shows_none = notification.version == 0
        return _("This message shows no answer to approve.") if shows_none else ""
    if pending.is_awaiting_approval:
        return _(
            "Somebody has answered this question; their answer waits for approval."
        )
    if notification.event == Event.AWAITING and not reply.ignores:
        # Whoever was asked to approve wrote more than the word; no answer is meant.
        return _("The answer that this message shows does not wait any more.")
    return ""


def carry_out(
    pending: PendingQuestion, reply: Reply, notification: Notification, person: User
) -> None:
    """Approve, ignore or answer; raises ActionError."""
    if reply.approves:
        approve(pending, actor=person, expected_version=notification.version)
    elif reply.ignores:
        ignore(
            pending,
            actor=person,
            because=reply.ignored_because,
            expected_version=pending.version,
        )
    else:
        propose_answer(
            pending,
            actor=person,
            question=reply.question or pending.question,
            answer=reply.answer,
            layer=layer_for(pending, reply, notification, person),
            expected_version=pending.version,
            kept_marks=reply.kept,
        )


def layer_for(
    pending: PendingQuestion, reply: Reply, notification: Notification, person: User
) -> Layer | None:
    """Return the layer that a reply names, else the contact's, else None."""
    own = Layer.objects.administered_by(person).filter(
        knowledge_base_id__in=pending.knowledge_base_ids
    )
    if not reply.layer:
        return own.filter(pk__in=[notification.contact.layer_id]).first()
    named = list(own.filter(name__iexact=reply.layer)[:2])
    if len(named) != 1:
        raise ApprovalError(
            _("There is not one layer “%(name)s” that this answer can go to.")
            % {"name": reply.layer}
        )
    return named[0]
