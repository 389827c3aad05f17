"""Dates in the ways of five languages, brought to one form: `2026-11-04`. Pure.

A date without its year is `--11-04`, a month of a year `2026-11`, a month `--11`.
Dates in digits are read with the day first, unless only the second number can be one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from retrieval.verification.numbers import words_in
from retrieval.verification.text import without
from retrieval.verification.vocabulary import LONELY_NO_MONTHS, MONTHS, all_of

_TO = r"\s?(?:[-–—]|to|and|through|do|i|oraz|până la|și|și pe|по|до|и|đến|và)\s?"
_DAY = r"(?P<day>[0-3]?\d)"
_ORDINAL = r"(?:st|nd|rd|th|\.|-?(?:го|е|ое|lea))?"
_YEAR = r"(?P<year>[12]\d{3})(?!\d)"
_WORD = r"(?P<month>[^\W\d_]{3,12})(?![^\W_])"

_ISO = re.compile(
    r"(?<![\w./-])(?P<year>[12]\d{3})(?P<gap>[-/.])(?P<month>[01]\d)(?P=gap)"
    r"(?P<day>[0-3]\d)(?!\d|[-/.]\d)"
)
_NUMERIC = re.compile(
    r"(?<![\w./-])(?P<day>[0-3]?\d)(?P<gap>[-/.])(?P<month>[0-3]?\d)(?P=gap)"
    r"(?P<year>[12]\d{3})(?!\d|[-/.]\d)"
)
_DAY_MONTH = re.compile(
    rf"(?<![\w.,/:-])(?:(?P<first>[0-3]?\d){_ORDINAL}{_TO})?{_DAY}{_ORDINAL}"
    rf"[\s-]{{1,3}}(?:day\s)?(?:of\s|de\s)?{_WORD}"
    rf"(?:(?:\.?,?\s(?:de\s)?|-){_YEAR})?",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"(?<![^\W_]){_WORD}\.?\s(?P<day>[0-3]?\d)(?:st|nd|rd|th)?(?![\w%]|[.,:/-]\d)"
    rf"(?:{_TO}(?P<last>[0-3]?\d)(?!\w))?(?:,?\s{_YEAR})?",
    re.IGNORECASE,
)
_ROMAN = re.compile(
    rf"(?<![\w.,/:-]){_DAY}[. ](?P<month>I{{1,3}}|IV|VI{{0,3}}|IX|XI{{0,2}})[. ]{_YEAR}"
)
_VIETNAMESE = re.compile(
    r"(?<![^\W_])(?:(?:ngày\s)?(?P<day>[0-3]?\d)(?:\s|\s?-\s?))?tháng"
    r"\s(?P<month>[01]?\d(?!\w)|(?:mười\s)?[^\W\d_]{2,5}(?![^\W_]))"
    rf"(?:(?:\snăm|,|\s?/|\s?-)\s?{_YEAR})?",
    re.IGNORECASE,
)
_MONTH_YEAR = re.compile(
    rf"(?<![^\W_]){_WORD}\.?,?\s(?:of\s|de\s|din\s)?{_YEAR}", re.IGNORECASE
)
_DAY_MONTH_DIGITS = re.compile(
    r"(?<![^\W_])ngày\s(?P<day>[0-3]?\d)[/-](?P<month>[01]?\d)(?!\w|[-/.,]\d)",
    re.IGNORECASE,
)
_DIGITS_YEAR = re.compile(
    r"(?<![\w./-])(?P<month>(?:0?[1-9]|1[0-2])(?=/)|(?:0[1-9]|1[0-2])(?=\.))[/.]"
    r"(?P<year>(?:19|20|21)\d\d)(?!\w|[-/.,]\w)"
)
_MONTH_ALONE = re.compile(rf"(?<![^\W_]){_WORD}")

_ROMAN_MONTHS = dict(
    zip(
        ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"],
        range(1, 13),
        strict=True,
    )
)
_VIETNAMESE_MONTHS = {"giêng": 1, "một": 1, "tư": 4, "chạp": 12}
_ENGLISH = all_of(
    "january jan february feb march mar april apr may june jun july jul august aug"
    " september sept sep october oct november nov december dec"
)
# Month names that are quite other words where no year follows.
_ALSO_VERBS = frozenset({"may", "march", "mar", "mai"})


@dataclass(frozen=True, slots=True)
class Date:
    """A date as it stands. `values` are several for a range, the first to the last."""

    start: int
    end: int
    values: tuple[str, ...]


def dates_in(text: str) -> list[Date]:
    """Return the dates of a text, in order."""
    found: list[Date] = []
    for find in _FINDERS:
        one = list(find(text))
        text = without(text, [(date.start, date.end) for date in one])
        found += one
    return sorted(found, key=lambda date: date.start)


def wider(value: str) -> Iterator[str]:
    """Yield what a date says besides: 4 November 2026 is in November 2026."""
    year, month, day = value[:-6], value[-6:-3], value[-3:]
    if value.startswith("--"):
        year, month, day = "-", value[1:4], value[4:]
    elif value.count("-") == 1:
        year, month, day = value[:4], value[4:], ""
    if day:
        yield f"--{month[1:]}{day}"
        if year != "-":
            yield f"{year}{month}"
    if value != f"--{month[1:]}":
        yield f"--{month[1:]}"


def year_of(value: str) -> str:
    """Return a date's year, or ""."""
    return "" if value.startswith("--") else value[:4]


