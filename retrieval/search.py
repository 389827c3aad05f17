"""How a question finds its evidence: three branches, each filtered inside its query."""

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils.translation import gettext as _

from knowledge.codes import code_keys
from knowledge.embedding import SpaceKey, active_space, gateway, vectors_stored
from knowledge.inference.gateway import ModelError, ModelMismatchError
from knowledge.models import EmbeddingSpace, Layer
from knowledge.permissions import Reader
from knowledge.sanitizing import InvalidTextError, clean_query
from knowledge.terms import content_words
from retrieval.branches import by_codes, by_keywords, by_meaning, cosines
from retrieval.citations import cite, cited_rows
from retrieval.fusion import Candidate, Fused, Weights, fuse
from retrieval.reach import Reach
from retrieval.results import Branch, Hit, Label, SearchResult

logger = logging.getLogger(__name__)

MOST_RESULTS = 50
MOST_LAYERS = 200
MOST_FILTERS = 20


class SearchInputError(Exception):
    """A search that cannot be run as sent.

    `field` names the argument, `message` is a sentence the sender can act on.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@dataclass(slots=True)
class Journal:
    """What is to be told about one search besides its hits."""

    labels: list[Label] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    stage_ms: dict[str, float] = field(default_factory=dict)

    def say(self, label: Label, notice: str) -> None:
        """Add a label and the sentence that explains it, once."""
        if label not in self.labels:
            self.labels.append(label)
        if notice not in self.notices:
            self.notices.append(notice)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage."""
        started = perf_counter()
        try:
            yield
        finally:
            elapsed = 1000 * (perf_counter() - started)
            self.stage_ms[name] = round(elapsed, 3)


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query's unit vector in the active space."""

    space: EmbeddingSpace
    vector: tuple[float, ...]


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
    """Return the passages that answer a query best among those the reader may see.

    `layers` narrows to layers of the reader's own knowledge bases, named `layer` (in
    each of them) or `knowledge-base/layer`; names that are unknown and names that are
    forbidden are ignored alike, and if none is left nothing is found. `top_k` is 1 to
    50. `metadata_filter` holds values that a passage's metadata must equal, as strings.
    `query_vector` takes the place of the query's own embedding; `query_model` must then
    name the model of the active space.

    Raises SearchInputError for arguments that the sender has to correct. A model server
    that is down, slow or another one than the corpus's costs the meaning branch and is
    said in the result; it raises nothing.
    """
    journal = Journal()
    with journal.stage("total"):
        text = checked_query(query)
        if not 1 <= top_k <= MOST_RESULTS:
            raise SearchInputError(
                "top_k",
                _("Ask for 1 to %(most)s results.") % {"most": MOST_RESULTS},
            )
        metadata = checked_filter(metadata_filter)
        space = active_space() if vectors_stored() else None
        given = checked_vector(query_vector, query_model, space)
        layer_ids, ignored = resolve_layers(reader, layers)
        reach = Reach.of(reader, layer_ids, metadata)
        hits: tuple[Hit, ...] = ()
        vector: QueryVector | None = None
        if not reach.is_empty:
            rankings, vector = run_branches(reach, text, space, given, journal)
            with journal.stage("fuse"):
                fused = fuse(
                    rankings,
                    weights(),
                    count=top_k,
                    keyword_slots=settings.HYBRID_KEYWORD_SLOTS,
                )
            with journal.stage("cite"):
                hits = make_hits(reach, fused, vector)
            if any(is_relaxed(hit) for hit in hits):
                journal.say(
                    Label.RELAXED,
                    _("No passage holds all words of the query; some hold a part."),
                )
    return SearchResult(
        query=text,
        hits=hits,
        labels=tuple(journal.labels),
        notices=tuple(journal.notices),
        layers_ignored=ignored,
        model=vector.space.model_id if vector is not None else None,
        stage_ms=journal.stage_ms,
    )


# --- What the sender gives -----------------------------------------------------


