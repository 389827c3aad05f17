"""A search that is only tried: in the lab and for question sets.

It is the search of every door under settings of the caller's choice, reranked as for an
answer, past the cache, and leaves no trace: no log, no ledger row (R19).
"""

from dataclasses import dataclass, replace

from knowledge.permissions import Reader
from retrieval.embedding import QueryVector
from retrieval.engine import Found
from retrieval.journal import Journal
from retrieval.results import SearchResult
from retrieval.search import answer, understood
from retrieval.tuning import SearchType, Tuning


@dataclass(frozen=True, slots=True)
class Trial:
    """What a tried search found, and the way to it.

    `lacks_vector` tells that meaning was to be compared and was not.
    """

    result: SearchResult
    found: Found
    lacks_vector: bool


def try_search(
    reader: Reader,
    text: str,
    tuning: Tuning,
    *,
    count: int,
    vector: QueryVector | None = None,
) -> Trial:
    """Return what a reader would find under these settings.

    `vector` is the query's own where an earlier trial has it already. Raises
    SearchInputError for a query that cannot be searched.
    """
    journal = Journal()
    with journal.stage("total"):
        asked = understood(
            reader,
            text,
            layers=None,
            top_k=count,
            metadata_filter=None,
            query_vector=None,
            query_model=None,
            tuning=tuning,
        )
        kept = answer(reader, replace(asked, given=vector), journal, reranks=True)
    is_compared = (
        not asked.reach.is_empty and tuning.search_type is not SearchType.LEXICAL
    )
    return Trial(
        result=replace(kept.result, stage_ms=journal.stage_ms),
        found=kept.found,
        lacks_vector=is_compared and kept.found.vector is None,
    )
