"""Groups that make one reference: "point (b) of Article 6(1)"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from knowledge.naming import fold
from knowledge.structure.numbers import Unit, number_key, roman_value
from retrieval.clauses.groups import Group
from retrieval.clauses.references import Part, Reference
from retrieval.clauses.vocabulary import BESIDE, CONTAINERS, INNER, RANKS

# Words that also mean something else: without a dotted number they claim nothing.
_LOOSE = frozenset(
    {Unit.PART, Unit.TITLE, Unit.RULE, Unit.REQUIREMENT, Unit.PARAGRAPH, Unit.POINT}
)
# Beyond as many combinations, such as of "Articles 1 to 60, paragraphs 1 to 60", each
# number is still named, but not with each other one.
_MOST_COMBINATIONS = 24
_GLUE = re.compile(
    r"\s*[,(]?\s*(?:(?:of|in|under|from|din|al|ale|a|z|ze|w|we|в|из|к|cua|tai|thuoc|trong)"
    r"\s+)?(?:the\s+)?(?:artykulu\s+)?\s*"
)


@dataclass(frozen=True, slots=True)
class Chain:
    """Groups that make one reference, the containing ones first."""

    groups: tuple[Group, ...]
    start: int
    end: int
    is_reversed: bool


def chains_of(folded: str, groups: Sequence[Group]) -> list[Chain]:
    """Join the groups that are one reference: falling, or rising as in Vietnamese."""
    chains: list[Chain] = []
    run: list[Group] = []
    direction = 0
    for group in groups:
        step = 0
        if run and _GLUE.fullmatch(folded, run[-1].end, group.start):
            step = RANKS[group.unit] - RANKS[run[-1].unit]
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
    outer, inner = sorted((one, other), key=RANKS.__getitem__)
    return inner in INNER or outer in CONTAINERS


def _chain(run: Sequence[Group], *, is_reversed: bool) -> Chain:
    groups = tuple(reversed(run)) if is_reversed else tuple(run)
    return Chain(groups, run[0].start, run[-1].end, is_reversed)


def inherited_by(
    folded: str,
    chains: Sequence[Chain],
    index: int,
    before_outer: tuple[Group, ...],
) -> tuple[Group, ...]:
    """Return the units that a chain of inner ones shares with the one beside it.

    "Art. 5 ust. 1 i ust. 3" is twice of Article 5, "ust. 1 i ust. 3 art. 5" too.
    `before_outer` is what the chain before shares.
    """
    chain = chains[index]
    if chain.groups[0].unit not in INNER:
        return ()
    rank = RANKS[chain.groups[0].unit]
    if index:
        before = chains[index - 1]
        if BESIDE.fullmatch(folded, before.end, chain.start) and not before.is_reversed:
            inherited = before_outer + before.groups
            return tuple(one for one in inherited if RANKS[one.unit] < rank)
    if index + 1 < len(chains):
        after = chains[index + 1]
        if BESIDE.fullmatch(folded, chain.end, after.start) and after.is_reversed:
            return tuple(one for one in after.groups if RANKS[one.unit] < rank)
    return ()


def references_of(
    query: str, chain: Chain, outer: Sequence[Group]
) -> Iterator[Reference]:
    """Yield what a chain names; `outer` are the units that it shares with another."""
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


def _with_russian_parts(groups: Sequence[Group]) -> list[Group]:
    """Read "часть 2 статьи 5" as the second paragraph of the article."""
    changed = [
        replace(group, unit=Unit.PARAGRAPH)
        if group.unit is Unit.PART and fold(group.label)[:1] == "ч"
        else group
        for group in groups
    ]
    return sorted(changed, key=lambda group: RANKS[group.unit])


def _reference(written: str, parts: Sequence[Part]) -> Reference:
    """Make one reference of its parts: what contains it, its root, what is inside."""
    root = next(
        (i for i, (unit, _number) in enumerate(parts) if unit not in CONTAINERS),
        len(parts) - 1,
    )
    if parts[root][0] in INNER and root:
        root -= 1
    unit, number = parts[root]
    inner = [number for _unit, number in parts[root + 1 :]]
    if unit not in CONTAINERS or inner:
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
