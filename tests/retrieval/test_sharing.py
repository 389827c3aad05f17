"""How named clauses share the room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.budget import cut_at_word
from retrieval.sharing import HEAD, shares

WORDS = "word " * 200


@pytest.mark.req("S1-MIS-02", "S1-MIS-03")
def test_what_one_clause_leaves_goes_to_the_next_ones() -> None:
    short, long = "x" * 150, WORDS[:900]
    assert shares([short, long], 1_000) == [150, len(cut_at_word(long, 850))]
    assert shares([short, short, short], 450) == [150, 150, 150]


@pytest.mark.req("S1-MIS-04")
def test_a_clause_that_no_longer_fits_is_left_out_with_all_after_it() -> None:
    assert len(shares([WORDS, WORDS, WORDS], 450)) == 2
    assert len(shares(["x" * 190, "y" * 190, "z"], 200)) == 1


@pytest.mark.req("S1-MIS-01")
def test_the_first_always_comes_cut_at_a_word() -> None:
    (length,) = shares([WORDS, WORDS], 52)
    assert 0 < length <= 52
    assert WORDS[:length].endswith("word")


@given(
    st.lists(
        st.integers(1, 900).map(lambda size: ("abcdefg " * 120)[:size].strip()),
        max_size=10,
    ),
    st.integers(HEAD, 4_000),
)
def test_the_budget_is_kept_and_short_clauses_are_whole(
    texts: list[str], budget: int
) -> None:
    given_lengths = shares(texts, budget)
    assert sum(given_lengths) <= budget
    assert not texts or given_lengths
    for text, length in zip(texts, given_lengths, strict=False):
        assert length == len(text) or len(text) > HEAD
        assert length == len(text) or text[length] == " "
