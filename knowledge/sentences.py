"""Cut a text into sentences, for English, Vietnamese, Polish, Romanian, Russian.

Works on the text as it stands (Markdown source included): headings, list items,
table rows, lines of code and of logs are sentences of their own; lines that were
only wrapped are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Flag, auto

from knowledge.terms import FUNCTION_WORDS

# Never the last word of a sentence: a name or a number follows.
_LEAD_WORDS = """
adm al approx capt cf col cpt dept dr ed eds eq gen gov hon lt maj mr mrs ms mt
prof pt rev sgt sr st vol vs e.g i.e viz ca
abp bp dot dyr gm godz im inż kard kpt ks lek m.in mec mgr mjr np ob obw os płk por
rej rys św śp tj tłum tzn tzw ul ur woj wyd zam zm zob zw
bd bl cca ing jud mun ord sf str ştefan d-l d-na d-nei
адм акад буд гор доц ж.-д изд илл инж корп мин напр нач обл пер посл пос пр-т просп
проф ред рук св см соч ср тел т.е т.н т.к ул упр им
bs gs ks pgs tp ths ts ttg đ/c đc
"""
# Words that a number follows, or a word that ends its sentence.
_NUMBER_WORDS = """
art arts cap ch cl fig figs no nos op p para paras pl pp sec sect
lit nr pkt poz rozdz ust zał tab
alin ap pag par pct
гл кв кн п пп пом прим рис ст стр табл ф ч шт эт
q p tr
"""
# Last in its sentence only where the next word looks like a beginning.
_TRAIL_WORDS = """
a.m al bros co corp est etc jr ltd p.m ph.d u.k u.s u.n
b.c d.c itd itp in m.st ok p.n.e r s.a sp tys w wg zł
a.c d.hr dvs etc ș.a.m.d ş.a.m.d î.hr
в вв г гг др до.н.э коп м млн млрд н.э пр проч р руб руб сек т.д т.п т.ч тыс экз
v.v q
"""

_LEADS = frozenset(_LEAD_WORDS.split())
_BEFORE_NUMBERS = frozenset(_NUMBER_WORDS.split())
_TRAILS = frozenset(_TRAIL_WORDS.split())

_END = re.compile(
    r"(?<![.!?…])([.!?…]+)((?:[\"'”’»“)\]*_]|\[[^\]\s]{1,8}\])*)(?:\s+|(?<=[。！？]))(?=\S)"
    r"|[。！？]+[」』”）]*"
)
_WORD_BEFORE = re.compile(r"[^\s(\[\"'“„«‘*_|]*\Z")
_OPENERS = " \t\n\"'“„«‘(¿¡[*_-–—•"
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_ENUMERATOR = re.compile(
    r"[\s#>*_|(-]*(?:(?:\d{1,4}|[IVXLCDM]{1,7}|[ivxlcdm]{1,7}|[^\W\d_])"
    r"(?:\.\d{1,4})*[a-z]?|(?:art|§|điều|khoản|статья|ст|articolul|article|rozdział"
    r"|chapter|section|chương|mục)\W{1,3}[\dIVXLCDM]{1,7}[a-z]?)\W?",
    re.IGNORECASE,
)
_ROMAN_OR_LETTER = re.compile(r"(?:[IVXLCDM]+|[^\W\d_])\b")
_NEXT_WORD = re.compile(r"[^\W\d_]+")

_HEADING = re.compile(r" {0,3}#{1,6}\s")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_TABLE_ROW = re.compile(r"\s*\||.* \| |.*\S\s*\|\s*\Z")
_BULLET = re.compile(
    r"\s*(?:>\s*)*(?:[-*+•▪◦‣·●○■–—]\s|\(?(?:\d{1,3}|[^\W\d_]|[ivxlcdm]{1,6})\)\s|§\s?\d"
    r"|\[[ xX]\]\s|[☐☒☑]\s)"
)
_NUMBERED = re.compile(r"\s*(?:\d{1,3}(?:\.\d{1,3})*\.?|[^\W\d_]\.|[IVXLC]{1,6}\.)\s")
_LOG_LINE = re.compile(
    r"\s*\[?(?:\d{4}[-/.]\d\d[-/.]\d\d[T ]|\d{1,2}:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:"
    r"|\d{1,3}(?:\.\d{1,3}){3}\s|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b"
    r"|at [\w.$]+\()"
)
_JSON_LINE = re.compile(r'\s*(?:"[^"\n]{0,200}"\s*:|[\]{}[]{1,3},?\s*\Z)')
_BOLD_LINE = re.compile(r"\s*(?:\*\*[^*\n]+\*\*|__[^_\n]+__)\s*\Z")

# A line this much shorter than its paragraph's longest, or a paragraph with lines
# this long, was not made by wrapping.
_WRAPPED_SHARE = 0.75
_LONGEST_WRAPPED_LINE = 160


class _Shape(Flag):
    """What a line's shape says about it."""

    PLAIN = 0
    BLANK = auto()
    WHOLE = auto()
    BREAKS_BEFORE = auto()
    BREAKS_AFTER = auto()
    OWN = WHOLE | BREAKS_BEFORE | BREAKS_AFTER


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    shape: _Shape


