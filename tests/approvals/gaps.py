"""Gaps for tests: asks that found nothing, and people who settle them."""

from datetime import datetime
from typing import Any

from django.utils import timezone

from approvals import actions
from approvals.filing import Ask, file_asks
from approvals.models import PendingQuestion
from approvals.models.question import Channel
from knowledge.models import AuditEntry, KnowledgeBase, User
from knowledge.permissions import Access, grant
from retrieval.models import Interaction
from tests.factories import StaffFactory

BOTH = (Access.LIST, Access.SEARCH)
QUESTION = "May I keep a bicycle in the reading room?"
ANSWER = (
    "No. A bicycle may not be kept in the reading room; it stands in the yard behind "
    "the bindery."
)


def approver_of(*bases: KnowledgeBase, **fields: Any) -> User:
    """Return a member of staff who answers for some knowledge bases."""
    person: User = StaffFactory(groups=["Approver"], **fields)
    for base in bases:
        grant(base, BOTH, to=person, actor=None)
    return person


def pending_question(
    *bases: KnowledgeBase,
    text: str = QUESTION,
    asker: User | None = None,
    at: datetime | None = None,
    channel: Channel = Channel.PORTAL,
) -> PendingQuestion:
    """Return a question that was asked over some knowledge bases."""
    ask = Ask(
        text=text,
        at=at or timezone.now(),
        channel=channel,
        knowledge_base_ids=tuple(sorted(base.pk for base in bases)),
        asker_id=asker.pk if asker is not None else None,
    )
    return file_asks([ask])[0]


def asked(
    owner: User | None,
    text: str,
    *bases: KnowledgeBase,
    status: str = "not_found",
    door: str = "portal",
    **fields: Any,
) -> Interaction:
    """Return an ask as the product leaves it."""
    return Interaction.objects.create(
        owner=owner,
        question=text,
        queries=[text],
        status=status,
        mode="grounded",
        door=door,
        knowledge_base_ids=sorted(base.pk for base in bases),
        **fields,
    )


def answered(pending: PendingQuestion, person: User, **more: object) -> PendingQuestion:
    """Answer with the words of these tests."""
    fields = {"question": QUESTION, "answer": ANSWER, **more}
    return actions.propose_answer(pending, actor=person, **fields)  # type: ignore[arg-type]


def acts_on(pending: PendingQuestion) -> list[str]:
    """Return what the audit says of a question, oldest first."""
    entries = AuditEntry.objects.filter(
        target_type="pendingquestion", target_id=pending.pk
    )
    return list(entries.order_by("pk").values_list("verb", flat=True))
