"""Columns of a PDF page, and the order in which its lines are read.

Columns are told from tables by the order of drawing: a column is drawn to its end
before the next begins, a table row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from knowledge.extraction.lines import Line, union
from knowledge.extraction.tables import table_rows

# A share of the font size.
_GUTTER = 0.5


def in_reading_order(rows: list[list[Line]], depth: int, column: int) -> list[Line]:
    """Return the lines of some rows in reading order."""
    ordered: list[Line] = []
    table = table_rows(rows)
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
            lines = in_reading_order(inner, depth + 1, column)
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
