"""What an ask leaves behind: its interaction, citations, receipt, log row and charge."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from django.db import transaction
from django.db.models import Subquery
from django.urls import reverse

from knowledge.models import ApiToken, Document
from knowledge.permissions import Reader
from retrieval.answers import Answer, Passage, Sentence, Step
from retrieval.budget import Packed
from retrieval.citations import parse_ref
from retrieval.composing import Asking, Looked
from retrieval.extractive import Quoted
from retrieval.learning import count_use
from retrieval.ledger import charge_ask
from retrieval.log import as_kept, record_search
from retrieval.models import Interaction
from retrieval.modes import Layers
from retrieval.receipts import ReadSpan, issue_receipt
from retrieval.results import Citation, Hit, SearchResult
from retrieval.snapshots import Gathered, save_asked

# Digits of a score that are kept.
DIGITS = 6


@transaction.atomic
def record_answer(
    asking: Asking,
    looked: Looked,
    answer: Answer,
    quoted: Quoted | None,
    layers: Layers,
) -> Answer:
    """Write what an answer leaves and return it with its ids and lasting citations.

    One transaction: an extractive answer without its receipt never leaves (REL-R7).
    """
    interaction = write_interaction(asking, looked, answer)
    answer = replace(answer, interaction_id=str(interaction.public_id))
    given = [each.hit for each in answer.passages]
    given += [hit_of(each) for each in answer.sentences]
    bases = layers.knowledge_bases
    numbers = save_asked(
        interaction,
        [
            Gathered(bases[hit.citation.knowledge_base], hit)
            for hit in given
            # Of what was taken from the reader meanwhile nothing is kept.
            if hit.citation.knowledge_base in bases
        ],
    )
    if numbers is None:
        answer = replace(answer, citations="unsaved")
    else:
        answer = with_pages(answer, interaction, numbers)
    if answer.sentences and quoted is not None:
        asking.begin(Step.RECEIPT)
        receipt = issue_receipt(
            asking.reader,
            kind="extractive",
            read=spans_read(answer, quoted.documents),
            question=answer.question,
            interaction=interaction.public_id,
        )
        answer = replace(answer, receipt_id=receipt)
    return answer


def write_interaction(asking: Asking, looked: Looked, answer: Answer) -> Interaction:
    """Write what was asked and what came of it, without a word of a passage."""
    reader, reach, confidence = asking.reader, looked.reach, answer.confidence
    return Interaction.objects.create(
        owner_id=reader.user_id,
        acting_id=reader.acting_user_id,
        client_id=client_of(reader),
        turn=asking.turn,
        door=asking.occasion.door if asking.occasion is not None else "",
        conversation_id=asking.conversation_id,
        question=as_kept(answer.question),
        queries=[as_kept(query) for query in answer.queries],
        rewritten_by=looked.rewrite.by,
        learned_ids=sorted(looked.rewrite.learned_ids),
        knowledge_base_ids=sorted(reach.knowledge_base_ids),
        layer_ids=None if reach.layer_ids is None else sorted(reach.layer_ids),
        status=answer.status,
        mode=answer.mode,
        level=confidence.level if confidence is not None else "",
        basis=confidence.basis if confidence is not None else "",
        score=confidence.score if confidence is not None else None,
        hits=[kept(each) for each in answer.passages],
        notes=[str(code) for code in answer.notes],
        tuning_version=asking.asked.tuning.version,
    )


def record_use(asking: Asking, looked: Looked, answer: Answer, packed: Packed) -> None:
    """Log and charge an answer; what fails here costs nobody the answer."""
    asked, found = asking.asked, looked.found
    if asking.occasion is None:
        return
    record_search(
        asking.reader,
        SearchResult(
            query=asked.text,
            hits=packed.kept,
            labels=answer.labels,
            notices=answer.notices,
            layers_ignored=answer.layers_ignored,
            model=answer.model,
            stage_ms=answer.stage_ms,
            confidence=answer.confidence,
            routing_fallback=answer.routing_fallback,
            knowledge_bases=looked.reach.knowledge_base_ids,
            layers=looked.reach.layer_ids,
            tuning_version=asked.tuning.version,
        ),
        found,
        occasion=asking.occasion,
        query=asked.text,
        count=asked.count,
        withheld=[
            hit.passage_id for hit in packed.withheld if hit.passage_id is not None
        ],
        outcome=answer.status,
        interaction_id=UUID(answer.interaction_id),
        conversation_id=conversation_of(asking),
        chose_layers=not asked.routes,
    )
    count_use(looked.rewrite.learned_ids)
    embedded = {
        query: each.found.vector
        for query, each in zip(answer.queries, looked.searched, strict=True)
        if each.is_new and each.found.vector is not None
    }
    if asked.given is not None:
        embedded.pop(asked.text, None)
    charge_ask(asking.reader, found, embedded)


def conversation_of(asking: Asking) -> UUID | None:
    """Return what an ask is part of: a conversation, or the turn that has none."""
    if asking.conversation_id is None and asking.turn is not None:
        return asking.turn.public_id
    return asking.conversation_id


def client_of(reader: Reader) -> Subquery | None:
    """Return what looks up the agent client of the reader's token."""
    if reader.token_id is None or not reader.is_agent:
        return None
    return Subquery(ApiToken.objects.filter(pk=reader.token_id).values("client_id"))


