"""`make bench-search`: how quick searches are, and whether they lose rows.

A synthetic world (see `benchmarks.world`) of 10,000 and 100,000 passages (SIZE=small:
10,000; SIZE=full: a million too) is loaded into a database that exists for this run.
Readers of 100, 10, 1 and 0.1 per cent of the rows search it through the product's own
search, each query with its vector, so that no model's time is in the figures; half of
the topics asked for lie outside of what the reader may see.

"Bare" is the vector queries alone that a reader needs at that recall: the nearest ten,
through the indexes that the product keeps and row by row elsewhere, with no condition
but the knowledge bases. Bare and hybrid searches take turns.

`benchmarks.probing` tells whether passages out of reach can be noticed (REL-E5b).
`rerank_p95_ms` is what reranking the best twenty adds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.throwaway import ROOT, installation, is_small

if TYPE_CHECKING:
    from benchmarks.world import World
    from knowledge.permissions import Reader

SHARES = {"100": 1.0, "10": 0.1, "1": 0.01, "0.1": 0.001}
TOP = 10
SEED = 20_261_130
WARM_UP = 5
# So many queries of the probe.
PROBED = 12
RERANKED, TOKENS, QUERY_TOKENS = 60, 200, 16


@dataclass(frozen=True, slots=True)
class Query:
    """What one search is asked."""

    text: str
    vector: tuple[float, ...]


@dataclass(slots=True)
class Measured:
    """The times (ms) and finds of one reader."""

    hybrid: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    rows_full: bool = True


def main() -> None:
    """Measure each world and print."""
    counts = [10_000] if is_small() else [10_000, 100_000]
    if os.environ.get("SIZE", "").strip() == "full":
        counts.append(1_000_000)
    figures = {}
    for passages in counts:
        # Each world has a process, and so a database server, of its own.
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.search", str(passages)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if run.returncode:
            raise SystemExit(run.returncode)
        figures[str(passages)] = json.loads(run.stdout)
        print_table(passages, figures[str(passages)])
    print(json.dumps(figures))


def measure_world(passages: int) -> None:
    """Measure one world and print its figures as JSON."""
    with installation(durable=True):
        print(json.dumps(measure(passages)))


def measure(passages: int) -> dict[str, Any]:
    """Return the figures of one world."""
    from benchmarks.probing import probe
    from benchmarks.world import load
    from knowledge.indexes import tune

    started = perf_counter()
    world = load(passages, SEED)
    tune(progress=say)
    say(f"{passages:,} passages stand after {perf_counter() - started:.0f} s")
    count = 60 if passages > 100_000 or is_small() else 150
    readers = {name: make_reader(world, share) for name, share in SHARES.items()}
    probed = make_queries(world, readers["10"], PROBED * 2)[1::2]
    measured = {
        name: measure_reader(world, reader, count) for name, reader in readers.items()
    }
    return {
        **summarise(measured),
        "rerank_p95_ms": measure_reranking(world, readers["100"]),
        "probe": probe(world, readers["10"], probed),
    }


def say(text: str) -> None:
    """Show progress, apart from the result."""
    print(text, file=sys.stderr, flush=True)


def measure_reader(world: World, reader: Reader, count: int) -> Measured:
    """Return what one reader gets for `count` queries."""
    from django.conf import settings

    from retrieval.branches import by_meaning
    from retrieval.reach import Reach
    from retrieval.search import search

    visible = sum(
        size
        for pk, size in zip(world.knowledge_bases, world.sizes, strict=True)
        if pk in reader.searchable
    )
    bare = BareSearch(world, reader)
    measured = Measured()
    for number, query in enumerate(make_queries(world, reader, count + WARM_UP)):
        turns = [
            lambda query=query: bare(query),
            lambda query=query: search(
                reader,
                query.text,
                top_k=TOP,
                query_vector=query.vector,
                query_model=world.space.model_id,
            ),
        ]
        order = (0, 1) if number % 2 else (1, 0)
        times, results = [0.0, 0.0], [None, None]
        for turn in order:
            started = perf_counter()
            results[turn] = turns[turn]()
            times[turn] = 1000 * (perf_counter() - started)
        if number < WARM_UP:
            continue
        measured.bare.append(times[0])
        measured.hybrid.append(times[1])
        reach = Reach.of(reader, None, {})
        found = by_meaning(
            reach, world.space, query.vector, count=settings.STRATA_CANDIDATES
        )
        wanted = exact(world, reader, query)
        got = {row.passage_id for row in found[:TOP]}
        measured.recall.append(len(got & wanted) / len(wanted))
        measured.rows_full &= len(results[1].hits) == min(TOP, visible)
        measured.rows_full &= len(found) == min(settings.STRATA_CANDIDATES, visible)
    return measured


def make_reader(world: World, share: float) -> Reader:
    """Return a person who is granted about that share of the rows, and no more."""
    from knowledge.models import KnowledgeBase, User
    from knowledge.permissions import Access, Reader, grant

    person = User.objects.create_user(f"reader-{share}")
    for base in KnowledgeBase.objects.filter(pk__in=world.subset(share)):
        grant(base, [Access.SEARCH], to=person, actor=None)
    reader: Reader = Reader(user_id=person.pk)
    # A request resolves its reader once, before any search.
    say(f"reader of {share:.1%}: {len(reader.searchable)} knowledge bases")
    return reader


def make_queries(world: World, reader: Reader, count: int) -> list[Query]:
    """Return queries of 3 to 12 words, every other one on a topic out of reach.

    A third consists of words of one passage, so that some hold all of them; the others
    mix its words with frequent ones of the whole vocabulary.
    """
    import numpy as np

    from knowledge.models import Passage, PassageVector

    random = np.random.default_rng(SEED + count)
    frequent = frequent_words()
    mine = sorted(reader.searchable)
    others = [pk for pk in world.knowledge_bases if pk not in reader.searchable] or mine
    queries = []
    for number in range(count):
        base = int(random.choice(mine if number % 2 else others))
        first, last = world.passages_of(base)
        passage = Passage.objects.get(pk=int(random.integers(first, last + 1)))
        length = int(random.integers(3, 13))
        words = random.choice(passage.text.split(), size=length)
        if number % 3:
            is_foreign = random.random(size=length) < 0.5
            words = np.where(is_foreign, random.choice(frequent, size=length), words)
        stored = PassageVector.objects.get(passage=passage).embedding
        vector = np.array(stored) + random.normal(size=len(stored)) * 0.02
        vector /= np.linalg.norm(vector)
        queries.append(Query(" ".join(words), tuple(map(float, vector))))
    return queries


def frequent_words() -> list[str]:
    """Return the words that most passages hold."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT word FROM ts_stat('SELECT search_vector FROM knowledge_passage "
            "ORDER BY id LIMIT 2000') ORDER BY ndoc DESC, word LIMIT 200"
        )
        return [str(row[0]) for row in cursor.fetchall()]


