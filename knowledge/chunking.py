"""Cut a document into chunks: whole sentences, sections kept together.

A chunk is a span of the document's text. Cuts fall between sentences, rather at
the start of a section or block than inside one; where they go is the cheapest way
through the whole document, not the first that fits. A chunk begins with the last
whole sentences of the chunk before it, as many as fit the overlap, unless it begins
a section or goes on with a sentence that had to be cut. What is embedded besides
the text is the chunk's context: the document's title, the headings above it, and the
head of the table that it continues.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from knowledge.extraction.blocks import Block, BlockKind
from knowledge.sentences import split_at_end_marks, split_sentences
from knowledge.structure import Section, plain_heading

CHUNKER_VERSION = "2"
MAX_CONTEXT_TOKENS = 64
MAX_CHUNK_CHARACTERS = 8_000

TokenCounter = Callable[[Sequence[str]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Preset:
    """A layer's chunk size and overlap, both in `unit` (characters or tokens)."""

    name: str
    unit: str
    size: int
    overlap: int


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("text", "characters", 1200, 150),
        Preset("voice", "tokens", 500, 50),
        Preset("voice-wide", "tokens", 500, 100),
    )
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of the text with what is embedded before it.

    `cut_start` and `cut_end` mark a chunk that begins or stops inside a sentence.
    """

    ordinal: int
    start: int
    end: int
    context: str
    path: tuple[str, ...]
    cut_start: bool
    cut_end: bool


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, or a part of one that is longer than a chunk."""

    start: int
    end: int
    section: int
    begins_section: bool
    begins_block: bool
    is_heading: bool
    table: int
    cut_start: bool = False
    cut_end: bool = False


@dataclass(frozen=True, slots=True)
class _Measures:
    """Lengths of units, summed: `characters[j] - characters[i]` is that of i to j."""

    units: Sequence[_Unit]
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


# Prices of the way through a document, in chunks: one more chunk costs 1.
_CUT_AT_BLOCK = 0.08
_CUT_IN_BLOCK = 0.25
_CUT_AFTER_HEADING = 3.0
_SMALL_CHUNK = 0.35
# Sharing a chunk with a neighbour section is free for an empty one and costs as
# much as a chunk of one's own from this share of the size on.
_OWN_CHUNK_SHARE = 0.4
_HIGHER_SECTION_FACTOR = 2.0

_COUNT_BATCH = 1_000
_WORD_END = re.compile(r"\s+")
_NOT_SPACE = re.compile(r"\S")
# So that a document of very short lines costs no more than one of sentences.
_SMALLEST_UNITS_PER_CHUNK = 16
_CHARACTERS_PER_TOKEN = 3


def chunk_document(
    text: str,
    title: str,
    blocks: Sequence[Block],
    sections: Sequence[Section],
    preset: Preset,
    count_tokens: TokenCounter,
    *,
    window: int,
    reserved: int,
) -> list[Chunk]:
    """Return the chunks of a document in reading order.

    `window` is the model's window in tokens, `reserved` what its prefix and special
    tokens take of it. Every character but white space is in at least one chunk; each
    chunk's text is `text[start:end]` and, with its context, fits the window.
    """
    room = window - reserved
    counter = _Counter(count_tokens)
    trail = _section_trail(sections)
    tables = _tables(text, blocks)
    heads = {
        table: plain_heading(text[blocks[table].start : blocks[table].end].strip("| "))
        for table in set(tables)
        if table >= 0
    }
    contexts = _Contexts(title, sections, trail, heads, counter, room)
    units = _units(text, blocks, tables, sections, preset, counter, room)
    if not units:
        return []
    measures = _measure(text, units, preset, counter, contexts, room)
    # The last level is that of index -1: outside any section.
    levels = [*(section.level for section in sections), 0]
    chunks = []
    for first, last in _cheapest_way(measures, levels):
        start = measures.lead[first]
        chunks.append(
            Chunk(
                ordinal=0,
                start=units[start].start,
                end=units[last - 1].end,
                context=contexts.of(units, first, last),
                path=contexts.path(units, first, last),
                cut_start=units[start].cut_start,
                cut_end=units[last - 1].cut_end,
            )
        )
    chunks = _fit_window(text, chunks, contexts, counter, room)
    return [replace(chunk, ordinal=index) for index, chunk in enumerate(chunks)]


