"""The part of a passage around what was found in it."""

import pytest

from retrieval.excerpts import MOST, excerpt

TEXT = "First things first. A card is blocked within 2 hours. A new one costs 4 pounds."


def shown(text: str, *words: str) -> str:
    """Return the excerpt around some words, what is matched in brackets."""
    spans = [(text.index(each), text.index(each) + len(each)) for each in words]
    return "".join(
        f"[{piece.text}]" if piece.matched else piece.text
        for piece in excerpt(text, spans)
    )


def test_it_begins_with_the_sentence_that_holds_the_first() -> None:
    assert shown(TEXT, "4 pounds", "2 hours") == (
        "… A card is blocked within [2 hours]. A new one costs [4 pounds]."
    )


def test_it_begins_at_the_beginning_where_that_is_near() -> None:
    assert shown(TEXT, "things").startswith("First [things] first.")


def test_a_line_begins_it_like_a_sentence() -> None:
    assert shown(f"# Cards\n\n{'x ' * 200}\n- 2 hours", "2 hours") == "… - [2 hours]"


def test_a_text_without_sentences_begins_with_a_word() -> None:
    text = "word " * 100 + "2 hours " + "word " * 200
    found = shown(text, "2 hours")
    assert found.startswith("… word word")
    assert found.endswith("word …")
    assert len(found) < MOST + 10


def test_overlapping_and_distant_spans_are_marked_once_or_left_out() -> None:
    assert shown(TEXT, "within 2", "2 hours") == (
        "… A card is blocked [within 2][ hours]. A new one costs 4 pounds."
    )
    text = f"2 hours. {'word ' * 300}4 pounds."
    assert "4 pounds" not in shown(text, "2 hours", "4 pounds")


def test_a_first_span_longer_than_all_is_whole() -> None:
    long = "word " * 200
    assert f"[{long}]" in shown(f"A. {long}B.", long)


@pytest.mark.parametrize("text", ["", "word"])
def test_without_spans_there_is_nothing(text: str) -> None:
    assert excerpt(text, []) == ()
