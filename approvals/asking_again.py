"""What follows an approval once its answer is found: it is announced, and asked again.

The question is asked by the system, over the knowledge base of the answer alone, and
leaves no trace (R19). What opened the gap was that nothing was found; it is closed when
something is, with the approved answer among the best passages, else still open.
"""

import logging
from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from approvals.actions import go_back_to_pending
from approvals.delivering import announce
from approvals.models import PendingQuestion, Wording
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
# Questions that one round takes up.
BATCH: Final = 50


class CannotTellError(Exception):
    """The model does not answer now, so what is found says nothing."""


def due() -> QuerySet[PendingQuestion]:
    """Return the approved questions with something left to do."""
    is_found = Q(source__state=SourceState.READY)
    is_new = Q(gap=Gap.UNKNOWN) | Q(announced_revision__lt=F("revision"))
    return PendingQuestion.objects.filter(
        (is_found & is_new) | Q(source__isnull=True), state=State.APPROVED
    ).order_by("approved_at", "pk")


def follow_up() -> int:
    """Take up what is due, as much as a round takes; returns how much that was."""
    done = 0
    for key in due().values_list("pk", flat=True)[:BATCH]:
        try:
            follow(key)
            done += 1
        except CannotTellError as error:
            logger.info("questions are asked again later: %s", error)
        except Exception:
            # One that fails must not keep the others from it.
            logger.exception("question %s could not be followed up", key)
    return done


def follow(key: int) -> None:
    """Do what is left to do for one approved question."""
    with transaction.atomic():
        row = PendingQuestion.objects.select_for_update(of=("self",)).get(pk=key)
        if row.state != State.APPROVED:
            return
        if row.source is None:
            # Deleted or erased, past the gate.
            record(None, "withdrew the answer of", row, because="source deleted")
            go_back_to_pending(row)
            row.version += 1
            row.save()
            return
        if row.source.state != SourceState.READY:
            return
        announce(row)
    if row.gap == Gap.UNKNOWN:
        ask_again(row)


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
            every_wording(row).filter(text=text).update(finds=finds)
        record(None, "asked again", now, gap=now.gap)


def every_wording(row: PendingQuestion) -> QuerySet[Wording]:
    """Return a question's wordings and those of its duplicates."""
    return Wording.objects.filter(Q(pending=row) | Q(pending__original=row))


def wordings_of(row: PendingQuestion) -> Iterator[str]:
    """Yield the words in which it was asked that are still kept."""
    yield from every_wording(row).exclude(text="").values_list("text", flat=True)


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
