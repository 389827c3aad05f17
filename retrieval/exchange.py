"""Question sets as files: JSON lines, one question each, or CSV, one place each. Pure.

JSON lines are `{"id", "question", "lang", "answerable", "gold": [{"file", "section",
"quote"}], "notes"}`; of a line with `passage_id` or `passage_ids` each is a file. Keys
beside these are kept. CSV has the columns of COLUMNS; lines with the same id and
language are places of one question.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from knowledge.sanitizing import InvalidTextError, clean_query

COLUMNS = ("id", "question", "lang", "answerable", "file", "section", "quote", "notes")
LANGUAGES = ("en", "vi", "pl", "ro", "ru", "mixed")
OWN_KEYS = {"id", "question", "lang", "answerable", "gold", "notes"}
MOST_LINES = 5000
MOST_PLACES = 20
LONGEST = {"id": 80, "question": 1000, "file": 500, "section": 1000, "quote": 4000}
LONGEST_NOTES = 4000
# A cell that begins so is a formula to a spreadsheet.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NO = {"false", "no", "0", "n"}
YES = {"", "true", "yes", "1", "y"}


class ExchangeError(ValueError):
    """A file that is not taken; the message names the line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Line:
    """One question as files have it; `extra` holds what else its line said."""

    text: str
    key: str = ""
    language: str = ""
    is_answerable: bool = True
    places: tuple[Mapping[str, Any], ...] = ()
    notes: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


def read_lines(text: str, name: str) -> list[Line]:
    """Return the questions of a file; its name tells CSV from JSON lines.

    Raises ExchangeError.
    """
    text = text.removeprefix("\ufeff")
    reader = read_csv if name.lower().endswith(".csv") else read_jsonl
    lines = list(reader(text))
    if not lines:
        raise ExchangeError("The file holds no question.")
    seen: set[tuple[str, str]] = set()
    for line in lines:
        if line.key and (line.key, line.language) in seen:
            raise ExchangeError(
                f"The id “{line.key}” stands twice in the same language."
            )
        seen.add((line.key, line.language))
    return lines


# --- JSON lines -----------------------------------------------------------------


def read_jsonl(text: str) -> Iterator[Line]:
    """Yield the question of each line that is not blank."""
    count = 0
    for number, raw in enumerate(text.split("\n"), 1):
        if not raw.strip():
            continue
        count += 1
        check_count(count)
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ExchangeError(f"Line {number} is not JSON.") from error
        if not isinstance(row, dict):
            raise ExchangeError(f"Line {number} is not an object in {{…}}.")
        if not is_storable(row):
            raise ExchangeError(f"Line {number} holds broken text or numbers.")
        yield line_of(row, number)


def is_storable(row: Mapping[str, Any]) -> bool:
    """Tell whether the database takes an object: no NUL, lone surrogate or NaN."""
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except ValueError:
        return False
    return "\\u0000" not in text


def line_of(row: Mapping[str, Any], number: int) -> Line:
    """Return one object as a question."""
    gold = row.get("gold")
    extra = {key: value for key, value in row.items() if key not in OWN_KEYS}
    if gold is None:
        ids = row.get("passage_ids") or [row.get("passage_id")]
        if not isinstance(ids, list):
            raise ExchangeError(f"Line {number}: passage_ids is not a list.")
        gold = [{"file": each} for each in ids if each is not None]
    if not isinstance(gold, list) or not all(isinstance(each, dict) for each in gold):
        raise ExchangeError(f"Line {number}: gold is not a list of places.")
    answerable = row.get("answerable", True)
    if not isinstance(answerable, bool):
        raise ExchangeError(f"Line {number}: answerable is neither true nor false.")
    return checked_line(
        number,
        {name: row.get(name) for name in ("id", "question", "lang", "notes")},
        gold,
        is_answerable=answerable,
        extra=extra,
    )


def write_jsonl(lines: Iterable[Line]) -> str:
    """Return the questions as JSON lines."""
    return "".join(
        json.dumps(
            {
                "id": line.key,
                "question": line.text,
                "lang": line.language,
                "answerable": line.is_answerable,
                "gold": [dict(place) for place in line.places],
                "notes": line.notes,
                **line.extra,
            },
            ensure_ascii=False,
        )
        + "\n"
        for line in lines
    )


# --- CSV ------------------------------------------------------------------------


