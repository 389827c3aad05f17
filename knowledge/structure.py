"""The structure map of a document: its headings and numbered clauses.

Headings come from the blocks; numbered clauses are read from the lines: `7.2`,
`(b)`, `Article 12`, `§ 4 ust. 2`, `Điều 5`, `статья 5`, `Annex II`, and the like.
A clause inside a numbered one carries the whole number: the paragraph "2." of
Article 7 is `7(2)`, its point "(b)" is `7(2)(b)`, and both are of an article.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from knowledge.extraction.blocks import Block, BlockKind

MAX_TITLE_LENGTH = 200


class Unit(StrEnum):
    """What a text calls a numbered part of it."""

    ANNEX = "annex"
    PART = "part"
    TITLE = "title"
    CHAPTER = "chapter"
    SECTION = "section"
    SUBSECTION = "subsection"
    ARTICLE = "article"
    CLAUSE = "clause"
    RULE = "rule"
    SIGN = "sign"
    REQUIREMENT = "requirement"
    RECITAL = "recital"
    PARAGRAPH = "paragraph"
    POINT = "point"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading or a numbered clause and the span of all it contains.

    `number` is the whole one (`7.2`, `7(2)(b)`, `II`), empty if there is none; `label`
    is how it is written (`Article 12`), `unit` what its number counts (in `7(2)(b)`
    what 7 is), None where the text does not say; `path` holds the headings that lead
    here, the own one last (`7 Termination`, `7.2 Notice`).
    """

    kind: str
    number: str
    label: str
    title: str
    level: int
    start: int
    end: int
    path: tuple[str, ...]
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class _Label:
    """A number at the start of a line: style groups siblings, rank orders names."""

    style: str
    rank: int
    label: str
    number: str
    rest: str
    separated: bool
    unit: Unit | None = None
    continues: bool = False


@dataclass(slots=True)
class _Open:
    """A section whose end is not known yet."""

    kind: str
    style: str
    rank: int
    own_number: str
    number: str
    label: str
    title: str
    level: int
    outline_level: int
    start: int
    path: tuple[str, ...]
    unit: Unit | None
    end: int = 0

    def close(self) -> Section:
        return Section(
            self.kind,
            self.number,
            self.label,
            self.title,
            self.level,
            self.start,
            self.end,
            self.path,
            self.unit,
        )


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
_INNER_UNITS = {Unit.PARAGRAPH, Unit.POINT}
_LETTERED_UNITS = {Unit.ANNEX, Unit.PART, Unit.POINT}
_FIRST_NUMBERS = {"1", "a", "i", "A", "I", "а"}
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
_RAISED = str.maketrans(
    {mark: f"^{digit}" for digit, mark in enumerate("¹²³⁴⁵⁶⁷⁸⁹", 1)}
)
_LETTER_STOP = re.compile(r"\A([^\W\d_])\.(?=\d)")
_ROMAN = dict(zip("IVXLCDM", (1, 5, 10, 50, 100, 500, 1000), strict=True))
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


def build_sections(text: str, blocks: Sequence[Block]) -> tuple[Section, ...]:
    """Return the sections of a document in the order of their starts.

    They nest: a section ends where the next one of its level or a higher one
    starts, trailing white space apart.
    """
    done: list[_Open] = []
    stack: list[_Open] = []
    for section in _openings(text, blocks, stack):
        done.append(section)
        stack.append(section)
    _pop(text, stack, 0, len(text))
    return tuple(section.close() for section in done)


def path_at(sections: Sequence[Section], offset: int) -> tuple[str, ...]:
    """Return the path of the deepest section that holds an offset, or ()."""
    index = bisect_right(sections, offset, key=lambda section: section.start)
    while index:
        index -= 1
        if sections[index].end > offset:
            return sections[index].path
    return ()


