"""The model gateway's interface: what the portal asks of an embedding model (R7).

Two backends keep to it: ``remote.RemoteGateway`` (HTTP; the only one that web and
worker processes use) and ``local.LocalBackend`` (sentence-transformers, inside the
model server). This module imports neither torch nor Django.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Protocol


class ModelError(Exception):
    """The model could not give what was asked; the message is a plain sentence."""


class ModelUnavailableError(ModelError):
    """The model does not answer now (down, loading, slow, failing): retry later."""


class ModelMismatchError(ModelError):
    """The answer is not this model's (dimension, NaN, count, identity): never store."""


class ModelInputError(ModelError):
    """The model server refused the input (too long, too many): retrying cannot help."""


class InputType(StrEnum):
    """What a text is to the model: each type has its own prefix."""

    QUERY = "query"
    PASSAGE = "passage"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Which model answers, and what its vectors look like.

    Args:
        model_id: the name under which people know the model.
        dimension: length of a vector.
        window: tokens that one input may have, prefix and special tokens included.
        reserved: tokens of the window that a passage's prefix and special tokens take.
        query_prefix: what is put before a query's text.
        passage_prefix: what is put before a passage's text.
        token_format: format of the token vectors (see ``tokens``), "" without any.
        token_dimension: length of a token vector, 0 without any.
        weights: names the weights themselves (SHA-256 hex), "" where unknown.
    """

    model_id: str
    dimension: int
    window: int
    reserved: int
    query_prefix: str
    passage_prefix: str
    token_format: str = ""
    token_dimension: int = 0
    weights: str = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 hex of all fields: vectors are only comparable where it is equal."""
        canonical = json.dumps(asdict(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class QueryEmbedding:
    """A query's unit vector, and its packed token vectors (b"" if there are none)."""

    vector: tuple[float, ...]
    tokens: bytes


@dataclass(frozen=True, slots=True)
class PassageEmbedding:
    """A passage's unit vector, packed token vectors and the tokens of its text.

    ``token_count`` counts the text alone, without prefix and special tokens, and
    before any cut at the window.
    """

    vector: tuple[float, ...]
    tokens: bytes
    token_count: int


class Gateway(Protocol):
    """One embedding model. Texts are given without prefix.

    Every method raises ``ModelUnavailableError`` when the model does not answer in
    time, ``ModelMismatchError`` when the answer cannot be this model's, and
    ``ModelInputError`` when the input is one that the server will never take.
    """

    def describe(self) -> ModelInfo:
        """Say which model answers."""
        ...

    def embed_query(self, text: str) -> QueryEmbedding:
        """Embed one query."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        """Embed passages; the result has the order and the length of ``texts``."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens, without prefix and special tokens."""
        ...


class Reranker(Protocol):
    """A model that reads query and passage together (a CrossEncoder).

    It raises what ``Gateway`` does.
    """

    def rerank(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return how well each document answers the query, 0 to 1, in their order."""
        ...
