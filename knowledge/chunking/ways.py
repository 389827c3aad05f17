"""The cheapest way through a document: where its chunks begin and end.

Each cut has a price; a chunk begins with the overlap that it may have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from knowledge.chunking.chunks import MAX_CONTEXT_TOKENS, Preset
from knowledge.chunking.contexts import Contexts
from knowledge.chunking.counting import CachedCounter
from knowledge.chunking.units import Unit

# Prices of the way through a document, in chunks: one more chunk costs 1.
_CUT_AT_BLOCK = 0.08
_CUT_IN_BLOCK = 0.25
_CUT_AFTER_HEADING = 3.0
_SMALL_CHUNK = 0.35
# Sharing a chunk with a neighbour section is free for an empty one and costs as
# much as a chunk of one's own from this share of the size on.
_OWN_CHUNK_SHARE = 0.4
_HIGHER_SECTION_FACTOR = 2.0


@dataclass(frozen=True, slots=True)
class Measures:
    """Lengths of units, summed: `characters[j] - characters[i]` is that of i to j."""

    units: Sequence[Unit]
    characters: Sequence[int]
    tokens: Sequence[int]
    context_tokens: Sequence[int]
    preset: Preset
    window: int
    lead: list[int] = field(default_factory=list)

    def fits(self, first: int, last: int) -> bool:
        """Tell whether units first to last - 1 fit one chunk, context included."""
        tokens = self.tokens[last] - self.tokens[first] + self.context_tokens[first]
        if tokens > self.window and last - first > 1:
            return False
        if self.preset.unit == "tokens":
            return tokens <= self.preset.size or last - first == 1
        return self.length(first, last) <= self.preset.size or last - first == 1

    def length(self, first: int, last: int) -> int:
        """Return the length of units first to last - 1 in the preset's unit."""
        if self.preset.unit == "tokens":
            return self.tokens[last] - self.tokens[first]
        return self.units[last - 1].end - self.units[first].start


def measure(
    text: str,
    units: Sequence[Unit],
    preset: Preset,
    counter: CachedCounter,
    contexts: Contexts,
    room: int,
) -> Measures:
    """Return the lengths of units and of their contexts, and where chunks lead in."""
    characters, tokens = [0], [0]
    for unit, count in zip(
        units,
        counter.count([text[unit.start : unit.end] for unit in units]),
        strict=True,
    ):
        characters.append(characters[-1] + unit.end - unit.start)
        tokens.append(tokens[-1] + count)
    texts = [contexts.of(units, index, index + 1) for index in range(len(units))]
    most = min(MAX_CONTEXT_TOKENS, room // 2)
    context_tokens = [min(most, count) for count in counter.count(texts)]
    measures = Measures(units, characters, tokens, context_tokens, preset, room)
    measures.lead.extend(_lead(measures, index) for index in range(len(units)))
    return measures


def _lead(measures: Measures, index: int) -> int:
    """Return where a chunk of the units from `index` on begins, overlap included."""
    units = measures.units
    first = index
    if units[index].begins_section or units[index].cut_start:
        return first
    while first > 0 and not units[first].begins_section:
        before = units[first - 1]
        if before.cut_start or before.cut_end:
            break
        if measures.length(first - 1, index) > measures.preset.overlap:
            break
        if not measures.fits(first - 1, index + 1):
            break
        first -= 1
    return first


def cheapest_way(measures: Measures, levels: Sequence[int]) -> list[tuple[int, int]]:
    """Return the chunks as (first, last) unit ranges that cost least in all."""
    count = len(measures.units)
    shared = _sharing_prices(measures, levels)
    cuts = [_cut_price(measures.units, last) for last in range(1, count)]
    endings = [0.0, *map(sum, zip(shared[1:], [*cuts, 0.0], strict=False))]
    best = [0.0] + [float("inf")] * count
    back = [0] * (count + 1)
    for first in range(count):
        start = measures.lead[first]
        base = best[first] + 1.0 - shared[first + 1]
        for last in range(first + 1, count + 1):
            if last > first + 1 and not measures.fits(start, last):
                break
            unused = 1 - measures.length(first, last) / measures.preset.size
            price = base + endings[last] + _SMALL_CHUNK * unused * unused
            if price < best[last]:
                best[last], back[last] = price, first
    way: list[tuple[int, int]] = []
    last = count
    while last:
        way.append((back[last], last))
        last = back[last]
    return way[::-1]


def _cut_price(units: Sequence[Unit], last: int) -> float:
    """Return what it costs to cut before unit `last`."""
    if units[last - 1].is_heading:
        return _CUT_AFTER_HEADING
    if units[last].begins_section:
        return 0.0
    return _CUT_AT_BLOCK if units[last].begins_block else _CUT_IN_BLOCK


def _sharing_prices(measures: Measures, levels: Sequence[int]) -> list[float]:
    """Return running sums of what it costs that a section starts inside a chunk.

    `sums[last] - sums[first + 1]` is the price of the section starts strictly inside
    the units first to last - 1.
    """
    units = measures.units
    starts = [index for index, unit in enumerate(units) if unit.begins_section]
    depths = [levels[units[index].section] for index in starts]
    before = _nearest_not_deeper(starts, depths, default=0)
    backwards = _nearest_not_deeper(starts[::-1], depths[::-1], default=len(units))
    own = measures.preset.size * _OWN_CHUNK_SHARE
    prices = [0.0] * (len(units) + 1)
    for index, first, last in zip(starts, before, backwards[::-1], strict=True):
        if index == 0 or units[index - 1].is_heading:
            continue
        smaller = min(measures.length(first, index), measures.length(index, last))
        rises = levels[units[index - 1].section] > levels[units[index].section]
        prices[index] = smaller / own * (_HIGHER_SECTION_FACTOR if rises else 1.0)
    return [0.0, *accumulate(prices)]


def _nearest_not_deeper(
    starts: Sequence[int], depths: Sequence[int], *, default: int
) -> list[int]:
    """Return, for each start, the last one before it in the list as high or higher."""
    nearest: list[int] = []
    stack: list[tuple[int, int]] = []
    for start, depth in zip(starts, depths, strict=True):
        while stack and stack[-1][1] > depth:
            stack.pop()
        nearest.append(stack[-1][0] if stack else default)
        stack.append((start, depth))
    return nearest
