"""Labels: the numbers and titles that open a line (`7.2`, `(b)`, `Article 12`).

They are read from the line alone; what a label means where it stands is for
`sections`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from knowledge.extraction.blocks import Block
from knowledge.structure.numbers import Unit

MAX_TITLE_LENGTH = 200

# How each unit is written at the head of a line, the containing ones first.
_WORDS = {
    Unit.ANNEX: "annex|appendix|schedule|exhibit|attachment|załącznik(?: nr)?"
    "|anexa(?: nr)?|приложение(?: №)?|phụ lục",
    Unit.PART: "part|część|partea|часть|phần",
    Unit.TITLE: "title|titlul|tytuł|dział|cartea|księga",
    Unit.CHAPTER: "chapter|rozdział|capitolul|cap|глава|chương",
    Unit.SECTION: "section|secțiunea|secţiunea|sekcja|oddział|раздел|mục",
    Unit.SUBSECTION: "subsection|subsecțiunea|subsecţiunea|podrozdział|подраздел"
    "|tiểu mục",
    Unit.ARTICLE: "article|articolul|artykuł|art|статья|ст|điều",
    Unit.CLAUSE: "clause|clauza|klauzula",
    Unit.RULE: "rule",
    Unit.SIGN: "§|paragraf",
    Unit.REQUIREMENT: "requirement|wymaganie|cerința|требование|yêu cầu",
    Unit.RECITAL: "recital|motyw|considerentul",
    Unit.PARAGRAPH: "paragraph|alineatul|alin|ust|ustęp|khoản|пункт|п",
    Unit.POINT: "point|lit|litera|pkt|punkt|điểm|подпункт|пп",
}
# Articles and their like contain no each other.
_ARTICLE_RANK = list(_WORDS).index(Unit.ARTICLE)
_RANKS = {
    unit: min(index, _ARTICLE_RANK)
    if index < list(_WORDS).index(Unit.PARAGRAPH)
    else index
    for index, unit in enumerate(_WORDS)
}
_UNITS = {
    word.replace("(?: nr)?", "").replace("(?: №)?", ""): unit
    for unit, words in _WORDS.items()
    for word in words.split("|")
}
INNER_UNITS = {Unit.PARAGRAPH, Unit.POINT}
_LETTERED_UNITS = {Unit.ANNEX, Unit.PART, Unit.POINT}
FIRST_NUMBERS = {"1", "a", "i", "A", "I", "а"}
_SUPERSCRIPT = r"(?:\^\d{1,2}|[¹²³⁴⁵⁶⁷⁸⁹])?"
_NAMED = re.compile(
    rf"(?P<name>{'|'.join(_WORDS.values())})\.?\s{{0,3}}"
    rf"(?P<number>\(?\d{{1,4}}(?:\.\d{{1,3}})*[a-zđ]?{_SUPERSCRIPT}\)?(?:\(\w{{1,4}}\))*"
    r"|[IVXLCDM]{1,8}|[^\W\d_])(?!\w)"
    r"(?P<more>(?:,? (?:ust|alin|pkt|lit|п|ч)\. ?\(?\w{1,4}\)?)*)",
    re.IGNORECASE,
)
_MORE = re.compile(r"\(?(\w{1,4})\)?(?=,| |\Z)")
_DOTTED = re.compile(r"(?P<number>(?:[A-Z]\.?)?\d{1,3}(?:\.\d{1,3}){1,5})\.?(?=\s|\Z)")
_LETTER_NUMBER = re.compile(r"(?P<number>[A-Z]\d{1,3})(?=[\s:.–—-])")
_BARE = re.compile(
    rf"(?P<open>\(?)(?P<number>\d{{1,3}}[a-z]?{_SUPERSCRIPT}|[a-zđ]|[а-яё](?=\))"
    r"|[ivxlcdm]{1,6}|[IVXLC]{1,6}|[A-Z])(?P<close>[.)])(?=\s|\Z)"
)
_MARKS = re.compile(r"[\s#>*_|•-]*")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_ANCHOR = re.compile(r"\s*\{#[\w-]+\}\s*\Z")
_SEPARATOR = re.compile(r"\**_*\s*(?:[.:]\s*(?:[–—-]\s+)?|[–—-]\s*)?")
# A full stop after which no beginning follows belongs to an abbreviation.
_STOPS = re.compile(r"[:;](?=\s|\*|\Z)|\.(?=\**\s*\Z|\**\s+[^\sa-zа-яё0-9])")
_CELL_NUMBER = re.compile(r"[A-Z]?\d{1,3}(?:\.\d{1,3}){0,5}")
_AFTER_LABEL = re.compile(r"\s*(?:[.:–—-]|\Z)")

# What a line ends with if a numbered one may follow it.
_LINE_ENDS = frozenset(".;:!?,*")
_SHORT_LINE = 100
_LONGEST_CLAUSE_TITLE = 80
_LONGEST_CLAUSE_TITLE_WORDS = 10
_SHORTEST_ROW_TEXT = 20
_SHORTEST_DEEP_ROW_TEXT = 5


@dataclass(frozen=True, slots=True)
class Label:
    """A number at the start of a line: style groups siblings, rank orders names."""

    style: str
    rank: int
    label: str
    number: str
    rest: str
    separated: bool
    unit: Unit | None = None
    continues: bool = False


def plain_heading(text: str) -> str:
    """Return a heading's text without Markdown marks, on one line."""
    line = " ".join(_LINK.sub(r"\1", text).split())
    line = _ANCHOR.sub("", line).lstrip("#>").strip().rstrip("#=- ").strip()
    line = re.sub(r"(\*\*|__|``?)(?=\S)(.+?)\1", r"\2", line)
    return line.strip("*").strip()[:MAX_TITLE_LENGTH]


