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
_WORD_GAP = 0.17
_CELL_GAP = 1.0
# Between two pieces that were not drawn one after the other.
_JUMP_GAP = 0.5
_GUTTER = 0.5
_LETTER_WIDTH = 0.55
_FONT_CHANGE = 1.12
_PARAGRAPH_GAP = 1.75
_LINE_GAP = 1.45
_INDENT = 0.9
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
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LEFT_TO_RIGHT = re.compile(
    "[0-9A-Za-z\u00c0-\u024f](?:[^\u0590-\u08ff\n]*[0-9A-Za-z\u00c0-\u024f])?"
)
_MIRRORED = str.maketrans("()[]{}<>", ")(][}{><")
_TERMINAL = ".!?:;…»”\"'"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text: its cells, its place, and the column that it stands in."""

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
        rows = _rows([one for one in fragments if one.turn == turn])
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
    return f"{before} {after}" if before and after else before or after


def _rows(fragments: list[Fragment]) -> list[list[Line]]:
    """Return rows from top to bottom, each cut into pieces at wide gaps."""
    rows: list[list[Fragment]] = []
    for fragment in sorted(fragments, key=lambda one: -one.baseline):
        if rows:
            first = rows[-1][0]
            reach = _SAME_LINE * max(first.size, fragment.size)
            if abs(first.baseline - fragment.baseline) <= reach:
                rows[-1].append(fragment)
                continue
        rows.append([fragment])
    return [list(_pieces(row)) for row in rows]


def _pieces(row: list[Fragment]) -> Iterator[Line]:
    pieces: list[list[Fragment]] = []
    end, order = 0.0, 0
    for fragment in sorted(row, key=lambda one: (one.start, one.order)):
        follows = 0 <= fragment.order - order <= 1
        order = fragment.order
        most = (_CELL_GAP if follows else _JUMP_GAP) * fragment.size
        if pieces and fragment.start - end <= most:
            pieces[-1].append(fragment)
            end = max(end, fragment.end)
        else:
            pieces.append([fragment])
            end = fragment.end
    for piece in pieces:
        line = _line(piece)
        if line.cells[0]:
            yield line


def _line(piece: list[Fragment]) -> Line:
    joined = "".join(one.text for one in piece)
    text = _join(piece)
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


def _join(piece: list[Fragment]) -> str:
    text, end, start = "", 0.0, 0.0
    advance = _even_advance(piece)
    for one in piece:
        apart = one.start - end > _WORD_GAP * one.size
        if advance:
            apart = one.start - start > 1.3 * advance
        if text and apart and not text.endswith(" "):
            text += " "
        text += one.text
        end = max(end, one.end) if text else one.end
        start = one.start
    return _tidy(text)


def _even_advance(piece: list[Fragment]) -> float:
    """Return the advance of single letters that are set at equal distances, or 0."""
    if len(piece) < 4 or any(len(one.text.strip()) > 1 for one in piece):
        return 0.0
    steps = sorted(after.start - before.start for before, after in pairwise(piece))
    middle = steps[len(steps) // 2]
    even = sum(1 for step in steps if abs(step - middle) <= 0.03 * middle)
    return middle if even > 0.6 * len(steps) else 0.0


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
        yield replace(_merge(row), column=column, in_table=id(row) in table)


def _table_rows(rows: list[list[Line]]) -> set[int]:
    """Return the ids of rows that share the start of a cell with a row beside them."""
    found: set[int] = set()
    for before, after in pairwise(rows):
        if len(before) < 2 or len(after) < 2:
            continue
        near = 0.6 * after[0].size
        if any(
            abs(one.start - other.start) < near or abs(one.end - other.end) < near
            for one in before[1:]
            for other in after[1:]
        ):
            found.update((id(before), id(after)))
    return found


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
    text = lines[0].text
    for line in lines[1:]:
        text = join_texts(text, line.text)
    text = text.rstrip("\u00ad")
    is_item = bool(_BULLET.match(text)) or _has_label(text)
    return Paragraph(text, tuple(lines), is_row=lines[0].in_table, is_item=is_item)
