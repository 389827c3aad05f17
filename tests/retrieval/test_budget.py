"""What fits into a turn's context."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.budget import cost_of, cut_at_word, pack, tokens_of
from retrieval.results import Citation, Hit

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def hit(text: str, number: int = 1) -> Hit:
    """Return a hit of a text."""
    ref = f"d{number}:0-{len(text)}"
    citation = Citation(
        ref=ref,
        title="Rules",
        knowledge_base="handbook",
        layer="main",
        file="rules.txt",
        page=None,
        lines="1",
        clause_path="Rules > 1",
        date=None,
        date_source=None,
        archived=False,
        replaced_by=None,
        text_origin="text",
        revision=f"d{number}",
        indexed_at=NOW,
        url=f"/read/{ref}/",
    )
    return Hit(number, ref, text, 1.0, 0.5, {}, citation)


def test_four_characters_are_a_token() -> None:
    assert [tokens_of("x" * count) for count in (0, 1, 4, 5)] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two"),
        ("one two three", 7, "one two"),
        ("one two three", 8, "one two"),
        ("one\n\ntwo", 4, "one"),
        ("unbreakable", 4, "unbr"),
        ("đường dây nóng", 6, "đường"),
    ],
)
def test_a_text_is_cut_at_a_word(text: str, most: int, cut: str) -> None:
    assert cut_at_word(text, most) == cut


@given(st.text(alphabet="ab \n", max_size=80), st.integers(1, 80))
def test_a_cut_is_a_beginning_within_its_size(text: str, most: int) -> None:
    cut = cut_at_word(text, most)
    assert len(cut) <= most
    assert text.startswith(cut)


def test_long_passages_are_cut_and_say_so() -> None:
    packed = pack([hit("word " * 100)], budget=1000, passage=50)
    assert packed.kept[0].cut
    assert len(packed.kept[0].text) <= 50
    assert packed.kept[0].ref == "d1:0-500"
    whole = pack([hit("a few words")], budget=1000, passage=50).kept[0]
    assert not whole.cut


@pytest.mark.req("S3-RTE-02")
def test_what_does_not_fit_is_withheld_from_the_worst() -> None:
    hits = [hit("word " * 20, number) for number in range(1, 6)]
    budget = cost_of(hits[0]) * 2 + 3
    packed = pack(hits, budget=budget, passage=1600)
    assert [each.ref for each in packed.kept] == [each.ref for each in hits[:2]]
    assert packed.withheld == tuple(hits[2:])


def test_nothing_worse_is_given_for_being_short() -> None:
    hits = [hit("word " * 20), hit("word " * 100, 2), hit("brief", 3)]
    packed = pack(hits, budget=cost_of(hits[0]) + cost_of(hits[2]), passage=1600)
    assert len(packed.kept) == 1
    assert len(packed.withheld) == 2


def test_the_best_is_given_however_small_the_budget() -> None:
    packed = pack([hit("word " * 400)], budget=40, passage=1600)
    assert packed.kept[0].text.startswith("word")
    assert cost_of(packed.kept[0]) <= 40
    assert pack([], budget=10, passage=10).kept == ()