def plain_heading(text: str) -> str:
    """Return a heading's text without Markdown marks, on one line."""
    line = " ".join(_LINK.sub(r"\1", text).split())
    line = _ANCHOR.sub("", line).lstrip("#>").strip().rstrip("#=- ").strip()
    line = re.sub(r"(\*\*|__|``?)(?=\S)(.+?)\1", r"\2", line)
    return line.strip("*").strip()[:MAX_TITLE_LENGTH]


def number_key(number: str) -> str:
    """Return the form in which numbers are looked up: `IV` is `4`, `A.5` is `a5`.

    Only the outermost number is read as Roman, and only in capitals: an item "(c)"
    stays a letter.
    """
    outer, bracket, inner = number.strip().translate(_RAISED).partition("(")
    outer = outer.strip().rstrip(".")
    if outer and not set(outer) - set("IVXLCDM") and (len(outer) > 1 or outer in "IVX"):
        outer = str(roman_value(outer)) or outer
    outer = _LETTER_STOP.sub(r"\1", outer)
    key = f"{outer}{bracket}{inner}".replace(" ", "").casefold()
    return unicodedata.normalize("NFC", key)


def roman_value(numeral: str) -> int:
    """Return the value of a Roman numeral in capitals."""
    values = [_ROMAN[letter] for letter in numeral]
    following = [*values[1:], 0]
    return sum(
        -value if value < after else value
        for value, after in zip(values, following, strict=True)
    )


def _openings(
    text: str, blocks: Sequence[Block], stack: list[_Open]
) -> Iterator[_Open]:
    """Yield the sections as they open; those they end are taken off the stack."""
    headings = 0
    titles: set[int] = set()
    for index, block in enumerate(blocks):
        if index in titles:
            continue
        if block.kind is BlockKind.HEADING:
            headings += 1
            whole = plain_heading(text[block.start : block.end])
            label = _heading_label(whole, is_first=headings == 1)
            title = _title_below(text, blocks, index, label)
            if title:
                titles.add(index + 1)
            yield _open_heading(text, block, label, title, stack)
        elif block.kind is BlockKind.TABLE_ROW:
            label = _row_label(text[block.start : block.end])
            if label is not None:
                yield _open_clause(text, block.start, label, stack)
        elif block.kind in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}:
            yield from _openings_in(text, blocks, index, stack, titles)


def _openings_in(
    text: str,
    blocks: Sequence[Block],
    index: int,
    stack: list[_Open],
    titles: set[int],
) -> Iterator[_Open]:
    """Yield the clauses of a paragraph; notes the block below that is a title."""
    block = blocks[index]
    for start, line, continues in _label_lines(text, block):
        label = _clause_label(line)
        if label is None or _repeats(label, stack):
            continue
        title = ""
        if start + len(line) >= block.end:
            title = _title_below(text, blocks, index, label)
        if title:
            titles.add(index + 1)
        if title and blocks[index + 1].kind is BlockKind.HEADING:
            heading = replace(blocks[index + 1], start=start)
            yield _open_heading(text, heading, label, title, stack)
            continue
        label = replace(label, continues=continues, rest=label.rest or title)
        yield _open_clause(text, start, label, stack)
        inner = _first_item(label)
        if inner is not None:
            at = start + len(line.rstrip()) - len(label.rest)
            inner = replace(inner, continues=continues)
            yield _open_clause(text, at, inner, stack)


def _lacks_title(label: _Label) -> bool:
    """Tell whether a line has the name of a unit and nothing else ("Chapter I")."""
    return bool(label.unit) and label.unit not in _INNER_UNITS and not label.rest


def _title_below(
    text: str, blocks: Sequence[Block], index: int, label: _Label | None
) -> str:
    """Return the title in the block below a bare name ("Chapter I"), or "".

    It is a heading or a line in capitals that has no number of its own.
    """
    if label is None or not _lacks_title(label) or index + 1 >= len(blocks):
        return ""
    block = blocks[index + 1]
    title = plain_heading(text[block.start : block.end])
    is_loud = block.kind is BlockKind.PARAGRAPH and title.isupper()
    if not is_loud and block.kind is not BlockKind.HEADING:
        return ""
    if _heading_label(title, is_first=False) is not None:
        return ""
    return title if len(title) < MAX_TITLE_LENGTH else ""