def _value(year: str | None, month: int, day: str | None) -> str:
    tail = f"-{month:02}" + (f"-{int(day):02}" if day else "")
    return f"{year}{tail}" if year else f"-{tail}"


def _in_digits(text: str) -> Iterator[Date]:
    for pattern in (_ISO, _NUMERIC, _DAY_MONTH_DIGITS):
        for match in pattern.finditer(text):
            day, month = int(match["day"]), int(match["month"])
            if month > 12 >= day and pattern is _NUMERIC:
                day, month = month, day
            if 0 < month < 13 and 0 < day < 32:
                value = _value(match.groupdict().get("year"), month, str(day))
                yield Date(match.start(), match.end(), (value,))


def _with_words(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Date]]:
    """Return what finds dates whose month is a word."""

    def find(text: str) -> Iterator[Date]:
        at = 0
        while match := pattern.search(text, at):
            month = _month(match["month"])
            if not month or not _is_meant(pattern, match):
                # The next may begin within what was taken for this one.
                at = match.start() + 1
                continue
            groups = match.groupdict()
            days = [groups.get("first"), groups.get("day"), groups.get("last")]
            given = [day for day in days if day] or [None]
            if all(day is None or 0 < int(day) < 32 for day in given):
                values = (_value(groups.get("year"), month, day) for day in given)
                yield Date(match.start(), match.end(), tuple(values))
            at = match.end()

    return find


def _month(word: str) -> int:
    return int(MONTHS.name_of(word.lower()) or 0)


def _is_meant(pattern: re.Pattern[str], match: re.Match[str]) -> bool:
    """Tell a month from a word that is one only in another place or case."""
    word = match["month"]
    if pattern is _MONTH_DAY:
        return word.lower() in _ENGLISH and word[0].isupper()
    if pattern is _MONTH_ALONE:
        is_other = word.lower() in LONELY_NO_MONTHS
        return not is_other and (word[0].isupper() or word.lower() not in _ENGLISH)
    if pattern is _DAY_MONTH and word.lower() in _ALSO_VERBS and not match["year"]:
        # "Article 5 may apply", "cele 5 mai mari".
        following = match.string[match.end() : match.end() + 2]
        return word[0].isupper() or (word == "mai" and not following[1:].isalpha())
    return True


def _roman(text: str) -> Iterator[Date]:
    for match in _ROMAN.finditer(text):
        value = _value(match["year"], _ROMAN_MONTHS[match["month"]], match["day"])
        yield Date(match.start(), match.end(), (value,))


def _vietnamese(text: str) -> Iterator[Date]:
    for match in _VIETNAMESE.finditer(text):
        month = _vietnamese_month(match["month"].lower())
        end = match.end()
        if month:
            yield Date(
                match.start(), end, (_value(match["year"], month, match["day"]),)
            )


def _vietnamese_month(written: str) -> int:
    if written.isdecimal():
        return int(written) if 0 < int(written) < 13 else 0
    if written in _VIETNAMESE_MONTHS:
        return _VIETNAMESE_MONTHS[written]
    number = next(words_in(written), None)
    whole = number is not None and (number.start, number.end) == (0, len(written))
    value = int(number.value) if number is not None and whole else 0
    return value if 0 < value < 13 else 0


def _digits_year(text: str) -> Iterator[Date]:
    for match in _DIGITS_YEAR.finditer(text):
        value = _value(match["year"], int(match["month"]), None)
        yield Date(match.start(), match.end(), (value,))


_FINDERS: tuple[Callable[[str], Iterator[Date]], ...] = (
    _in_digits,
    _roman,
    _vietnamese,
    _with_words(_DAY_MONTH),
    _with_words(_MONTH_DAY),
    _with_words(_MONTH_YEAR),
    _digits_year,
    _with_words(_MONTH_ALONE),
)
