"""What follows from how people went on after an answer (S1-LRN). Pure.

`noticed` reads questions in their order and says what each tells of the one before;
`lessons` says what signals teach. Both depend on nothing but what they are given, so
the same history always teaches the same.
"""

import hashlib
import json
from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import product
from typing import Final
from uuid import UUID

from retrieval.wordings import (
    are_close,
    are_same,
    is_plain,
    read,
    replacement,
)

# A question that comes later than this is no answer to what came before.
SOON: Final = timedelta(minutes=10)
LOOKBACK: Final = timedelta(days=30)
# So often something must have been seen within the lookback before it is learned.
LEAST_SEEN: Final = 2
# An unused rewrite counts half after so long, and goes when it counts less than this.
HALF_LIFE: Final = timedelta(days=90)
LEAST_STRENGTH: Final = 0.25
# So many failures, and more than half of all uses, switch an item off.
LEAST_FAILURES: Final = 2

# A word's key -> how often people chose which layer for it.
Leads = Mapping[str, Mapping[int, int]]


class Kind(StrEnum):
    """What somebody did after a question, which tells how an answer was (S1-LRN-01)."""

    REWORDED = "reworded"
    LAYER_SWITCH = "layer_switch"
    FOLLOW_UP = "follow_up"
    FEEDBACK = "feedback"
    ANSWERED = "answered"


class Lesson(StrEnum):
    """What a learned item does (S1-LRN-02)."""

    SYNONYM = "synonym"
    REWRITE = "rewrite"
    AFFINITY = "affinity"


class Source(StrEnum):
    """What taught it; what an earlier product learned was imported."""

    REWORDED = "reworded"
    RATED = "rated"
    CHOSEN = "chosen"
    MODEL = "model"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Asked:
    """One ask or search of the history.

    `chain` is what it is part of: a conversation, or a person's own searches; None
    where nobody knows. `chosen` are the layers that its sender named, `layer` is that
    of the best passage. `is_weak` tells that nothing, or nothing likely, was found.
    `searches` are those that a language model made of the question.
    """

    id: UUID
    chain: Hashable
    at: datetime
    text: str
    bases: frozenset[int]
    chosen: frozenset[int] = frozenset()
    layer: int | None = None
    is_weak: bool = False
    searches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rating:
    """What somebody said of an answer; `layer` and `query` are what they would take."""

    is_helpful: bool
    layer: int | None = None
    query: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Noticed:
    """One thing that somebody did after a question, and then asked.

    `layer` is what it speaks for; `bases` are all that either was asked over.
    """

    at: datetime
    kind: Kind
    first: UUID
    second: UUID | None = None
    layer: int | None = None
    bases: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Scope:
    """Where something holds: in a layer, or without one, and for whom.

    It holds for whoever may search all of `bases`.
    """

    layer: int | None
    bases: frozenset[int]


@dataclass(frozen=True, slots=True)
class Subject:
    """What something learned says, wherever it holds; `term` and `value` as written."""

    lesson: str
    key: str
    term: str
    value: tuple[str, ...]
    scope: Scope
    is_model: bool

    def covers(self, other: "Subject") -> bool:
        """Tell whether what was decided of this one for good holds of another one too.

        It does of the same in other words, asked over whatever lists: those change with
        every grant. What has no layer stands for the same in each, and what has one
        for the same without, where that would reach the layer.
        """
        here, there = self.scope, other.scope
        is_in_reach = there.layer is None and bool(here.bases & there.bases)
        return (
            (self.lesson, self.is_model) == (other.lesson, other.is_model)
            and (here.layer in {None, there.layer} or is_in_reach)
            and (self.key == other.key or are_same(read(self.term), read(other.term)))
            and (self.is_model or say_the_same(self.value, other.value))
        )


