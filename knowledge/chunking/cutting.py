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

from collections.abc import Sequence
from dataclasses import replace

from knowledge.chunking.chunks import Chunk, Preset
from knowledge.chunking.contexts import Contexts
from knowledge.chunking.counting import CachedCounter, TokenCounter
from knowledge.chunking.fitting import fit_window
from knowledge.chunking.units import section_trail, tables_of, units_of
from knowledge.chunking.ways import cheapest_way, measure
from knowledge.extraction.blocks import Block
from knowledge.structure.labels import plain_heading
from knowledge.structure.sections import Section


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
    asked_as: Sequence[str] = (),
) -> list[Chunk]:
    """Return the chunks of a document in reading order.

    `window` is the model's window in tokens, `reserved` what its prefix and special
    tokens take of it, `asked_as` other wordings of the question that the title is. Every
    character but white space is in at least one chunk; each chunk's text is
    `text[start:end]` and, with its context, fits the window.
    """
    room = window - reserved
    counter = CachedCounter(count_tokens)
    trail = section_trail(sections)
    tables = tables_of(text, blocks)
    heads = {
        table: plain_heading(text[blocks[table].start : blocks[table].end].strip("| "))
        for table in set(tables)
        if table >= 0
    }
    contexts = Contexts(title, asked_as, sections, trail, heads, counter, room)
    units = units_of(text, blocks, tables, sections, preset, counter, room)
    if not units:
        return []
    measures = measure(text, units, preset, counter, contexts, room)
    # The last level is that of index -1: outside any section.
    levels = [*(section.level for section in sections), 0]
    chunks = []
    for first, last in cheapest_way(measures, levels):
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
    chunks = fit_window(text, chunks, contexts, counter, room)
    return [replace(chunk, ordinal=index) for index, chunk in enumerate(chunks)]
