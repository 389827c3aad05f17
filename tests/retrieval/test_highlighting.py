"""Matched words: marked as the keyword branch matches them, in the text's own form."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.terms import stems_of
from retrieval.highlighting import mark_words


def marked(text: str, *wanted: str) -> list[str]:
    """Return the pieces of a text that are marked."""
    return [piece.text for piece in mark_words(text, wanted) if piece.matched]


@pytest.mark.req("S1-HYB-08")
@given(text=st.text(max_size=200), wanted=st.lists(st.text(max_size=8), max_size=5))
def test_the_pieces_are_the_text(text: str, wanted: list[str]) -> None:
    assert "".join(piece.text for piece in mark_words(text, wanted)) == text


@pytest.mark.parametrize(
    ("text", "wanted", "expected"),
    [
        ("The Fee, the fees.", ["fee"], ["Fee"]),
        ("Form QT-07/A is due.", ["QT-07"], []),
        ("Form QT-07 is due.", ["QT-07"], ["QT-07"]),
        ("Form qt 07 is due.", ["QT-07"], []),
        ("a check-in desk", ["desk", "check"], ["check", "desk"]),
        ("đăng, dang", ["đăng"], ["đăng"]),
        ("ЁЛКА и ёлка", ["ёлка"], ["ЁЛКА", "ёлка"]),
        ("nothing here", [], []),
        ("... --- ...", ["-"], []),
    ],
)
def test_words_and_codes_are_marked(
    text: str, wanted: list[str], expected: list[str]
) -> None:
    assert marked(text, *wanted) == expected


@pytest.mark.req("REL-X2")
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_both_forms_of_a_letter_are_the_same_word(form: str) -> None:
    text = unicodedata.normalize(form, "Thời hạn nghỉ phép là mười ngày.")
    assert marked(text, "nghỉ", "phép") == [
        unicodedata.normalize(form, "nghỉ"),
        unicodedata.normalize(form, "phép"),
    ]


@pytest.mark.req("S2-LNG-01")
def test_other_forms_of_a_word_are_marked_too() -> None:
    stems = [stem for word in ("fee", "pożyczka") for stem in stems_of(word)]
    pieces = mark_words("The fees of both pożyczki.", ["fee", "pożyczka"], stems=stems)
    assert [p.text for p in pieces if p.matched] == ["fees", "pożyczki"]
