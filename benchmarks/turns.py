"""`make bench-turns`: many turns at once, each with many searches at once.

200 turns, each searched eight times in parallel, over passages made for it. Afterwards
the citations of each turn must be numbered 1 to n without a gap, and name no passage
twice; each number that a search gave out must be the one that is stored.

    TURNS, SEARCHES, THREADS    other sizes (200, 8 and 16)

Ends with status 1 where a number is missing, doubled or wrong.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.throwaway import installation

if TYPE_CHECKING:
    from retrieval.models import Turn

WORDS = ("crane", "pier", "mole", "quay", "slip", "buoy", "dock", "tide")
PASSAGES_A_WORD = 4

# What one search told: (number, ref) of each hit.
Told = list[tuple[int | None, str]]


def size(name: str, usual: int) -> int:
    """Return a size from the environment."""
    return int(os.environ.get(name, "").strip() or usual)


def main() -> None:
    """Run all searches, print what came of them, and end with 1 where any is wrong."""
    turns, searches = size("TURNS", 200), size("SEARCHES", 8)
    threads = size("THREADS", 16)
    with installation(durable=False):
        started = [begin() for _ in range(turns)]
        work = [
            (turn, WORDS[number % len(WORDS)])
            for number in range(searches)
            for turn in started
        ]
        begun = perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            told = list(pool.map(lambda each: ask(*each), work))
        seconds = perf_counter() - begun
        by_turn: dict[int, Told] = {turn.pk: [] for turn in started}
        for (turn, _word), answers in zip(work, told, strict=True):
            by_turn[turn.pk] += answers
        figures = {
            "turns": turns,
            "searches": len(work),
            "searches_per_second": round(len(work) / seconds, 1),
            "unsaved": sum(not each for each in told),
            "citations": sum(turn.snapshots.count() for turn in started),
            "wrong_turns": sum(not holds(turn, by_turn[turn.pk]) for turn in started),
        }
    print(json.dumps(figures))
    sys.exit(bool(figures["wrong_turns"] or figures["unsaved"]))


def begin() -> Turn:
    """Start a turn of an agent client that is bound to one knowledge base."""
    from knowledge.models import AgentClient
    from knowledge.permissions import Access, Reader, grant
    from retrieval.turns import start_turn
    from tests.factories import UserFactory
    from tests.retrieval.shelf import layer_of, put

    layer = layer_of("harbour")
    if not layer.passages.exists():
        for word in WORDS:
            for number in range(PASSAGES_A_WORD):
                put(layer, f"The {word} and the harbour, part {number}.")
    owner = UserFactory()
    grant(layer.knowledge_base, [Access.SEARCH], to=owner, actor=None)
    client = AgentClient.objects.create(owner=owner, name="Clerk")
    client.knowledge_bases.set([layer.knowledge_base])
    return start_turn(client, Reader(owner.pk))


def ask(turn: Turn, word: str) -> Told:
    """Search once, as a request of its own does; nothing where it was not saved."""
    from django.db import connection

    from knowledge.permissions import Reader
    from retrieval.models import Turn
    from retrieval.turns import search_turn

    try:
        found = search_turn(
            Turn.objects.select_related("client").get(pk=turn.pk),
            Reader(turn.owner_id),
            f"{word} harbour",
        )
        return [(hit.number, hit.ref) for hit in found.hits]
    finally:
        connection.close()


def holds(turn: Turn, told: Told) -> bool:
    """Tell whether a turn's citations are dense, unique and what was told."""
    saved = list(turn.snapshots.values_list("number", "ref"))
    return (
        [number for number, _ref in saved] == list(range(1, len(saved) + 1))
        and len({ref for _number, ref in saved}) == len(saved)
        and set(told) == set(saved)
    )


if __name__ == "__main__":
    main()
