"""The facts of a text: numbers, dates, amounts, percentages, codes and clauses. Pure.

A fact has readings: what it says in normal form. `30 days` says (number, 30, day). A
draft claims its facts; a passage holds more than it claims, for `4 November 2026` is
also a day in 2026. Everything is read once from left to right, and what was read is
taken out, so that the year of a date is not a number besides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from knowledge.terms import FUNCTION_WORDS
from retrieval.verification.dates import dates_in, wider, year_of
from retrieval.verification.measures import Measure, measure_of
from retrieval.verification.numbers import (
    Number,
    clocks_in,
    digits_in,
    scaled,
    words_in,
)
from retrieval.verification.references import (
    Placed,
    bare_clauses_in,
    clauses_in,
    codes_in,
    ibans_in,
    outer_parts,
)
from retrieval.verification.text import Readable, readable, without
from retrieval.verification.vocabulary import CURRENCY_CODES, YEAR_WORDS


class FactKind(StrEnum):
    """What a fact is."""

    NUMBER = "number"
    DATE = "date"
    AMOUNT = "amount"
    PERCENTAGE = "percentage"
    CODE = "code"
    IBAN = "iban"
    CLAUSE = "clause"


class Reading(NamedTuple):
    """One normal form of a fact. `unit` is empty where there is none."""

    kind: FactKind
    value: str
    unit: str = ""


_LONGEST_TEXT = 500
# Units of readings that say less than a unit: any at all; that of a table's column.
ANY = "*"
COLUMN = "|"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as it stands, with offsets into the text that was given.

    The first reading is its normal form. A draft's fact is there where a passage holds
    one of its `readings`. `also` is what a passage says by it besides. A fact that is
    not `claimed` is none for a draft: a word that may be an ordinary one.
    """

    text: str
    start: int
    end: int
    readings: tuple[Reading, ...]
    also: tuple[Reading, ...] = ()
    claimed: bool = True

    @property
    def kind(self) -> FactKind:
        """What it is."""
        return self.readings[0].kind

    @property
    def value(self) -> str:
        """Its value in normal form: `1000.5`, `2026-11-04`, `pacs.008`, `6(1)(b)`."""
        return self.readings[0].value

    @property
    def unit(self) -> str:
        """What it counts: `day`, `EUR`, `%`, `article`; empty where that is open."""
        return self.readings[0].unit


# Addresses are no facts, and their digits none either.
_ADDRESS = re.compile(r"(?:https?|ftp)://\S+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]+")
# What may stand between numbers that share a unit: "30 or 60 days", "thirty (30) days".
_SHARING = re.compile(
    r"\s{0,3}(?:[-–—,;/(]|\)\s{0,2}(?:[-–—,;/]|to|and|or|do|i|lub|și|sau|la|до|и|или"
    r"|đến|và|hoặc)?|,?\s(?:to|and|or|through|do|i|lub|oraz|albo|și|si|sau|la|până la"
    r"|до|и|или|либо|по|đến|tới|và|hoặc|hay)(?=\s))\s{0,3}"
)
_IN_CELL = re.compile(r"[ \t*]*(?:[|\t]|\n|\Z)")
_CELL_BEFORE = re.compile(r"(?:[|\t\n]|\A)[ *]*\Z")
_CELL_MARGIN = 8
_NEXT_WORD = re.compile(r"[\s\u00a0-]{0,3}([^\W\d_]+)")
_POLISH = re.compile("[ąęłńśźż]")
_MARKED_YEAR = re.compile(r"\s?(?:r|г)\.|\s(?:roku|rok|года|году|год)(?!\w)")


def facts_in(text: str, language: str = "") -> tuple[Fact, ...]:
    """Return what a text claims, in order. `language` is a code, empty if not known."""
    return tuple(fact for fact in read_facts(text, language) if fact.claimed)


def read_facts(text: str, language: str = "") -> list[Fact]:
    """Return all facts of a text in order, those that it does not claim included."""
    given = readable(text)
    found: list[Fact] = []
    rest = without(
        given.text, [match.span() for match in _ADDRESS.finditer(given.text)]
    )
    for read in (_ibans, _dates, _clocks, _clauses, _codes):
        facts = sorted(read(rest), key=lambda fact: (fact.start, fact.end))
        found += facts
        rest = without(rest, [(fact.start, fact.end) for fact in facts])
    is_polish = language == "pl" or (not language and bool(_POLISH.search(rest)))
    found += _numbers(rest, is_polish=is_polish)
    found.sort(key=lambda fact: (fact.start, fact.end))
    return [_placed(fact, given, text) for fact in found]


