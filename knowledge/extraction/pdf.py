"""PDF: opens it, reads its pages; a second reader where pypdf fails."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pypdf import PdfReader

from knowledge.extraction.annotations import comments, form_values
from knowledge.extraction.assembly import Assembly
from knowledge.extraction.blocks import Extracted, ExtractionError
from knowledge.extraction.building import require_text
from knowledge.extraction.fragments import read_page
from knowledge.extraction.layout import read_lines
from knowledge.extraction.limits import Limits
from knowledge.extraction.operators import read_texts
from knowledge.extraction.outline import read_outline
from knowledge.extraction.page_text import PageText

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

_FILE_NAME = re.compile(r"\.\w{2,4}\Z|\Auntitled|\Amicrosoft word", re.IGNORECASE)


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
    assembly = Assembly(pages, read_outline(reader), limits)
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


def _read(reader: PdfReader, index: int) -> PageText:
    """Return one page; what pypdf cannot read is left to the second reader."""
    text = PageText(index + 1, 612.0, 792.0)
    try:
        page = reader.pages[index]
        text.width, text.height = (
            float(page.mediabox.width),
            float(page.mediabox.height),
        )
        content = read_page(page)
        text.images, text.unmapped = content.images, content.unmapped
        fragments = [*content.fragments, *form_values(page, len(content.fragments))]
        text.lines = read_lines(fragments)
        text.plain = list(comments(page))
    except Exception:  # noqa: BLE001 a broken page raises anything
        text.failed = True
    return text


def _read_again(path: Path, pages: list[PageText]) -> None:
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


def _gave_nothing(page: PageText) -> bool:
    return page.is_blank and not page.images and not page.unmapped


def _refuse_blank(pages: Sequence[PageText]) -> None:
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
        PageText(number, 612.0, 792.0, extractor="operators", plain=plain)
        for number, plain in enumerate(texts, start=1)
    ]
    if not pages or all(page.is_blank for page in pages):
        if b"/Subtype/Image" in data.replace(b" ", b""):
            raise ExtractionError("scanned", SCANNED)
        raise ExtractionError("corrupt", CORRUPT)
    extracted = Assembly(pages, {}, limits).extracted()
    report = (
        "The PDF is damaged; its text was read from the drawing commands alone, "
        "without layout. Please check it, or export the PDF again."
    )
    return require_text(
        replace(extracted, title=Path(name).stem, report=(report, *extracted.report))
    )


def _information(reader: PdfReader) -> str:
    try:
        values = reader.metadata.values() if reader.metadata else ()
        return " ".join(str(value) for value in values).casefold()
    except Exception:  # noqa: BLE001 broken metadata is no reason to lose the text
        return ""


def _title(reader: PdfReader, assembly: Assembly, name: str) -> str:
    try:
        declared = str(reader.metadata.title or "") if reader.metadata else ""
    except Exception:  # noqa: BLE001 broken metadata is no reason to lose the text
        declared = ""
    declared = " ".join(declared.replace("\x00", "").split())
    is_file_name = _FILE_NAME.search(declared)
    if declared and not is_file_name and any(c.isalpha() for c in declared):
        return declared[:300]
    return assembly.heading[:300] or Path(name).stem