def embedded_text(chunk_context: str, chunk_text: str) -> str:
    """Return what is embedded, hashed and counted for a passage."""
    return f"{chunk_context}\n{chunk_text}" if chunk_context else chunk_text


class _Counter:
    """Counts tokens in batches, each text once."""

    def __init__(self, count_tokens: TokenCounter) -> None:
        self._count_tokens = count_tokens
        self._known: dict[str, int] = {}

    def count(self, texts: Sequence[str]) -> list[int]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        for at in range(0, len(missing), _COUNT_BATCH):
            batch = missing[at : at + _COUNT_BATCH]
            self._known.update(zip(batch, self._count_tokens(batch), strict=True))
        return [self._known[text] for text in texts]


class _Contexts:
    """What is embedded before a chunk: title, headings above, head of the table."""

    def __init__(
        self,
        title: str,
        sections: Sequence[Section],
        trail: Sequence[int],
        table_heads: dict[int, str],
        counter: _Counter,
        room: int,
    ) -> None:
        self._title = " ".join(title.split())[:200]
        self._sections = sections
        self._parents = trail
        self._table_heads = table_heads
        self._counter = counter
        self._room = min(MAX_CONTEXT_TOKENS, room // 2)

    def path(self, units: Sequence[_Unit], first: int, last: int) -> tuple[str, ...]:
        """Return the path of the deepest section that holds all units of a chunk."""
        section = units[first].section
        final = units[last - 1].section
        while section >= 0 and not self._holds(section, final):
            section = self._parents[section]
        return self._sections[section].path if section >= 0 else ()

    def of(self, units: Sequence[_Unit], first: int, last: int) -> str:
        path = [part for part in self.path(units, first, last) if _has_word(part)]
        if path and path[0].casefold() == self._title.casefold():
            path = path[1:]
        lines = [" > ".join(part for part in (self._title, *path) if part)]
        table = units[first].table
        if table >= 0 and first > 0 and units[first - 1].table == table:
            lines.append(self._table_heads[table])
        return "\n".join(line for line in lines if line)

    def shorten(self, contexts: Sequence[str]) -> dict[str, str]:
        """Return each context cut to at most 64 tokens: its start and its last part."""
        shortened: dict[str, str] = {}
        variants = {context: _shorter_variants(context) for context in contexts}
        self._counter.count([one for tries in variants.values() for one in tries])
        for context, tries in variants.items():
            counts = zip(tries, self._counter.count(tries), strict=True)
            fitting = (one for one, count in counts if count <= self._room)
            shortened[context] = next(fitting, "")
        return shortened

    def _holds(self, section: int, other: int) -> bool:
        while other > section:
            other = self._parents[other]
        return other == section


def _shorter_variants(context: str) -> list[str]:
    parts = [part for line in context.split("\n") for part in line.split(" > ")]
    variants = [context]
    if len(parts) > 2:
        variants.append(" > ".join([parts[0], *parts[-2:]]))
    if len(parts) > 1:
        variants.append(" > ".join([parts[0], parts[-1]]))
    words = variants[-1].split()
    shares = (32, 24, 16, 12, 8, 6, 4, 2, 1)
    variants.extend(" ".join(words[:count]) for count in shares if count < len(words))
    return variants


def _has_word(part: str) -> bool:
    letters = sum(1 for character in part if character.isalpha())
    return letters > 2


def _section_trail(sections: Sequence[Section]) -> list[int]:
    """Return each section's parent, as an index into the same list or -1."""
    parents: list[int] = []
    stack: list[int] = []
    for index, section in enumerate(sections):
        while stack and sections[stack[-1]].end <= section.start:
            stack.pop()
        parents.append(stack[-1] if stack else -1)
        stack.append(index)
    return parents


def _tables(text: str, blocks: Sequence[Block]) -> list[int]:
    """Return, for each block, the index of its table's first row, or -1."""
    tables: list[int] = []
    for index, block in enumerate(blocks):
        table = -1
        if block.kind is BlockKind.TABLE_ROW:
            table = index
            if index and tables[-1] >= 0:
                gap = text[blocks[index - 1].end : block.start]
                table = tables[-1] if gap.count("\n") < 2 else index
        tables.append(table)
    return tables


def _units(
    text: str,
    blocks: Sequence[Block],
    tables: Sequence[int],
    sections: Sequence[Section],
    preset: Preset,
    counter: _Counter,
    room: int,
) -> list[_Unit]:
    """Return the sentences of a document: the long ones cut, tiny ones joined."""
    in_characters = preset.unit == "characters"
    largest = preset.size if in_characters else MAX_CHUNK_CHARACTERS
    size = preset.size if in_characters else preset.size * _CHARACTERS_PER_TOKEN
    smallest = size // _SMALLEST_UNITS_PER_CHUNK
    boundaries = _Boundaries(sections)
    units: list[_Unit] = []
    for index, start, end, kind in _regions(text, blocks):
        table = tables[index] if index >= 0 else -1
        begins_block = True
        for begun, ended in _sentences(text, start, end, kind, largest):
            body = text[begun:ended]
            first = ended - len(body.lstrip())
            last = first + len(body.strip())
            if first >= last:
                continue
            unit = _Unit(
                start=first,
                end=last,
                section=boundaries.section_at(first),
                begins_section=boundaries.begins,
                begins_block=begins_block,
                is_heading=kind is BlockKind.HEADING,
                table=table,
            )
            begins_block = False
            boundaries.pass_to(last)
            if units and _may_join(units[-1], unit, smallest):
                units[-1] = replace(units[-1], end=unit.end)
            else:
                units.append(unit)
    if preset.unit == "tokens":
        return _cut_by_tokens(text, units, min(preset.size, room), counter)
    return [part for unit in units for part in _cut_by_words(text, unit, largest)]


def _regions(
    text: str, blocks: Sequence[Block]
) -> list[tuple[int, int, int, BlockKind]]:
    """Return (block index, start, end, kind) of spans that cover the whole text."""
    regions: list[tuple[int, int, int, BlockKind]] = []
    at = 0
    for index, block in enumerate(blocks):
        if at < block.start and not text[at : block.start].isspace():
            regions.append((-1, at, block.start, BlockKind.PARAGRAPH))
        if at < block.end:
            regions.append((index, max(at, block.start), block.end, block.kind))
            at = block.end
    if at < len(text):
        regions.append((-1, at, len(text), BlockKind.PARAGRAPH))
    return regions


def _sentences(
    text: str, start: int, end: int, kind: BlockKind, largest: int
) -> list[tuple[int, int]]:
    if kind in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.CODE}:
        return split_sentences(text, start, end)
    if end - start > largest:
        return split_at_end_marks(text, start, end)
    return [(start, end)]


