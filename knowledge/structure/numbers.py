"""What a text calls its numbered parts, and how their numbers compare."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum


class Unit(StrEnum):
    """What a text calls a numbered part of it."""

    ANNEX = "annex"
    PART = "part"
    TITLE = "title"
    CHAPTER = "chapter"
    SECTION = "section"
    SUBSECTION = "subsection"
    ARTICLE = "article"
    CLAUSE = "clause"
    RULE = "rule"
    SIGN = "sign"
    REQUIREMENT = "requirement"
    RECITAL = "recital"
    PARAGRAPH = "paragraph"
    POINT = "point"


_RAISED = str.maketrans(
    {mark: f"^{digit}" for digit, mark in enumerate("¹²³⁴⁵⁶⁷⁸⁹", 1)}
)
_LETTER_STOP = re.compile(r"\A([^\W\d_])\.(?=\d)")
_ROMAN = dict(zip("IVXLCDM", (1, 5, 10, 50, 100, 500, 1000), strict=True))


def number_key(number: str) -> str:
    """Return the form in which numbers are looked up: `IV` is `4`, `A.5` is `a5`.

    Only the outermost number is read as Roman, and only in capitals: an item "(c)"
    stays a letter.
    """
    outer, bracket, inner = number.strip().translate(_RAISED).partition("(")
    outer = outer.strip().rstrip(".")
    if outer and not set(outer) - set("IVXLCDM") and (len(outer) > 1 or outer in "IVX"):
        outer = str(roman_value(outer)) or outer
    outer = _LETTER_STOP.sub(r"\1", outer)
    key = f"{outer}{bracket}{inner}".replace(" ", "").casefold()
    return unicodedata.normalize("NFC", key)


def roman_value(numeral: str) -> int:
    """Return the value of a Roman numeral in capitals."""
    values = [_ROMAN[letter] for letter in numeral]
    following = [*values[1:], 0]
    return sum(
        -value if value < after else value
        for value, after in zip(values, following, strict=True)
    )
