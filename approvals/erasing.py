"""What is taken off pending questions: answers, erased words, wordings past their time."""

from collections.abc import Collection
from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from approvals.acting import lock_in_order
from approvals.models import PendingQuestion, Wording
from approvals.models.question import State
from knowledge.purging import Erasure


def hold_questions(sources: Collection[int]) -> None:
    """Hold the questions whose answers are deleted, before their sources are held.

    Whoever withdraws an answer holds them in this order too.
    """
    found = PendingQuestion.objects.filter(source__in=sources)
    lock_in_order(list(found.order_by().values_list("pk", flat=True)))


def erase(erasure: Erasure) -> None:
    """Take an erased answer's words off its question; the caller deletes its source.

    The question is then found without a source, and becomes pending again.
    """
    if erasure.source_id is None:
        return
    rows = PendingQuestion.objects.filter(source=erasure.source_id)
    rows.filter(state=State.PENDING).update(
        answer="",
        question_as_answered="",
        also_asked=[],
        author=None,
        answered_at=None,
    )
    # An approved answer is never empty; the next round takes the rest off.
    rows.filter(state=State.APPROVED).update(
        answer="–", question_as_answered="", also_asked=[]
    )


def forget_wordings() -> int:
    """Take words and askers off old wordings of settled questions; returns how many.

    As old as the log of searches may get. What still waits for a person keeps them, and
    what was merged into it; of what a person answered, its question stays.
    """
    before = timezone.now() - timedelta(days=settings.STRATA_KEEP_LOG_DAYS)
    waits = Q(state=State.PENDING) | Q(original__state=State.PENDING)
    waiting = PendingQuestion.objects.filter(waits).order_by()
    is_kept = ~Q(text="") | Q(asker__isnull=False) | Q(vector__isnull=False)
    old = Wording.objects.filter(is_kept, at__lt=before).exclude(pending__in=waiting)
    count = old.update(text="", asker=None, vector=None, space="")
    # Their own words are those of their first wording.
    PendingQuestion.objects.filter(
        state__in=[State.IGNORED, State.DUPLICATE], last_asked_at__lt=before
    ).exclude(pk__in=waiting).exclude(question="").update(question="", language="")
    return count