def _may_join(before: _Unit, unit: _Unit, smallest: int) -> bool:
    return (
        unit.end - before.start < smallest
        and not unit.begins_section
        and not before.is_heading
        and not unit.is_heading
        and before.section == unit.section
        and before.table == unit.table
    )


class _Boundaries:
    """Walks the sections along with the units, both in order of their starts."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self._sections = sections
        self._parents = _section_trail(sections)
        self._next = 0
        self._current = -1
        self._passed = 0
        self.begins = False

    def section_at(self, first: int) -> int:
        """Move to a unit's start; return its deepest section, as an index or -1."""
        self.begins = False
        while self._next < len(self._sections):
            section = self._sections[self._next]
            if section.start > first:
                break
            if section.start >= self._passed and _is_boundary(section):
                self.begins = True
            self._current = self._next
            self._next += 1
        while self._current >= 0 and self._sections[self._current].end <= first:
            self._current = self._parents[self._current]
        return self._current

    def pass_to(self, last: int) -> None:
        """Note the end of a unit: a section that starts inside one begins none."""
        self._passed = last


def _is_boundary(section: Section) -> bool:
    """Tell whether a section is one to cut at, more than an item of a list."""
    named = section.label[:1].isalpha() and len(section.label) > 2
    return (
        section.kind == "heading"
        or bool(section.title)
        or named
        or section.label.startswith("§")
    )


