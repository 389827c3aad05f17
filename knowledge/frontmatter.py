"""The YAML head of a Markdown or text document, and what is read from it.

Keys with a meaning: `title`, `updated` (preferred) and `date` for the document's
date, `supersedes` for the files that it replaces, in an approved answer `asked_as` for
other wordings of its question. The others are kept as they are.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

MAX_FRONT_MATTER = 16_384
MAX_KEYS = 100
MAX_VALUE_LENGTH = 2_000
MAX_LIST_LENGTH = 200
MAX_DEPTH = 16

ASKED_AS = "asked_as"

FrontMatterValue = str | list[str]

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")


class FrontMatterError(ValueError):
    """A head that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The values of a head and the offset at which the document's own text starts."""

    values: dict[str, FrontMatterValue] = field(default_factory=dict)
    body_start: int = 0


class _TextLoader(yaml.SafeLoader):
    """Reads every plain value as text, so that dates and versions stay as written."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


def parse_front_matter(text: str) -> FrontMatter:
    """Return the head at the very start of a text; none gives an empty one.

    Raises FrontMatterError for a head that is too long or nested, uses aliases, or
    is no YAML mapping.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return FrontMatter()
    closing = _CLOSING.search(text, opening.end(), opening.end() + MAX_FRONT_MATTER)
    if closing is None:
        if _CLOSING.search(text, opening.end()) and _looks_like_yaml(
            text, opening.end()
        ):
            message = f"it is longer than {MAX_FRONT_MATTER:,} characters"
            raise FrontMatterError(message)
        return FrontMatter()
    source = text[opening.end() : closing.start()]
    if source.strip() and not _looks_like_yaml(text, opening.end()):
        return FrontMatter()
    return FrontMatter(_values(source), closing.end())


def declared_date(values: Mapping[str, FrontMatterValue]) -> datetime.date | None:
    """Return the date that the document declares: `updated`, else `date`."""
    for key in ("updated", "date"):
        value = values.get(key, "")
        match = _ISO_DATE.match(value) if isinstance(value, str) else None
        if match is None:
            continue
        try:
            return datetime.date.fromisoformat(match[0])
        except ValueError:
            continue
    return None


def superseded_files(values: Mapping[str, FrontMatterValue]) -> tuple[str, ...]:
    """Return the names of the files that the document says it replaces."""
    value = values.get("supersedes", "")
    names: Sequence[str] = value if isinstance(value, list) else value.split(",")
    return tuple(name.strip() for name in names if name.strip())


def other_wordings(values: Mapping[str, FrontMatterValue]) -> tuple[str, ...]:
    """Return the other wordings of the question that an approved answer is for."""
    value = values.get(ASKED_AS, [])
    wordings = [value] if isinstance(value, str) else value
    return tuple(" ".join(each.split()) for each in wordings if each.strip())


def _looks_like_yaml(text: str, start: int) -> bool:
    """Tell a head from a text between two horizontal rules."""
    for line in text[start : start + MAX_FRONT_MATTER].split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            return re.match(r"[\w\"'{ -][^:\n]*:(?:\s|\Z)|\{", line) is not None
    return False


def _values(source: str) -> dict[str, FrontMatterValue]:
    try:
        _check_shape(source)
        loaded = yaml.load(source, Loader=_TextLoader)  # noqa: S506 a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, FrontMatterError):
            raise
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = f" (line {line + 2})" if line is not None else ""
        message = f"it is not valid YAML{where}"
        raise FrontMatterError(message) from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        message = "it is not a list of `key: value` lines"
        raise FrontMatterError(message)
    values: dict[str, FrontMatterValue] = {}
    for key, value in list(loaded.items())[:MAX_KEYS]:
        flat = _flatten(value)
        if isinstance(key, str) and flat is not None:
            values[key[:MAX_VALUE_LENGTH]] = flat
    return values


def _check_shape(source: str) -> None:
    """Refuse aliases, which can multiply, and deep nesting, before building."""
    depth = 0
    for event in yaml.parse(source, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            message = "it uses YAML aliases, which are not accepted"
            raise FrontMatterError(message)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            message = "it is nested too deeply"
            raise FrontMatterError(message)


def _flatten(value: object) -> FrontMatterValue | None:
    if isinstance(value, str):
        return value[:MAX_VALUE_LENGTH]
    if isinstance(value, list):
        texts = [item for item in value[:MAX_LIST_LENGTH] if isinstance(item, str)]
        return [text[:MAX_VALUE_LENGTH] for text in texts]
    return None