def _repeats(label: _Label, stack: Sequence[_Open]) -> bool:
    """Tell whether a name stands again below the heading that has it already."""
    return _lacks_title(label) and any(
        opened.unit == label.unit and opened.own_number == label.number
        for opened in stack
    )


def _first_item(label: _Label) -> _Label | None:
    """Return the label of a first item on the line of its clause ("Art. 5. 1. …")."""
    inner = _parse_label(label.rest)
    if inner is None or not inner.style.startswith("bare"):
        return None
    is_first = inner.number in _FIRST_NUMBERS and not inner.number.isupper()
    return inner if is_first and inner.style != label.style and inner.rest else None


def _label_lines(text: str, block: Block) -> Iterator[tuple[int, str, bool]]:
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
    label = _clause_label(line)
    return label is not None and label.unit is not None


def _heading_label(whole: str, *, is_first: bool) -> _Label | None:
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


def _open_heading(
    text: str, block: Block, label: _Label | None, title: str, stack: list[_Open]
) -> _Open:
    """Open a heading; `title` is one that stands below it on a line of its own."""
    whole = plain_heading(text[block.start : block.end]) if not title else ""
    outline_level = max(1, block.level)
    while stack and _ends_at_heading(stack[-1], outline_level, label):
        _pop(text, stack, len(stack) - 1, block.start)
    level = outline_level
    if stack:
        level = max(level, stack[-1].level + 1)
    bare = label is not None and not label.label[:1].isalpha() and label.rank < 0
    if title and label:
        shown = f"{label.label.rstrip('.')} {title}"
    else:
        shown = f"{label.number} {label.rest}".strip() if label and bare else whole
        if label is not None and not label.rest:
            shown = label.label.rstrip(".")
    return _Open(
        kind="heading",
        style=label.style if label else "",
        rank=label.rank if label else -1,
        own_number=label.number if label else "",
        number=label.number if label else "",
        label=label.label if label else "",
        title=title or (label.rest if label else whole),
        level=level,
        outline_level=outline_level,
        start=block.start,
        path=(*(stack[-1].path if stack else ()), shown),
        unit=label.unit if label else None,
    )


def _ends_at_heading(opened: _Open, outline_level: int, label: _Label | None) -> bool:
    """Tell whether a heading ends an open section.

    One of the same level does not where it is a smaller unit: an article below a
    chapter, or a bare "II." below a "Part I".
    """
    if opened.kind == "clause" or opened.outline_level > outline_level:
        return True
    is_part_of = (
        opened.rank >= 0
        and label is not None
        and (label.rank > opened.rank or label.style.startswith("bare"))
    )
    return opened.outline_level == outline_level and not is_part_of


def _open_clause(text: str, start: int, label: _Label, stack: list[_Open]) -> _Open:
    label = _read_roman(label, stack)
    _pop(text, stack, _parent_count(label, stack), start)
    parent = stack[-1] if stack else None
    number, unit = label.number, label.unit
    is_inner = label.style.startswith("bare") or label.unit in _INNER_UNITS
    if is_inner and parent is not None and parent.number and "." not in number:
        number, unit = f"{parent.number}({label.number})", parent.unit
    title = _clause_title(label)
    shown = label.label.rstrip(".")
    level = (parent.level if parent else 0) + 1
    return _Open(
        kind="clause",
        style=label.style,
        rank=label.rank,
        own_number=label.number,
        number=number,
        label=label.label,
        title=title,
        level=level,
        outline_level=level,
        start=start,
        path=(*(parent.path if parent else ()), f"{shown} {title}".strip()),
        unit=unit,
    )


