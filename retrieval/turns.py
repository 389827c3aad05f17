"""One answer being composed by an agent: its searches, and their numbered citations.

The agent names no knowledge base. What a turn searches follows from what its client is
bound to and from what its owner may search at the moment of each search (S3-VIS-04, 05).
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Literal
from uuid import UUID

from django.db.models.functions import Now
from django.urls import reverse
from django.utils.translation import gettext as _

from knowledge.models import AgentClient
from knowledge.permissions import Reader
from retrieval.budget import cost_of, pack
from retrieval.embedding import (
    QueryVector,
    VectorError,
    VectorSource,
    checked_vector,
    no_vector,
    query_embedding,
    space_in_use,
)
from retrieval.engine import together
from retrieval.evidence import Evidence, gather
from retrieval.fusion import Fused
from retrieval.journal import Journal
from retrieval.ledger import charge_search
from retrieval.log import as_kept, record_search
from retrieval.memory import recall
from retrieval.models import Turn, TurnStep
from retrieval.narrowing import narrowed
from retrieval.reach import Reach
from retrieval.reranking import final_order, rerank, word_weight
from retrieval.results import Hit, Match, Occasion, SearchResult
from retrieval.search import SearchInputError, checked_query
from retrieval.snapshots import Gathered, save_citations
from retrieval.standing import looked_up_once
from retrieval.tuning import SearchType, Tuning, current

TURN = Occasion("turn")


class TurnError(Exception):
    """A turn that takes no search; `code` is for programs, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class CitedHit(Hit):
    """A hit as the agent gets it; `number` is None where it could not be saved."""

    number: int | None = None


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What one search of a turn gives, best first.

    `withheld` counts what the context budget kept back. `citations` is "unsaved" where
    the numbers could not be written; the hits are there all the same (D33).
    `interaction_id` is what the search is rated by, "" where learning is off.
    """

    query: str
    hits: tuple[CitedHit, ...]
    withheld: int
    citations: Literal["saved", "unsaved"]
    memory: tuple[Hit, ...] = ()
    labels: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    model: str | None = None
    interaction_id: str = ""
    stage_ms: dict[str, float] = field(default_factory=dict)


def start_turn(
    client: AgentClient, reader: Reader, *, conversation_id: UUID | None = None
) -> Turn:
    """Begin a turn, bound to what the client may search at this moment.

    `reader` is the reader of the client's token. A conversation's id opens nothing by
    itself (S3-VIS-06). Raises TurnError where the client is switched off.
    """
    refuse_switched_off(client)
    return Turn.objects.create(
        client=client,
        owner_id=client.owner_id,
        knowledge_base_ids=sorted(reader.searchable),
        conversation_id=conversation_id,
    )


def find_turn(client: AgentClient, public_id: str) -> Turn | None:
    """Return a client's own turn, or None whatever is wrong with the id."""
    key = as_uuid(public_id)
    if key is None:
        return None
    return Turn.objects.filter(client=client, public_id=key).first()


def as_uuid(text: str) -> UUID | None:
    """Return a turn's id as it is given out, or None for any other spelling."""
    try:
        key = UUID(text)
    except ValueError:
        return None
    return key if str(key) == text else None


def end_turn(turn: Turn) -> Turn:
    """End a turn; its citations stay. Ending it twice changes nothing."""
    Turn.objects.filter(pk=turn.pk, ended_at__isnull=True).update(ended_at=Now())
    turn.refresh_from_db(fields=["ended_at"])
    return turn


def refuse_switched_off(client: AgentClient) -> None:
    """Raise TurnError where a client may not search."""
    if not client.search_enabled:
        raise TurnError(
            "search_off", _("Searching is switched off for this agent client.")
        )


def use_turn(turn: Turn) -> None:
    """Mark a turn as used; raises TurnError where it takes no question."""
    refuse_switched_off(turn.client)
    if not Turn.objects.open().filter(pk=turn.pk).update(used_at=Now()):
        raise TurnError("turn_ended", _("This turn has ended. Start another one."))


