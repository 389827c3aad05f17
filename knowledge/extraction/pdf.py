"""PDF: pages, layout, headings, form values; a second reader where pypdf fails."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from pypdf import PageObject, PdfReader
from pypdf.generic import ArrayObject, Destination, DictionaryObject, StreamObject

from knowledge.extraction.blocks import (
    BlockKind,
    Extracted,
    ExtractionError,
    Page,
)
from knowledge.extraction.building import (
    TextBuilder,
    removed_sentences,
    require_text,
)
from knowledge.extraction.fragments import Fragment, make_fragment, read_page
from knowledge.extraction.layout import read_lines
from knowledge.extraction.limits import Limits
from knowledge.extraction.lines import Line, join_texts
from knowledge.extraction.operators import read_texts
from knowledge.extraction.paragraphs import Paragraph, read_paragraphs

SCANNED = (
    "The PDF holds only images: it is a scan without selectable text, so no text can "
    "be read from it. There are three ways out: upload the document as DOCX, upload "
    "its text, or run OCR (text recognition) on it first and upload the result."
)
UNMAPPED = (
    "The PDF shows text, but its fonts do not say which characters it is made of, so "
    "no readable text can be taken from it. There are three ways out: upload the "
    "document as DOCX, upload its text, or run OCR (text recognition) on it first and "
    "upload the result."
)
ENCRYPTED = (
    "The PDF is encrypted and needs a password to open. Please remove the password "
    "(save or print it as a new PDF) and upload it again."
)
CORRUPT = (
    "The file is not a valid PDF: it is damaged or cut off and cannot be read. "
    "Please export it again from its program and upload it again."
)
EMPTY = "The PDF is empty: it has no pages with text. Please check the file."

_MARGIN = 0.12
_MARGIN_LINES = 3
# Pages on which a line is repeated anywhere in the margin; at the same height, two do.
_REPEATED_ON = 3
_SAME_PLACE = 5.0
_APART = 1.6
_HEADING_SIZE = 1.15
_LONGEST_HEADING = 200
_LONGEST_BOLD_HEADING = 100
_MOST_OUTLINE = 5_000
_MOST_FIELDS = 20_000
# Bits of an annotation's and of a form field's flags.
_HIDDEN = 1 << 1
_PASSWORD = 1 << 13
_PUSH_BUTTON = 1 << 16
_FILE_NAME = re.compile(r"\.\w{2,4}\Z|\Auntitled|\Amicrosoft word", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_PAGE_WORDS = frozenset(
    {
        "page",
        "of",
        "pages",
        "trang",
        "strona",
        "stron",
        "str",
        "pagina",
        "pag",
        "din",
        "страница",
        "стр",
        "из",
        "от",
    }
)
_SCANNERS = ("tesseract", "ocr", "abbyy", "paper capture", "scan", "readiris")
_NUMBER_DEPTH = re.compile(r"(\d{1,3}(?:\.\d{1,3})*)\.?\s+\S")


@dataclass(slots=True)
class _PageText:
    """What was read from one page, before the text is put together."""

    number: int
    width: float
    height: float
    extractor: str = "pypdf"
    lines: list[Line] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    images: int = 0
    unmapped: int = 0
    failed: bool = False

    @property
    def is_blank(self) -> bool:
        """Whether no letter or digit was read."""
        texts = [line.text for line in self.lines] + self.plain
        return not any(character.isalnum() for text in texts for character in text)


@dataclass(frozen=True, slots=True)
class _Marginal:
    """A line at a page's edge: `place` is its height in points."""

    page: int
    line: Line
    place: float
    is_upper: bool


