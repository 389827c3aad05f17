"""What is taken off pending questions: erased words, and wordings past their time."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from approvals.models import PendingQuestion, Wording
from approvals.models.question import State
from knowledge.purging import Erasure


def erase(erasure: Erasure) -> None:
    """Take an erased answer's words off its question; the caller deletes its source.

    The question is then found without a source, and becomes pending again.
    """
    if erasure.source_id is None:
        return
    rows = PendingQuestion.objects.filter(source=erasure.source_id)
    rows.filter(state=State.PENDING).update(
        answer="", question_as_answered="", author=None, answered_at=None
    )
    # An approved answer is never empty; the next round takes the rest off.
    rows.filter(state=State.APPROVED).update(answer="–", question_as_answered="")


def forget_wordings() -> int:
    """Take words and askers off old wordings of settled questions; returns how many.

    As old as the log of searches may get. What still waits for a person keeps them.
    """
    old = Wording.objects.filter(
        at__lt=Now() - timedelta(days=settings.STRATA_KEEP_LOG_DAYS)
    ).exclude(pending__state=State.PENDING)
    is_kept = ~Q(text="") | Q(asker__isnull=False) | Q(vector__isnull=False)
    return old.filter(is_kept).update(text="", asker=None, vector=None, space="")
