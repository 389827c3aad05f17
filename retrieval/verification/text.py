"""A text in the form in which facts are read, with the way back to the original. Pure.

Offsets of facts are those of the text as it was given, so that a receipt can mark them.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

# A base character with the marks on it; marks that nobody sees belong to no word.
_CHARACTER = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]"
    "|.[\u0300-\u036f\u0323\u1dc4-\u1dff]*",
    re.DOTALL,
)
_UNSEEN = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]"
)
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
# Marks of Markdown around a word or number are no part of it.
_EMPHASIS = re.compile(r"[*`]|(?<![^\W_])_+|_+(?![^\W_])")
# Folding case would make two characters of the first.
_PLAIN = str.maketrans({"İ": "I", "−": "-", "\u2010": "-", "\u2011": "-"})
# Stands for what was read already: neither a space nor a part of a word.
TAKEN = "\x00"


@dataclass(frozen=True, slots=True)
class Readable:
    """A text to read facts in; `places` holds the original offset of each character.

    Without `places` the offsets are the original ones.
    """

    text: str
    places: tuple[int, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return a span of this text in the original."""
        if not self.places:
            return start, end
        return self.places[start], self.places[end]


def readable(text: str) -> Readable:
    """Return a text composed (NFC), without unseen characters and emphasis."""
    places: tuple[int, ...] = ()
    if not unicodedata.is_normalized("NFC", text) or _UNSEEN.search(text):
        composed, at = [], []
        for match in _CHARACTER.finditer(text):
            if _UNSEEN.match(match[0]):
                continue
            one = unicodedata.normalize("NFC", match[0])
            composed.append(one)
            at += [match.start()] * len(one)
        text, places = "".join(composed), (*at, len(text))
    text = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
    text = _EMPHASIS.sub(lambda match: " " * len(match[0]), text).translate(_PLAIN)
    return Readable(text, places)


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text of the same length with the spans, which are in order, taken out."""
    kept, at = [], 0
    for start, end in spans:
        if start >= at:
            kept += [text[at:start], TAKEN * (end - start)]
            at = end
    return "".join([*kept, text[at:]])


def overlaps(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Tell whether a span touches one of others, which are in order."""
    index = bisect_right(spans, (start, end))
    before = index and spans[index - 1][1] > start
    return bool(before) or (index < len(spans) and spans[index][0] < end)
