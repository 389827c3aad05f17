"""Tells what a file is by how it begins."""

from __future__ import annotations

import re
from pathlib import PurePath

from knowledge.extraction.blocks import ExtractionError

HEAD_BYTES = 8_192

_TEXT_KINDS = {
    "md": "markdown", "markdown": "markdown", "mkd": "markdown", "mdown": "markdown",
    "csv": "csv", "tsv": "csv", "tab": "csv",
    "json": "json", "jsonl": "json", "ndjson": "json",
    "log": "log",
    "txt": "text", "text": "text",
}  # fmt: skip
_WORD_NAMES = {"docx", "docm", "dotx", "dotm"}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_WORD_STREAM = "WordDocument".encode("utf-16-le")
_OTHERS = (
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"II*\x00", "an image"),
    (b"MM\x00*", "an image"),
    (b"BM", "an image"),
    (b"{\\rtf", "a Rich Text (RTF) document"),
    (b"Rar!", "an archive"),
    (b"7z\xbc\xaf", "an archive"),
    (b"\x1f\x8b", "an archive"),
    (b"BZh", "an archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3", "a database"),
    (b"ID3", "a sound file"),
    (b"OggS", "a sound file"),
    (b"%!PS", "a PostScript file"),
)
_PAGE_NAMES = {"html", "htm", "xhtml", "xml", "svg", "xsl", "rss", "atom"}
_OFFICE_NAMES = {
    "xlsx": "a spreadsheet", "xls": "a spreadsheet", "ods": "a spreadsheet",
    "pptx": "a presentation", "ppt": "a presentation", "odp": "a presentation",
    "odt": "an OpenDocument text", "epub": "an e-book", "zip": "an archive",
    "rtf": "a Rich Text (RTF) document", "pages": "a Pages document",
}  # fmt: skip
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MOST_BINARY = 0.1
_ACCEPTED = (
    "Please upload PDF, DOCX, plain text, Markdown, CSV, JSON or a log, or save it as "
    "one of these."
)


def sniff(head: bytes, name: str) -> str:
    """Return the kind of a file: text, markdown, log, csv, json, docx or pdf.

    `head` is the file's beginning, HEAD_BYTES of it or all. Raises ExtractionError
    for an empty file, a kind that is not supported, and a content that contradicts
    the name.
    """
    if not head:
        message = "The file is empty (0 bytes). Please check it and upload it again."
        raise ExtractionError("empty", message)
    suffix = _suffix(name)
    if b"%PDF-" in head[:1024]:
        return _agreed("pdf", suffix, {"pdf"}, "a PDF")
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        if suffix in _OFFICE_NAMES:
            raise _unsupported(_OFFICE_NAMES[suffix])
        return _agreed("docx", suffix, _WORD_NAMES, "a zip or Word document")
    _refuse_others(head)
    if suffix == "pdf":
        raise _broken("PDF")
    if suffix in {*_WORD_NAMES, "doc"}:
        raise _broken("Word document")
    return _text_kind(head, suffix)


def _refuse_others(head: bytes) -> None:
    if head.startswith(_OLE):
        raise ole_refusal(head)
    for magic, what in _OTHERS:
        if head.startswith(magic) and (len(magic) > 3 or _is_binary(head)):
            raise _unsupported(what)


def ole_refusal(data: bytes) -> ExtractionError:
    """Return why an OLE container is refused: a password, or an old Office format."""
    if _ENCRYPTED_STREAM in data:
        message = (
            "The document is encrypted with a password. Please remove the password in "
            "its program and upload it again."
        )
        return ExtractionError("encrypted", message)
    if _WORD_STREAM in data:
        message = (
            "The old Word format (.doc) is not supported. "
            "Please save it as DOCX or PDF and upload that."
        )
        return ExtractionError("unsupported", message)
    message = (
        "This is an old Office file or one protected by a password, which is not "
        "supported. Please remove the password, or save it as DOCX or PDF."
    )
    return ExtractionError("unsupported", message)


def _text_kind(head: bytes, suffix: str) -> str:
    if _is_binary(head):
        message = f"The file is not text and of no supported kind. {_ACCEPTED}"
        raise ExtractionError("unsupported", message)
    if suffix in _PAGE_NAMES:
        raise _unsupported("a web page or XML file")
    if suffix in _OFFICE_NAMES:
        raise _unsupported(_OFFICE_NAMES[suffix])
    return _TEXT_KINDS.get(suffix, "text")


def _suffix(name: str) -> str:
    """Return the last suffix that says a kind ("error.log.1" is a log)."""
    suffixes = [part.lstrip(".").casefold() for part in PurePath(name).suffixes]
    while len(suffixes) > 1 and suffixes[-1].isdecimal():
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _agreed(kind: str, suffix: str, names: set[str], what: str) -> str:
    """Return the kind, unless the name claims to be something else."""
    others = {*_TEXT_KINDS, *_PAGE_NAMES, *_OFFICE_NAMES, *_WORD_NAMES, "pdf", "doc"}
    if suffix in others - names:
        message = (
            f"The file is named .{suffix} but its content is {what}. "
            "Please give it its right name and upload it again."
        )
        raise ExtractionError("mismatch", message)
    return kind


def _is_binary(head: bytes) -> bool:
    """Tell bytes that are no text in any encoding (UTF-16 has zero bytes, too)."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    controls = [match[0] for match in _BINARY.finditer(head)]
    if len(controls) <= _MOST_BINARY * len(head):
        return False
    wide = {b"\x00", b"\x01", b"\x04", b"\x1e"}
    high = [
        sum(1 for i in range(at, len(head), 2) if head[i : i + 1] in wide)
        for at in (0, 1)
    ]
    return max(high) < 0.35 * len(head) or min(high) > 0.1 * len(head)


def _unsupported(what: str) -> ExtractionError:
    return ExtractionError(
        "unsupported", f"The file is {what}, which is not supported. {_ACCEPTED}"
    )


def _broken(what: str) -> ExtractionError:
    message = (
        f"The file is not a valid {what}: it is damaged or cut off. "
        "Please export it again from its program and upload it again."
    )
    return ExtractionError("corrupt", message)
