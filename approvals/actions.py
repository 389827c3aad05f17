"""The verbs of the gate: each one transaction, with its audit entry.

What is true of every door is checked here: the person's right at this moment, the
state, and that the form which is sent shows the newest version. Of several people who
act at once one wins; the others get a ConflictError, and the audit names them too
(REL-W4). Entries of the audit hold no word of a question or an answer.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from approvals.acting import acting, locked, once_more, refuse_late
from approvals.counting import COUNTS, count_again
from approvals.delivering import announce_withdrawal
from approvals.errors import ApprovalError, ConflictError, ForbiddenError
from approvals.filing import Ask, ask_of, file_asks
from approvals.models import PendingQuestion, Wording
from approvals.models.notification import Event
from approvals.models.question import LONGEST_QUESTION, Channel, Gap, State
from approvals.notifying import notify
from approvals.publishing import chosen_layer, put_in, take_out
from approvals.rights import APPROVE, may_act, refuse_foreign
from approvals.texts import (
    ALSO_ASKED,
    cleaned_answer,
    cleaned_question,
    cleaned_reason,
    cleaned_wordings,
    refuse_personal,
    required_reason,
)
from knowledge.models import ApiToken, Layer, User
from knowledge.models.audit import record
from knowledge.permissions import Reader
from knowledge.sanitizing import InvalidTextError, clean_query
from retrieval.log import as_kept
from retrieval.models import Interaction

# An editing lock that is not renewed ends by itself.
LOCK = timedelta(minutes=3)


# --- Asking a person ----------------------------------------------------------------


@transaction.atomic
def send_to_person(
    reader: Reader,
    *,
    interaction_id: UUID | None = None,
    question: str = "",
    channel: Channel,
) -> PendingQuestion:
    """Put a question before the people who can answer it, at once.

    Either an interaction of the reader's own, whatever it came to, or a question in
    words. Sent twice, it is the same pending question. Raises ApprovalError, also for
    an interaction that is somebody else's, which is told apart from none by nobody.
    """
    if reader.user_id is None or reader.acting_user_id is not None:
        raise ForbiddenError(_("You see the portal as another person does."))
    if interaction_id is None:
        ask = asked_now(reader, question, channel)
    else:
        ask = own_ask(reader, interaction_id, channel)
    if not ask.knowledge_base_ids:
        raise ApprovalError(
            _("You may search no knowledge base, so there is nobody to ask.")
        )
    pending, is_new = file_asks([ask])
    if is_new:
        person = User.objects.filter(pk=reader.user_id).first()
        record(person, "sent to a person", pending, channel=str(channel))
    return pending


def asked_now(reader: Reader, question: str, channel: Channel) -> Ask:
    """Return a question in words as an ask of this moment."""
    try:
        text = clean_query(question, max_length=LONGEST_QUESTION)
    except InvalidTextError as error:
        raise ApprovalError(str(error)) from error
    return Ask(
        text=as_kept(text),
        at=timezone.now(),
        channel=channel,
        knowledge_base_ids=tuple(sorted(reader.searchable)),
        asker_id=reader.user_id,
        client_id=client_of(reader),
    )


def client_of(reader: Reader) -> int | None:
    """Return the agent client whose token a reader holds, by its id."""
    if not reader.is_agent or reader.token_id is None:
        return None
    own = ApiToken.objects.filter(pk=reader.token_id)
    return own.values_list("client_id", flat=True).first()


def own_ask(reader: Reader, interaction_id: UUID, channel: Channel) -> Ask:
    """Return an interaction of the reader's own as an ask."""
    own = Interaction.objects.filter(
        owner=reader.user_id, acting=None, public_id=interaction_id
    )
    if reader.is_agent:
        own = own.filter(client=client_of(reader))
    interaction = own.exclude(question="").first()
    if interaction is None:
        raise ApprovalError(_("There is no such question of yours. Ask it again."))
    return replace(ask_of(interaction), channel=channel)


# --- Answering ----------------------------------------------------------------------