def lacks_title(label: Label) -> bool:
    """Tell whether a line has the name of a unit and nothing else ("Chapter I")."""
    return bool(label.unit) and label.unit not in INNER_UNITS and not label.rest


def first_item(label: Label) -> Label | None:
    """Return the label of a first item on the line of its clause ("Art. 5. 1. …")."""
    inner = _parse_label(label.rest)
    if inner is None or not inner.style.startswith("bare"):
        return None
    is_first = inner.number in FIRST_NUMBERS and not inner.number.isupper()
    return inner if is_first and inner.style != label.style and inner.rest else None


def label_lines(text: str, block: Block) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines of a block that may start a clause, and whether one follows."""
    start, before = block.start, ""
    while start < block.end:
        end = text.find("\n", start, block.end)
        end = block.end if end < 0 else end
        line = text[start:end]
        if not before or before[-1] in _LINE_ENDS or _is_name_line(before):
            open_end = line.rstrip()[-1:] not in _LINE_ENDS
            yield start, line, open_end and end < block.end
        before = line.rstrip() or before
        start = end + 1


def _is_name_line(line: str) -> bool:
    """Tell whether a line is a unit's name, and its title, and no sentence."""
    if len(line) > _SHORT_LINE:
        return False
    label = clause_label(line)
    return label is not None and label.unit is not None


def heading_label(whole: str, *, is_first: bool) -> Label | None:
    """Return the label of a heading; a document's own may follow its name.

    "GDPR Chapter IV – Processors" as the first heading is Chapter IV.
    """
    label = _parse_label(whole)
    if label is not None and label.rest[:1].islower():
        return None
    if label is not None or not is_first:
        return label
    for named in _NAMED.finditer(whole):
        before = whole[: named.start()]
        is_name = before.endswith(" ") and all(
            not word[0].islower() for word in before.split()
        )
        ends = _AFTER_LABEL.match(whole, named.end())
        if is_name and _is_name(named) and ends:
            return _named_label(whole, named)
    return None


def clause_label(line: str) -> Label | None:
    """Return the label of a line that starts a clause, or None.

    A line that merely begins by citing one ("Article 5 applies to …") has none.
    """
    marks = _MARKS.match(line)
    label = _parse_label(line[marks.end() if marks else 0 :])
    if label is None:
        return None
    if label.style.startswith("bare"):
        return None if label.style == "bareA." else label
    if not label.rest or label.style == "dotted":
        return None if label.rest[:1].islower() else label
    if label.separated:
        return label
    begins = label.rest[0].isupper() or label.rest[0] in "(\"„“«'"
    short = len(line) <= _SHORT_LINE and line.rstrip("*_ ")[-1] not in ".;,"
    return label if begins and short else None


