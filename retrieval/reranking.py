"""The reranker: late interaction on stored token vectors (D11)."""

from collections.abc import Mapping, Sequence

from knowledge.inference.tokens import maxsim_many
from knowledge.models import EmbeddingSpace
from retrieval.fusion import Fused
from retrieval.reach import Sql, rows_of


def rerank(
    space: EmbeddingSpace, tokens: bytes, text: str, passage_ids: Sequence[int]
) -> dict[int, float]:
    """Return each passage's score; {} where query or passages have no token vectors."""
    if not tokens or not passage_ids:
        return {}
    rows = rows_of(
        Sql(
            "SELECT passage_id, packed FROM knowledge_passagetokens "
            "WHERE space_id = %s AND passage_id = ANY(%s)",
            (space.pk, list(passage_ids)),
        )
    )
    scores = maxsim_many(tokens, [bytes(packed) for _pk, packed in rows])
    return {pk: score for (pk, _packed), score in zip(rows, scores, strict=True)}


def final_order(fused: Sequence[Fused], scores: Mapping[int, float]) -> list[int]:
    """Return the passages by the reranker's score, those without one last."""
    ids = [row.passage_id for row in fused]
    return sorted(ids, key=lambda pk: -scores.get(pk, -1.0))
