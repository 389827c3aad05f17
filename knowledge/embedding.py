"""The corpus's side of the model gateway: which gateway, and which space is active."""

import hashlib
import threading
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.db import connection, transaction

from knowledge.chunking.chunks import CHUNKER_VERSION
from knowledge.inference.gateway import (
    Gateway,
    ModelInfo,
    ModelMismatchError,
    Reranker,
)
from knowledge.inference.remote import RemoteGateway, RemoteReranker
from knowledge.models import EmbeddingSpace
from knowledge.models.vectors import SpaceState

# Rises when the context (title and clause path) is composed in another way.
CONTEXT_VERSION = "1"

gateways: dict[tuple[str, str, str], Gateway] = {}
rerankers: dict[tuple[str, str, str], Reranker] = {}
gateways_lock = threading.Lock()


def gateway() -> Gateway:
    """Return this process's gateway to the model server, made at first use."""
    model = settings.STRATA_EMBEDDING_MODEL
    key = (settings.STRATA_MODEL_URL, settings.STRATA_MODEL_KEY, model)
    with gateways_lock:
        if key not in gateways:
            gateways[key] = RemoteGateway(
                settings.STRATA_MODEL_URL,
                key=settings.STRATA_MODEL_KEY or None,
                # "bundled" is our own server's word; another server has its names.
                model=None if model == "bundled" else model,
                query_timeout=settings.STRATA_QUERY_EMBED_TIMEOUT,
            )
        return gateways[key]


def reranker() -> Reranker:
    """Return this process's way to the CrossEncoder that RERANKING_MODEL names."""
    model = settings.RERANKING_MODEL
    key = (settings.STRATA_RERANKING_URL, settings.STRATA_MODEL_KEY, model)
    with gateways_lock:
        if key not in rerankers:
            rerankers[key] = RemoteReranker(
                settings.STRATA_RERANKING_URL,
                key=settings.STRATA_MODEL_KEY or None,
                model=model,
                timeout=settings.STRATA_RERANKING_TIMEOUT,
            )
        return rerankers[key]


@cache
def vectors_stored() -> bool:
    """Return whether this database has the vector tables (R8)."""
    return "knowledge_passagevector" in connection.introspection.table_names()


@dataclass(frozen=True, slots=True)
class SpaceKey:
    """What a space is made from: a model, and how texts are cut and given to it."""

    info: ModelInfo
    chunker_version: str = CHUNKER_VERSION
    context_version: str = CONTEXT_VERSION

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the model, the chunker and the context version."""
        parts = (self.info.fingerprint, self.chunker_version, self.context_version)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_model_of(info: ModelInfo, space: EmbeddingSpace) -> bool:
    """Return whether a model's vectors may be compared with those of a space.

    They may, if the very model made them. Texts that are cut in a newer way are other
    texts in the same space: those of older sources serve until they are indexed again.
    """
    key = SpaceKey(info, space.chunker_version, space.context_version)
    return key.fingerprint == space.fingerprint


def active_space() -> EmbeddingSpace | None:
    """Return the space that queries use, or None before the first ingest."""
    return EmbeddingSpace.objects.filter(state=SpaceState.ACTIVE).first()


def space_for(info: ModelInfo) -> EmbeddingSpace:
    """Return the active space, made from `info` where there is none yet.

    Raises ModelMismatchError when the model server serves another model than the one
    that the corpus is indexed with: their vectors must never meet.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # Two workers may meet the first document at once.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('embedding space'))")
        space = active_space()
        if space is None:
            return EmbeddingSpace.objects.create(
                fingerprint=SpaceKey(info).fingerprint,
                model_id=info.model_id,
                dimension=info.dimension,
                query_prefix=info.query_prefix,
                passage_prefix=info.passage_prefix,
                chunker_version=CHUNKER_VERSION,
                context_version=CONTEXT_VERSION,
                token_format=info.token_format,
                state=SpaceState.ACTIVE,
            )
    if not is_model_of(info, space):
        raise ModelMismatchError(
            f"The model server serves {info.model_id} ({info.dimension} dimensions), "
            f"but the corpus is indexed with {space}. Point STRATA_MODEL_URL at the "
            "model of the corpus, or index the corpus again with the new one."
        )
    return space
