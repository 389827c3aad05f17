"""What a search costs, charged to the searcher's department (S3-BIL-01, R24)."""

from collections.abc import Mapping
from typing import Final

from knowledge.inference.tokens import token_count
from knowledge.ledger import charge_person
from knowledge.models.ledger import Kind
from knowledge.permissions import Reader
from retrieval.budget import tokens_of
from retrieval.embedding import QueryVector
from retrieval.engine import Found
from retrieval.reach import Sql, rows_of

# The count stands within the first bytes of packed vectors.
HEAD_BYTES: Final = 8


def charge_all(reader: Reader, used: Mapping[str, int]) -> None:
    """Write a row for each kind with its units, in one statement; none of 0 units.

    A kind is search, ask, embedding, rewrite or rerank; units are searches, asks or
    tokens. The department is the person's of this moment, whoever owns what was
    searched; an agent's is its owner's, and where staff see the portal as somebody else
    does, their own.
    """
    payer = reader.acting_user_id or reader.user_id
    charge_person(payer, {Kind(kind): units for kind, units in used.items()})


def charge_search(
    reader: Reader, text: str, found: Found | None, *, embedded: bool
) -> None:
    """Charge one search with what it used.

    `found` is None for a search that was answered from the cache, which costs the
    search alone. `embedded` tells that the query's vector was made here.
    """
    used = {str(Kind.SEARCH): 1}
    if found is not None and found.vector is not None:
        if embedded:
            used[Kind.EMBEDDING] = embedded_tokens(text, found.vector)
        if found.reranked:
            used[Kind.RERANK] = read_tokens(found, found.vector)
    charge_all(reader, used)


def charge_ask(
    reader: Reader, found: Found, embedded: Mapping[str, QueryVector]
) -> None:
    """Charge one question with what its searches used.

    `embedded` holds the vectors that were made for it here, by query; what the cache
    knew costs nothing but the question itself.
    """
    used = {str(Kind.ASK): 1}
    made = sum(embedded_tokens(text, vector) for text, vector in embedded.items())
    used[Kind.EMBEDDING] = made
    if found.vector is not None and found.reranked:
        used[Kind.RERANK] = read_tokens(found, found.vector)
    charge_all(reader, used)


def embedded_tokens(text: str, vector: QueryVector) -> int:
    """Return how many tokens a query has, as far as that is known."""
    return token_count(vector.tokens) or tokens_of(text)


def read_tokens(found: Found, vector: QueryVector) -> int:
    """Return how many tokens the reranker read, those of the query among them."""
    passages = reranked_tokens(vector.space.pk, list(found.reranked))
    return passages + token_count(vector.tokens)


def reranked_tokens(space_id: int, passage_ids: list[int]) -> int:
    """Return how many tokens the reranker read of some passages."""
    rows = rows_of(
        Sql(
            "SELECT substring(packed FROM 1 FOR %s) FROM knowledge_passagetokens "
            "WHERE space_id = %s AND passage_id = ANY(%s)",
            (HEAD_BYTES, space_id, passage_ids),
        )
    )
    return sum(token_count(bytes(head)) for (head,) in rows)
