"""Reading a request's JSON, within bounds.

What the database or the next reader of the text could choke on is refused here with a
sentence: too much, too deep, a name twice, a number that is none, a NUL, broken
Unicode.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from retrieval.api.errors import BodyTooLargeError

MOST_BYTES = 1024 * 1024
MOST_DEPTH = 64

TEXTS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
BRACKETS = re.compile(r"[\[\]{}]")
UNUSABLE = re.compile("[\x00\ud800-\udfff]")


class BoundedJSONParser(BaseParser):
    """The only parser of the API: `application/json`, in UTF-8."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the body as Python values; raises ParseError or BodyTooLargeError."""
        body = stream.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise BodyTooLargeError
        return read_json(body)


def read_json(body: bytes) -> Any:
    """Return the values of a JSON text of at most MOST_BYTES; raises ParseError."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError("The body is not UTF-8.") from error
    if depth_of(text) > MOST_DEPTH:
        raise ParseError(f"The body is nested deeper than {MOST_DEPTH} levels.")
    try:
        value = json.loads(
            text,
            object_pairs_hook=one_of_each,
            parse_constant=refuse_constant,
            parse_float=finite,
        )
    except json.JSONDecodeError as error:
        raise ParseError(
            f"The body is not JSON: see line {error.lineno}, column {error.colno}."
        ) from error
    except ValueError as error:
        # Python reads no whole number of more than some thousand digits.
        raise ParseError("The body holds a number that is too long.") from error
    if any(UNUSABLE.search(each) for each in texts_of(value)):
        raise ParseError(
            "A text in the body holds a NUL character or half of a surrogate pair."
        )
    return value


def depth_of(text: str) -> int:
    """Return how deep brackets are nested, counting no further than is allowed."""
    depth = deepest = 0
    for bracket in BRACKETS.findall(TEXTS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
        if deepest > MOST_DEPTH:
            break
    return deepest


def one_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's members; a name that stands twice means two things."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ParseError("An object in the body has the same name twice.")
    return members


def refuse_constant(name: str) -> float:
    """Refuse NaN and Infinity, which JSON does not know."""
    raise ParseError(f"The body holds {name}, which is not JSON.")


def finite(digits: str) -> float:
    """Return a number; one that no machine can hold is refused."""
    number = float(digits)
    if not math.isfinite(number):
        raise ParseError("The body holds a number that is too large.")
    return number


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text of a value, names of members included."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, dict):
            waiting.extend(each.keys())
            waiting.extend(each.values())