@looked_up_once()
def search_turn(
    turn: Turn,
    reader: Reader,
    query: str,
    *,
    count: int | None = None,
    query_vector: Sequence[float] | None = None,
    query_model: str | None = None,
) -> TurnResult:
    """Search everything a turn is bound to, and number what it is given.

    Each knowledge base gives `count` passages (R4); of all of them together the best
    are returned, as many as fit the context budget. `reader` is the reader of the token
    at hand, resolved for this request, so that a deny or a binding taken away holds at
    once. Raises TurnError where the turn takes no search, SearchInputError for
    arguments that the sender has to correct.
    """
    client = turn.client
    use_turn(turn)
    tuning = narrowed(current(), client)
    text = checked_query(query)
    wanted = tuning.turn_count if count is None else count
    if not 1 <= wanted <= client.most_results:
        raise SearchInputError(
            "count",
            _("This agent client may ask for 1 to %(most)s passages.")
            % {"most": client.most_results},
        )
    space = space_in_use()
    try:
        given = checked_vector(query_vector, query_model, space)
    except VectorError as error:
        raise SearchInputError(error.field, error.message) from error
    journal = Journal()
    with journal.stage("total"):
        reach = bound_reach(turn, reader)
        is_lexical = tuning.search_type is SearchType.LEXICAL
        embeds = not is_lexical and (client.recalls_memory or not reach.is_empty)
        embedding = (
            query_embedding(text, space, given, journal)
            if embeds
            else nullcontext(no_vector)
        )
        with embedding as source:
            # One embedding serves all knowledge bases, and so does its failure.
            vector = cache(source)
            parts = gather_each(reach, text, tuning, wanted, journal, vector)
            compared = vector()
            remembered = recalled(turn, reader, text, tuning, journal, vector)
        ranked, scores = merge(parts, text, tuning, compared, journal)
        packed = pack(
            [each.hit for each in ranked],
            budget=tuning.turn_budget - sum(cost_of(hit) for hit in remembered),
            passage=tuning.turn_passage,
        )
    given_out = [
        Gathered(each.knowledge_base_id, hit)
        for each, hit in zip(ranked, packed.kept, strict=False)
    ]
    step = TurnStep.objects.create(
        turn=turn,
        query=as_kept(text),
        count=wanted,
        knowledge_base_ids=sorted(reach.knowledge_base_ids),
        tuning_version=tuning.version,
        hits=[traced(each) for each in given_out],
        withheld=[traced(each) for each in ranked[len(given_out) :]],
        labels=[str(label) for label in journal.labels],
        stage_ms=journal.stage_ms,
    )
    numbers = save_citations(step, given_out)
    found = replace(
        together([part.found for part in parts.values()]),
        reranked=scores,
        vector=compared,
    )
    model = compared.space.model_id if compared is not None else None
    row = record_search(
        reader,
        SearchResult(
            query=text,
            hits=packed.kept,
            labels=tuple(journal.labels),
            notices=tuple(journal.notices),
            model=model,
            stage_ms=journal.stage_ms,
            knowledge_bases=reach.knowledge_base_ids,
            tuning_version=tuning.version,
        ),
        found,
        occasion=TURN,
        query=text,
        count=wanted,
        withheld=[
            hit.passage_id for hit in packed.withheld if hit.passage_id is not None
        ],
        conversation_id=turn.conversation_id or turn.public_id,
    )
    charge_search(reader, text, found, embedded=given is None)
    return TurnResult(
        query=text,
        hits=tuple(
            cited(turn, each.hit, None if numbers is None else numbers[each.hit.ref])
            for each in given_out
        ),
        withheld=len(packed.withheld),
        citations="unsaved" if numbers is None else "saved",
        memory=remembered,
        labels=tuple(journal.labels),
        notices=tuple(journal.notices),
        model=model,
        interaction_id=str(row.interaction_id or "") if row is not None else "",
        stage_ms=journal.stage_ms,
    )


