"""The names that a question asks about: `asyncio.TaskPool`, `AC04`, `PEP 8`. Pure.

A name is what its form alone shows to be one, in any script and language: dotted names,
snake_case, CamelCase, `__dunder__`, bracketed keys, codes, long words in capitals and
numbered references (S1-MIS-11). What the documents do not hold of them, they cannot say
anything about. Clause references, bank details and ordinary words are none (S1-MIS-12).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from knowledge.codes import find_codes
from knowledge.sanitizing import strip_invisible
from knowledge.scrubbing import ACCOUNT, BIC, CARD, IBAN, scrub
from knowledge.terms import FUNCTION_WORDS
from retrieval.clauses.finding import without_references

MOST_NAMES = 10
# Shorter words in capitals are acronyms, which texts also write out.
LEAST_CAPITALS = 8
# In a question of fewer words capitals are how a name is written.
LEAST_WORDS = 3

_BLANK = "\x00"
_ADDRESS = re.compile(r"(?:https?|ftp)://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+")
_BRACKETED = re.compile(
    r"(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)*\[(?P<quote>[\"'“”„’‘]?)\w[\w.-]*[\"'“”’‘]?\]"
)
_IDENTIFIER = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_WORD = re.compile(r"[^\W\d_]{2,}")
_DUNDER = re.compile(r"__\w+__")
_SNAKE = re.compile(r"_*[^\W_]+(?:_+[^\W_]+)+_*")
_NUMBERED = re.compile(r"([^\W\d_]+)[\s-]0*([1-9]\d*)")
_RUN = re.compile(r"[^\W\d_]+|\d+")
_BRACKETS = frozenset("[]")
_OPENING = r"[\s\[\]\"'“”„’‘]{1,4}"
# What stands between the parts of a name; between two numbers there has to be something.
_SEPARATOR = r"[\s._/\u2010-\u2015-]{1,3}"
_SEPARATOR_OR_NOTHING = r"[\s._/\u2010-\u2015-]{0,3}"


@dataclass(frozen=True, slots=True)
class Name:
    """One name as the question writes it, and what matches it in a folded text."""

    written: str
    pattern: re.Pattern[str]

    def stands_in(self, folded: str) -> bool:
        """Tell whether a text that `fold` has been applied to holds the name."""
        if self.pattern.search(folded) is not None:
            return True
        numbered = _NUMBERED.fullmatch(fold(self.written))
        # In a table the word is the head of a column, and its number a cell below.
        return numbered is not None and set(numbered.groups()) <= _cells(folded)


def find_names(question: str) -> tuple[Name, ...]:
    """Return the names that a question asks about, in its order, ten at most."""
    readable = unicodedata.normalize("NFC", strip_invisible(question))
    is_shouted = readable.isupper() and len(_WORD.findall(readable)) >= LEAST_WORDS
    text = _ADDRESS.sub(_BLANK, without_references(without_accounts(readable)))
    found = sorted(_candidates(text, is_shouted=is_shouted))
    names: dict[str, Name] = {}
    taken = -1
    for start, minus_length, written in found:
        # Of names that begin within another one, the longer counts.
        if start < taken:
            continue
        taken = start - minus_length
        name = Name(written, _pattern(written))
        names.setdefault(name.pattern.pattern, name)
    return tuple(names.values())[:MOST_NAMES]


def missing_names(names: Iterable[Name], texts: Iterable[str]) -> tuple[Name, ...]:
    """Return the names that none of the texts holds (S1-MIS-13)."""
    folded = [fold(text) for text in texts]
    return tuple(
        name for name in names if not any(name.stands_in(text) for text in folded)
    )


def fold(text: str) -> str:
    """Return a text as names are looked for in it."""
    return unicodedata.normalize("NFC", strip_invisible(text)).casefold()


def without_accounts(question: str) -> str:
    """Return a question without its bank details, which are no names."""
    scrubbed = scrub(question)
    for mark in (IBAN, BIC, CARD, ACCOUNT):
        scrubbed = scrubbed.replace(mark, _BLANK)
    return scrubbed


def _cells(folded: str) -> set[str]:
    """Return what stands alone in a cell of a table's rows."""
    return {
        cell.strip(" *_`").lstrip("0")
        for line in folded.split("\n")
        if "|" in line
        for cell in line.split("|")
    }


def _candidates(text: str, *, is_shouted: bool) -> Iterator[tuple[int, int, str]]:
    """Yield (start, minus the length, name) of all that has the form of a name."""
    for match in _BRACKETED.finditer(text):
        yield match.start(), -len(match.group()), match.group()
    for match in _IDENTIFIER.finditer(text):
        word = match.group()
        if _is_name(word, is_shouted=is_shouted):
            yield match.start(), -len(word), word
    at = 0
    for code in find_codes(text):
        # A code is given without invisible marks and with plain hyphens.
        place = _code_pattern(code).search(text, at)
        if place is None or (is_shouted and " " in code):
            continue
        at = place.end()
        yield place.start(), -len(place.group()), code


def _is_name(word: str, *, is_shouted: bool) -> bool:
    """Tell whether a word, or several with full stops between, has a name's form."""
    if "." in word:
        parts = word.split(".")
        return (
            all(len(part) > 1 for part in parts)
            and parts[-1].casefold() not in FUNCTION_WORDS
        )
    if _DUNDER.fullmatch(word) or _SNAKE.fullmatch(word):
        return True
    if word.isupper():
        return not is_shouted and len(word) >= LEAST_CAPITALS
    return any(before.islower() and after.isupper() for before, after in pairwise(word))


def _code_pattern(code: str) -> re.Pattern[str]:
    """Return what finds a code where the question wrote it."""
    parts = (re.escape(part) for part in re.split(r"[-\s]", code))
    return re.compile(r"[\s\u00a0\u2010-\u2015\u2212\ufe63\uff0d-]".join(parts))


def _pattern(written: str) -> re.Pattern[str]:
    """Return what matches a name without case, spacing and leading noughts."""
    folded = fold(written)
    if _DUNDER.fullmatch(folded):
        return re.compile(rf"(?<!\w){re.escape(folded)}(?!\w)")
    parts: list[str] = []
    before = ""
    for match in _RUN.finditer(folded):
        run, between = match.group(), folded[len(before) : match.start()]
        is_number = run.isdecimal()
        if parts and (set(between) & _BRACKETS):
            parts.append(_OPENING)
        elif parts:
            both = is_number and before[-1:].isdecimal()
            parts.append(_SEPARATOR if both else _SEPARATOR_OR_NOTHING)
        parts.append(f"0*{int(run)}" if is_number else re.escape(run))
        before = folded[: match.end()]
    end = r"(?!\d)" if parts[-1].startswith("0*") else r"(?!\w)"
    return re.compile(rf"(?<![^\W_]){''.join(parts)}{end}")