class BareSearch:
    """The vector queries alone, by the product's own indexes."""

    def __init__(self, world: World, reader: Reader) -> None:
        from knowledge.indexes import compared_as
        from retrieval.branches import held_ready, plan_meaning
        from retrieval.reach import Reach

        reach = Reach.of(reader, None, {})
        plan = plan_meaning(reach, world.space)
        kind = compared_as(world.space.dimension)
        space = world.space.pk
        head = "SELECT passage_id, embedding"
        parts = [
            f"({head}::{kind} <=> %s::{kind} AS distance FROM knowledge_passagevector "
            f"WHERE knowledge_base_id = {pk} AND space_id = {space} "
            f"ORDER BY distance LIMIT {TOP})"
            for pk in plan.by_index
        ]
        rest = [*plan.by_row, *plan.by_passage]
        if rest:
            parts.append(
                f"({head} <=> %s::vector AS distance FROM knowledge_passagevector "
                f"WHERE knowledge_base_id = ANY('{{{','.join(map(str, rest))}}}') "
                f"AND space_id = {space} ORDER BY distance LIMIT {TOP})"
            )
        held = held_ready(reach, plan)
        before = f"SET LOCAL hnsw.ef_search = {held};" if plan.by_index else ""
        nearest = " UNION ALL ".join(parts)
        if len(parts) > 1:
            nearest += f" ORDER BY distance LIMIT {TOP}"
        self.statement = before + nearest
        self.count = len(parts)

    def __call__(self, query: Query) -> list[Any]:
        """Return the nearest rows."""
        from django.db import connection

        from retrieval.branches import literal

        with connection.cursor() as cursor:
            cursor.execute(self.statement, [literal(query.vector)] * self.count)
            while cursor.description is None and cursor.nextset():
                pass
            return list(cursor.fetchall())


