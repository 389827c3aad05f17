"""A document's sections as its page lists them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from knowledge.models import Document
from retrieval.lines import Span, Text, Window

# Of a longer outline only the upper levels are shown.
MOST_SECTIONS = 300
LEVELS = 6


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A section: the address of its place, and how deep it stands, from 1."""

    title: str
    address: str
    level: int
    here: bool


def outline_of(
    document: Document, text: Text, window: Window, span: Span | None
) -> list[OutlineEntry]:
    """Return the document's sections, as far down as they are few enough.

    A clause that has a number and no title, such as `(a)`, would tell a reader nothing.
    """
    rows = [
        (level, start, end, path[-1] if path else title)
        for level, start, end, path, title in document.sections.exclude(title="")
        .order_by("ordinal")
        .values_list("level", "start", "end", "path", "title")
    ]
    levels = sorted({level for level, *_rest in rows})
    lowest = deepest(rows, levels)
    kept = [row for row in rows if row[0] <= lowest][:MOST_SECTIONS]
    here = place_of(kept, span)
    return [
        OutlineEntry(
            title=title,
            address=address_of(text, window, start),
            level=min(levels.index(level) + 1, LEVELS),
            here=index == here,
        )
        for index, (level, start, _end, title) in enumerate(kept)
    ]


def deepest(rows: Sequence[tuple[int, int, int, str]], levels: Sequence[int]) -> int:
    """Return the deepest level down to which the sections are few enough to list."""
    found = levels[0] if levels else 0
    for level in levels[1:]:
        if sum(row[0] <= level for row in rows) > MOST_SECTIONS:
            break
        found = level
    return found


def place_of(
    rows: Sequence[tuple[int, int, int, str]], span: Span | None
) -> int | None:
    """Return the index of the innermost listed section that holds the cited place."""
    if span is None:
        return None

    def holding() -> Iterator[int]:
        for index, (_level, start, end, _title) in enumerate(rows):
            if start <= span[0] < end:
                yield index

    return max(holding(), default=None)


def address_of(text: Text, window: Window, offset: int) -> str:
    """Return the address of a place, in the shown part or in another one."""
    fragment = f"#L{text.line_at(offset)}"
    if window.start <= offset < max(window.end, 1):
        return fragment
    return f"?from={offset}{fragment}"
