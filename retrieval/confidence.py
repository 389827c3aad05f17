"""How surely a result covers the query, judged by marks (S1-CNF). Pure.

`judge` gives a level, `status` what a concise answer is labelled with: two scales that
share their marks (R18).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from retrieval.results import Basis, Confidence, Level

# So many results at the medium mark or above make a level high.
ENOUGH_RESULTS = 3
WARNING = (
    "The documents in reach probably do not cover this. Try other terms or another "
    "layer."
)


@dataclass(frozen=True, slots=True)
class Marks:
    """Where the levels begin, on the scale that a calibration maps to."""

    high: float
    medium: float


MARKS: Final[Mapping[Basis, Marks]] = {
    Basis.RERANK: Marks(high=0.8, medium=0.5),
    Basis.SIMILARITY: Marks(high=0.6, medium=0.45),
    Basis.SENTENCES: Marks(high=0.8, medium=0.5),
}


class Status(StrEnum):
    """What a concise answer is labelled with (S1-ASK-09)."""

    FOUND = "found"
    PARTLY_FOUND = "partly_found"
    NOT_FOUND = "not_found"


def judge(
    scores: Sequence[float],
    basis: Basis,
    marks: Marks,
    *,
    provisional: bool = False,
    warning: str = WARNING,
) -> Confidence:
    """Return the level of a result by the calibrated scores of its hits (S1-CNF-04).

    High: the best reaches the high mark and at least three the medium one. Medium: the
    best reaches the medium mark. Low: none does, or there is none; `warning` is then
    the reader's, in their language.
    """
    best = max(scores, default=0.0)
    level = Level.MEDIUM
    if best < marks.medium or not scores:
        level = Level.LOW
    elif best >= marks.high and (
        sum(score >= marks.medium for score in scores) >= ENOUGH_RESULTS
    ):
        level = Level.HIGH
    told = warning if level is Level.LOW else ""
    return Confidence(level, basis, best, provisional, told)


def status(scores: Sequence[float], marks: Marks) -> Status:
    """Return what the best calibrated score amounts to (S1-ASK-09).

    Found where it reaches the high mark, however many others do.
    """
    best = max(scores, default=0.0)
    if not scores or best < marks.medium:
        return Status.NOT_FOUND
    return Status.FOUND if best >= marks.high else Status.PARTLY_FOUND
