"""DOCX: headings, lists, tables, notes and text boxes in the order of the document.

python-docx opens the package; where it gives up (Strict Open XML, broken
relationships, odd table grids) the document XML is read straight from the zip. Both
ways end in the same walk over the XML, by local names, since python-docx itself
leaves out content controls, text boxes, notes and tracked insertions.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import ZipFile

import docx

from knowledge.extraction.archive import open_archive, read_member
from knowledge.extraction.blocks import BlockKind, Extracted, ExtractionError
from knowledge.extraction.building import (
    LINE_GAP,
    TextBuilder,
    removed_sentences,
    require_text,
)
from knowledge.extraction.decoding import decode
from knowledge.extraction.limits import Limits
from knowledge.extraction.numbering import Numbering
from knowledge.extraction.tabular import CELL_GAP
from knowledge.extraction.xmltree import (
    Element,
    attribute,
    child,
    has_ancestor,
    is_on,
    local_name,
    parse_html,
    parse_xml,
    value_of,
)

_MAIN_PART = "word/document.xml"
_HEADING_STYLE = re.compile(r"heading (\d)\Z")
_XML_PARTS = {
    "styles", "numbering", "comments", "header", "footer", "footnotes", "endnotes",
}  # fmt: skip
_CONTENTS_STYLE = re.compile(r"(?:toc \d|table of figures)\Z")
_SKIPPED = {
    "del", "moveFrom", "delText", "instrText", "fldData", "pPr", "rPr", "tblPr",
    "tblGrid", "trPr", "tcPr", "sdtPr", "sdtEndPr", "sectPr", "annotationRef",
    "commentRangeStart", "commentRangeEnd", "proofErr", "Fallback",
}  # fmt: skip
_BREAKS = {"br": "\n", "cr": "\n", "tab": "\t", "noBreakHyphen": "-", "ptab": "\t"}
_WRAPPERS = {"sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag"}
_MOST_DEPTH = 60
_LONGEST_BOLD_HEADING = 120


@dataclass(slots=True)
class _Style:
    name: str
    based_on: str
    outline: int | None
    num_id: str | None
    num_level: int


@dataclass(slots=True)
class _Parts:
    """The parts of a document that hold text, as parsed XML."""

    main: Element
    styles: Element | None = None
    numbering: Element | None = None
    notes: dict[str, Element] = field(default_factory=dict)
    margins: list[Element] = field(default_factory=list)
    chunks: dict[str, bytes] = field(default_factory=dict)
    comments: int = 0
    title: str = ""


@dataclass(slots=True)
class _Paragraph:
    """What the runs of one paragraph hold."""

    text: list[str] = field(default_factory=list)
    boxes: list[Element] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bold: int = 0
    plain: int = 0


def extract_docx(path: Path, name: str, limits: Limits) -> Extracted:
    """Return the text and blocks of a DOCX document.

    Raises ExtractionError for a damaged file and for a zip that is no document.
    """
    with open_archive(path, limits) as archive:
        names = set(archive.namelist())
        main = _main_part(archive, names)
        parts = _open_by_library(path) or _open_by_zip(archive, names, main)
    reader = _Reader(parts, limits)
    reader.read_body(parts.main)
    reader.read_margins()
    return require_text(reader.extracted(name))


def _main_part(archive: ZipFile, names: set[str]) -> str:
    """Return the name of the main part, from the package's relationships."""
    for rel in _relationships(archive, "_rels/.rels"):
        if attribute(rel, "Type").endswith("/officeDocument"):
            target = posixpath.normpath(attribute(rel, "Target").lstrip("/"))
            _refuse_other_office(target)
            if target in names:
                return target
    if _MAIN_PART in names:
        return _MAIN_PART
    message = (
        "The file is a zip archive but not a Word document, which is not supported. "
        "Please upload the documents in it one by one, or save it as DOCX or PDF."
    )
    raise ExtractionError("unsupported", message)


