"""Puts the pages of a PDF together: headings, blocks, the page map, the report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from knowledge.extraction.blocks import BlockKind, Extracted, Page
from knowledge.extraction.building import TextBuilder, removed_sentences
from knowledge.extraction.furniture import HEADING_SIZE, find_furniture
from knowledge.extraction.limits import Limits
from knowledge.extraction.lines import join_texts
from knowledge.extraction.outline import outline_key
from knowledge.extraction.page_text import PageText
from knowledge.extraction.paragraphs import Paragraph, read_paragraphs

_LONGEST_HEADING = 200
_LONGEST_BOLD_HEADING = 100
_SCANNERS = ("tesseract", "ocr", "abbyy", "paper capture", "scan", "readiris")
_NUMBER_DEPTH = re.compile(r"(\d{1,3}(?:\.\d{1,3})*)\.?\s+\S")


class Assembly:
    """Puts the pages together: furniture, headings, blocks, the page map."""

    def __init__(
        self,
        pages: Sequence[PageText],
        outline: dict[int, dict[str, int]],
        limits: Limits,
    ) -> None:
        self._source = pages
        self._outline = outline
        self._builder = TextBuilder(limits)
        self._furniture = find_furniture(pages)
        self._dropped: list[str] = []
        self._paragraphs = [self._page_paragraphs(page) for page in pages]
        self._body = _body_size(self._paragraphs)
        self._levels = self._heading_levels()
        self._pages: list[Page] = []
        self.heading = ""
        for page, paragraphs in zip(pages, self._paragraphs, strict=True):
            self._add_page(page, paragraphs)

    def extracted(self) -> Extracted:
        """Return what was put together; the title is the caller's to set."""
        return Extracted(
            text=self._builder.text(),
            kind="pdf",
            title="",
            blocks=tuple(self._builder.blocks),
            pages=tuple(self._pages),
            properties={"total_pages": str(len(self._pages))},
            report=tuple(self._report()),
        )

    def recognised(self, information: str) -> tuple[tuple[int, int], ...]:
        """Return the spans of pages whose text is an invisible layer over a scan."""
        by_scanner = any(word in information for word in _SCANNERS)
        spans: list[tuple[int, int]] = []
        for source, page in zip(self._source, self._pages, strict=True):
            hidden = sum(len(line.text) for line in source.lines if line.invisible)
            shown = sum(len(line.text) for line in source.lines if not line.invisible)
            layer = hidden > 4 * shown and hidden > 0
            if page.end > page.start and source.images and (layer or by_scanner):
                spans.append((page.start, page.end))
        return tuple(spans)

    def _page_paragraphs(self, page: PageText) -> list[Paragraph]:
        kept = [line for line in page.lines if id(line) not in self._furniture]
        dropped = [line.text for line in page.lines if id(line) in self._furniture]
        self._dropped.extend(dropped)
        return read_paragraphs(kept)

    def _heading_levels(self) -> dict[float, int]:
        """Return the level of each font size that headings have, largest first."""
        sizes = {
            round(one.size, 1)
            for paragraphs in self._paragraphs
            for one in paragraphs
            if self._is_large(one)
        }
        ranked: dict[float, int] = {}
        level, before = 0, 0.0
        for size in sorted(sizes, reverse=True):
            if not before or before > 1.06 * size:
                level, before = min(level + 1, 6), size
            ranked[size] = level
        return ranked

    def _is_large(self, paragraph: Paragraph) -> bool:
        return (
            not paragraph.is_row
            and bool(self._body)
            and paragraph.size >= HEADING_SIZE * self._body
            and len(paragraph.text) <= _LONGEST_HEADING
            and sum(1 for c in paragraph.text if c.isalpha()) > 1
        )

    def _is_bold(self, paragraph: Paragraph) -> bool:
        return (
            not paragraph.is_row
            and paragraph.bold
            and paragraph.size >= 0.95 * self._body
            and len(paragraph.text) <= _LONGEST_BOLD_HEADING
            and len(paragraph.lines) <= 2
            and paragraph.text[-1] not in ".;,:"
            and sum(1 for c in paragraph.text if c.isalpha()) > 2
        )

    def _level(self, page: int, paragraph: Paragraph) -> int:
        """Return the heading level of a paragraph: bookmark, size, or bold."""
        known = self._outline.get(page, {})
        level = known.get(outline_key(paragraph.text), 0)
        if level or (known and not self._is_large(paragraph)):
            return level
        if self._is_large(paragraph):
            return self._levels.get(round(paragraph.size, 1), 1)
        if self._is_bold(paragraph):
            numbered = _NUMBER_DEPTH.match(paragraph.text)
            depth = numbered[1].count(".") if numbered else 0
            lowest = max(self._levels.values(), default=0)
            return min(lowest + 1 + depth, 9)
        return 0

    def _add_page(self, page: PageText, paragraphs: Sequence[Paragraph]) -> None:
        start: int | None = None
        for paragraph in paragraphs:
            begun = self._add(page, paragraph, is_first=start is None)
            start = begun if start is None and begun is not None else start
        for text in page.plain:
            block = self._builder.add(BlockKind.PARAGRAPH, text, page=page.number)
            start = block.start if start is None and block else start
        end = self._builder.length
        if self._pages and start is not None and self._pages[-1].end > start:
            self._pages[-1] = replace(self._pages[-1], end=start)
        self._pages.append(
            Page(
                page.number,
                end if start is None else start,
                end,
                page.width,
                page.height,
                page.extractor,
            )
        )

    def _add(
        self, page: PageText, paragraph: Paragraph, *, is_first: bool
    ) -> int | None:
        """Add a paragraph; return where its text starts."""
        level = self._level(page.number, paragraph)
        kind = BlockKind.PARAGRAPH
        if level:
            kind = BlockKind.HEADING
            self.heading = self.heading or paragraph.text
        elif paragraph.is_row:
            kind = BlockKind.TABLE_ROW
        elif paragraph.is_item:
            kind = BlockKind.LIST_ITEM
        elif is_first and self._runs_on(paragraph):
            return self._extend(paragraph)
        block = self._builder.add(
            kind, paragraph.text, level=level, page=page.number, bbox=paragraph.box
        )
        return block.start if block else None

    def _runs_on(self, paragraph: Paragraph) -> bool:
        """Tell whether a paragraph goes on with the last one of the page before."""
        if not self._builder.blocks:
            return False
        last = self._builder.blocks[-1]
        flowing = last.kind in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}
        open_end = self._builder.last_text()[-1:] not in set(".!?:;…»”\"'")
        return flowing and open_end and paragraph.text[:1].islower()

    def _extend(self, paragraph: Paragraph) -> int:
        added = self._builder.clean(paragraph.text).strip()
        return self._builder.rewrite_last(join_texts(self._builder.last_text(), added))

    def _report(self) -> Iterator[str]:
        if self._dropped:
            shown = "; ".join(dict.fromkeys(text[:60] for text in self._dropped[:3]))
            yield (
                f"{len(self._dropped):,} repeated headers, footers or page numbers were "
                f"left out ({shown})."
            )
        blank = [str(one.number) for one in self._source if one.is_blank and one.images]
        if blank:
            yield (
                f"No text on page {', '.join(blank[:20])}: only an image. Run OCR on "
                "the document if its text matters."
            )
        unmapped = sum(one.unmapped for one in self._source)
        if unmapped:
            yield (
                f"{unmapped:,} characters could not be read, since their fonts do not "
                "say which characters they are."
            )
        failed = [str(one.number) for one in self._source if one.failed]
        if failed:
            yield (
                f"Page {', '.join(failed[:20])} is damaged; what could be read was read "
                "without its layout."
            )
        yield from removed_sentences(self._builder.removed)


def _body_size(pages: Sequence[Sequence[Paragraph]]) -> float:
    """Return the font size in which most characters are set."""
    sizes = Counter[float]()
    for paragraphs in pages:
        for one in paragraphs:
            sizes[round(one.size, 1)] += len(one.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0
