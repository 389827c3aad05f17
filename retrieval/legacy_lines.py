"""Reading the lines of an export of version v0, as docs/legacy.md describes them."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from knowledge.actions import ActionError
from knowledge.sanitizing import clean_document_text

FORMAT: Final = "strata-export"
VERSION: Final = "v0"
# Of one line of the file (bytes), and of one text in it (characters).
MOST_LINE: Final = 8_000_000
MOST_TEXT: Final = 20_000
# What a column for whole numbers holds.
MOST_NUMBER: Final = 2**31 - 1
# No export speaks of a moment before.
EARLIEST: Final = datetime(1990, 1, 1, tzinfo=UTC)


class LegacyError(ActionError):
    """A file that cannot be brought in; the message names the line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file: its number and what it says."""

    number: int
    row: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """What it is: passage, receipt, pair or interaction."""
        return str(self.row["type"])

    def text(self, name: str, *, most: int = MOST_TEXT, needed: bool = True) -> str:
        """Return a text of the line, without what no database holds.

        Raises LegacyError.
        """
        value = self.row.get(name)
        if value is None and not needed:
            return ""
        if isinstance(value, str):
            value, _removed = clean_document_text(value)
        if not isinstance(value, str) or (needed and not value.strip()):
            raise self.wrong(_("“%(name)s” must be a text") % {"name": name})
        if len(value) > most:
            raise self.wrong(
                _("“%(name)s” has more than %(most)s characters")
                % {"name": name, "most": most}
            )
        return value

    def number_of(self, name: str, *, least: int = 0) -> int | None:
        """Return a whole number of the line, None where it has none."""
        value = self.row.get(name)
        if value is None:
            return None
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not least <= value <= MOST_NUMBER:
            raise self.wrong(
                _("“%(name)s” must be a whole number from %(least)s to %(most)s")
                % {"name": name, "least": least, "most": MOST_NUMBER}
            )
        return int(value)

    def moment(self, name: str) -> datetime | None:
        """Return a moment of the line, None where it has none."""
        value = self.row.get(name)
        if value is None:
            return None
        try:
            found = parse_datetime(value) if isinstance(value, str) else None
        except ValueError:
            found = None
        if found is None or timezone.is_naive(found):
            raise self.wrong(
                _("“%(name)s” must be a moment with its offset, as in %(example)s")
                % {"name": name, "example": "2024-05-31T08:30:00Z"}
            )
        if not EARLIEST <= found <= timezone.now():
            raise self.wrong(
                _("“%(name)s” must be a moment from %(year)s on that has passed")
                % {"name": name, "year": EARLIEST.year}
            )
        return found

    def choice(self, name: str, choices: Mapping[str, str]) -> str:
        """Return one of some words, by what stands for it here."""
        value = self.row.get(name)
        if not isinstance(value, str) or value not in choices:
            raise self.wrong(
                _("“%(name)s” must be one of: %(choices)s")
                % {"name": name, "choices": ", ".join(choices)}
            )
        return choices[value]

    def wrong(self, sentence: str) -> LegacyError:
        """Return an error that names the line."""
        return LegacyError(
            _("Line %(number)s: %(sentence)s.")
            % {"number": self.number, "sentence": sentence}
        )


def read_lines(path: Path, kinds: Collection[str]) -> Iterator[Line]:
    """Yield the lines of a file after its head, each of a known kind.

    Raises LegacyError.
    """
    try:
        with path.open("rb") as file:
            for number in count(1):
                written = file.readline(MOST_LINE + 1)
                if not written:
                    break
                text = text_of(number, written)
                if number == 1:
                    refuse_head(text)
                elif text.strip():
                    yield line_of(number, text, kinds)
    except OSError as error:
        raise LegacyError(
            _("%(path)s cannot be read: %(error)s")
            % {"path": path.name, "error": error.strerror or error}
        ) from error


def text_of(number: int, written: bytes) -> str:
    """Return what a line says; raises LegacyError."""
    if len(written) > MOST_LINE:
        raise LegacyError(_("Line %(number)s is too long.") % {"number": number})
    try:
        # Some programs begin a file with a mark that is no part of the text.
        return written.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise LegacyError(
            _("Line %(number)s is not written in UTF-8.") % {"number": number}
        ) from error


def refuse_head(text: str) -> None:
    """Raise LegacyError where the first line is not that of the format."""
    try:
        head = json.loads(text)
    except ValueError:
        head = None
    if head != {"format": FORMAT, "version": VERSION}:
        raise LegacyError(
            _("This is no export of version v0: its first line must be %(head)s")
            % {"head": json.dumps({"format": FORMAT, "version": VERSION})}
        )


def line_of(number: int, text: str, kinds: Collection[str]) -> Line:
    """Return one line; raises LegacyError."""
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LegacyError(
            _("Line %(number)s is not JSON.") % {"number": number}
        ) from error
    kind = row.get("type") if isinstance(row, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise LegacyError(
            _("Line %(number)s: “type” must be one of: %(kinds)s.")
            % {"number": number, "kinds": ", ".join(kinds)}
        )
    return Line(number, row)
