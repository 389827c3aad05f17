"""Letters of a PDF that stand apart, and the gaps that part their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from knowledge.extraction.fragments import Fragment

# Shares of the font size.
NARROWEST_WORD_GAP = 0.1
CELL_DISTANCE = 1.0

_SHORTEST_SPREAD = 5
_MOSTLY = 0.6
_EVEN = 0.7
_LIKE_KNOWN = 0.7
_LETTER_CHANGE = 1.5


class Spacing:
    """Finds letters that are spread: shown one by one, each some way from the next.

    `has_spaces` tells that words are parted by spaces that the page shows, so that
    few letters suffice to know.
    """

    def __init__(self, *, has_spaces: bool) -> None:
        self._has_spaces = has_spaces
        self._known: dict[float, float] = {}

    def parts(self, row: Sequence[Fragment], index: int) -> bool:
        """Tell whether a gap before a fragment cannot be one between two words."""
        before = row[index - 1].text if index else ""
        drawn = before[-1:].isspace() or row[index].text[:1].isspace()
        return self._has_spaces and not drawn

    def learn(self, row: Sequence[Fragment]) -> None:
        """Note how far letters of a size stand apart where many show it."""
        for run in _runs_of_letters(row):
            gaps = _gaps_inside(row, run)
            if len(gaps) >= _SHORTEST_SPREAD and self._is_text(row, run):
                size = round(row[run[0]].size, 1)
                usual = gaps[len(gaps) // 6]
                if usual > NARROWEST_WORD_GAP * size:
                    self._known[size] = min(usual, self._known.get(size, usual))

    def letter_gaps(self, row: Sequence[Fragment]) -> list[float]:
        """Return, for each fragment of a row, the usual gap before it; mostly 0."""
        usual = [0.0] * len(row)
        for run in _runs_of_letters(row):
            gaps = _gaps_inside(row, run)
            many = len(gaps) >= _SHORTEST_SPREAD
            known = self._known.get(round(row[run[0]].size, 1), 0.0)
            if many and (advance := _even_advance(row, run)):
                for before, after in pairwise(run):
                    width = row[before].end - row[before].start
                    usual[after] = max(0.0, advance - width)
            elif gaps and (
                (many and self._is_text(row, run))
                or (known and gaps[0] > _LIKE_KNOWN * known)
                or (self._has_spaces and _are_letters(row, run))
            ):
                for one in run:
                    usual[one] = max(0.0, gaps[len(gaps) // 6])
        return usual

    def _is_text(self, row: Sequence[Fragment], run: Sequence[int]) -> bool:
        return self._has_spaces or _are_letters(row, run)


def _runs_of_letters(row: Sequence[Fragment]) -> Iterator[list[int]]:
    """Yield the places of fragments of one character each that stand in a row."""
    run: list[int] = []
    for index, one in enumerate(row):
        if run:
            before = row[run[-1]]
            if one.start - before.end > CELL_DISTANCE * one.size or _differ(
                one, before
            ):
                yield run
                run = []
        if len(one.text.strip()) <= 1:
            run.append(index)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _differ(one: Fragment, other: Fragment) -> bool:
    """Tell whether two letters differ more in size than raised ones do."""
    return not 1 / _LETTER_CHANGE < one.size / other.size < _LETTER_CHANGE


def _gaps_inside(row: Sequence[Fragment], run: Sequence[int]) -> list[float]:
    """Return the gaps in a run that no space fills, narrowest first."""
    return sorted(
        row[after].start - row[before].end
        for before, after in pairwise(run)
        if row[before].text[-1] != " " and row[after].text[0] != " "
    )


def _are_letters(row: Sequence[Fragment], run: Sequence[int]) -> bool:
    letters = sum(1 for one in run if row[one].text.strip().isalpha())
    return letters > _MOSTLY * len(run)


def _even_advance(row: Sequence[Fragment], run: Sequence[int]) -> float:
    """Return the distance of letters that are set on an even grid, or 0."""
    steps = sorted(
        row[after].start - row[before].start for before, after in pairwise(run)
    )
    middle = steps[len(steps) // 2]
    even = sum(1 for step in steps if abs(step - middle) <= 0.03 * middle)
    return middle if even > _EVEN * len(steps) else 0.0
