"""A document's text as numbered lines, and the part of them that a page shows. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

# A half-open stretch of the text, in characters.
Span = tuple[int, int]

# A longer text is shown in parts, so that a browser is not handed a whole handbook.
PART_LINES = 1_500
PART_CHARACTERS = 120_000
# How much of the text stands before the cited place in such a part.
LEAD_LINES = 300
LEAD_CHARACTERS = 20_000
# How far from where a part ought to begin a word's end is looked for.
WORD_CHARACTERS = 200

SHOWN_KINDS = {
    "heading": "heading",
    "code": "code",
    "list_item": "item",
    "table_row": "row",
}
# Between the cells of a row: of a Markdown table, or of a table that was extracted.
CELL_GAP = re.compile(r"( *(?:\||\t) *)")


class Text:
    """A text with the offsets at which its lines begin, counted once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        at = text.find("\n")
        while at >= 0:
            self.starts.append(at + 1)
            at = text.find("\n", at + 1)

    def line_at(self, offset: int) -> int:
        """Return the number of the line that holds `offset`, from 1."""
        return bisect_right(self.starts, offset)

    def span_of(self, number: int) -> Span:
        """Return where a line lies, without its line end."""
        last = number == len(self.starts)
        end = len(self.text) if last else self.starts[number] - 1
        return self.starts[number - 1], end

    def cut_before(self, offset: int) -> int:
        """Return the last offset up to `offset` where a part may begin.

        That is the start of a line, or of a word of a line longer than a part.
        """
        offset = min(max(offset, 0), len(self.text))
        start = self.starts[self.line_at(offset) - 1]
        if offset - start <= LEAD_CHARACTERS:
            return start
        space = self.text.rfind(" ", offset - WORD_CHARACTERS, offset)
        return space + 1 if space >= 0 else offset


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a line that is cited, or not; `first` begins the cited span.

    `is_gap` marks what stands between two cells of a table.
    """

    text: str
    cited: bool
    first: bool = False
    is_gap: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a document as the page shows it.

    `kind` is "heading", "code", "item", "row" or "". `page` is the number of the page
    that begins with it, else None. `cells` has one entry but for a row. `is_whole` is
    False for the later pieces of a line that is longer than a part.
    """

    number: int
    cells: Sequence[Sequence[Part]]
    kind: str = ""
    page: int | None = None
    is_whole: bool = True

    @property
    def is_blank(self) -> bool:
        """Whether nothing stands in it."""
        return not any(part.text.strip() for cell in self.cells for part in cell)


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that are shown together: the rows of one table, or a single line."""

    is_table: bool
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a text that is shown, and where the parts beside it begin.

    `before` and `after` are offsets, None at the ends of the text. Lines count from 1.
    """

    start: int
    end: int
    total: int
    before: int | None = None
    after: int | None = None
    lines: Sequence[Line] = field(default=(), repr=False)

    @property
    def first(self) -> int:
        """The number of the first line."""
        return self.lines[0].number

    @property
    def last(self) -> int:
        """The number of the last line."""
        return self.lines[-1].number

    @property
    def is_part(self) -> bool:
        """Whether there is more text than is shown."""
        return self.before is not None or self.after is not None

    def groups(self) -> Iterator[Group]:
        """Yield the lines, the rows of a table together."""
        for is_table, lines in groupby(self.lines, key=lambda line: line.kind == "row"):
            if is_table:
                yield Group(is_table=True, lines=list(lines))
            else:
                yield from (Group(is_table=False, lines=[line]) for line in lines)


def fill(
    bounds: Window,
    text: Text,
    blocks: Sequence[Sequence[Any]],
    pages: Sequence[Mapping[str, Any]],
    span: Span | None,
) -> Window:
    """Return a window with its lines.

    `blocks` are the [kind, start, end, level] that lie in it and `pages` all the
    {"number", "start", "end", …} of the text, both in its order.
    """
    return replace(bounds, lines=list(lines_of(text, blocks, pages, span, bounds)))


