"""How an agent client's settings narrow the deployment's, and never widen them (R3)."""

from dataclasses import replace

from knowledge.models import AgentClient
from retrieval.tuning import SearchType, Tuning

# What each search type runs, for finding what two of them have in common.
PARTS = {
    SearchType.SEMANTIC: frozenset({"meaning"}),
    SearchType.LEXICAL: frozenset({"words"}),
    SearchType.HYBRID: frozenset({"meaning", "words"}),
}


def narrowed(tuning: Tuning, client: AgentClient) -> Tuning:
    """Return the settings that hold for an agent client's searches.

    Counts and the weight of words are the lower of both, the similarity floor is the
    higher, and of the ways of finding those stay that both have. A client that has
    none in common with the deployment keeps the deployment's.
    """
    most = min(client.most_results, client.count or client.most_results)
    floor, weight = client.similarity_floor, client.keyword_weight
    weights = tuning.weights
    if weight is not None:
        weights = replace(
            weights,
            keywords=min(weights.keywords, weight),
            relaxed=min(weights.relaxed, weight),
        )
    return replace(
        tuning,
        search_type=common(tuning.search_type, client.search_type),
        weights=weights,
        similarity_floor=max(tuning.similarity_floor, -1.0 if floor is None else floor),
        search_count=min(tuning.search_count, most),
        ask_count=min(tuning.ask_count, most),
        turn_count=min(tuning.turn_count, most),
    )


def common(everywhere: SearchType, wanted: str) -> SearchType:
    """Return the search type that both allow; "" wants nothing of its own."""
    if not wanted:
        return everywhere
    both = PARTS[everywhere] & PARTS[SearchType(wanted)]
    return next((kind for kind, parts in PARTS.items() if parts == both), everywhere)