def kept(passage: Passage) -> dict[str, object]:
    """Return what an interaction holds of a passage: never its text."""
    hit = passage.hit
    scored = hit.rerank_score
    return {
        "id": passage.id,
        "ref": hit.ref,
        "revision": hit.citation.revision,
        "passage": hit.passage_id,
        "score": round(hit.score, DIGITS),
        "similarity": round(hit.similarity, DIGITS),
        "rerank_score": None if scored is None else round(scored, DIGITS),
    }


def hit_of(sentence: Sentence) -> Hit:
    """Return what is saved of a sentence: its own words at its own place."""
    return Hit(
        passage_id=None,
        ref=sentence.ref,
        text=sentence.text,
        score=sentence.score,
        similarity=0.0,
        branches={},
        citation=sentence.citation,
    )


def with_pages(
    answer: Answer, interaction: Interaction, numbers: Mapping[str, int]
) -> Answer:
    """Return an answer whose citations open what was saved of them."""

    def paged(citation: Citation) -> Citation:
        number = numbers.get(citation.ref)
        if number is None:
            return citation
        url = reverse("portal:asked", args=[interaction.public_id, number])
        return replace(citation, url=url)

    return replace(
        answer,
        passages=tuple(
            replace(each, citation=paged(each.citation)) for each in answer.passages
        ),
        sentences=tuple(
            replace(each, citation=paged(each.citation)) for each in answer.sentences
        ),
    )


def spans_read(answer: Answer, documents: Mapping[str, Document]) -> list[ReadSpan]:
    """Return each passage that a sentence was chosen from, with the sentences in it.

    A sentence that its passage cuts was read whole, so the span is then wider.
    """
    quoted: dict[str, list[tuple[int, int]]] = {}
    for sentence in answer.sentences:
        place = parse_ref(sentence.ref)
        if place is not None:
            quoted.setdefault(sentence.passage, []).append(place[1:])
    read = []
    for passage in answer.passages:
        spans = sorted(quoted.get(passage.id, ()))
        place = parse_ref(passage.ref)
        if not spans or place is None:
            continue
        number, start, end = place
        start = min(start, *(first for first, _last in spans))
        end = max(end, *(last for _first, last in spans))
        document = documents[passage.citation.revision]
        read.append(
            ReadSpan(
                ref=document.ref(start, end),
                revision=number,
                start=start,
                end=end,
                text=document.text[start:end],
                knowledge_base_id=document.knowledge_base_id,
                source_id=document.source_id,
                title=document.title,
                file=passage.citation.file,
                quotes=tuple((first - start, last - start) for first, last in spans),
            )
        )
    return read
