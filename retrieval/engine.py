"""One search over one reach: the branches, their fusion, the reranker, the hits.

Every door's search, each knowledge base of a turn, the lab, replays and question sets
run through `find`, so that what one of them shows holds for all.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.utils.translation import gettext as _

from knowledge.codes import code_keys
from knowledge.terms import read_query
from retrieval.branches import (
    KeywordRanking,
    by_codes,
    by_keywords,
    by_meaning,
    cosines,
)
from retrieval.citations import cite, cited_rows
from retrieval.embedding import QueryVector, VectorSource, no_vector
from retrieval.fusion import Candidate, Fused, Fusion, fuse, order, shortlist
from retrieval.journal import Journal
from retrieval.reach import Reach
from retrieval.reranking import final_order, rerank, word_weight
from retrieval.results import Branch, Hit, Label
from retrieval.trigrams import by_trigrams, trigrams_stand_in
from retrieval.tuning import SearchType, Tuning

Rankings = Mapping[Branch, Sequence[Candidate]]


@dataclass(frozen=True, slots=True)
class Found:
    """What one search found, with the way to it.

    `rankings` holds each branch's candidates. `fused` are all of them in the fused
    order, `reranked` the reranker's probability of those it read (empty where it did
    not run), `hits` the best in the final order. `vector` is what was compared.
    `unknown` are words of the query that no passage within reach holds, `similarity`
    the cosines that a weighted sum was made of.
    """

    rankings: Rankings = field(default_factory=dict)
    fused: Sequence[Fused] = ()
    reranked: Mapping[int, float] = field(default_factory=dict)
    hits: tuple[Hit, ...] = ()
    vector: QueryVector | None = None
    unknown: tuple[str, ...] = ()
    similarity: Mapping[int, float] = field(default_factory=dict)


def find(
    reach: Reach,
    text: str,
    *,
    tuning: Tuning,
    count: int,
    journal: Journal,
    vector: VectorSource = no_vector,
    reranks: bool = False,
) -> Found:
    """Return the passages within reach that answer a query best.

    `text` is a cleaned query. `vector` is asked for its vector once the words are
    looked up; a search of type lexical does not ask. With `reranks` the reranker reads
    the best of the fused order, if the settings and the model allow it.

    A branch that fails is said in the journal, and the others go on.
    """
    ranked = rank(reach, text, tuning=tuning, journal=journal, vector=vector)
    return choose(
        reach,
        text,
        ranked,
        tuning=tuning,
        count=count,
        journal=journal,
        reranks=reranks,
    )


def rank(
    reach: Reach,
    text: str,
    *,
    tuning: Tuning,
    journal: Journal,
    vector: VectorSource = no_vector,
) -> Found:
    """Return what the branches find and its fused order; nothing is chosen yet."""
    if reach.is_empty:
        return Found()
    rankings, compared, unknown = run_branches(reach, text, tuning, vector, journal)
    similarity: dict[int, float] = {}
    if compared is not None and tuning.fusion is Fusion.WEIGHTED_SUM:
        with journal.part("similarity"):
            similarity = similarities(rankings, candidates(rankings), compared)
    with journal.stage("fuse"):
        fused = fuse(rankings, tuning.weights, fusion=tuning.fusion, cosines=similarity)
    return Found(
        rankings, fused, vector=compared, unknown=unknown, similarity=similarity
    )


def together(parts: Sequence[Found]) -> Found:
    """Return what one search found in parts of its reach, by the fused scores (R4)."""
    if len(parts) == 1:
        return parts[0]
    rankings: dict[Branch, list[Candidate]] = {}
    for part in parts:
        for branch, rows in part.rankings.items():
            rankings.setdefault(branch, []).extend(rows)
    return Found(
        rankings={
            branch: sorted(rows, key=lambda row: -row.score)
            for branch, rows in rankings.items()
        },
        fused=sorted((row for part in parts for row in part.fused), key=order),
        vector=next((part.vector for part in parts if part.vector is not None), None),
        unknown=tuple(
            word
            for word in dict.fromkeys(word for part in parts for word in part.unknown)
            if all(word in part.unknown for part in parts)
        ),
    )


def choose(
    reach: Reach,
    text: str,
    ranked: Found,
    *,
    tuning: Tuning,
    count: int,
    journal: Journal,
    reranks: bool = False,
    tells_relaxed: bool = True,
) -> Found:
    """Return what was ranked with its best `count` passages as hits, reranked if asked.

    They are read anew, as far as they are within reach still. `tells_relaxed` has the
    journal say where no hit holds every word, which a question's rarely does.
    """
    if not ranked.fused:
        return ranked
    compared = ranked.vector
    best = shortlist(
        ranked.fused,
        count=max(count, tuning.rerank_depth if reranks else 0),
        keyword_slots=tuning.keyword_slots,
    )
    probabilities: dict[int, float] = {}
    if reranks and tuning.reranking and compared is not None:
        depth = [row.passage_id for row in best[: tuning.rerank_depth]]
        with journal.part("rerank"):
            probabilities = rerank(compared.space, compared.tokens, text, depth)
    order = ids_of(best)
    if probabilities and compared is not None:
        weight = word_weight(compared.space)
        order = final_order(best, probabilities, word_weight=weight)
    by_id = {row.passage_id: row for row in best}
    chosen = [by_id[pk] for pk in order[:count]]
    similarity = ranked.similarity
    hits: tuple[Hit, ...] = ()
    with journal.stage("cite"):
        if compared is not None and not similarity:
            with journal.part("similarity"):
                similarity = similarities(ranked.rankings, ids_of(chosen), compared)
        hits = make_hits(reach, chosen, similarity, probabilities)
    if any(is_without_accents(hit) for hit in hits):
        journal.say(
            Label.WITHOUT_ACCENTS,
            _("Some passages hold words of the query with other accents."),
        )
    if tells_relaxed and any(is_relaxed(hit) for hit in hits):
        journal.say(
            Label.RELAXED,
            _("No passage holds all words of the query; some hold a part."),
        )
    return replace(ranked, reranked=probabilities, hits=hits)


# --- The branches --------------------------------------------------------------


def run_branches(
    reach: Reach, text: str, tuning: Tuning, vector: VectorSource, journal: Journal
) -> tuple[dict[Branch, list[Candidate]], QueryVector | None, tuple[str, ...]]:
    """Return each branch's ranking, the vector that was compared, and unknown words."""
    count = tuning.candidates
    rankings: dict[Branch, list[Candidate]] = {}
    unknown: tuple[str, ...] = ()
    if tuning.search_type is not SearchType.SEMANTIC:
        with journal.part(Branch.KEYWORDS):
            words = keywords(reach, text, count, journal)
            rankings[Branch.KEYWORDS], unknown = words.candidates, words.unknown
        with journal.part(Branch.CODES):
            rankings[Branch.CODES] = by_codes(reach, code_keys(text), count=count)
    if tuning.search_type is SearchType.LEXICAL:
        return rankings, None, unknown
    compared = vector()
    if compared is None and trigrams_stand_in():
        with journal.part(Branch.MEANING):
            rankings[Branch.MEANING] = by_trigrams(reach, text, count=count)
        return rankings, None, unknown
    if compared is not None:
        with journal.part(Branch.MEANING):
            nearest = by_meaning(reach, compared.space, compared.vector, count=count)
            # An optional least similarity (R2).
            rankings[Branch.MEANING] = [
                row for row in nearest if row.score >= tuning.similarity_floor
            ]
    # A vector whose comparison failed is not compared with the hits of the others.
    return rankings, compared if Branch.MEANING in rankings else None, unknown


