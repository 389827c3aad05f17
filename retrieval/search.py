"""How a question finds its evidence: three branches, each filtered inside its query."""

from collections.abc import Mapping, Sequence

from knowledge.permissions import Reader
from retrieval.results import SearchResult


class SearchInputError(Exception):
    """A search that cannot be run as sent.

    `field` names the argument, `message` is a sentence the sender can act on.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def search(
    reader: Reader,
    query: str,
    *,
    layers: Sequence[str] | None = None,
    top_k: int = 5,
    metadata_filter: Mapping[str, str] | None = None,
    query_vector: Sequence[float] | None = None,
    query_model: str | None = None,
) -> SearchResult:
    """Return the passages that answer a query best among those the reader may see."""
    raise NotImplementedError
