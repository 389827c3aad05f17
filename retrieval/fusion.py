"""Fusion of the branches' rankings into one (R1): by rank, or by score. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from retrieval.results import Branch, BranchRank

BRANCHES = tuple(Branch)


class Fusion(StrEnum):
    """How the branches' rankings become one (R1).

    `rrf` adds weight / (k + rank). `weighted_sum` adds weight × score: the cosine of
    each passage, and keyword scores and counts of codes by the best of their ranking.
    """

    RRF = "rrf"
    WEIGHTED_SUM = "weighted_sum"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of a branch's ranking: a passage and the branch's raw score of it.

    `share` (0 to 1) says how much of the query a relaxed keyword hit holds,
    `without_accents` that it holds a word only in other accents (R14).
    """

    passage_id: int
    score: float
    relaxed: bool = False
    share: float = 1.0
    without_accents: bool = False


@dataclass(frozen=True, slots=True)
class Weights:
    """How much a place in each branch's ranking is worth.

    `relaxed`, times the square of the share of the query that the hit holds, stands in
    for `keywords` where a hit does not hold every word (R15): a name or a number that
    stands in another language's text helps a little, one frequent word hardly at all.
    `k` damps the difference between neighbouring ranks.
    """

    meaning: float = 0.7
    keywords: float = 0.3
    codes: float = 1.0
    relaxed: float = 0.3
    k: int = 60

    def of(self, branch: Branch, row: Candidate) -> float:
        """Return the weight of one row of a branch's ranking."""
        if branch is Branch.KEYWORDS:
            return self.relaxed * row.share**2 if row.relaxed else self.keywords
        return self.meaning if branch is Branch.MEANING else self.codes


@dataclass(frozen=True, slots=True)
class Fused:
    """A passage with its fused score and its rank in each branch that found it."""

    passage_id: int
    score: float
    branches: Mapping[Branch, BranchRank]


def fuse(
    rankings: Mapping[Branch, Sequence[Candidate]],
    weights: Weights,
    *,
    fusion: Fusion = Fusion.RRF,
    cosines: Mapping[int, float] | None = None,
) -> list[Fused]:
    """Return the passages of all rankings, best first.

    Score = sum of weight / (k + rank) over the branches that found the passage; no
    score is too low (R2). Rows without a finite score are passed over, and a passage
    counts at its first place in a ranking. Rows of equal score share a rank. Equal sums
    go by the ranks in meaning, keywords and codes, then by id, so that the order is
    always the same.

    As a weighted sum, `cosines` gives the similarity of passages that the meaning
    branch did not find; one without any counts 0 (S1-EMB-01).
    """
    found: dict[int, dict[Branch, BranchRank]] = {}
    scores: dict[int, float] = {}
    for branch in BRANCHES:
        rows = ranked(rankings.get(branch, ()))
        best = max((row.score for row, _rank in rows), default=0.0)
        for row, rank in rows:
            pk = row.passage_id
            found.setdefault(pk, {})[branch] = BranchRank(
                rank,
                row.score,
                relaxed=row.relaxed,
                share=row.share,
                without_accents=row.without_accents,
            )
            earned = weights.of(branch, row)
            if fusion is Fusion.RRF:
                earned /= weights.k + rank
            elif branch is Branch.MEANING:
                earned *= row.score
            else:
                earned *= row.score / best if best > 0 else 0.0
            scores[pk] = scores.get(pk, 0.0) + earned
    if fusion is Fusion.WEIGHTED_SUM:
        for pk, cosine in (cosines or {}).items():
            if pk in found and Branch.MEANING not in found[pk]:
                scores[pk] += weights.meaning * cosine
    return sorted(
        (Fused(pk, scores[pk], branches) for pk, branches in found.items()), key=order
    )


def shortlist(
    fused: Sequence[Fused], *, count: int, keyword_slots: int = 0
) -> list[Fused]:
    """Return the best `count` of the fused passages, best first.

    The best `keyword_slots` passages of the keyword branch that hold every word keep a
    place in the result, its last ones if they earned no better (S1-HYB-03).
    """
    kept = reserved(fused, min(keyword_slots, count))
    first = [row.passage_id for row in fused if row.passage_id not in kept]
    chosen = kept.union(first[: count - len(kept)])
    return [row for row in fused if row.passage_id in chosen]


def ranked(ranking: Sequence[Candidate]) -> list[tuple[Candidate, int]]:
    """Return a ranking's usable rows with their ranks, each passage once."""
    rows: dict[int, tuple[Candidate, int]] = {}
    last: Candidate | None = None
    rank = 0
    for row in ranking:
        if not math.isfinite(row.score) or row.passage_id in rows:
            continue
        if last is None or row.score != last.score:
            rank = len(rows) + 1
        rows[row.passage_id] = (row, rank)
        last = row
    return list(rows.values())


def order(row: Fused) -> tuple[float, ...]:
    """Return the key that sorts the best passage first."""
    ranks = (row.branches.get(branch) for branch in BRANCHES)
    places = (math.inf if rank is None else rank.rank for rank in ranks)
    return (-row.score, *places, row.passage_id)


def reserved(fused: Sequence[Fused], slots: int) -> set[int]:
    """Return the passages that keep a place for their words."""
    matches = [
        (rank.rank, row.passage_id)
        for row in fused
        if (rank := row.branches.get(Branch.KEYWORDS)) and not rank.relaxed
    ]
    return {passage_id for _rank, passage_id in sorted(matches)[:slots]}