def propose_answer(
    pending: PendingQuestion,
    *,
    actor: User,
    question: str,
    answer: str,
    also_asked: Sequence[str] = (),
    layer: Layer | None = None,
    expected_version: int | None = None,
    kept_marks: Sequence[str] = (),
) -> PendingQuestion:
    """Answer a pending question.

    Published at once, or after somebody else approved it: where the deployment asks for
    four eyes, or where the person may not approve. Without a `layer` there must be only
    one knowledge base that it can go to. By the wordings in `also_asked`, in any
    language, it is found too. `kept_marks` are the texts of marks that the person keeps
    on purpose.
    """
    return write_answer(
        pending,
        actor=actor,
        question=question,
        answer=answer,
        also_asked=also_asked,
        layer=layer,
        expected_version=expected_version,
        kept_marks=kept_marks,
        states=(State.PENDING,),
        tried="answer",
    )


def change_answer(
    pending: PendingQuestion,
    *,
    actor: User,
    question: str,
    answer: str,
    also_asked: Sequence[str] = (),
    layer: Layer | None = None,
    expected_version: int | None = None,
    kept_marks: Sequence[str] = (),
) -> PendingQuestion:
    """Change an approved answer: a new revision of its source, of which clients hear.

    Where it needs a second person, the question waits in pending again, while the
    answer that was approved before goes on serving.
    """
    return write_answer(
        pending,
        actor=actor,
        question=question,
        answer=answer,
        also_asked=also_asked,
        layer=layer,
        expected_version=expected_version,
        kept_marks=kept_marks,
        states=(State.APPROVED,),
        tried="change the answer",
    )


@once_more
def write_answer(
    pending: PendingQuestion,
    *,
    actor: User,
    question: str,
    answer: str,
    also_asked: Sequence[str],
    layer: Layer | None,
    expected_version: int | None,
    kept_marks: Sequence[str],
    states: Collection[str],
    tried: str,
) -> PendingQuestion:
    """Keep what was written, and publish it where nobody else has to approve it."""
    asked, text = cleaned_question(question), cleaned_answer(answer)
    wordings = cleaned_wordings(also_asked, asked)
    written = {"question": asked, "answer": text, ALSO_ASKED: "\n".join(wordings)}
    refuse_personal(written, kept_marks)
    with acting(
        pending, actor, tried, states=states, expected_version=expected_version
    ) as act:
        row, person = act.row, act.person
        row.layer = chosen_layer(row, person, layer)
        if row.state == State.APPROVED and not differs(row, asked, text, wordings):
            raise ApprovalError(_("Nothing is changed."))
        row.question_as_answered, row.answer = asked, text
        row.also_asked = wordings
        row.author, row.answered_at = person, timezone.now()
        row.four_eyes = settings.STRATA_FOUR_EYES
        row.state = State.PENDING
        row.approved_by = row.approved_at = None
        row.locked_by = row.locked_until = None
        record(person, "answered", row, kept=len(kept_marks))
        if not row.four_eyes and person.has_perm(APPROVE):
            publish(row, person)
        else:
            notify(row, Event.AWAITING)
    return row


def differs(
    row: PendingQuestion, asked: str, text: str, wordings: Sequence[str]
) -> bool:
    """Tell whether anything of a published answer would change."""
    here = row.source.layer_id if row.source is not None else None
    moved = row.layer is not None and row.layer.pk != here
    here_now = (row.question_as_answered, row.answer, row.also_asked)
    return moved or (asked, text, list(wordings)) != here_now


@once_more
def approve(
    pending: PendingQuestion, *, actor: User, expected_version: int | None = None
) -> PendingQuestion:
    """Approve an answer that another person wrote; it is published."""
    with acting(
        pending,
        actor,
        "approve",
        right=APPROVE,
        expected_version=expected_version,
    ) as act:
        row, person = act.row, act.person
        refuse_unanswered(row)
        if row.four_eyes and row.author_id == person.pk:
            raise ForbiddenError(
                _("Whoever wrote an answer cannot approve it here. Ask a colleague.")
            )
        row.layer = chosen_layer(row, person, row.layer)
        publish(row, person)
    return row


@once_more
def send_back(
    pending: PendingQuestion,
    *,
    actor: User,
    because: str = "",
    expected_version: int | None = None,
) -> PendingQuestion:
    """Take a written answer off a question that waits for approval.

    An answer that was approved before serves on.
    """
    with acting(
        pending, actor, "send back", right=APPROVE, expected_version=expected_version
    ) as act:
        row = act.row
        refuse_unanswered(row)
        record(act.person, "sent back", row, because=cleaned_reason(because))
        forget_answer(row)
    return row


