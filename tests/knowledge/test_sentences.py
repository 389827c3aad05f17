"""Where sentences end, in five languages and in marked-up text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.sentences import split_at_end_marks, split_sentences


def sentences(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in split_sentences(text)]


@pytest.mark.req("S2-CHK-05", "S2-LNG-01")
@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Smith met J. K. Rowling.", "See No. 5 and art. 3.", "It ends."],
        ["The U.S. Army came.", "He lives in the U.S.", "The end."],
        ["“Really?” she said.", "“Yes.”", "Then he left."],
        [
            "Zgodnie z art. 5 ust. 2 ustawy.",
            "Żaden nie przyszedł.",
            "Łódź itd.",
            "Śnieg.",
        ],
        ["Conform art. 7 alin. (2) lit. a).", "Ștefan a plecat.", "Însă s-a întors."],
        ["Țara e mare.", "Își amintește.", "Ăsta e.", "Âncora."],
        ["Согласно ст. 5 закона.", "См. рис. 3.", "Ёлка горит!", "А. С. Пушкин писал."],
        ["Работает, т.е. хорошо, и т.д.", "Это всё."],
        ["Ông ở TP. Hồ Chí Minh.", "Đây là câu hai.", "Ở đó có v.v.", "Ấy là ba."],
        ["It costs 7.2 dollars.", "In 2020 it ended…", "And began."],
    ],
)
def test_sentences_of_five_languages(expected: list[str]) -> None:
    assert sentences(" ".join(expected)) == expected


def test_a_clause_number_is_no_sentence() -> None:
    assert sentences("7.2. Notice is given. 12. Term. It lasts.")[0] == (
        "7.2. Notice is given."
    )


def test_wrapped_lines_are_joined_and_intended_breaks_are_not() -> None:
    text = (
        "First line of a text that is wrapped at about\n"
        "fifty characters. Second sentence is here and\n"
        "goes on.\n"
        "Name\n"
        "Street 5\n"
    )
    assert sentences(text) == [
        "First line of a text that is wrapped at about\nfifty characters.",
        "Second sentence is here and\ngoes on.",
        "Name",
        "Street 5",
    ]


def test_headings_items_rows_and_code_stand_alone() -> None:
    text = (
        "# Heading\nText one. Text two.\n\nUnder\n=====\n- item one\n- item two\n"
        "| a | b |\n| 1. X | 2 |\n\n```\ncode. More\n```\nafter\n"
        "**Bold heading**\nlast\n"
    )
    assert sentences(text) == [
        "# Heading",
        "Text one.",
        "Text two.",
        "Under\n=====",
        "- item one",
        "- item two",
        "| a | b |",
        "| 1. X | 2 |",
        "```",
        "code. More",
        "```",
        "after",
        "**Bold heading**",
        "last",
    ]


def test_each_log_line_stands_alone() -> None:
    lines = [
        f"2024-05-01 10:00:0{i} INFO request number {i} was served" for i in range(5)
    ]
    assert sentences("\n".join(lines)) == lines


def test_a_row_can_be_cut_at_its_end_marks() -> None:
    text = "a | One here. Two here. | b"
    assert [text[s:e] for s, e in split_at_end_marks(text, 0, len(text))] == [
        "a | One here. ",
        "Two here. | b",
    ]


@given(
    st.text(alphabet=st.sampled_from('aB.!?… \n\n"”)|-#*1§éЖĐ~`'), max_size=200),
    st.data(),
)
def test_sentences_cover_any_range_without_gaps(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    spans = split_sentences(text, start, end)
    assert "".join(text[a:b] for a, b in spans) == text[start:end]
    assert all(a < b for a, b in spans)
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    if text[start:end].strip():
        assert all(text[a:b].strip() for a, b in spans)


@pytest.mark.req("REL-P8")
@pytest.mark.parametrize(
    "piece",
    [".", "a. ", "A", "\n", "- ", "(", '"', "1.", " | ", "[a]", ".[a]", "**", "~~~\n"],
)
def test_hostile_text_is_cut_in_linear_work(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    assert split_sentences(text)[-1][1] == len(text)