def extract_pdf(path: Path, name: str, limits: Limits) -> Extracted:
    """Return the text, blocks and pages of a PDF.

    Raises ExtractionError for a PDF that needs a password, is damaged, holds no
    text (a scan), or has too many pages.
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = _open(path)
    if reader is None:
        return _extract_raw(path, name, limits)
    try:
        count = len(reader.pages)
    except Exception:  # noqa: BLE001 a broken page tree raises anything
        return _extract_raw(path, name, limits)
    if count > limits.pages:
        message = (
            f"The PDF has {count:,} pages; at most {limits.pages:,} are read. "
            "Please split it into smaller documents."
        )
        raise ExtractionError("too_large", message)
    if not count:
        return _extract_raw(path, name, limits)
    pages = [_read(reader, index) for index in range(count)]
    if not reader.is_encrypted:
        _read_again(path, pages)
    if all(page.is_blank for page in pages):
        _refuse_blank(pages)
    assembly = _Assembly(pages, _outline(reader), limits)
    return require_text(
        replace(
            assembly.extracted(),
            title=_title(reader, assembly, name),
            ocr_spans=assembly.recognised(_information(reader)),
        )
    )


def _open(path: Path) -> PdfReader | None:
    """Return the opened PDF, or None if pypdf cannot open it."""
    data = path.read_bytes()
    header = data.find(b"%PDF-", 0, 4096)
    if header < 0:
        raise ExtractionError("corrupt", CORRUPT)
    try:
        reader = PdfReader(path, strict=False)
        opened = not reader.is_encrypted or bool(reader.decrypt(""))
    except Exception:  # noqa: BLE001 a broken file raises anything
        return None
    if not opened:
        raise ExtractionError("encrypted", ENCRYPTED)
    return reader


def _read(reader: PdfReader, index: int) -> _PageText:
    """Return one page; what pypdf cannot read is left to the second reader."""
    text = _PageText(index + 1, 612.0, 792.0)
    try:
        page = reader.pages[index]
        text.width, text.height = (
            float(page.mediabox.width),
            float(page.mediabox.height),
        )
        content = read_page(page)
        text.images, text.unmapped = content.images, content.unmapped
        fragments = [*content.fragments, *_form_values(page, len(content.fragments))]
        text.lines = read_lines(fragments)
        text.plain = list(_comments(page))
    except Exception:  # noqa: BLE001 a broken page raises anything
        text.failed = True
    return text


def _read_again(path: Path, pages: list[_PageText]) -> None:
    """Let the second reader try the pages on which pypdf failed."""
    if not any(page.failed or _gave_nothing(page) for page in pages):
        return
    texts = read_texts(path.read_bytes())
    if len(texts) != len(pages):
        if all(page.is_blank for page in pages) and texts:
            pages[0].plain = list(chain.from_iterable(texts))
            pages[0].extractor = "operators"
        return
    for page, plain in zip(pages, texts, strict=True):
        if (page.failed or _gave_nothing(page)) and plain:
            page.plain, page.extractor = plain, "operators"


def _gave_nothing(page: _PageText) -> bool:
    return page.is_blank and not page.images and not page.unmapped


def _refuse_blank(pages: Sequence[_PageText]) -> None:
    if any(page.unmapped for page in pages):
        raise ExtractionError("scanned", UNMAPPED)
    if any(page.images for page in pages):
        raise ExtractionError("scanned", SCANNED)
    if any(page.failed for page in pages):
        raise ExtractionError("corrupt", CORRUPT)
    raise ExtractionError("empty", EMPTY)


def _extract_raw(path: Path, name: str, limits: Limits) -> Extracted:
    """Read a file that pypdf cannot open by its text-showing operators alone."""
    data = path.read_bytes()
    if b"/Encrypt" in data:
        raise ExtractionError("encrypted", ENCRYPTED)
    texts = read_texts(data)
    pages = [
        _PageText(number, 612.0, 792.0, extractor="operators", plain=plain)
        for number, plain in enumerate(texts, start=1)
    ]
    if not pages or all(page.is_blank for page in pages):
        if b"/Subtype/Image" in data.replace(b" ", b""):
            raise ExtractionError("scanned", SCANNED)
        raise ExtractionError("corrupt", CORRUPT)
    extracted = _Assembly(pages, {}, limits).extracted()
    report = (
        "The PDF is damaged; its text was read from the drawing commands alone, "
        "without layout. Please check it, or export the PDF again."
    )
    return require_text(
        replace(extracted, title=Path(name).stem, report=(report, *extracted.report))
    )


class _Assembly:
    """Puts the pages together: furniture, headings, blocks, the page map."""

    def __init__(
        self,
        pages: Sequence[_PageText],
        outline: dict[int, dict[str, int]],
        limits: Limits,
    ) -> None:
        self._source = pages
        self._outline = outline
        self._builder = TextBuilder(limits)
        self._furniture = _furniture(pages)
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

    def _page_paragraphs(self, page: _PageText) -> list[Paragraph]:
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
            and paragraph.size >= _HEADING_SIZE * self._body
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
        level = known.get(_outline_key(paragraph.text), 0)
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

    def _add_page(self, page: _PageText, paragraphs: Sequence[Paragraph]) -> None:
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
        self, page: _PageText, paragraph: Paragraph, *, is_first: bool
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


def _furniture(pages: Sequence[_PageText]) -> set[int]:
    """Return the ids of the repeated headers, footers and page numbers to leave out.

    One whose words stand nowhere else, or that is set as large as a heading, is kept
    once: a header on its first page, a footer on its last, where it parts no sentence.
    """
    repeated = _repeated_lines(pages)
    left_out = {id(one.line) for found in repeated for one in found}
    words = {
        word
        for page in pages
        for line in page.lines
        if id(line) not in left_out
        for word in _words(line.text)
    }
    sizes = sorted(line.size for page in pages for line in page.lines)
    usual = sizes[len(sizes) // 2] if sizes else 0.0
    for found in repeated:
        own = _words(found[0].line.text) - words - _PAGE_WORDS
        if own or found[0].line.size >= _HEADING_SIZE * usual:
            kept = found[0] if found[0].is_upper else found[-1]
            left_out.discard(id(kept.line))
            words |= own
    return left_out


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text.casefold()))


def _repeated_lines(pages: Sequence[_PageText]) -> list[list[_Marginal]]:
    """Return the lines of the margins that repeat one another but for numbers."""
    seen: dict[tuple[str, bool], list[_Marginal]] = {}
    for page in pages:
        for one in _marginal(page):
            key = (_furniture_key(one.line.text), one.is_upper)
            seen.setdefault(key, []).append(one)
    texts = {
        page.number: {_furniture_key(line.text) for line in page.lines}
        for page in pages
    }
    return [
        found
        for found in seen.values()
        if len({one.page for one in found}) >= _REPEATED_ON
        or _is_in_place(found, texts)
    ]


def _is_in_place(found: Sequence[_Marginal], texts: dict[int, set[str]]) -> bool:
    """Tell whether lines of two pages stand at the same height.

    Two pages that say the same are copies, as invoices have them.
    """
    by_place = sorted(found, key=lambda one: one.place)
    return any(
        one.page != other.page
        and other.place - one.place <= _SAME_PLACE
        and not _are_copies(texts[one.page], texts[other.page])
        for one, other in pairwise(by_place)
    )


def _are_copies(texts: set[str], others: set[str]) -> bool:
    return 2 * len(texts & others) > max(_MARGIN_LINES, len(texts), len(others))


def _marginal(page: _PageText) -> list[_Marginal]:
    """Return the lines at a page's upper and lower edge that stand apart from it."""
    sideways = sum(1 if line.turn % 2 else -1 for line in page.lines) > 0
    extent = page.width if sideways else page.height
    axis = 0 if sideways else 1
    by_place = sorted(page.lines, key=lambda line: line.box[axis])
    found: list[_Marginal] = []
    for lines, direction in ((by_place, 1), (by_place[::-1], -1)):
        edge = [line for line in lines if _is_near_edge(line, axis, extent, direction)]
        most = 0
        for count in range(1, min(len(edge), _MARGIN_LINES) + 1):
            inner = lines[count] if count < len(lines) else None
            if inner is None or _is_apart(lines[count - 1], inner, axis):
                most = count
        found.extend(
            _Marginal(page.number, line, line.box[axis], is_upper=direction < 0)
            for line in lines[:most]
        )
    return found