def checked_query(query: str) -> str:
    """Return the cleaned query."""
    try:
        return clean_query(query, max_length=settings.STRATA_QUERY_MAX_CHARACTERS)
    except InvalidTextError as error:
        raise SearchInputError("query", str(error)) from error


def checked_filter(metadata_filter: Mapping[str, str] | None) -> dict[str, str]:
    """Return the filter with its values as strings."""
    given = dict(metadata_filter or {})
    if len(given) > MOST_FILTERS:
        raise SearchInputError(
            "metadata_filter",
            _("Filter by at most %(most)s keys.") % {"most": MOST_FILTERS},
        )
    try:
        return {
            clean_query(str(key), max_length=200): clean_query(
                str(value), max_length=1000
            )
            for key, value in given.items()
        }
    except InvalidTextError as error:
        raise SearchInputError("metadata_filter", str(error)) from error


def checked_vector(
    vector: Sequence[float] | None, model: str | None, space: EmbeddingSpace | None
) -> tuple[float, ...] | None:
    """Return the sender's vector at unit length, or None where there is none to use."""
    if vector is None:
        return None
    if not model:
        raise SearchInputError(
            "query_model", _("Name the model that made query_vector.")
        )
    if space is None:
        return None
    if model != space.model_id:
        raise SearchInputError(
            "query_model",
            _("The corpus is indexed with %(model)s; embed the query with that model.")
            % {"model": space.model_id},
        )
    if len(vector) != space.dimension:
        raise SearchInputError(
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
        raise SearchInputError(
            "query_vector", _("The numbers must be finite and not all zero.")
        )
    return tuple(number / length for number in vector)


def resolve_layers(
    reader: Reader, names: Sequence[str] | None
) -> tuple[frozenset[int] | None, int]:
    """Return (layer ids, count of ignored names); no ids at all is every layer (R6).

    Only the reader's own list is asked, so that a name tells nobody of a hidden layer.
    """
    if not names:
        return None, 0
    if len(names) > MOST_LAYERS:
        raise SearchInputError(
            "layers", _("Name at most %(most)s layers.") % {"most": MOST_LAYERS}
        )
    known: dict[str, set[int]] = {}
    rows = Layer.objects.visible_to(reader).values_list(
        "pk", "name", "knowledge_base__slug"
    )
    for pk, name, slug in rows:
        known.setdefault(name, set()).add(pk)
        known.setdefault(f"{slug}/{name}", set()).add(pk)
    ignored = sum(1 for name in names if name not in known)
    ids = frozenset(pk for name in names for pk in known.get(name, ()))
    return ids, ignored


# --- The branches --------------------------------------------------------------


def weights() -> Weights:
    """Return the deployment's weights."""
    return Weights(
        meaning=settings.STRATA_WEIGHT_MEANING,
        keywords=settings.STRATA_WEIGHT_KEYWORDS,
        codes=settings.STRATA_WEIGHT_CODES,
        relaxed=settings.STRATA_WEIGHT_RELAXED,
        k=settings.STRATA_RRF_K,
    )


def run_branches(
    reach: Reach,
    text: str,
    space: EmbeddingSpace | None,
    given: tuple[float, ...] | None,
    journal: Journal,
) -> tuple[dict[Branch, list[Candidate]], QueryVector | None]:
    """Return each branch's ranking, and the vector that was compared.

    The words are looked up while the model server embeds the query.
    """
    count = settings.STRATA_CANDIDATES
    rankings: dict[Branch, list[Candidate]] = {}
    with query_embedding(text, space, given, journal) as embedding:
        with running(Branch.KEYWORDS, journal):
            rankings[Branch.KEYWORDS] = keywords(reach, text, count, journal)
        with running(Branch.CODES, journal):
            rankings[Branch.CODES] = by_codes(reach, code_keys(text), count=count)
        vector = embedding()
    if vector is not None:
        with running(Branch.MEANING, journal):
            rankings[Branch.MEANING] = above_floor(
                by_meaning(reach, vector.space, vector.vector, count=count)
            )
    # A vector whose comparison failed is not compared with the hits of the others.
    return rankings, vector if Branch.MEANING in rankings else None


def above_floor(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates of the meaning branch that are similar enough (R2)."""
    floor = settings.STRATA_SIMILARITY_FLOOR
    return [row for row in candidates if row.score >= floor]


def keywords(reach: Reach, text: str, count: int, journal: Journal) -> list[Candidate]:
    """Return the keyword branch's ranking; says when it could not rank all matches."""
    ranking = by_keywords(reach, content_words(text, ()), count=count)
    if ranking.is_partial:
        journal.notices.append(
            _("Very many passages hold all words; add a word to find the right ones.")
        )
    return ranking.candidates


@contextmanager
def running(branch: Branch, journal: Journal) -> Iterator[None]:
    """Run one branch; where it fails, that is said, and the others go on (X7)."""
    # Within a caller's transaction an error must not spoil the rest of it.
    protected = transaction.atomic() if connection.in_atomic_block else nullcontext()
    with journal.stage(branch):
        try:
            with protected:
                yield
        except DatabaseError:
            logger.exception("the branch %s failed", branch)
            journal.say(
                Label.DEGRADED,
                _("A part of the search failed; the results come from the rest of it."),
            )


@contextmanager
def query_embedding(
    text: str,
    space: EmbeddingSpace | None,
    given: tuple[float, ...] | None,
    journal: Journal,
) -> Iterator[Callable[[], QueryVector | None]]:
    """Give a function that waits for the query's vector, which is fetched meanwhile."""
    if space is None or given is not None or not settings.PORTAL_EMBEDS:
        vector = None
        if space is not None and given is not None:
            vector = QueryVector(space, given)
        else:
            journal.say(Label.KEYWORD_ONLY, why_no_vector(space))
        yield lambda: vector
        return
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed-query")
    try:
        future = pool.submit(embed, text, space)
        yield lambda: wait_for(future, journal)
    finally:
        pool.shutdown(wait=False)


def why_no_vector(space: EmbeddingSpace | None) -> str:
    """Return why meaning is not compared although no server failed."""
    if space is None:
        return _("Nothing is indexed by meaning here, so only words and codes count.")
    return _("This portal computes no vectors, so only words and codes count.")


def embed(text: str, space: EmbeddingSpace) -> QueryVector:
    """Return the query's vector; raises ModelError. Runs beside the request's thread."""
    model = gateway()
    if SpaceKey(model.describe()).fingerprint != space.fingerprint:
        raise ModelMismatchError(f"The model server serves another model than {space}.")
    return QueryVector(space, model.embed_query(text).vector)


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


# --- The hits ------------------------------------------------------------------


def make_hits(
    reach: Reach, fused: Sequence[Fused], vector: QueryVector | None
) -> tuple[Hit, ...]:
    """Return the hits with text, citation and cosine, in the fused order."""
    rows = {
        row.passage_id: row
        for row in cited_rows(reach, [row.passage_id for row in fused])
    }
    citations = cite(list(rows.values()))
    similarity = similarities(fused, vector)
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
        )
        for row in fused
        # Gone or switched off since the branches ran: better one hit less.
        if row.passage_id in rows
    )


def similarities(
    fused: Sequence[Fused], vector: QueryVector | None
) -> dict[int, float]:
    """Return the cosine of each hit, also of those that only words found (S1-HYB-04)."""
    if vector is None:
        return {}
    known = {
        row.passage_id: row.branches[Branch.MEANING].score
        for row in fused
        if Branch.MEANING in row.branches
    }
    missing = [row.passage_id for row in fused if row.passage_id not in known]
    if missing:
        known |= cosines(vector.space, missing, vector.vector)
    return known


def is_relaxed(hit: Hit) -> bool:
    """Tell whether a hit's words are only a part of the query's."""
    keywords = hit.branches.get(Branch.KEYWORDS)
    return keywords is not None and keywords.relaxed