def say_the_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether two lists of searches have the same content words, each with each."""
    return len(one) == len(other) and all(
        first == second or are_same(read(first), read(second))
        for first, second in zip(one, other, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Taught:
    """Something that signals teach, and they as its evidence, oldest first.

    `term` and `value` are as written last. `is_enough` tells that it was seen often
    enough to be learned anew; what is learned already grows by less.
    """

    lesson: Lesson
    key: str
    term: str
    value: tuple[str, ...]
    scope: Scope
    source: Source
    evidence: tuple[Noticed, ...] = ()

    @property
    def is_enough(self) -> bool:
        """Whether it was seen often enough (S1-LRN-04)."""
        return len(self.evidence) >= LEAST_SEEN

    @property
    def digest(self) -> str:
        """What makes it this lesson and no other."""
        return identity(
            self.lesson, self.key, self.value, self.scope, is_model=self.is_model
        )

    @property
    def subject(self) -> Subject:
        """What it says, wherever it holds."""
        return Subject(
            self.lesson, self.key, self.term, self.value, self.scope, self.is_model
        )

    @property
    def is_model(self) -> bool:
        """Whether a language model worded it, which words it anew each time."""
        return self.source is Source.MODEL


def identity(
    lesson: str,
    key: str,
    value: Sequence[str],
    scope: Scope,
    *,
    is_model: bool = False,
) -> str:
    """Return the SHA-256 of what makes a learned item this one and no other.

    What is searched for too counts by its content words: another ending, or another
    little word, is no other item.
    """
    said = None if is_model else [read(each).digest for each in value]
    content = json.dumps([str(lesson), key, said, scope.layer, sorted(scope.bases)])
    return hashlib.sha256(content.encode()).hexdigest()


# --- What somebody did ---------------------------------------------------------


def noticed(history: Iterable[Asked]) -> list[Noticed]:
    """Return what each question tells of the one before it in its chain.

    The history may come in any order and in parts that overlap: a signal depends on
    its two questions alone, which follow each other within `SOON`.
    """
    chains: dict[Hashable, list[Asked]] = {}
    found: set[Noticed] = set()
    for each in sorted(history, key=lambda row: (row.at, row.id)):
        if each.searches and not each.is_weak:
            found.add(Noticed(each.at, Kind.ANSWERED, each.id, None, None, each.bases))
        if each.chain is not None:
            chains.setdefault(each.chain, []).append(each)
    for chain in chains.values():
        before: Asked | None = None
        for each in chain:
            if before is not None and each.at - before.at <= SOON:
                found.update(between(before, each))
            before = each
    return sorted(found, key=order)


def between(first: Asked, second: Asked) -> Iterator[Noticed]:
    """Yield what a question tells of the one right before it."""
    one, other = read(first.text), read(second.text)
    bases = first.bases | second.bases
    is_close = are_close(one, other)
    if is_close and second.chosen and second.chosen != first.chosen:
        layer = next(iter(second.chosen)) if len(second.chosen) == 1 else None
        yield Noticed(second.at, Kind.LAYER_SWITCH, first.id, second.id, layer, bases)
    if are_same(one, other):
        return
    kind = Kind.REWORDED if is_close else Kind.FOLLOW_UP
    yield Noticed(second.at, kind, first.id, second.id, second.layer, bases)


def order(signal: Noticed) -> tuple[datetime, str, str, str]:
    """Return what signals are sorted by: never two alike."""
    return signal.at, signal.kind, str(signal.first), str(signal.second)


# --- What it teaches -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class History:
    """Questions and ratings by id, as signals name them.

    `base_of` gives the knowledge base of a layer that still is.
    """

    asked: Mapping[UUID, Asked]
    ratings: Mapping[UUID, Rating]
    base_of: Mapping[int, int]

    def is_weak(self, asked: Asked) -> bool:
        """Tell whether an answer did not help; who says so knows better than a score."""
        rating = self.ratings.get(asked.id)
        return asked.is_weak if rating is None else not rating.is_helpful

    def scope(self, layer: int | None, bases: frozenset[int]) -> Scope:
        """Return where words hold: in the layer, if it was among what was asked.

        Words that somebody chose with all of these before them may come from any, so
        they are for nobody with less.
        """
        base = self.base_of.get(layer) if layer is not None else None
        return Scope(layer if base is not None and base in bases else None, bases)


def lessons(
    signals: Iterable[Noticed], history: History, *, now: datetime
) -> list[Taught]:
    """Return what the signals of the lookback teach, seen often enough or not."""
    seen = sorted(
        {each for each in signals if now - LOOKBACK <= each.at <= now}, key=order
    )
    reworded = {each.first for each in seen if each.kind is Kind.REWORDED}
    found: dict[str, Taught] = {}
    for signal in seen:
        for said in taught_by(signal, history, reworded):
            if said.scope.bases:
                before = found.get(said.digest)
                earlier = () if before is None else before.evidence
                found[said.digest] = replace(said, evidence=(*earlier, signal))
    return list(found.values())


def taught_by(
    signal: Noticed, history: History, reworded: set[UUID]
) -> Iterator[Taught]:
    """Yield what one signal speaks for; a question without words teaches nothing."""
    first = history.asked.get(signal.first)
    if first is None or not read(first.text).keys:
        return
    if signal.second is None:
        yield from taught_by_one(signal, first, history, reworded)
        return
    second = history.asked.get(signal.second)
    if second is not None:
        yield from taught_by_two(signal, first, second, history)


def taught_by_one(
    signal: Noticed, first: Asked, history: History, reworded: set[UUID]
) -> Iterator[Taught]:
    """Yield what a rating speaks for, or an answer that nobody asked for again."""
    if signal.kind is Kind.FEEDBACK:
        yield from taught_by_rating(first, history)
    is_left = first.id not in reworded and not history.is_weak(first)
    if signal.kind is Kind.ANSWERED and first.searches and is_left:
        yield by_model(first)


def taught_by_two(
    signal: Noticed, first: Asked, second: Asked, history: History
) -> Iterator[Taught]:
    """Yield what another wording speaks for, or another layer."""
    if signal.kind is Kind.REWORDED:
        yield from taught_by_rewording(signal, first, second, history)
    is_better = signal.kind is Kind.LAYER_SWITCH and not history.is_weak(second)
    if is_better:
        yield from taught_by_choice(signal.layer, signal.bases, first, history)


def taught_by_rewording(
    signal: Noticed, first: Asked, second: Asked, history: History
) -> Iterator[Taught]:
    """Yield a synonym, and a rewrite where it brought what the first did not."""
    one, other = read(first.text), read(second.text)
    scope = history.scope(signal.layer, signal.bases)
    new = replacement(one, other)
    if new is not None:
        yield Taught(
            Lesson.SYNONYM, new.key, new.word, (new.by,), scope, Source.REWORDED
        )
    is_better = history.is_weak(first) and not history.is_weak(second)
    if is_better and are_close(one, other):
        value = (second.text,)
        yield Taught(
            Lesson.REWRITE, one.digest, first.text, value, scope, Source.REWORDED
        )


def taught_by_rating(first: Asked, history: History) -> Iterator[Taught]:
    """Yield what a person would have asked, or where, and what a model found well."""
    rating = history.ratings.get(first.id)
    if rating is None:
        return
    wording, better = read(first.text), read(rating.query)
    if better.keys and not are_same(wording, better):
        scope = history.scope(rating.layer, first.bases)
        value = (rating.query,)
        yield Taught(
            Lesson.REWRITE, wording.digest, first.text, value, scope, Source.RATED
        )
    if rating.layer is not None:
        yield from taught_by_choice(rating.layer, first.bases, first, history)
    if rating.is_helpful and first.searches:
        yield by_model(first)


def taught_by_choice(
    layer: int | None, bases: frozenset[int], first: Asked, history: History
) -> Iterator[Taught]:
    """Yield that a question's words lead to the layer that a person chose for it."""
    base = history.base_of.get(layer) if layer is not None else None
    if base is None or base not in bases:
        return
    # A word alone, which whoever is led by it typed too.
    scope = Scope(layer, frozenset({base}))
    wording = read(first.text)
    for word, key in zip(wording.words, wording.keys, strict=True):
        if is_plain(word):
            yield Taught(Lesson.AFFINITY, key, word, (), scope, Source.CHOSEN)


