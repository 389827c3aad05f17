"""The structure map of a document: its headings and numbered clauses.

Headings come from the blocks; numbered clauses are read from the lines: `7.2`,
`(b)`, `Article 12`, `§ 4 ust. 2`, `Điều 5`, `статья 5`, `Annex II`, and the like.
A clause inside a numbered one carries the whole number: the paragraph "2." of
Article 7 is `7(2)`, its point "(b)" is `7(2)(b)`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from knowledge.extraction.blocks import Block, BlockKind

MAX_TITLE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Section:
    """A heading or a numbered clause and the span of all it contains.

    `number` is normalised (`7.2`, `7(2)(b)`, `II`), empty if there is none; `label`
    is how it is written (`Article 12`); `path` holds the headings that lead here,
    the own one last (`7 Termination`, `7.2 Notice`).
    """

    kind: str
    number: str
    label: str
    title: str
    level: int
    start: int
    end: int
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Label:
    """A number at the start of a line: style groups siblings, rank orders names."""

    style: str
    rank: int
    label: str
    number: str
    rest: str
    separated: bool
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
    start: int
    path: tuple[str, ...]
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
        )


_ANNEX, _PART, _TITLE, _CHAPTER, _SECTION, _ARTICLE, _PARAGRAPH, _POINT = range(8)
_NAMES = {
    _ANNEX: "annex|appendix|schedule|exhibit|attachment|załącznik(?: nr)?|anexa(?: nr)?"
    r"|приложение(?: №)?|phụ lục",
    _PART: "part|część|partea|часть|phần",
    _TITLE: "title|titlul|tytuł|dział|cartea|księga",
    _CHAPTER: "chapter|rozdział|capitolul|cap|глава|chương",
    _SECTION: "section|secțiunea|secţiunea|sekcja|oddział|раздел|mục|tiểu mục",
    _ARTICLE: "article|articolul|artykuł|art|статья|ст|điều|clause|rule|§",
    _PARAGRAPH: "paragraph|alineatul|alin|ust|ustęp|khoản|пункт|п",
    _POINT: "point|lit|litera|pkt|punkt|điểm|подпункт|пп",
}
_RANKS = {
    name.replace("(?: nr)?", "").replace("(?: №)?", ""): rank
    for rank, names in _NAMES.items()
    for name in names.split("|")
}
_FIRST_NUMBERS = {"1", "a", "i", "A", "I"}
_LETTERED_RANKS = {_ANNEX, _PART, _POINT}
_NAMED = re.compile(
    rf"(?P<name>{'|'.join(_NAMES.values())})\.?\s{{0,3}}"
    r"(?P<number>\(?\d{1,4}(?:\.\d{1,3})*[a-zđ]?\)?(?:\(\w{1,4}\))*"
    r"|[IVXLCDM]{1,8}|[^\W\d_])(?!\w)"
    r"(?P<more>(?:,? (?:ust|alin|pkt|lit|п|ч)\. ?\(?\w{1,4}\)?)*)",
    re.IGNORECASE,
)
_MORE = re.compile(r"\(?(\w{1,4})\)?(?=,| |\Z)")
_DOTTED = re.compile(r"(?P<number>(?:[A-Z]\.?)?\d{1,3}(?:\.\d{1,3}){1,5})\.?(?=\s|\Z)")
_LETTER_NUMBER = re.compile(r"(?P<number>[A-Z]\d{1,3})(?=[\s:.–—-])")
_BARE = re.compile(
    r"(?P<open>\(?)(?P<number>\d{1,3}[a-z]?|[a-zđ]|[ivxlcdm]{1,6}|[IVXLC]{1,6}|[A-Z])"
    r"(?P<close>[.)])(?=\s|\Z)"
)
_MARKS = re.compile(r"[\s#>*_|•-]*")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_ANCHOR = re.compile(r"\s*\{#[\w-]+\}\s*\Z")
_SEPARATOR = re.compile(r"\**_*\s*[.:–—-]?\s*")
_STOPS = re.compile(r"[.:;](?=\s|\*|\Z)")
_ROW_CELL = re.compile(r"\s*\|?\s*\**([A-Z]?\d{1,3}(?:\.\d{1,3}){1,5})\**\s*\|\s*")

# What a line ends with if a numbered one may follow it.
_LINE_ENDS = frozenset(".;:!?,*")
_SHORT_LINE = 100
_LONGEST_CLAUSE_TITLE = 80
_LONGEST_CLAUSE_TITLE_WORDS = 10
_SHORTEST_ROW_TEXT = 20


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


def _openings(
    text: str, blocks: Sequence[Block], stack: list[_Open]
) -> Iterator[_Open]:
    """Yield the sections as they open; those they end are taken off the stack."""
    for block in blocks:
        if block.kind is BlockKind.HEADING:
            yield _open_heading(text, block, stack)
        elif block.kind is BlockKind.TABLE_ROW:
            label = _row_label(text[block.start : block.end])
            if label is not None:
                yield _open_clause(text, block.start, label, stack)
        elif block.kind in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}:
            for start, line, continues in _label_lines(text, block):
                label = _clause_label(line)
                if label is not None:
                    label = replace(label, continues=continues)
                    yield _open_clause(text, start, label, stack)


def _label_lines(text: str, block: Block) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines of a block that may start a clause, and whether one follows."""
    start, before = block.start, ""
    while start < block.end:
        end = text.find("\n", start, block.end)
        end = block.end if end < 0 else end
        line = text[start:end]
        if not before or before[-1] in _LINE_ENDS:
            open_end = line.rstrip()[-1:] not in _LINE_ENDS
            yield start, line, open_end and end < block.end
        before = line.rstrip() or before
        start = end + 1