def recalled(
    turn: Turn,
    reader: Reader,
    text: str,
    tuning: Tuning,
    journal: Journal,
    vector: VectorSource,
) -> tuple[Hit, ...]:
    """Return what is remembered about the person, where the client may recall it.

    It is given without a number and saved nowhere: it ends with its conversation.
    """
    if not turn.client.recalls_memory:
        return ()
    found = recall(
        reader,
        text,
        conversation_id=turn.conversation_id,
        tuning=tuning,
        vector=vector,
        journal=journal,
    )
    return found.hits


def cited(turn: Turn, hit: Hit, number: int | None) -> CitedHit:
    """Return a hit with its number; its citation then opens what was saved."""
    citation = hit.citation
    if number is not None:
        url = reverse("portal:cited", args=[turn.public_id, number])
        citation = replace(citation, url=url)
    values = {each.name: getattr(hit, each.name) for each in fields(hit)}
    return CitedHit(**{**values, "citation": citation, "number": number})


def bound_reach(turn: Turn, reader: Reader) -> Reach:
    """Return what a turn may search now."""
    return Reach.of(bound_reader(turn, reader))


def bound_reader(turn: Turn, reader: Reader) -> Reader:
    """Return who a turn asks for: its bindings, within the reader's own list."""
    bound = frozenset(turn.knowledge_base_ids)
    limit = bound if reader.limit is None else bound & reader.limit
    return replace(reader, limit=limit)


def gather_each(
    reach: Reach,
    text: str,
    tuning: Tuning,
    count: int,
    journal: Journal,
    vector: VectorSource,
) -> dict[int, Evidence]:
    """Return what each knowledge base gives for the same count (S3-RTE-01)."""
    return {
        pk: gather(
            part,
            text,
            tuning=tuning,
            count=count,
            journal=journal,
            vector=vector,
        )
        for pk, part in reach.parts.items()
    }


def merge(
    parts: Mapping[int, Evidence],
    text: str,
    tuning: Tuning,
    compared: QueryVector | None,
    journal: Journal,
) -> tuple[list[Gathered], dict[int, float]]:
    """Return each place once, at its best fused score, the best first (S3-RTE-02).

    Also what the reranker said of each, by passage id.

    Sections that the query names come before all else, word for word. Every knowledge
    base has a first rank of its own, so that fused scores are often equal across them;
    then the cosine decides, and where the reranker runs, it does.
    """
    gathered = [Gathered(pk, hit) for pk, part in parts.items() for hit in part.hits]
    best: dict[str, Gathered] = {}
    for each in sorted(
        gathered, key=lambda row: (-row.hit.score, -row.hit.similarity, row.hit.ref)
    ):
        best.setdefault(each.hit.ref, each)
    named = [each for each in gathered if each.hit.match is Match.EXACT]
    by_id = {
        each.hit.passage_id: each
        for each in best.values()
        if each.hit.passage_id is not None
    }
    scores: dict[int, float] = {}
    if tuning.reranking and compared is not None:
        with journal.part("rerank"):
            scores = rerank(compared.space, compared.tokens, text, list(by_id))
    if not scores or compared is None:
        return [*named, *by_id.values()], {}
    order = final_order(
        [Fused(pk, each.hit.score, each.hit.branches) for pk, each in by_id.items()],
        scores,
        word_weight=word_weight(compared.space),
    )
    ranked = [
        replace(by_id[pk], hit=replace(by_id[pk].hit, rerank_score=scores.get(pk)))
        for pk in order
    ]
    return [*named, *ranked], scores


def traced(each: Gathered) -> dict[str, object]:
    """Return what the trace keeps of a hit: its place, never its words."""
    return {
        "ref": each.hit.ref,
        "revision": each.hit.citation.revision,
        "score": each.hit.score,
        "knowledge_base": each.knowledge_base_id,
    }
