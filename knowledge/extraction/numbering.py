"""The numbers that Word shows before paragraphs but does not store in them."""

from __future__ import annotations

import re

from lxml import etree

Element = etree._Element  # noqa: SLF001 lxml has no public name for it

_PLACE = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_LEVELS = 9


class _Level:
    """How one level of a list counts and what it shows."""

    def __init__(self, element: Element | None) -> None:
        self.form = _value(element, "numFmt") or "decimal"
        self.text = _value(element, "lvlText")
        start = _value(element, "start") or "1"
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
            if _name(element) == "abstractNum":
                self._read_list(element)
            elif _name(element) == "num":
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
            for level, start in self._starts.get(num_id, {}).items():
                counts[level] = start - 1
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
            if _name(child) == "lvl":
                depth = _attribute(child, "ilvl")
                if depth.isdecimal() and int(depth) < _LEVELS:
                    levels[int(depth)] = _Level(child)
        self._levels[_attribute(element, "abstractNumId")] = levels

    def _read_instance(self, element: Element) -> None:
        num_id = _attribute(element, "numId")
        self._list_of[num_id] = _value(element, "abstractNumId") or ""
        for child in element:
            if _name(child) != "lvlOverride":
                continue
            depth, start = _attribute(child, "ilvl"), _value(child, "startOverride")
            if depth.isdecimal() and int(depth) < _LEVELS and start:
                starts = self._starts.setdefault(num_id, {})
                starts[int(depth)] = int(start) if start.isdecimal() else 1


def _count(
    levels: list[_Level], counts: list[int | None], place: re.Match[str]
) -> str:
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


def _name(element: Element) -> str:
    tag = element.tag
    return tag.rsplit("}", maxsplit=1)[-1] if isinstance(tag, str) else ""


def _attribute(element: Element, name: str) -> str:
    for key, value in element.attrib.items():
        if str(key).rsplit("}", maxsplit=1)[-1] == name:
            return str(value)
    return ""


def _value(element: Element | None, name: str) -> str | None:
    for child in element if element is not None else ():
        if _name(child) == name:
            return _attribute(child, "val")
    return None
