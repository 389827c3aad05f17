"""What a passage holds: every reading of its facts, and where. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict

from retrieval.verification.facts import (
    ANY,
    COLUMN,
    Fact,
    FactKind,
    Reading,
    read_facts,
)
from retrieval.verification.measures import unit_of_word
from retrieval.verification.references import openings_in

_WORD = re.compile(r"[^\W\d_]+|[%€$£₫]")
_PARTS = re.compile(r"[^()]+")


class Holdings:
    """The facts of one passage, to look a draft's facts up in."""

    def __init__(self, text: str) -> None:
        self._places: dict[Reading, tuple[int, int]] = {}
        for fact in read_facts(text):
            for reading in (fact.readings[0], *fact.also):
                self._places.setdefault(reading, (fact.start, fact.end))
        self._openings: defaultdict[str, list[int]] = defaultdict(list)
        for place in openings_in(text):
            span = (place.start, place.end)
            self._openings[place.key].append(place.start)
            for unit in ("", ANY):
                reading = Reading(FactKind.CLAUSE, place.key, unit)
                self._places.setdefault(reading, span)
        self._units = {unit_of_word(word.lower()) for word in _WORD.findall(text)}

    def find(self, fact: Fact) -> tuple[int, int] | None:
        """Return where the passage holds a fact of a draft, or None."""
        for reading in fact.readings:
            if place := self._places.get(reading):
                return place
        if fact.kind is FactKind.CLAUSE:
            return self._nested(fact)
        if fact.unit in self._units:
            # The unit of a number in a table is its column's.
            return self._places.get(Reading(FactKind.NUMBER, fact.value, COLUMN))
        return None

    def _nested(self, fact: Fact) -> tuple[int, int] | None:
        """Return where a nested clause stands whose parts open lines, one below another.

        "Article 6(1)(b)" is the line "(b)" below "1." below "Article 6".
        """
        outer, *inner = _PARTS.findall(fact.value)
        if not inner:
            return None
        for reading in fact.readings:
            place = self._places.get(Reading(reading.kind, outer, reading.unit))
            for part in inner:
                place = self._opening_after(part, place[1]) if place else None
            if place:
                return place
        return None

    def _opening_after(self, key: str, offset: int) -> tuple[int, int] | None:
        """Return the next line that a number or letter opens."""
        starts = self._openings.get(key, [])
        index = bisect_right(starts, offset)
        return (
            (starts[index], starts[index] + len(key)) if index < len(starts) else None
        )
