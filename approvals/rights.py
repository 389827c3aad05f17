"""Who may do what to pending questions, at this moment.

What was looked up earlier in a request, or when a message was sent, says nothing: each
act asks anew. A round that looks at many questions asks once, with `Rights`; the tests
hold the two together.
"""

from typing import Final

from django.utils.translation import gettext as _

from approvals.errors import ForbiddenError
from approvals.models import PendingQuestion
from approvals.models.notification import Event
from knowledge.access import people_who_may
from knowledge.models import KnowledgeBase, User

ANSWER: Final = "approvals.answer_pendingquestion"
APPROVE: Final = "approvals.approve_pendingquestion"
# Where roles and rights are looked up for many people at once.
BACKEND: Final = "django.contrib.auth.backends.ModelBackend"


def holder_of(actor: User, right: str) -> User:
    """Return a person as they are now, holding a right; raises ForbiddenError."""
    person = User.objects.filter(pk=actor.pk, is_active=True).first()
    if person is None or not person.has_perm(right):
        raise ForbiddenError(
            _("You have no right to do this. Ask whoever looks after the portal.")
        )
    return person


def may_act(user: User, pending: PendingQuestion, right: str = ANSWER) -> bool:
    """Tell whether a person may do something to a question, at this moment."""
    try:
        person = holder_of(user, right)
    except ForbiddenError:
        return False
    return is_theirs(person, pending)


def is_theirs(person: User, pending: PendingQuestion) -> bool:
    """Tell whether a question is one of those that a person works on (REL-W8)."""
    own = PendingQuestion.objects.administered_by(person)
    return own.filter(pk=pending.pk).exists()


def refuse_foreign(person: User, pending: PendingQuestion) -> None:
    """Raise ForbiddenError for a question that is not one of a person's own."""
    if not is_theirs(person, pending):
        raise ForbiddenError(_("This question is not one of those you see."))


def may_do(user: User, pending: PendingQuestion, event: Event) -> bool:
    """Tell whether a person may do what a message asks for, at this moment."""
    return user.pk != barred(pending, event) and any(
        may_act(user, pending, right) for right in wanted(pending, event)
    )


def wanted(pending: PendingQuestion, event: Event) -> tuple[str, ...]:
    """Return the rights of which a person needs one, to be told of something."""
    if event == Event.AWAITING:
        return (APPROVE,)
    if event == Event.ESCALATED and pending.is_awaiting_approval:
        return (ANSWER, APPROVE)
    return (ANSWER,)


def barred(pending: PendingQuestion, event: Event) -> int | None:
    """Return who may not approve an answer because they wrote it, or None."""
    is_barred = event == Event.AWAITING and pending.four_eyes
    return pending.author_id if is_barred else None


class Rights:
    """`may_act` and `may_do` for many people and questions.

    Each right and each knowledge base is asked for once. It knows what held when it was
    first asked, so it lives for one round.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._holders: dict[str, frozenset[int]] = {}
        self._workers: dict[int, frozenset[int]] = {}
        self._superusers: frozenset[int] | None = None

    def who_may(self, pending: PendingQuestion, right: str) -> frozenset[int]:
        """Return the ids of those who may do something to a question."""
        asked_of = [self.workers_on(each) for each in pending.knowledge_base_ids]
        people = frozenset[int]().union(*asked_of)
        for part in (pending.source, pending.layer):
            if part is not None:
                people &= self.workers_on(part.knowledge_base_id)
        return self.holders_of(right) & (people | self.superusers())

    def who_may_do(self, pending: PendingQuestion, event: Event) -> frozenset[int]:
        """Return the ids of those who may do what a message asks for."""
        found = frozenset[int]().union(
            *(self.who_may(pending, right) for right in wanted(pending, event))
        )
        return frozenset(found - {barred(pending, event)})

    def holders_of(self, right: str) -> frozenset[int]:
        """Return the ids of those who hold a right, by role or by themselves."""
        if right not in self._holders:
            people = User.objects.with_perm(right, backend=BACKEND)
            self._holders[right] = frozenset(people.values_list("pk", flat=True))
        return self._holders[right]

    def workers_on(self, knowledge_base_id: int) -> frozenset[int]:
        """Return the ids of those who may read a knowledge base."""
        if knowledge_base_id not in self._workers:
            base = KnowledgeBase.objects.filter(pk=knowledge_base_id).first()
            people = people_who_may(base) if base is not None else User.objects.none()
            self._workers[knowledge_base_id] = frozenset(
                people.values_list("pk", flat=True)
            )
        return self._workers[knowledge_base_id]

    def superusers(self) -> frozenset[int]:
        """Return the ids of those who look after everything."""
        if self._superusers is None:
            people = User.objects.filter(is_active=True, is_superuser=True)
            self._superusers = frozenset(people.values_list("pk", flat=True))
        return self._superusers
