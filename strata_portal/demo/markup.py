"""The small Markdown that the demo corpus's Word and PDF files are written in.

A line is a heading (`#`), a bullet (`- `), a numbered step (`+ `), a table row (`|`) or
a paragraph. There is no markup inside a line, so that the text of a file built from it
is known to the letter.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from itertools import groupby
from pathlib import Path

import yaml


class PartKind(StrEnum):
    """What a line of a text is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    BULLET = "bullet"
    STEP = "step"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Part:
    """A heading, a paragraph, a list item or a whole table.

    `level` is 1 to 3 for headings. `rows` holds a table's cells, its head first; all
    other parts have one row of one cell.
    """

    kind: PartKind
    rows: tuple[tuple[str, ...], ...]
    level: int = 0

    @property
    def text(self) -> str:
        """The words of this part in reading order."""
        return "\n".join(" ".join(row) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Text:
    """One text with what its file's properties say."""

    title: str
    language: str
    header: str
    updated: date
    parts: tuple[Part, ...]


_LINE_KINDS = (
    (PartKind.HEADING, re.compile(r"(#{1,3}) ")),
    (PartKind.BULLET, re.compile(r"- ")),
    (PartKind.STEP, re.compile(r"\+ ")),
    (PartKind.TABLE, re.compile(r"\| ")),
)
_RULE = re.compile(r"\|( --- \|)+")


def read_text(path: Path) -> Text:
    """Return the text in a file of `sources/`; raises KeyError on a missing key."""
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    front = yaml.safe_load(head)
    return Text(
        title=front["title"],
        language=front["language"],
        header=front["header"],
        updated=front["updated"],
        parts=tuple(_parts(body)),
    )


def _parts(body: str) -> Iterator[Part]:
    for kind, lines in groupby(body.splitlines(), key=_kind_of):
        if kind is PartKind.TABLE:
            yield Part(
                kind, tuple(_cells(line) for line in lines if not _RULE.fullmatch(line))
            )
        elif kind is not None:
            yield from (_line(kind, line) for line in lines)


def _kind_of(line: str) -> PartKind | None:
    if not line.strip():
        return None
    for kind, start in _LINE_KINDS:
        if start.match(line):
            return kind
    return PartKind.PARAGRAPH


def _line(kind: PartKind, line: str) -> Part:
    if kind is PartKind.PARAGRAPH:
        return Part(kind, ((line,),))
    mark, text = line.split(" ", 1)
    return Part(kind, ((text,),), level=len(mark) if kind is PartKind.HEADING else 0)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip("|").split("|"))