def _refuse_other_office(target: str) -> None:
    kinds = {"xl": "a spreadsheet", "ppt": "a presentation"}
    kind = kinds.get(target.split("/", maxsplit=1)[0])
    if kind:
        message = (
            f"The file is {kind}, which is not supported. "
            "Please save it as PDF or CSV and upload that."
        )
        raise ExtractionError("unsupported", message)


def _open_by_library(path: Path) -> _Parts | None:
    """Return the parts as python-docx opens them, or None where it gives up."""
    try:
        document = docx.Document(str(path))
        blobs = [
            (key, str(rel.reltype), bytes(rel.target_part.blob))
            for key, rel in document.part.rels.items()
            if not rel.is_external
        ]
        title = str(document.core_properties.title or "")
        main = parse_xml(document.part.blob)
    except Exception:  # noqa: BLE001 it raises whatever a broken file makes of it
        return None
    return None if main is None else _gather(main, title, blobs)


def _open_by_zip(archive: ZipFile, names: set[str], main: str) -> _Parts:
    """Return the parts read from the zip by the relationships of the main part."""
    data = read_member(archive, main)
    root = None if data is None else parse_xml(data)
    if root is None:
        message = (
            "The document inside the file is damaged and cannot be read. "
            "Please save it anew from its program and upload it again."
        )
        raise ExtractionError("corrupt", message)
    folder, file = posixpath.split(main)
    blobs: list[tuple[str, str, bytes]] = []
    for rel in _relationships(archive, f"{folder}/_rels/{file}.rels"):
        target = attribute(rel, "Target")
        if not target.startswith("/"):
            target = posixpath.join(folder, target)
        target = posixpath.normpath(target).lstrip("/")
        blob = read_member(archive, target) if target in names else None
        if blob is not None:
            blobs.append((attribute(rel, "Id"), attribute(rel, "Type"), blob))
    return _gather(root, "", blobs)


def _relationships(archive: ZipFile, name: str) -> list[Element]:
    data = read_member(archive, name)
    root = None if data is None else parse_xml(data)
    return [] if root is None else list(root)


def _gather(main: Element, title: str, blobs: list[tuple[str, str, bytes]]) -> _Parts:
    """Return the parts by what they are related to the main part as."""
    parts = _Parts(main=main, title=title)
    for key, reltype, blob in blobs:
        kind = reltype.rsplit("/", maxsplit=1)[-1]
        if kind == "aFChunk":
            parts.chunks[key] = blob
        elif kind in _XML_PARTS:
            root = parse_xml(blob)
            if root is not None:
                _gather_part(parts, kind, root)
    return parts


def _gather_part(parts: _Parts, kind: str, root: Element) -> None:
    if kind == "styles":
        parts.styles = root
    elif kind == "numbering":
        parts.numbering = root
    elif kind == "comments":
        parts.comments = sum(1 for one in root if local_name(one) == "comment")
    elif kind in {"header", "footer"}:
        parts.margins.append(root)
    else:
        for note in root:
            if not attribute(note, "type"):
                parts.notes[f"{kind[:-1]}{attribute(note, 'id')}"] = note


