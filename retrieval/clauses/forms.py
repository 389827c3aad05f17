"""How documents may write a reference, and so where it may stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from knowledge.structure.numbers import Unit
from retrieval.clauses.references import BARE, Part, Reference
from retrieval.clauses.vocabulary import CONTAINERS

# Up to this tier a form leaves no doubt; what others match counts where it has nothing.
FIRM = 1

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


def forms_of(reference: Reference) -> tuple[Form, ...]:
    """Return the ways in which documents may write a reference."""
    number, within = reference.number, reference.within
    forms = [*_direct_forms(reference.kind, number, within)]
    inner = _LAST_BRACKET.fullmatch(number)
    is_outermost = inner is None and not within
    if reference.kind in CONTAINERS and not is_outermost and inner is not None:
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
