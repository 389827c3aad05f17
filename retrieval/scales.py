"""The scale of a model's raw scores, and how it is fitted (D12). Pure.

A model's scores mean nothing by themselves: e5's cosines all lie between 0.7 and 1. A
scale maps them to where the marks of S1 hold, by a logistic curve through two points:

- the *medium* mark, where twice as large a share of the answerable questions is refused
  as of the unanswerable ones is answered (a wrong answer is worse than none), or, where
  that would refuse more, the score that 4.5 in 100 answerable ones miss. The promise is
  5 in 100; the difference is for questions that were not measured. Between two groups
  that lie far apart the mark so stands in the middle, and holds as well for questions
  that are worded more freely than those it was fitted on;
- the *high* mark, which 2 in 100 unanswerable questions reach, or, where that is
  higher, the score that 4.5 in 100 answerable ones miss: beside a medium mark in the
  middle of a gap, "found" stays for what scores as answers mostly do.

Where a language has enough questions, its own medium point is moved onto the common
one, by the language that is guessed of the query. Where query and passage are in
different languages, scores lie lower by so much that one mark cannot hold for both:
they are moved up to where as many answerable questions are refused as unanswerable ones
are answered.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from retrieval.confidence import MARKS, Marks
from retrieval.results import Basis

Raws = npt.NDArray[np.float64]

MISSED_ANSWERABLE = 0.045
WRONG_ANSWER_COSTS = 2.0
REACHED_BY_UNANSWERABLE = 0.02
# With fewer questions a quantile says little.
LEAST_QUESTIONS = 50
# A steeper curve would turn the noise of a score into a level.
LEAST_DISTANCE = 0.02


class FitError(Exception):
    """A scale that cannot be fitted; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The best raw score for one question, and what is known of the pair."""

    raw: float
    language: str = ""
    crosses: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps raw scores to 0 to 1, where the marks of `basis` hold.

    `medium` and `high` are the raw scores at the marks. `offsets` are added to a raw
    score by the query's language, `crossing` where the passage is in another one.
    `provisional`: nobody has fitted it.
    """

    basis: Basis
    medium: float
    high: float
    offsets: Mapping[str, float] = field(default_factory=dict)
    crossing: float = 0.0
    provisional: bool = False

    @property
    def marks(self) -> Marks:
        """The marks that hold on this scale."""
        return MARKS[self.basis]

    @property
    def slope(self) -> float:
        """What a raw score adds to the logarithm of the odds."""
        low, high = logit(self.marks.medium), logit(self.marks.high)
        return (high - low) / (self.high - self.medium)

    def probability(
        self, raw: float, language: str = "", *, crosses: bool = False
    ) -> float:
        """Return a raw score on the scale of the marks."""
        shift = self.crossing if crosses else self.offsets.get(language, 0.0)
        low = logit(self.marks.medium)
        exponent = low + self.slope * (raw + shift - self.medium)
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, exponent))))


def unfitted(basis: Basis) -> Scale:
    """Return the scale of a model that nobody has calibrated: the marks as they are."""
    marks = MARKS[basis]
    return Scale(basis, medium=marks.medium, high=marks.high, provisional=True)


def logit(share: float) -> float:
    """Return the logarithm of the odds."""
    return math.log(share / (1 - share))


def fit(
    basis: Basis,
    answerable: Sequence[Observation],
    unanswerable: Sequence[Observation],
) -> Scale:
    """Fit a scale.

    Raises FitError where there are too few questions of one kind.
    """
    same = [each for each in answerable if not each.crosses]
    refused = [each for each in unanswerable if not each.crosses]
    if len(same) < LEAST_QUESTIONS or len(refused) < LEAST_QUESTIONS:
        raise FitError(
            f"A calibration needs at least {LEAST_QUESTIONS} answerable and as many "
            f"unanswerable questions in the language of the documents; there are "
            f"{len(same)} and {len(refused)}."
        )
    groups = by_language(same)
    others = by_language(refused)
    points = {
        name: medium_point(group, others.get(name, ()))
        for name, group in groups.items()
    }
    medium = (
        sum(points.values()) / len(points) if points else medium_point(same, refused)
    )
    offsets = {name: medium - point for name, point in points.items()}
    reached = moved_quantile(refused, offsets, 1 - REACHED_BY_UNANSWERABLE)
    missed = moved_quantile(same, offsets, MISSED_ANSWERABLE)
    return Scale(
        basis,
        medium=medium,
        high=max(reached, missed, medium + LEAST_DISTANCE),
        offsets=offsets,
        crossing=fit_crossing(medium, answerable, unanswerable),
    )