def refuse_unanswered(row: PendingQuestion) -> None:
    """Raise ConflictError where no answer waits for approval."""
    if not row.is_awaiting_approval:
        raise ConflictError(_("No answer waits for approval here. Look at it again."))


def publish(row: PendingQuestion, person: User) -> None:
    """Approve what is written: into the corpus, and to everybody who is to hear of it.

    The caller holds the row and saves it.
    """
    put_in(row, actor=person)
    row.state = State.APPROVED
    row.approved_by, row.approved_at = person, timezone.now()
    row.first_approved_at = row.first_approved_at or row.approved_at
    row.revision += 1
    row.gap, row.gap_checked_at = Gap.UNKNOWN, None
    row.snoozed_until = None
    row.follow_attempts, row.follow_after = 0, None
    tell_askers_anew(row)
    record(person, "approved", row, revision=row.revision)


@once_more
def withdraw(
    pending: PendingQuestion,
    *,
    actor: User,
    because: str,
    expected_version: int | None = None,
) -> PendingQuestion:
    """Take an approved answer out of the corpus; the question is pending again."""
    why = required_reason(because)
    with acting(
        pending,
        actor,
        "withdraw",
        right=APPROVE,
        states=(State.APPROVED, State.PENDING),
        expected_version=expected_version,
    ) as act:
        row = act.row
        if row.source is None:
            raise ConflictError(_("There is no approved answer here any more."))
        record(act.person, "withdrew the answer of", row, because=why)
        take_out(row, actor=act.person)
        go_back_to_pending(row)
    return row


def go_back_to_pending(row: PendingQuestion) -> None:
    """Make a question one without an answer again, and say so; the caller saves it."""
    row.revision += 1
    announce_withdrawal(row)
    row.state = State.PENDING
    row.first_approved_at = None
    forget_answer(row)
    tell_askers_anew(row)


def forget_answer(row: PendingQuestion) -> None:
    """Take what was written off a question."""
    row.answer = row.question_as_answered = ""
    row.also_asked = []
    row.layer = row.source.layer if row.source is not None else None
    row.author = row.answered_at = row.approved_by = row.approved_at = None
    row.four_eyes = False
    row.gap, row.gap_checked_at = Gap.UNKNOWN, None


def tell_askers_anew(row: PendingQuestion) -> None:
    """Let the askers of a question and of its duplicates be told what became of it."""
    Wording.objects.of(row).update(told_at=None, finds=None)


# --- Sorting ------------------------------------------------------------------------


@once_more
def ignore(
    pending: PendingQuestion,
    *,
    actor: User,
    because: str,
    expected_version: int | None = None,
) -> PendingQuestion:
    """Decide that a question gets no answer, which is a legal outcome (S2-APR-06)."""
    why = required_reason(because)
    with acting(pending, actor, "ignore", expected_version=expected_version) as act:
        row = act.row
        refuse_served(row)
        forget_answer(row)
        row.state, row.ignored_because = State.IGNORED, why
        row.locked_by = row.locked_until = None
        tell_askers_anew(row)
        record(act.person, "ignored", row)
    return row


@once_more
def reopen(pending: PendingQuestion, *, actor: User) -> PendingQuestion:
    """Make an ignored question pending again."""
    with acting(pending, actor, "reopen", states=(State.IGNORED,)) as act:
        refuse_blank(act.row)
        act.row.state, act.row.ignored_because = State.PENDING, ""
        tell_askers_anew(act.row)
        record(act.person, "reopened", act.row)
    return act.row


