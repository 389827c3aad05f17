"""Fusion: what each branch's ranking is worth, for any rankings at all."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.fusion import Candidate, Fused, Fusion, Weights, fuse, shortlist
from retrieval.results import Branch

finite = st.floats(-1, 1)
any_score = st.one_of(finite, st.just(math.nan), st.just(math.inf))
candidates = st.lists(
    st.builds(
        Candidate,
        passage_id=st.integers(1, 12),
        score=any_score,
        relaxed=st.booleans(),
        share=st.floats(0, 1),
    ),
    max_size=10,
)
rankings = st.dictionaries(st.sampled_from(Branch), candidates)
weights = st.builds(
    Weights,
    meaning=st.floats(0, 2),
    keywords=st.floats(0, 2),
    codes=st.floats(0, 2),
    relaxed=st.floats(0, 2),
    k=st.integers(1, 100),
)


def ranking(*ids: int) -> list[Candidate]:
    """Return a ranking of these passages with falling scores."""
    return [Candidate(pk, 1 - place / 100) for place, pk in enumerate(ids)]


@pytest.mark.req("R1", "S3-HYB-01", "S1-HYB-02")
def test_score_is_the_sum_of_weight_by_k_plus_rank() -> None:
    """Three rankings of one passage earn their three shares."""
    fused = fuse(
        {
            Branch.MEANING: ranking(1, 2),
            Branch.KEYWORDS: ranking(2, 1),
            Branch.CODES: ranking(3),
        },
        Weights(),
    )
    by_id = {row.passage_id: row.score for row in fused}
    assert by_id[1] == pytest.approx(0.7 / 61 + 0.3 / 62)
    assert by_id[2] == pytest.approx(0.7 / 62 + 0.3 / 61)
    assert by_id[3] == pytest.approx(1.0 / 61)
    assert [row.passage_id for row in fused] == [3, 1, 2]


@pytest.mark.req("S3-HYB-06", "R2")
@given(rankings, weights, st.integers(1, 30))
def test_only_the_count_limits_a_result(
    rankings: dict[Branch, list[Candidate]], weights: Weights, count: int
) -> None:
    """Every passage with a usable score comes back until the count is reached."""
    usable = {
        row.passage_id
        for rows in rankings.values()
        for row in rows
        if math.isfinite(row.score)
    }
    fused = shortlist(fuse(rankings, weights), count=count)
    assert len(fused) == min(count, len(usable))
    assert {row.passage_id for row in fused} <= usable


@pytest.mark.req("REL-X7")
@given(rankings, weights, st.integers(1, 30), st.integers(0, 3))
def test_order_is_by_score_and_always_the_same(
    rankings: dict[Branch, list[Candidate]], weights: Weights, count: int, slots: int
) -> None:
    """Scores fall, none is NaN, and the order of the branches given does not matter."""

    def best(given: dict[Branch, list[Candidate]]) -> list[Fused]:
        return shortlist(fuse(given, weights), count=count, keyword_slots=slots)

    fused = best(rankings)
    scores = [row.score for row in fused]
    assert all(math.isfinite(score) for score in scores)
    assert scores == sorted(scores, reverse=True)
    turned = dict(reversed(list(rankings.items())))
    assert best(turned) == fused


@given(rankings, weights)
def test_ranks_count_from_one_and_equal_scores_share_one(
    rankings: dict[Branch, list[Candidate]], weights: Weights
) -> None:
    """A rank says how many usable rows of the branch stand before."""
    fused = fuse(rankings, weights)
    for branch in Branch:
        ranks = sorted(
            (row.branches[branch].rank, row.branches[branch].score)
            for row in fused
            if branch in row.branches
        )
        assert not ranks or ranks[0][0] == 1
        assert all(1 <= rank <= len(ranks) for rank, _score in ranks)


def test_passages_with_the_same_codes_leave_the_order_to_the_others() -> None:
    """A code that many passages hold does not order them."""
    codes = [Candidate(pk, 1) for pk in (1, 2, 3)]
    fused = fuse({Branch.CODES: codes, Branch.MEANING: ranking(3, 2, 1)}, Weights())
    assert [row.passage_id for row in fused] == [3, 2, 1]
    assert {row.branches[Branch.CODES].rank for row in fused} == {1}


@pytest.mark.req("S1-HYB-03")
def test_best_full_text_match_keeps_a_place() -> None:
    """Found by its words alone it would come last, and has the last place at least."""
    found = {
        Branch.MEANING: ranking(*range(1, 11)),
        Branch.KEYWORDS: ranking(99, 98),
    }
    fused = fuse(found, Weights())
    with_slot = shortlist(fused, count=5, keyword_slots=1)
    assert [row.passage_id for row in with_slot] == [1, 2, 3, 4, 99]
    without = shortlist(fused, count=5)
    assert [row.passage_id for row in without] == [1, 2, 3, 4, 5]


@given(rankings, weights, st.integers(1, 5), st.integers(0, 5))
def test_slots_never_change_how_many_come_back(
    rankings: dict[Branch, list[Candidate]], weights: Weights, count: int, slots: int
) -> None:
    """A kept place is taken from another passage, and order stays by score."""
    fused = fuse(rankings, weights)
    plain = shortlist(fused, count=count)
    slotted = shortlist(fused, count=count, keyword_slots=slots)
    assert len(slotted) == len(plain)
    best = sorted(
        (rank.rank, row.passage_id)
        for row in fused
        if (rank := row.branches.get(Branch.KEYWORDS)) and not rank.relaxed
    )[: min(slots, count)]
    assert {pk for _rank, pk in best} <= {row.passage_id for row in slotted}


@pytest.mark.req("R15")
@given(st.floats(0, 1), st.floats(0, 1))
def test_relaxed_hit_weighs_by_what_it_holds(share: float, weight: float) -> None:
    """Its own weight stands in for that of the keywords, and nought is allowed."""
    row = Candidate(1, share, relaxed=True, share=share)
    (fused,) = fuse({Branch.KEYWORDS: [row]}, Weights(relaxed=weight))
    assert fused.score == pytest.approx(weight * share**2 / 61)
    assert fused.branches[Branch.KEYWORDS].relaxed


@given(st.lists(st.integers(1, 50), unique=True, min_size=1, max_size=20), weights)
def test_rankings_that_agree_are_not_disturbed(
    ids: list[int], weights: Weights
) -> None:
    """Where meaning and words agree on an order, it is the result's."""
    agreed = {Branch.MEANING: ranking(*ids), Branch.KEYWORDS: ranking(*ids)}
    fused = fuse(agreed, weights)
    assert [row.passage_id for row in fused] == ids