class _Reader:
    """Walks the XML and writes blocks."""

    def __init__(self, parts: _Parts, limits: Limits) -> None:
        self._parts = parts
        self._builder = TextBuilder(limits)
        self._styles = _read_styles(parts.styles)
        self._numbering = Numbering(parts.numbering)
        self._has_headings = any(
            self._heading_level(child(paragraph, "pPr"))
            for paragraph in parts.main.iter()
            if local_name(paragraph) == "p"
        )
        self._left_out_contents = 0
        self._title = ""

    def extracted(self, name: str) -> Extracted:
        """Return all that was read so far."""
        report = []
        if self._left_out_contents:
            report.append(
                "The table of contents was left out, since its headings stand in "
                "the text."
            )
        if self._parts.comments:
            report.append(f"{self._parts.comments:,} review comments were left out.")
        text, blocks = self._builder.text(), tuple(self._builder.blocks)
        first = next((one for one in blocks if one.kind is BlockKind.HEADING), None)
        heading = text[first.start : first.end] if first else ""
        title = self._title or " ".join(heading.split())
        title = title or " ".join(self._parts.title.split()) or Path(name).stem
        return Extracted(
            text=text,
            kind="docx",
            title=title[:300],
            blocks=blocks,
            report=(*report, *removed_sentences(self._builder.removed)),
        )

    def read_body(self, root: Element) -> None:
        """Read the paragraphs and tables below an element, in order."""
        for element in _flow(root, 0):
            name = local_name(element)
            if name == "p":
                self._read_paragraph(element)
            elif name == "tbl":
                self._read_table(element)
            elif name == "altChunk":
                self._read_chunk(attribute(element, "id"))

    def read_margins(self) -> None:
        """Read each header and footer once, where it says more than the text does."""
        known = " ".join(self._builder.text().split()).casefold()
        for margin in self._parts.margins:
            for element in margin.iter():
                if local_name(element) != "p" or has_ancestor(element, "p"):
                    continue
                text = " ".join("".join(self._content(element).text).split())
                letters = sum(1 for character in text if character.isalpha())
                if letters > 2 and text.casefold() not in known:
                    self._builder.add(BlockKind.PARAGRAPH, text)
                    known += f" {text.casefold()}"

    def _read_paragraph(self, element: Element) -> None:
        properties = child(element, "pPr")
        style = self._style_name(properties)
        if _CONTENTS_STYLE.match(style):
            self._left_out_contents += 1
            return
        content = self._content(element)
        text = "".join(content.text).strip()
        label = self._label(properties) if text else ""
        level = self._heading_level(properties)
        if not level and self._is_bold_heading(content, text):
            level = 2
        if level:
            shown = " ".join(f"{label} {text}".split())
            self._builder.add(BlockKind.HEADING, shown, level=level)
            if style == "title" and not self._title:
                self._title = shown
        elif label:
            self._builder.add(BlockKind.LIST_ITEM, f"{label} {text}")
        else:
            self._builder.add(BlockKind.PARAGRAPH, text)
        self._read_attached(content)

    def _read_attached(self, content: _Paragraph) -> None:
        for box in content.boxes:
            self.read_body(box)
        for key in content.notes:
            note = self._parts.notes.pop(key, None)
            if note is not None:
                self.read_body(note)

    def _read_table(self, table: Element) -> None:
        for row in _flow_of(table, "tr"):
            if self._is_deleted_row(row):
                continue
            cells = list(_flow_of(row, "tc"))
            filled = [cell for cell in cells if _has_text(cell)]
            if len(cells) == 1 or (len(filled) == 1 and _is_long(filled[0])):
                for cell in filled:
                    self.read_body(cell)
                continue
            contents: list[_Paragraph] = []
            texts = [self._cell(cell, contents) for cell in cells]
            while texts and not texts[-1]:
                texts.pop()
            self._builder.add(BlockKind.TABLE_ROW, CELL_GAP.join(texts))
            for content in contents:
                self._read_attached(content)

    def _cell(self, cell: Element, contents: list[_Paragraph]) -> str:
        """Return a cell on one line; nested rows stand between slashes."""
        merge = child(cell, "tcPr", "vMerge")
        if merge is not None and attribute(merge, "val") in {"", "continue"}:
            return ""
        texts: list[str] = []
        for element in _flow(cell, 0):
            if local_name(element) == "p":
                content = self._content(element)
                text = " ".join("".join(content.text).split())
                label = self._label(child(element, "pPr")) if text else ""
                texts.append(f"{label} {text}".strip())
                contents.append(content)
            elif local_name(element) == "tbl":
                for row in _flow_of(element, "tr"):
                    inner = [self._cell(one, contents) for one in _flow_of(row, "tc")]
                    texts.append(" / ".join(text for text in inner if text))
        return " ".join(text for text in texts if text)

    def _is_deleted_row(self, row: Element) -> bool:
        return child(row, "trPr", "del") is not None

    def _read_chunk(self, key: str) -> None:
        """Read an embedded HTML or text part line by line."""
        data = self._parts.chunks.get(key)
        if data is None or data.startswith(b"PK"):
            return
        text = decode(data).text
        if "<" in text[:2_000]:
            for line in _html_lines(data):
                self._builder.add(BlockKind.PARAGRAPH, line)
            return
        for line in text.split("\n"):
            self._builder.add(BlockKind.PARAGRAPH, line, gap=LINE_GAP)

    def _content(self, paragraph: Element) -> _Paragraph:
        content = _Paragraph()
        self._collect(paragraph, content, bold=False, depth=0)
        return content

    def _collect(
        self, element: Element, content: _Paragraph, *, bold: bool, depth: int
    ) -> None:
        for inner in element:
            name = local_name(inner)
            if name in {"t", "sym", "checkBox"} or name in _BREAKS:
                self._collect_text(inner, name, content, bold=bold)
            elif name == "txbxContent":
                content.boxes.append(inner)
            elif name in {"footnoteReference", "endnoteReference"}:
                note = name.removesuffix("Reference") + attribute(inner, "id")
                content.notes.append(note)
            elif name and name not in _SKIPPED and depth < _MOST_DEPTH:
                strong = is_on(child(inner, "rPr"), "b") if name == "r" else bold
                wrapped = _preferred(inner) if name == "AlternateContent" else inner
                self._collect(wrapped, content, bold=strong, depth=depth + 1)

    def _collect_text(
        self, element: Element, name: str, content: _Paragraph, *, bold: bool
    ) -> None:
        if name == "t":
            text = element.text or ""
        elif name == "sym":
            text = _symbol(element)
        elif name == "checkBox":
            ticked = value_of(element, "checked")
            ticked = value_of(element, "default") if ticked is None else ticked
            text = "☐" if ticked in {None, "0", "false"} else "☒"
        else:
            text = _BREAKS[name]
        content.text.append(text)
        if bold:
            content.bold += len(text.strip())
        else:
            content.plain += len(text.strip())

    def _style_name(self, properties: Element | None) -> str:
        style = self._styles.get(value_of(properties, "pStyle") or "")
        return style.name if style else ""

    def _style_chain(self, properties: Element | None) -> Iterator[_Style]:
        key = value_of(properties, "pStyle") or ""
        for _ in range(20):
            style = self._styles.get(key)
            if style is None:
                return
            yield style
            key = style.based_on

    def _heading_level(self, properties: Element | None) -> int:
        outline = value_of(properties, "outlineLvl")
        if outline is not None and outline.isdecimal():
            return int(outline) + 1 if int(outline) < 9 else 0
        for style in self._style_chain(properties):
            named = _HEADING_STYLE.match(style.name)
            if named:
                return int(named[1])
            if style.name in {"title", "subtitle"}:
                return 1 if style.name == "title" else 2
            if style.outline is not None:
                return style.outline + 1 if style.outline < 9 else 0
        return 0

    def _is_bold_heading(self, content: _Paragraph, text: str) -> bool:
        """Tell a heading made by hand, in a document that has no heading styles."""
        return (
            not self._has_headings
            and bool(content.bold)
            and not content.plain
            and len(text) <= _LONGEST_BOLD_HEADING
            and "\n" not in text
            and text[-1:] not in set(".;,:")
            and any(character.isalpha() for character in text)
        )

    def _label(self, properties: Element | None) -> str:
        """Return the number or bullet that Word shows before a paragraph."""
        numbering = child(properties, "numPr")
        num_id = value_of(numbering, "numId")
        level = value_of(numbering, "ilvl")
        if num_id is None:
            for style in self._style_chain(properties):
                if style.num_id is not None:
                    num_id = style.num_id
                    level = str(style.num_level) if level is None else level
                    break
        if num_id is None or num_id == "0":
            return ""
        depth = int(level) if level is not None and level.isdecimal() else 0
        return self._numbering.next_label(num_id, min(depth, 8))


