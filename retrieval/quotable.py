"""The whole sentences of a document that may be quoted. Pure.

A quotation is never cut, so what counts is where a sentence begins and ends in its
document, not where a passage does (S1-EXT-08). Headings are no sentences; a row of a
table is one; lines without end marks run together until a blank line, a heading or a
list item (S1-EXT-11), since none of them need mean anything without the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from knowledge.extraction.blocks import BlockKind
from knowledge.sentences import split_sentences

Span = tuple[int, int]
# Kind, start and end of one, as a document stores them; what follows is not needed.
Blocks = Sequence[Sequence[Any]]

# A longer one is no sentence (S1-EXT-12), in characters.
LONGEST = 2_000

_END_MARK = re.compile(r"[.!?…:;。！？][\"'”’»“)\]*_]*\Z")
_ITEM = re.compile(
    r"\s*(?:[-*+•▪◦‣·●○■–—]\s|\(?(?:\d{1,3}(?:\.\d{1,3})*|[^\W\d_]|[ivxlcdm]{1,6})[.)]\s"
    r"|\d{1,3}(?:\.\d{1,3})+\s|§\s?\d)"
)
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")


def sentences_touched(text: str, blocks: Blocks, start: int, end: int) -> list[Span]:
    """Return the sentences that `text[start:end]` touches, without white space around.

    `blocks` are the document's, in the order of the text. Sentences longer than LONGEST
    are among them.
    """
    return [
        (first, last)
        for first, last in _sentences(text, blocks, start, end)
        if first < end and start < last
    ]


def _sentences(text: str, blocks: Blocks, start: int, end: int) -> Iterator[Span]:
    """Yield the sentences of all runs of blocks that touch a span."""
    for first, last, kind in _runs(text, blocks):
        if last <= start or end <= first:
            continue
        if kind == BlockKind.TABLE_ROW:
            yield from _trimmed(text, first, last)
        else:
            yield from _run_together(text, split_sentences(text, first, last))


def _runs(text: str, blocks: Blocks) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, kind) of blocks, without headings; lines in a row are one."""
    opened: tuple[int, int, str] | None = None
    for kind, start, end, *_rest in blocks:
        goes_on = (
            opened is not None
            and kind == opened[2] == BlockKind.LINE
            and not _BLANK_LINE.search(text, max(opened[1] - 1, 0), start + 1)
        )
        if opened is not None and goes_on:
            opened = (opened[0], end, kind)
            continue
        if opened is not None:
            yield opened
        opened = None if kind == BlockKind.HEADING else (start, end, kind)
    if opened is not None:
        yield opened


def _run_together(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield sentences, those without an end mark together with what follows them."""
    opened: Span | None = None
    for first, last in (span for each in spans for span in _trimmed(text, *each)):
        if opened is not None and not _is_apart(text, opened, first):
            opened = (opened[0], last)
            continue
        if opened is not None:
            yield opened
        opened = (first, last)
    if opened is not None:
        yield opened


def _is_apart(text: str, before: Span, start: int) -> bool:
    """Tell whether a sentence is one of its own, and does not go on with the next."""
    return (
        _END_MARK.search(text, before[0], before[1]) is not None
        or _BLANK_LINE.search(text, before[1], start) is not None
        or _ITEM.match(text, start) is not None
    )


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield a span without white space around, or nothing where that is all."""
    body = text[start:end]
    first = end - len(body.lstrip())
    last = first + len(body.strip())
    if first < last:
        yield first, last
