"""Comparing two revisions of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.differences import Change, Part, around, compare, find_words

OLD = "Fees\n\nA card costs 5 euro a year.\nIt is due in May.\n\nBooks are free.\n"
NEW = "Fees\n\nA card costs 6 euro a year.\nIt is due in May.\n\nSeats too.\n"


def text_of(parts: list[Part], side: str) -> str:
    """Put one side of a comparison together again."""
    return "".join(piece.text for part in parts for piece in getattr(part, side))


def changed(parts: list[Part], side: str) -> list[str]:
    """Return the marked pieces of one side."""
    return [
        piece.text for part in parts for piece in getattr(part, side) if piece.changed
    ]


def test_the_words_that_differ_are_marked() -> None:
    parts = compare(OLD, NEW)
    assert changed(parts, "old") == ["5", "Books are free.\n"]
    assert changed(parts, "new") == ["6", "Seats too.\n"]
    assert [part.change for part in parts] == [
        Change.SAME,
        Change.CHANGED,
        Change.SAME,
        Change.CHANGED,
    ]
    assert [piece.text for piece in parts[3].was] == ["Books are free."]


def test_added_and_removed_lines_stand_alone() -> None:
    parts = compare("a\nb\nc\n", "a\nc\nd\n")
    assert [part.change for part in parts] == [
        Change.SAME,
        Change.REMOVED,
        Change.SAME,
        Change.ADDED,
    ]
    assert changed(parts, "old") == ["b\n"]
    assert changed(parts, "new") == ["d\n"]


def test_white_space_alone_is_no_difference() -> None:
    assert not any(part.is_change for part in compare("a  b\nc", "a b \nc"))
    assert not any(part.is_change for part in compare("a\nb\n", "a\n\n \nb"))


def test_lines_with_little_in_common_are_replaced_as_a_whole() -> None:
    parts = compare("The fee is due in May.\n", "Nobody may smoke in here, ever!\n")
    assert changed(parts, "old") == ["The fee is due in May.\n"]


LINES = st.lists(
    st.sampled_from(["a b c\n", "a b d\n", "\n", "x y\n", "z"]), max_size=9
)


@given(LINES, LINES)
def test_both_texts_can_be_put_together_again(old: list[str], new: list[str]) -> None:
    before, after = "".join(old), "".join(new)
    parts = compare(before, after)
    assert text_of(parts, "old") == before
    assert text_of(parts, "new") == after
    at = 0
    for part in parts:
        assert part.start == at
        at = part.end
    assert at == len(before)
    shown = around(parts)
    assert [part for part in shown if part.is_change] == [
        part for part in parts if part.is_change
    ]
    assert sum(part.end - part.start for part in shown) == len(before)


def test_same_lines_far_from_a_change_are_left_out() -> None:
    old = "".join(f"line {number}\n" for number in range(30))
    parts = around(compare(old, old.replace("line 15", "row 15")))
    assert [part.change for part in parts] == [
        Change.SKIPPED,
        Change.SAME,
        Change.CHANGED,
        Change.SAME,
        Change.SKIPPED,
    ]
    assert parts[0].lines == 13
    assert text_of(parts, "old") == "line 13\nline 14\nline 15\nline 16\nline 17\n"


def test_changes_far_from_a_span_are_left_out() -> None:
    old = "".join(f"line {number}\n" for number in range(30))
    new = old.replace("line 3\n", "row 3\n").replace("line 20\n", "row 20\n")
    start = old.index("line 20")
    parts = around(compare(old, new), span=(start, start + 7))
    assert changed(parts, "new") == ["row"]
    assert text_of(parts, "old") == "line 20\n"


def test_long_texts_of_repeated_lines_are_compared_in_time() -> None:
    old = "page\n\nrule\n" * 4000
    new = old.replace("rule", "law", 3) + "end\n"
    parts = compare(old, new)
    assert text_of(parts, "new") == new
    assert any(part.is_change for part in parts)


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("A card costs 5 euro.", "card costs", (2, 12)),
        ("A card\n  costs 5 euro.", "card costs", (2, 14)),
        ("A scorecard costs", "card costs", None),
        ("A card costs 55", "costs 5", None),
        ("A card costs 5", "costs 5.", None),
        ("anything", "  ", None),
        ("(a) [b]", "(a) [b]", (0, 7)),
    ],
)
def test_words_are_found_word_for_word(
    text: str, words: str, found: tuple[int, int] | None
) -> None:
    assert find_words(text, words) == found
