"""What asking takes and gives, field by field; docs/api.md says it in prose."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from knowledge.models.agent import MOST_RESULTS
from knowledge.models.passage import TextOrigin
from retrieval.answers import Answer, Mode, NoteCode, Passage, Sentence, SourceCited
from retrieval.api.serializers import (
    MOST_LAYERS,
    MOST_TOP_K,
    CheckedQuerySerializer,
    ConfidenceSerializer,
    HitSerializer,
    RoutingFallbackSerializer,
)
from retrieval.api.turn_serializers import NothingNamedSerializer
from retrieval.confidence import Status
from retrieval.results import Citation, Hit, Label

CONCISE, DETAILED = "concise", "detailed"
FORMATS = (CONCISE, DETAILED)


class QuestionSerializer(CheckedQuerySerializer):
    """A question and how it is to be answered."""

    query = None  # type: ignore[assignment]  # it is called question here
    question = serializers.CharField(
        help_text="A question in plain language, in any language.",
        error_messages={
            "required": "Send a question.",
            "blank": "The question is empty. Send one.",
            "null": "The question is empty. Send one.",
            "invalid": "The question is a text.",
        },
    )
    mode = serializers.ChoiceField(
        choices=[str(each) for each in Mode],
        required=False,
        allow_null=True,
        help_text=(
            "extractive asks for the documents' own sentences; grounded cannot loosen "
            "an answer that holds a passage of an extractive layer."
        ),
    )
    response_format = serializers.ChoiceField(
        choices=FORMATS, default=CONCISE, help_text="concise or detailed."
    )
    include_sources = serializers.BooleanField(
        default=True, help_text="Whether a detailed answer lists its sources."
    )

    def validate_question(self, value: str) -> str:
        """Return the question as it is asked."""
        return self.validate_query(value)


class AskRequestSerializer(QuestionSerializer):
    """What an ask takes."""

    layers = serializers.ListField(
        child=serializers.CharField(max_length=130),
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=MOST_LAYERS,
        help_text=(
            "Ask these layers only; as for a search. Agent clients may not send this."
        ),
    )
    top_k = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_TOP_K,
        help_text="How many passages each search may find; by default mostly 10.",
    )


class TurnAskRequestSerializer(NothingNamedSerializer, QuestionSerializer):
    """What an ask of a turn takes."""

    top_k = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_RESULTS,
        help_text="As in an ask, up to the client's cap.",
    )


# --- Answers ---------------------------------------------------------------------


class BriefCitationSerializer(serializers.Serializer[Any]):
    """Where a passage stands, as briefly as a model needs it (S1-ASK-08)."""

    file = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    lines = serializers.CharField()
    clause_path = serializers.CharField()
    layer = serializers.CharField(
        help_text="Its name; knowledge-base/layer where two of yours have it."
    )
    date = serializers.DateField(
        allow_null=True,
        help_text="Shows which document is newer, not that two conflict.",
    )
    date_source = serializers.CharField(
        allow_null=True, help_text="front_matter or file."
    )
    replaced_by = serializers.CharField(
        required=False, help_text="Only where a document says that it replaces this."
    )
    archived = serializers.BooleanField(
        required=False, help_text="Only where it is true."
    )
    url = serializers.CharField(help_text="The page that shows it in place, for good.")


class GivenPassageSerializer(serializers.Serializer[Any]):
    """A passage that is handed back."""

    id = serializers.CharField(help_text="S1, S2 …: how it is cited.")
    ref = serializers.CharField()
    text = serializers.CharField(help_text="The document's own text, never reworded.")
    citation = BriefCitationSerializer()
    cut = serializers.BooleanField(
        required=False, help_text="Only where the named section is longer."
    )
    text_origin = serializers.ChoiceField(
        choices=TextOrigin.choices,
        required=False,
        help_text="Only where it was read from a scan.",
    )


class SentenceSerializer(serializers.Serializer[Any]):
    """A sentence of an extractive answer."""

    text = serializers.CharField(help_text="Exactly the span that ref names.")
    ref = serializers.CharField()
    passage = serializers.CharField(help_text="The passage that touches it.")
    citation = BriefCitationSerializer()
    text_origin = serializers.ChoiceField(choices=TextOrigin.choices)
    score = serializers.FloatField(required=False, help_text="Detailed only.")


class ChunkSerializer(HitSerializer):
    """A passage that was found, handed back or not."""

    id = serializers.SerializerMethodField(
        help_text="S1, S2 … where it is handed back, else null."
    )
    rerank_score = serializers.FloatField(
        allow_null=True,
        help_text="The reranker's probability; null where it did not run.",
    )

    def get_id(self, hit: Hit) -> str | None:
        """Return the id by which the answer cites it."""
        found: str | None = self.context["ids"].get(hit.ref)
        return found


class SourceSerializer(serializers.Serializer[Any]):
    """A document that an answer rests on."""

    title = serializers.CharField()
    file = serializers.CharField()
    knowledge_base = serializers.CharField()
    layer = serializers.CharField()
    date = serializers.DateField(allow_null=True)
    date_source = serializers.CharField(allow_null=True)
    replaced_by = serializers.CharField(required=False)
    archived = serializers.BooleanField(required=False)
    passages = serializers.ListField(child=serializers.CharField())
    relevance_score = serializers.FloatField(
        help_text="The score that confidence was judged on."
    )


class AnswerSerializer(serializers.Serializer[Any]):
    """What an ask gives; what does not apply is left out."""

    status = serializers.ChoiceField(
        choices=[*(str(each) for each in Status), "ok", "error"],
        help_text="found, partly_found or not_found; ok in a detailed answer.",
    )
    answer_status = serializers.ChoiceField(
        choices=[str(each) for each in Status],
        required=False,
        help_text="Detailed only: found, partly_found or not_found.",
    )
    mode = serializers.ChoiceField(choices=[str(each) for each in Mode])
    passages = GivenPassageSerializer(
        many=True, required=False, help_text="Best first; S1 is the best."
    )
    answer = SentenceSerializer(
        many=True, required=False, help_text="The sentences of an extractive answer."
    )
    note = serializers.CharField(required=False, help_text="What is missing.")
    note_codes = serializers.ListField(
        child=serializers.ChoiceField(choices=[str(each) for each in NoteCode]),
        required=False,
        help_text="What the note is about, for programs.",
    )
    warnings = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="To be shown beside the answer.",
    )
    notices = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="What limited the search, in sentences.",
    )
    next_step = serializers.CharField(
        required=False, help_text="What to do where it is not found, or partly."
    )
    layers_ignored = serializers.IntegerField(
        required=False, help_text="Named layers that are unknown or not for you."
    )
    citations = serializers.ChoiceField(
        choices=["saved", "unsaved"],
        required=False,
        help_text="unsaved: what is cited could not be kept.",
    )
    receipt_id = serializers.CharField(
        required=False, help_text="Of an extractive answer: opens the proof."
    )
    interaction_id = serializers.CharField(
        required=False, help_text="To rate it by; left out where learning is off."
    )
    confidence = ConfidenceSerializer(required=False, allow_null=True)
    queries = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="What was searched for, the question as written first.",
    )
    retrieved_chunks = ChunkSerializer(many=True, required=False)
    sources = SourceSerializer(many=True, required=False)
    labels = serializers.ListField(
        child=serializers.ChoiceField(choices=[str(each) for each in Label]),
        required=False,
    )
    routing_fallback = RoutingFallbackSerializer(required=False, allow_null=True)
    model = serializers.CharField(required=False, allow_null=True)


def told(answer: Answer, *, is_detailed: bool, include_sources: bool) -> dict[str, Any]:
    """Return the body of an answer."""
    content = concise(answer)
    if is_detailed:
        content |= details(answer, include_sources=include_sources)
    ids = {passage.ref: passage.id for passage in answer.passages}
    body = AnswerSerializer(content, context={"ids": ids}).data
    # A field that may be null is null where it is missing.
    return {name: value for name, value in body.items() if name in content}


def concise(answer: Answer) -> dict[str, Any]:
    """Return an answer as it is given by default (S1-ASK-06)."""
    content: dict[str, Any] = {"status": answer.status, "mode": answer.mode}
    if answer.mode is Mode.EXTRACTIVE:
        content["answer"] = [
            quoted(each, answer.shared_layers) for each in answer.sentences
        ]
    else:
        content["passages"] = [
            given(each, answer.shared_layers) for each in answer.passages
        ]
    content |= {
        name: value
        for name, value in (
            ("note", answer.note),
            ("note_codes", list(answer.notes)),
            ("warnings", list(answer.warnings)),
            ("notices", list(answer.notices)),
            ("next_step", answer.next_step),
            ("layers_ignored", answer.layers_ignored),
            ("citations", "" if answer.citations == "saved" else answer.citations),
            ("receipt_id", answer.receipt_id),
        )
        if value
    }
    if settings.LEARNING_ENABLED:
        content["interaction_id"] = answer.interaction_id
    return content


def details(answer: Answer, *, include_sources: bool) -> dict[str, Any]:
    """Return what a detailed answer has besides or instead (S1-ASK-12, S1-EXT-17)."""
    content: dict[str, Any] = {
        "status": "ok",
        "answer_status": answer.status,
        "passages": [given(each, answer.shared_layers) for each in answer.passages],
        "confidence": answer.confidence,
        "queries": list(answer.queries),
        "retrieved_chunks": answer.hits,
        "notices": list(answer.notices),
        "layers_ignored": answer.layers_ignored,
        "labels": list(answer.labels),
        "routing_fallback": answer.routing_fallback,
        "model": answer.model,
        "citations": answer.citations,
    }
    if answer.mode is Mode.EXTRACTIVE:
        content["answer"] = [
            {**quoted(each, answer.shared_layers), "score": each.score}
            for each in answer.sentences
        ]
    if include_sources:
        content["sources"] = [
            source(each, answer.shared_layers) for each in answer.sources
        ]
    return content


def given(passage: Passage, shared: frozenset[str]) -> dict[str, Any]:
    """Return a passage; what does not apply is left out."""
    content: dict[str, Any] = {
        "id": passage.id,
        "ref": passage.ref,
        "text": passage.text,
        "citation": place(passage.citation, shared),
    }
    if passage.cut:
        content["cut"] = True
    if passage.text_origin != TextOrigin.TEXT:
        content["text_origin"] = passage.text_origin
    return content


def quoted(sentence: Sentence, shared: frozenset[str]) -> dict[str, Any]:
    """Return a sentence of an extractive answer (S1-EXT-03)."""
    return {
        "text": sentence.text,
        "ref": sentence.ref,
        "passage": sentence.passage,
        "citation": place(sentence.citation, shared),
        "text_origin": sentence.text_origin,
    }


def layer_of(citation: Citation, shared: frozenset[str]) -> str:
    """Return a layer's name, with its knowledge base's where two have it (D1)."""
    name = citation.layer
    return f"{citation.knowledge_base}/{name}" if name in shared else name


def place(citation: Citation, shared: frozenset[str]) -> dict[str, Any]:
    """Return a citation as an answer gives it; labels only where they apply."""
    return {
        "file": citation.file,
        "page": citation.page,
        "lines": citation.lines,
        "clause_path": citation.clause_path,
        "layer": layer_of(citation, shared),
        "date": citation.date,
        "date_source": citation.date_source,
        **labels_of(citation),
        "url": citation.url,
    }


def labels_of(citation: Citation) -> dict[str, Any]:
    """Return the labels that apply."""
    content: dict[str, Any] = {}
    if citation.replaced_by:
        content["replaced_by"] = citation.replaced_by
    if citation.archived:
        content["archived"] = True
    return content


def source(cited: SourceCited, shared: frozenset[str]) -> dict[str, Any]:
    """Return a document that an answer rests on."""
    citation = cited.citation
    return {
        "title": citation.title,
        "file": citation.file,
        "knowledge_base": citation.knowledge_base,
        "layer": layer_of(citation, shared),
        "date": citation.date,
        "date_source": citation.date_source,
        **labels_of(citation),
        "passages": list(cited.passages),
        "relevance_score": cited.relevance_score,
    }
