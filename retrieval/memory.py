"""Recalling what is remembered about a person: the same search, with a narrow count."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from uuid import UUID

from django.urls import reverse

from knowledge.memory import keep_open
from knowledge.permissions import Reader
from retrieval.embedding import VectorSource, query_embedding, space_in_use
from retrieval.engine import Found, find
from retrieval.journal import Journal
from retrieval.reach import Reach
from retrieval.results import Hit
from retrieval.search import checked_query
from retrieval.tuning import Tuning, current


def recall(
    reader: Reader,
    text: str,
    *,
    conversation_id: UUID | None = None,
    tuning: Tuning | None = None,
    count: int | None = None,
    vector: VectorSource | None = None,
    journal: Journal | None = None,
    reranks: bool = False,
) -> Found:
    """Return what is remembered about a reader's person and answers a query best.

    One algorithm with knowledge; only the count is narrower, `memory_count` of the
    settings (S3-HYB-07). Without a conversation only what names none is found; with
    one, also what was said in it, if it is this person's and goes on: an id of somebody
    else's opens nothing and is not told apart from one that never was (S3-VIS-06).

    `vector` is the query's, where the caller has it already. A reader whose token is
    scoped to knowledge bases, or who sees the portal as another person, recalls
    nothing. A hit's citation opens the page of what is remembered; raises
    SearchInputError for a query that cannot be read.
    """
    journal = Journal() if journal is None else journal
    tuning = current() if tuning is None else tuning
    cleaned = checked_query(text)
    recalling = reader.recalling(conversation_id)
    reach = Reach.of(recalling)
    if reach.is_empty:
        return Found()
    keep_open(recalling)
    with vector_of(cleaned, vector, journal) as source:
        found = find(
            reach,
            cleaned,
            tuning=tuning,
            count=tuning.memory_count if count is None else count,
            journal=journal,
            vector=source,
            reranks=reranks,
        )
    return replace(found, hits=tuple(map(with_own_page, found.hits)))


@contextmanager
def vector_of(
    text: str, vector: VectorSource | None, journal: Journal
) -> Iterator[VectorSource]:
    """Give the caller's vector, or the model server's."""
    if vector is not None:
        yield vector
        return
    with query_embedding(text, space_in_use(), None, journal) as own:
        yield own


def with_own_page(hit: Hit) -> Hit:
    """Return a hit whose citation opens the person's page of what is remembered.

    The reading page answers to grants, and nothing grants a memory.
    """
    anchor = PurePosixPath(hit.citation.file).parent
    url = f"{reverse('portal:memory')}#m-{anchor}"
    return replace(hit, citation=replace(hit.citation, url=url))
