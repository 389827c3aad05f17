"""The bookmarks of a PDF."""

from __future__ import annotations

from typing import Any

from pypdf import PdfReader
from pypdf.generic import Destination

_MOST_OUTLINE = 5_000


def read_outline(reader: PdfReader) -> dict[int, dict[str, int]]:
    """Return, for each page number, the bookmarks that point there and their depth."""
    found: dict[int, dict[str, int]] = {}

    def walk(entries: Any, depth: int) -> None:
        for entry in entries:
            if isinstance(entry, list):
                walk(entry, min(depth + 1, 9))
            elif isinstance(entry, Destination):
                number = reader.get_destination_page_number(entry)
                if number is not None:
                    key = outline_key(str(entry.title))
                    found.setdefault(number + 1, {}).setdefault(key, depth)

    try:
        walk(reader.outline[:_MOST_OUTLINE], 1)
    except Exception:  # noqa: BLE001 a broken outline is no reason to lose the text
        return {}
    return found


def outline_key(title: str) -> str:
    """Return the form in which bookmarks and headings are compared."""
    return "".join(character for character in title.casefold() if character.isalnum())
