"""Lines of a PDF page: what all steps of its layout share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Box = tuple[float, float, float, float]
CELL_GAP = " | "
# A share of the font size.
SAME_LINE = 0.4

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


def union(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around all boxes; there must be one."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


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


def without_label(row: list[Line]) -> list[Line]:
    """Return the pieces of a row but for the bullet or number of a list item."""
    text = row[0].text
    if _LONE_LABEL.match(text) and not text.isalnum():
        return row[1:]
    return row


def joined(lines: Sequence[Line]) -> str:
    """Return lines that go on below one another as one text."""
    text = lines[0].text
    for line in lines[1:]:
        text = join_texts(text, line.text)
    return text.rstrip("\u00ad")
