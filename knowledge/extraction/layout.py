"""From pieces of text with places to lines in reading order, and to paragraphs.

Pure geometry. Columns are told from tables by the order of drawing: a column is
drawn to its end before the next begins, a table row by row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from knowledge.extraction.fragments import Fragment

Box = tuple[float, float, float, float]

CELL_GAP = " | "

# Shares of the font size.
_SAME_LINE = 0.4
_LEVEL = 0.15
_WORD_GAP = 0.17
_NARROWEST_WORD_GAP = 0.1
_RAISED = 0.6
_RAISED_SIZE = 0.92
_TOUCH = 0.3
_CELL_GAP = 1.0
# Between two pieces that were not drawn one after the other.
_JUMP_GAP = 0.5
_CELL_STEP = 1.7
_ROW_STEP = 5.0
_SAME_CELL_EDGE = 0.6
_GUTTER = 0.5
_LETTER_WIDTH = 0.55
_FONT_CHANGE = 1.12
_PARAGRAPH_GAP = 1.75
_LINE_GAP = 1.45
_INDENT = 0.9
# Shares of the font's space.
_SPACE_SHARE = 0.6
_MOST_CELL_LINES = 15
# A page whose text holds fewer spaces than one in this many characters shows words
# by their places alone.
_SPACED = 20
_SHORTEST_SPREAD = 5
_MOSTLY = 0.6
_EVEN = 0.7
_LIKE_KNOWN = 0.7
_LETTER_CHANGE = 1.5
# Shares of the column's width.
_SHORT_LINE = 0.82

_BULLET = re.compile(r"[•▪◦‣·●○■□–—*\uf0b7\uf0a7\uf0d8-]\s*(?=\S)")
_LABEL = re.compile(
    r"\(?(?:\d{1,3}(?:\.\d{1,3}){0,5}|[a-zđ]|[ivxlc]{1,6}|[IVXLC]{1,6}|[A-Z])[.)]\s"
    r"|\d{1,3}(?:\.\d{1,3}){1,5}\s|\d{1,3}\s{1,4}(?P<next>[^\W\d_])|§\s?\d"
)
_LONE_LABEL = re.compile(
    r"(?:[•▪◦‣·●○■□–—*\uf0b7\uf0a7\uf0d8-]|\(?(?:\d{1,3}(?:\.\d{1,3}){0,5}|[^\W\d_]"
    r"|[ivxlcIVXLC]{1,6})[.)]?|§\s?\d{1,3}[.)]?)\Z"
)
_HYPHEN_END = re.compile(r"[^\W\d_]{2,}[-\u00ad\u2010]\Z")
# A number or an address that goes on after the end of its line.
_UNSPACED_END = re.compile(r"\d-\Z|://\S*[?=&_-]\Z")
_CODE_END = re.compile(r"[^\W_]-\Z")
_REFERENCE_END = re.compile(r"\d\S{0,20}\(\w{1,4}\)\Z")
_REFERENCE_MORE = re.compile(r"\(\w{1,4}\)")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LEFT_TO_RIGHT = re.compile(
    "[0-9A-Za-z\u00c0-\u024f](?:[^\u0590-\u08ff\n]*[0-9A-Za-z\u00c0-\u024f])?"
)
_MIRRORED = str.maketrans("()[]{}<>", ")(][}{><")
_TERMINAL = ".!?:;…»”\"'"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text: its cells, its place, and the column that it stands in.

    `is_near` tells that only a narrow gap parts it from the piece before it, which
    may be one between words or one between cells.
    """

    cells: tuple[str, ...]
    start: float
    end: float
    baseline: float
    size: float
    bold: bool
    invisible: bool
    turn: int
    order: int
    box: Box
    column: int = 0
    in_table: bool = False
    is_near: bool = False

    @property
    def text(self) -> str:
        """The line as it is read: table cells apart, other pieces together."""
        if not self.in_table:
            return " ".join(self.cells)
        if len(self.cells) > 1 and _LONE_LABEL.match(self.cells[0]):
            return " ".join((self.cells[0], CELL_GAP.join(self.cells[1:])))
        return CELL_GAP.join(self.cells)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that belong together; `text` has them joined, hyphens resolved."""

    text: str
    lines: tuple[Line, ...]
    is_row: bool = False
    is_item: bool = False

    @property
    def size(self) -> float:
        """The font size of the first line."""
        return self.lines[0].size

    @property
    def bold(self) -> bool:
        """Whether each line is bold."""
        return all(line.bold for line in self.lines)

    @property
    def box(self) -> Box:
        """The box around all lines, in the page's own coordinates."""
        return union(line.box for line in self.lines)


