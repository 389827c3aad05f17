"""The query's vector: given by the sender, or asked of the model server meanwhile."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from knowledge.embedding import gateway, is_model_of, vectors_stored
from knowledge.inference.gateway import ModelError, ModelMismatchError
from knowledge.models import EmbeddingSpace
from retrieval.journal import Journal
from retrieval.results import Label
from retrieval.standing import space_of, standing
from retrieval.trigrams import trigrams_stand_in

logger = logging.getLogger(__name__)


class VectorError(Exception):
    """A sender's vector that cannot be compared; `field` names what to correct."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query's unit vector in the active space, and its packed token vectors.

    `tokens` is b"" where the sender made the vector or the model gives none.
    """

    space: EmbeddingSpace
    vector: tuple[float, ...]
    tokens: bytes = b""


# Waits for the vector; None where there is none to compare.
VectorSource = Callable[[], QueryVector | None]


def no_vector() -> None:
    """Return nothing: for searches by words alone."""
    return


def space_in_use() -> EmbeddingSpace | None:
    """Return the space that queries are compared in, if any."""
    space = standing().space
    return None if space is None else space_of(space)


def checked_vector(
    vector: Sequence[float] | None, model: str | None, space: EmbeddingSpace | None
) -> QueryVector | None:
    """Return the sender's vector at unit length, or None where there is none to use.

    Raises VectorError for one that is not of the active space.
    """
    if vector is None:
        return None
    if not model:
        raise VectorError("query_model", _("Name the model that made query_vector."))
    if space is None:
        return None
    if model != space.model_id:
        raise VectorError(
            "query_model",
            _("The corpus is indexed with %(model)s; embed the query with that model.")
            % {"model": space.model_id},
        )
    if len(vector) != space.dimension:
        raise VectorError(
            "query_vector",
            _("%(model)s gives %(wanted)s numbers; %(given)s were sent.")
            % {
                "model": space.model_id,
                "wanted": space.dimension,
                "given": len(vector),
            },
        )
    length = math.sqrt(sum(number * number for number in vector))
    if not math.isfinite(length) or length == 0:
        raise VectorError(
            "query_vector", _("The numbers must be finite and not all zero.")
        )
    return QueryVector(space, tuple(number / length for number in vector))


@contextmanager
def query_embedding(
    text: str,
    space: EmbeddingSpace | None,
    given: QueryVector | None,
    journal: Journal,
) -> Iterator[VectorSource]:
    """Give a function that waits for the query's vector, which is fetched meanwhile."""
    if space is None or given is not None or not settings.PORTAL_EMBEDS:
        if given is None:
            journal.say(Label.KEYWORD_ONLY, why_no_vector(space))
        yield lambda: given
        return
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed-query")
    try:
        future = pool.submit(embed, text, space)
        yield lambda: wait_for(future, journal)
    finally:
        pool.shutdown(wait=False)


def embed_now(text: str, journal: Journal) -> QueryVector | None:
    """Return a query's vector for several searches, or None with a notice."""
    with query_embedding(text, space_in_use(), None, journal) as vector:
        return vector()


def why_no_vector(space: EmbeddingSpace | None) -> str:
    """Return why meaning is not compared although no server failed."""
    if trigrams_stand_in():
        return _("This database has no vectors, so likeness of letters stands in.")
    if not vectors_stored():
        return _(
            "This database has neither vectors nor trigrams, so only words and codes "
            "count."
        )
    if space is None:
        return _("Nothing is indexed by meaning here, so only words and codes count.")
    return _("This portal computes no vectors, so only words and codes count.")


def embed(text: str, space: EmbeddingSpace) -> QueryVector:
    """Return the query's vector; raises ModelError. Runs beside the request's thread."""
    model = gateway()
    if not is_model_of(model.describe(), space):
        raise ModelMismatchError(f"The model server serves another model than {space}.")
    embedded = model.embed_query(text)
    return QueryVector(space, embedded.vector, embedded.tokens)


def wait_for(future: Future[QueryVector], journal: Journal) -> QueryVector | None:
    """Return the vector, or None with a notice when it does not come in time."""
    with journal.stage("embed"):
        try:
            return future.result(timeout=settings.STRATA_QUERY_EMBED_TIMEOUT)
        except TimeoutError:
            logger.warning("the model server did not answer in time")
            notice = _("The model server is slow, so only words and codes count.")
        except ModelMismatchError as error:
            logger.warning("%s", error)
            notice = _(
                "The model server serves another model than the corpus is indexed "
                "with, so only words and codes count."
            )
        except ModelError as error:
            logger.warning("%s", error)
            notice = _(
                "The model server does not answer, so only words and codes count."
            )
    journal.say(Label.KEYWORD_ONLY, notice)
    return None
