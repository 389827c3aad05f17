"""Table rows of a PDF page.

A table is told from columns by the order of drawing: it is drawn row by row and cell
by cell, a column to its end before the next begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from knowledge.extraction.lines import SAME_LINE, Line, joined, union, without_label

# Shares of the font size.
_CELL_STEP = 1.7
_ROW_STEP = 5.0
_SAME_CELL_EDGE = 0.6

_MOST_CELL_LINES = 15


def table_rows(rows: list[list[Line]]) -> set[int]:
    """Return the ids of rows that share the start of a cell with a row beside them."""
    found: set[int] = set()
    for first, second in pairwise(rows):
        before, after = without_label(first), without_label(second)
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


def with_table_rows(rows: list[list[Line]]) -> list[list[Line]]:
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
    if abs(row[0].baseline - other[0].baseline) > SAME_LINE * row[0].size:
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
    near = SAME_LINE * cell[0].size
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
    heads = [without_label([cell[0] for cell in row]) for row in (before, after)]
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
        cells=tuple(joined(cell) for cell in row),
        start=min(one.start for one in lines),
        end=max(one.end for one in lines),
        baseline=max(one.baseline for one in lines),
        bold=all(one.bold for one in lines),
        order=min(one.order for one in lines),
        box=union(one.box for one in lines),
        in_table=True,
    )
