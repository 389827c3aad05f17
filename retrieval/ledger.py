"""What a search costs, charged to the searcher's department (S3-BIL-01, R24)."""

from collections.abc import Mapping
from typing import Final

from knowledge.inference.tokens import token_count
from knowledge.ledger import charge_person
from knowledge.models.ledger import Kind
from knowledge.permissions import Reader
from retrieval.budget import tokens_of
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
        tokens = found.vector.tokens
        if embedded:
            used[Kind.EMBEDDING] = token_count(tokens) or tokens_of(text)
        if found.reranked:
            read = reranked_tokens(found.vector.space.pk, list(found.reranked))
            used[Kind.RERANK] = read + token_count(tokens)
    charge_all(reader, used)


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
