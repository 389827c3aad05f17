"""What every door's search does: check, resolve, look named sections up, find, judge."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from django.conf import settings
from django.utils.translation import gettext as _

from knowledge.models import EmbeddingSpace, Layer
from knowledge.permissions import Reader
from knowledge.sanitizing import InvalidTextError, clean_query
from retrieval.cache import Kept, keep, key_of, recall
from retrieval.calibration import newest_fit
from retrieval.embedding import (
    QueryVector,
    VectorError,
    VectorSource,
    checked_vector,
    no_vector,
    query_embedding,
    space_in_use,
)
from retrieval.engine import Found
from retrieval.evidence import Evidence, gather
from retrieval.journal import Journal
from retrieval.judging import judge_hits
from retrieval.ledger import charge_search
from retrieval.log import record_search
from retrieval.reach import Reach
from retrieval.results import Branch, Level, Occasion, RoutingFallback, SearchResult
from retrieval.routing import route
from retrieval.spelling import suggest
from retrieval.standing import looked_up_once
from retrieval.tuning import SearchType, Tuning, current

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


@looked_up_once()
def search(
    reader: Reader,
    query: str,
    *,
    layers: Sequence[str] | None = None,
    top_k: int | None = None,
    metadata_filter: Mapping[str, str] | None = None,
    query_vector: Sequence[float] | None = None,
    query_model: str | None = None,
    tuning: Tuning | None = None,
    occasion: Occasion | None = None,
) -> SearchResult:
    """Return the passages that answer a query best among those the reader may see.

    `layers` narrows to layers of the reader's own knowledge bases, named `layer` (in
    each of them) or `knowledge-base/layer`; names that are unknown and names that are
    forbidden are ignored alike, and if none is left nothing is found. Without it the
    layers' routing patterns may lead to some of them first. `top_k` is 1 to 50, by
    default what the settings say. `metadata_filter` holds values that a passage's
    metadata must equal, as strings. `query_vector` takes the place of the query's own
    embedding; `query_model` must then name the model of the active space. `tuning`
    takes the place of the deployment's settings. Where `occasion` says through which
    door it comes, the search is logged and charged.

    Raises SearchInputError for arguments that the sender has to correct. A model server
    that is down, slow or another one than the corpus's costs the meaning branch and is
    said in the result; it raises nothing.
    """
    journal = Journal()
    with journal.stage("total"):
        asked = understood(
            reader,
            query,
            layers=layers,
            top_k=top_k,
            metadata_filter=metadata_filter,
            query_vector=query_vector,
            query_model=query_model,
            tuning=current() if tuning is None else tuning,
        )
        key = asked.key
        kept = recall(key)
        is_new = kept is None
        if kept is None:
            kept = answer(reader, asked, journal)
            keep(key, asked.reach, kept)
    result = replace(
        kept.result, layers_ignored=asked.layers_ignored, stage_ms=journal.stage_ms
    )
    if occasion is not None and occasion.leaves_trace:
        row = record_search(
            reader,
            result,
            kept.found,
            occasion=occasion,
            query=asked.text,
            count=asked.count,
            metadata_filter=dict(asked.reach.metadata),
            chose_layers=not asked.routes,
        )
        if row is not None and row.interaction_id is not None:
            result = replace(result, interaction_id=str(row.interaction_id))
        charge_search(
            reader,
            asked.text,
            kept.found if is_new else None,
            embedded=asked.given is None,
        )
    return result


@dataclass(frozen=True, slots=True)
class Asked:
    """A search as it is understood: checked, resolved, nothing looked up yet.

    `routes` tells that no layer was named, so that patterns may choose some.
    """

    text: str
    reach: Reach
    count: int
    tuning: Tuning
    space: EmbeddingSpace | None
    given: QueryVector | None
    routes: bool
    layers_ignored: int

    @property
    def key(self) -> str:
        """The key under which its result is kept."""
        return key_of(
            self.reach,
            self.text,
            count=self.count,
            tuning=self.tuning,
            given=self.given,
            space_id=None if self.space is None else self.space.pk,
            routes=self.routes,
            calibration=newest_fit(),
        )


def understood(
    reader: Reader,
    query: str,
    *,
    layers: Sequence[str] | None,
    top_k: int | None,
    metadata_filter: Mapping[str, str] | None,
    query_vector: Sequence[float] | None,
    query_model: str | None,
    tuning: Tuning,
) -> Asked:
    """Return what was asked for; raises SearchInputError."""
    text = checked_query(query)
    count = tuning.search_count if top_k is None else top_k
    if not 1 <= count <= MOST_RESULTS:
        raise SearchInputError(
            "top_k", _("Ask for 1 to %(most)s results.") % {"most": MOST_RESULTS}
        )
    metadata = checked_filter(metadata_filter)
    space = space_in_use()
    try:
        given = checked_vector(query_vector, query_model, space)
    except VectorError as error:
        raise SearchInputError(error.field, error.message) from error
    layer_ids, ignored = resolve_layers(reader, layers)
    return Asked(
        text=text,
        reach=Reach.of(reader, layer_ids, metadata),
        count=count,
        tuning=tuning,
        space=space,
        given=given,
        routes=not layers,
        layers_ignored=ignored,
    )


def answer(
    reader: Reader, asked: Asked, journal: Journal, *, reranks: bool = False
) -> Kept:
    """Search the layers that the query is routed to, and all if that is too little."""
    if asked.reach.is_empty:
        return Kept(result_of(asked, asked.reach, Evidence(), journal), Found())
    embeds = asked.tuning.search_type is not SearchType.LEXICAL
    embedding = (
        query_embedding(asked.text, asked.space, asked.given, journal)
        if embeds
        else nullcontext(no_vector)
    )
    reach = asked.reach
    routed = route(asked.text, asked.reach.sizes) if asked.routes else None
    if routed is not None:
        reach = reach.within(routed)
    fallback: RoutingFallback | None = None
    with embedding as vector:
        evidence = attempt(asked, reach, journal, vector, reranks=reranks)
        result = result_of(asked, reach, evidence, journal)
        reason = why_too_little(asked, result) if routed is not None else ""
        if reason:
            fallback = RoutingFallback(reason=reason)
            reach = asked.reach
            evidence = attempt(asked, reach, journal, vector, reranks=reranks)
            result = result_of(asked, reach, evidence, journal)
    meant = other_spelling(reach, evidence.found, asked.text, journal)
    result = replace(result, routing_fallback=fallback, did_you_mean=meant)
    return Kept(result, evidence.found)


def why_too_little(asked: Asked, result: SearchResult) -> str:
    """Return why a routed search has to go on to all layers, or nothing (S1-RTE-02)."""
    if len(result.hits) < asked.count:
        return "insufficient_results"
    sure = result.confidence
    return "low_confidence" if sure is not None and sure.level is Level.LOW else ""


def attempt(
    asked: Asked,
    reach: Reach,
    journal: Journal,
    vector: VectorSource,
    *,
    reranks: bool,
) -> Evidence:
    """Search one reach."""
    return gather(
        reach,
        asked.text,
        tuning=asked.tuning,
        count=asked.count,
        journal=journal,
        vector=vector,
        reranks=reranks,
    )


def result_of(
    asked: Asked, reach: Reach, evidence: Evidence, journal: Journal
) -> SearchResult:
    """Return what is told of a search."""
    compared = evidence.found.vector
    space = compared.space if compared is not None else None
    return SearchResult(
        query=asked.text,
        hits=evidence.hits,
        labels=tuple(journal.labels),
        notices=tuple(journal.notices),
        model=space.model_id if space is not None else None,
        knowledge_bases=reach.knowledge_base_ids,
        layers=reach.layer_ids,
        confidence=judge_hits(space, asked.text, evidence.hits),
        note=evidence.sections.note,
        tuning_version=asked.tuning.version,
    )


def other_spelling(reach: Reach, found: Found, text: str, journal: Journal) -> str:
    """Return the query as passages within reach spell it, where they lack its words."""
    rows = found.rankings.get(Branch.KEYWORDS)
    if rows is None or (rows and not rows[0].relaxed):
        return ""
    spelling = ""
    with journal.part("spelling"):
        spelling = suggest(reach, text, unknown=found.unknown)
    return spelling  # noqa: RET504 (it stays empty where that part fails)


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