def _pop(text: str, stack: list[_Open], keep: int, end: int) -> None:
    """Close the sections above the first `keep` at `end`."""
    if len(stack) <= keep:
        return
    first = stack[keep].start
    end = first + len(text[first:end].rstrip()) if end - first < 200 else end
    while end > first and text[end - 1].isspace():
        end -= 1
    while len(stack) > keep:
        stack.pop().end = end


def _parent_count(label: _Label, stack: Sequence[_Open]) -> int:
    """Return how many open sections stay open around a clause with this label."""
    if label.rank >= 0:
        return _kept(stack, lambda opened: _yields_to_name(opened, label.rank))
    if label.style == "dotted":
        return _kept(stack, lambda opened: _yields_to_dotted(opened, label.number))
    first = label.number in _FIRST_NUMBERS
    for index in range(len(stack) - 1, -1, -1):
        opened = stack[index]
        if opened.kind == "heading" or opened.rank >= 0 or opened.style == "dotted":
            break
        if opened.style == label.style:
            restarts = first and index < len(stack) - 1
            return len(stack) if restarts else index
    if first and not label.number.isupper():
        return len(stack)
    return _kept(stack, _yields_to_bare)


def _kept(stack: Sequence[_Open], yields: Callable[[_Open], bool]) -> int:
    keep = len(stack)
    while keep and yields(stack[keep - 1]):
        keep -= 1
    return keep


def _yields_to_bare(opened: _Open) -> bool:
    """Tell whether an item that begins no list of its own ends an open one."""
    bare = opened.kind == "clause" and opened.style.startswith("bare")
    return bare and not opened.own_number.isupper()


def _yields_to_name(opened: _Open, rank: int) -> bool:
    return opened.kind == "clause" and (opened.rank < 0 or opened.rank >= rank)


def _yields_to_dotted(opened: _Open, number: str) -> bool:
    if opened.kind == "heading" or opened.rank >= 0:
        return False
    return not number.startswith(f"{opened.own_number}.")


def _read_roman(label: _Label, stack: Sequence[_Open]) -> _Label:
    """Read "(i)" as a letter only where "(h)" stands before it."""
    if label.style not in {"bare(a)", "bare a)"} or len(label.number) > 1:
        return label
    if label.number not in "ivxlcdm":
        return label
    roman = "bare" + label.style.removeprefix("bare").replace("a", "i")
    siblings = {opened.style: opened.own_number for opened in stack}
    before = siblings.get(label.style, "")
    if before and ord(before[-1]) == ord(label.number) - 1:
        return label
    if label.number == "i" or roman in siblings:
        return replace(label, style=roman)
    return label


def _clause_label(line: str) -> _Label | None:
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


def _parse_label(line: str) -> _Label | None:
    named = _NAMED.match(line)
    if named and _is_name(named):
        return _named_label(line, named)
    dotted = _DOTTED.match(line) or _LETTER_NUMBER.match(line)
    if dotted:
        rest = _rest(line, dotted.end())
        number = dotted["number"]
        return _Label("dotted", -1, number, number, rest, separated=True)
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
    return _Label(style, -1, label, number, _rest(line, bare.end()), separated=True)


def _is_name(named: re.Match[str]) -> bool:
    number = named["number"]
    if not number.isalpha():
        return True
    unit = _unit(named["name"])
    if not number.isupper():
        return unit is Unit.POINT and len(number) == 1
    roman = not set(number) - set("IVXLCDM")
    return roman or (unit in _LETTERED_UNITS and len(number) == 1)


def _named_label(line: str, named: re.Match[str]) -> _Label:
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
    return _Label(
        f"named{rank}", rank, shown, number, rest[end:].strip(), separated, unit
    )


def _unit(name: str) -> Unit:
    words = name.casefold().split()
    return _UNITS.get(" ".join(words)) or _UNITS[words[0]]


def _row_label(row: str) -> _Label | None:
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
    return _Label("dotted", -1, number, number, "", separated=True)


def _rest(line: str, end: int) -> str:
    separator = _SEPARATOR.match(line, end)
    return line[separator.end() if separator else end :].strip()


def _clause_title(label: _Label) -> str:
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
