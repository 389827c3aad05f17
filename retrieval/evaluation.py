"""How well a search found what it should (S2-LOG-03): the textbook's figures. Pure.

Relevance is binary, a repeated passage counts at its first rank, and one of a question's
places is enough.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

NDCG_DEPTH = 10
RECALL_DEPTH = 5
# Figures are compared as they are shown.
DECIMALS = 4
MARKUP = re.compile(r"[*`_|\\#>]")
SPACE = re.compile(r"\s+")
PATH_MARK = " > "


def normal(text: str) -> str:
    """Return a text as it is compared: no case, white space, Markdown, Unicode form."""
    bare = MARKUP.sub("", unicodedata.normalize("NFKC", text))
    return SPACE.sub(" ", bare).strip().casefold()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question is answered: a source's path, and what narrows it down.

    A passage answers where its source has this path and its text holds `quote`. Without
    a quote the last heading of `section` must stand above the passage; without either,
    any passage of the source will do.
    """

    file: str
    section: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One ranked passage: its source's path, the headings above it, and its text."""

    file: str
    text: str
    clause_path: str = ""


def answers(entry: Entry, place: Place, identifier: str = "") -> bool:
    """Tell whether a passage stands at a place; `identifier` counts like the quote."""
    if unicodedata.normalize("NFC", entry.file) != unicodedata.normalize(
        "NFC", place.file
    ):
        return False
    if place.quote or identifier:
        text = normal(entry.text)
        words = (normal(place.quote), normal(identifier))
        return any(word and word in text for word in words)
    heading = normal(place.section.split(PATH_MARK)[-1])
    if not heading:
        return True
    above = normal(entry.clause_path.replace(PATH_MARK, " \n "))
    return re.search(rf"(?<![\w.]){re.escape(heading)}(?!\w|\.\w)", above) is not None


def expected(
    entries: Sequence[Entry], places: Collection[Place], identifier: str = ""
) -> list[bool]:
    """Tell of each ranked passage whether it answers the question."""
    return [
        any(answers(entry, place, identifier) for place in places) for entry in entries
    ]


def first_rank(
    entries: Sequence[Entry], places: Collection[Place], identifier: str = ""
) -> int | None:
    """Return the rank of the first passage that answers; repeats take no rank."""
    seen: set[tuple[str, str]] = set()
    hits = expected(entries, places, identifier)
    for entry, is_hit in zip(entries, hits, strict=True):
        seen.add((entry.file, normal(entry.text)))
        if is_hit:
            return len(seen)
    return None


def ndcg(ranks: Iterable[int], *, relevant: int = 1, depth: int = NDCG_DEPTH) -> float:
    """Return nDCG at a depth for the ranks of what was found of `relevant` items."""
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= depth)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(relevant, depth) + 1))
    return gain / ideal


def recall(
    ranks: Iterable[int], *, relevant: int = 1, depth: int = RECALL_DEPTH
) -> float:
    """Return the share of `relevant` items that stand within a depth."""
    return sum(1 for rank in ranks if rank <= depth) / relevant


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One question's outcome.

    `ndcg` and `recall` are None where no place is known; `refused` is None where the
    search did not judge its confidence.
    """

    is_answerable: bool
    ndcg: float | None = None
    recall: float | None = None
    refused: bool | None = None

    @property
    def decided_rightly(self) -> bool | None:
        """Whether it refused what the documents lack, and only that."""
        return None if self.refused is None else self.refused is not self.is_answerable


def judge_ranks(
    rank: int | None, *, is_answerable: bool, has_places: bool, refused: bool | None
) -> Judgement:
    """Return the outcome of a question whose first expected passage has this rank."""
    if not (is_answerable and has_places):
        return Judgement(is_answerable=is_answerable, refused=refused)
    ranks = [] if rank is None else [rank]
    return Judgement(
        is_answerable=is_answerable,
        ndcg=ndcg(ranks),
        recall=recall(ranks),
        refused=refused,
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a set, each 0 to 1, None where nothing could be divided.

    `ndcg` and `recall` are means over the `ranked` questions, refused ones included.
    `refusal_accuracy` is the share of right decisions of the `judged` ones,
    `refusal_recall` that of the unanswerable ones which were refused,
    `false_refusal_rate` that of the answerable ones which were.
    """

    ndcg: float | None
    recall: float | None
    refusal_accuracy: float | None
    refusal_recall: float | None
    false_refusal_rate: float | None
    ranked: int
    judged: int


def figures(judgements: Iterable[Judgement]) -> Figures:
    """Return the figures over all questions of a set."""
    every = list(judgements)
    judged = [each for each in every if each.refused is not None]
    absent = [bool(each.refused) for each in judged if not each.is_answerable]
    present = [bool(each.refused) for each in judged if each.is_answerable]
    gains = [each.ndcg for each in every if each.ndcg is not None]
    return Figures(
        ndcg=mean(gains),
        recall=mean([each.recall for each in every if each.recall is not None]),
        refusal_accuracy=mean([bool(each.decided_rightly) for each in judged]),
        refusal_recall=mean(absent),
        false_refusal_rate=mean(present),
        ranked=len(gains),
        judged=len(judged),
    )


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing."""
    return round(sum(values) / len(values), DECIMALS) if values else None


# --- Two configurations ---------------------------------------------------------


def change(before: Judgement, after: Judgement) -> float:
    """Return by how much a question got better (above 0) or worse (below).

    The places it gained in nDCG, and 1 for a decision that is right now and was not.
    """
    gained = 0.0
    if before.ndcg is not None and after.ndcg is not None:
        gained += after.ndcg - before.ndcg
    if before.decided_rightly is not None and after.decided_rightly is not None:
        gained += after.decided_rightly - before.decided_rightly
    return round(gained, DECIMALS)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs over the same questions: keys of those that changed, most first."""

    better: tuple[int, ...]
    worse: tuple[int, ...]
    same: int


def compare(
    before: Mapping[int, Judgement], after: Mapping[int, Judgement]
) -> Comparison:
    """Return which questions of both runs got better and which worse."""
    changes = {key: change(before[key], after[key]) for key in before if key in after}
    better = sorted(
        (key for key in changes if changes[key] > 0), key=lambda key: -changes[key]
    )
    worse = sorted(
        (key for key in changes if changes[key] < 0), key=changes.__getitem__
    )
    return Comparison(
        tuple(better), tuple(worse), len(changes) - len(better) - len(worse)
    )


# What must not fall; the others are told beside them.
GUARDED = ("ndcg", "recall", "refusal_accuracy")


def lowered(before: Figures, after: Figures) -> tuple[str, ...]:
    """Return which of the guarded figures fell, by name."""
    return tuple(
        field.name
        for field in fields(Figures)
        if field.name in GUARDED
        and (was := getattr(before, field.name)) is not None
        and (now := getattr(after, field.name)) is not None
        and now < was
    )