def _parse_label(line: str) -> Label | None:
    named = _NAMED.match(line)
    if named and _is_name(named):
        return _named_label(line, named)
    dotted = _DOTTED.match(line) or _LETTER_NUMBER.match(line)
    if dotted:
        rest = _rest(line, dotted.end())
        number = dotted["number"]
        return Label("dotted", -1, number, number, rest, separated=True)
    bare = _BARE.match(line)
    if bare is None or (bare["open"] and bare["close"] == "."):
        return None
    number = bare["number"]
    kind = "1"
    if number.isalpha():
        kind = "a" if len(number) == 1 else "i"
        kind = kind.upper() if number.isupper() else kind
        if kind == "A" and number in "IVX":
            kind = "I"
    style = f"bare{bare['open'] or ' ' * (bare['close'] == ')')}{kind}{bare['close']}"
    label = f"{bare['open']}{number}{bare['close']}"
    return Label(style, -1, label, number, _rest(line, bare.end()), separated=True)


def _is_name(named: re.Match[str]) -> bool:
    number = named["number"]
    if not number.isalpha():
        return True
    unit = _unit(named["name"])
    if not number.isupper():
        return unit is Unit.POINT and len(number) == 1
    roman = not set(number) - set("IVXLCDM")
    return roman or (unit in _LETTERED_UNITS and len(number) == 1)


def _named_label(line: str, named: re.Match[str]) -> Label:
    number = named["number"]
    if number.startswith("(") and number.endswith(")") and number.count("(") == 1:
        number = number[1:-1]
    for part in re.split(r",? (?:ust|alin|pkt|lit|п|ч)\. ?", named["more"])[1:]:
        inner = _MORE.match(part)
        number += f"({inner[1]})" if inner else ""
    rest = line[named.end() :]
    separator = _SEPARATOR.match(rest)
    end = separator.end() if separator else 0
    unit = _unit(named["name"])
    rank = _RANKS[unit]
    separated = any(mark in rest[:end] for mark in ".:–—-")
    shown = " ".join(named[0].split())
    return Label(
        f"named{rank}", rank, shown, number, rest[end:].strip(), separated, unit
    )


def _unit(name: str) -> Unit:
    words = name.casefold().split()
    return _UNITS.get(" ".join(words)) or _UNITS[words[0]]


def row_label(row: str) -> Label | None:
    """Return the label of a table row whose first cell is a clause number.

    Where the next cells go on with it ("V2", a name, "V2.1", a name, "V2.1.7"), the
    longest is the row's own.
    """
    cells = [cell.strip(" *\t") for cell in row.strip().strip("|").split("|")]
    number, text = "", ""
    for index, cell in enumerate(cells):
        is_number = _CELL_NUMBER.fullmatch(cell) is not None
        if index == 0 and not is_number:
            return None
        if is_number and (not number or cell.startswith(f"{number}.")):
            number, text = cell, cells[index + 1] if index + 1 < len(cells) else ""
    depth = number.count(".")
    least = _SHORTEST_DEEP_ROW_TEXT if depth > 1 else _SHORTEST_ROW_TEXT
    if not depth or len(text) < least or text[:1].isdigit():
        return None
    return Label("dotted", -1, number, number, "", separated=True)


def _rest(line: str, end: int) -> str:
    separator = _SEPARATOR.match(line, end)
    return line[separator.end() if separator else end :].strip()


def clause_title(label: Label) -> str:
    """Return the heading that opens a clause ("Notice. Either party …"), or ""."""
    stop = _STOPS.search(label.rest)
    title = label.rest[: stop.start()] if stop else label.rest
    title = plain_heading(title)
    if (
        not title[:1].isupper()
        or len(title) > _LONGEST_CLAUSE_TITLE
        or len(title.split()) > _LONGEST_CLAUSE_TITLE_WORDS
    ):
        return ""
    if stop is None and (label.continues or title.endswith((",", ";"))):
        return ""
    more = stop is not None and bool(label.rest[stop.end() :].strip("*_ "))
    if label.style.startswith("bare"):
        return title if stop is None or (more and stop[0] == ".") else ""
    return title
