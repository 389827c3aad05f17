"""A vector index of its own for each large knowledge base (D21).

A shared index under a filter loses rows, and tells by its speed of documents that a
reader may not see. Each index here covers one knowledge base in one space, so that
what is read to answer a reader holds that reader's knowledge bases only.

Indexes are made and dropped beside the running product, never inside an ingest's
transaction. Until one stands, its knowledge base is compared row by row.
"""

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isqrt

from django.conf import settings
from django.db import connection
from django.db.models import Count

from knowledge.embedding import vectors_stored
from knowledge.models import EmbeddingSpace, PassageVector
from knowledge.models.vectors import SpaceState

logger = logging.getLogger(__name__)

TABLE = "knowledge_passagevector"
PREFIX = "vector_of_base"
# The most dimensions that an HNSW index takes at 32 and at 16 bits a number.
MOST_DIMENSIONS = {"vector": 2000, "halfvec": 4000}
# An index outlives a shrinking knowledge base down to this share of the size that
# earns one, so that it does not come and go with every file.
KEEP_SHARE = 0.5
# (m, ef_construction) of a graph: denser than the extension's own choice (16, 64), so
# that the nearest are found also where the rows beside the query are hidden, see
# retrieval/branches.py; and denser still from so many rows on, among which more lie far
# from everything that is asked.
GRAPH, DENSE_GRAPH = (24, 128), (32, 256)
DENSE_FROM = 100_000
# Of an ivfflat index: a list for so many rows, up to a million of them, and a list for
# each of the square root's beyond, as the extension advises.
ROWS_A_LIST, MOST_ROWS_BY_LIST = 1000, 1_000_000
BY_LISTS = "_by_lists"
# Memory for building one index: what its graph needs, within these bounds (MiB). A row
# has its vector there, and the places of twice m neighbours with their distances.
LEAST_MEMORY, MOST_MEMORY = 64, 2048
BYTES_A_NEIGHBOUR = 20


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index of one knowledge base in one space, `hnsw` or `ivfflat`."""

    knowledge_base_id: int
    space_id: int
    method: str = field(default_factory=lambda: settings.STRATA_VECTOR_INDEX)

    @property
    def name(self) -> str:
        """Return its name in the database."""
        name = f"{PREFIX}_{self.knowledge_base_id}_in_space_{self.space_id}"
        return name + BY_LISTS if self.method == "ivfflat" else name

    @classmethod
    def named(cls, name: str) -> "VectorIndex | None":
        """Return the index of a name, or None for a name that is not ours."""
        method = "ivfflat" if name.endswith(BY_LISTS) else "hnsw"
        keys = name.removeprefix(f"{PREFIX}_").removesuffix(BY_LISTS)
        base, _, space = keys.partition("_in_space_")
        if not (base.isdigit() and space.isdigit()):
            return None
        return cls(int(base), int(space), method)


@dataclass(frozen=True, slots=True)
class Tuned:
    """What one round of upkeep did."""

    made: tuple[str, ...]
    dropped: tuple[str, ...]
    is_busy: bool = False


def compared_as(dimension: int) -> str | None:
    """Return the type in which an index compares vectors, None where it cannot."""
    for name, most in MOST_DIMENSIONS.items():
        if dimension <= most:
            return f"{name}({dimension})"
    return None


def indexed(knowledge_base_ids: Collection[int], space: EmbeddingSpace) -> set[int]:
    """Return those of the knowledge bases whose index in a space can be used now."""
    names = {VectorIndex(pk, space.pk).name: pk for pk in knowledge_base_ids}
    return {names[name] for name, is_valid in existing(names) if is_valid}


def existing(names: Collection[str] | None = None) -> list[tuple[str, bool]]:
    """Return (name, whether it can be used) of our indexes, all or those named.

    One that cannot is being built, or its build was broken off.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT c.relname, i.indisvalid AND i.indisready
            FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
            WHERE i.indrelid = to_regclass(%s) AND starts_with(c.relname, %s)
              AND (%s::text[] IS NULL OR c.relname = ANY(%s))
            """,
            [TABLE, PREFIX, *[None if names is None else list(names)] * 2],
        )
        return [(str(name), bool(is_valid)) for name, is_valid in cursor.fetchall()]


def tune(progress: Callable[[str], None] = logger.info) -> Tuned:
    """Make the indexes that are missing, drop those not needed any more or broken.

    Runs outside of any transaction and may take minutes; searches and ingest go on.
    While another process does the same, nothing is done.
    """
    if not vectors_stored():
        return Tuned((), ())
    with building_alone() as is_alone:
        if not is_alone:
            return Tuned((), (), is_busy=True)
        spaces = {
            space.pk: space
            for space in EmbeddingSpace.objects.exclude(state=SpaceState.RETIRED)
        }
        rows = sizes(spaces.values())
        standing = set()
        dropped = []
        for name, is_valid in existing():
            index = VectorIndex.named(name)
            least = KEEP_SHARE * settings.STRATA_INDEX_FROM
            if is_valid and index is not None and rows.get(index, 0) >= least:
                standing.add(index)
            else:
                progress(f"Dropping {name}.")
                drop(name)
                dropped.append(name)
        made = []
        for index, count in sorted(rows.items(), key=lambda item: -item[1]):
            if index not in standing and count >= settings.STRATA_INDEX_FROM:
                progress(f"Making {index.name} over {count:,} passages.")
                make(index, spaces[index.space_id], count)
                made.append(index.name)
        return Tuned(tuple(made), tuple(dropped))


@contextmanager
def building_alone() -> Iterator[bool]:
    """Hold the lock of the upkeep; tell whether this process got it.

    The waits are this session's own: building one index waits for every transaction
    that is older than it, a long ingest too.
    """
    key = "SELECT {}(hashtext('vector indexes'))"
    with connection.cursor() as cursor:
        cursor.execute(key.format("pg_try_advisory_lock"))
        row = cursor.fetchone()
        is_alone = bool(row and row[0])
        try:
            if is_alone:
                cursor.execute("SET lock_timeout = 0; SET statement_timeout = 0")
            yield is_alone
        finally:
            if is_alone:
                cursor.execute(
                    "RESET lock_timeout; RESET statement_timeout; "
                    "RESET maintenance_work_mem"
                )
                cursor.execute(key.format("pg_advisory_unlock"))


def sizes(spaces: Collection[EmbeddingSpace]) -> dict[VectorIndex, int]:
    """Return how many vectors each knowledge base has in each indexable space."""
    wanted = [space.pk for space in spaces if compared_as(space.dimension) is not None]
    counted = (
        PassageVector.objects.filter(space__in=wanted)
        .values_list("knowledge_base_id", "space_id")
        .annotate(rows=Count("pk"))
    )
    return {VectorIndex(base, space): rows for base, space, rows in counted}


def make(index: VectorIndex, space: EmbeddingSpace, rows: int) -> None:
    """Build one index while reads and writes go on."""
    kind = str(compared_as(space.dimension))
    operators = f"{kind.partition('(')[0]}_cosine_ops"
    neighbours, held = graph_of(rows)
    built = f"m = {neighbours}, ef_construction = {held}"
    if index.method == "ivfflat":
        built = f"lists = {lists_of(rows)}"
    each = 4 * space.dimension + 2 * neighbours * BYTES_A_NEIGHBOUR
    memory = min(max(rows * each // 2**20, LEAST_MEMORY), MOST_MEMORY)
    with connection.cursor() as cursor:
        cursor.execute(f"SET maintenance_work_mem = '{memory}MB'")
        cursor.execute(
            f"CREATE INDEX CONCURRENTLY {index.name} ON {TABLE} "
            f"USING {index.method} ((embedding::{kind}) {operators}) WITH ({built}) "
            f"WHERE knowledge_base_id = {index.knowledge_base_id} "
            f"AND space_id = {index.space_id}"
        )


def graph_of(rows: int) -> tuple[int, int]:
    """Return m and ef_construction of an hnsw index over so many rows."""
    return GRAPH if rows < DENSE_FROM else DENSE_GRAPH


def lists_of(rows: int) -> int:
    """Return into how many lists an ivfflat index parts so many rows."""
    if rows > MOST_ROWS_BY_LIST:
        return isqrt(rows)
    return max(1, rows // ROWS_A_LIST)


def drop(name: str) -> None:
    """Drop one index while reads and writes go on."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