def _is_near_edge(line: Line, axis: int, extent: float, direction: int) -> bool:
    low, high = line.box[axis], line.box[axis + 2]
    return low < _MARGIN * extent if direction > 0 else high > (1 - _MARGIN) * extent


def _is_apart(outer: Line, inner: Line, axis: int) -> bool:
    gap = abs(outer.box[axis] - inner.box[axis])
    return gap > _APART * max(outer.size, inner.size)


def _furniture_key(text: str) -> str:
    return _DIGITS.sub("#", " ".join(text.split()).casefold())


def _body_size(pages: Sequence[Sequence[Paragraph]]) -> float:
    """Return the font size in which most characters are set."""
    sizes = Counter[float]()
    for paragraphs in pages:
        for one in paragraphs:
            sizes[round(one.size, 1)] += len(one.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _annotations(page: PageObject) -> Iterator[DictionaryObject]:
    """Yield the annotations of a page that are not hidden."""
    annotations = page.get("/Annots")
    annotations = annotations.get_object() if annotations is not None else None
    if not isinstance(annotations, ArrayObject):
        return
    for index, reference in enumerate(annotations):
        annotation = reference.get_object()
        if index > _MOST_FIELDS:
            return
        if not isinstance(annotation, DictionaryObject):
            continue
        if not int(annotation.get("/F", 0)) & _HIDDEN:
            yield annotation


def _comments(page: PageObject) -> Iterator[str]:
    """Yield the comments whose text shows on the page."""
    for annotation in _annotations(page):
        if annotation.get("/Subtype") == "/FreeText":
            yield str(annotation.get("/Contents", ""))


def _form_values(page: PageObject, order: int) -> Iterator[Fragment]:
    """Yield the values of form fields, placed where the page shows them."""
    for annotation in _annotations(page):
        box = annotation.get("/Rect")
        text = _field_value(annotation)
        if not text or box is None:
            continue
        left, bottom, right, top = (float(value) for value in box.get_object())
        left, right = min(left, right), max(left, right)
        bottom, top = min(bottom, top), max(bottom, top)
        rows = [row for row in text.splitlines() if row.strip()]
        size = min(12.0, max(4.0, (top - bottom) / max(1.3 * len(rows), 1.3)))
        for number, row in enumerate(rows):
            baseline = top - 1.2 * size * (number + 1) + 0.2 * size
            end = max(right, left + 1.0)
            order += 1
            yield make_fragment(
                row.strip(), (left, baseline), (end, baseline), size, order=order
            )


def _field_value(annotation: DictionaryObject) -> str:
    """Return the value of a form field; of a tick box, whether it is ticked."""
    if annotation.get("/Subtype") != "/Widget":
        return ""
    kind, value = _inherited(annotation, "/FT"), _inherited(annotation, "/V")
    flags = _inherited(annotation, "/Ff")
    flags = flags if isinstance(flags, int) else 0
    if kind == "/Btn":
        state = annotation.get("/AS")
        if flags & _PUSH_BUTTON or state is None:
            return ""
        return "☐" if state == "/Off" else "☒"
    if value is None or kind == "/Sig" or flags & _PASSWORD:
        return ""
    if isinstance(value, ArrayObject):
        return "\n".join(str(one.get_object()) for one in value)
    if isinstance(value, StreamObject):
        return value.get_data().decode("utf-8", "replace")
    return str(value)


def _inherited(annotation: DictionaryObject, key: str) -> Any:
    node: Any = annotation
    for _ in range(20):
        if not isinstance(node, DictionaryObject):
            return None
        if key in node:
            return node[key].get_object()
        parent = node.get("/Parent")
        node = parent.get_object() if parent is not None else None
    return None


def _outline(reader: PdfReader) -> dict[int, dict[str, int]]:
    """Return, for each page number, the bookmarks that point there and their depth."""
    found: dict[int, dict[str, int]] = {}

    def walk(entries: Any, depth: int) -> None:
        for entry in entries:
            if isinstance(entry, list):
                walk(entry, min(depth + 1, 9))
            elif isinstance(entry, Destination):
                number = reader.get_destination_page_number(entry)
                if number is not None:
                    key = _outline_key(str(entry.title))
                    found.setdefault(number + 1, {}).setdefault(key, depth)

    try:
        walk(reader.outline[:_MOST_OUTLINE], 1)
    except Exception:  # noqa: BLE001 a broken outline is no reason to lose the text
        return {}
    return found


def _outline_key(title: str) -> str:
    return "".join(character for character in title.casefold() if character.isalnum())


def _information(reader: PdfReader) -> str:
    try:
        values = reader.metadata.values() if reader.metadata else ()
        return " ".join(str(value) for value in values).casefold()
    except Exception:  # noqa: BLE001 broken metadata is no reason to lose the text
        return ""


def _title(reader: PdfReader, assembly: _Assembly, name: str) -> str:
    try:
        declared = str(reader.metadata.title or "") if reader.metadata else ""
    except Exception:  # noqa: BLE001 broken metadata is no reason to lose the text
        declared = ""
    declared = " ".join(declared.replace("\x00", "").split())
    is_file_name = _FILE_NAME.search(declared)
    if declared and not is_file_name and any(c.isalpha() for c in declared):
        return declared[:300]
    return assembly.heading[:300] or Path(name).stem
