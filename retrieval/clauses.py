"""The clauses that a question names: `Article 12`, `§ 4 ust. 2`, `khoản 2 Điều 5`.

Labels are read in five languages, in their inflected forms, with or without accents;
ranges and lists ("Articles 5 and 6") are several references, nested ones
("point (b) of Article 6(1)") are one. Bare numbers (`4.3.2`, `7(2)(b)`) count where
they cannot be a version, an amount or a part of a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from knowledge.naming import fold
from knowledge.structure.numbers import Unit, number_key, roman_value

MOST_REFERENCES = 50
BARE = "bare"

Part = tuple[Unit, str]


@dataclass(frozen=True, slots=True)
class Reference:
    """One clause that a question names.

    `kind` is the unit whose number is meant, or "bare"; `number` the whole number as
    `number_key` gives it (`28(2)(a)`). `labelled` tells that it can be nothing but a
    clause. `within` are the containing units, the outermost first. `before` and
    `after` are the words beside it, which may name its document; `connected` tells
    that a preposition links the latter. `lead` is what opens the question ("In the
    Statute, …"). A bare number that is `attached` to a name may be its version.
    """

    written: str
    kind: str
    number: str
    labelled: bool
    within: tuple[Part, ...] = ()
    before: str = ""
    after: str = ""
    connected: bool = False
    lead: str = ""
    version: str = ""
    attached: bool = False


# Words on folded text; the longer of two that begin alike wins by the word's end.
_WORDS: tuple[tuple[Unit, str], ...] = (
    (
        Unit.ANNEX,
        (
            r"annex(?:es)?|appendi(?:x|ces)|schedules?|exhibits?|attachments?"
            r"|zalaczni\w{1,5}|anex(?:a|e|ei|ele|elor)|приложени\w{1,3}|phu luc"
        ),
    ),
    (Unit.PART, r"parts?|czesc(?:i|ia)?|partea|partii|част(?:ь|и|ью|ях)|ч|phan"),
    (Unit.TITLE, r"titles?|titlul(?:ui)?|tytul\w{0,2}|dzial\w{0,2}|cartea|ksieg\w"),
    (
        Unit.CHAPTER,
        r"chapters?|rozdzial\w{0,3}|rozdz|capitol\w{0,5}|cap|глав\w{1,3}|гл|chuong",
    ),
    (
        Unit.SECTION,
        (
            r"sections?|sect|sec|sectiun\w{1,4}|sekcj\w{1,3}|oddzial\w{0,3}|раздел\w{0,3}"
            r"|muc"
        ),
    ),
    (
        Unit.SUBSECTION,
        r"subsections?|subsectiun\w{1,4}|podrozdzial\w{0,3}|подраздел\w{0,3}|tieu muc",
    ),
    (
        Unit.ARTICLE,
        r"articles?|articol\w{0,5}|artykul\w{0,4}|arts?|стат(?:ь\w{1,3}|еи)|ст|dieu",
    ),
    (Unit.CLAUSE, r"clauses?|clauz\w{1,4}|klauzul\w{0,3}"),
    (Unit.RULE, r"rules?"),
    (Unit.SIGN, r"§{1,2}|paragraf(?:u|ie|em|ow|y|ach)?"),
    (
        Unit.REQUIREMENT,
        (
            r"requirements?|req|controls?|wymagani\w{1,4}|cerint\w{1,4}|требовани\w{1,3}"
            r"|yeu cau"
        ),
    ),
    (Unit.RECITAL, r"recitals?|motyw\w{0,3}|considerent\w{0,4}"),
    (
        Unit.PARAGRAPH,
        (
            r"paragraphs?|paras?|paragraf(?:ul|ului|ele|elor)|alineat\w{0,4}|alin"
            r"|ustep\w{0,3}|ustp?|пункт\w{0,3}|п|khoan"
        ),
    ),
    (
        Unit.POINT,
        (
            r"points?|liter\w{1,2}|lit|pkt|punkt\w{0,3}|punct\w{0,4}|pct|подпункт\w{0,3}"
            r"|пп|diem"
        ),
    ),
)
_UNIT_PATTERNS = [(unit, re.compile(words)) for unit, words in _WORDS]
_RANKS = {unit: index for index, (unit, _words) in enumerate(_WORDS)}
_CONTAINERS = frozenset(list(_RANKS)[: _RANKS[Unit.ARTICLE]])
_INNER = frozenset({Unit.PARAGRAPH, Unit.POINT})
# Words that also mean something else: without a dotted number they claim nothing.
_LOOSE = frozenset(
    {Unit.PART, Unit.TITLE, Unit.RULE, Unit.REQUIREMENT, Unit.PARAGRAPH, Unit.POINT}
)
# Abbreviations that are other words with an accent ("cấp 1" is a level in Vietnamese).
_PLAIN = frozenset({"cap", "art", "alin", "ust", "lit", "pkt", "pct", "sec", "para"})
# After these a lone letter is a number, and no word of the sentence.
_LETTERED = re.compile(r"annex|appendix|lit|liter\w{1,2}|diem|пп|подпункт\w{0,3}|pkt")
# Vietnamese labels whose letters, without their tones, are other words too.
_TONED = {"muc": "mục", "diem": "điểm", "phan": "phần", "dieu": "điều"}
# Beyond as many combinations, such as of "Articles 1 to 60, paragraphs 1 to 60", each
# number is still named, but not with each other one.
_MOST_COMBINATIONS = 24
# So many numbers of a text are spelt out between the ends of ranges.
_MOST_SPELT_OUT = 1000
_RAISED = "¹²³⁴⁵⁶⁷⁸⁹"
_NUMBER = (
    r"(?:\((?:\d{1,3}|[^\W\d_]|[ivx]{2,5})\)"
    rf"|(?:[a-z]\.?)?\d{{1,4}}(?:\^\d{{1,2}}|[{_RAISED}])?(?:\.(?:\d{{1,3}}|[^\W\d_](?!\w)))*"
    rf"[a-z]?|[ivxlcdm]{{1,8}}(?:\.(?:\d{{1,3}}|[^\W\d_](?!\w)))*|[^\W\d_])(?![^\W(])"
    r"(?:\s?\((?:\d{1,3}|[^\W\d_]|[ivx]{2,5})\))*"
)
_AND = r"and|or|&|i|oraz|lub|si|sau|и|или|va|hoac"
_TO = r"to|through|do|pana la|la|по|до|den|[-–—]"
_BETWEEN = rf"\s*(?:,\s*(?:(?:{_AND})\s+)?|\s(?:{_AND})\s+|\s?(?:{_TO})\s?)\s*"
_LABEL = "|".join(words for _unit, words in _WORDS)
_GROUP = re.compile(
    rf"(?:(?<!\w)(?P<label>{_LABEL})(?!\w)\.?\s{{0,3}}"
    rf"(?:(?:nr|no|num|№|so|number)\.?\s{{0,2}})?)"
    rf"(?P<first>{_NUMBER})(?P<more>(?:{_BETWEEN}(?:{_NUMBER})(?!\w))*)"
)
_ITEM = re.compile(rf"(?P<between>{_BETWEEN})(?P<number>{_NUMBER})")
_VERSIONED = re.compile(
    r"(?<![\w.])v?(?P<version>\d{1,3}(?:\.\d{1,3}){1,2})-(?P<number>\d{1,3}(?:\.\d{1,3}){1,4})"
    r"(?![\w-]|\.\d)"
)
_BARE = re.compile(
    r"(?<![\w./:,-])(?P<number>(?:v|[a-z]\.)?\d{1,3}(?:(?:\.\d{1,3}){1,5}(?:\(\w{1,4}\))*"
    r"|(?:\(\w{1,4}\))+))(?![\w/:%-]|[.,]\d|\.\w|\s?[%°€$£₫])"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:\.\d{3})+")
_DATE = re.compile(r"[0-3]?\d\.[01]?\d\.\d\d")
_AMOUNT_AFTER = re.compile(
    r"\s?(?:percent|per cent|million|billion|thousand|times|k|m|mm|cm|km|kg|g|gb|mb|kb|tb"
    r"|ghz|mhz|ms|s|sec\w*|min\w*|hours?|days?|weeks?|months?|years?|eur\w*|usd|dollar\w*"
    r"|zl|zlot\w*|pln|lei|ron|руб\w*|млн|млрд|тыс\w*|mln|mld|mil\w*|tys|trieu|ty|nghin"
    r"|dong|vnd|bits?|bytes?|proc\w*|процент\w*|phan tram|лет|год\w*|lat|ani|nam)(?!\w)"
)
_AMOUNT_BEFORE = re.compile(r"[$€£₫]\s?\Z")
_VERSION_WORD = re.compile(
    r"(?:version|ver|release|wersj\w*|versiun\w*|верси\w*|phien ban|v)\.?\s*\Z"
)
_LAST_WORD = re.compile(r"([^\s,;:()\"“”]+)\s+\Z")
_GLUE = re.compile(
    r"\s*[,(]?\s*(?:(?:of|in|under|from|din|al|ale|a|z|ze|w|we|в|из|к|cua|tai|thuoc|trong)"
    r"\s+)?(?:the\s+)?(?:artykulu\s+)?\s*"
)
_BESIDE = re.compile(rf"\s*(?:,|{_AND}|, (?:{_AND}))\s*")
_BOUNDARY = re.compile(r"[?!;:()\"“”„«»\n]|[.](?=\s|\Z)|\s[–—-]\s")
_CONJUNCTION = re.compile(rf"\s(?:{_AND}|but|says?)(?!\w)|,")
_CONNECTOR = re.compile(
    r"\s*,?\s*(?:of|in|from|under|din|al|ale|a|z|ze|w|we|из|в|cua|trong|thuoc|tai|to)\s+"
    r"(?:the\s+|this\s+)?"
)
_LEAD = re.compile(
    r"\s*(?:in|under|according to|per|by|within|w|we|wedlug|zgodnie z|na mocy|conform"
    r"|potrivit|din|в|во|по|согласно|trong|theo|tai)\s+(?P<name>[^,:;?!]{2,120}),"
)


@dataclass(frozen=True, slots=True)
class _Group:
    """A label and its numbers, as they stand: "khoản 1, 2"."""

    unit: Unit
    label: str
    numbers: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Chain:
    """Groups that make one reference, the containing ones first."""

    groups: tuple[_Group, ...]
    start: int
    end: int
    is_reversed: bool


def find_references(query: str) -> tuple[Reference, ...]:
    """Return the clauses that a question names, in order, each once; 50 at most."""
    folded = fold(query)
    found, groups = _labelled(query, folded)
    read = [(start, end) for start, end, several in found if several[0].version]
    read += [(group.start, group.end) for group in groups]
    taken = _blanked(folded, read)
    for match in _BARE.finditer(taken):
        bare = _bare(query, taken, match)
        if bare is not None:
            found.append((match.start(), match.end(), [bare]))
    found.sort(key=lambda one: one[0])
    # What may be a version is a part of a name.
    spans = [span for *span, several in found if not several[0].attached]
    lead = _lead(query, folded)
    references: dict[tuple[str, str, tuple[Part, ...], str], Reference] = {}
    for start, end, several in found:
        before, after, connected = _beside(query, folded, spans, start, end)
        for one in several:
            key = (one.kind, one.number, one.within, one.version)
            placed = replace(
                one, before=before, after=after, connected=connected, lead=lead
            )
            references.setdefault(key, placed)
    return tuple(references.values())[:MOST_REFERENCES]


def placed_references(text: str) -> Iterator[tuple[int, int, Sequence[Reference]]]:
    """Yield (start, end, references) of all labelled clauses of a text, in order.

    For texts of any length, in linear time; bare numbers are not read.
    """
    found, _groups_of_them = _labelled(text, fold(text))
    yield from sorted(found, key=lambda one: one[:2])


def _labelled(
    query: str, folded: str
) -> tuple[list[tuple[int, int, list[Reference]]], list[_Group]]:
    """Return where labelled clauses stand and what they are, and their groups."""
    found = [
        (match.start(), match.end(), [_versioned(query, match)])
        for match in _VERSIONED.finditer(folded)
    ]
    rest = _blanked(folded, [(start, end) for start, end, _ in found])
    groups = list(_groups(query, rest))
    chains = _chains(rest, groups)
    before: tuple[_Group, ...] = ()
    for index, chain in enumerate(chains):
        outer = before = _inherited(rest, chains, index, before)
        found.append((chain.start, chain.end, list(_references(query, chain, outer))))
    return found, groups


def without_references(query: str) -> str:
    """Return a question without the clauses that it names, for what calls documents."""
    folded = fold(query)
    spans = [match.span() for match in _VERSIONED.finditer(folded)]
    spans += [(group.start, group.end) for group in _groups(query, folded)]
    return _blanked(query, spans)


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    kept, at = [], 0
    for start, end in sorted(spans):
        kept += [text[at:start], "\x00" * (end - max(start, at))]
        at = max(end, at)
    return "".join([*kept, text[at:]])


def _versioned(query: str, match: re.Match[str]) -> Reference:
    return Reference(
        written=query[match.start() : match.end()],
        kind=Unit.REQUIREMENT,
        number=number_key(match["number"]),
        labelled=True,
        version=match["version"],
    )


# --- Labels and their numbers ---------------------------------------------------


def _groups(query: str, folded: str) -> Iterator[_Group]:
    at, count = 0, 0
    while match := _GROUP.search(folded, at):
        unit = next(u for u, words in _UNIT_PATTERNS if words.fullmatch(match["label"]))
        spells_out = count < _MOST_SPELT_OUT
        numbers = list(_numbers(query, match, unit, spells_out=spells_out))
        count += len(numbers)
        if not numbers or not _is_label(query, match):
            at = match.end("label")
            continue
        end = numbers[-1][1]
        yield _Group(
            unit=unit,
            label=query[match.start() : match.start("first")].strip(),
            numbers=tuple(number for number, _end in numbers),
            start=match.start(),
            end=end,
        )
        at = end


def _is_label(query: str, match: re.Match[str]) -> bool:
    """Tell a label from a word that only looks like one when it is folded."""
    label, first = match["label"], match["first"]
    written = query[match.start("label") : match.end("label")].lower()
    if written != label and (label in _PLAIN or written != _TONED.get(label, written)):
        return False
    is_lone = len(first) == 1 and query[match.start("first")].islower()
    is_closed = query[match.end("first") : match.end("first") + 1] == ")"
    return not is_lone or is_closed or _LETTERED.fullmatch(label) is not None


def _numbers(
    query: str, match: re.Match[str], unit: Unit, *, spells_out: bool
) -> Iterator[tuple[str, int]]:
    """Yield the numbers of a label as they are written, with their ends.

    Those between the ends of a range come too where `spells_out` says so.
    """
    first = query[match.start("first") : match.end("first")]
    if not _is_number(first, unit):
        return
    yield first, match.end("first")
    at, last = match.end("first"), first
    folded = match.string
    while at < match.end("more") and (item := _ITEM.match(folded, at)):
        number = query[item.start("number") : item.end("number")]
        plain = re.fullmatch(r"[\d.]+[a-z]?|[IVX]+|\(?\w\)?", number)
        if not _is_number(number, unit) or (not plain and not number[0].isdecimal()):
            return
        several = _up_to(last, number, item["between"]) if spells_out else [number]
        for one in several:
            yield one, item.end()
        at, last = item.end(), number


def _up_to(first: str, last: str, between: str) -> Iterator[str]:
    """Yield the numbers after the first of a range, or the one of a list."""
    is_range = re.fullmatch(rf"\s*(?:{_TO})\s*", between) is not None
    if is_range and first.isdecimal() and last.isdecimal():
        low, high = int(first), int(last)
        if low < high:
            yield from (str(n) for n in range(low + 1, min(high, low + 60) + 1))
            return
    yield last


def _is_number(number: str, unit: Unit) -> bool:
    """Tell whether what follows a label is a number of it, and no word."""
    outer = number.partition("(")[0].strip() or number.strip("()")
    head = outer.partition(".")[0]
    is_prefix = head.isalpha() and len(head) == 1 and outer[1:2] == "."
    if not head.isalpha() or number.startswith("(") or is_prefix:
        return True
    if set(head.upper()) <= set("IVXLCDM") and roman_value(head.upper()) < 200:
        if head.isupper():
            return True
        if unit in _CONTAINERS and len(head) > 1 and set(head) <= set("ivx"):
            return True
    if len(head) > 1:
        return False
    if unit in {Unit.ANNEX, Unit.PART}:
        return head.isupper()
    return unit is Unit.POINT or (unit is Unit.PARAGRAPH and number.startswith("("))


def _chains(folded: str, groups: Sequence[_Group]) -> list[_Chain]:
    """Join the groups that are one reference: falling, or rising as in Vietnamese."""
    chains: list[_Chain] = []
    run: list[_Group] = []
    direction = 0
    for group in groups:
        step = 0
        if run and _GLUE.fullmatch(folded, run[-1].end, group.start):
            step = _RANKS[group.unit] - _RANKS[run[-1].unit]
            if "," in folded[run[-1].end : group.start] and not _may_contain(
                run[-1].unit, group.unit
            ):
                step = 0
        # "Part" is a paragraph of an article in Russian.
        goes_on = step != 0 and (direction == 0 or (step > 0) == (direction > 0))
        if run and not goes_on:
            chains.append(_chain(run, is_reversed=direction < 0))
            run, direction = [], 0
        if run:
            direction = step
        run.append(group)
    if run:
        chains.append(_chain(run, is_reversed=direction < 0))
    return chains


def _may_contain(one: Unit, other: Unit) -> bool:
    """Tell whether units that a comma parts can be one reference, and no list."""
    outer, inner = sorted((one, other), key=_RANKS.__getitem__)
    return inner in _INNER or outer in _CONTAINERS


def _chain(run: Sequence[_Group], *, is_reversed: bool) -> _Chain:
    groups = tuple(reversed(run)) if is_reversed else tuple(run)
    return _Chain(groups, run[0].start, run[-1].end, is_reversed)


def _inherited(
    folded: str,
    chains: Sequence[_Chain],
    index: int,
    before_outer: tuple[_Group, ...],
) -> tuple[_Group, ...]:
    """Return the units that a chain of inner ones shares with the one beside it.

    "Art. 5 ust. 1 i ust. 3" is twice of Article 5, "ust. 1 i ust. 3 art. 5" too.
    `before_outer` is what the chain before shares.
    """
    chain = chains[index]
    if chain.groups[0].unit not in _INNER:
        return ()
    rank = _RANKS[chain.groups[0].unit]
    if index:
        before = chains[index - 1]
        if (
            _BESIDE.fullmatch(folded, before.end, chain.start)
            and not before.is_reversed
        ):
            inherited = before_outer + before.groups
            return tuple(one for one in inherited if _RANKS[one.unit] < rank)
    if index + 1 < len(chains):
        after = chains[index + 1]
        if _BESIDE.fullmatch(folded, chain.end, after.start) and after.is_reversed:
            return tuple(one for one in after.groups if _RANKS[one.unit] < rank)
    return ()


def _references(
    query: str, chain: _Chain, outer: Sequence[_Group]
) -> Iterator[Reference]:
    groups = [*outer, *chain.groups]
    if any(group.unit is Unit.ARTICLE for group in groups):
        groups = _with_russian_parts(groups)
    whole = query[chain.start : chain.end]
    several = any(len(group.numbers) > 1 for group in groups)
    for numbers in _combinations([group.numbers for group in groups]):
        parts = [
            (group.unit, number_key(_plain(number)))
            for group, number in zip(groups, numbers, strict=True)
        ]
        written = whole
        if several or outer:
            written = ", ".join(
                f"{group.label} {number}"
                for group, number in zip(groups, numbers, strict=True)
            )
        yield _reference(written, parts)


def _combinations(numbers: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield each number of a unit with those of the others."""
    if prod(len(each) for each in numbers) <= _MOST_COMBINATIONS:
        yield from product(*numbers)
        return
    for index in range(max(len(each) for each in numbers)):
        yield tuple(each[index % len(each)] for each in numbers)


def _with_russian_parts(groups: Sequence[_Group]) -> list[_Group]:
    """Read "часть 2 статьи 5" as the second paragraph of the article."""
    changed = [
        replace(group, unit=Unit.PARAGRAPH)
        if group.unit is Unit.PART and fold(group.label)[:1] == "ч"
        else group
        for group in groups
    ]
    return sorted(changed, key=lambda group: _RANKS[group.unit])


def _reference(written: str, parts: Sequence[Part]) -> Reference:
    """Make one reference of its parts: what contains it, its root, what is inside."""
    root = next(
        (i for i, (unit, _number) in enumerate(parts) if unit not in _CONTAINERS),
        len(parts) - 1,
    )
    if parts[root][0] in _INNER and root:
        root -= 1
    unit, number = parts[root]
    inner = [number for _unit, number in parts[root + 1 :]]
    if unit not in _CONTAINERS or inner:
        number = _bracketed(unit, number)
    labelled = (
        unit not in _LOOSE
        or "." in number
        or any(other not in _LOOSE for other, _ in parts[:root])
    )
    return Reference(
        written=written,
        kind=unit,
        number=number + "".join(f"({one})" for one in inner),
        labelled=labelled,
        within=tuple(parts[:root]),
    )


def _bracketed(unit: Unit, number: str) -> str:
    """Return `6.1.a` as `6(1)(a)`: a point is never counted by dots alone."""
    outer, *more = number.split(".")
    if more and outer and set(outer.upper()) <= set("IVXLCDM"):
        return str(roman_value(outer.upper())) + "".join(f"({one})" for one in more)
    if not more or not any(one[:1].isalpha() for one in more):
        return number
    digits = [one for one in more if not one[:1].isalpha()]
    if unit in {Unit.CLAUSE, Unit.REQUIREMENT}:
        head = ".".join([outer, *digits])
        return head + "".join(f"({one})" for one in more[len(digits) :])
    return outer + "".join(f"({one})" for one in more)


def _plain(number: str) -> str:
    number = re.sub(r"\s+", "", number)
    if number.startswith("(") and number.endswith(")") and number.count("(") == 1:
        return number[1:-1]
    outer, bracket, inner = number.partition("(")
    if outer.isalpha() and outer.islower() and len(outer) > 1:
        outer = outer.upper()
    return f"{outer}{bracket}{inner}"


# --- Bare numbers ---------------------------------------------------------------


def _bare(query: str, folded: str, match: re.Match[str]) -> Reference | None:
    """Return the reference that a bare number may be, or None."""
    number = match["number"]
    before, after = folded[: match.start()], folded[match.end() :]
    is_amount = _AMOUNT_AFTER.match(after) or _AMOUNT_BEFORE.search(before)
    if is_amount or _THOUSANDS.fullmatch(number) or _DATE.fullmatch(number):
        return None
    attached = False
    word = _LAST_WORD.search(query[: match.start()])
    if word is not None:
        begins = not query[: word.start()].strip()
        is_short = number.count(".") < 2
        attached = word[1][0].isupper() and (
            is_short or not begins or (len(word[1]) > 1 and word[1].isupper())
        )
        attached = attached or any(character.isdecimal() for character in word[1])
    if _VERSION_WORD.search(before):
        return None
    return Reference(
        written=query[match.start() : match.end()],
        kind=BARE,
        number=number_key(number),
        labelled=False,
        attached=attached,
    )


# --- The words beside a reference -----------------------------------------------


def _lead(query: str, folded: str) -> str:
    match = _LEAD.match(folded)
    return query[match.start("name") : match.end("name")] if match else ""


def _beside(
    query: str, folded: str, spans: Sequence[Sequence[int]], start: int, end: int
) -> tuple[str, str, bool]:
    """Return the words before and after a reference, and whether the latter is linked.

    References that only a comma or a conjunction parts have the same words beside them.
    """
    left_end, right_start = start, end
    left_start, right_end = 0, len(query)
    for before in reversed([span for span in spans if span[1] <= start]):
        if not _BESIDE.fullmatch(folded, before[1], left_end):
            left_start = before[1]
            break
        left_end = before[0]
    for after in (span for span in spans if span[0] >= end):
        if not _BESIDE.fullmatch(folded, right_start, after[0]):
            right_end = after[0]
            break
        right_start = after[1]
    left = query[left_start:left_end].rstrip().removesuffix(",")
    bounds = [match.end() for match in _BOUNDARY.finditer(left)]
    left = left[bounds[-1] if bounds else 0 :].strip()
    connector = _CONNECTOR.match(folded, right_start, right_end)
    at = connector.end() if connector else right_start
    stops = [
        stop.start()
        for pattern in (_BOUNDARY, _CONJUNCTION)
        if (stop := pattern.search(folded, at, right_end))
    ]
    return left, query[at : min([*stops, right_end])].strip(), connector is not None


# --- Where a reference may stand in a document ----------------------------------


# Up to this tier a form leaves no doubt; what others match counts where it has nothing.
FIRM = 1


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which documents write what a reference means, the best tier first.

    `units` are what its number may count, "" for what the text does not tell, None for
    anything. `headed` asks for a heading or title, so that a list's item is none.
    `inline` is an item of the section that only its text holds.
    """

    key: str
    tier: int
    units: tuple[str, ...] | None
    within: tuple[Part, ...] = ()
    headed: bool = False
    inline: str = ""


_ALIKE = {
    Unit.SECTION: (Unit.SUBSECTION, Unit.SIGN),
    Unit.SUBSECTION: (Unit.SECTION,),
    Unit.SIGN: (Unit.SECTION,),
    Unit.CLAUSE: (Unit.SECTION,),
    Unit.REQUIREMENT: (Unit.RULE,),
}
# What is often numbered without a word: "7. Term", "12.6.1 Allow lists", "(85)".
_WORDLESS = frozenset(
    {
        Unit.SECTION,
        Unit.SUBSECTION,
        Unit.CLAUSE,
        Unit.CHAPTER,
        Unit.RULE,
        Unit.REQUIREMENT,
        Unit.RECITAL,
        Unit.PARAGRAPH,
        Unit.POINT,
    }
)
_LAST_BRACKET = re.compile(r"(.+)\((\w+)\)")


def forms_of(reference: Reference) -> tuple[Form, ...]:
    """Return the ways in which documents may write a reference."""
    number, within = reference.number, reference.within
    forms = [*_direct_forms(reference.kind, number, within)]
    inner = _LAST_BRACKET.fullmatch(number)
    is_outermost = inner is None and not within
    if reference.kind in _CONTAINERS and not is_outermost and inner is not None:
        outer, _, rest = number.partition("(")
        key = rest.replace(")", "", 1)
        containing = (*within, (Unit(reference.kind), outer))
        units = ("", Unit.PARAGRAPH, Unit.POINT, Unit.SECTION, Unit.ARTICLE)
        forms.append(Form(key, 2, units, containing))
    if inner is not None:
        # The item may stand in the running text of what contains it.
        forms += [
            replace(form, tier=form.tier + 5, inline=inner[2], headed=False)
            for form in _direct_forms(reference.kind, inner[1], within)
            if form.tier <= FIRM
        ]
    return tuple(forms)


def _direct_forms(kind: str, number: str, within: tuple[Part, ...]) -> Iterator[Form]:
    outer = number.partition("(")[0]
    dotted = "." in outer
    if kind == BARE:
        yield Form(number, 0, None, within)
    else:
        yield from _unit_forms(Unit(kind), number, within, dotted=dotted)
    if outer[:1] == "v" and outer[1:2].isdecimal():
        yield Form(number[1:], 2, None, within)
    elif dotted or kind == Unit.CHAPTER:
        yield Form(f"v{number}", 2, ("",), within)


def _unit_forms(
    unit: Unit, number: str, within: tuple[Part, ...], *, dotted: bool
) -> Iterator[Form]:
    yield Form(number, 0, (unit,), within)
    if unit in _WORDLESS or dotted:
        headed = not dotted and "(" not in number and unit is not Unit.RECITAL
        yield Form(number, 1, ("",), within, headed=headed)
    if unit in _ALIKE:
        yield Form(number, 2, _ALIKE[unit], within)
    if dotted:
        # "Article 27.4" is written for "27(4)", and "clause 7.2" for a "2." below "7.".
        outer, bracket, inner = number.partition("(")
        head, *more = outer.split(".")
        nested = head + "".join(f"({one})" for one in more) + bracket + inner
        yield Form(nested, 2, (unit,), within)
        if unit is not Unit.ARTICLE:
            yield Form(nested, 3, ("",), within)


def units_alike(unit: Unit) -> tuple[Unit, ...]:
    """Return the units that a question may mean by the name of one."""
    return (unit, *_ALIKE.get(unit, ()))
