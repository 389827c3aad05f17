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
from lxml import etree

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

Element = etree._Element  # noqa: SLF001 lxml has no public name for it

_MAIN_PART = "word/document.xml"
_HEADING_STYLE = re.compile(r"heading (\d)\Z")
_CONTENTS_STYLE = re.compile(r"(?:toc \d|table of figures)\Z")
_SKIPPED = {
    "del", "moveFrom", "delText", "instrText", "fldData", "pPr", "rPr", "tblPr",
    "tblGrid", "trPr", "tcPr", "sdtPr", "sdtEndPr", "sectPr", "annotationRef",
    "commentRangeStart", "commentRangeEnd", "proofErr", "Fallback",
}  # fmt: skip
_BREAKS = {"br": "\n", "cr": "\n", "tab": "\t", "noBreakHyphen": "-", "ptab": "\t"}
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
    rels = read_member(archive, "_rels/.rels")
    for rel in _parse(rels) if rels is not None else ():
        if str(rel.get("Type", "")).endswith("/officeDocument"):
            target = posixpath.normpath(str(rel.get("Target", "")).lstrip("/"))
            if target in names and not target.startswith("word/"):
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


def _parse(data: bytes) -> Element:
    """Return parsed XML; entities stay unresolved and nothing is fetched."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, recover=True, remove_comments=True
    )
    root = etree.fromstring(data, parser)
    if root is None:
        message = (
            "The document inside the file is damaged and cannot be read. "
            "Please save it anew from its program and upload it again."
        )
        raise ExtractionError("corrupt", message)
    return root


def _open_by_library(path: Path) -> _Parts | None:
    """Return the parts as python-docx opens them, or None where it gives up."""
    try:
        document = docx.Document(str(path))
        related = {
            key: rel
            for key, rel in document.part.rels.items()
            if not rel.is_external and rel.target_part is not None
        }
        blobs = [
            (key, str(rel.reltype), str(rel.target_part.partname), rel.target_part.blob)
            for key, rel in related.items()
        ]
        title = str(document.core_properties.title or "")
        main = _parse(document.part.blob)
    except Exception:  # noqa: BLE001 it raises whatever a broken file makes of it
        return None
    return _gather(main, title, blobs)


def _open_by_zip(archive: ZipFile, names: set[str], main: str) -> _Parts:
    """Return the parts read from the zip by the relationships of the main part."""
    data = read_member(archive, main)
    if data is None:
        message = (
            "The document inside the file is damaged and cannot be read. "
            "Please save it anew from its program and upload it again."
        )
        raise ExtractionError("corrupt", message)
    folder, file = posixpath.split(main)
    blobs: list[tuple[str, str, str, bytes]] = []
    rels = read_member(archive, f"{folder}/_rels/{file}.rels")
    for rel in _parse(rels) if rels is not None else ():
        target = str(rel.get("Target", ""))
        absolute = target.startswith("/")
        target = target.lstrip("/") if absolute else posixpath.join(folder, target)
        target = posixpath.normpath(target)
        blob = read_member(archive, target) if target in names else None
        if blob is not None:
            key, kind = str(rel.get("Id", "")), str(rel.get("Type", ""))
            blobs.append((key, kind, target, blob))
    return _gather(_parse(data), "", blobs)


def _gather(
    main: Element, title: str, blobs: list[tuple[str, str, str, bytes]]
) -> _Parts:
    parts = _Parts(main=main, title=title)
    for key, reltype, _, blob in blobs:
        kind = reltype.rsplit("/", maxsplit=1)[-1]
        if kind == "styles":
            parts.styles = _parse(blob)
        elif kind == "numbering":
            parts.numbering = _parse(blob)
        elif kind in {"footnotes", "endnotes"}:
            for note in _parse(blob):
                if not _attribute(note, "type"):
                    parts.notes[f"{kind[:-1]}{_attribute(note, 'id')}"] = note
        elif kind in {"header", "footer"}:
            parts.margins.append(_parse(blob))
        elif kind == "aFChunk":
            parts.chunks[key] = blob
        elif kind == "comments":
            parts.comments = sum(1 for one in _parse(blob) if _name(one) == "comment")
    return parts


def _name(element: Element) -> str:
    tag = element.tag
    return tag.rsplit("}", maxsplit=1)[-1] if isinstance(tag, str) else ""


def _attribute(element: Element, name: str) -> str:
    for key, value in element.attrib.items():
        if str(key).rsplit("}", maxsplit=1)[-1] == name:
            return str(value)
    return ""


def _child(element: Element | None, *names: str) -> Element | None:
    for name in names:
        if element is None:
            return None
        element = next((one for one in element if _name(one) == name), None)
    return element


def _value(element: Element | None, *names: str) -> str | None:
    child = _child(element, *names)
    return None if child is None else _attribute(child, "val")


def _is_on(element: Element | None, name: str) -> bool:
    value = _value(element, name)
    return value is not None and value not in {"0", "false", "off", "none"}


class _Reader:
    """Walks the XML and writes blocks."""

    def __init__(self, parts: _Parts, limits: Limits) -> None:
        self._parts = parts
        self._builder = TextBuilder(limits)
        self._styles = _read_styles(parts.styles)
        self._numbering = Numbering(parts.numbering)
        self._has_headings = any(
            self._heading_level(_child(paragraph, "pPr"))
            for paragraph in parts.main.iter()
            if _name(paragraph) == "p"
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
            name = _name(element)
            if name == "p":
                self._read_paragraph(element)
            elif name == "tbl":
                self._read_table(element)
            elif name == "altChunk":
                self._read_chunk(_attribute(element, "id"))

    def read_margins(self) -> None:
        """Read each header and footer once, where it says more than the text does."""
        known = " ".join(self._builder.text().split()).casefold()
        for margin in self._parts.margins:
            for element in margin.iter():
                if _name(element) != "p" or _ancestor(element, "p"):
                    continue
                text = " ".join("".join(self._content(element).text).split())
                letters = sum(1 for character in text if character.isalpha())
                if letters > 2 and text.casefold() not in known:
                    self._builder.add(BlockKind.PARAGRAPH, text)
                    known += f" {text.casefold()}"

    def _read_paragraph(self, element: Element) -> None:
        properties = _child(element, "pPr")
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
        merge = _child(cell, "tcPr", "vMerge")
        if merge is not None and _attribute(merge, "val") in {"", "continue"}:
            return ""
        texts: list[str] = []
        for element in _flow(cell, 0):
            if _name(element) == "p":
                content = self._content(element)
                text = " ".join("".join(content.text).split())
                label = self._label(_child(element, "pPr")) if text else ""
                texts.append(f"{label} {text}".strip())
                contents.append(content)
            elif _name(element) == "tbl":
                for row in _flow_of(element, "tr"):
                    inner = [self._cell(one, contents) for one in _flow_of(row, "tc")]
                    texts.append(" / ".join(text for text in inner if text))
        return " ".join(text for text in texts if text)

    def _is_deleted_row(self, row: Element) -> bool:
        return _child(row, "trPr", "del") is not None

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
        if depth > _MOST_DEPTH:
            return
        for child in element:
            name = _name(child)
            if name in {"t", "sym", "checkBox"} or name in _BREAKS:
                self._collect_text(child, name, content, bold=bold)
            elif name == "txbxContent":
                content.boxes.append(child)
            elif name in {"footnoteReference", "endnoteReference"}:
                content.notes.append(
                    name.removesuffix("Reference") + _attribute(child, "id")
                )
            elif name == "AlternateContent":
                chosen = _child(child, "Choice")
                chosen = _child(child, "Fallback") if chosen is None else chosen
                if chosen is not None:
                    self._collect(chosen, content, bold=bold, depth=depth + 1)
            elif name == "r":
                strong = _is_on(_child(child, "rPr"), "b")
                self._collect(child, content, bold=strong, depth=depth + 1)
            elif name and name not in _SKIPPED:
                self._collect(child, content, bold=bold, depth=depth + 1)

    def _collect_text(
        self, element: Element, name: str, content: _Paragraph, *, bold: bool
    ) -> None:
        if name == "t":
            text = element.text or ""
        elif name == "sym":
            text = _symbol(element)
        elif name == "checkBox":
            ticked = _value(element, "checked")
            ticked = _value(element, "default") if ticked is None else ticked
            text = "☐" if ticked in {None, "0", "false"} else "☒"
        else:
            text = _BREAKS[name]
        content.text.append(text)
        if bold:
            content.bold += len(text.strip())
        else:
            content.plain += len(text.strip())

    def _style_name(self, properties: Element | None) -> str:
        style = self._styles.get(_value(properties, "pStyle") or "")
        return style.name if style else ""

    def _style_chain(self, properties: Element | None) -> Iterator[_Style]:
        key = _value(properties, "pStyle") or ""
        for _ in range(20):
            style = self._styles.get(key)
            if style is None:
                return
            yield style
            key = style.based_on

    def _heading_level(self, properties: Element | None) -> int:
        outline = _value(properties, "outlineLvl")
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
        numbering = _child(properties, "numPr")
        num_id = _value(numbering, "numId")
        level = _value(numbering, "ilvl")
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
        if _name(element) != "style" or _attribute(element, "type") != "paragraph":
            continue
        properties = _child(element, "pPr")
        outline = _value(properties, "outlineLvl")
        level = _value(properties, "numPr", "ilvl")
        styles[_attribute(element, "styleId")] = _Style(
            name=(_value(element, "name") or "").casefold(),
            based_on=_value(element, "basedOn") or "",
            outline=int(outline) if outline and outline.isdecimal() else None,
            num_id=_value(properties, "numPr", "numId"),
            num_level=int(level) if level and level.isdecimal() else 0,
        )
    return styles


def _flow(element: Element, depth: int) -> Iterator[Element]:
    """Yield paragraphs, tables and embedded parts, through all kinds of wrappers."""
    for child in element:
        name = _name(child)
        if name in {"p", "tbl", "altChunk"}:
            yield child
        elif name and name not in _SKIPPED and depth < _MOST_DEPTH:
            yield from _flow(child, depth + 1)


def _flow_of(element: Element, wanted: str, depth: int = 0) -> Iterator[Element]:
    """Yield the rows of a table, or the cells of a row, through wrappers."""
    for child in element:
        name = _name(child)
        if name == wanted:
            yield child
        elif name in {"sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag"}:
            if depth < _MOST_DEPTH:
                yield from _flow_of(child, wanted, depth + 1)


def _ancestor(element: Element, name: str) -> bool:
    return any(_name(one) == name for one in element.iterancestors())


def _has_text(cell: Element) -> bool:
    return any(_name(one) in {"t", "sym"} for one in cell.iter())


def _is_long(cell: Element) -> bool:
    return sum(1 for one in cell if _name(one) in {"p", "tbl"}) > 2


def _symbol(element: Element) -> str:
    """Return a symbol's character; those of symbol fonts are known for tick boxes."""
    code = _attribute(element, "char")
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
    root = etree.fromstring(data, etree.HTMLParser(no_network=True))
    if root is None:
        return
    line: list[str] = []
    for event, element in etree.iterwalk(root, events=("start", "end")):
        name = _name(element)
        hidden = name in {"script", "style", "head", "title"}
        if not hidden and name in _HTML_BLOCKS and line:
            yield " ".join("".join(line).split())
            line = []
        if event == "start" and not hidden:
            line.append(element.text or "")
        elif event == "end":
            line.append(element.tail or "")
            if name in {"td", "th"}:
                line.append(CELL_GAP if element.getnext() is not None else "")
    yield " ".join("".join(line).split())


_HTML_BLOCKS = {
    "p", "div", "br", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "h5",
    "h6", "section", "article", "blockquote", "pre", "body",
}  # fmt: skip
