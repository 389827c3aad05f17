"""Which words of a passage a person searched for. Pure."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from knowledge.terms import words

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


def mark_words(text: str, wanted: Collection[str]) -> Iterator[Piece]:
    """Cut a text into pieces; put together they are the text again.

    `wanted` are words or codes as the searcher wrote them. A compound such as `QT-07`
    is matched as a whole or by its parts.
    """
    goal = {folded(word) for word in wanted} - {""}
    at = 0
    for match in WORD.finditer(text):
        if folded(match[0]) in goal:
            spans = [match.span()]
        else:
            spans = [
                (match.start() + part.start(), match.start() + part.end())
                for part in PART.finditer(match[0])
                if folded(part[0]) in goal
            ]
        for start, end in spans:
            if start > at:
                yield Piece(text[at:start], matched=False)
            yield Piece(text[start:end], matched=True)
            at = end
    if at < len(text):
        yield Piece(text[at:], matched=False)
