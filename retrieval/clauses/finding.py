"""The clauses that a question names: `Article 12`, `§ 4 ust. 2`, `khoản 2 Điều 5`.

Labels are read in five languages, in their inflected forms, with or without accents;
ranges and lists ("Articles 5 and 6") are several references, nested ones
("point (b) of Article 6(1)") are one. Bare numbers (`4.3.2`, `7(2)(b)`) count where
they cannot be a version, an amount or a part of a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from knowledge.naming import fold
from knowledge.structure.numbers import Unit, number_key
from retrieval.clauses.bare import BARE_NUMBER, bare_reference
from retrieval.clauses.beside import lead_of, words_beside
from retrieval.clauses.chains import chains_of, inherited_by, references_of
from retrieval.clauses.groups import Group, groups_in
from retrieval.clauses.references import Part, Reference

MOST_REFERENCES = 50

_VERSIONED = re.compile(
    r"(?<![\w.])v?(?P<version>\d{1,3}(?:\.\d{1,3}){1,2})-(?P<number>\d{1,3}(?:\.\d{1,3}){1,4})"
    r"(?![\w-]|\.\d)"
)


def find_references(query: str) -> tuple[Reference, ...]:
    """Return the clauses that a question names, in order, each once; 50 at most."""
    folded = fold(query)
    found, groups = _labelled(query, folded)
    read = [(start, end) for start, end, several in found if several[0].version]
    read += [(group.start, group.end) for group in groups]
    taken = _blanked(folded, read)
    for match in BARE_NUMBER.finditer(taken):
        bare = bare_reference(query, taken, match)
        if bare is not None:
            found.append((match.start(), match.end(), [bare]))
    found.sort(key=lambda one: one[0])
    # What may be a version is a part of a name.
    spans = [span for *span, several in found if not several[0].attached]
    lead = lead_of(query, folded)
    references: dict[tuple[str, str, tuple[Part, ...], str], Reference] = {}
    for start, end, several in found:
        before, after, connected = words_beside(query, folded, spans, start, end)
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
) -> tuple[list[tuple[int, int, list[Reference]]], list[Group]]:
    """Return where labelled clauses stand and what they are, and their groups."""
    found = [
        (match.start(), match.end(), [_versioned(query, match)])
        for match in _VERSIONED.finditer(folded)
    ]
    rest = _blanked(folded, [(start, end) for start, end, _ in found])
    groups = list(groups_in(query, rest))
    chains = chains_of(rest, groups)
    before: tuple[Group, ...] = ()
    for index, chain in enumerate(chains):
        outer = before = inherited_by(rest, chains, index, before)
        found.append((chain.start, chain.end, list(references_of(query, chain, outer))))
    return found, groups


def without_references(query: str) -> str:
    """Return a question without the clauses that it names, for what calls documents."""
    folded = fold(query)
    spans = [match.span() for match in _VERSIONED.finditer(folded)]
    spans += [(group.start, group.end) for group in groups_in(query, folded)]
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