@pytest.mark.req("R1", "S2-HYB-01")
def test_weighted_sum_adds_cosine_and_normalised_keyword_score() -> None:
    """0.7 x cosine + 0.3 x keyword score by the best of them; words alone have both."""
    fused = fuse(
        {
            Branch.MEANING: [Candidate(1, 0.9), Candidate(2, 0.8)],
            Branch.KEYWORDS: [Candidate(2, 4.0), Candidate(3, 1.0)],
        },
        Weights(),
        fusion=Fusion.WEIGHTED_SUM,
        cosines={3: 0.5},
    )
    by_id = {row.passage_id: row.score for row in fused}
    assert by_id[1] == pytest.approx(0.7 * 0.9)
    assert by_id[2] == pytest.approx(0.7 * 0.8 + 0.3)
    assert by_id[3] == pytest.approx(0.7 * 0.5 + 0.3 * 0.25)
    assert [row.passage_id for row in fused] == [2, 1, 3]
    assert fused[0].branches[Branch.KEYWORDS].score == 4.0


@pytest.mark.req("S1-EMB-01")
def test_passage_without_a_vector_counts_no_similarity() -> None:
    """In a weighted sum its words alone speak for it."""
    (fused,) = fuse(
        {Branch.KEYWORDS: [Candidate(3, 1.0)]}, Weights(), fusion=Fusion.WEIGHTED_SUM
    )
    assert fused.score == pytest.approx(0.3)