def split_sentences(
    text: str, start: int = 0, end: int | None = None
) -> list[tuple[int, int]]:
    """Return the sentences of `text[start:end]` as (start, end) offsets into `text`.

    They cover the range without gaps; white space belongs to the sentence before
    it, and leading white space to the first. An empty range gives no sentence.
    """
    end = len(text) if end is None else end
    if start >= end:
        return []
    starts = [start]
    for first, last, whole in _runs(text, start, end):
        if first > starts[-1] and text[starts[-1] : first].strip():
            starts.append(first)
        if not whole:
            starts.extend(_inner_starts(text, first, last))
    return list(zip(starts, [*starts[1:], end], strict=True))


def split_at_end_marks(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a table row or other unit that is one sentence by its end marks alone."""
    starts = [start, *_inner_starts(text, start, end)]
    return list(zip(starts, [*starts[1:], end], strict=True))


def _runs(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, whole) of runs of lines that no sentence crosses."""
    first, whole, open_run = start, False, False
    before = _Shape.BLANK
    for line in _lines(text, start, end):
        if _Shape.BLANK in line.shape:
            before = line.shape
            continue
        cut = _Shape.BLANK in before or _Shape.BREAKS_AFTER in before
        if open_run and (cut or _Shape.BREAKS_BEFORE in line.shape):
            yield first, line.start, whole
            open_run = False
        if not open_run:
            first, whole, open_run = line.start, _Shape.WHOLE in line.shape, True
        before = line.shape
    if open_run:
        yield first, end, whole


def _lines(text: str, start: int, end: int) -> Iterator[_Line]:
    """Yield the lines of a range with what their shape says about breaks."""
    fence = ""
    for paragraph in _paragraphs(text, start, end):
        longest = max(last - first for first, last in paragraph)
        for index, (first, last) in enumerate(paragraph):
            line = text[first:last]
            mark = _FENCE.match(line)
            if fence or mark:
                if mark and not fence:
                    fence = mark[1]
                elif mark and mark[1].startswith(fence):
                    fence = ""
                shape = _Shape.OWN if line.strip() else _Shape.BLANK
            else:
                shape = _shape(text, paragraph, index, longest)
            yield _Line(first, shape)


def _shape(
    text: str, paragraph: list[tuple[int, int]], index: int, longest: int
) -> _Shape:
    """Return what the shape of a paragraph's line, and its neighbours', says."""
    line, after = _line_at(text, paragraph, index), _line_at(text, paragraph, index + 1)
    before = _line_at(text, paragraph, index - 1).rstrip() if index else ""
    if not line.strip():
        return _Shape.BLANK
    if _HEADING.match(line) or _BOLD_LINE.match(line) or _is_row(line):
        return _Shape.OWN
    if after and _UNDERLINE.match(after.rstrip("\n")):
        return _Shape.WHOLE | _Shape.BREAKS_BEFORE
    if before and _UNDERLINE.match(line.rstrip("\n")):
        return _Shape.WHOLE | _Shape.BREAKS_AFTER
    shape = _Shape.PLAIN
    if _begins_item(line, before):
        shape |= _Shape.BREAKS_BEFORE
    if after and not _is_wrapped(line, after, longest):
        shape |= _Shape.BREAKS_AFTER
    return shape


def _line_at(text: str, paragraph: list[tuple[int, int]], index: int) -> str:
    if index >= len(paragraph):
        return ""
    first, last = paragraph[index]
    return text[first:last]


def _begins_item(line: str, before: str) -> bool:
    if _BULLET.match(line):
        return True
    return bool(_NUMBERED.match(line)) and (not before or before[-1] in ".;:!?,…*")


def _is_row(line: str) -> bool:
    """Tell whether a line is a row of a table, of a log or of JSON."""
    if "|" in line and _TABLE_ROW.match(line):
        return True
    return bool(_LOG_LINE.match(line) or _JSON_LINE.match(line))


def _is_wrapped(line: str, after: str, longest: int) -> bool:
    """Tell whether a line end is only where the width ran out."""
    if longest > _LONGEST_WRAPPED_LINE or line.endswith(("  \n", "\\\n")):
        return False
    next_word = after.split(maxsplit=1)[0] if after.strip() else ""
    return len(line) + len(next_word) >= _WRAPPED_SHARE * longest


def _paragraphs(text: str, start: int, end: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the lines of each paragraph; a blank line is a paragraph of its own."""
    paragraph: list[tuple[int, int]] = []
    at = start
    while at < end:
        line_end = text.find("\n", at, end) + 1 or end
        if text[at:line_end].strip():
            paragraph.append((at, line_end))
        else:
            if paragraph:
                yield paragraph
                paragraph = []
            yield [(at, line_end)]
        at = line_end
    if paragraph:
        yield paragraph


def _inner_starts(text: str, start: int, end: int) -> list[int]:
    starts: list[int] = []
    sentence = start
    for match in _END.finditer(text, start, end):
        if match.end() < end and _ends_sentence(text, sentence, match):
            sentence = match.end()
            starts.append(sentence)
    return starts


def _ends_sentence(text: str, sentence: int, match: re.Match[str]) -> bool:
    mark = match[1]
    if mark is None:
        return True
    at = match.end()
    while at < len(text) and at < match.end() + 6 and text[at] in _OPENERS:
        at += 1
    following = text[at : at + 1]
    if not following.isalnum() or following.islower():
        return False
    if mark[-1] in "!?":
        return True
    if _ENUMERATOR.fullmatch(text, sentence, match.start()):
        return False
    return _full_stop_ends(text, match.start(), at, ellipsis=mark != ".")


def _full_stop_ends(text: str, stop: int, at: int, *, ellipsis: bool) -> bool:
    """Tell whether the full stop at `stop` ends a sentence; the next starts at `at`."""
    following = text[at]
    word_match = _WORD_BEFORE.search(text[max(0, stop - 40) : stop])
    word = word_match[0] if word_match else ""
    bare = word.casefold().rstrip(".")
    if following.isdecimal():
        known = bare in _LEADS | _TRAILS | _BEFORE_NUMBERS or ellipsis
        return not known and len(bare) > 3 and word.isalpha() and word.islower()
    if ellipsis:
        return True
    if bare in _LEADS or not word:
        return False
    if bare in _BEFORE_NUMBERS:
        return not _ROMAN_OR_LETTER.match(text, at)
    # A lower-case letter may be a word: "e" is Romanian for "is".
    is_word = word in FUNCTION_WORDS or bare in _TRAILS
    initial = len(word) == 1 and word.isalpha() and not is_word
    if initial or _DOTTED.fullmatch(word):
        return bare in _TRAILS and _begins_sentence(text, at)
    if bare in _TRAILS:
        return following.isupper()
    return True


def _begins_sentence(text: str, at: int) -> bool:
    word = _NEXT_WORD.match(text, at)
    return word is not None and word[0].casefold() in FUNCTION_WORDS
