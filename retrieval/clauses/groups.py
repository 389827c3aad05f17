"""Labels and their numbers, as a text holds them: "khoản 1, 2"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from knowledge.structure.numbers import Unit, roman_value
from retrieval.clauses.vocabulary import AND, CONTAINERS, UNIT_PATTERNS, WORDS

# Abbreviations that are other words with an accent ("cấp 1" is a level in Vietnamese).
_PLAIN = frozenset({"cap", "art", "alin", "ust", "lit", "pkt", "pct", "sec", "para"})
# After these a lone letter is a number, and no word of the sentence.
_LETTERED = re.compile(r"annex|appendix|lit|liter\w{1,2}|diem|пп|подпункт\w{0,3}|pkt")
# Vietnamese labels whose letters, without their tones, are other words too.
_TONED = {"muc": "mục", "diem": "điểm", "phan": "phần", "dieu": "điều"}
# So many numbers of a text are spelt out between the ends of ranges.
_MOST_SPELT_OUT = 1000
_RAISED = "¹²³⁴⁵⁶⁷⁸⁹"
_NUMBER = (
    r"(?:\((?:\d{1,3}|[^\W\d_]|[ivx]{2,5})\)"
    rf"|(?:[a-z]\.?)?\d{{1,4}}(?:\^\d{{1,2}}|[{_RAISED}])?(?:\.(?:\d{{1,3}}|[^\W\d_](?!\w)))*"
    rf"[a-z]?|[ivxlcdm]{{1,8}}(?:\.(?:\d{{1,3}}|[^\W\d_](?!\w)))*|[^\W\d_])(?![^\W(])"
    r"(?:\s?\((?:\d{1,3}|[^\W\d_]|[ivx]{2,5})\))*"
)
_TO = r"to|through|do|pana la|la|по|до|den|[-–—]"
_BETWEEN = rf"\s*(?:,\s*(?:(?:{AND})\s+)?|\s(?:{AND})\s+|\s?(?:{_TO})\s?)\s*"
_LABEL = "|".join(words for _unit, words in WORDS)
_GROUP = re.compile(
    rf"(?:(?<!\w)(?P<label>{_LABEL})(?!\w)\.?\s{{0,3}}"
    rf"(?:(?:nr|no|num|№|so|number)\.?\s{{0,2}})?)"
    rf"(?P<first>{_NUMBER})(?P<more>(?:{_BETWEEN}(?:{_NUMBER})(?!\w))*)"
)
_ITEM = re.compile(rf"(?P<between>{_BETWEEN})(?P<number>{_NUMBER})")


@dataclass(frozen=True, slots=True)
class Group:
    """A label and its numbers, as they stand: "khoản 1, 2"."""

    unit: Unit
    label: str
    numbers: tuple[str, ...]
    start: int
    end: int


def groups_in(query: str, folded: str) -> Iterator[Group]:
    """Yield the labels of a text that have numbers, in order."""
    at, count = 0, 0
    while match := _GROUP.search(folded, at):
        unit = next(u for u, words in UNIT_PATTERNS if words.fullmatch(match["label"]))
        spells_out = count < _MOST_SPELT_OUT
        numbers = list(_numbers(query, match, unit, spells_out=spells_out))
        count += len(numbers)
        if not numbers or not _is_label(query, match):
            at = match.end("label")
            continue
        end = numbers[-1][1]
        yield Group(
            unit=unit,
            label=query[match.start() : match.start("first")].strip(),
            numbers=tuple(number for number, _end in numbers),
            start=match.start(),
            end=end,
        )
        at = end


def _is_label(query: str, match: re.Match[str]) -> bool:
    """Tell a label from a word that only looks like one when it is folded."""
    label, first = match["label"], match["first"]
    written = query[match.start("label") : match.end("label")].lower()
    if written != label and (label in _PLAIN or written != _TONED.get(label, written)):
        return False
    is_lone = len(first) == 1 and query[match.start("first")].islower()
    is_closed = query[match.end("first") : match.end("first") + 1] == ")"
    return not is_lone or is_closed or _LETTERED.fullmatch(label) is not None


def _numbers(
    query: str, match: re.Match[str], unit: Unit, *, spells_out: bool
) -> Iterator[tuple[str, int]]:
    """Yield the numbers of a label as they are written, with their ends.

    Those between the ends of a range come too where `spells_out` says so.
    """
    first = query[match.start("first") : match.end("first")]
    if not _is_number(first, unit):
        return
    yield first, match.end("first")
    at, last = match.end("first"), first
    folded = match.string
    while at < match.end("more") and (item := _ITEM.match(folded, at)):
        number = query[item.start("number") : item.end("number")]
        plain = re.fullmatch(r"[\d.]+[a-z]?|[IVX]+|\(?\w\)?", number)
        if not _is_number(number, unit) or (not plain and not number[0].isdecimal()):
            return
        several = _up_to(last, number, item["between"]) if spells_out else [number]
        for one in several:
            yield one, item.end()
        at, last = item.end(), number


def _up_to(first: str, last: str, between: str) -> Iterator[str]:
    """Yield the numbers after the first of a range, or the one of a list."""
    is_range = re.fullmatch(rf"\s*(?:{_TO})\s*", between) is not None
    if is_range and first.isdecimal() and last.isdecimal():
        low, high = int(first), int(last)
        if low < high:
            yield from (str(n) for n in range(low + 1, min(high, low + 60) + 1))
            return
    yield last


def _is_number(number: str, unit: Unit) -> bool:
    """Tell whether what follows a label is a number of it, and no word."""
    outer = number.partition("(")[0].strip() or number.strip("()")
    head = outer.partition(".")[0]
    is_prefix = head.isalpha() and len(head) == 1 and outer[1:2] == "."
    if not head.isalpha() or number.startswith("(") or is_prefix:
        return True
    if set(head.upper()) <= set("IVXLCDM") and roman_value(head.upper()) < 200:
        if head.isupper():
            return True
        if unit in CONTAINERS and len(head) > 1 and set(head) <= set("ivx"):
            return True
    if len(head) > 1:
        return False
    if unit in {Unit.ANNEX, Unit.PART}:
        return head.isupper()
    return unit is Unit.POINT or (unit is Unit.PARAGRAPH and number.startswith("("))