def moved_quantile(
    observed: Sequence[Observation], offsets: Mapping[str, float], share: float
) -> float:
    """Return a quantile of raw scores on the common scale of all languages."""
    moved = [each.raw + offsets.get(each.language, 0.0) for each in observed]
    return float(np.quantile(moved, share))


def by_language(observed: Sequence[Observation]) -> dict[str, list[Observation]]:
    """Return the languages that have enough questions, with them."""
    groups: dict[str, list[Observation]] = {}
    for each in observed:
        groups.setdefault(each.language, []).append(each)
    return {
        name: group
        for name, group in groups.items()
        if name and len(group) >= LEAST_QUESTIONS
    }


def medium_point(
    answerable: Sequence[Observation], unanswerable: Sequence[Observation]
) -> float:
    """Return the raw score between some questions that few enough answerable miss."""
    right = np.sort([each.raw for each in answerable])
    missed = float(np.quantile(right, MISSED_ANSWERABLE))
    if len(unanswerable) < LEAST_QUESTIONS:
        return missed
    wrong = np.sort([each.raw for each in unanswerable])
    return min(missed, balance(right, wrong, cost=WRONG_ANSWER_COSTS))


def fit_crossing(
    medium: float,
    answerable: Sequence[Observation],
    unanswerable: Sequence[Observation],
) -> float:
    """Return what is added between languages; 0.0 where too few questions tell."""
    right = np.sort([each.raw for each in answerable if each.crosses])
    wrong = np.sort([each.raw for each in unanswerable if each.crosses])
    if min(len(right), len(wrong)) < LEAST_QUESTIONS:
        return 0.0
    return medium - balance(right, wrong)


def balance(right: Raws, wrong: Raws, *, cost: float = 1.0) -> float:
    """Return the score that a share of `right` misses which is `cost` times the share of
    `wrong` that reaches it; where a gap parts the two, its middle. Both are in order.
    """
    every = np.unique(np.concatenate([right, wrong]))
    between = np.concatenate([every[:1], (every[1:] + every[:-1]) / 2, every[-1:]])
    refused = np.searchsorted(right, between) / len(right)
    answered = 1 - np.searchsorted(wrong, between) / len(wrong)
    even = np.abs(refused - cost * answered)
    best = between[even <= even.min() + 1e-12]
    return float((best[0] + best[-1]) / 2)


@dataclass(frozen=True, slots=True)
class Refusals:
    """What a scale's medium mark refuses: of answerable questions, of the others."""

    false_refusal_rate: float
    recall: float


def refusals(
    scale: Scale,
    answerable: Sequence[Observation],
    unanswerable: Sequence[Observation],
) -> Refusals:
    """Return which shares of the questions a scale refuses."""
    return Refusals(
        false_refusal_rate=share_refused(scale, answerable),
        recall=share_refused(scale, unanswerable),
    )


def share_refused(scale: Scale, observed: Sequence[Observation]) -> float:
    """Return the share of some questions below the medium mark, 0.0 of none."""
    below = [
        scale.probability(each.raw, each.language, crosses=each.crosses)
        < scale.marks.medium
        for each in observed
    ]
    return sum(below) / len(below) if below else 0.0


def held_out(
    basis: Basis,
    answerable: Sequence[Observation],
    unanswerable: Sequence[Observation],
) -> Refusals:
    """Fit on each half of the questions and return what that refuses of the other.

    Questions between languages are left out: their marks make no promise of their own.

    Raises FitError where a half has too few questions.
    """
    answerable = [each for each in answerable if not each.crosses]
    unanswerable = [each for each in unanswerable if not each.crosses]
    both = []
    for half in (0, 1):
        scale = fit(basis, answerable[half::2], unanswerable[half::2])
        both.append(
            refusals(scale, answerable[1 - half :: 2], unanswerable[1 - half :: 2])
        )
    return Refusals(
        false_refusal_rate=sum(each.false_refusal_rate for each in both) / 2,
        recall=sum(each.recall for each in both) / 2,
    )