def _read_styles(root: Element | None) -> dict[str, _Style]:
    styles: dict[str, _Style] = {}
    for element in root if root is not None else ():
        if local_name(element) != "style" or attribute(element, "type") != "paragraph":
            continue
        properties = child(element, "pPr")
        outline = value_of(properties, "outlineLvl")
        level = value_of(properties, "numPr", "ilvl")
        styles[attribute(element, "styleId")] = _Style(
            name=(value_of(element, "name") or "").casefold(),
            based_on=value_of(element, "basedOn") or "",
            outline=int(outline) if outline and outline.isdecimal() else None,
            num_id=value_of(properties, "numPr", "numId"),
            num_level=int(level) if level and level.isdecimal() else 0,
        )
    return styles


def _preferred(alternatives: Element) -> Element:
    """Return the first of the forms in which the same content is given."""
    chosen = child(alternatives, "Choice")
    chosen = child(alternatives, "Fallback") if chosen is None else chosen
    return alternatives if chosen is None else chosen


def _flow(element: Element, depth: int) -> Iterator[Element]:
    """Yield paragraphs, tables and embedded parts, through all kinds of wrappers."""
    for inner in element:
        name = local_name(inner)
        if name in {"p", "tbl", "altChunk"}:
            yield inner
        elif name and name not in _SKIPPED and depth < _MOST_DEPTH:
            yield from _flow(inner, depth + 1)