def _cut_by_words(text: str, unit: _Unit, largest: int) -> list[_Unit]:
    """Cut a unit into even parts of at most `largest` characters, at words."""
    length = unit.end - unit.start
    if length <= largest:
        return [unit]
    count = -(-length // largest)
    parts: list[tuple[int, int]] = []
    at = unit.start
    while unit.end - at > largest:
        remaining = max(1, count - len(parts))
        goal = at + min(largest, -(-(unit.end - at) // remaining) + 20)
        cut = _cut_place(text, at, min(goal, at + largest))
        parts.append((at, cut))
        resumed = _NOT_SPACE.search(text, cut)
        at = resumed.start() if resumed else unit.end
    parts.append((at, unit.end))
    return [
        replace(
            unit,
            start=first,
            end=first + len(text[first:last].rstrip()),
            begins_section=unit.begins_section and index == 0,
            begins_block=unit.begins_block and index == 0,
            cut_start=unit.cut_start or index > 0,
            cut_end=unit.cut_end or index < len(parts) - 1,
        )
        for index, (first, last) in enumerate(parts)
    ]


def _cut_place(text: str, start: int, goal: int) -> int:
    """Return the last word start before `goal`, or a place between two characters."""
    window = text[start : goal + 1]
    for match in reversed(list(_WORD_END.finditer(window))):
        if match.start() > 0:
            return start + match.start()
    cut = goal
    while cut > start + 1 and unicodedata.combining(text[cut]):
        cut -= 1
    return cut


def _cut_by_tokens(
    text: str, units: Sequence[_Unit], size: int, counter: _Counter
) -> list[_Unit]:
    """Cut the units that have more than `size` tokens, at words."""
    size = max(8, size - min(MAX_CONTEXT_TOKENS, size // 2))
    pending = list(units)
    while True:
        counts = counter.count([text[unit.start : unit.end] for unit in pending])
        parts: list[_Unit] = []
        for unit, count in zip(pending, counts, strict=True):
            if count <= size or unit.end - unit.start < 2:
                parts.append(unit)
                continue
            length = unit.end - unit.start
            largest = max(1, min(length - 1, int(length * size / count * 0.95)))
            parts.extend(_cut_by_words(text, unit, largest))
        if len(parts) == len(pending):
            return parts
        pending = parts


def _measure(
    text: str,
    units: Sequence[_Unit],
    preset: Preset,
    counter: _Counter,
    contexts: _Contexts,
    room: int,
) -> _Measures:
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
    measures = _Measures(units, characters, tokens, context_tokens, preset, room)
    measures.lead.extend(_lead(measures, index) for index in range(len(units)))
    return measures


def _lead(measures: _Measures, index: int) -> int:
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


def _cheapest_way(measures: _Measures, levels: Sequence[int]) -> list[tuple[int, int]]:
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


def _cut_price(units: Sequence[_Unit], last: int) -> float:
    """Return what it costs to cut before unit `last`."""
    if units[last - 1].is_heading:
        return _CUT_AFTER_HEADING
    if units[last].begins_section:
        return 0.0
    return _CUT_AT_BLOCK if units[last].begins_block else _CUT_IN_BLOCK


def _sharing_prices(measures: _Measures, levels: Sequence[int]) -> list[float]:
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


def _fit_window(
    text: str,
    chunks: Sequence[Chunk],
    contexts: _Contexts,
    counter: _Counter,
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
        cut, inside = _cut_place(text, chunk.start, middle), True
    rest = text[cut : chunk.end]
    return [
        replace(
            chunk,
            end=chunk.start + len(text[chunk.start : cut].rstrip()),
            cut_end=inside,
        ),
        replace(chunk, start=cut + len(rest) - len(rest.lstrip()), cut_start=inside),
    ]
