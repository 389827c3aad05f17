"""Which words of a passage a person searched for. Pure."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from knowledge.terms import stems_of, words

# A letter's marks may follow it as characters of their own.
LETTERS = r"[\w\u0300-\u036f]+"
PART = re.compile(LETTERS)
WORD = re.compile(rf"{LETTERS}(?:[-.’'/]{LETTERS})*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that is matched as a whole, or not."""

    text: str
    matched: bool


def folded(word: str) -> str:
    """Return a word as the keyword branch compares it; tone marks stay."""
    return "".join(words(word))


def mark_words(
    text: str, wanted: Collection[str], *, stems: Collection[str] = ()
) -> Iterator[Piece]:
    """Cut a text into pieces; put together they are the text again.

    `wanted` are words or codes as the searcher wrote them. A compound such as `QT-07`
    is matched as a whole or by its parts. `stems` are lexemes of `stems_of`: words of
    such a stem are matched too.
    """
    goal = {folded(word) for word in wanted} - {""}
    roots = frozenset(stems)

    def is_wanted(word: str) -> bool:
        own = folded(word)
        return own in goal or not roots.isdisjoint(stems_of(own) if roots else ())

    at = 0
    for match in WORD.finditer(text):
        if is_wanted(match[0]):
            spans = [match.span()]
        else:
            spans = [
                (match.start() + part.start(), match.start() + part.end())
                for part in PART.finditer(match[0])
                if is_wanted(part[0])
            ]
        for start, end in spans:
            if start > at:
                yield Piece(text[at:start], matched=False)
            yield Piece(text[start:end], matched=True)
            at = end
    if at < len(text):
        yield Piece(text[at:], matched=False)
