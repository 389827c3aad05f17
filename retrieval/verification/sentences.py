"""The sentences of a draft and what each cites. Pure.

A draft is written for us, with citations such as `[S1]`, and its sentences end by rules
of their own (S1-VER-08, S1-VER-09); the sentences of documents are cut elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from retrieval.verification.facts import Fact
from retrieval.verification.quotes import CITATION, Quote

_NUMBER = re.compile(r"(?P<range>[–—-])?\s?S?(?P<number>\d+)", re.IGNORECASE)
# What may stand between an end mark and the citations that belong to it, and between
# these.
_BEFORE_CITATION = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"[ \t]*[,;]?[ \t]*")
_END = re.compile(r"\n|[.!?]+")
_CLOSING = re.compile(r"[)\]*_\"'”’»“]*")
_SPACE = re.compile(r"[ \t]*")
_END_MARKS = ".!?"


@dataclass(frozen=True, slots=True)
class Citation:
    """Passage numbers as the draft cites them at one place, from 1."""

    start: int
    end: int
    numbers: tuple[int, ...]


@dataclass(slots=True)
class Sentence:
    """A sentence of a draft, with the citations that belong to it."""

    start: int
    end: int
    citations: list[Citation] = field(default_factory=list)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The passages cited, each once, in the order of the text."""
        cited = (number for one in self.citations for number in one.numbers)
        return tuple(dict.fromkeys(cited))


def find_citations(
    draft: str, quotes: Sequence[Quote], most: int
) -> tuple[list[Citation], list[str]]:
    """Return the citations outside quotes (S1-VER-11), and those of no passage.

    `most` is the number of passages; what is cited beyond it comes second, as `S7`.
    """
    found, unknown = [], []
    outside = _Outside(quotes)
    for match in CITATION.finditer(draft):
        if outside.holds(match.start()):
            numbers: list[int] = []
            for item in _NUMBER.finditer(match[0], 1):
                number = int(item["number"])
                if not 0 < number <= most:
                    unknown.append(f"S{number}")
                elif item["range"] and numbers:
                    numbers += range(numbers[-1] + 1, number + 1)
                else:
                    numbers.append(number)
            found.append(Citation(*match.span(), tuple(numbers)))
    return found, list(dict.fromkeys(unknown))


class _Outside:
    """Tells, for offsets that only rise, whether they lie outside all quotes."""

    def __init__(self, quotes: Sequence[Quote]) -> None:
        self._quotes = quotes
        self._index = 0

    def holds(self, offset: int) -> bool:
        """Tell whether no quote holds an offset."""
        while self._index < len(self._quotes) and (
            self._quotes[self._index].end <= offset
        ):
            self._index += 1
        at_end = self._index == len(self._quotes)
        return at_end or self._quotes[self._index].start > offset


def split_draft(
    draft: str,
    quotes: Sequence[Quote],
    citations: Sequence[Citation],
    facts: Sequence[Fact],
) -> list[Sentence]:
    """Return a draft's sentences, which cover it, with their citations.

    No end mark within a fact ends one: "art. 5 alin. (2)".
    """
    starts = {citation.start: citation for citation in citations}
    sentences, start = [], 0
    inside = {
        place
        for start, end in {(fact.start, fact.end) for fact in facts}
        for place in range(start + 1, end)
        if draft[place - 1] in _END_MARKS
    }
    for end in _ends(draft, quotes, starts):
        if end in inside:
            continue
        if end > start:
            sentences.append(Sentence(start, end))
            start = end
    if start < len(draft):
        sentences.append(Sentence(start, len(draft)))
    index = 0
    for citation in citations:
        while sentences[index].end <= citation.start:
            index += 1
        sentences[index].citations.append(citation)
    return sentences


def _ends(
    draft: str, quotes: Sequence[Quote], starts: dict[int, Citation]
) -> Iterator[int]:
    """Yield where sentences end, citations behind the end mark included."""
    after = 0
    outside = _Outside(quotes)
    cited = {citation.end for citation in starts.values()}
    marks = [(match.start(), match.end()) for match in _END.finditer(draft)]
    # A quote that ends with an end mark ends its sentence as the bare mark would.
    closed = [
        (quote.end, quote.end)
        for quote in quotes
        if draft[quote.inner_end - 1 : quote.inner_end] in tuple(_END_MARKS)
    ]
    for start, end in sorted([*marks, *closed]):
        if start < after or (end > start and not outside.holds(start)):
            continue
        if draft[start:end] == "\n":
            yield end
            after = end
        elif stop := _stop(draft, start, end, starts, cited):
            yield stop
            after = stop


def _stop(
    draft: str, start: int, end: int, starts: dict[int, Citation], cited: Container[int]
) -> int:
    """Return where a sentence ends by the mark at `start`, or 0 where it goes on.

    A digit goes on with it ("No. 7"), unless a citation stands before or behind the
    mark; `cited` holds where citations end.
    """
    closing = _CLOSING.match(draft, end)
    at = closing.end() if closing else end
    at, is_cited = _past_citations(draft, at, starts)
    space = _SPACE.match(draft, at)
    following = space.end() if space else at
    letter = draft[following : following + 1]
    is_cited = is_cited or start in cited
    if letter.islower() or (letter.isdecimal() and not is_cited):
        return 0
    return at


def _past_citations(
    draft: str, at: int, starts: dict[int, Citation]
) -> tuple[int, bool]:
    """Return the offset behind the citations that follow, and whether there are any."""
    cited = False
    while True:
        gap = (_BETWEEN if cited else _BEFORE_CITATION).match(draft, at)
        citation = starts.get(gap.end()) if gap else None
        if citation is None:
            return at, cited
        at, cited = citation.end, True
