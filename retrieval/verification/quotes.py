"""Quotes: where a draft has them, and whether a passage holds their words. Pure.

Words are compared without regard to case, punctuation, line breaks and the kind of
quotation mark; letters, digits and the signs that change a meaning must be the same,
in the same order, and whole.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

# By opening mark, what closes it. People mix the marks of their keyboards.
_CLOSERS = {
    '"': '"',
    "“": '”"“',
    "„": '”“"',
    "«": "»",
    "»": "«",
    "‹": "›",
    "‘": "’",
    "‚": "‘’",
    "「": "」",
    "『": "』",
    "〝": "〞〟",
    "＂": "＂",
    "”": "”",
}
_MARK = re.compile(r"[\"“”„«»‹›‘’‚「」『』〝〞〟＂]|\n[ \t]*(?=\n)")
_END = re.compile(r"\Z")
_PAIRED = frozenset("“«‹「『")
_SINGLE = frozenset("‘‚")
_CLOSED_SINGLE = re.compile(r"[^‘\n]{1,400}?[’‘](?!\w)")
_ELLIPSIS = re.compile(r"[\[(]\s?(?:\.{3,}|…)\s?[\])]|\.{3,}|…|\.\s\.\s\.")
_LEAST_WORDS = 2
# How far beside its words the dots of a document may stand (characters).
_DOTS = 8
# A letter that the writer changed: "[E]ither party".
_CHANGED_LETTER = re.compile(r"\[(\w)\](?=\w)")
# As drafts cite: [S1], [S1, S2], [S1; S3], [S1–S3].
CITATION = re.compile(r"\[S\d{1,9}(?:\s?[,;–—-]\s?S?\d{1,9}){0,60}\]", re.IGNORECASE)
# A word with its inner marks and invisible ones; digits keep the marks between them;
# signs are words of their own, since a quote without its "%" says something else.
_WORD = re.compile(
    r"[\w\u00ad\u0300-\u036f\u200b-\u200d\u2060\ufeff]+"
    r"(?:(?<=\d)[.,:](?=\d)[\w\u00ad\u0300-\u036f]+)*"
    r"|(?<![\w-])[-−](?=\d)|[%‰€$£¥₫₽§<>≤≥≠=+±×°]"
)
_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote with its marks at `start` and `end`; inside them are its words.

    One that is never closed reaches to the end of its paragraph.
    """

    start: int
    end: int
    inner_start: int
    inner_end: int
    is_closed: bool = True


def find_quotes(draft: str) -> list[Quote]:
    """Return the outermost quotes of a draft, in order.

    Quotes may run over line breaks, but not over an empty line. A single mark that is
    an apostrophe or an inch opens none.
    """
    quotes: list[Quote] = []
    opened: re.Match[str] | None = None
    depth = 0
    for mark in _marks(draft):
        written = mark[0]
        if opened is None:
            if _may_open(draft, mark):
                opened, depth = mark, 1
        elif written.startswith("\n") or written == "":
            quotes += _unclosed(opened, mark.start())
            opened = None
        elif _closes(draft, opened, mark):
            depth -= 1
            if not depth:
                quotes.append(
                    Quote(opened.start(), mark.end(), opened.end(), mark.start())
                )
                opened = None
        elif written == opened[0] and written in _PAIRED:
            depth += 1
    return quotes


def _marks(draft: str) -> Iterator[re.Match[str]]:
    """Yield quotation marks, the gaps between paragraphs and the end of the draft."""
    yield from _MARK.finditer(draft)
    yield from _END.finditer(draft, len(draft))


def _unclosed(opened: re.Match[str], end: int) -> list[Quote]:
    """Return the quote that is never closed; an apostrophe may have been no mark."""
    if opened[0] in _SINGLE:
        return []
    return [Quote(opened.start(), end, opened.end(), end, is_closed=False)]


def _may_open(draft: str, mark: re.Match[str]) -> bool:
    if mark[0] not in _CLOSERS:
        return False
    before = draft[mark.start() - 1 : mark.start()]
    after = draft[mark.end() : mark.end() + 1]
    if before.isalnum() or not after or after.isspace():
        return False
    if mark[0] not in _SINGLE:
        return True
    # The '90s: an apostrophe, unless its line goes on to a closing mark.
    return _CLOSED_SINGLE.match(draft, mark.end()) is not None


