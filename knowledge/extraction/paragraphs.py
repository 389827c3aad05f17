"""From lines of a PDF page to paragraphs, list items and table rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from knowledge.extraction.lines import Box, Line, joined, union

# Shares of the font size.
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
_TERMINAL = ".!?:;…»”\"'"


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
    text = joined(lines)
    is_item = bool(_BULLET.match(text)) or _has_label(text)
    return Paragraph(text, tuple(lines), is_row=lines[0].in_table, is_item=is_item)
