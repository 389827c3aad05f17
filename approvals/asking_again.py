"""What follows an approval once its answer is found: it is announced, and asked again.

The question is asked by the system, over the knowledge base of the answer alone, and
leaves no trace (R19). What opened the gap was that nothing was found; it is closed when
something is, with the approved answer among the best passages, else still open.
"""

import logging
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from approvals.actions import go_back_to_pending
from approvals.delivering import announce, announce_withdrawal
from approvals.models import Delivery, PendingQuestion, Wording
from approvals.models.delivery import DeliveryKind
from approvals.models.question import Gap, State
from knowledge.models import Document, Source
from knowledge.models.audit import record
from knowledge.models.source import SourceState
from retrieval.answers import Answer
from retrieval.ask import ask
from retrieval.confidence import Status
from retrieval.reach import reader_of
from retrieval.receipts import ReadGoneError
from retrieval.results import Label
from retrieval.search import SearchInputError
from retrieval.weighing import ScoringError

logger = logging.getLogger(__name__)

# Wordings that are asked again for each question, the first ones.
MOST_WORDINGS: Final = 5
# Passages among which the approved answer has to be.
BEST: Final = 3
# Questions that one round takes up, and how long (seconds) it begins with another one.
BATCH: Final = 50
MOST_SECONDS: Final = 60.0
# Minutes before the next attempt, by those that failed in a row; then the last of them.
PAUSES: Final = (1, 2, 5, 15, 60)


class CannotTellError(Exception):
    """The model does not answer now, so what is found says nothing."""


def due() -> QuerySet[PendingQuestion]:
    """Return the questions with something left to do, and whose time it is.

    First those that were not tried yet: what fails again and again comes behind them.
    """
    is_found = Q(source__state=SourceState.READY)
    is_new = Q(gap=Gap.UNKNOWN) | Q(announced_revision__lt=F("revision"))
    is_deleted = Q(source__isnull=True)
    told = Delivery.objects.current().filter(pending=OuterRef("pk"))
    is_told = Exists(told.exclude(kind=DeliveryKind.WITHDRAWN))
    # Its source was deleted while a change of it waited.
    is_left = ~Q(state=State.APPROVED) & Q(announced_revision__gt=0) & is_deleted
    is_time = Q(follow_after=None) | Q(follow_after__lte=timezone.now())
    return PendingQuestion.objects.filter(
        Q(state=State.APPROVED) & ((is_found & is_new) | is_deleted)
        | (is_left & is_told),
        is_time,
    ).order_by(F("follow_after").asc(nulls_first=True), "approved_at", "pk")


def follow_up() -> int:
    """Take up what is due, as much as a round takes; returns how much that was."""
    done = 0
    end = time.monotonic() + MOST_SECONDS
    for key in due().values_list("pk", flat=True)[:BATCH]:
        if time.monotonic() > end:
            break
        try:
            done += follow(key)
        except CannotTellError as error:
            logger.info("questions are asked again later: %s", error)
        except Exception:
            # One that fails must not keep the others from it.
            logger.exception("question %s could not be followed up", key)
    return done


def follow(key: int) -> bool:
    """Do what is left to do for one question; returns False where another worker does.

    The attempt is counted before it is made: what kills the worker is not tried at once
    again, and two rounds do not do the same.
    """
    if not take(key):
        return False
    with transaction.atomic():
        row = PendingQuestion.objects.select_for_update(of=("self",)).get(pk=key)
        if row.source is None:
            # Deleted or erased, past the gate.
            lose(row)
        elif row.state == State.APPROVED and row.source.state == SourceState.READY:
            announce(row)
    if row.state == State.APPROVED and row.gap == Gap.UNKNOWN:
        ask_again(row)
    PendingQuestion.objects.filter(pk=key, revision=row.revision).update(
        follow_attempts=0, follow_after=None
    )
    return True


@transaction.atomic
def take(key: int) -> bool:
    """Count an attempt, and set when the next one may be; False where it is not due."""
    rows = due().select_for_update(of=("self",), skip_locked=True)
    row = rows.filter(pk=key).first()
    if row is None:
        return False
    pause = PAUSES[min(row.follow_attempts, len(PAUSES) - 1)]
    row.follow_attempts += 1
    row.follow_after = timezone.now() + timedelta(minutes=pause)
    row.save(update_fields=["follow_attempts", "follow_after"])
    return True


def lose(row: PendingQuestion) -> None:
    """Withdraw an answer whose source is gone; the caller holds its question.

    A change that waits for its approval goes on waiting.
    """
    record(None, "withdrew the answer of", row, because="source deleted")
    if row.state == State.APPROVED:
        go_back_to_pending(row)
    else:
        row.revision += 1
        row.first_approved_at = None
        announce_withdrawal(row)
    row.version += 1
    row.save()


def ask_again(row: PendingQuestion) -> None:
    """Ask a question again, in its wordings, and keep what came of it.

    Raises CannotTellError where nothing can be said now; then it is asked later.
    """
    source = row.source
    if source is None:
        return
    texts = dict.fromkeys([row.question, *wordings_of(row)])
    found: dict[str, bool] = {}
    try:
        for text in list(texts)[:MOST_WORDINGS]:
            found[text] = is_found(text, source)
    except (ScoringError, ReadGoneError) as error:
        raise CannotTellError(str(error)) from error
    with transaction.atomic():
        now = PendingQuestion.objects.select_for_update(of=("self",)).get(pk=row.pk)
        if (now.state, now.revision) != (State.APPROVED, row.revision):
            return
        now.gap = Gap.CLOSED if found[row.question] else Gap.OPEN
        now.gap_checked_at = timezone.now()
        now.save(update_fields=["gap", "gap_checked_at"])
        for text, finds in found.items():
            Wording.objects.of(row).filter(text=text).update(finds=finds)
        record(None, "asked again", now, gap=now.gap)


def wordings_of(row: PendingQuestion) -> Iterator[str]:
    """Yield the words in which it was asked that are still kept."""
    yield from Wording.objects.of(row).exclude(text="").values_list("text", flat=True)


def is_found(text: str, source: Source) -> bool:
    """Tell whether asking finds something, and the approved answer among the best."""
    reader = reader_of(frozenset({source.knowledge_base_id}), None)
    try:
        answer = ask(reader, text)
    except SearchInputError:
        # Words that cannot be searched, such as a longer text of an older version.
        return False
    if settings.PORTAL_EMBEDS and Label.KEYWORD_ONLY in answer.labels:
        raise CannotTellError("the model server does not answer")
    return answer.status != Status.NOT_FOUND and cites(answer, source)


def cites(answer: Answer, source: Source) -> bool:
    """Tell whether a source's current text is among an answer's best passages."""
    current = Document.objects.filter(source=source, is_current=True).first()
    name = f"d{current.number}" if current is not None else ""
    best = answer.passages[:BEST]
    return any(passage.citation.revision == name for passage in best)
