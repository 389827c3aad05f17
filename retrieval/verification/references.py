"""Clause references and codes of a text, in the form in which they are compared. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from knowledge.codes import normalise_code, placed_codes
from knowledge.scrubbing import IBAN_LENGTHS
from knowledge.structure.numbers import Unit, number_key
from retrieval.clauses.finding import placed_references
from retrieval.clauses.forms import units_alike

# `7(2)(b)` and `4.3.2`: no amount and no version with a letter. A bare `7.2` is a
# number.
_BARE = re.compile(
    r"(?<![\w./,:-])(?P<number>\d{1,3}(?:\.\d{1,3}){2,5}(?:\(\w{1,4}\))*"
    r"|\d{1,3}(?:\.\d{1,3})?(?:\(\w{1,3}\))+)(?![\w%]|[.,/-]\d|\(\w{1,3}\))"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:\.\d{3})+")
# What opens a line in a numbered text: "7.2 Notice", "(b) the tenant", "3) items".
_OPENING = re.compile(
    r"^[ \t>#*|]{0,12}(?:\((?P<bracketed>[^\W_]{1,4})\)|(?P<dotted>\d{1,4}(?:\.\d{1,3})+"
    r"[a-z]?)[.)]?|(?P<number>\d{1,4}[a-z]?)(?:[.)]|(?=[ \t]+(?P<title>\w)))"
    r"|(?P<letter>[^\W\d_]|[ivx]{2,5})[.)])(?=\s)",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<!\w)(?=[^\W\d_])(?=\w{0,63}\d)(?=[^\W_]{0,63}_)\w{3,64}(?!\w)")
_OPENINGS = ("bracketed", "dotted", "number", "letter")
_IBAN = re.compile(
    r"(?<![^\W_])[A-Z]{2}[0-9]{2}(?:[ \u00a0-]?[A-Z0-9]){11,30}", re.IGNORECASE
)
_LEAST_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Placed:
    """A reference or code as it stands.

    `key` is its normal form; `units` the units that its number may count, none where it
    is bare.
    """

    start: int
    end: int
    key: str
    units: tuple[str, ...] = ()


def clauses_in(text: str) -> Iterator[tuple[Placed, ...]]:
    """Yield the labelled clauses, in order; one place may name several.

    What contains a clause ("Annex II" in "Annex II, Section 4") is one of them.
    """
    for start, end, references in placed_references(text):
        named = {}
        for one in references:
            for unit, number in (*one.within, (Unit(one.kind), one.number)):
                units = tuple(str(each) for each in units_alike(unit))
                named[unit, number] = Placed(start, end, number, units)
        yield tuple(named.values())


def bare_clauses_in(text: str) -> Iterator[Placed]:
    """Yield numbers that are clauses by their form: `4.3.2`, `7(2)(b)`."""
    for match in _BARE.finditer(text):
        if _THOUSANDS.fullmatch(match["number"]):
            continue
        yield Placed(match.start(), match.end(), number_key(match["number"]))


def openings_in(text: str) -> Iterator[Placed]:
    """Yield the numbers and letters that open the lines of a numbered text."""
    for match in _OPENING.finditer(text):
        if match["title"] and not match["title"].isupper():
            # A wrapped line that begins with a number: "30 days after …".
            continue
        group = next(name for name in _OPENINGS if match[name])
        yield Placed(*match.span(group), number_key(match[group]))


def outer_parts(key: str) -> list[str]:
    """Return a nested number and what contains it: `6(1)(b)`, `6(1)`, `6`."""
    parts = [key]
    while "(" in parts[-1]:
        parts.append(parts[-1].rpartition("(")[0])
    return parts


def codes_in(text: str) -> Iterator[Placed]:
    """Yield the codes of a text; of codes that a slash joins, each.

    A name with an underscore and a digit (`x86_64`) is one too: a digit more or less
    makes it another.
    """
    for match in _NAME.finditer(text):
        yield Placed(match.start(), match.end(), match[0].casefold())
    for start, end, code in placed_codes(text):
        parts = code.split("/")
        if len(parts) > 1 and all(_is_code(part) for part in parts):
            for part in parts:
                yield Placed(start, end, normalise_code(part))
        else:
            yield Placed(start, end, normalise_code(code))


def ibans_in(text: str) -> Iterator[Placed]:
    """Yield what has the form and length of an IBAN.

    The check digits are not looked at: a wrong one in a draft is to be found out.
    """
    at = 0
    while match := _IBAN.search(text, at):
        wanted = IBAN_LENGTHS.get(match[0][:2].upper(), 0)
        end, read = match.start(), 0
        while read < wanted and end < match.end():
            read += text[end].isalnum()
            end += 1
        key = re.sub(r"[^A-Z0-9]", "", text[match.start() : end].upper())
        is_whole = read == wanted > 0 and not text[end : end + 1].isalnum()
        if is_whole and sum(each.isdecimal() for each in key) >= _LEAST_DIGITS:
            yield Placed(match.start(), end, key)
            at = end
        else:
            # What was taken along may begin one.
            at = match.start() + 4


def _is_code(part: str) -> bool:
    return [code for _start, _end, code in placed_codes(part)] == [part]
