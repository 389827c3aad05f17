"""Writing the log of searches: one statement for each search, scrubbed (R16)."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import BigIntegerField, Func, Value

from knowledge.permissions import Reader
from knowledge.scrubbing import scrub
from retrieval.confidence import MARKS, status
from retrieval.engine import Found
from retrieval.models import SearchLog
from retrieval.models.log import Status
from retrieval.results import Hit, Occasion, SearchResult

logger = logging.getLogger(__name__)

# Digits of a score that are kept.
DIGITS = 6
MOST_REASON = 200


class LayerNamed(Func):
    """The id of the layer of a knowledge base's short name and the layer's own name.

    A hit knows its layer by them; the statement that writes the row looks it up.
    """

    arity = 2
    output_field = BigIntegerField()
    template = (
        "(SELECT layer.id FROM knowledge_layer AS layer "
        "JOIN knowledge_knowledgebase AS base ON base.id = layer.knowledge_base_id "
        "WHERE (base.slug, layer.name) = (%(expressions)s))"
    )


def as_kept(text: str) -> str:
    """Return a person's words as they may be stored: without bank details (R16)."""
    return text if settings.LEARNING_STORE_RAW_QUERIES else scrub(text)


def record_search(
    reader: Reader,
    result: SearchResult,
    found: Found | None,
    *,
    occasion: Occasion,
    query: str,
    count: int = 0,
    metadata_filter: Mapping[str, str] | None = None,
    withheld: Sequence[int] = (),
    outcome: str = "",
    interaction_id: UUID | None = None,
    conversation_id: UUID | None = None,
    chose_layers: bool = False,
) -> SearchLog | None:
    """Log one search, and return its row; None where it leaves no trace.

    `found` is None for a search that was answered from the cache. `count` is how many
    passages were asked for. `withheld` are the ids of passages that a turn's budget
    left out, in the order in which they would have come. `outcome` is the status of an
    answer, where more than the scores decided. `interaction_id` is an ask's own id; a
    search gets one with its row, where learning is on. `conversation_id` is what the
    search is part of, `chose_layers` tells that its sender named the layers.

    The row holds no text of a passage. A log that cannot be written costs nobody the
    search: that is said in the server's log, and None is returned.
    """
    if not occasion.leaves_trace:
        return None
    confidence = result.confidence
    fallback = result.routing_fallback
    row = SearchLog(
        person_id=reader.user_id,
        acting_id=reader.acting_user_id,
        token_id=reader.token_id,
        by_agent=reader.is_agent,
        door=occasion.door,
        interaction_id=(interaction_id or uuid4())
        if settings.LEARNING_ENABLED
        else None,
        conversation_id=conversation_id,
        query=as_kept(query),
        metadata_filter={
            as_kept(key): as_kept(value)
            for key, value in (metadata_filter or {}).items()
        },
        count=count or len(result.hits),
        knowledge_bases=sorted(result.knowledge_bases),
        layers=sorted(result.layers) if result.layers is not None else None,
        chose_layers=chose_layers,
        layers_ignored=result.layers_ignored,
        fallback_reason=fallback.reason[:MOST_REASON] if fallback is not None else "",
        tuning_version=result.tuning_version,
        model=result.model or "",
        rankings=rankings_of(found),
        fused=[each.passage_id for each in found.fused] if found is not None else [],
        reranked=reranked_of(found),
        hits=[hit_of(hit) for hit in result.hits],
        returned=len(result.hits),
        withheld=list(withheld),
        status=outcome or status_of(result),
        level=str(confidence.level) if confidence is not None else "",
        basis=str(confidence.basis) if confidence is not None else "",
        confidence=confidence.score if confidence is not None else None,
        labels=[str(label) for label in result.labels],
        stage_ms=dict(result.stage_ms),
        total_ms=result.stage_ms.get("total", 0.0),
        layer_id=layer_of(result.hits),
    )
    # Within a caller's transaction an error must not spoil the rest of it.
    protected = transaction.atomic() if connection.in_atomic_block else nullcontext()
    try:
        with protected:
            row.save(force_insert=True)
    except DatabaseError:
        logger.exception("a search could not be logged")
        return None
    return row


def rankings_of(found: Found | None) -> dict[str, list[list[float]]]:
    """Return (passage id, score, relaxed) of each branch's candidates."""
    if found is None:
        return {}
    return {
        str(branch): [
            [row.passage_id, round(row.score, DIGITS), int(row.relaxed)] for row in rows
        ]
        for branch, rows in found.rankings.items()
    }


def reranked_of(found: Found | None) -> dict[str, float]:
    """Return the reranker's probability by passage id."""
    if found is None:
        return {}
    return {str(pk): round(score, DIGITS) for pk, score in found.reranked.items()}


def hit_of(hit: Hit) -> dict[str, Any]:
    """Return what the log holds of one hit."""
    return {
        "passage": hit.passage_id,
        "ref": hit.ref,
        "match": str(hit.match),
        "score": round(hit.score, DIGITS),
        "similarity": round(hit.similarity, DIGITS),
        "rerank_score": None
        if hit.rerank_score is None
        else round(hit.rerank_score, DIGITS),
    }


def layer_of(hits: Sequence[Hit]) -> LayerNamed | None:
    """Return what looks up the best hit's layer."""
    if not hits:
        return None
    citation = hits[0].citation
    return LayerNamed(Value(citation.knowledge_base), Value(citation.layer))


def status_of(result: SearchResult) -> Status:
    """Return what a search came to, by its hits and its confidence."""
    if not result.hits:
        return Status.NOT_FOUND
    if result.confidence is None:
        return Status.FOUND
    marks = MARKS[result.confidence.basis]
    return Status(status([result.confidence.score], marks))
