"""Numbers in digits and in words, brought to one form: `1.000,50` is `1000.5`. Pure.

Numbers are compared as texts of digits, so that no length and no rounding matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.verification.numerals import NUMBER_JOINERS, NUMBER_WORDS, NumberWord
from retrieval.verification.vocabulary import CURRENCY_CODES

# Thousands are parted by a comma, a full stop, an apostrophe or a space of any width;
# anything else of digits, commas and full stops is read whole and judged afterwards.
_DIGITS = re.compile(
    rf"(?:(?<![^\W_])|(?<={'|'.join(sorted(CURRENCY_CODES))}))(?P<sign>(?<![^\s(\[|])[-+](?=\d))?"
    r"(?P<number>\d{1,3}(?P<gap>['’ \u00a0\u2009\u202f])\d{3}(?:(?P=gap)\d{3})*"
    r"(?:[.,]\d{1,9})?(?![.,]?\d)|\d+(?:[.,]\d+)*)"
)
_CLOCK = re.compile(
    r"(?<![\w.,:/-])(?P<hour>\d{1,2})[:h](?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
    r"(?![\w:]|[.,]\d)(?:\s?(?P<half>[ap]\.?m\b))?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
# Between the words of one number stands one space, one line break or one hyphen.
_BETWEEN_WORDS = re.compile(r"(?:[ \u00a0]|[ \t]?\n[ \t]*|-)")
_ONE = re.compile(r"(?<![^\W_])(?:a|o|un)[ \u00a0]\Z", re.IGNORECASE)
_LEAST_BEFORE_DE = 20
_BEFORE_SCALES = frozenset({"de", "o", "un"})


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it stands, and its value as plain digits with a point.

    `parts` are the numbers that it may be instead, where spaces part its groups.
    `is_bound` tells that its word counts only before a unit.
    """

    start: int
    end: int
    value: str
    in_words: bool = False
    is_bound: bool = False
    parts: tuple[str, ...] = ()


def digits_in(text: str) -> Iterator[Number]:
    """Yield the numbers that are written in digits."""
    for match in _DIGITS.finditer(text):
        written = match["number"]
        sign = "-" if match["sign"] == "-" else ""
        parts: tuple[str, ...] = ()
        if match["gap"] == " ":
            parts = tuple(plain(part) for part in written.split(" "))
        yield Number(match.start(), match.end(), sign + plain(written), parts=parts)


def clocks_in(text: str) -> Iterator[Number]:
    """Yield times of the day, as `14:30` or, with seconds, `14:30:05`."""
    for match in _CLOCK.finditer(text):
        hour = int(match["hour"])
        if match["half"]:
            hour = hour % 12 + (12 if match["half"][0] in "pP" else 0)
        value = ":".join(
            part for part in (f"{hour:02}", match["minute"], match["second"]) if part
        )
        yield Number(match.start(), match.end(), value)


def plain(written: str) -> str:
    """Return the value of a number in digits: `1.000,00` and `1 000` are `1000`.

    What is no one number (`4.3.2`) stays as it is. A single group of three digits after
    a comma or full stop counts as thousands.
    """
    digits = re.sub(r"['’\s]", "", written)
    commas, stops = digits.count(","), digits.count(".")
    if not commas + stops:
        return _trimmed(digits, "")
    mark = "," if digits.rfind(",") > digits.rfind(".") else "."
    other = "." if mark == "," else ","
    if digits.count(mark) == 1:
        whole, _, part = digits.partition(mark)
        is_thousands = len(part) == 3 and 0 < len(whole) < 4 and whole[0] != "0"
        if commas and stops:
            groups = whole.split(other)
            return _trimmed("".join(groups), part) if _grouped(groups) else digits
        if is_thousands and digits == written:
            return _trimmed(whole + part, "")
        return _trimmed(whole, part)
    groups = digits.split(mark)
    if (commas and stops) or not _grouped(groups):
        return digits
    return _trimmed("".join(groups), "")


def scaled(value: str, scale: int) -> str:
    """Return a value times a power of ten."""
    sign, digits = ("-", value[1:]) if value.startswith("-") else ("", value)
    whole, _, part = digits.partition(".")
    if not whole.isdecimal() or not (part or "0").isdecimal():
        return value
    shift = len(str(scale)) - 1
    part = part.ljust(shift, "0")
    return sign + _trimmed(whole + part[:shift], part[shift:])


def _trimmed(whole: str, part: str) -> str:
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    return f"{whole}.{part}" if part else whole


