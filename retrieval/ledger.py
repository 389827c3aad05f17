"""What a search costs, charged to the searcher's department (S3-BIL-01, R24)."""

from collections.abc import Mapping

from knowledge.ledger import charge_person
from knowledge.models.ledger import Kind
from knowledge.permissions import Reader


def charge(reader: Reader, *, kind: str, units: int) -> None:
    """Write one ledger row: so many searches, asks or tokens.

    `kind` is search, ask, embedding, rewrite or rerank. The department is the person's
    of this moment, whoever owns what was searched; an agent's is its owner's.
    """
    charge_all(reader, {kind: units})


def charge_all(reader: Reader, used: Mapping[str, int]) -> None:
    """Write a row for each kind with its units, in one statement; none of 0 units."""
    charge_person(reader.user_id, {Kind(kind): units for kind, units in used.items()})
