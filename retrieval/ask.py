"""Answering a question from the documents, or saying that they do not (S1-ASK).

The order of the steps is the order of the lines in `ask` and `look`: route; rewrite;
search each query, the cache first, and merge by rank; rerank; named clauses first; pack
to the budget; choose the mode; answer; cite, with a receipt for an extractive answer.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from knowledge.permissions import Reader
from retrieval.answers import Answer, Mode, Progress, Step, numbered
from retrieval.budget import CHARACTERS_A_TOKEN, pack
from retrieval.composing import (
    Asking,
    Looked,
    at_best_one,
    checked_mode,
    compose,
)
from retrieval.engine import choose
from retrieval.evidence import with_sections
from retrieval.extractive import quote
from retrieval.journal import Journal
from retrieval.judging import judge_hits
from retrieval.models import Turn
from retrieval.modes import Layers, choose_mode
from retrieval.narrowing import narrowed
from retrieval.queries import Searches, search_all
from retrieval.reach import Reach
from retrieval.recording import record_answer, record_use
from retrieval.results import Level, Occasion, RoutingFallback
from retrieval.rewriting import Rewrite, rewrite
from retrieval.routing import route
from retrieval.search import MOST_RESULTS, understood
from retrieval.sections import SectionsFound, find_sections
from retrieval.spelling import with_marks
from retrieval.standing import looked_up_once
from retrieval.tuning import Tuning, current
from retrieval.turns import bound_reader, use_turn


@looked_up_once()
def ask(
    reader: Reader,
    question: str,
    *,
    layers: Sequence[str] | None = None,
    top_k: int | None = None,
    mode: str | None = None,
    query_vector: Sequence[float] | None = None,
    query_model: str | None = None,
    turn: Turn | None = None,
    tuning: Tuning | None = None,
    conversation_id: UUID | None = None,
    occasion: Occasion | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Return what the documents that the reader may see say about a question.

    `layers`, `top_k`, `query_vector` and `query_model` are those of a search; `top_k`
    bounds each search and what they give together, the budget then decides how much of
    it is handed back. `mode` is `extractive` or `grounded`. A `turn` asks within what
    it is bound to. Where `occasion` says through which door it comes, the answer leaves
    an interaction, citations and, if it is extractive, a receipt; it is logged and
    charged. `progress` is called with each step when it begins.

    Raises SearchInputError for arguments that the sender has to correct, TurnError for
    a turn that takes no question, ScoringError where nothing can choose the sentences
    of an extractive answer, and ReadGoneError where one of them was deleted meanwhile.
    """
    begin = progress or no_progress
    wanted = checked_mode(mode)
    tuning = current() if tuning is None else tuning
    if turn is not None:
        use_turn(turn)
        reader, tuning = bound_reader(turn, reader), narrowed(tuning, turn.client)
    journal = Journal()
    with journal.stage("total"):
        begin(Step.ROUTE)
        asked = understood(
            reader,
            question,
            layers=layers,
            top_k=tuning.ask_count if top_k is None else top_k,
            metadata_filter=None,
            query_vector=query_vector,
            query_model=query_model,
            tuning=tuning,
        )
        asking = Asking(reader, asked, turn, occasion, journal, begin, conversation_id)
        routed = route(asked.text, asked.reach.sizes) if asked.routes else None
        reach = asked.reach if routed is None else asked.reach.within(routed)

        begin(Step.REWRITE)
        reworded = rewrite(
            reader, asked.text, reach, journal, leaves_trace=asking.leaves_trace
        )
        looked = look(asking, reach, reworded)
        reason = why_too_little(asking, looked) if routed is not None else ""
        if reason:
            fallback = RoutingFallback(reason=reason)
            looked = replace(look(asking, asked.reach, reworded), fallback=fallback)

        begin(Step.PACK)
        packed = pack(
            looked.hits, budget=settings.ANSWER_TOKEN_BUDGET, most=MOST_RESULTS
        )
        passages = numbered(packed.kept)
        known = Layers.of(reader)
        answered, said = choose_mode(wanted, packed.kept, known, looked.reach)

        begin(Step.ANSWER)
        quoted = None
        if answered is Mode.EXTRACTIVE:
            with journal.stage("sentences"):
                quoted = quote(
                    reader,
                    looked.read_as,
                    passages,
                    space=asked.space,
                    compared=looked.found.vector,
                    budget=settings.ANSWER_TOKEN_BUDGET,
                )
        answer = compose(asking, looked, passages, quoted, said=said)

        if asking.leaves_trace:
            begin(Step.CITE)
            with journal.stage("record"):
                answer = record_answer(asking, looked, answer, quoted, known)
    answer = replace(answer, shared_layers=known.shared, stage_ms=journal.stage_ms)
    if asking.leaves_trace:
        record_use(asking, looked, answer, packed)
    return answer


def look(asking: Asking, reach: Reach, reworded: Rewrite) -> Looked:
    """Return what one reach has for a question: named clauses, then the best passages."""
    asked, journal, tuning = asking.asked, asking.journal, asking.asked.tuning
    asking.begin(Step.SEARCH)
    read_as, queries = read_question(asking, reach), reworded.queries
    if read_as != asked.text:
        others = (each for each in queries[1:] if each.casefold() != read_as.casefold())
        queries = (asked.text, read_as, *others)
    searches = Searches(
        reach=reach,
        # In a turn each knowledge base is searched with the same count (R4).
        parts=[reach] if asking.turn is None else list(reach.parts.values()),
        tuning=tuning,
        space=asked.space,
        given=asked.given,
        bound=max(asked.count, tuning.rerank_depth),
        leading=queries.index(read_as),
    )
    ranked, searched = search_all(searches, queries, journal)

    asking.begin(Step.RERANK)
    found = choose(
        reach,
        read_as,
        ranked,
        tuning=tuning,
        count=asked.count,
        journal=journal,
        reranks=True,
        tells_relaxed=False,
    )

    asking.begin(Step.CLAUSES)
    sections = SectionsFound()
    with journal.part("sections"):
        sections = find_sections(
            reach, read_as, budget=settings.ANSWER_TOKEN_BUDGET * CHARACTERS_A_TOKEN
        )
    hits = with_sections(sections, at_best_one(found.hits), asked.count)
    space = found.vector.space if found.vector is not None else None
    return Looked(
        reach=reach,
        read_as=read_as,
        queries=queries,
        rewrite=reworded,
        searched=searched,
        found=found,
        sections=sections,
        hits=hits,
        confidence=judge_hits(space, read_as, hits),
    )


def read_question(asking: Asking, reach: Reach) -> str:
    """Return the question as written, or with the marks that it was typed without.

    The passages themselves are asked how they spell its words (R14), and it is said. A
    question that came with its vector stays as it is.
    """
    asked, journal = asking.asked, asking.journal
    spelt = ""
    if asked.given is None:
        with journal.part("spelling"):
            spelt = with_marks(reach, asked.text)
    if not spelt:
        return asked.text
    journal.note(_("Your question was read as “%(question)s”.") % {"question": spelt})
    return spelt


def why_too_little(asking: Asking, looked: Looked) -> str:
    """Return why a routed ask has to go on to all layers, or nothing (S1-RTE-02)."""
    if len(looked.hits) < asking.asked.count:
        return "insufficient_results"
    sure = looked.confidence
    return "low_confidence" if sure is not None and sure.level is Level.LOW else ""


def no_progress(step: Step) -> None:
    """Tell nobody how far an ask is."""
