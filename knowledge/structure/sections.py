"""The structure map of a document: its headings and numbered clauses.

Headings come from the blocks; numbered clauses are read from the lines: `7.2`,
`(b)`, `Article 12`, `§ 4 ust. 2`, `Điều 5`, `статья 5`, `Annex II`, and the like.
A clause inside a numbered one carries the whole number: the paragraph "2." of
Article 7 is `7(2)`, its point "(b)" is `7(2)(b)`, and both are of an article.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from knowledge.extraction.blocks import Block, BlockKind
from knowledge.structure.labels import (
    FIRST_NUMBERS,
    INNER_UNITS,
    MAX_TITLE_LENGTH,
    Label,
    clause_label,
    clause_title,
    first_item,
    heading_label,
    label_lines,
    lacks_title,
    plain_heading,
    row_label,
)
from knowledge.structure.numbers import Unit


@dataclass(frozen=True, slots=True)
class Section:
    """A heading or a numbered clause and the span of all it contains.

    `number` is the whole one (`7.2`, `7(2)(b)`, `II`), empty if there is none; `label`
    is how it is written (`Article 12`), `unit` what its number counts (in `7(2)(b)`
    what 7 is), None where the text does not say; `path` holds the headings that lead
    here, the own one last (`7 Termination`, `7.2 Notice`).
    """

    kind: str
    number: str
    label: str
    title: str
    level: int
    start: int
    end: int
    path: tuple[str, ...]
    unit: Unit | None = None


@dataclass(slots=True)
class _Open:
    """A section whose end is not known yet."""

    kind: str
    style: str
    rank: int
    own_number: str
    number: str
    label: str
    title: str
    level: int
    outline_level: int
    start: int
    path: tuple[str, ...]
    unit: Unit | None
    end: int = 0

    def close(self) -> Section:
        return Section(
            self.kind,
            self.number,
            self.label,
            self.title,
            self.level,
            self.start,
            self.end,
            self.path,
            self.unit,
        )


def build_sections(text: str, blocks: Sequence[Block]) -> tuple[Section, ...]:
    """Return the sections of a document in the order of their starts.

    They nest: a section ends where the next one of its level or a higher one
    starts, trailing white space apart.
    """
    done: list[_Open] = []
    stack: list[_Open] = []
    for section in _openings(text, blocks, stack):
        done.append(section)
        stack.append(section)
    _pop(text, stack, 0, len(text))
    return tuple(section.close() for section in done)


def path_at(sections: Sequence[Section], offset: int) -> tuple[str, ...]:
    """Return the path of the deepest section that holds an offset, or ()."""
    index = bisect_right(sections, offset, key=lambda section: section.start)
    while index:
        index -= 1
        if sections[index].end > offset:
            return sections[index].path
    return ()


def _openings(
    text: str, blocks: Sequence[Block], stack: list[_Open]
) -> Iterator[_Open]:
    """Yield the sections as they open; those they end are taken off the stack."""
    headings = 0
    titles: set[int] = set()
    for index, block in enumerate(blocks):
        if index in titles:
            continue
        if block.kind is BlockKind.HEADING:
            headings += 1
            whole = plain_heading(text[block.start : block.end])
            label = heading_label(whole, is_first=headings == 1)
            title = _title_below(text, blocks, index, label)
            if title:
                titles.add(index + 1)
            yield _open_heading(text, block, label, title, stack)
        elif block.kind is BlockKind.TABLE_ROW:
            label = row_label(text[block.start : block.end])
            if label is not None:
                yield _open_clause(text, block.start, label, stack)
        elif block.kind in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}:
            yield from _openings_in(text, blocks, index, stack, titles)


def _openings_in(
    text: str,
    blocks: Sequence[Block],
    index: int,
    stack: list[_Open],
    titles: set[int],
) -> Iterator[_Open]:
    """Yield the clauses of a paragraph; notes the block below that is a title."""
    block = blocks[index]
    for start, line, continues in label_lines(text, block):
        label = clause_label(line)
        if label is None or _repeats(label, stack):
            continue
        title = ""
        if start + len(line) >= block.end:
            title = _title_below(text, blocks, index, label)
        if title:
            titles.add(index + 1)
        if title and blocks[index + 1].kind is BlockKind.HEADING:
            heading = replace(blocks[index + 1], start=start)
            yield _open_heading(text, heading, label, title, stack)
            continue
        label = replace(label, continues=continues, rest=label.rest or title)
        yield _open_clause(text, start, label, stack)
        inner = first_item(label)
        if inner is not None:
            at = start + len(line.rstrip()) - len(label.rest)
            inner = replace(inner, continues=continues)
            yield _open_clause(text, at, inner, stack)


def _title_below(
    text: str, blocks: Sequence[Block], index: int, label: Label | None
) -> str:
    """Return the title in the block below a bare name ("Chapter I"), or "".

    It is a heading or a line in capitals that has no number of its own.
    """
    if label is None or not lacks_title(label) or index + 1 >= len(blocks):
        return ""
    block = blocks[index + 1]
    title = plain_heading(text[block.start : block.end])
    is_loud = block.kind is BlockKind.PARAGRAPH and title.isupper()
    if not is_loud and block.kind is not BlockKind.HEADING:
        return ""
    if heading_label(title, is_first=False) is not None:
        return ""
    return title if len(title) < MAX_TITLE_LENGTH else ""


def _repeats(label: Label, stack: Sequence[_Open]) -> bool:
    """Tell whether a name stands again below the heading that has it already."""
    return lacks_title(label) and any(
        opened.unit == label.unit and opened.own_number == label.number
        for opened in stack
    )


def _open_heading(
    text: str, block: Block, label: Label | None, title: str, stack: list[_Open]
) -> _Open:
    """Open a heading; `title` is one that stands below it on a line of its own."""
    whole = plain_heading(text[block.start : block.end]) if not title else ""
    outline_level = max(1, block.level)
    while stack and _ends_at_heading(stack[-1], outline_level, label):
        _pop(text, stack, len(stack) - 1, block.start)
    level = outline_level
    if stack:
        level = max(level, stack[-1].level + 1)
    bare = label is not None and not label.label[:1].isalpha() and label.rank < 0
    if title and label:
        shown = f"{label.label.rstrip('.')} {title}"
    else:
        shown = f"{label.number} {label.rest}".strip() if label and bare else whole
        if label is not None and not label.rest:
            shown = label.label.rstrip(".")
    return _Open(
        kind="heading",
        style=label.style if label else "",
        rank=label.rank if label else -1,
        own_number=label.number if label else "",
        number=label.number if label else "",
        label=label.label if label else "",
        title=title or (label.rest if label else whole),
        level=level,
        outline_level=outline_level,
        start=block.start,
        path=(*(stack[-1].path if stack else ()), shown),
        unit=label.unit if label else None,
    )


def _ends_at_heading(opened: _Open, outline_level: int, label: Label | None) -> bool:
    """Tell whether a heading ends an open section.

    One of the same level does not where it is a smaller unit: an article below a
    chapter, or a bare "II." below a "Part I".
    """
    if opened.kind == "clause" or opened.outline_level > outline_level:
        return True
    is_part_of = (
        opened.rank >= 0
        and label is not None
        and (label.rank > opened.rank or label.style.startswith("bare"))
    )
    return opened.outline_level == outline_level and not is_part_of


def _open_clause(text: str, start: int, label: Label, stack: list[_Open]) -> _Open:
    label = _read_roman(label, stack)
    _pop(text, stack, _parent_count(label, stack), start)
    parent = stack[-1] if stack else None
    number, unit = label.number, label.unit
    is_inner = label.style.startswith("bare") or label.unit in INNER_UNITS
    if is_inner and parent is not None and parent.number and "." not in number:
        number, unit = f"{parent.number}({label.number})", parent.unit
    title = clause_title(label)
    shown = label.label.rstrip(".")
    level = (parent.level if parent else 0) + 1
    return _Open(
        kind="clause",
        style=label.style,
        rank=label.rank,
        own_number=label.number,
        number=number,
        label=label.label,
        title=title,
        level=level,
        outline_level=level,
        start=start,
        path=(*(parent.path if parent else ()), f"{shown} {title}".strip()),
        unit=unit,
    )


def _pop(text: str, stack: list[_Open], keep: int, end: int) -> None:
    """Close the sections above the first `keep` at `end`."""
    if len(stack) <= keep:
        return
    first = stack[keep].start
    end = first + len(text[first:end].rstrip()) if end - first < 200 else end
    while end > first and text[end - 1].isspace():
        end -= 1
    while len(stack) > keep:
        stack.pop().end = end


def _parent_count(label: Label, stack: Sequence[_Open]) -> int:
    """Return how many open sections stay open around a clause with this label."""
    if label.rank >= 0:
        return _kept(stack, lambda opened: _yields_to_name(opened, label.rank))
    if label.style == "dotted":
        return _kept(stack, lambda opened: _yields_to_dotted(opened, label.number))
    first = label.number in FIRST_NUMBERS
    for index in range(len(stack) - 1, -1, -1):
        opened = stack[index]
        if opened.kind == "heading" or opened.rank >= 0 or opened.style == "dotted":
            break
        if opened.style == label.style:
            restarts = first and index < len(stack) - 1
            return len(stack) if restarts else index
    if first and not label.number.isupper():
        return len(stack)
    return _kept(stack, _yields_to_bare)


def _kept(stack: Sequence[_Open], yields: Callable[[_Open], bool]) -> int:
    keep = len(stack)
    while keep and yields(stack[keep - 1]):
        keep -= 1
    return keep


def _yields_to_bare(opened: _Open) -> bool:
    """Tell whether an item that begins no list of its own ends an open one."""
    bare = opened.kind == "clause" and opened.style.startswith("bare")
    return bare and not opened.own_number.isupper()


def _yields_to_name(opened: _Open, rank: int) -> bool:
    return opened.kind == "clause" and (opened.rank < 0 or opened.rank >= rank)


def _yields_to_dotted(opened: _Open, number: str) -> bool:
    if opened.kind == "heading" or opened.rank >= 0:
        return False
    return not number.startswith(f"{opened.own_number}.")


def _read_roman(label: Label, stack: Sequence[_Open]) -> Label:
    """Read "(i)" as a letter only where "(h)" stands before it."""
    if label.style not in {"bare(a)", "bare a)"} or len(label.number) > 1:
        return label
    if label.number not in "ivxlcdm":
        return label
    roman = "bare" + label.style.removeprefix("bare").replace("a", "i")
    siblings = {opened.style: opened.own_number for opened in stack}
    before = siblings.get(label.style, "")
    if before and ord(before[-1]) == ord(label.number) - 1:
        return label
    if label.number == "i" or roman in siblings:
        return replace(label, style=roman)
    return label
