"""The units between which a document is cut: its sentences, the long ones in parts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from knowledge.chunking.chunks import MAX_CONTEXT_TOKENS, Preset
from knowledge.chunking.counting import CachedCounter
from knowledge.extraction.blocks import Block, BlockKind
from knowledge.sentences import split_at_end_marks, split_sentences
from knowledge.structure.sections import Section

MAX_CHUNK_CHARACTERS = 8_000

_WORD_END = re.compile(r"\s+")
_NOT_SPACE = re.compile(r"\S")
# So that a document of very short lines costs no more than one of sentences.
_SMALLEST_UNITS_PER_CHUNK = 16
_CHARACTERS_PER_TOKEN = 3


@dataclass(frozen=True, slots=True)
class Unit:
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


def section_trail(sections: Sequence[Section]) -> list[int]:
    """Return each section's parent, as an index into the same list or -1."""
    parents: list[int] = []
    stack: list[int] = []
    for index, section in enumerate(sections):
        while stack and sections[stack[-1]].end <= section.start:
            stack.pop()
        parents.append(stack[-1] if stack else -1)
        stack.append(index)
    return parents


def tables_of(text: str, blocks: Sequence[Block]) -> list[int]:
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


def units_of(
    text: str,
    blocks: Sequence[Block],
    tables: Sequence[int],
    sections: Sequence[Section],
    preset: Preset,
    counter: CachedCounter,
    room: int,
) -> list[Unit]:
    """Return the sentences of a document: the long ones cut, tiny ones joined."""
    in_characters = preset.unit == "characters"
    largest = preset.size if in_characters else MAX_CHUNK_CHARACTERS
    size = preset.size if in_characters else preset.size * _CHARACTERS_PER_TOKEN
    smallest = size // _SMALLEST_UNITS_PER_CHUNK
    boundaries = _Boundaries(sections)
    units: list[Unit] = []
    for index, start, end, kind in _regions(text, blocks):
        table = tables[index] if index >= 0 else -1
        begins_block = True
        for begun, ended in _sentences(text, start, end, kind, largest):
            body = text[begun:ended]
            first = ended - len(body.lstrip())
            last = first + len(body.strip())
            if first >= last:
                continue
            unit = Unit(
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


def _may_join(before: Unit, unit: Unit, smallest: int) -> bool:
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
        self._parents = section_trail(sections)
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


def _cut_by_words(text: str, unit: Unit, largest: int) -> list[Unit]:
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
        cut = cut_place(text, at, min(goal, at + largest))
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


def cut_place(text: str, start: int, goal: int) -> int:
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
    text: str, units: Sequence[Unit], size: int, counter: CachedCounter
) -> list[Unit]:
    """Cut the units that have more than `size` tokens, at words."""
    size = max(8, size - min(MAX_CONTEXT_TOKENS, size // 2))
    pending = list(units)
    while True:
        counts = counter.count([text[unit.start : unit.end] for unit in pending])
        parts: list[Unit] = []
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