def _flow_of(element: Element, wanted: str, depth: int = 0) -> Iterator[Element]:
    """Yield the rows of a table, or the cells of a row, through wrappers."""
    for inner in element:
        name = local_name(inner)
        if name == wanted:
            yield inner
        elif name in _WRAPPERS and depth < _MOST_DEPTH:
            yield from _flow_of(inner, wanted, depth + 1)


def _has_text(cell: Element) -> bool:
    return any(local_name(one) in {"t", "sym"} for one in cell.iter())


def _is_long(cell: Element) -> bool:
    return sum(1 for one in cell if local_name(one) in {"p", "tbl"}) > 2


def _symbol(element: Element) -> str:
    """Return a symbol's character; those of symbol fonts are known for tick boxes."""
    code = attribute(element, "char")
    ticks = {"F0FE": "☒", "F0FD": "☒", "F0A8": "☐", "F06F": "☐", "F0B7": "•"}
    if code.upper() in ticks:
        return ticks[code.upper()]
    try:
        character = chr(int(code, 16))
    except (ValueError, OverflowError):
        return ""
    return "" if "\ue000" <= character <= "\uf8ff" else character


def _html_lines(data: bytes) -> Iterator[str]:
    """Yield the text of an embedded page, one line for each block in it."""
    root = parse_html(data)
    lines: list[str] = [""]
    if root is not None:
        _collect_html(root, lines, 0)
    yield from (" ".join(line.split()) for line in lines)


def _collect_html(element: Element, lines: list[str], depth: int) -> None:
    name = local_name(element)
    if not name or name in {"script", "style", "head"} or depth > _MOST_DEPTH:
        return
    if name in _HTML_BLOCKS:
        lines.append("")
    lines[-1] += element.text or ""
    for inner in element:
        _collect_html(inner, lines, depth + 1)
        lines[-1] += inner.tail or ""
    if name in _HTML_BLOCKS:
        lines.append("")
    elif name in {"td", "th"} and element.getnext() is not None:
        lines[-1] += CELL_GAP


_HTML_BLOCKS = {
    "p", "div", "br", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "h5",
    "h6", "section", "article", "blockquote", "pre", "body",
}  # fmt: skip
