"""Reading the lines of an export of version v0, as docs/legacy.md describes them."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from knowledge.actions import ActionError

FORMAT: Final = "strata-export"
VERSION: Final = "v0"
# Of one line of the file, and of one text in it (characters).
MOST_LINE: Final = 2_000_000
MOST_TEXT: Final = 20_000


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
        """Return a text of the line; raises LegacyError."""
        value = self.row.get(name)
        if value is None and not needed:
            return ""
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
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.wrong(
                _("“%(name)s” must be a whole number from %(least)s")
                % {"name": name, "least": least}
            )
        return value

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
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if len(text) > MOST_LINE:
                    raise LegacyError(
                        _("Line %(number)s is too long.") % {"number": number}
                    )
                if number == 1:
                    refuse_head(text)
                elif text.strip():
                    yield line_of(number, text, kinds)
    except (OSError, UnicodeDecodeError) as error:
        raise LegacyError(
            _("%(path)s cannot be read: %(error)s")
            % {"path": path.name, "error": error}
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
    if not isinstance(row, dict) or row.get("type") not in kinds:
        raise LegacyError(
            _("Line %(number)s: “type” must be one of: %(kinds)s.")
            % {"number": number, "kinds": ", ".join(kinds)}
        )
    return Line(number, row)
