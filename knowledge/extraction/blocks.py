"""What extraction hands to the rest of the ingest: one text and its locators.

All offsets are code point offsets into `Extracted.text`, end exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class BlockKind(StrEnum):
    """What a block was in the original document."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE_ROW = "table_row"
    CODE = "code"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list item, table row or line of the text.

    `level` is 1 to 9 for headings and 0 otherwise. `page` (1-based) and `bbox`
    (left, bottom, right, top in PDF points, origin at the page's lower left
    corner) are given for PDF only.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    page: int | None = None
    bbox: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A PDF page: where its text lies, its size in points, and who read it."""

    number: int
    start: int
    end: int
    width: float
    height: float
    extractor: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of one document with everything that locates it.

    `text` has "\\n" line ends and no control characters; its Unicode form is the
    document's own. `blocks` are in reading order and do not overlap.
    `ocr_spans` are the spans whose origin is character recognition.
    `properties` hold for the whole document and become chunk metadata.
    `report` says, a sentence each, what could not be extracted and why.
    """

    text: str
    kind: str
    title: str
    blocks: tuple[Block, ...]
    pages: tuple[Page, ...] = ()
    front_matter: dict[str, str | list[str]] = field(default_factory=dict)
    ocr_spans: tuple[tuple[int, int], ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    report: tuple[str, ...] = ()


class ExtractionError(Exception):
    """A document that gives no text.

    `code` is stable (`empty`, `encrypted`, `scanned`, `corrupt`, `unsupported`,
    `too_large`, `timeout`, `crashed`); `message` is one or two plain sentences
    for the person who uploaded the document.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
