"""The settings of a search, as one value."""

from dataclasses import dataclass, field
from enum import StrEnum

from django.conf import settings

from retrieval.fusion import Weights


class SearchType(StrEnum):
    """Which branches run (S2-HYB-02); literal codes count with the words."""

    SEMANTIC = "semantic"
    LEXICAL = "lexical"
    HYBRID = "hybrid"


class Fusion(StrEnum):
    """How the branches' rankings become one (R1)."""

    RRF = "rrf"
    WEIGHTED_SUM = "weighted_sum"


@dataclass(frozen=True, slots=True)
class Tuning:
    """How every knowledge base is searched (R3).

    `candidates` is how many rows a branch gives, `similarity_floor` the least cosine
    that counts in the meaning branch (-1: none), `rerank_depth` how many of the fused
    passages the reranker reads. The counts are of passages; `turn_budget` is in tokens,
    `turn_passage` in characters. `version` 0 is the environment's own settings.
    """

    search_type: SearchType = SearchType.HYBRID
    fusion: Fusion = Fusion.RRF
    weights: Weights = field(default_factory=Weights)
    keyword_slots: int = 1
    candidates: int = 50
    similarity_floor: float = -1.0
    reranking: bool = True
    rerank_depth: int = 20
    search_count: int = 5
    ask_count: int = 10
    turn_count: int = 10
    turn_budget: int = 6000
    turn_passage: int = 1600
    memory_count: int = 3
    version: int = 0


def from_environment() -> Tuning:
    """Return what the environment sets."""
    return Tuning(
        search_type=SearchType(settings.STRATA_SEARCH_TYPE),
        fusion=Fusion(settings.STRATA_FUSION),
        weights=Weights(
            meaning=settings.STRATA_WEIGHT_MEANING,
            keywords=settings.STRATA_WEIGHT_KEYWORDS,
            codes=settings.STRATA_WEIGHT_CODES,
            relaxed=settings.STRATA_WEIGHT_RELAXED,
            k=settings.STRATA_RRF_K,
        ),
        keyword_slots=settings.HYBRID_KEYWORD_SLOTS,
        candidates=settings.STRATA_CANDIDATES,
        similarity_floor=settings.STRATA_SIMILARITY_FLOOR,
        reranking=settings.RERANKING_ENABLED,
        rerank_depth=settings.STRATA_RERANK_DEPTH,
        turn_budget=settings.STRATA_TURN_BUDGET,
        turn_passage=settings.STRATA_TURN_PASSAGE,
    )


def current() -> Tuning:
    """Return the settings that hold now."""
    return from_environment()
