"""The part of a passage around what was found in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from retrieval.budget import cut_at_word
from retrieval.highlighting import Piece

# Characters before the first span, where a sentence or line is to begin.
BEFORE: Final = 160
MOST: Final = 300
BREAK: Final = re.compile(r"[.!?]\s+|\n+")
LEFT_OUT: Final = "…"

Span = tuple[int, int]


def excerpt(text: str, spans: Sequence[Span]) -> tuple[Piece, ...]:
    """Return the part of a text that begins shortly before its first span.

    The spans are matched pieces; "…" stands for what is left out before and after. It
    has about MOST characters, more only if the first span is longer. No spans, no
    pieces.
    """
    if not spans:
        return ()
    ordered = sorted(spans)
    start = beginning(text, ordered[0][0])
    least = ordered[0][1] - start
    end = start + max(least, len(cut_at_word(text[start:], MOST)))
    shown = [Piece(f"{LEFT_OUT} ", matched=False)] if start else []
    shown += pieces(text, ordered, start, end)
    if end < len(text.rstrip()):
        shown.append(Piece(f" {LEFT_OUT}", matched=False))
    return tuple(shown)


def beginning(text: str, first: int) -> int:
    """Return where a sentence, a line or at least a word begins before an offset."""
    least = max(0, first - BEFORE)
    starts = [least + each.end() for each in BREAK.finditer(text[least:first])]
    if not least:
        starts.insert(0, 0)
    if starts:
        return starts[-1]
    space = text.find(" ", least, first)
    return space + 1 if space >= 0 else first


def pieces(text: str, spans: Sequence[Span], start: int, end: int) -> Iterator[Piece]:
    """Yield a part of a text, its spans matched; they are in order and may overlap."""
    at = start
    for first, last in spans:
        left, right = max(first, at), min(last, end)
        if left >= right:
            continue
        if at < left:
            yield Piece(text[at:left], matched=False)
        yield Piece(text[left:right], matched=True)
        at = right
    if at < end:
        yield Piece(text[at:end], matched=False)
