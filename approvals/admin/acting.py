"""What a form of the queue asks for, as one call of a verb."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals import actions
from approvals.errors import ApprovalError
from approvals.models import PendingQuestion
from approvals.rights import ANSWER, BACKEND
from knowledge.access import who_may_some
from knowledge.admin.parts import is_key
from knowledge.models import KnowledgeBase, User

MOST_DAYS: Final = 366

# From a question, whoever acts and what was sent to what is said afterwards.
Verb = Callable[[PendingQuestion, User, QueryDict], str]


def version_in(data: QueryDict) -> int:
    """Return the version that a form showed; raises ApprovalError without one."""
    version = data.get("version", "")
    if not is_key(version):
        raise ApprovalError(_("Open the question again before you do this."))
    return int(version)


def question_in(data: QueryDict, name: str, actor: User) -> PendingQuestion:
    """Return the question that a form names; raises ApprovalError."""
    try:
        key = UUID(data.get(name, ""))
    except ValueError:
        raise ApprovalError(_("Choose a question.")) from None
    found = PendingQuestion.objects.administered_by(actor).filter(public_id=key).first()
    if found is None:
        raise ApprovalError(_("Choose a question."))
    return found


def person_in(data: QueryDict, actor: User) -> User | None:
    """Return the colleague that a form names, None for nobody; raises ApprovalError."""
    key = data.get("person", "")
    if not key:
        return None
    for person in colleagues_of(actor):
        if str(person.pk) == key:
            return person
    raise ApprovalError(_("Choose a colleague."))


def days_in(data: QueryDict) -> int:
    """Return the number of days that a form names; raises ApprovalError."""
    days = data.get("days", "")
    if not is_key(days) or not 1 <= int(days) <= MOST_DAYS:
        raise ApprovalError(_("Choose for how long."))
    return int(days)


def colleagues_of(actor: User) -> list[User]:
    """Return who may answer questions and works on a knowledge base of the person's."""
    bases = KnowledgeBase.objects.administered_by(actor)
    own = list(bases.values_list("pk", flat=True))
    people = list(
        User.objects.with_perm(ANSWER, backend=BACKEND)
        .filter(is_staff=True)
        .order_by("username")
    )
    readers = who_may_some([person.pk for person in people], own)
    return [
        person
        for person in people
        if person == actor or person.pk in readers or (own and person.is_superuser)
    ]


def ignore(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Give it no answer."""
    actions.ignore(
        pending,
        actor=actor,
        because=data.get("because", ""),
        expected_version=version_in(data),
    )
    return _("Ignored. It stands under “Ignored”, with your reason.")


def merge(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Say that it asks what another one asks."""
    into = question_in(data, "into", actor)
    seen = {pending.pk: version_in(data)}
    actions.merge([pending], into=into, actor=actor, expected_versions=seen)
    return _("Merged. What becomes of the other question becomes of this one.")


def assign(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Give it to somebody."""
    person = person_in(data, actor)
    actions.assign(pending, actor=actor, to=person)
    if person is None:
        return _("Assigned to nobody.")
    return _("Assigned to %(person)s.") % {"person": person}


def snooze(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Put it off."""
    days = days_in(data)
    until = timezone.now() + timedelta(days=days)
    actions.snooze(pending, actor=actor, until=until)
    return ngettext(
        "Out of sight for a day.", "Out of sight for %(days)s days.", days
    ) % {"days": days}


def wake(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Take it up again."""
    actions.snooze(pending, actor=actor, until=None)
    return _("It waits for an answer again.")


def approve(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Approve what a colleague wrote."""
    actions.approve(pending, actor=actor, expected_version=version_in(data))
    return _("Approved. The answer is being taken into the documents.")


def send_back(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Refuse what a colleague wrote."""
    actions.send_back(
        pending,
        actor=actor,
        because=data.get("because", ""),
        expected_version=version_in(data),
    )
    return _("Sent back. The question waits for another answer.")


def withdraw(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Take an approved answer out of the documents."""
    actions.withdraw(
        pending,
        actor=actor,
        because=data.get("because", ""),
        expected_version=version_in(data),
    )
    return _("Withdrawn. The question waits for an answer again.")


def reopen(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Let an ignored question wait again."""
    actions.reopen(pending, actor=actor)
    return _("It waits for an answer again.")


def unmerge(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Make it a question of its own again."""
    actions.unmerge(pending, actor=actor)
    return _("It is a question of its own again.")


VERBS: Final[Mapping[str, Verb]] = {
    "ignore": ignore,
    "merge": merge,
    "assign": assign,
    "snooze": snooze,
    "wake": wake,
    "approve": approve,
    "send_back": send_back,
    "withdraw": withdraw,
    "reopen": reopen,
    "unmerge": unmerge,
}


def ignore_one(pending: PendingQuestion, actor: User, data: QueryDict) -> str:
    """Give one of several no answer; what a colleague wrote is not thrown away so."""
    refuse_written(pending)
    actions.ignore(
        pending,
        actor=actor,
        because=data.get("because", ""),
        expected_version=pending.version,
    )
    return ""


# What is done to one of several questions.
BULK_VERBS: Final[Mapping[str, Verb]] = {
    "ignore": ignore_one,
    "assign": assign,
    "snooze": snooze,
}


def refuse_written(pending: PendingQuestion) -> None:
    """Raise ApprovalError where an answer is written; a list does not show it."""
    if pending.answer:
        raise ApprovalError(
            _("An answer is written already. Open the question to decide about it.")
        )


def merge_all(chosen: Sequence[PendingQuestion], actor: User) -> str:
    """Merge questions into the one of them that is wanted most."""
    if len(chosen) < 2:
        raise ApprovalError(_("Choose at least two questions to merge."))
    into, *others = sorted(
        chosen, key=lambda each: (-each.asker_count, -each.asked_count, each.pk)
    )
    for each in others:
        refuse_written(each)
    seen = {each.pk: each.version for each in others}
    actions.merge(others, into=into, actor=actor, expected_versions=seen)
    return ngettext(
        "One question now points to “%(question)s”.",
        "%(number)s questions now point to “%(question)s”.",
        len(others),
    ) % {"number": len(others), "question": into.question[:80]}
