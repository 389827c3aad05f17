"""Whole sentences of a document that may be quoted."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.extraction.blocks import BlockKind
from knowledge.extraction.plaintext import read_blocks
from retrieval.quotable import sentences_touched


def blocks_of(text: str, *, markdown: bool = True) -> list[tuple[str, int, int]]:
    """Return a text's blocks as a document stores them."""
    return [
        (str(block.kind), block.start, block.end)
        for block in read_blocks(text, markdown=markdown)
    ]


def touched(text: str, part: str, *, markdown: bool = True) -> list[str]:
    """Return the sentences that the first place of `part` touches."""
    start = text.index(part)
    spans = sentences_touched(
        text, blocks_of(text, markdown=markdown), start, start + len(part)
    )
    return [text[first:last] for first, last in spans]


TERMS = """# Terms

## 7 Ending

7.1 The member may close the account, e.g. in May, at any time. A line as in No. 7.2 is
enough, and it may be
sent by post.

7.2 Notice is two months.
"""


@pytest.mark.req("S1-EXT-08")
def test_a_sentence_is_whole_where_the_passage_cuts_it() -> None:
    assert touched(TERMS, "close the account") == [
        "7.1 The member may close the account, e.g. in May, at any time."
    ]
    assert touched(TERMS, "any time. A line")[1].endswith("sent by post.")


@pytest.mark.req("S1-EXT-09")
def test_wrapped_lines_stay_together_and_headings_are_left_out() -> None:
    assert touched(TERMS, TERMS) == [
        "7.1 The member may close the account, e.g. in May, at any time.",
        "A line as in No. 7.2 is\nenough, and it may be\nsent by post.",
        "7.2 Notice is two months.",
    ]


@pytest.mark.req("S1-EXT-11")
@pytest.mark.parametrize(
    "lines",
    [
        "Room A  09:00  12.50\nRoom B  10:00  14.00\nRoom C  11:00  15.50",
        "2026-05-01 10:00:00 INFO started\n2026-05-01 10:00:01 INFO listening",
        "name: handbook\nlanguages:\n  first: en\n  second: vi",
    ],
)
def test_lines_without_end_marks_run_together(lines: str) -> None:
    """Until a blank line, a heading or a list item."""
    text = f"{lines}\n\nThe hall is closed in May.\n"
    assert touched(text, lines[:5], markdown=False)[0] == lines
    listed = f"{lines}\n- an item\n- another one\n"
    assert touched(listed, lines[:5], markdown=False)[0] == lines


def test_a_row_of_a_table_is_one() -> None:
    text = "# Fees\n\n| what | fee |\n|---|---|\n| card | 5 EUR |\n| PIN | 2 EUR |\n"
    assert touched(text, "card") == ["| card | 5 EUR |"]


def test_lines_of_a_log_are_blocks_that_run_together() -> None:
    text = "one entry\nanother entry\n\na third one\n"
    kinds = [
        (BlockKind.LINE, 0, 9),
        (BlockKind.LINE, 10, 23),
        (BlockKind.LINE, 25, 36),
    ]
    assert sentences_touched(text, kinds, 0, 3) == [(0, 23)]
    assert sentences_touched(text, kinds, 25, 30) == [(25, 36)]


@pytest.mark.req("S1-EXT-08")
@given(
    st.text(alphabet="ab .\n#-|1", max_size=120),
    st.integers(0, 120),
    st.integers(1, 60),
)
def test_spans_are_in_order_apart_and_touched(text: str, start: int, size: int) -> None:
    end = start + size
    spans = sentences_touched(text, blocks_of(text), start, end)
    assert all(first < end and start < last for first, last in spans)
    assert all(text[first:last].strip() == text[first:last] for first, last in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
