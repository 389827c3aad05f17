"""What becomes of quoted words when a text takes another one's place. Pure.

Words are compared as citations are: word for word, line breaks and double spaces apart.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from retrieval.differences import LEAST_IN_COMMON, LINES, Change, line_changes

Span = tuple[int, int]

WORD = re.compile(r"\S+")
LETTERS = re.compile(r"\w+")
# A word that more lines have says nothing about which of them is meant.
MOST_LINES = 50
# So many lines are looked at closely for each that was replaced.
CANDIDATES = 5


class Outcome(StrEnum):
    """What becomes of quoted words."""

    STANDS = "stands"
    # Not word for word; something much like it stands in its place.
    CHANGES = "changes"
    VANISHES = "vanishes"
    # The text that is replaced did not say it any more either.
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of some words; `place` is where the new text has them, or its own."""

    outcome: Outcome
    place: Span | None = None


class _Group:
    """Lines of the old text and what stands for them in the new one, as offsets."""

    def __init__(self, change: Change, old: Span, new: Span, text: str) -> None:
        self.change = change
        self.old = old
        self.new = new
        self._text = text
        self._known: dict[str, Span | None] = {}

    def same(self, span: Span) -> Span:
        """Return where the part of a span that is in this group is in the new text."""
        first = max(span[0] - self.old[0], 0)
        last = min(span[1], self.old[1]) - self.old[0]
        return min(self.new[0] + first, self.new[1]), min(
            self.new[0] + last, self.new[1]
        )

    def counterpart(self, line: str) -> Span | None:
        """Return the line of the new text that is most like one of the old, or None."""
        if line not in self._known:
            self._known[line] = self._counterpart(line)
        return self._known[line]

    def _counterpart(self, line: str) -> Span | None:
        """Look for it among the lines that share rare words with it."""
        lines, having = self._index
        wanted = counted(line)
        shared: Counter[int] = Counter()
        for word in wanted:
            rows = having.get(word, ())
            if len(rows) <= MOST_LINES:
                shared.update(rows)
        best = max(
            (
                (likeness(wanted, lines[row][1]), -row)
                for row, _count in shared.most_common(CANDIDATES)
            ),
            default=(0.0, 0),
        )
        return lines[-best[1]][0] if best[0] >= LEAST_IN_COMMON else None

    @cached_property
    def _index(self) -> tuple[list[tuple[Span, Counter[str]]], dict[str, list[int]]]:
        """The new lines with their words, and by word the lines that have it."""
        spans = spans_of_lines(self._text, self.new)
        lines = [(span, counted(self._text[slice(*span)])) for span in spans]
        having: dict[str, list[int]] = {}
        for row, (_span, words) in enumerate(lines):
            for word in words:
                having.setdefault(word, []).append(row)
        return lines, having


class Words:
    """A text that tells where it holds some words; quick for very many of them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._plain = " ".join(text.split())

    @cached_property
    def _starts(self) -> tuple[list[int], list[int], list[int]]:
        """Where each word begins without double spaces, and where it does and ends."""
        plain, begins, ends = [], [], []
        at = 0
        for word in WORD.finditer(self.text):
            plain.append(at)
            begins.append(word.start())
            ends.append(word.end())
            at += word.end() - word.start() + 1
        return plain, begins, ends

    def find(self, words: str) -> Span | None:
        """Return where the text holds some words, as `differences.find_words` does."""
        wanted = " ".join(words.split())
        if not wanted:
            return None
        start = self._plain.find(wanted)
        while start >= 0 and self._is_part(wanted, start):
            start = self._plain.find(wanted, start + 1)
        if start < 0:
            return None
        return self._offset(start), self._offset(start + len(wanted) - 1) + 1

    def _is_part(self, wanted: str, start: int) -> bool:
        """Tell whether what was found begins or ends inside a longer word."""
        end = start + len(wanted)
        before = self._plain[start - 1 : start] if wanted[0].isalnum() else ""
        after = self._plain[end : end + 1] if wanted[-1].isalnum() else ""
        return any(LETTERS.match(each) for each in (before, after))

    def _offset(self, plain: int) -> int:
        """Return where in the text a character stands."""
        starts, begins, ends = self._starts
        index = bisect_right(starts, plain) - 1
        return min(begins[index] + plain - starts[index], ends[index])


class Fates:
    """What becomes of words of one text when another takes its place.

    `new` None takes the text away and puts nothing in its place. `old` None is a text
    that was not kept: then all words are taken to have stood in it.
    """

    def __init__(self, old: str | None, new: str | None) -> None:
        self._old = Words(old) if old is not None else None
        self._new = Words(new) if new is not None else None
        self._known: dict[tuple[str, Span | None], Fate] = {}

    def of(self, words: str, span: Span | None = None) -> Fate:
        """Return what becomes of some words; `span` is where the old text has them.

        Without one they are looked for.
        """
        key = (words, span)
        if key not in self._known:
            self._known[key] = self._fate(words, span)
        return self._known[key]

    def _fate(self, words: str, span: Span | None) -> Fate:
        """Work it out."""
        if span is None and self._old is not None:
            span = self._old.find(words)
            if span is None:
                return Fate(Outcome.BEFORE)
        if self._new is None:
            return Fate(Outcome.VANISHES)
        place = self._new.find(words)
        if place is not None:
            return Fate(Outcome.STANDS, place)
        place = self._likeness(words, span) if span is not None else None
        return Fate(Outcome.CHANGES if place else Outcome.VANISHES, place)

    def _likeness(self, words: str, span: Span) -> Span | None:
        """Return what stands in the place of words that the new text does not hold."""
        places: list[Span] = []
        groups, ends = self._groups
        for index in range(bisect_right(ends, span[0]), len(groups)):
            group = groups[index]
            if span[1] <= group.old[0]:
                break
            if group.change is Change.SAME:
                places.append(group.same(span))
            elif group.change is Change.CHANGED:
                found = map(group.counterpart, words.splitlines())
                places += [place for place in found if place is not None]
        if not places:
            return None
        return min(first for first, _last in places), max(last for _f, last in places)

    @cached_property
    def _groups(self) -> tuple[list[_Group], list[int]]:
        """The lines of both texts against each other, and where each group ends."""
        if self._old is None or self._new is None:
            return [], []
        old, new = LINES.findall(self._old.text), LINES.findall(self._new.text)
        left, right = offsets_of(old), offsets_of(new)
        groups = [
            _Group(change, (left[a1], left[a2]), (right[b1], right[b2]), self._new.text)
            for change, a1, a2, b1, b2 in line_changes(old, new)
        ]
        return groups, [group.old[1] for group in groups]


def offsets_of(lines: Sequence[str]) -> list[int]:
    """Return where each line begins, and where the last one ends."""
    found = [0]
    for line in lines:
        found.append(found[-1] + len(line))
    return found


def spans_of_lines(text: str, within: Span) -> list[Span]:
    """Return the lines of a part of a text without white space at their ends."""
    found = []
    at = within[0]
    for line in LINES.findall(text[slice(*within)]):
        body = line.rstrip()
        if body:
            found.append((at, at + len(body)))
        at += len(line)
    return found


def counted(line: str) -> Counter[str]:
    """Return how often a line has each word."""
    return Counter(word.casefold() for word in LETTERS.findall(line))


def likeness(one: Counter[str], other: Counter[str]) -> float:
    """Return the share of the words of two lines that both have, 0 to 1."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0
