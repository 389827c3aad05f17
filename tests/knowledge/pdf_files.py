"""Writes small PDF files by hand, so that each test sees what it reads."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PAGE_WIDTH, PAGE_HEIGHT = 612, 792


@dataclass
class PdfFile:
    """Pages of drawing commands, with fonts F1 (Helvetica), F2 (bold), U1 (mapped)."""

    pages: list[str] = field(default_factory=list)
    annotations: dict[int, list[str]] = field(default_factory=dict)
    outline: list[tuple[str, int]] = field(default_factory=list)
    images: set[int] = field(default_factory=set)
    catalog: str = ""
    info: str = ""

    def add(self, *commands: str) -> PdfFile:
        """Add a page."""
        self.pages.append("\n".join(commands))
        return self

    def data(self) -> bytes:
        """Return the file's bytes."""
        objects: dict[int, bytes] = {
            3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica"
            b" /Encoding /WinAnsiEncoding >>",
            4: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold"
            b" /Encoding /WinAnsiEncoding >>",
            5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Mapped /ToUnicode 6 0 R"
            b" /FirstChar 0 /LastChar 0 /Widths [600] >>",
            6: stream(_CMAP),
            7: stream(
                b"\x00", "/Type /XObject /Subtype /Image /Width 1 /Height 1"
                " /ColorSpace /DeviceGray /BitsPerComponent 8",
            ),
        }  # fmt: skip
        first = 10
        kids = " ".join(f"{first + 2 * i} 0 R" for i in range(len(self.pages)))
        number = first + 2 * len(self.pages)
        for index, commands in enumerate(self.pages):
            page, content = first + 2 * index, first + 2 * index + 1
            notes: list[int] = []
            for annotation in self.annotations.get(index, []):
                objects[number] = annotation.encode("latin-1")
                notes.append(number)
                number += 1
            drawn = commands + ("\n/I1 Do" if index in self.images else "")
            objects[content] = stream(drawn.encode("latin-1"), compress=True)
            objects[page] = (
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {PAGE_WIDTH} {PAGE_HEIGHT}]"
                f" /Contents {content} 0 R /Resources << /Font << /F1 3 0 R /F2 4 0 R"
                f" /U1 5 0 R >> /XObject << /I1 7 0 R >> >>"
                f" /Annots [{' '.join(f'{one} 0 R' for one in notes)}] >>"
            ).encode()
        catalog = self.catalog
        if self.outline:
            catalog += f" /Outlines {number} 0 R"
            self._add_outline(objects, number, first)
        objects[1] = f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode()
        objects[2] = (
            f"<< /Type /Pages /Kids [{kids}] /Count {len(self.pages)} >>".encode()
        )
        objects[8] = f"<< {self.info} >>".encode("latin-1")
        return _file(objects)

    def write(self, folder: Path, name: str = "file.pdf") -> Path:
        """Write the file into a folder and return its path."""
        path = folder / name
        path.write_bytes(self.data())
        return path

    def _add_outline(self, objects: dict[int, bytes], root: int, first: int) -> None:
        last = root + len(self.outline)
        objects[root] = f"<< /First {root + 1} 0 R /Last {last} 0 R >>".encode()
        for index, (title, page) in enumerate(self.outline):
            number = root + 1 + index
            following = f"/Next {number + 1} 0 R" if number < last else ""
            objects[number] = (
                f"<< /Title ({title}) /Parent {root} 0 R {following}"
                f" /Dest [{first + 2 * page} 0 R /Fit] >>"
            ).encode()


def line(text: str, x: float, y: float, size: float = 11, font: str = "F1") -> str:
    """Return the commands that show a line of text at a place."""
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({escaped}) Tj ET"


def lines(texts: Sequence[str], x: float, y: float, *, step: float = 14) -> str:
    """Return the commands that show lines below one another."""
    return "\n".join(line(text, x, y - step * i) for i, text in enumerate(texts))


def stream(data: bytes, entries: str = "", *, compress: bool = False) -> bytes:
    """Return a stream object's source."""
    if compress:
        data, entries = zlib.compress(data), f"{entries} /Filter /FlateDecode"
    head = f"<< {entries} /Length {len(data)} >>\nstream\n".encode()
    return head + data + b"\nendstream"


def _file(objects: dict[int, bytes]) -> bytes:
    parts = [b"%PDF-1.7\n"]
    offsets: dict[int, int] = {}
    for number in sorted(objects):
        offsets[number] = sum(map(len, parts))
        parts.append(b"%d 0 obj\n%b\nendobj\n" % (number, objects[number]))
    start = sum(map(len, parts))
    size = max(objects) + 1
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n" % size)
    parts.extend(
        b"%010d 00000 n \n" % offsets[number]
        if number in offsets
        else b"0000000000 65535 f \n"
        for number in range(1, size)
    )
    parts.append(
        b"trailer\n<< /Size %d /Root 1 0 R /Info 8 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (size, start)
    )
    return b"".join(parts)


# Code 1 is a Vietnamese letter, 2 a ligature, 3 three letters at once.
_CMAP = (
    b"begincmap 1 begincodespacerange <00> <ff> endcodespacerange\n"
    b"3 beginbfchar <01> <1EBF> <02> <FB01> <03> <004100420043> endbfchar\n"
    b"1 beginbfrange <20> <7e> <0020> endbfrange endcmap"
)
