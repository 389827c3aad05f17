"""Repeated headers, footers and page numbers of a PDF."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from knowledge.extraction.lines import Line
from knowledge.extraction.page_text import PageText

_MARGIN = 0.12
_MARGIN_LINES = 3
# Pages on which a line is repeated anywhere in the margin; at the same height, two do.
_REPEATED_ON = 3
_SAME_PLACE = 5.0
_APART = 1.6
# How much larger than the usual text a heading is.
HEADING_SIZE = 1.15

_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_PAGE_WORDS = frozenset(
    {
        "page",
        "of",
        "pages",
        "trang",
        "strona",
        "stron",
        "str",
        "pagina",
        "pag",
        "din",
        "страница",
        "стр",
        "из",
        "от",
    }
)


@dataclass(frozen=True, slots=True)
class _Marginal:
    """A line at a page's edge: `place` is its height in points."""

    page: int
    line: Line
    place: float
    is_upper: bool


def find_furniture(pages: Sequence[PageText]) -> set[int]:
    """Return the ids of the repeated headers, footers and page numbers to leave out.

    One whose words stand nowhere else, or that is set as large as a heading, is kept
    once: a header on its first page, a footer on its last, where it parts no sentence.
    """
    repeated = _repeated_lines(pages)
    left_out = {id(one.line) for found in repeated for one in found}
    words = {
        word
        for page in pages
        for line in page.lines
        if id(line) not in left_out
        for word in _words(line.text)
    }
    sizes = sorted(line.size for page in pages for line in page.lines)
    usual = sizes[len(sizes) // 2] if sizes else 0.0
    for found in repeated:
        own = _words(found[0].line.text) - words - _PAGE_WORDS
        if own or found[0].line.size >= HEADING_SIZE * usual:
            kept = found[0] if found[0].is_upper else found[-1]
            left_out.discard(id(kept.line))
            words |= own
    return left_out


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text.casefold()))


def _repeated_lines(pages: Sequence[PageText]) -> list[list[_Marginal]]:
    """Return the lines of the margins that repeat one another but for numbers."""
    seen: dict[tuple[str, bool], list[_Marginal]] = {}
    for page in pages:
        for one in _marginal(page):
            key = (_furniture_key(one.line.text), one.is_upper)
            seen.setdefault(key, []).append(one)
    texts = {
        page.number: {_furniture_key(line.text) for line in page.lines}
        for page in pages
    }
    return [
        found
        for found in seen.values()
        if len({one.page for one in found}) >= _REPEATED_ON
        or _is_in_place(found, texts)
    ]


def _is_in_place(found: Sequence[_Marginal], texts: dict[int, set[str]]) -> bool:
    """Tell whether lines of two pages stand at the same height.

    Two pages that say the same are copies, as invoices have them.
    """
    by_place = sorted(found, key=lambda one: one.place)
    return any(
        one.page != other.page
        and other.place - one.place <= _SAME_PLACE
        and not _are_copies(texts[one.page], texts[other.page])
        for one, other in pairwise(by_place)
    )


def _are_copies(texts: set[str], others: set[str]) -> bool:
    return 2 * len(texts & others) > max(_MARGIN_LINES, len(texts), len(others))


def _marginal(page: PageText) -> list[_Marginal]:
    """Return the lines at a page's upper and lower edge that stand apart from it."""
    sideways = sum(1 if line.turn % 2 else -1 for line in page.lines) > 0
    extent = page.width if sideways else page.height
    axis = 0 if sideways else 1
    by_place = sorted(page.lines, key=lambda line: line.box[axis])
    found: list[_Marginal] = []
    for lines, direction in ((by_place, 1), (by_place[::-1], -1)):
        edge = [line for line in lines if _is_near_edge(line, axis, extent, direction)]
        most = 0
        for count in range(1, min(len(edge), _MARGIN_LINES) + 1):
            inner = lines[count] if count < len(lines) else None
            if inner is None or _is_apart(lines[count - 1], inner, axis):
                most = count
        found.extend(
            _Marginal(page.number, line, line.box[axis], is_upper=direction < 0)
            for line in lines[:most]
        )
    return found


def _is_near_edge(line: Line, axis: int, extent: float, direction: int) -> bool:
    low, high = line.box[axis], line.box[axis + 2]
    return low < _MARGIN * extent if direction > 0 else high > (1 - _MARGIN) * extent


def _is_apart(outer: Line, inner: Line, axis: int) -> bool:
    gap = abs(outer.box[axis] - inner.box[axis])
    return gap > _APART * max(outer.size, inner.size)


def _furniture_key(text: str) -> str:
    return _DIGITS.sub("#", " ".join(text.split()).casefold())
