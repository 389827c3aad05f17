"""Picks the reader for a file and runs it in this process."""

from __future__ import annotations

from pathlib import Path

from knowledge.extraction.blocks import Extracted, ExtractionError
from knowledge.extraction.limits import MEBIBYTE, Limits
from knowledge.extraction.sniffing import HEAD_BYTES, ole_refusal, sniff


def extract(path: Path, name: str, limits: Limits) -> Extracted:
    """Return the text of a file; `name` is the one it was uploaded under.

    Raises ExtractionError with a sentence for whoever uploaded it. The parsers are
    imported here, so that only the process that parses loads them.
    """
    if path.stat().st_size > limits.file_bytes:
        message = (
            f"The file is larger than {limits.file_bytes // MEBIBYTE} MiB. "
            "Please split it into smaller documents."
        )
        raise ExtractionError("too_large", message)
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise ole_refusal(path.read_bytes())
    kind = sniff(head, name)
    if kind == "pdf":
        from knowledge.extraction.pdf import extract_pdf

        return extract_pdf(path, name, limits)
    if kind == "docx":
        from knowledge.extraction.word import extract_docx

        return extract_docx(path, name, limits)
    return _extract_text_kind(path, name, kind, limits)


def _extract_text_kind(path: Path, name: str, kind: str, limits: Limits) -> Extracted:
    from knowledge.extraction.decoding import decode

    decoded = decode(path.read_bytes())
    if kind == "csv":
        from knowledge.extraction.tabular import extract_csv

        return extract_csv(decoded, name, limits)
    if kind == "json":
        from knowledge.extraction.structured import extract_json

        return extract_json(decoded, name, limits)
    from knowledge.extraction.plaintext import extract_log, extract_text

    if kind == "log":
        return extract_log(decoded, name, limits)
    return extract_text(decoded, name, kind, limits)
