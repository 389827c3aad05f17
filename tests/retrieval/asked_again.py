"""Questions that people ask again, and what was learned of them."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone

from knowledge.models import Layer
from knowledge.permissions import Reader
from retrieval.learning import learned_queries
from retrieval.models import LearnedItem, LearningState, SearchLog
from retrieval.promoter import promote
from retrieval.promoting import Lesson
from retrieval.reach import Reach

FIRST, SECOND = "How do I block a card?", "How do I freeze a card?"


def log(
    reader: Reader, text: str, minutes: float, layer: Layer | None, **fields: Any
) -> SearchLog:
    """Log a search so many minutes ago."""
    values = {
        "person_id": reader.user_id,
        "door": "portal",
        "count": 5,
        "knowledge_bases": sorted(reader.searchable),
        "status": "found" if layer is not None else "not_found",
        "layer": layer,
        "interaction_id": uuid4(),
        **fields,
    }
    row = SearchLog.objects.create(query=text, **values)
    row.at = timezone.now() - timedelta(minutes=minutes)
    row.save(update_fields=["at"])
    return row


def reword(
    reader: Reader,
    layer: Layer | None,
    *,
    times: int = 2,
    before: float = 0,
    words: tuple[str, str] = (FIRST, SECOND),
    **fields: Any,
) -> None:
    """Have a person ask again in other words so many times."""
    for each in range(times):
        minutes = before + 100 * (times - each)
        log(reader, words[0], minutes + 1, None)
        log(reader, words[1], minutes, layer, **fields)


def run_anew() -> None:
    """Run over all of the log: what a test logs lies before what was read."""
    LearningState.objects.update(read_to=0)
    promote()


def queries(reader: Reader, text: str) -> tuple[str, ...]:
    """Return what is searched for besides a question."""
    found = learned_queries(Reach.of(reader), text)
    return found.rewrites or ((found.widened,) if found.widened else ())


def synonym(layer: Layer | None = None) -> LearnedItem:
    """Return the one synonym."""
    found = LearnedItem.objects.filter(kind=Lesson.SYNONYM)
    return found.get(layer=layer) if layer is not None else found.get()
