"""Plain text, Markdown and logs. The text stored is the document's own source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from knowledge.extraction.blocks import Block, BlockKind, Extracted
from knowledge.extraction.building import (
    check_blocks,
    check_length,
    removed_sentences,
    require_text,
)
from knowledge.extraction.decoding import Decoded
from knowledge.extraction.limits import Limits
from knowledge.frontmatter import FrontMatter, FrontMatterError, parse_front_matter
from knowledge.sanitizing import clean_document_text
from knowledge.structure.labels import plain_heading

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)"
    r"|[PX^_][^\x1b]{0,512}\x1b\\|[ -/]{0,4}[0-Z\\-~])"
)
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]|\Z)")
_SETEXT = re.compile(r" {0,3}(?:(=+)|(-+))[ \t]*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(
    r"\s{0,12}(?:[-*+•▪◦‣–—][ \t]+\S|(?:\d{1,3}(?:\.\d{1,3}){0,5}[.)]?|\(?[^\W\d_]\)"
    r"|\(?[ivxlc]{1,6}\)|\(\d{1,3}\))[ \t]+\S)"
)
_ROW = re.compile(r"\s{0,3}\|.*\||.*\S[ \t]+\|[ \t]+\S")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
_LONGEST_LOUD_HEADING = 80


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


def extract_text(decoded: Decoded, name: str, kind: str, limits: Limits) -> Extracted:
    """Return the text and blocks of a plain text or Markdown document."""
    text, removed = clean_document_text(decoded.text)
    report = [*_broken_sentences(decoded), *removed_sentences(removed)]
    head = FrontMatter()
    try:
        head = parse_front_matter(text)
    except FrontMatterError as error:
        report.append(f"The front matter was kept as text, since {error}.")
    text = text[head.body_start :].strip("\n")
    check_length(len(text), limits)
    markdown = kind == "markdown"
    blocks = []
    for block in read_blocks(text, markdown=markdown):
        blocks.append(block)
        check_blocks(len(blocks), limits)
    return require_text(
        Extracted(
            text=text,
            kind=kind,
            title=_title(head, text, blocks, name),
            blocks=tuple(blocks),
            front_matter=head.values,
            report=tuple(report),
        )
    )


def extract_log(decoded: Decoded, name: str, limits: Limits) -> Extracted:
    """Return the lines of a log, terminal codes removed."""
    text, removed = clean_document_text(_ANSI.sub("", decoded.text))
    check_length(len(text), limits)
    blocks = []
    for line in _lines(text):
        if line.text.strip():
            blocks.append(Block(BlockKind.LINE, line.start, line.end))
            check_blocks(len(blocks), limits)
    return require_text(
        Extracted(
            text=text,
            kind="log",
            title=Path(name).stem,
            blocks=tuple(blocks),
            report=(*_broken_sentences(decoded), *removed_sentences(removed)),
        )
    )


def read_blocks(text: str, *, markdown: bool) -> Iterator[Block]:
    """Yield the blocks of a text in order.

    Plain text has no `#` headings and no fences, but underlined headings and short
    lines in capitals that stand alone.
    """
    lines = list(_lines(text))
    index = 0
    while index < len(lines):
        line = lines[index]
        if not line.text.strip():
            index += 1
        elif markdown and _FENCE.match(line.text):
            last = _fence_end(lines, index)
            yield Block(BlockKind.CODE, line.start, lines[last].end)
            index = last + 1
        elif markdown and (atx := _ATX.match(line.text)):
            level = len(atx[1])
            yield Block(BlockKind.HEADING, line.start, line.end, level)
            index += 1
        else:
            last = _paragraph_end(lines, index, markdown=markdown)
            yield _paragraph(lines[index : last + 1], markdown=markdown)
            index = last + 1


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.split("\n"):
        yield _Line(start, start + len(line.rstrip()), line)
        start += len(line) + 1


def _fence_end(lines: list[_Line], first: int) -> int:
    opening = _FENCE.match(lines[first].text)
    mark = opening[1] if opening else ""
    for index in range(first + 1, len(lines)):
        closing = _FENCE.match(lines[index].text)
        if closing and closing[1].startswith(mark):
            return index
    return len(lines) - 1


def _paragraph_end(lines: list[_Line], first: int, *, markdown: bool) -> int:
    """Return the last line of the paragraph, list item or row that starts here."""
    if _is_row(lines[first].text):
        return first
    last = first
    for index in range(first + 1, len(lines)):
        line = lines[index].text
        if not line.strip():
            break
        setext = _SETEXT.match(line)
        if setext and index == first + 1 and not _ITEM.match(lines[first].text):
            return index
        if markdown and (_ATX.match(line) or _FENCE.match(line) or _RULE.match(line)):
            break
        if _is_row(line) or _begins_item(line, lines[index - 1].text):
            break
        last = index
    return last


def _begins_item(line: str, before: str) -> bool:
    """Tell a list item from a wrapped line that happens to start with a number."""
    if not _ITEM.match(line):
        return False
    marked = not line.lstrip()[0].isdecimal()
    return marked or before.rstrip()[-1:] in ".;:!?," or bool(_ITEM.match(before))


def _is_row(line: str) -> bool:
    return "|" in line and _ROW.match(line) is not None


def _paragraph(lines: list[_Line], *, markdown: bool) -> Block:
    first, last = lines[0], lines[-1]
    indent = len(first.text) - len(first.text.lstrip())
    start, end = first.start + indent, last.end
    setext = _SETEXT.match(last.text) if len(lines) == 2 else None
    if setext and first.text.strip() and not _is_row(first.text):
        level = 1 if setext[1] else 2
        return Block(BlockKind.HEADING, start, end, level)
    if _is_row(first.text):
        return Block(BlockKind.TABLE_ROW, start, end)
    if _ITEM.match(first.text):
        return Block(BlockKind.LIST_ITEM, start, end)
    if not markdown and len(lines) == 1 and _is_loud(first.text.strip()):
        return Block(BlockKind.HEADING, start, end, 1)
    return Block(BlockKind.PARAGRAPH, start, end)


def _is_loud(line: str) -> bool:
    """Tell whether a line of plain text is a heading in capitals."""
    letters = sum(1 for character in line if character.isalpha())
    return (
        len(line) <= _LONGEST_LOUD_HEADING
        and letters > 2
        and letters > len(line) / 2
        and line.isupper()
        and line[-1] not in ".;:,"
    )


def _title(head: FrontMatter, text: str, blocks: list[Block], name: str) -> str:
    declared = head.values.get("title")
    if isinstance(declared, str) and declared.strip():
        return " ".join(declared.split())
    headings = [block for block in blocks if block.kind is BlockKind.HEADING]
    for block in sorted(headings[:50], key=lambda block: block.level):
        title = plain_heading(text[block.start : block.end].split("\n", maxsplit=1)[0])
        if title:
            return title
    return Path(name).stem


def _broken_sentences(decoded: Decoded) -> tuple[str, ...]:
    if not decoded.broken:
        return ()
    noun = "byte was" if decoded.broken == 1 else "bytes were"
    sentence = (
        f"{decoded.broken:,} {noun} not readable as text and stand as the "
        "replacement character."
    )
    return (sentence,)