@once_more
def merge(
    duplicates: Sequence[PendingQuestion],
    *,
    into: PendingQuestion,
    actor: User,
    expected_versions: Mapping[int, int | None] | None = None,
) -> PendingQuestion:
    """Say of pending questions that they ask what another one asks (S2-APR-04).

    Their wordings and askers count for that one, and what becomes of it becomes of
    them. One that others were merged into brings those along. `expected_versions` are
    those of the duplicates, by their ids, as the sender saw them.
    """
    expected = expected_versions or {}
    states = (State.PENDING, State.APPROVED)
    keys = [each.pk for each in duplicates]
    nested = PendingQuestion.objects.filter(original__in=keys)
    beside = [*keys, *nested.order_by().values_list("pk", flat=True)]
    with acting(into, actor, "merge", states=states, beside=beside) as act:
        for each in duplicates:
            row = locked(each)
            refuse_foreign(act.person, row)
            refuse_late(row, (State.PENDING,), expected.get(row.pk))
            point_at(row, act.row)
            row.version += 1
            row.save()
            record(act.person, "merged", row, into=act.row.pk)
        count_again(act.row)
    return act.row


def point_at(row: PendingQuestion, original: PendingQuestion) -> None:
    """Make a pending question, and those that point at it, duplicates of another."""
    if row.pk == original.pk:
        raise ApprovalError(_("A question cannot be merged into itself."))
    refuse_served(row)
    PendingQuestion.objects.filter(original=row).update(original=original)
    forget_answer(row)
    row.state, row.original = State.DUPLICATE, original
    row.locked_by = row.locked_until = None
    Wording.objects.filter(pending=row).update(told_at=None)


def refuse_served(row: PendingQuestion) -> None:
    """Raise ApprovalError where an approved answer still serves."""
    if row.source is not None:
        raise ApprovalError(_("Its approved answer still serves. Withdraw it first."))


@once_more
def unmerge(pending: PendingQuestion, *, actor: User) -> PendingQuestion:
    """Make a duplicate a pending question of its own again."""
    own = PendingQuestion.objects.filter(pk=pending.pk)
    beside = list(own.values_list("original", flat=True))
    with acting(
        pending, actor, "take apart", states=(State.DUPLICATE,), beside=beside
    ) as act:
        row, left = act.row, act.row.original
        if left is None or left.pk not in beside:
            raise ConflictError(
                _("Somebody changed this question meanwhile. Look at it again.")
            )
        refuse_blank(row)
        row.state, row.original = State.PENDING, None
        row.save(update_fields=["state", "original"])
        for each in (row, left):
            count_again(each)
        left.save(update_fields=COUNTS)
        Wording.objects.filter(pending=row).update(told_at=None)
        record(act.person, "took apart", row)
    return row


def refuse_blank(row: PendingQuestion) -> None:
    """Raise ApprovalError where a question's words are gone: nobody could answer it."""
    if not row.question:
        raise ApprovalError(
            _("Its words are past their keeping time, so it cannot wait again.")
        )


@once_more
def assign(
    pending: PendingQuestion, *, actor: User, to: User | None
) -> PendingQuestion:
    """Give a question to a person who may answer it, or to nobody."""
    with acting(pending, actor, "assign") as act:
        if to is not None and not may_act(to, act.row):
            raise ApprovalError(
                _("%(person)s may not answer this question.") % {"person": to}
            )
        act.row.assigned_to = to
        record(act.person, "assigned", act.row, to=str(to) if to is not None else "")
    return act.row


@once_more
def snooze(
    pending: PendingQuestion, *, actor: User, until: datetime | None
) -> PendingQuestion:
    """Put a question off until a time, or take it up again."""
    if until is not None and until <= timezone.now():
        raise ApprovalError(_("Choose a time that is still to come."))
    with acting(pending, actor, "put off") as act:
        act.row.snoozed_until = until
        at = until.isoformat() if until is not None else ""
        record(act.person, "put off", act.row, until=at)
    return act.row


def lock(pending: PendingQuestion, *, actor: User) -> bool:
    """Take or renew the editing lock; tells whether the person has it now.

    It only warns: who has none and writes all the same is told of a conflict.
    """
    if not may_act(actor, pending):
        return False
    is_free = Q(locked_by=None) | Q(locked_by=actor) | Q(locked_until__lt=Now())
    return bool(
        PendingQuestion.objects.filter(is_free, pk=pending.pk).update(
            locked_by=actor, locked_until=timezone.now() + LOCK
        )
    )


def unlock(pending: PendingQuestion, *, actor: User) -> None:
    """Give the person's own editing lock back."""
    PendingQuestion.objects.filter(pk=pending.pk, locked_by=actor).update(
        locked_by=None, locked_until=None
    )