def _placed(fact: Fact, given: Readable, text: str) -> Fact:
    start, end = given.span(fact.start, fact.end)
    # A list of clauses may be very long, and each of them stands in all of it.
    written = text[start : min(end, start + _LONGEST_TEXT)]
    return Fact(written, start, end, fact.readings, fact.also, claimed=fact.claimed)


def _fact(
    start: int, end: int, readings: Sequence[Reading], also: Sequence[Reading] = ()
) -> Fact:
    return Fact("", start, end, tuple(readings), tuple(also))


# --- Dates, clauses and codes ---------------------------------------------------


def _ibans(text: str) -> Iterator[Fact]:
    for one in ibans_in(text):
        yield _fact(one.start, one.end, [Reading(FactKind.IBAN, one.key)])


def _dates(text: str) -> Iterator[Fact]:
    for date in dates_in(text):
        for value in date.values:
            also = [Reading(FactKind.DATE, wide) for wide in wider(value)]
            if year := year_of(value):
                also += _any_number(year)
            yield _fact(date.start, date.end, [Reading(FactKind.DATE, value)], also)


def _any_number(value: str) -> list[Reading]:
    return [
        Reading(FactKind.NUMBER, value),
        Reading(FactKind.NUMBER, value, ANY),
    ]


def _clauses(text: str) -> Iterator[Fact]:
    taken = []
    for places in clauses_in(text):
        start, end = places[0].start, places[0].end
        if not _is_measured(text, start, end):
            taken.append((start, end))
            yield from map(_clause, places)
    for place in bare_clauses_in(without(text, taken)):
        yield _clause(place)


def _is_measured(text: str, start: int, end: int) -> bool:
    """Tell an amount after a word like a label: "point 5 %"."""
    last = Number(start, end, "0")
    return (
        end > start and text[end - 1].isdecimal() and bool(measure_of(text, last).unit)
    )


def _clause(place: Placed) -> Fact:
    """Return a clause; a passage that names 6(1)(b) names Article 6 as well."""
    key, units = place.key, place.units
    number = Reading(FactKind.CLAUSE, key)
    readings = [Reading(FactKind.CLAUSE, key, unit) for unit in units]
    # Without a label of its own it may be any clause of the passage; with one, it may
    # stand there as a bare number.
    readings += [number] if units else [number, Reading(FactKind.CLAUSE, key, ANY)]
    also = [
        Reading(FactKind.CLAUSE, outer, unit)
        for outer in outer_parts(key)
        for unit in (*units[:1], ANY)
    ]
    if not units:
        also.append(number)
    if "." in key:
        also += _any_number(key)
    return _fact(place.start, place.end, readings, also)


def _codes(text: str) -> Iterator[Fact]:
    for place in codes_in(text):
        if not _is_measure(text, place):
            yield _fact(place.start, place.end, [Reading(FactKind.CODE, place.key)])


def _is_measure(text: str, place: Placed) -> bool:
    """Tell a number with its unit (`10MB`, `EUR 5`) from a code of that shape."""
    code = text[place.start : place.end]
    if code[:3] in CURRENCY_CODES and not code[3:].strip(" \u00a0,.0123456789"):
        return True
    first = next(digits_in(code), None)
    if first is None or first.start:
        return False
    number = Number(place.start, place.start + first.end, first.value)
    measure = measure_of(text, number)
    return bool(measure.unit or measure.scale > 1) and measure.end >= place.end


def _clocks(text: str) -> Iterator[Fact]:
    for clock in clocks_in(text):
        reading = Reading(FactKind.NUMBER, clock.value)
        yield _fact(clock.start, clock.end, [reading])


# --- Numbers --------------------------------------------------------------------