def union(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around all boxes; there must be one."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


def read_lines(fragments: Sequence[Fragment]) -> list[Line]:
    """Return the lines of a page in reading order."""
    turns = Counter[int]()
    for fragment in fragments:
        turns[fragment.turn] += len(fragment.text)
    lines: list[Line] = []
    for turn, _ in turns.most_common():
        rows = _with_table_rows(_rows([one for one in fragments if one.turn == turn]))
        lines.extend(_ordered(rows, 0, len(lines) + 1))
    return lines


def read_paragraphs(lines: Sequence[Line]) -> list[Paragraph]:
    """Return the paragraphs, list items and table rows that lines make."""
    edges = _column_edges(lines)
    paragraphs: list[Paragraph] = []
    current: list[Line] = []
    for line in lines:
        if current and _starts_paragraph(current, line, edges[line.column]):
            paragraphs.append(_paragraph(current))
            current = []
        current.append(line)
    if current:
        paragraphs.append(_paragraph(current))
    return [one for one in paragraphs if one.text]


def join_texts(before: str, after: str) -> str:
    """Return two lines as one; a word that a hyphen divided becomes whole again."""
    before, after = before.rstrip(), after.lstrip()
    if before.endswith("\u00ad"):
        return before[:-1] + after
    if _HYPHEN_END.search(before[-60:]) and after[:1].islower():
        return before[:-1] + after
    if _UNSPACED_END.search(before[-60:]) and after[:1].isalnum():
        return before + after
    if _CODE_END.search(before[-60:]) and after[:1].isdigit():
        return before + after
    if _REFERENCE_END.search(before[-60:]) and _REFERENCE_MORE.match(after):
        return before + after
    return f"{before} {after}" if before and after else before or after


def _rows(fragments: list[Fragment]) -> list[list[Line]]:
    """Return rows from top to bottom, each cut into pieces at wide gaps."""
    rows: list[list[Fragment]] = []
    for fragment in sorted(fragments, key=lambda one: -one.baseline):
        if rows:
            first = rows[-1][0]
            largest = max(one.size for one in rows[-1])
            reach = _SAME_LINE * max(first.size, fragment.size)
            if largest < _RAISED_SIZE * fragment.size:
                reach = _LEVEL * fragment.size
            if abs(first.baseline - fragment.baseline) <= reach:
                rows[-1].append(fragment)
                continue
        rows.append([fragment])
    rows = [sorted(row, key=_place) for row in _with_raised(rows)]
    length = sum(len(one.text) for one in fragments)
    spaces = sum(one.text.count(" ") for one in fragments)
    spacing = _Spacing(has_spaces=spaces * _SPACED >= length)
    for row in rows:
        spacing.learn(row)
    lines = (list(_pieces(row, spacing)) for row in rows)
    return [row for row in lines if row]


def _place(fragment: Fragment) -> tuple[float, int]:
    return fragment.start, fragment.order


def _with_raised(rows: list[list[Fragment]]) -> list[list[Fragment]]:
    """Return rows with raised and lowered small print put back into its line."""
    for upper, lower in pairwise(rows):
        for small, large in ((upper, lower), (lower, upper)):
            size = max((one.size for one in large), default=0.0)
            moved: list[Fragment] = []
            for one in sorted(small, key=lambda one: one.start):
                if one.size < _RAISED_SIZE * size and _touches(one, [*large, *moved]):
                    moved.append(one)
            if moved:
                taken = {one.order for one in moved}
                small[:] = [one for one in small if one.order not in taken]
                large.extend(moved)
    return [row for row in rows if row]


def _touches(small: Fragment, others: Sequence[Fragment]) -> bool:
    """Tell whether small print stands right after a piece of text, or before it."""
    return any(
        abs(one.baseline - small.baseline) <= _RAISED * one.size
        and -_TOUCH * one.size
        <= max(small.start - one.end, one.start - small.end)
        <= _TOUCH * one.size
        for one in others
        if not one.is_blank
    )


def _pieces(row: list[Fragment], spacing: _Spacing) -> Iterator[Line]:
    """Yield a row's pieces; near ones may be words of one cell or two cells."""
    letter_gaps = spacing.letter_gaps(row)
    for piece, is_near in _cut(row, letter_gaps, spacing):
        shown = [row[index] for index in piece]
        line = _line(shown, [letter_gaps[index] for index in piece])
        if line.cells[0]:
            yield replace(line, is_near=is_near)


def _cut(
    row: list[Fragment], letter_gaps: Sequence[float], spacing: _Spacing
) -> Iterator[tuple[list[int], bool]]:
    """Yield the places of each piece's fragments and whether the gap before is small.

    Spaces that are shown by themselves belong to the piece before them.
    """
    piece: list[int] = []
    is_near = False
    # Where the last text ended, and the space after it.
    end, space_end, order = 0.0, 0.0, 0
    for index, fragment in enumerate(row):
        follows = 0 <= fragment.order - order <= 1
        order = fragment.order
        gap = fragment.start - (space_end if follows else end)
        if fragment.is_blank:
            if piece and gap <= (_JUMP_GAP if follows else _WORD_GAP) * fragment.size:
                if space_end <= end:
                    space_end = max(end, fragment.end)
                piece.append(index)
            continue
        most = (_CELL_GAP if follows else _JUMP_GAP) * fragment.size
        joins = gap <= most + 2 * letter_gaps[index]
        near = joins and gap > _JUMP_GAP * fragment.size and spacing.parts(row, index)
        if piece and (near or not joins):
            yield _stripped(row, piece), is_near
            piece, is_near, end = [], near, fragment.end
        piece.append(index)
        end = space_end = max(end, fragment.end) if len(piece) > 1 else fragment.end
    if piece:
        yield _stripped(row, piece), is_near


def _stripped(row: Sequence[Fragment], piece: list[int]) -> list[int]:
    """Return a piece's places without those of spaces at its end."""
    last = max(at for at, index in enumerate(piece) if not row[index].is_blank)
    return piece[: last + 1]


def _line(piece: list[Fragment], letter_gaps: Sequence[float]) -> Line:
    joined = "".join(one.text for one in piece)
    text = _join(piece, letter_gaps)
    if len(_RIGHT_TO_LEFT.findall(joined)) * 2 > len(joined.strip()):
        text = _logical(text)
    weight = sum(len(one.text) for one in piece) or 1
    sizes = Counter[float]()
    for one in piece:
        sizes[round(one.size, 1)] += len(one.text)
    main = max(piece, key=lambda one: len(one.text))
    return Line(
        cells=(text,),
        start=min(one.start for one in piece),
        end=max(one.end for one in piece),
        baseline=main.baseline,
        size=sizes.most_common(1)[0][0],
        bold=sum(len(one.text) for one in piece if one.bold) > 0.8 * weight,
        invisible=sum(len(one.text) for one in piece if one.invisible) > 0.5 * weight,
        turn=main.turn,
        order=min(one.order for one in piece),
        box=union(one.box for one in piece),
    )


def _join(piece: list[Fragment], letter_gaps: Sequence[float]) -> str:
    """Return a piece's text: a gap is a space if wider than those between letters."""
    text, end = "", 0.0
    for one, letter_gap in zip(piece, letter_gaps, strict=True):
        least = min(_WORD_GAP * one.size, _SPACE_SHARE * one.space)
        least = max(least, _NARROWEST_WORD_GAP * one.size) + letter_gap
        if text and one.start - end > least and not text.endswith(" "):
            text += " "
        end = max(end, one.end) if text else one.end
        text += one.text
    return _tidy(text)


class _Spacing:
    """Finds letters that are spread: shown one by one, each some way from the next.

    `has_spaces` tells that words are parted by spaces that the page shows, so that
    few letters suffice to know.
    """

    def __init__(self, *, has_spaces: bool) -> None:
        self._has_spaces = has_spaces
        self._known: dict[float, float] = {}

    def parts(self, row: Sequence[Fragment], index: int) -> bool:
        """Tell whether a gap before a fragment cannot be one between two words."""
        before = row[index - 1].text if index else ""
        drawn = before[-1:].isspace() or row[index].text[:1].isspace()
        return self._has_spaces and not drawn

    def learn(self, row: Sequence[Fragment]) -> None:
        """Note how far letters of a size stand apart where many show it."""
        for run in _runs_of_letters(row):
            gaps = _gaps_inside(row, run)
            if len(gaps) >= _SHORTEST_SPREAD and self._is_text(row, run):
                size = round(row[run[0]].size, 1)
                usual = gaps[len(gaps) // 6]
                if usual > _NARROWEST_WORD_GAP * size:
                    self._known[size] = min(usual, self._known.get(size, usual))

    def letter_gaps(self, row: Sequence[Fragment]) -> list[float]:
        """Return, for each fragment of a row, the usual gap before it; mostly 0."""
        usual = [0.0] * len(row)
        for run in _runs_of_letters(row):
            gaps = _gaps_inside(row, run)
            many = len(gaps) >= _SHORTEST_SPREAD
            known = self._known.get(round(row[run[0]].size, 1), 0.0)
            if many and (advance := _even_advance(row, run)):
                for before, after in pairwise(run):
                    width = row[before].end - row[before].start
                    usual[after] = max(0.0, advance - width)
            elif gaps and (
                (many and self._is_text(row, run))
                or (known and gaps[0] > _LIKE_KNOWN * known)
                or (self._has_spaces and _are_letters(row, run))
            ):
                for one in run:
                    usual[one] = max(0.0, gaps[len(gaps) // 6])
        return usual

    def _is_text(self, row: Sequence[Fragment], run: Sequence[int]) -> bool:
        return self._has_spaces or _are_letters(row, run)


def _runs_of_letters(row: Sequence[Fragment]) -> Iterator[list[int]]:
    """Yield the places of fragments of one character each that stand in a row."""
    run: list[int] = []
    for index, one in enumerate(row):
        if run:
            before = row[run[-1]]
            if one.start - before.end > _CELL_GAP * one.size or _differ(one, before):
                yield run
                run = []
        if len(one.text.strip()) <= 1:
            run.append(index)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _differ(one: Fragment, other: Fragment) -> bool:
    """Tell whether two letters differ more in size than raised ones do."""
    return not 1 / _LETTER_CHANGE < one.size / other.size < _LETTER_CHANGE


def _gaps_inside(row: Sequence[Fragment], run: Sequence[int]) -> list[float]:
    """Return the gaps in a run that no space fills, narrowest first."""
    return sorted(
        row[after].start - row[before].end
        for before, after in pairwise(run)
        if row[before].text[-1] != " " and row[after].text[0] != " "
    )


def _are_letters(row: Sequence[Fragment], run: Sequence[int]) -> bool:
    letters = sum(1 for one in run if row[one].text.strip().isalpha())
    return letters > _MOSTLY * len(run)


def _even_advance(row: Sequence[Fragment], run: Sequence[int]) -> float:
    """Return the distance of letters that are set on an even grid, or 0."""
    steps = sorted(
        row[after].start - row[before].start for before, after in pairwise(run)
    )
    middle = steps[len(steps) // 2]
    even = sum(1 for step in steps if abs(step - middle) <= 0.03 * middle)
    return middle if even > _EVEN * len(steps) else 0.0


def _logical(text: str) -> str:
    """Return a line that is drawn from right to left in the order of reading.

    Glyphs stand from left to right on the page, so the line is turned around; words
    and numbers of other scripts inside it keep their order.
    """
    turned = text[::-1].translate(_MIRRORED)
    return _LEFT_TO_RIGHT.sub(lambda run: run[0][::-1], turned)


def _tidy(text: str) -> str:
    """Fold white space and drop soft hyphens, but for one that ends the line."""
    text = " ".join(text.split())
    return text[:-1].replace("\u00ad", "") + text[-1:]


def _ordered(rows: list[list[Line]], depth: int, column: int) -> list[Line]:
    """Return the lines of some rows in reading order."""
    ordered: list[Line] = []
    table = _table_rows(rows)
    for run, gutters in _runs(rows):
        cut = _best_gutter(run, gutters) if depth < 6 else None
        if cut is None:
            ordered.extend(_one_column(run, table, column))
            continue
        left = [[one for one in row if one.end <= cut] for row in run]
        right = [[one for one in row if one.end > cut] for row in run]
        if not _is_drawn_by_column(left, right):
            ordered.extend(_one_column(run, table, column))
            continue
        for side in (left, right):
            inner = [row for row in side if row]
            column += 1
            lines = _ordered(inner, depth + 1, column)
            column = max((line.column for line in lines), default=column)
            ordered.extend(lines)
        column += 1
    return ordered


def _runs(
    rows: list[list[Line]],
) -> Iterator[tuple[list[list[Line]], list[tuple[float, float]]]]:
    """Yield runs of rows with the vertical gaps that all rows of a run leave free."""
    if not rows:
        return
    left = min(one.start for row in rows for one in row)
    right = max(one.end for row in rows for one in row)
    run: list[list[Line]] = []
    free: list[tuple[float, float]] = []
    inner: list[tuple[float, float]] = []
    for row in rows:
        narrow = _GUTTER * min(one.size for one in row)
        gaps = _gaps(row, left, right)
        own = _between(row)
        common = _intersect(free, gaps, narrow) if run else gaps
        kept = _intersect(_intersect(inner, common, narrow), gaps, narrow)
        breaks = bool(run) and (
            bool(common) != bool(free)
            or (
                bool(own) and not _survives(own, common, narrow, has_gutter=bool(inner))
            )
            or (bool(inner) and not kept)
        )
        if breaks:
            yield run, free
            run, common, kept = [], gaps, []
        run.append(row)
        free = common
        inner = kept or _intersect(own, common, narrow)
    yield run, free


def _survives(
    own: list[tuple[float, float]],
    common: list[tuple[float, float]],
    narrow: float,
    *,
    has_gutter: bool,
) -> bool:
    """Tell whether a row's gaps fit those of the rows before it.

    Where these have no gutter yet, most of the row's own must stay free: a centred
    title leaves some room at its sides that is no gutter.
    """
    left = _intersect(own, common, narrow)
    if has_gutter or not left:
        return bool(left)
    widest = max(end - start for start, end in own)
    return max(end - start for start, end in left) > widest / 2


def _between(row: list[Line]) -> list[tuple[float, float]]:
    """Return the gaps between the pieces of a row."""
    return [
        (before.end, after.start)
        for before, after in pairwise(row)
        if after.start > before.end
    ]


def _gaps(row: list[Line], left: float, right: float) -> list[tuple[float, float]]:
    gaps: list[tuple[float, float]] = []
    at = left
    for one in sorted(row, key=lambda piece: piece.start):
        if one.start - at > _GUTTER * one.size:
            gaps.append((at, one.start))
        at = max(at, one.end)
    if right - at > _GUTTER * row[0].size:
        gaps.append((at, right))
    return gaps


def _intersect(
    first: list[tuple[float, float]], second: list[tuple[float, float]], narrow: float
) -> list[tuple[float, float]]:
    common: list[tuple[float, float]] = []
    for start, end in first:
        for other_start, other_end in second:
            low, high = max(start, other_start), min(end, other_end)
            if high - low > narrow:
                common.append((low, high))
    return common


def _best_gutter(
    run: list[list[Line]], gutters: list[tuple[float, float]]
) -> float | None:
    """Return the middle of the gap with text on both sides of most rows, if any."""
    best: tuple[int, float] = (1, float("inf"))
    cut = None
    for start, end in gutters:
        both = sum(
            1
            for row in run
            if any(one.end <= start + 1 for one in row)
            and any(one.start >= end - 1 for one in row)
        )
        middle = (start + end) / 2
        if not both and _apart(run, middle):
            both = 2
        if (both, end - start) > best:
            best, cut = (both, end - start), middle
    return cut


def _apart(run: list[list[Line]], cut: float) -> bool:
    """Tell whether lines stand on both sides, side by side but never level."""
    left = [one.baseline for row in run for one in row if one.end <= cut]
    right = [one.baseline for row in run for one in row if one.start >= cut]
    if len(left) < 2 or len(right) < 2:
        return False
    return min(left) < max(right) and min(right) < max(left)


def _is_drawn_by_column(left: list[list[Line]], right: list[list[Line]]) -> bool:
    sides = [(one.order, 0) for row in left for one in row]
    sides += [(one.order, 1) for row in right for one in row]
    sides.sort()
    changes = sum(1 for before, after in pairwise(sides) if before[1] != after[1])
    level = sum(1 for row, other in zip(left, right, strict=True) if row and other)
    return changes <= max(1, level // 3)


def _one_column(run: list[list[Line]], table: set[int], column: int) -> Iterator[Line]:
    for row in run:
        line = _merge(row)
        in_table = any(one.in_table for one in row) or id(row) in table
        yield replace(line, column=column, in_table=in_table)


def _table_rows(rows: list[list[Line]]) -> set[int]:
    """Return the ids of rows that share the start of a cell with a row beside them."""
    found: set[int] = set()
    for first, second in pairwise(rows):
        before, after = _without_label(first), _without_label(second)
        if len(before) < 2 or len(after) < 2:
            continue
        near = 0.6 * after[0].size
        if any(
            abs(one.start - other.start) < near or abs(one.end - other.end) < near
            for one in before[1:]
            for other in after[1:]
        ):
            found.update((id(first), id(second)))
    return found


def _without_label(row: list[Line]) -> list[Line]:
    """Return the pieces of a row but for the bullet or number of a list item."""
    text = row[0].text
    if _LONE_LABEL.match(text) and not text.isalnum():
        return row[1:]
    return row


def _with_table_rows(rows: list[list[Line]]) -> list[list[Line]]:
    """Return rows with the lines of each table row's cells put together.

    A table is drawn cell by cell, so the lines of a wrapped cell follow one another;
    a row is what stands side by side, a table two rows or more with common edges.
    """
    pieces = sorted((one for row in rows for one in row), key=lambda one: one.order)
    found = _table_groups(list(_cell_rows(_cells(pieces))))
    taken = {id(one) for group in found.values() for cell in group for one in cell}
    kept = [list(_with_near(row, taken)) for row in rows]
    whole = [
        [_table_line(_true_cells(row, found.get(at - 1, []), found.get(at + 1, [])))]
        for at, row in found.items()
    ]
    rows = []
    for row in sorted(
        [row for row in kept if row] + whole, key=lambda row: -row[0].baseline
    ):
        if rows and whole and _fit_in_row(rows[-1], row):
            rows[-1] = sorted([*rows[-1], *row], key=lambda one: one.start)
        else:
            rows.append(row)
    return rows


def _with_near(row: Sequence[Line], taken: set[int]) -> Iterator[Line]:
    """Yield the pieces of a row that make no table, near ones put together again."""
    before: Line | None = None
    for one in row:
        if id(one) in taken:
            if before is not None:
                yield before
            before = None
        elif before is not None and one.is_near:
            before = _put_together(before, one)
        else:
            if before is not None:
                yield before
            before = one
    if before is not None:
        yield before


def _put_together(before: Line, after: Line) -> Line:
    main = max(before, after, key=lambda one: len(one.text))
    return replace(
        main,
        cells=(f"{before.text} {after.text}",),
        start=before.start,
        end=after.end,
        bold=before.bold and after.bold,
        order=min(before.order, after.order),
        box=union((before.box, after.box)),
        is_near=before.is_near,
    )


def _fit_in_row(row: Sequence[Line], other: Sequence[Line]) -> bool:
    """Tell whether two rows are level and stand beside one another."""
    if abs(row[0].baseline - other[0].baseline) > _SAME_LINE * row[0].size:
        return False
    return all(a.end < b.start or b.end < a.start for a in row for b in other)


def _cells(pieces: Sequence[Line]) -> list[list[Line]]:
    """Return runs of lines that were drawn one below the other."""
    cells: list[list[Line]] = []
    for piece in pieces:
        if cells and _goes_on_below(cells[-1], piece):
            cells[-1].append(piece)
        else:
            cells.append([piece])
    return cells


def _goes_on_below(cell: Sequence[Line], piece: Line) -> bool:
    above = cell[-1]
    step = above.baseline - piece.baseline
    left, right = min(one.start for one in cell), max(one.end for one in cell)
    return (
        0 < step <= _CELL_STEP * max(above.size, piece.size)
        and piece.start < right
        and piece.end > left
    )


def _cell_rows(cells: Sequence[list[Line]]) -> Iterator[list[list[Line]]]:
    """Yield runs of cells that were drawn one beside the other."""
    row: list[list[Line]] = []
    for cell in cells:
        if row and not _stands_beside(row, cell):
            yield row
            row = []
        row.append(cell)
    if row:
        yield row


def _stands_beside(row: Sequence[list[Line]], cell: Sequence[Line]) -> bool:
    before = max(one.end for one in row[-1])
    top = max(one.baseline for other in row for one in other)
    bottom = min(one.baseline for other in row for one in other)
    near = _SAME_LINE * cell[0].size
    return (
        min(one.start for one in cell) > before
        and cell[0].baseline >= bottom - near
        and cell[-1].baseline <= top + near
    )


def _table_groups(rows: Sequence[list[list[Line]]]) -> dict[int, list[list[Line]]]:
    """Return, by place, the rows that make tables: neighbours with common edges."""
    found: dict[int, list[list[Line]]] = {}
    for index, (before, after) in enumerate(pairwise(rows)):
        if _are_table_rows(before, after):
            found[index], found[index + 1] = before, after
    return found


def _true_cells(row: list[list[Line]], *beside: list[list[Line]]) -> list[list[Line]]:
    """Return a row whose near cells stand alone only if a row beside it has them."""
    cells: list[list[Line]] = []
    for cell in row:
        alone = any(
            _share_edge(_edges(cell), _edges(other), cell[0].size)
            for near in beside
            for other in near[1:]
        )
        if cells and cell[0].is_near and not alone and len(cell) == 1:
            cells[-1] = [*cells[-1][:-1], _put_together(cells[-1][-1], cell[0])]
        else:
            cells.append(cell)
    return cells


def _are_table_rows(before: list[list[Line]], after: list[list[Line]]) -> bool:
    heads = [_without_label([cell[0] for cell in row]) for row in (before, after)]
    lines = max(len(cell) for row in (before, after) for cell in row)
    if min(map(len, heads)) < 2 or lines > _MOST_CELL_LINES:
        return False
    bottom = min(one.baseline for cell in before for one in cell)
    top = max(one.baseline for cell in after for one in cell)
    if not 0 < bottom - top <= _ROW_STEP * after[0][0].size:
        return False
    return any(
        _share_edge(_edges(one), _edges(other), one[0].size)
        for one in before[1:]
        for other in after[1:]
    )


def _share_edge(
    one: tuple[float, float, float], other: tuple[float, float, float], size: float
) -> bool:
    near = _SAME_CELL_EDGE * size
    return any(abs(a - b) < near for a, b in zip(one, other, strict=True))


def _edges(cell: Sequence[Line]) -> tuple[float, float, float]:
    """Return where a cell's text starts and ends, and its middle."""
    left, right = min(one.start for one in cell), max(one.end for one in cell)
    return left, right, (left + right) / 2


def _table_line(row: Sequence[list[Line]]) -> Line:
    """Return a table row as one line: its cells' lines joined."""
    lines = [one for cell in row for one in cell]
    main = max(lines, key=lambda one: len(one.text))
    return replace(
        main,
        cells=tuple(_joined(cell) for cell in row),
        start=min(one.start for one in lines),
        end=max(one.end for one in lines),
        baseline=max(one.baseline for one in lines),
        bold=all(one.bold for one in lines),
        order=min(one.order for one in lines),
        box=union(one.box for one in lines),
        in_table=True,
    )


def _joined(lines: Sequence[Line]) -> str:
    text = lines[0].text
    for line in lines[1:]:
        text = join_texts(text, line.text)
    return text.rstrip("\u00ad")


def _merge(row: list[Line]) -> Line:
    """Return the pieces of a row as one line with as many cells."""
    if len(row) == 1:
        return row[0]
    main = max(row, key=lambda one: len(one.cells[0]))
    return replace(
        main,
        cells=tuple(cell for one in row for cell in one.cells),
        start=row[0].start,
        end=row[-1].end,
        bold=all(one.bold for one in row),
        order=min(one.order for one in row),
        box=union(one.box for one in row),
    )


def _column_edges(lines: Sequence[Line]) -> dict[int, tuple[float, float, float]]:
    """Return, for each column, its left and right edge and its usual line distance."""
    edges: dict[int, tuple[float, float, float]] = {}
    for column in {line.column for line in lines}:
        own = [line for line in lines if line.column == column]
        steps = Counter[int]()
        for before, after in pairwise(own):
            step = before.baseline - after.baseline
            if 0 < step < 4 * after.size:
                steps[round(step)] += 1
        usual = steps.most_common(1)[0][0] if steps else 0
        left, right = min(one.start for one in own), max(one.end for one in own)
        edges[column] = (left, right, float(usual))
    return edges


def _starts_paragraph(
    current: list[Line], line: Line, edges: tuple[float, float, float]
) -> bool:
    before = current[-1]
    if line.in_table or before.in_table or line.turn != before.turn:
        return True
    if _differs(before, line):
        return True
    if line.column != before.column:
        return not _continues(before.text, line.text)
    if _starts_item(line.text, before.text):
        return True
    left, right, usual = edges
    step = before.baseline - line.baseline
    if step <= 0 or step > max(1.3 * usual, 1.25 * line.size):
        wide = step > 1.3 * usual and step > _LINE_GAP * line.size
        return step <= 0 or step > _PARAGRAPH_GAP * line.size or wide
    if usual and line.size >= usual and before.text[-1:] not in _TERMINAL:
        # Larger than a line of body text is high: a heading of several lines.
        return False
    next_word = _LETTER_WIDTH * line.size * len(line.text.split(maxsplit=1)[0])
    had_room = before.end + next_word < right
    short = had_room and before.end < left + _SHORT_LINE * (right - left)
    if short and not line.text[:1].islower():
        return True
    indented = line.start > before.start + _INDENT * line.size
    return len(current) > 1 and indented and before.text[-1:] in _TERMINAL


def _differs(before: Line, line: Line) -> bool:
    larger, smaller = max(before.size, line.size), min(before.size, line.size)
    if larger > _FONT_CHANGE * smaller:
        return True
    return before.bold != line.bold and len(before.text) > 2 and len(line.text) > 2


def _starts_item(text: str, before: str) -> bool:
    if _BULLET.match(text):
        return True
    return _has_label(text) and (before[-1:] in _TERMINAL + "," or _has_label(before))


def _has_label(text: str) -> bool:
    """Tell whether a line begins with a number ("2 years" does not, "2 Fees" does)."""
    label = _LABEL.match(text)
    return label is not None and (label["next"] is None or label["next"].isupper())


def _continues(before: str, after: str) -> bool:
    """Tell whether a sentence runs on, over the end of a column or page."""
    return before[-1:] not in ".!?:;…" and after[:1].islower()


def _paragraph(lines: list[Line]) -> Paragraph:
    text = _joined(lines)
    is_item = bool(_BULLET.match(text)) or _has_label(text)
    return Paragraph(text, tuple(lines), is_row=lines[0].in_table, is_item=is_item)
