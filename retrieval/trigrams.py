"""Likeness of letters in the place of meaning, where a database has no vectors (R8)."""

from functools import cache

from django.db import connection

from knowledge.embedding import vectors_stored
from knowledge.terms import read_query
from retrieval.fusion import Candidate
from retrieval.reach import Reach, Sql, rows_of

# The least likeness of a query to a stretch of a passage. The extension's own, 0.6,
# is made for names; questions and what answers them differ in more.
LEAST = 0.3


@cache
def trigrams_stand_in() -> bool:
    """Return whether this database has trigrams and no vectors."""
    if vectors_stored():
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")
        return cursor.fetchone() is not None


def by_trigrams(reach: Reach, text: str, *, count: int) -> list[Candidate]:
    """Return the passages with the stretch most like a query, with that likeness.

    The likeness, 0 to 1, is of the query's content words; ties go by the passage's id.
    """
    wanted = " ".join(asked.word for asked in read_query(text).words)
    if not wanted:
        return []
    visible = reach.visible
    rows = rows_of(
        Sql(
            "SELECT id, word_similarity(%s, text)::float8 AS likeness "  # noqa: S608
            f"FROM {visible.text} AND %s <%% text "
            "ORDER BY likeness DESC, id LIMIT %s",
            (wanted, *visible.params, wanted, count),
        ),
        settings_before=[f"pg_trgm.word_similarity_threshold = {LEAST}"],
    )
    return [Candidate(pk, likeness) for pk, likeness in rows]
