"""A search that is only tried: in the lab and for question sets.

It is the engine of every door under settings of the caller's choice, and leaves no
trace: no log, no ledger row, no interaction (R19).
"""

from dataclasses import dataclass

from knowledge.permissions import Reader
from retrieval.embedding import QueryVector, embed_now
from retrieval.engine import Found, find
from retrieval.journal import Journal
from retrieval.reach import Reach
from retrieval.results import Confidence, Hit, Label
from retrieval.search import checked_query
from retrieval.tuning import SearchType, Tuning


@dataclass(frozen=True, slots=True)
class Trial:
    """What a tried search found; `lacks_vector` tells that meaning was not compared."""

    found: Found
    hits: tuple[Hit, ...]
    confidence: Confidence | None
    journal: Journal
    lacks_vector: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A cleaned query with its vector, to be searched under several settings."""

    text: str
    vector: QueryVector | None
    journal: Journal


def prepare(text: str, *, embeds: bool = True) -> Question:
    """Return a query, embedded once; raises SearchInputError."""
    cleaned = checked_query(text)
    journal = Journal()
    vector = embed_now(cleaned, journal) if embeds else None
    return Question(cleaned, vector, journal)


def try_search(
    reader: Reader, question: Question, tuning: Tuning, *, count: int
) -> Trial:
    """Return what a reader would find under these settings, reranked as in an answer."""
    journal = Journal(
        list(question.journal.labels),
        list(question.journal.notices),
        dict(question.journal.stage_ms),
    )
    lexical = tuning.search_type is SearchType.LEXICAL
    if lexical and Label.KEYWORD_ONLY in journal.labels:
        # That no vector came is no news to a search that asks for none.
        journal = Journal(stage_ms=journal.stage_ms)
    with journal.stage("total"):
        found = find(
            Reach.of(reader),
            question.text,
            tuning=tuning,
            count=count,
            journal=journal,
            vector=lambda: question.vector,
            reranks=True,
        )
    return Trial(
        found=found,
        hits=found.hits,
        confidence=None,
        journal=journal,
        lacks_vector=not lexical and found.vector is None,
    )
