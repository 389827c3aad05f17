"""What a number counts: days, euros, per cent, or a thing without a unit. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from retrieval.verification.numbers import Number
from retrieval.verification.numerals import SCALES
from retrieval.verification.vocabulary import (
    AFTER_DIGITS_ALONE,
    CURRENCY_CODES,
    CURRENCY_SIGNS,
    CURRENCY_WORDS,
    LETTER_UNITS,
    PERCENT,
    PLAIN_ADJECTIVES,
    UNITS,
    WORKING_AFTER,
    Words,
)

NUMBER, AMOUNT, PERCENTAGE = "number", "amount", "percentage"
WORKING_DAY = "working day"

# Between a number and its unit: spaces, one line break, or the hyphen of "30-day".
_GAP = re.compile(r"-(?=[^\W\d_])|[ \t\u00a0\u2009\u202f]{0,12}(?:\n[ \t>]{0,8})?")
_DE = re.compile(r"de[ \n\u00a0]")
_TOKEN = re.compile(r"[^\W\d_]+(?:[²³23](?![^\W_])|/[^\W\d_]+)?|°[CF]?|[%‰]")
_NEXT = re.compile(r"[ \n\u00a0-]([^\W\d_]+)")
_SIGNS = "|".join(
    re.escape(sign) for sign in sorted(CURRENCY_SIGNS, key=len, reverse=True)
)
_SIGN_AFTER = re.compile(rf"[ \u00a0\u202f]?(?:{_SIGNS})")
_BEFORE = re.compile(
    rf"(?:(?P<sign>{_SIGNS})|(?<![^\W_])(?P<code>[^\W\d_]{{2,4}}))[ \u00a0]?\Z"
)
_SHORT_SCALES = {"k": 1000, "K": 1000, "m": 10**6, "M": 10**6, "b": 10**9, "B": 10**9}
_FOUR_DIGITS = re.compile(r" \d{4}(?!\d)")
_BEFORE_LENGTH = 6
_MOST_WORDS = 3


class Measure(NamedTuple):
    """The kind and unit of a number, its factor, and where it ends and begins.

    `lead` counts the characters of a currency before the number.
    """

    kind: str
    unit: str
    scale: int
    end: int
    lead: int = 0


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    end: int


def measure_of(text: str, number: Number) -> Measure:
    """Return what is written beside a number: scale, currency, percentage or unit."""
    at = number.end
    if text[at : at + 1] == ")" and text[number.start - 1 : number.start] == "(":
        # The unit of "thirty (30) days" stands behind the bracket.
        at += 1
    before, lead = _currency_before(text, number.start)
    scale, at = _scale(text, at, is_amount=bool(before))
    if sign := _SIGN_AFTER.match(text, at):
        return Measure(AMOUNT, CURRENCY_SIGNS[sign[0].strip()], scale, sign.end())
    first = _next_word(text, at)
    found = _measure_word(text, number, at, first, scale) if first else None
    if found and (found.kind == PERCENTAGE or not before):
        return found
    if before:
        return Measure(AMOUNT, before, scale, found.end if found else at, lead)
    return Measure(NUMBER, "", scale, at)


def _scale(text: str, at: int, *, is_amount: bool) -> tuple[int, int]:
    """Return the factor that a word or letter after a number is, and where it ends."""
    first = _next_word(text, at)
    if first is not None and first.text.lower() in SCALES:
        is_short = first.text.islower() and text[first.end : first.end + 1] == "."
        return SCALES[first.text.lower()], first.end + is_short
    short = _SHORT_SCALES.get(text[at : at + 1]) if is_amount else None
    if short and not text[at + 1 : at + 2].isalnum():
        return short, at + 1
    return 1, at


def _measure_word(
    text: str, number: Number, at: int, first: _Word, scale: int
) -> Measure | None:
    """Return the measure that the words after a number are, or None."""
    words = _words_from(text, first)
    is_part = first.end - len(first.text) == number.end and first.text in "pр"
    if found := _longest(PERCENT, words):
        return Measure(PERCENTAGE, found[0], scale, found[1])
    if first.text in CURRENCY_CODES:
        return Measure(AMOUNT, first.text, scale, first.end)
    working = False
    adjective = PLAIN_ADJECTIVES.name_of(first.text.lower())
    if adjective and len(words) > 1:
        working, words = adjective == "working", words[1:]
    if (found := _longest(CURRENCY_WORDS, words)) and not is_part:
        return Measure(AMOUNT, found[0], scale, found[1])
    found = _unit(text, number, at, words)
    if found is None:
        return None
    unit, end = found
    if unit == "day" and not working:
        after = _longest(WORKING_AFTER, _words_after(text, end))
        working, end = (True, after[1]) if after else (False, end)
    return Measure(
        NUMBER, WORKING_DAY if working and unit == "day" else unit, scale, end
    )


def _unit(
    text: str, number: Number, at: int, words: Sequence[_Word]
) -> tuple[str, int] | None:
    """Return the unit that words begin with, and where it ends."""
    first = words[0]
    same_line = "\n" not in text[at : first.end]
    followed = text[first.end : first.end + 2]
    if first.text == "s" and at == number.end == first.end - 1 and _is_year(number):
        return "decade", first.end
    if unit := LETTER_UNITS.get(first.text):
        is_unit = (
            not number.in_words
            and same_line
            and not (first.text == "г" and _is_year(number))
        )
        is_unit = is_unit and (first.text in "гч" or not followed.startswith("."))
        return (unit, first.end) if is_unit else None
    lowered = first.text.lower()
    if lowered in AFTER_DIGITS_ALONE and (number.in_words or not same_line):
        return None
    if lowered == "an" and number.value != "1":
        return None
    if lowered == "năm" and _FOUR_DIGITS.match(text, first.end):
        # "Luật số 5 năm 2020" names a year.
        return None
    found = _longest(UNITS, words)
    is_year = found is not None and found[0] == "year" and _is_year(number)
    return None if is_year else found


def _is_year(number: Number) -> bool:
    """Tell the year of "2026 г." and "2026 rok" from a number of grams or years."""
    return len(number.value) == 4 and "1000" <= number.value < "2200"


def _currency_before(text: str, start: int) -> tuple[str, int]:
    """Return the currency before a number and how many characters it takes."""
    match = _BEFORE.search(text[max(0, start - _BEFORE_LENGTH) : start])
    if match is None:
        return "", 0
    found = CURRENCY_SIGNS[match["sign"]] if match["sign"] else match["code"]
    is_currency = match["sign"] is not None or found in CURRENCY_CODES
    return (found, len(match[0])) if is_currency else ("", 0)


def _next_word(text: str, at: int) -> _Word | None:
    """Return the word after a number, over the Romanian "de"."""
    gap = _GAP.match(text, at)
    at = gap.end() if gap else at
    if de := _DE.match(text, at):
        at = de.end()
    match = _TOKEN.match(text, at)
    return _Word(match[0], match.end()) if match else None


def _words_from(text: str, first: _Word) -> list[_Word]:
    words = [first]
    while len(words) < _MOST_WORDS and (match := _NEXT.match(text, words[-1].end)):
        words.append(_Word(match[1], match.end()))
    return words


def _words_after(text: str, end: int) -> list[_Word]:
    match = _NEXT.match(text, end)
    return _words_from(text, _Word(match[1], match.end())) if match else []


def _longest(names: Words, words: Sequence[_Word]) -> tuple[str, int] | None:
    """Return the name that the longest beginning of words has, and where it ends."""
    for count in range(len(words), 0, -1):
        name = names.name_of(" ".join(word.text.lower() for word in words[:count]))
        if name:
            return name, words[count - 1].end
    return None


def unit_of_word(word: str) -> str:
    """Return the unit that a word by itself names, or ""."""
    return (
        UNITS.name_of(word)
        or PERCENT.name_of(word)
        or CURRENCY_WORDS.name_of(word)
        or (word.upper() if word.upper() in CURRENCY_CODES else "")
    )
