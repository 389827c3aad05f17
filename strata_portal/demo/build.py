"""Build the demo corpus's Word and PDF files from their texts.

Run `python -m strata_portal.demo.build` after changing a text in `sources/`; it writes
the files of the same name in `corpus/`. It needs the development requirements, Debian's
`chromium` and `fonts-dejavu-core`. The same text gives the same bytes with the same
versions of these.
"""

import html
import io
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, time
from itertools import groupby
from pathlib import Path

import docx
from docx.document import Document
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml import OxmlElement
from docx.shared import Cm, Pt
from playwright.sync_api import Browser, sync_playwright
from pypdf import PdfReader, PdfWriter

from strata_portal.demo.markup import Part, PartKind, Text, read_text

FOLDER = Path(__file__).parent
CORPUS = FOLDER / "corpus"
SOURCES = FOLDER / "sources"
AUTHOR = "Ostermere Institute for Water and Health"
# The oldest time a ZIP entry can bear; every entry bears it.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
STYLES = {
    PartKind.PARAGRAPH: "Normal",
    PartKind.BULLET: "List Bullet",
    PartKind.STEP: "List Number",
}
CODE = re.compile(r"\w+-\d[\w/]*")
LIST_TAGS = {PartKind.BULLET: "ul", PartKind.STEP: "ol"}
CSS = """
body { font: 13px/1.45 "DejaVu Sans"; font-variant-ligatures: none;
       font-kerning: none; hyphens: none; }
.whole { white-space: nowrap; }
h1 { font-size: 22px; line-height: 1.2; margin: 0 0 12pt; }
h2 { font-size: 16px; margin: 16pt 0 6pt; break-after: avoid; }
h3 { font-size: 14px; margin: 12pt 0 4pt; break-after: avoid; }
p { margin: 0 0 6pt; orphans: 3; widows: 3; }
li { margin: 0 0 4pt; }
table { border-collapse: collapse; width: 100%; margin: 6pt 0 10pt; font-size: 11px; }
th, td { border: 0.5pt solid #888; padding: 3pt 5pt; text-align: left;
         vertical-align: top; }
tr { break-inside: avoid; }
"""
HEADER = (
    '<div style="font: 7pt DejaVu Sans; color: #555; margin: 0 20mm; width: 100%;'
    ' display: flex; justify-content: space-between;">'
    '<span>{}</span><span><span class="pageNumber"></span> / '
    '<span class="totalPages"></span></span></div>'
)


def texts() -> Iterator[tuple[Path, Path]]:
    """Yield each text of `sources/` with the file that is built from it.

    A text's name is the built file's with `.md` after it.
    """
    for source in sorted(SOURCES.rglob("*.md")):
        yield source, CORPUS / source.relative_to(SOURCES).with_suffix("")


def build_docx(text: Text) -> bytes:
    """Return a Word file: heading styles, lists and tables, a page header."""
    document = docx.Document()
    properties = document.core_properties
    properties.title, properties.author = text.title, AUTHOR
    properties.language, properties.comments = text.language, ""
    properties.created = properties.modified = datetime.combine(
        text.updated, time(9), tzinfo=UTC
    )
    document.styles["Normal"].font.size = Pt(10.5)
    page = document.sections[0]
    page.page_width, page.page_height = Cm(21), Cm(29.7)
    head = page.header.paragraphs[0]
    head.text, head.alignment = text.header, WD_ALIGN_PARAGRAPH.RIGHT
    for part in text.parts:
        if part.kind is PartKind.HEADING:
            document.add_heading(part.text, level=part.level)
        elif part.kind is PartKind.TABLE:
            add_table(document, part)
        else:
            document.add_paragraph(part.text, style=STYLES[part.kind])
    written = io.BytesIO()
    document.save(written)
    return with_fixed_times(written)


def add_table(document: Document, part: Part) -> None:
    """Add a table whose first row is marked as its head."""
    table = document.add_table(len(part.rows), len(part.rows[0]), style="Table Grid")
    for row, cells in zip(table.rows, part.rows, strict=True):
        for cell, words in zip(row.cells, cells, strict=True):
            cell.text = words
    for cell in table.rows[0].cells:
        cell.paragraphs[0].runs[0].bold = True
    first_row = document.element.body.tbl_lst[-1].tr_lst[0]
    first_row.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    document.add_paragraph()


def with_fixed_times(written: io.BytesIO) -> bytes:
    """Return a ZIP file with the same entries, none of which tells when it was made."""
    packed = io.BytesIO()
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name, ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, old.read(name))
    return packed.getvalue()


def build_pdf(text: Text, browser: Browser) -> bytes:
    """Return a PDF file: embedded fonts, a header on each page, an outline."""
    page = browser.new_page()
    page.set_content(page_of(text))
    printed = page.pdf(
        format="A4",
        margin={"top": "24mm", "bottom": "18mm", "left": "20mm", "right": "20mm"},
        display_header_footer=True,
        header_template=HEADER.format(html.escape(text.header)),
        footer_template="<span></span>",
        tagged=True,
        outline=True,
    )
    page.close()
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(printed)))
    written_at = text.updated.strftime("D:%Y%m%d090000Z")
    writer.metadata = {
        "/Title": text.title,
        "/Author": AUTHOR,
        "/CreationDate": written_at,
        "/ModDate": written_at,
    }
    writer.compress_identical_objects()
    packed = io.BytesIO()
    writer.write(packed)
    return packed.getvalue()


def page_of(text: Text) -> str:
    """Return a text as the web page that is printed."""
    body: list[str] = []
    for kind, parts in groupby(text.parts, key=lambda part: part.kind):
        written = [element_of(part) for part in parts]
        tag = LIST_TAGS.get(kind)
        body += [f"<{tag}>", *written, f"</{tag}>"] if tag else written
    return (
        f'<!doctype html><html lang="{text.language}"><head><meta charset="utf-8">'
        f"<title>{html.escape(text.title)}</title><style>{CSS}</style></head>"
        f"<body>{''.join(body)}</body></html>"
    )


def element_of(part: Part) -> str:
    """Return one part as an element."""
    if part.kind is PartKind.TABLE:
        head, *rows = part.rows
        return (
            f"<table><thead>{row_of(head, 'th')}</thead>"
            f"<tbody>{''.join(row_of(row, 'td') for row in rows)}</tbody></table>"
        )
    words = inline(part.text)
    if part.kind is PartKind.HEADING:
        return f"<h{part.level}>{words}</h{part.level}>"
    return f"<p>{words}</p>" if part.kind is PartKind.PARAGRAPH else f"<li>{words}</li>"


def inline(words: str) -> str:
    """Return words as markup; a code such as FM-06 stays on one line."""
    return CODE.sub(r'<span class="whole">\g<0></span>', html.escape(words))


def row_of(cells: tuple[str, ...], tag: str) -> str:
    """Return a table row."""
    inner = "".join(f"<{tag}>{inline(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"


def main() -> None:
    """Build every file and say what was written."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Printing the PDF files needs chromium; install Debian's package.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        for source, target in texts():
            text = read_text(source)
            built = (
                build_pdf(text, browser)
                if target.suffix == ".pdf"
                else build_docx(text)
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(built)
            sys.stdout.write(f"{target.relative_to(CORPUS)}: {len(built)} bytes\n")
        browser.close()


if __name__ == "__main__":
    main()
