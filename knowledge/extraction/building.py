"""Puts a document's text together, block by block, with offsets and limits."""

from __future__ import annotations

from dataclasses import replace

from knowledge.extraction.blocks import Block, BlockKind, Extracted, ExtractionError
from knowledge.extraction.limits import Limits
from knowledge.sanitizing import clean_document_text

BoundingBox = tuple[float, float, float, float]

PARAGRAPH_GAP = "\n\n"
LINE_GAP = "\n"


class TextBuilder:
    """Collects cleaned text and blocks; raises ExtractionError above the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parts: list[str] = []
        self.length = 0
        self.blocks: list[Block] = []
        self.removed = 0

    def clean(self, text: str) -> str:
        """Return a text without control characters, counting what was removed."""
        cleaned, removed = clean_document_text(text)
        self.removed += removed
        return cleaned

    def add(
        self,
        kind: BlockKind,
        text: str,
        *,
        level: int = 0,
        page: int | None = None,
        bbox: BoundingBox | None = None,
        gap: str | None = None,
    ) -> Block | None:
        """Append a block; a blank one is left out and gives None.

        `gap` stands between it and the block before; by default rows, list items
        and lines follow their like on the next line, all else after a blank line.
        """
        text = self.clean(text).strip()
        if not text:
            return None
        if self.blocks:
            self.append(self._gap(kind) if gap is None else gap)
        start = self.length
        self.append(text)
        block = Block(kind, start, self.length, level, page, bbox)
        self.mark(block)
        return block

    def append(self, text: str) -> None:
        """Append text that belongs to no block, or to one that is marked later."""
        self._parts.append(text)
        self.length += len(text)
        check_length(self.length, self._limits)

    def mark(self, block: Block) -> None:
        """Note a block of text that is already there."""
        self.blocks.append(block)
        check_blocks(len(self.blocks), self._limits)

    def last_text(self) -> str:
        """Return the text of the last block that was added."""
        return self._parts[-1]

    def rewrite_last(self, text: str) -> int:
        """Write the last block's text anew; return where it begins to differ."""
        before = self._parts[-1]
        same = 0
        while same < min(len(before), len(text)) and before[same] == text[same]:
            same += 1
        while same < len(text) and text[same] == " ":
            same += 1
        start = self.length - len(before)
        self._parts[-1] = text
        self.length = start + len(text)
        self.blocks[-1] = replace(self.blocks[-1], end=self.length)
        check_length(self.length, self._limits)
        return start + same

    def text(self) -> str:
        """Return the whole text."""
        return "".join(self._parts)

    def _gap(self, kind: BlockKind) -> str:
        alike = self.blocks[-1].kind is kind
        tight = {BlockKind.TABLE_ROW, BlockKind.LIST_ITEM, BlockKind.LINE}
        return LINE_GAP if alike and kind in tight else PARAGRAPH_GAP


def check_length(length: int, limits: Limits) -> None:
    """Raise ExtractionError if a text has too many characters."""
    if length > limits.text_characters:
        message = (
            f"The document holds more than {limits.text_characters:,} characters of "
            "text. Please split it into smaller documents."
        )
        raise ExtractionError("too_large", message)


def check_blocks(count: int, limits: Limits) -> None:
    """Raise ExtractionError if a document has too many paragraphs or rows."""
    if count > limits.blocks:
        message = (
            f"The document has more than {limits.blocks:,} paragraphs or rows. "
            "Please split it into smaller documents."
        )
        raise ExtractionError("too_large", message)


def require_text(extracted: Extracted) -> Extracted:
    """Return what was extracted, or raise ExtractionError if it holds no word."""
    if not any(character.isalnum() for character in extracted.text):
        message = (
            "The document is empty: no text was found in it. "
            "Please upload a document that holds text."
        )
        raise ExtractionError("empty", message)
    return extracted


def removed_sentences(removed: int) -> tuple[str, ...]:
    """Return the report on removed control characters, or nothing."""
    if not removed:
        return ()
    noun = "character was" if removed == 1 else "characters were"
    return (f"{removed:,} unreadable control {noun} removed from the text.",)