def by_model(asked: Asked) -> Taught:
    """Return the searches that a model made, for whoever asks over the same."""
    return Taught(
        Lesson.REWRITE,
        read(asked.text).digest,
        asked.text,
        asked.searches,
        Scope(None, asked.bases),
        Source.MODEL,
    )


# --- What becomes of it --------------------------------------------------------


def strength(used: datetime, *, now: datetime) -> float:
    """Return what a rewrite counts that was last used, seen or learned at a moment."""
    idle = max(now - used, timedelta(0))
    return float(0.5 ** (idle / HALF_LIFE))


def is_stale(used: datetime, *, now: datetime) -> bool:
    """Tell whether a rewrite has not been used for so long that it goes."""
    return strength(used, now=now) < LEAST_STRENGTH


def has_failed(failures: int, uses: int) -> bool:
    """Tell whether an item failed those whose searches it was added to.

    Both are counted over the same time.
    """
    return failures >= LEAST_FAILURES and failures * 2 > uses


def shares(
    leads: Collection[Leads], words: Sequence[frozenset[str]]
) -> dict[int, float]:
    """Return how far a question's words lead to each layer, 0 to 1.

    `leads` are those of each knowledge base; `words` are the keys of each word of the
    question. A word that leads nowhere speaks for no layer.
    """
    found: dict[int, float] = {}
    for keys in words:
        chosen: dict[int, int] = {}
        for key, each in product(keys, leads):
            for layer, count in each.get(key, {}).items():
                chosen[layer] = chosen.get(layer, 0) + count
        total = sum(chosen.values())
        for layer, count in chosen.items():
            found[layer] = found.get(layer, 0.0) + count / total / len(words)
    return found
