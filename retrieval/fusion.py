"""Weighted reciprocal rank fusion of the branches' rankings (R1). Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval.results import Branch, BranchRank


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of a branch's ranking: a passage and the branch's raw score of it."""

    passage_id: int
    score: float
    relaxed: bool = False


@dataclass(frozen=True, slots=True)
class Weights:
    """How much a place in each branch's ranking is worth.

    `relaxed` stands in for `keywords` where a hit does not hold every word of the
    query (R15). `k` damps the difference between neighbouring ranks.
    """

    meaning: float = 0.7
    keywords: float = 0.3
    codes: float = 1.0
    relaxed: float = 0.1
    k: int = 60

    def of(self, branch: Branch, *, relaxed: bool) -> float:
        """Return the weight of one row of a branch's ranking."""
        if branch is Branch.KEYWORDS:
            return self.relaxed if relaxed else self.keywords
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
    count: int,
    keyword_slots: int = 0,
) -> list[Fused]:
    """Return the best `count` passages of all rankings, best first.

    Score = sum of weight / (k + rank) over the branches that found the passage; no
    score is too low (R2). Rows without a finite score are passed over, and a passage
    counts at its first place in a ranking. Equal scores go by the ranks in meaning,
    keywords and codes, then by id, so that the order is always the same.

    The best `keyword_slots` passages of the keyword branch that hold every word keep a
    place in the result, its last ones if they earned no better (S1-HYB-03).
    """
    found: dict[int, dict[Branch, BranchRank]] = {}
    for branch in Branch:
        for row in ranked(rankings.get(branch, ())):
            passage_id, rank = row
            found.setdefault(passage_id, {})[branch] = rank
    fused = sorted(
        (
            Fused(passage_id, score(branches, weights), branches)
            for passage_id, branches in found.items()
        ),
        key=order,
    )
    kept = reserved(fused, min(keyword_slots, count))
    first = [row for row in fused[:count] if row.passage_id not in kept]
    chosen = {row.passage_id for row in first[: count - len(kept)]} | kept
    return [row for row in fused if row.passage_id in chosen]


def ranked(ranking: Sequence[Candidate]) -> list[tuple[int, BranchRank]]:
    """Return (passage id, rank) of a ranking's usable rows, each passage once."""
    ranks: dict[int, BranchRank] = {}
    for row in ranking:
        if math.isfinite(row.score) and row.passage_id not in ranks:
            rank = BranchRank(len(ranks) + 1, row.score, relaxed=row.relaxed)
            ranks[row.passage_id] = rank
    return list(ranks.items())


def score(branches: Mapping[Branch, BranchRank], weights: Weights) -> float:
    """Return the sum of weight / (k + rank)."""
    return sum(
        weights.of(branch, relaxed=rank.relaxed) / (weights.k + rank.rank)
        for branch, rank in branches.items()
    )


def order(row: Fused) -> tuple[float, ...]:
    """Return the key that sorts the best passage first."""
    ranks = (row.branches.get(branch) for branch in Branch)
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
