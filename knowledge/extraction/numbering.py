"""The numbers that Word shows before paragraphs but does not store in them."""

from __future__ import annotations

import re

from knowledge.extraction.xmltree import Element, attribute, local_name, value_of

_PLACE = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_LEVELS = 9


class _Level:
    """How one level of a list counts and what it shows."""

    def __init__(self, element: Element | None) -> None:
        self.form = value_of(element, "numFmt") or "decimal"
        self.text = value_of(element, "lvlText")
        start = value_of(element, "start") or "1"
        self.start = int(start) if start.isdecimal() else 1


class Numbering:
    """Counts along with the paragraphs of a document, in reading order."""

    def __init__(self, root: Element | None) -> None:
        self._levels: dict[str, list[_Level]] = {}
        self._list_of: dict[str, str] = {}
        self._starts: dict[str, dict[int, int]] = {}
        self._counts: dict[str, list[int | None]] = {}
        self._begun: set[str] = set()
        for element in root if root is not None else ():
            if local_name(element) == "abstractNum":
                self._read_list(element)
            elif local_name(element) == "num":
                self._read_instance(element)

    def next_label(self, num_id: str, depth: int) -> str:
        """Return the label of the next paragraph of a list at a level (0 to 8)."""
        key = self._list_of.get(num_id)
        levels = self._levels.get(key) if key is not None else None
        if key is None or levels is None:
            return "-"
        counts = self._counts.setdefault(key, [None] * _LEVELS)
        if num_id not in self._begun:
            self._begun.add(num_id)
            for at, start in self._starts.get(num_id, {}).items():
                counts[at] = start - 1
        current = counts[depth]
        counts[depth] = levels[depth].start if current is None else current + 1
        for deeper in range(depth + 1, _LEVELS):
            counts[deeper] = None
        level = levels[depth]
        if level.form == "bullet":
            return "-"
        if level.form == "none":
            return ""
        shown = f"%{depth + 1}." if level.text is None else level.text
        return _PLACE.sub(lambda place: _count(levels, counts, place), shown).strip()

    def _read_list(self, element: Element) -> None:
        levels = [_Level(None) for _ in range(_LEVELS)]
        for child in element:
            if local_name(child) == "lvl":
                depth = attribute(child, "ilvl")
                if depth.isdecimal() and int(depth) < _LEVELS:
                    levels[int(depth)] = _Level(child)
        self._levels[attribute(element, "abstractNumId")] = levels

    def _read_instance(self, element: Element) -> None:
        num_id = attribute(element, "numId")
        self._list_of[num_id] = value_of(element, "abstractNumId") or ""
        for child in element:
            if local_name(child) != "lvlOverride":
                continue
            depth, start = attribute(child, "ilvl"), value_of(child, "startOverride")
            if depth.isdecimal() and int(depth) < _LEVELS and start:
                starts = self._starts.setdefault(num_id, {})
                starts[int(depth)] = int(start) if start.isdecimal() else 1


def _count(levels: list[_Level], counts: list[int | None], place: re.Match[str]) -> str:
    index = int(place[1]) - 1
    count = counts[index]
    return _shown(levels[index].start if count is None else count, levels[index].form)


def _shown(count: int, form: str) -> str:
    if form in {"lowerLetter", "upperLetter"} and count > 0:
        letter = chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1)
        return letter.upper() if form == "upperLetter" else letter
    if form in {"lowerRoman", "upperRoman"} and 0 < count < 4000:
        roman = ""
        for value, letters in _ROMAN:
            roman += letters * (count // value)
            count %= value
        return roman.upper() if form == "upperRoman" else roman
    if form == "decimalZero":
        return f"{count:02}"
    return str(count)
