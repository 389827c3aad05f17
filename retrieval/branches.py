"""The three branches: each one query over what the reader may see, and over that only.

Every query here holds the conditions of `Passage.objects.visible_to(reader)`; knowledge
bases, switch, expiry, layers and metadata are never a step after the ranking.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.search import SearchQuery
from django.db import connection
from django.db.models import F, FloatField, Func, QuerySet, Value

from knowledge.models import EmbeddingSpace, Passage
from knowledge.permissions import Reader
from retrieval.fusion import Candidate


@dataclass(frozen=True, slots=True)
class Reach:
    """The passages that one search may find.

    `layer_ids` None is every layer of the reader's knowledge bases; an empty one is
    none. `metadata` is matched exactly, as strings (S1-ING-04).
    """

    reader: Reader
    layer_ids: frozenset[int] | None = None
    metadata: Mapping[str, str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be found, so that no query over passages may run."""
        return not self.reader.searchable or self.layer_ids == frozenset()

    def passages(self) -> QuerySet[Passage]:
        """Return the visible passages within the filters."""
        passages = Passage.objects.visible_to(self.reader)
        if self.layer_ids is not None:
            passages = passages.filter(layer_id__in=self.layer_ids)
        if self.metadata:
            passages = passages.filter(metadata__contains=dict(self.metadata))
        return passages


def by_meaning(
    reach: Reach, space: EmbeddingSpace, vector: Sequence[float], *, count: int
) -> list[Candidate]:
    """Return the passages nearest to a unit vector, with their cosine."""
    visible, params = reach.passages().values("pk").query.sql_with_params()
    return fetch(
        f"""
        SELECT v.passage_id, 1 - (v.embedding <=> %s::vector) AS cosine
        FROM knowledge_passagevector v JOIN ({visible}) visible ON visible.id = v.passage_id
        WHERE v.space_id = %s
        ORDER BY v.embedding <=> %s::vector LIMIT %s
        """,
        [literal(vector), *params, space.pk, literal(vector), count],
    )


def literal(vector: Sequence[float]) -> str:
    """Return a vector as PostgreSQL reads it."""
    return "[" + ",".join(map(repr, vector)) + "]"


def fetch(sql: str, params: Sequence[Any]) -> list[Candidate]:
    """Run one branch's query, which gives passage id and score."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [Candidate(row[0], float(row[1])) for row in cursor.fetchall()]


def by_keywords(
    reach: Reach, words: Sequence[str], *, count: int
) -> list[Candidate]:
    """Return the passages that hold every word; where none does, those that hold some.

    The latter are marked `relaxed` (R15). `words` are those of
    `knowledge.terms.content_words`.
    """
    if not words:
        return []
    for operator, relaxed in ((" & ", False), (" | ", True)):
        query = SearchQuery(
            operator.join(f"'{word}'" for word in words),
            search_type="raw",
            config="simple",
        )
        rank = Func(
            F("search_vector"), query, Value(1),
            function="ts_rank_cd", output_field=FloatField(),
        )
        rows = (
            reach.passages()
            .filter(search_vector=query)
            .annotate(rank=rank)
            .order_by("-rank", "pk")
            .values_list("pk", "rank")[:count]
        )
        found = [Candidate(pk, rank, relaxed=relaxed) for pk, rank in rows]
        if found:
            return found
    return []


def by_codes(reach: Reach, codes: Collection[str], *, count: int) -> list[Candidate]:
    """Return the passages that hold the query's codes, those with most of them first."""
    if not codes:
        return []
    return []


def cosines(
    space: EmbeddingSpace, passage_ids: Collection[int], vector: Sequence[float]
) -> dict[int, float]:
    """Return the cosine of passages that are already found; absent without a vector."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT passage_id, 1 - (embedding <=> %s::vector) "
            "FROM knowledge_passagevector WHERE space_id = %s AND passage_id = ANY(%s)",
            [literal(vector), space.pk, list(passage_ids)],
        )
        return {row[0]: float(row[1]) for row in cursor.fetchall()}