def _open_heading(text: str, block: Block, stack: list[_Open]) -> _Open:
    source = text[block.start : block.end]
    whole = plain_heading(source)
    label = _parse_label(whole)
    if label is not None and label.rest[:1].islower():
        label = None
    level = max(1, block.level)
    while stack and (stack[-1].kind == "clause" or stack[-1].level >= level):
        _pop(text, stack, len(stack) - 1, block.start)
    bare = label is not None and not label.label[:1].isalpha() and label.rank < 0
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
        title=label.rest if label else whole,
        level=level,
        start=block.start,
        path=(*(stack[-1].path if stack else ()), shown),
    )


def _open_clause(text: str, start: int, label: _Label, stack: list[_Open]) -> _Open:
    label = _read_roman(label, stack)
    _pop(text, stack, _parent_count(label, stack), start)
    parent = stack[-1] if stack else None
    number = label.number
    if (label.style.startswith("bare") and parent is not None and parent.number) or (
        label.rank in {_PARAGRAPH, _POINT} and parent is not None and parent.number
    ):
        number = f"{parent.number}({label.number})"
    title = _clause_title(label)
    shown = label.label.rstrip(".")
    return _Open(
        kind="clause",
        style=label.style,
        rank=label.rank,
        own_number=label.number,
        number=number,
        label=label.label,
        title=title,
        level=(parent.level if parent else 0) + 1,
        start=start,
        path=(*(parent.path if parent else ()), f"{shown} {title}".strip()),
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
        return _Label(roman, -1, label.label, label.number, label.rest, separated=True)
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
    rank = _rank(named["name"])
    if not number.isupper():
        return rank == _POINT and len(number) == 1
    roman = not set(number) - set("IVXLCDM")
    return roman or (rank in _LETTERED_RANKS and len(number) == 1)


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
    rank = _rank(named["name"])
    separated = any(mark in rest[:end] for mark in ".:–—-")
    shown = " ".join(named[0].split())
    return _Label(f"named{rank}", rank, shown, number, rest[end:].strip(), separated)


def _rank(name: str) -> int:
    words = name.casefold().split()
    return _RANKS.get(" ".join(words), _RANKS.get(words[0], _ARTICLE))


def _row_label(row: str) -> _Label | None:
    """Return the label of a table row whose first cell is a clause number."""
    cell = _ROW_CELL.match(row)
    if cell is None:
        return None
    rest = row[cell.end() :].strip()
    text = rest.split("|", maxsplit=1)[0].strip()
    if len(text) < _SHORTEST_ROW_TEXT or text[:1].isdigit():
        return None
    return _Label("dotted", -1, cell[1], cell[1], "", separated=True)


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
    if stop is None and label.continues:
        return ""
    more = stop is not None and bool(label.rest[stop.end() :].strip("*_ "))
    if label.style.startswith("bare"):
        return title if stop is None or (more and stop[0] == ".") else ""
    return title
