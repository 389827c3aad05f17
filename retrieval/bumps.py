"""Where the lines of a bump chart stand: how passages move from list to list. Pure.

Each column is a list; a passage's line goes through the columns that rank it, and below
the last row where its rank is beyond what is shown. Lengths are pixels of the drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

COLUMN = 116
ROW = 34
EDGE = 28
HEAD = 40
NAMES = 190


@dataclass(frozen=True, slots=True)
class Node:
    """A passage in one column; `rank` is shown where it stands beyond the last row."""

    x: float
    y: float
    rank: int
    is_beyond: bool


@dataclass(frozen=True, slots=True)
class Bump:
    """One passage: its mark, its nodes, and the path through them."""

    passage_id: int
    mark: str
    name: str
    nodes: tuple[Node, ...]
    path: str


@dataclass(frozen=True, slots=True)
class Column:
    """A list's name, and where it stands."""

    x: float
    name: str


@dataclass(frozen=True, slots=True)
class Bumps:
    """The whole chart."""

    columns: tuple[Column, ...]
    bumps: tuple[Bump, ...]
    rows: tuple[Node, ...]
    width: int
    height: int
    name_x: float
    beyond_y: float


def bump_chart(
    lists: Mapping[str, Sequence[int]],
    shown: Sequence[int],
    names: Mapping[int, str],
    *,
    depth: int,
) -> Bumps:
    """Return the chart of the `shown` passages, best first, through all lists.

    `lists` are passage ids in order, by the list's name; `depth` rows are drawn.
    """
    columns = tuple(
        Column(EDGE + COLUMN * index + COLUMN / 2, name)
        for index, name in enumerate(lists)
    )
    places = [
        {passage_id: rank for rank, passage_id in reversed(list(enumerate(ids, 1)))}
        for ids in lists.values()
    ]
    beyond_y = HEAD + ROW * depth + ROW / 2
    bumps = []
    for number, passage_id in enumerate(shown, 1):
        nodes = tuple(
            node(column.x, place[passage_id], depth, beyond_y)
            for column, place in zip(columns, places, strict=True)
            if passage_id in place
        )
        if nodes:
            bumps.append(
                Bump(
                    passage_id,
                    str(number),
                    names.get(passage_id, ""),
                    nodes,
                    path_of(nodes),
                )
            )
    return Bumps(
        columns=columns,
        bumps=tuple(bumps),
        rows=tuple(node(EDGE, rank, depth, beyond_y) for rank in range(1, depth + 1)),
        width=int(2 * EDGE + COLUMN * len(columns) + NAMES),
        height=int(beyond_y + ROW),
        name_x=(columns[-1].x if columns else EDGE) + 22,
        beyond_y=beyond_y,
    )


def node(x: float, rank: int, depth: int, beyond_y: float) -> Node:
    """Return where a rank stands in a column."""
    if rank > depth:
        return Node(x, beyond_y, rank, is_beyond=True)
    return Node(x, HEAD + ROW * (rank - 1) + ROW / 2, rank, is_beyond=False)


def path_of(nodes: Sequence[Node]) -> str:
    """Return a path that leaves and enters each node level."""
    parts = [f"M{nodes[0].x:g} {nodes[0].y:g}"]
    for one, other in pairwise(nodes):
        bend = (other.x - one.x) / 2
        parts.append(
            f"C{one.x + bend:g} {one.y:g} {other.x - bend:g} {other.y:g} "
            f"{other.x:g} {other.y:g}"
        )
    return " ".join(parts)
