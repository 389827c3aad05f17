"""Lines of a document: nothing lost, the cited span exact, long texts in parts."""

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.lines import (
    LEAD_LINES,
    PART_CHARACTERS,
    PART_LINES,
    Span,
    Text,
    Window,
    bounds_of,
    fill,
)

PROSE = st.text(st.sampled_from("ab đ|\t\n"), max_size=80)


def window(
    text: str,
    span: Span | None = None,
    *,
    blocks: list[list[object]] | None = None,
    pages: list[dict[str, int]] | None = None,
    wanted: int | None = None,
) -> Window:
    """Return a window of a text."""
    parsed = Text(text)
    bounds = bounds_of(parsed, span, wanted)
    return fill(bounds, parsed, blocks or [], pages or [], span)


def shown(found: Window, *, cited: bool = False) -> str:
    """Return the text that a window shows, or what of it is marked as cited."""
    return "\n".join(
        "".join(
            part.text
            for part in chain.from_iterable(line.cells)
            if part.cited or not cited
        )
        for line in found.lines
    )


@given(text=PROSE, data=st.data(), kind=st.sampled_from(["table_row", "paragraph"]))
def test_every_character_is_shown_and_the_cited_ones_are_marked(
    text: str, data: st.DataObject, kind: str
) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    found = window(text, (start, end), blocks=[[kind, 0, len(text), 0]])
    assert shown(found).rstrip("\n") == text.rstrip("\n")
    marked = shown(found, cited=True).replace("\n", "")
    assert marked == text[start:end].replace("\n", "")
    parts = [part for line in found.lines for cell in line.cells for part in cell]
    words = [p for p in parts if p.cited and not p.is_gap and p.text.strip()]
    assert [part for part in parts if part.first] == words[:1]


@pytest.mark.req("S1-ING-05")
def test_lines_pages_and_kinds_stand_where_the_text_has_them() -> None:
    text = "Title\n\nFirst page.\nSecond page.\ncode()"
    found = window(
        text,
        blocks=[["heading", 0, 5, 1], ["paragraph", 7, 18, 0], ["code", 32, 38, 0]],
        pages=[
            {"number": 1, "start": 0, "end": 18},
            {"number": 2, "start": 19, "end": 38},
            {"number": 3, "start": 38, "end": 38},
        ],
    )
    assert [(line.number, line.kind, line.page) for line in found.lines] == [
        (1, "heading", 1),
        (2, "", None),
        (3, "", None),
        (4, "", 2),
        (5, "code", None),
    ]
    assert not found.is_part


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("| Fee | 12 zł |", ["| Fee | ", "12 zł |"]),
        ("Fee | 12 zł", ["Fee | ", "12 zł"]),
        ("Fee\t12 zł", ["Fee\t", "12 zł"]),
        ("no cells", ["no cells"]),
    ],
)
def test_a_row_is_cut_into_its_cells(row: str, cells: list[str]) -> None:
    (line,) = window(row, blocks=[["table_row", 0, len(row), 0]]).lines
    assert ["".join(part.text for part in cell) for cell in line.cells] == cells


def test_rows_of_one_table_are_shown_together() -> None:
    text = "a|b\nc|d\nprose\ne|f"
    rows = [["table_row", 0, 3, 0], ["table_row", 4, 7, 0], ["table_row", 14, 17, 0]]
    groups = list(window(text, blocks=rows).groups())
    assert [(group.is_table, len(group.lines)) for group in groups] == [
        (True, 2),
        (False, 1),
        (True, 1),
    ]


def parts_of(text: str) -> list[Window]:
    """Return all parts of a text, from the first on."""
    parts = [window(text, wanted=0)]
    while (after := parts[-1].after) is not None:
        parts.append(window(text, wanted=after))
    return parts


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"line {number}" for number in range(5 * PART_LINES)),
        "word " * PART_CHARACTERS,
        "x" * (3 * PART_CHARACTERS),
        "\n".join("word " * 100 for _ in range(1_000)),
        "short\n" * 10 + "word " * PART_CHARACTERS + "\nend",
    ],
    ids=["lines", "one line", "one word", "long lines", "mixed"],
)
def test_the_parts_of_a_long_text_are_the_whole_text(text: str) -> None:
    parts = parts_of(text)
    assert len(parts) > 1
    assert parts[0].start == 0
    assert parts[0].before is None
    assert parts[-1].end == len(text)
    for one, other in pairwise(parts):
        assert one.end == other.start
        assert other.before is not None
        assert other.before < other.start
    for part in parts:
        assert len(part.lines) <= PART_LINES
        assert part.end - part.start <= PART_CHARACTERS
        inside = text[part.start : part.end]
        assert shown(part).rstrip("\n") == inside.rstrip("\n")


def test_a_long_text_opens_around_its_cited_place() -> None:
    text = "\n".join(f"line {number}" for number in range(10_000))
    start = text.index("line 7000\n")
    found = window(text, (start, start + 9))
    assert shown(found, cited=True).strip() == "line 7000"
    assert found.first == 7001 - LEAD_LINES
    assert found.before is not None
    assert found.after is not None


def test_an_empty_text_has_one_empty_line() -> None:
    assert shown(window("")) == ""
    assert len(window("").lines) == 1
