"""Whether passages out of reach can be noticed (REL-E5b): a part of `bench-search`.

The database is copied, byte for byte. Passages on the very topics of some queries, with
their very words, then come into one of the two, where the reader may not see them: first
into a knowledge base out of reach, then also into a source of the reader's own that is
switched off. Two processes ask both databases the same queries in turns, so that
whatever else the machine does hits both alike: ids, scores and order must be the same,
and with what is out of reach the time, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import IO, TYPE_CHECKING, Any

from benchmarks.throwaway import ROOT

if TYPE_CHECKING:
    from benchmarks.search import Query
    from benchmarks.world import World
    from knowledge.permissions import Reader

COPY = "without_hidden"
TOP = 10
SEED = 20_261_130
# So many hidden passages in each of two places; so often is each query asked.
HIDDEN, WARM_UP, REPEATS = 300, 3, 41


def probe(world: World, reader: Reader, queries: Sequence[Query]) -> dict[str, Any]:
    """Return what hidden passages on a reader's topics change: nothing, it must be.

    "time_ratio" is with those out of reach by without any, "time_ratio_switched_off"
    with those of a source that is switched off as well.
    """
    copy_database()
    mine = sorted(reader.searchable)
    others = [pk for pk in world.knowledge_bases if pk not in reader.searchable]
    hide_on(world, others[0], queries, enabled=True)
    same, ratio = compare(world, reader, queries)
    hide_on(world, mine[0], queries, enabled=False)
    still_same, with_switched_off = compare(world, reader, queries)
    return {
        "same": same and still_same,
        "hidden_rows": HIDDEN * 2,
        "time_ratio": ratio,
        "time_ratio_switched_off": with_switched_off,
    }


def compare(
    world: World, reader: Reader, queries: Sequence[Query]
) -> tuple[bool, float]:
    """Return whether both databases give the same, and the ratio of the times.

    That is of the sums of each query's median time, with hidden passages by without.
    """
    asked = {
        "reader": reader.user_id,
        "model": world.space.model_id,
        "queries": [[query.text, query.vector] for query in queries],
    }
    with asking(asked, COPY) as without, asking(asked, None) as hidden:
        same, totals = True, [0.0, 0.0]
        for number in range(len(queries)):
            times: list[list[float]] = [[], []]
            for turn in range(WARM_UP + REPEATS):
                found = {}
                # Who goes first changes, since the first warms what both read.
                for which in (0, 1) if turn % 2 else (1, 0):
                    answer = ask((without, hidden)[which], number)
                    found[which] = answer["found"]
                    if turn >= WARM_UP:
                        times[which].append(answer["ms"])
                same = same and found[0] == found[1]
            totals = [
                total + median(one) for total, one in zip(totals, times, strict=True)
            ]
    return same, round(totals[1] / totals[0], 3)


# --- Two databases ---------------------------------------------------------------


def copy_database() -> None:
    """Copy the whole database beside itself, as it is on the disk."""
    import psycopg
    from django.db import connection
    from psycopg.sql import SQL, Identifier

    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        # Both are to be read equally fresh from the first search on.
        cursor.execute("VACUUM ANALYZE")
    # Nobody may be connected to what is copied.
    connection.close()
    statement = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
    with psycopg.connect(address("postgres"), autocommit=True) as server:
        server.execute(statement.format(Identifier(COPY), Identifier(name)))


def address(database: str) -> str:
    """Return the address of another database of the same server."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from strata_portal.embedded import database_url

    parts = {**conninfo_to_dict(database_url()), "dbname": database}
    return make_conninfo("", **parts)


def hide_on(
    world: World, base_id: int, queries: Sequence[Query], *, enabled: bool
) -> None:
    """Put passages like the queries into one source, on or off, and tell the planner."""
    import numpy as np
    from django.db import connection

    from knowledge.models import Document, KnowledgeBase, Passage, PassageVector, Source

    random = np.random.default_rng(SEED)
    base = KnowledgeBase.objects.get(pk=base_id)
    source = Source.objects.create(
        knowledge_base=base,
        layer=base.layers.get(),
        kind="document",
        purpose="documentation",
        title="Hidden",
        path=f"hidden-{base_id}.md",
        content_sha256="0" * 64,
        state="ready",
        enabled=enabled,
        passage_count=HIDDEN,
    )
    document = Document.objects.create(
        source=source,
        knowledge_base=base,
        title="Hidden",
        kind="markdown",
        text="",
        text_sha256="0" * 64,
        is_current=True,
    )
    asked = [queries[number % len(queries)] for number in range(HIDDEN)]
    passages = Passage.objects.bulk_create(
        Passage(
            knowledge_base=base,
            layer_id=source.layer_id,
            source=source,
            document=document,
            ordinal=number,
            start=0,
            end=len(query.text),
            text=query.text,
            line_start=1,
            line_end=1,
            embedded_sha256=f"{number:064x}",
            terms=query.text,
        )
        for number, query in enumerate(asked)
    )
    PassageVector.objects.bulk_create(
        PassageVector(
            space=world.space,
            passage=passage,
            knowledge_base_id=base_id,
            dimension=world.space.dimension,
            embedded_sha256=passage.embedded_sha256,
            embedding=np.array(query.vector)
            + random.normal(size=len(query.vector)) * 0.002,
        )
        for passage, query in zip(passages, asked, strict=True)
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


# --- Two processes ---------------------------------------------------------------


@contextmanager
def asking(
    asked: dict[str, Any], database: str | None
) -> Iterator[subprocess.Popen[str]]:
    """Run a process that asks one database (`None`: the one of this process)."""
    environment = dict(os.environ)
    if database:
        environment["DATABASE_URL"] = address(database)
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.probing"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        pipe(process.stdin).write(json.dumps(asked) + "\n")
        yield process
    finally:
        pipe(process.stdin).close()
        process.wait(timeout=60)


def pipe(end: IO[str] | None) -> IO[str]:
    """Return the end of a pipe that was asked for, so is there."""
    if end is None:
        raise ValueError("The process was started without this pipe.")
    return end


def ask(process: subprocess.Popen[str], number: int) -> dict[str, Any]:
    """Have a process ask one query; return what was found and the time (ms)."""
    pipe(process.stdin).write(f"{number}\n")
    pipe(process.stdin).flush()
    answer: dict[str, Any] = json.loads(pipe(process.stdout).readline())
    return answer


def serve() -> None:
    """Ask what is told on the standard input, until it ends."""
    import django

    django.setup()
    from knowledge.permissions import Reader
    from retrieval.cache import forget_all
    from retrieval.search import search

    asked = json.loads(sys.stdin.readline())
    reader = Reader(user_id=asked["reader"])
    # A request resolves its reader once, before any search.
    len(reader.searchable)
    for line in sys.stdin:
        text, vector = asked["queries"][int(line)]
        forget_all()
        started = perf_counter()
        result = search(
            reader, text, top_k=TOP, query_vector=vector, query_model=asked["model"]
        )
        took = 1000 * (perf_counter() - started)
        found = [[hit.passage_id, hit.score, *hit.branches] for hit in result.hits]
        print(json.dumps({"found": found, "ms": took}), flush=True)


if __name__ == "__main__":
    serve()