def read_csv(text: str) -> Iterator[Line]:
    """Yield the questions of a table; the first line names its columns."""
    head = text.partition("\n")[0]
    mark = ";" if head.count(";") > head.count(",") else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    try:
        names = [(name or "").strip().lower() for name in reader.fieldnames or ()]
        if "question" not in names:
            raise ExchangeError(
                "The first line must name the columns: " + ", ".join(COLUMNS) + "."
            )
        reader.fieldnames = names
        grouped: dict[object, tuple[int, dict[str, str], list[dict[str, str]]]] = {}
        for number, raw in enumerate(reader, 2):
            check_count(number - 1)
            row = {
                name: unescaped(value)
                for name, value in raw.items()
                if name in COLUMNS and isinstance(value, str)
            }
            if not any(row.values()):
                continue
            key = (row.get("id"), row.get("lang")) if row.get("id") else number
            _number, _row, places = grouped.setdefault(key, (number, row, []))
            place = {
                name: row[name]
                for name in ("file", "section", "quote")
                if row.get(name)
            }
            if place:
                places.append(place)
    except csv.Error as error:
        raise ExchangeError(f"The table cannot be read: {error}.") from error
    for number, row, places in grouped.values():
        said = row.get("answerable", "").strip().lower()
        if said not in NO | YES:
            raise ExchangeError(f"Line {number}: answerable is neither true nor false.")
        yield checked_line(number, row, places, is_answerable=said not in NO)


def write_csv(lines: Iterable[Line]) -> str:
    """Return the questions as a table, one line for each place."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for number, line in enumerate(lines, 1):
        for place in line.places or ({},):
            row = {
                # Without an id, two places could not be told from two questions.
                "id": line.key or f"q{number}",
                "question": line.text,
                "lang": line.language,
                "answerable": "true" if line.is_answerable else "false",
                "notes": line.notes,
                **{name: place.get(name, "") for name in ("file", "section", "quote")},
            }
            writer.writerow({name: escaped(value) for name, value in row.items()})
    return text.getvalue()


def escaped(value: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if value.startswith(FORMULA) else value


def unescaped(value: str) -> str:
    """Return what a cell says."""
    return value[1:] if value[:1] == "'" and value[1:].startswith(FORMULA) else value


# --- Both -----------------------------------------------------------------------


def check_count(count: int) -> None:
    """Refuse a file of too many lines."""
    if count > MOST_LINES:
        raise ExchangeError(f"The file has more than {MOST_LINES:,} lines.")


def checked_line(
    number: int,
    row: Mapping[str, object],
    places: Sequence[Mapping[str, Any]],
    *,
    is_answerable: bool,
    extra: Mapping[str, Any] | None = None,
) -> Line:
    """Return a question whose texts are clean and of a fair length."""
    language = str(row.get("lang") or "")
    if language and language not in LANGUAGES:
        raise ExchangeError(
            f"Line {number}: lang is one of {', '.join(LANGUAGES)}, or empty."
        )
    if len(places) > MOST_PLACES:
        raise ExchangeError(f"Line {number} has more than {MOST_PLACES} places.")
    if places and not is_answerable:
        raise ExchangeError(
            f"Line {number} names a place and says that the documents do not answer it."
        )
    return Line(
        text=clean(number, "question", row.get("question")),
        key=clean(number, "id", row.get("id"), is_needed=False),
        language=language,
        is_answerable=is_answerable,
        places=tuple(checked_place(number, place) for place in places),
        notes=str(row.get("notes") or "")[:LONGEST_NOTES].replace("\0", ""),
        extra=extra or {},
    )


def checked_place(number: int, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return a place with clean texts, and what else its object said."""
    kept = {key: value for key, value in place.items() if key not in LONGEST}
    kept["file"] = clean(number, "file", place.get("file"))
    for name in ("section", "quote"):
        if text := clean(number, name, place.get(name), is_needed=False):
            kept[name] = text
    return kept


def clean(number: int, name: str, value: object, *, is_needed: bool = True) -> str:
    """Return one text of a line."""
    text = "" if value is None else str(value)
    if not text.strip():
        if is_needed:
            raise ExchangeError(f"Line {number} has no {name}.")
        return ""
    try:
        return clean_query(text, max_length=LONGEST[name])
    except InvalidTextError as error:
        raise ExchangeError(f"Line {number}, {name}: {error}") from error