def exact(world: World, reader: Reader, query: Query) -> set[int]:
    """Return the ten nearest of all visible passages, each compared."""
    from django.db import connection

    from retrieval.branches import literal

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT passage_id FROM knowledge_passagevector "
            "WHERE knowledge_base_id = ANY(%s) AND space_id = %s "
            "ORDER BY embedding <=> %s::vector LIMIT %s",
            [sorted(reader.searchable), world.space.pk, literal(query.vector), TOP],
        )
        return {row[0] for row in cursor.fetchall()}


# --- What reranking adds ---------------------------------------------------------


def measure_reranking(world: World, reader: Reader) -> float:
    """Return the 95th percentile of the time (ms) to rerank the best twenty."""
    import numpy as np

    from knowledge.inference.tokens import pack_passage, pack_query
    from knowledge.models import PassageTokens
    from retrieval.embedding import QueryVector
    from retrieval.engine import find
    from retrieval.journal import Journal
    from retrieval.reach import Reach
    from retrieval.tuning import Tuning

    random = np.random.default_rng(SEED)
    dimension = world.space.dimension
    mean = np.zeros(dimension, dtype=np.float32)

    def ends_of(count: int) -> list[int]:
        return [5 * (number + 1) for number in range(count)]

    def tokens(count: int) -> Any:
        return random.normal(size=(count, dimension)).astype(np.float32)

    times = []
    for query in make_queries(world, reader, RERANKED):
        asked = pack_query(tokens(QUERY_TOKENS), ends_of(QUERY_TOKENS), mean)
        vector = QueryVector(world.space, query.vector, asked)
        for reranks in (False, True):
            journal = Journal()
            found = find(
                Reach.of(reader),
                query.text,
                tuning=Tuning(),
                count=TOP,
                journal=journal,
                vector=lambda vector=vector: vector,
                reranks=reranks,
            )
            if reranks:
                times.append(journal.stage_ms["rerank"])
                continue
            PassageTokens.objects.bulk_create(
                [
                    PassageTokens(
                        space=world.space,
                        passage_id=row.passage_id,
                        packed=pack_passage(tokens(TOKENS), ends_of(TOKENS), mean),
                    )
                    for row in found.fused[: Tuning().rerank_depth]
                ],
                ignore_conflicts=True,
            )
    return round(percentile(times, 95), 2)


# --- Figures -------------------------------------------------------------------


def percentile(times: Sequence[float], share: int) -> float:
    """Return the time within which `share` per cent of the searches end."""
    return quantiles(times, n=100, method="inclusive")[share - 1]


def summarise(measured: dict[str, Measured]) -> dict[str, Any]:
    """Return the figures of one world."""
    figures: dict[str, Any] = {}
    for kind in ("hybrid", "bare"):
        for share in (50, 95):
            figures[f"{kind}_p{share}_ms"] = {
                name: round(percentile(getattr(one, kind), share), 2)
                for name, one in measured.items()
            }
    figures["ratio_p95"] = {
        name: round(percentile(one.hybrid, 95) / percentile(one.bare, 95), 2)
        for name, one in measured.items()
    }
    figures["recall_at_10"] = {
        name: round(sum(one.recall) / len(one.recall), 4)
        for name, one in measured.items()
    }
    figures["rows_full"] = all(one.rows_full for one in measured.values())
    return figures


def print_table(passages: int, figures: dict[str, Any]) -> None:
    """Print one world's figures for people."""
    print(
        f"{passages:,} passages" + " " * 4 + "".join(f"{n + ' %':>10}" for n in SHARES)
    )
    for name, values in figures.items():
        if isinstance(values, dict) and name != "probe":
            print(f"{name:18}" + "".join(f"{value:10}" for value in values.values()))
    print(f"rows always full: {'yes' if figures['rows_full'] else 'no'}")
    print(f"reranking the best twenty: {figures['rerank_p95_ms']} ms (p95)")
    hidden = figures["probe"]
    print(
        f"{hidden['hidden_rows']} hidden passages on the same topics: "
        f"{'the same' if hidden['same'] else 'ANOTHER'} result, "
        f"{hidden['time_ratio']} of the time where they are out of reach, "
        f"{hidden['time_ratio_switched_off']} with a source switched off\n",
        flush=True,
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure_world(int(sys.argv[1]))
    else:
        main()
