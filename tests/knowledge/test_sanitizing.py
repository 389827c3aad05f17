"""The border that texts cross: what is removed, kept and refused."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.sanitizing import (
    InvalidTextError,
    clean_document_text,
    clean_query,
    strip_invisible,
)


@pytest.mark.req("REL-X1")
def test_document_text_loses_what_no_database_can_hold() -> None:
    text = "a\x00b\x07c\x85d\r\ne\rf\ud800g\ufffeh\U0001ffffi\x9b\x7f"
    assert clean_document_text(text) == ("abc\nd\ne\nfghi", 7)


def test_document_text_keeps_its_own_unicode_form() -> None:
    decomposed = unicodedata.normalize("NFD", "Điều khoản\tthứ nhất\n")
    assert clean_document_text(decomposed) == (decomposed, 0)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert clean_document_text("\ufefffoo") == ("foo", 0)


@given(st.text(alphabet=st.characters(), max_size=200))
def test_cleaned_text_can_be_stored(text: str) -> None:
    cleaned, removed = clean_document_text(text)
    cleaned.encode("utf-8")
    assert "\x00" not in cleaned
    assert removed >= 0
    assert clean_document_text(cleaned) == (cleaned.removeprefix("\ufeff"), 0)


@pytest.mark.req("REL-X2", "D23")
def test_a_query_is_composed_and_its_white_space_folded() -> None:
    query = unicodedata.normalize("NFD", "  đăng  ký\n")
    assert clean_query(query, max_length=1000) == "đăng ký"


def test_invisible_marks_inside_words_are_dropped_from_a_query() -> None:
    assert clean_query("pass\u200bw\u00adord", max_length=1000) == "password"
    assert strip_invisible("a\U000e0041b\u202ec") == "abc"


@pytest.mark.req("REL-X1")
@pytest.mark.parametrize("query", ["a\x00b", "a\x1bb", "a\ud800", "\ufffe"])
def test_a_query_with_unreadable_characters_is_refused(query: str) -> None:
    with pytest.raises(InvalidTextError, match="control characters"):
        clean_query(query, max_length=1000)


@pytest.mark.parametrize("query", ["", "  \n ", "\u200b"])
def test_an_empty_query_is_refused(query: str) -> None:
    with pytest.raises(InvalidTextError, match="empty"):
        clean_query(query, max_length=1000)


def test_a_long_query_is_refused_with_both_numbers() -> None:
    assert clean_query("x" * 1000, max_length=1000)
    with pytest.raises(InvalidTextError, match=r"1,001 .* 1,000"):
        clean_query("x" * 1001, max_length=1000)