def keywords(reach: Reach, text: str, count: int, journal: Journal) -> KeywordRanking:
    """Return the keyword branch's ranking; says when it could not rank all matches."""
    ranking = by_keywords(reach, read_query(text), count=count)
    if ranking.is_partial:
        journal.note(
            _("Very many passages hold all words; add a word to find the right ones.")
        )
    return ranking


def candidates(rankings: Rankings) -> set[int]:
    """Return the ids of all passages that a branch found."""
    return {row.passage_id for rows in rankings.values() for row in rows}


# --- The hits ------------------------------------------------------------------


def ids_of(fused: Iterable[Fused]) -> list[int]:
    """Return the passages' ids, in order."""
    return [row.passage_id for row in fused]


def make_hits(
    reach: Reach,
    fused: Sequence[Fused],
    similarity: Mapping[int, float],
    probabilities: Mapping[int, float],
) -> tuple[Hit, ...]:
    """Return the hits with text, citation and scores, in the order given."""
    rows = {row.passage_id: row for row in cited_rows(reach, ids_of(fused))}
    citations = cite(reach, list(rows.values()))
    return tuple(
        Hit(
            passage_id=row.passage_id,
            ref=citations[row.passage_id].ref,
            text=rows[row.passage_id].text,
            score=row.score,
            similarity=similarity.get(row.passage_id, 0.0),
            branches=row.branches,
            citation=citations[row.passage_id],
            metadata=json.loads(rows[row.passage_id].metadata),
            rerank_score=probabilities.get(row.passage_id),
        )
        for row in fused
        # Gone or switched off since the branches ran: better one hit less.
        if row.passage_id in rows
    )


def similarities(
    rankings: Rankings, passage_ids: Iterable[int], compared: QueryVector
) -> dict[int, float]:
    """Return the cosine of each passage, also if only words found it (S1-HYB-04)."""
    known = {row.passage_id: row.score for row in rankings.get(Branch.MEANING, ())}
    missing = [pk for pk in passage_ids if pk not in known]
    if missing:
        known |= cosines(compared.space, missing, compared.vector)
    return known


def is_relaxed(hit: Hit) -> bool:
    """Tell whether a hit's words are only a part of the query's."""
    words = hit.branches.get(Branch.KEYWORDS)
    return words is not None and words.relaxed


def is_without_accents(hit: Hit) -> bool:
    """Tell whether a hit holds words of the query with other accents only (R14)."""
    words = hit.branches.get(Branch.KEYWORDS)
    return words is not None and words.without_accents