def _numbers(text: str, *, is_polish: bool) -> Iterator[Fact]:
    numbers, measures = [], []
    reach = 0
    for one in sorted([*digits_in(text), *words_in(text)], key=lambda one: one.start):
        # "Million" in "5 million" is no number besides.
        if one.start >= reach:
            numbers.append(one)
            measures.append(measure_of(text, one))
            reach = measures[-1].end
    for number, (measure, is_shared) in zip(
        numbers, _shared(text, numbers, measures), strict=True
    ):
        fact = _quantity(text, number, measure, is_shared=is_shared)
        is_number = not number.is_bound or _is_marked(text, number, measure)
        if number.value == "10" and number.in_words:
            # "Ten" is English for 10 and Polish for "this".
            is_ten = text[number.start : number.end].lower() == "ten"
            is_number = (not is_polish) if is_ten else is_number
        yield fact if is_number else replace(fact, claimed=False)


def _is_marked(text: str, number: Number, measure: Measure) -> bool:
    """Tell a number from an ordinary word by what stands behind it."""
    if measure.unit and number.value != "0":
        return True
    behind = text[number.end : number.end + 3].lstrip()
    return behind[:1] == "(" and behind[1:2].isdecimal()


def _shared(
    text: str, numbers: Sequence[Number], measures: Sequence[Measure]
) -> list[tuple[Measure, bool]]:
    """Give numbers without a unit the one that they share with the next or last."""
    found = [(measure, False) for measure in measures]
    for index in range(len(numbers) - 2, -1, -1):
        one, after = numbers[index], numbers[index + 1]
        is_open = not found[index][0].unit and not one.is_bound and not _is_year(one)
        if is_open and _SHARING.fullmatch(text, one.end, after.start):
            found[index] = (found[index + 1][0], True)
    for index in range(1, len(numbers)):
        before, one = numbers[index - 1], numbers[index]
        is_amount = found[index - 1][0].kind == FactKind.AMOUNT
        is_open = is_amount and not found[index][0].unit and not one.is_bound
        if is_open and _SHARING.fullmatch(text, before.end, one.start):
            shared = found[index - 1][0]
            found[index] = (Measure(shared.kind, shared.unit, 1, shared.end), True)
    return found


def _is_year(number: Number) -> bool:
    return len(number.value) == 4 and "1900" <= number.value < "2100"


def _quantity(text: str, number: Number, measure: Measure, *, is_shared: bool) -> Fact:
    """Return a number with what it counts, and what else it may be."""
    end = number.end if is_shared else max(measure.end, number.end)
    value = number.value
    full = scaled(value, measure.scale)
    kind = FactKind(measure.kind)
    readings = [Reading(kind, full, measure.unit)]
    if is_shared:
        # Whether it does share the unit, the text alone does not tell for sure.
        readings += [
            Reading(kind, value, measure.unit),
            Reading(FactKind.NUMBER, value),
        ]
    also = [*readings[1:], Reading(FactKind.NUMBER, full, ANY)]
    if measure.scale > 1:
        also.append(Reading(FactKind.NUMBER, value, ANY))
    for part in number.parts:
        also += [Reading(FactKind.NUMBER, part), Reading(FactKind.NUMBER, part, ANY)]
    if not measure.unit:
        if _is_lone(text, number, measure.end):
            readings.append(Reading(FactKind.NUMBER, full, ANY))
        if "." in value:
            readings.append(Reading(FactKind.CLAUSE, value, ANY))
            also.append(Reading(FactKind.CLAUSE, value))
        if _is_cell(text, number):
            also.append(Reading(FactKind.NUMBER, full, COLUMN))
    is_bracketed = end > number.end and text[number.end] == ")"
    start = number.start - (0 if is_shared else measure.lead) - is_bracketed
    return _fact(start, end, readings, also)


def _is_lone(text: str, number: Number, end: int) -> bool:
    """Tell a number that counts no thing: nothing but a function word follows."""
    if _MARKED_YEAR.match(text, number.end):
        return True
    following = _NEXT_WORD.match(text, end)
    word = following[1].lower() if following else ""
    return not word or word in FUNCTION_WORDS or word in YEAR_WORDS


def _is_cell(text: str, number: Number) -> bool:
    """Tell a number that has a table's cell, or a line, for itself."""
    before = text[max(0, number.start - _CELL_MARGIN) : number.start]
    if number.start > _CELL_MARGIN and not re.search(r"[|\t\n]", before):
        return False
    is_first = _CELL_BEFORE.search(before) is not None
    return is_first and _IN_CELL.match(text, number.end) is not None
