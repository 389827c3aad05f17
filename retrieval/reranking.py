"""The reranker: how probably each of the best passages answers the query (D11).

Late interaction on stored token vectors, without inference but the query's own; or the
CrossEncoder that RERANKING_MODEL names, behind the model gateway.
"""

import logging
import math
from collections.abc import Mapping, Sequence

from django.conf import settings

from knowledge.embedding import reranker
from knowledge.inference.gateway import ModelError
from knowledge.inference.languages import language_means
from knowledge.models import EmbeddingSpace
from knowledge.terms import passage_language, question_language
from retrieval.calibration import calibrated
from retrieval.fusion import Fused
from retrieval.interaction import Score, differ, match_all, read_query
from retrieval.reach import Sql, rows_of
from retrieval.results import Basis, Branch

logger = logging.getLogger(__name__)

# What holding all words of the query counts beside MaxSim. Measured on half of the
# documents in docs/ (nDCG@10 0.535 -> 0.556, clauses 0.47 -> 0.52), it does no harm to
# XQuAD and PoQuAD (0.9655 -> 0.9662).
WORD_WEIGHT = 0.1

PACKED = """
SELECT t.passage_id, p.text, p.context, t.packed
FROM knowledge_passagetokens t JOIN knowledge_passage p ON p.id = t.passage_id
WHERE t.space_id = %s AND t.passage_id = ANY(%s)
"""
TEXTS = "SELECT id, text, context FROM knowledge_passage WHERE id = ANY(%s)"


def rerank(
    space: EmbeddingSpace, tokens: bytes, text: str, passage_ids: Sequence[int]
) -> dict[int, float]:
    """Return each passage's probability, 0 to 1; {} where no reranker can run.

    The ids come from rankings over what the reader may see. `tokens` are the query's
    packed token vectors; without them, as from a server by URL, there is no late
    interaction and confidence rests on similarity (R10).
    """
    scores = raw_scores(space, tokens, text, passage_ids)
    if not scores:
        return {}
    scale = calibrated(space, Basis.RERANK)
    language = question_language(text)
    return {
        pk: scale.probability(score.raw, language, crosses=score.crosses)
        for pk, score in scores.items()
    }


def raw_scores(
    space: EmbeddingSpace, tokens: bytes, text: str, passage_ids: Sequence[int]
) -> dict[int, Score]:
    """Return the reranker's own scores, before any calibration."""
    if not passage_ids:
        return {}
    if settings.RERANKING_MODEL:
        return cross_encoded(text, passage_ids)
    if not tokens:
        return {}
    query = read_query(text, tokens)
    rows = rows_of(Sql(PACKED, (space.pk, list(passage_ids))))
    passages = [
        (passage_language(passage, context), bytes(packed))
        for _pk, passage, context, packed in rows
    ]
    means = language_means(space.model_id, space.token_format)
    scores = match_all(query, passages, means)
    return {row[0]: score for row, score in zip(rows, scores, strict=True)}


def cross_encoded(text: str, passage_ids: Sequence[int]) -> dict[int, Score]:
    """Return the CrossEncoder's scores; {} when its server does not answer."""
    rows = rows_of(Sql(TEXTS, (list(passage_ids),)))
    try:
        scores = cross_encode(text, [row[1:] for row in rows])
    except ModelError as error:
        logger.warning("%s", error)
        return {}
    return {row[0]: score for row, score in zip(rows, scores, strict=True)}


def cross_encode(text: str, given: Sequence[tuple[str, str]]) -> list[Score]:
    """Return what RERANKING_MODEL says of each (text, context); raises ModelError."""
    answered = reranker().rerank(text, [each for each, _context in given])
    language = question_language(text)
    return [
        Score(raw, differ(language, passage_language(each, context)))
        for (each, context), raw in zip(given, answered, strict=True)
    ]


def word_weight(space: EmbeddingSpace) -> float:
    """Return what holding the query's words adds to the logarithm of the odds.

    However steep the scale is fitted, it is the same beside MaxSim. A CrossEncoder has
    read the words itself.
    """
    if settings.RERANKING_MODEL:
        return 0.0
    return WORD_WEIGHT * calibrated(space, Basis.RERANK).slope


def final_order(
    fused: Sequence[Fused],
    scores: Mapping[int, float],
    *,
    word_weight: float,
) -> list[int]:
    """Return the passages by the reranker's odds, raised by the words they hold.

    A clause number or an identifier says little to a model and much to who typed it.
    Passages without a probability come last, in the fused order.
    """
    keys = {
        row.passage_id: log_odds(scores[row.passage_id]) + word_weight * held_share(row)
        for row in fused
        if row.passage_id in scores
    }
    ids = [row.passage_id for row in fused]
    return sorted(ids, key=lambda pk: (pk not in keys, -keys.get(pk, 0.0)))


def log_odds(probability: float) -> float:
    """Return the logarithm of the odds, within bounds."""
    bounded = min(max(probability, 1e-12), 1 - 1e-12)
    return math.log(bounded / (1 - bounded))


def held_share(row: Fused) -> float:
    """Return how much of the query's words a passage holds, by their rarity."""
    words = row.branches.get(Branch.KEYWORDS)
    return 0.0 if words is None else words.share