def _closes(draft: str, opened: re.Match[str], mark: re.Match[str]) -> bool:
    """Tell whether a mark closes a quote that another one opened."""
    written = mark[0]
    if written not in _CLOSERS[opened[0]]:
        return False
    before = draft[mark.start() - 1 : mark.start()]
    after = draft[mark.end() : mark.end() + 2]
    if written == "“":
        # It opens a quote within the quote, unless it stands where a word ends.
        return not before.isspace() and not after[:1].isalnum()
    if written != "’":
        return True
    # "The tenants’ duty": an apostrophe, where the line closes the quote later.
    is_possessive = before == "s" and after[:1] == " " and after[1:].islower()
    later = _CLOSED_SINGLE.match(draft, mark.end()) if is_possessive else None
    return not after[:1].isalnum() and later is None


# --- What a quote says ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text in normal form, each with its place.

    `joined` holds them between single spaces, also at both ends; `offsets` says where
    in it each word begins.
    """

    joined: str
    offsets: tuple[int, ...]
    places: tuple[tuple[int, int], ...]

    def find(self, part: str, at: int) -> tuple[int, int] | None:
        """Return first and last index of words from index `at` on, or None.

        `part` is joined as the words themselves are.
        """
        if at >= len(self.offsets):
            return None
        place = self.joined.find(part, self.offsets[at] - 1)
        if place < 0:
            return None
        first = bisect_right(self.offsets, place + 1) - 1
        return first, first + part.count(" ") - 2

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return where words of such indexes stand in the text."""
        return self.places[first][0], self.places[last][1]


def words_of(text: str) -> Words:
    """Return the words of a text."""
    words, places, offsets = [], [], []
    length = 1
    for match in _WORD.finditer(text):
        word = _normal(match[0])
        if word:
            words.append(word)
            places.append(match.span())
            offsets.append(length)
            length += len(word) + 1
    joined = " " + "".join(f"{word} " for word in words)
    return Words(joined, tuple(offsets), tuple(places))


def _normal(word: str) -> str:
    word = unicodedata.normalize("NFKC", _UNSEEN.sub("", word)).casefold().strip("_")
    return unicodedata.normalize("NFC", word).replace(" ", "")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The words that a passage must hold, in parts that omissions divide.

    `whole` are all of them, for a passage that has dots of its own there. `is_short`
    tells that a part beside an omission has fewer than two words.
    """

    parts: tuple[str, ...]
    whole: str = ""
    is_short: bool = False


def wanted_of(inner: str) -> Wanted:
    """Return what a quote claims that a passage holds; no part where it has no words.

    A citation inside a quote does not count (S1-VER-11).
    """
    inner = _CHANGED_LETTER.sub(r"\1", CITATION.sub(" ", inner))
    pieces = [words_of(piece) for piece in _ELLIPSIS.split(inner)]
    given = [piece for piece in pieces if piece.offsets]
    if len(pieces) == 1:
        return Wanted(tuple(piece.joined for piece in given))
    return Wanted(
        parts=tuple(piece.joined for piece in given),
        whole=words_of(_ELLIPSIS.sub(" ", inner)).joined,
        is_short=any(len(piece.offsets) < _LEAST_WORDS for piece in given),
    )


def find_wanted(wanted: Wanted, words: Words, text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans in a passage of a quote's parts, in order; () if not there.

    `words` are those of `text`.
    """
    if wanted.whole and (found := words.find(wanted.whole, 0)):
        start, end = words.span(*found)
        if _ELLIPSIS.search(text, max(0, start - _DOTS), end + _DOTS):
            # The dots are the document's own: `print(...)`.
            return ((start, end),)
    spans = []
    at = 0
    for part in () if wanted.is_short else wanted.parts:
        found = words.find(part, at)
        if found is None:
            return ()
        spans.append(words.span(*found))
        at = found[1] + 1
    return tuple(spans)
