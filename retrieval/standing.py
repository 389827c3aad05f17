"""What holds for one act: settings, scales and the space, looked up together and once.

A search asks for each of them in several places. Within `looked_up_once` all of these
see one state, so that nothing is ranked under one setting and judged under another, and
the database is asked in one statement.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import NamedTuple

from knowledge.embedding import vectors_stored
from knowledge.models import EmbeddingSpace
from retrieval.reach import Sql, rows_of

RECORD = "(SELECT id FROM retrieval_tuningrecord ORDER BY version DESC LIMIT 1)"
FIT = "(SELECT max(id) FROM retrieval_calibration)"
SPACE = "(SELECT id FROM knowledge_embeddingspace WHERE state = 'active')"
PASSAGES = """(
    SELECT reltuples::bigint FROM pg_class WHERE oid = 'knowledge_passage'::regclass
)"""


class Standing(NamedTuple):
    """The newest of each, by its key; None where there is none.

    `record` is the tuning record, `fit` the newest calibration of all scorers, `space`
    the embedding space that queries are compared in. `passages` is about how many the
    installation holds, as the planner last counted them, and below 0 before it did:
    it may choose the quickest way, and nothing else.
    """

    record: int | None
    fit: int | None
    space: int | None
    passages: int = -1


held: ContextVar[Standing | None] = ContextVar("held", default=None)


@contextmanager
def looked_up_once() -> Iterator[None]:
    """Hold what stands now for all that is asked within, in this thread."""
    if held.get() is not None:
        yield
        return
    token = held.set(look_up())
    try:
        yield
    finally:
        held.reset(token)


def standing() -> Standing:
    """Return what holds now, or what is held for this act."""
    return held.get() or look_up()


def look_up() -> Standing:
    """Ask the database; a schema without vectors has no space."""
    space = SPACE if vectors_stored() else "NULL"
    (row,) = rows_of(Sql(f"SELECT {RECORD}, {FIT}, {space}, {PASSAGES}"))
    return Standing(*row)


@lru_cache(maxsize=8)
def space_of(pk: int) -> EmbeddingSpace:
    """Return a space by its key; what made its vectors never changes."""
    return EmbeddingSpace.objects.get(pk=pk)
