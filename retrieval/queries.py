"""The searches of one question: each from the cache if it is there, merged by rank."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial

from django.db import connection
from django.utils.translation import get_language, override

from knowledge.models import EmbeddingSpace
from retrieval.cache import Kept, keep, key_of, recall
from retrieval.calibration import newest_fit
from retrieval.embedding import QueryVector, no_vector, query_embedding
from retrieval.engine import Found, rank, together
from retrieval.fusion import Candidate, Fused, order, shortlist
from retrieval.journal import Journal
from retrieval.reach import Reach
from retrieval.results import Branch, BranchRank, SearchResult
from retrieval.tuning import SearchType, Tuning

# So many searches of one question run at once.
MOST_AT_ONCE = 4
RANKED = "ranked"


@dataclass(frozen=True, slots=True)
class Searches:
    """What the searches of one question share.

    `parts` are searched one by one for each query, and their rows put together. `given`
    is the vector of the question as written, where its sender made it. `bound` is how
    many passages each search may bring into the merge. `leading` is the place of the
    query whose vector stands for the question.
    """

    reach: Reach
    parts: Sequence[Reach]
    tuning: Tuning
    space: EmbeddingSpace | None
    given: QueryVector | None
    bound: int
    leading: int = 0


@dataclass(frozen=True, slots=True)
class Searched:
    """One search's ranking, what is to be told of it, and whether it was computed."""

    found: Found
    journal: Journal
    is_new: bool


def search_all(
    searches: Searches, queries: Sequence[str], journal: Journal
) -> tuple[Found, list[Searched]]:
    """Return what several searches found together, and each by itself.

    The first query is the question as written; the vector of the leading one is what
    stands for the question afterwards. The searches run beside each other (S1-HYB-06),
    but for a caller within a transaction, whose rows no other connection sees.
    """
    question, *others = queries
    first = partial(search_one, searches, question, searches.given)
    rest = [partial(search_one, searches, text, None) for text in others]
    if rest and not connection.in_atomic_block:
        language = get_language()
        with ThreadPoolExecutor(min(len(rest), MOST_AT_ONCE)) as pool:
            waiting = [pool.submit(on_own_connection, each, language) for each in rest]
            results = [first(), *(each.result() for each in waiting)]
    else:
        results = [first(), *(each() for each in rest)]
    for each in results:
        journal.take_over(each.journal)
    found = [each.found for each in results]
    leading = found.pop(searches.leading)
    return merge([leading, *found], searches), results


def on_own_connection(work: Callable[[], Searched], language: str | None) -> Searched:
    """Do a part of the work in another thread, which leaves no connection behind."""
    try:
        with override(language):
            return work()
    finally:
        connection.close()


def search_one(searches: Searches, text: str, given: QueryVector | None) -> Searched:
    """Return one search's ranking, from the cache if it is there."""
    journal = Journal()
    space = searches.space
    key = key_of(
        searches.reach,
        text,
        # All that a branch gives is kept; in how many parts it was asked tells apart.
        count=len(searches.parts),
        tuning=searches.tuning,
        given=given,
        space_id=None if space is None else space.pk,
        routes=False,
        calibration=newest_fit(),
        part=RANKED,
    )
    kept = recall(key)
    if kept is not None:
        told = Journal(list(kept.result.labels), list(kept.result.notices))
        return Searched(kept.found, told, is_new=False)
    embeds = searches.tuning.search_type is not SearchType.LEXICAL
    embedding = (
        query_embedding(text, space, given, journal)
        if embeds and not searches.reach.is_empty
        else nullcontext(no_vector)
    )
    with embedding as source:
        # One embedding serves all parts, and so does its failure.
        vector = cache(source)
        parts = [
            rank(part, text, tuning=searches.tuning, journal=journal, vector=vector)
            for part in searches.parts
        ]
    found = together(parts)
    labels, notices = tuple(journal.labels), tuple(journal.notices)
    result = SearchResult(query=text, hits=(), labels=labels, notices=notices)
    keep(key, searches.reach, Kept(result, found), keeps_vector=True)
    return Searched(found, journal, is_new=True)


def merge(found: Sequence[Found], searches: Searches) -> Found:
    """Return several searches as one, merged by rank (S1-HYB-06).

    A passage keeps its best rank in each branch. The rankings by words and codes hold
    what any of the searches found, that by meaning what the first one did: its scores
    are the cosines with the question.
    """
    first = found[0]
    if len(found) == 1:
        return first
    k = searches.tuning.weights.k
    scores: dict[int, float] = {}
    branches: dict[int, dict[Branch, BranchRank]] = {}
    for each in found:
        best = shortlist(
            each.fused,
            count=searches.bound,
            keyword_slots=searches.tuning.keyword_slots,
        )
        for place, row in enumerate(best, 1):
            scores[row.passage_id] = scores.get(row.passage_id, 0.0) + 1 / (k + place)
            known = branches.setdefault(row.passage_id, {})
            for branch, ranked in row.branches.items():
                if branch not in known or ranked.rank < known[branch].rank:
                    known[branch] = ranked
    fused = [Fused(pk, score, branches[pk]) for pk, score in scores.items()]
    rankings = {
        branch: rows
        if branch is Branch.MEANING
        else each_once(row for one in found for row in one.rankings.get(branch, ()))
        for branch, rows in first.rankings.items()
    }
    return replace(
        first, rankings=rankings, fused=sorted(fused, key=order), similarity={}
    )


def each_once(rows: Iterable[Candidate]) -> list[Candidate]:
    """Return the first row of each passage."""
    kept: dict[int, Candidate] = {}
    for row in rows:
        kept.setdefault(row.passage_id, row)
    return list(kept.values())