def bounds_of(text: Text, span: Span | None, wanted: int | None) -> Window:
    """Return what to show: all, or a part around the span or from `wanted` on.

    The lines are still to be filled in.
    """
    size, total = len(text.text), len(text.starts)
    if total <= PART_LINES and size <= PART_CHARACTERS:
        return Window(0, size, total)
    if wanted is not None:
        start = text.cut_before(wanted)
    else:
        start = back(text, span[0] if span else 0, LEAD_LINES, LEAD_CHARACTERS)
    by_lines = text.line_at(start) - 1 + PART_LINES
    by_characters = start + PART_CHARACTERS
    end = min(
        text.starts[by_lines] if by_lines < total else size,
        text.cut_before(by_characters) if by_characters < size else size,
    )
    return Window(
        start=start,
        end=end,
        total=total,
        before=back(text, start, PART_LINES, PART_CHARACTERS) if start else None,
        after=end if end < size else None,
    )


def back(text: Text, offset: int, lines: int, characters: int) -> int:
    """Return where a part begins that ends, or leads, up to `offset`."""
    by_lines = text.starts[max(text.line_at(offset) - 1 - lines, 0)]
    return max(by_lines, text.cut_before(offset - characters))


def lines_of(
    text: Text,
    blocks: Sequence[Sequence[Any]],
    pages: Sequence[Mapping[str, Any]],
    span: Span | None,
    window: Window,
) -> Iterator[Line]:
    """Yield the lines of a window."""
    kinds = kinds_of(text, blocks)
    begun = {
        text.line_at(page["start"]): page["number"]
        for page in pages
        if page["start"] < page["end"]
    }
    opened = False
    last = text.line_at(max(window.end - 1, window.start))
    for number in range(text.line_at(window.start), last + 1):
        start, end = text.span_of(number)
        is_whole = start >= window.start
        start, end = max(start, window.start), min(end, window.end)
        parts = parts_of(text.text[start:end], start, span)
        kind = kinds.get(number, "")
        cells = list(cells_of(parts)) if kind == "row" else [parts]
        if not opened:
            opened = open_span(cells)
        yield Line(
            number=number,
            cells=cells,
            kind=kind,
            page=begun.get(number) if is_whole else None,
            is_whole=is_whole,
        )


def kinds_of(text: Text, blocks: Sequence[Sequence[Any]]) -> dict[int, str]:
    """Return the kinds of the lines that are more than prose."""
    kinds: dict[int, str] = {}
    for kind, start, end, _level in blocks:
        if kind in SHOWN_KINDS:
            for number in range(
                text.line_at(start), text.line_at(max(start, end - 1)) + 1
            ):
                kinds[number] = SHOWN_KINDS[kind]
    return kinds


def parts_of(line: str, start: int, span: Span | None) -> list[Part]:
    """Cut a line that begins at offset `start` where the cited span begins and ends."""
    if span is None:
        return [Part(line, cited=False)]
    left = min(max(span[0] - start, 0), len(line))
    right = min(max(span[1] - start, 0), len(line))
    if left >= right:
        return [Part(line, cited=False)]
    parts = (
        Part(line[:left], cited=False),
        Part(line[left:right], cited=True),
        Part(line[right:], cited=False),
    )
    return [part for part in parts if part.text]


def open_span(cells: Sequence[list[Part]]) -> bool:
    """Mark the first cited word as the first, in place; tell whether there is one."""
    for cell in cells:
        for index, part in enumerate(cell):
            if part.cited and not part.is_gap and part.text.strip():
                cell[index] = replace(part, first=True)
                return True
    return False


def cells_of(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Cut the parts of a table's row into its cells; nothing of the text is lost.

    A gap goes with the cell before it, the one at the row's start with the first cell.
    """
    cell: list[Part] = []
    for part in parts:
        for index, text in enumerate(CELL_GAP.split(part.text)):
            is_gap = index % 2 == 1
            if not text:
                continue
            if not is_gap and cell and cell[-1].is_gap and len(cell) > 1:
                yield cell
                cell = []
            cell.append(Part(text, part.cited, is_gap=is_gap))
    if cell:
        yield cell