def _grouped(groups: list[str]) -> bool:
    return 0 < len(groups[0]) < 4 and all(len(group) == 3 for group in groups[1:])


# --- Words ----------------------------------------------------------------------


class _Sum:
    """The value of number words, one after the other."""

    def __init__(self) -> None:
        self.count = 0
        self.begins_with_scale = False
        self.total = 0
        self.current = 0
        self._scale = 0
        self._word: NumberWord | None = None

    def take(self, word: NumberWord) -> bool:
        """Add a word; False where it does not go on with the number."""
        taken = self._multiply(word.value) if word.scale else self._add(word.value)
        if taken:
            self.begins_with_scale = self.begins_with_scale or (
                not self.count and word.scale
            )
            self.count += 1
            self._word = word
        return taken

    def joins(self, joiner: str) -> bool:
        """Tell whether a number may go on after an "and", a Romanian "de" or "o"."""
        if joiner == "de":
            return self.value >= _LEAST_BEFORE_DE
        if joiner in {"o", "un"}:
            return self.current == 0 < self.total
        if joiner in {"and", "linh", "lẻ"}:
            return self.current % 100 == 0 and self.current + self.total > 0
        return self.current % 10 == 0 and self.current % 100 > 10

    @property
    def value(self) -> int:
        """The number so far."""
        return self.total + self.current

    @property
    def is_bound(self) -> bool:
        """Whether it is one word that counts only before a unit."""
        word = self._word
        return self.count == 1 and word is not None and (word.is_bound or word.scale)

    def _add(self, value: int) -> bool:
        if not self.count:
            fits = True
        elif value == 0:
            fits = self.current == 0
        elif value < 10:
            is_ten = self._word is not None and self._word.value == 10
            fits = self.current % 10 == 0 and (self.current % 100 != 10 or is_ten)
        elif value < 100:
            fits = self.current % 100 == 0
        else:
            fits = self.current == 0
        if fits:
            self.current += value
        return fits

    def _multiply(self, scale: int) -> bool:
        # "Không trăm": no hundreds.
        factor = 0 if self._word is not None and self._word.value == 0 else 1
        if scale == 10:
            last = self.current % 10
            self.current += 9 * last
            return last > 1
        if scale == 100:
            if self.current >= scale:
                return False
            self.current = (self.current or factor) * scale
            return True
        if self._scale and scale >= self._scale:
            return False
        self.total += (self.current or factor) * scale
        self.current = 0
        self._scale = scale
        return True


def words_in(text: str) -> Iterator[Number]:
    """Yield the numbers that are written in words."""
    run, start, end = _Sum(), 0, 0
    joiner, held = "", 0
    for match in _WORD.finditer(text):
        word = NUMBER_WORDS.get(match[0].lower())
        follows = bool(run.count) and _follows(text, end, match.start())
        is_plain = word is not None and _stands_alone(text, match)
        # Some lead to hundreds and thousands alone: "douăzeci de mii o sută".
        is_led = word is not None and (word.scale or joiner not in _BEFORE_SCALES)
        if word is not None and is_plain and follows and is_led and run.take(word):
            end, joiner = match.end(), ""
            continue
        if follows and not joiner and _is_joiner(run, match[0].lower()):
            # Held in `joiner` until the next word shows whether the number goes on.
            joiner, held, end = match[0], end, match.end()
            continue
        if run.count:
            yield _number(text, run, start, held if joiner else end)
        run, joiner = _Sum(), ""
        if word is not None and is_plain and run.take(word):
            start, end = match.span()
    if run.count:
        yield _number(text, run, start, held if joiner else end)


def _number(text: str, run: _Sum, start: int, end: int) -> Number:
    is_bound = run.is_bound
    if run.begins_with_scale and (one := _ONE.search(text[max(0, start - 5) : start])):
        # "A hundred", "o sută".
        start, is_bound = start - len(one[0]), False
    return Number(start, end, str(run.value), in_words=True, is_bound=is_bound)


def _is_joiner(run: _Sum, word: str) -> bool:
    return word in NUMBER_JOINERS and run.joins(word)


def _follows(text: str, end: int, start: int) -> bool:
    return _BETWEEN_WORDS.fullmatch(text, end, start) is not None


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    """Tell a word from a part of a name with digits, such as `five9`."""
    before, after = (
        text[match.start() - 1 : match.start()],
        text[match.end() : match.end() + 1],
    )
    return not (before.isdigit() or before == "_" or after.isdigit() or after == "_")
