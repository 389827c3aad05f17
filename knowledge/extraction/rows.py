"""From pieces of a PDF's text to rows: what stands level, cut at wide gaps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from knowledge.extraction.fragments import Fragment
from knowledge.extraction.lines import SAME_LINE, Line, union
from knowledge.extraction.spacing import CELL_DISTANCE, NARROWEST_WORD_GAP, Spacing

# Shares of the font size.
_LEVEL = 0.15
_WORD_GAP = 0.17
_RAISED = 0.6
_RAISED_SIZE = 0.92
_TOUCH = 0.3
# Between two pieces that were not drawn one after the other.
_JUMP_GAP = 0.5
# Shares of the font's space.
_SPACE_SHARE = 0.6
# A page whose text holds fewer spaces than one in this many characters shows words
# by their places alone.
_SPACED = 20

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LEFT_TO_RIGHT = re.compile(
    "[0-9A-Za-z\u00c0-\u024f](?:[^\u0590-\u08ff\n]*[0-9A-Za-z\u00c0-\u024f])?"
)
_MIRRORED = str.maketrans("()[]{}<>", ")(][}{><")


def read_rows(fragments: list[Fragment]) -> list[list[Line]]:
    """Return rows from top to bottom, each cut into pieces at wide gaps."""
    rows: list[list[Fragment]] = []
    for fragment in sorted(fragments, key=lambda one: -one.baseline):
        if rows:
            first = rows[-1][0]
            largest = max(one.size for one in rows[-1])
            reach = SAME_LINE * max(first.size, fragment.size)
            if largest < _RAISED_SIZE * fragment.size:
                reach = _LEVEL * fragment.size
            if abs(first.baseline - fragment.baseline) <= reach:
                rows[-1].append(fragment)
                continue
        rows.append([fragment])
    rows = [sorted(row, key=_place) for row in _with_raised(rows)]
    length = sum(len(one.text) for one in fragments)
    spaces = sum(one.text.count(" ") for one in fragments)
    spacing = Spacing(has_spaces=spaces * _SPACED >= length)
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


def _pieces(row: list[Fragment], spacing: Spacing) -> Iterator[Line]:
    """Yield a row's pieces; near ones may be words of one cell or two cells."""
    letter_gaps = spacing.letter_gaps(row)
    for piece, is_near in _cut(row, letter_gaps, spacing):
        shown = [row[index] for index in piece]
        line = _line(shown, [letter_gaps[index] for index in piece])
        if line.cells[0]:
            yield replace(line, is_near=is_near)


def _cut(
    row: list[Fragment], letter_gaps: Sequence[float], spacing: Spacing
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
        most = (CELL_DISTANCE if follows else _JUMP_GAP) * fragment.size
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
        least = max(least, NARROWEST_WORD_GAP * one.size) + letter_gap
        if text and one.start - end > least and not text.endswith(" "):
            text += " "
        end = max(end, one.end) if text else one.end
        text += one.text
    return _tidy(text)


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
