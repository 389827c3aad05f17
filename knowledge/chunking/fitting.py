"""Shortens contexts and chunks that are too long for the model's window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowledge.chunking.chunks import Chunk, embedded_text
from knowledge.chunking.contexts import Contexts
from knowledge.chunking.counting import CachedCounter
from knowledge.chunking.units import cut_place
from knowledge.sentences import split_sentences


def fit_window(
    text: str,
    chunks: Sequence[Chunk],
    contexts: Contexts,
    counter: CachedCounter,
    room: int,
) -> list[Chunk]:
    """Shorten contexts, then cut chunks, until each fits the model's window."""
    fitted = list(chunks)
    shortened = False
    while True:
        counts = counter.count(
            [embedded_text(one.context, text[one.start : one.end]) for one in fitted]
        )
        long = [one for one, count in zip(fitted, counts, strict=True) if count > room]
        if not any(_can_shrink(one) for one in long):
            return fitted
        shorter = {} if shortened else contexts.shorten([one.context for one in long])
        parts: list[Chunk] = []
        for chunk, count in zip(fitted, counts, strict=True):
            before = parts[-1] if parts else None
            if count > room and not shortened:
                parts.append(replace(chunk, context=shorter[chunk.context]))
            elif before and _gives_up_overlap(chunk, before, too_long=count > room):
                parts.append(_without_overlap(text, chunk, before))
            elif count > room:
                parts.extend(_halve(text, chunk))
            else:
                parts.append(chunk)
        fitted, shortened = parts, True


def _gives_up_overlap(chunk: Chunk, before: Chunk, *, too_long: bool) -> bool:
    """Tell whether a chunk must begin after the one before it, to shrink or to follow.

    Cut near its middle with its overlap, its first half could lie within the chunk
    before it; and a chunk that began in the first half of one that was cut would hold
    the second half whole.
    """
    return chunk.start < before.end and (too_long or chunk.start < before.start)


def _without_overlap(text: str, chunk: Chunk, before: Chunk) -> Chunk:
    rest = text[before.end : chunk.end]
    start = before.end + len(rest) - len(rest.lstrip())
    return replace(chunk, start=start, cut_start=before.cut_end)


def _can_shrink(chunk: Chunk) -> bool:
    return bool(chunk.context) or chunk.end - chunk.start > 1


def _halve(text: str, chunk: Chunk) -> list[Chunk]:
    """Cut a chunk near its middle: between sentences, else at a word."""
    if chunk.end - chunk.start < 2:
        return [replace(chunk, context="")]
    middle = (chunk.start + chunk.end) // 2
    ends = [end for _, end in split_sentences(text, chunk.start, chunk.end)[:-1]]
    near = [end for end in ends if abs(end - middle) <= (chunk.end - chunk.start) // 4]
    if near:
        cut, inside = min(near, key=lambda end: abs(end - middle)), False
    else:
        cut, inside = cut_place(text, chunk.start, middle), True
    rest = text[cut : chunk.end]
    return [
        replace(
            chunk,
            end=chunk.start + len(text[chunk.start : cut].rstrip()),
            cut_end=inside,
        ),
        replace(chunk, start=cut + len(rest) - len(rest.lstrip()), cut_start=inside),
    ]
