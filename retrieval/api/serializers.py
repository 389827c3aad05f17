"""What the API takes and gives, field by field; docs/api.md says it in prose."""

import math
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from knowledge.models import ApiToken
from knowledge.models.knowledge_base import AnswerMode
from knowledge.models.passage import TextOrigin
from knowledge.models.token import TokenKind
from knowledge.sanitizing import InvalidTextError, clean_query
from retrieval.results import Basis, Label, Level, Match

MOST_LAYERS = 100
MOST_FILTERS = 20
MOST_DIMENSIONS = 8192
MOST_TOP_K = 50


class StrictSerializer(serializers.Serializer[Any]):
    """Takes an object with the fields below and no other one."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the checked values; a field that is not known is named."""
        if not isinstance(data, Mapping):
            raise serializers.ValidationError(
                {"body": ['Send one JSON object, as in {"query": "…"}.']}
            )
        unknown = [str(name) for name in data if name not in self.fields]
        if unknown:
            known = ", ".join(self.fields) or "none"
            raise serializers.ValidationError(
                {
                    name: [f"The field {name} is not known here. Known are: {known}."]
                    for name in (each[:100] for each in unknown[:5])
                }
            )
        return super().to_internal_value(data)


@extend_schema_field({"type": "array", "items": {"type": "number"}})
class VectorField(serializers.Field[list[float], Any, Any, Any]):
    """A list of finite numbers."""

    def to_internal_value(self, data: Any) -> list[float]:
        """Return the numbers; looked at in one go, since there are hundreds."""
        if not isinstance(data, list) or not 1 <= len(data) <= MOST_DIMENSIONS:
            raise serializers.ValidationError(
                f"query_vector is a list of 1 to {MOST_DIMENSIONS} numbers."
            )
        for each in data:
            if isinstance(each, bool) or not isinstance(each, (int, float)):
                raise serializers.ValidationError("query_vector holds numbers only.")
        try:
            numbers = [float(each) for each in data]
        except OverflowError as error:
            raise serializers.ValidationError(
                "query_vector holds a number that is too large."
            ) from error
        if not any(numbers) or not all(map(math.isfinite, numbers)):
            raise serializers.ValidationError("query_vector must have a direction.")
        return numbers

    def to_representation(self, value: list[float]) -> list[float]:
        """Return the numbers as they are."""
        return value


class CheckedQuerySerializer(StrictSerializer):
    """A query, and its vector where the caller makes it."""

    query = serializers.CharField(
        help_text="A question, a few words or a code, in any language.",
        error_messages={
            "required": "Send a query: a question, a few words or a code.",
            "blank": "The query is empty. Send a question, a few words or a code.",
            "null": "The query is empty. Send a question, a few words or a code.",
            "invalid": "The query is a text.",
        },
    )
    query_vector = VectorField(
        required=False,
        help_text="The query's vector, where you embed it yourself; with model.",
    )
    model = serializers.CharField(
        required=False,
        max_length=200,
        help_text="The model that made query_vector. It must be the corpus's own.",
    )

    def validate_query(self, value: str) -> str:
        """Return the query as it is searched for."""
        try:
            return clean_query(value, max_length=settings.STRATA_QUERY_MAX_CHARACTERS)
        except InvalidTextError as error:
            raise serializers.ValidationError(str(error)) from error

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Hold a vector and its model together."""
        if "query_vector" in attrs and "model" not in attrs:
            raise serializers.ValidationError(
                {"model": ["Name the model that made query_vector."]}
            )
        if "model" in attrs and "query_vector" not in attrs:
            raise serializers.ValidationError(
                {"query_vector": ["Send the vector that this model made, or no model."]}
            )
        return attrs


class SearchRequestSerializer(CheckedQuerySerializer):
    """What a search takes."""

    layers = serializers.ListField(
        child=serializers.CharField(max_length=130),
        required=False,
        allow_empty=False,
        max_length=MOST_LAYERS,
        help_text=(
            "Search these layers only: names as GET /layers gives them. Names that are "
            "unknown or not for you are counted in layers_ignored. Agent clients may "
            "not send this."
        ),
    )
    top_k = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_TOP_K,
        help_text="How many results at most; by default what is set here, mostly 5.",
    )
    metadata_filter = serializers.DictField(
        child=serializers.CharField(max_length=500),
        required=False,
        help_text=(
            "Only passages whose metadata has all these values, compared as texts, "
            'such as {"page": "3"}.'
        ),
    )

    def validate_metadata_filter(self, value: dict[str, str]) -> dict[str, str]:
        """Return the filter, if it is of a size that a search can bear."""
        if len(value) > MOST_FILTERS or any(len(name) > 100 for name in value):
            raise serializers.ValidationError(
                f"metadata_filter takes up to {MOST_FILTERS} names of up to 100 "
                "characters."
            )
        return value


class CitationSerializer(serializers.Serializer[Any]):
    """Where a passage stands."""

    ref = serializers.CharField(help_text="Names the passage for good: d42:1830-1905.")
    title = serializers.CharField(help_text="The document's title.")
    knowledge_base = serializers.CharField(help_text="Its short name.")
    layer = serializers.CharField()
    file = serializers.CharField(help_text="The path, relative to the ingested folder.")
    page = serializers.IntegerField(allow_null=True, help_text="PDF only, else null.")
    lines = serializers.CharField(
        allow_blank=True,
        help_text='First and last line, as in "30-31"; empty where they were not kept.',
    )
    clause_path = serializers.CharField(help_text="The headings above the passage.")
    date = serializers.DateField(allow_null=True)
    date_source = serializers.CharField(
        allow_null=True, help_text="Where the date was read: front_matter or file."
    )
    archived = serializers.BooleanField()
    replaced_by = serializers.CharField(
        allow_null=True, help_text="The document that says it supersedes this one."
    )
    text_origin = serializers.ChoiceField(choices=TextOrigin.choices)
    revision = serializers.CharField(help_text="The document revision, as in d42.")
    indexed_at = serializers.DateTimeField()
    url = serializers.CharField(
        help_text="The portal's page with the passage in place."
    )


class BranchRankSerializer(serializers.Serializer[Any]):
    """Where one branch of the search put a passage."""

    rank = serializers.IntegerField(help_text="From 1.")
    score = serializers.FloatField(
        help_text="The branch's own: cosine, keyword score, or codes matched."
    )
    relaxed = serializers.BooleanField(
        help_text="Not every word of the query is there."
    )
    without_accents = serializers.BooleanField(
        help_text="A word of the query stands there with other accents only."
    )


class MatchField(serializers.CharField):
    """How a hit was found, in one word."""

    def to_representation(self, value: Any) -> str:
        """Return exact, or the only branch that found it, else hybrid."""
        if value.match is Match.EXACT:
            return str(Match.EXACT)
        return "hybrid" if len(value.branches) > 1 else str(next(iter(value.branches)))


class BranchesSerializer(serializers.Serializer[Any]):
    """The branches that found a passage; one that did not is left out."""

    meaning = BranchRankSerializer(required=False)
    keywords = BranchRankSerializer(required=False)
    codes = BranchRankSerializer(required=False)


class HitSerializer(serializers.Serializer[Any]):
    """One passage, in the document's own words."""

    ref = serializers.CharField()
    text = serializers.CharField()
    score = serializers.FloatField(help_text="Fused from the branches' ranks.")
    similarity = serializers.FloatField(
        help_text="Cosine of query and passage; 0 where no vector was compared."
    )
    match = MatchField(
        source="*",
        help_text=(
            "How it was found: meaning, keywords or codes; hybrid for several; exact "
            "for a section that the query names, which comes first."
        ),
    )
    cut = serializers.BooleanField(
        help_text="True: the named section is longer than the text given here."
    )
    branches = BranchesSerializer()
    metadata = serializers.DictField(child=serializers.CharField())
    citation = CitationSerializer()


class ConfidenceSerializer(serializers.Serializer[Any]):
    """How surely the results cover the query."""

    level = serializers.ChoiceField(choices=[str(each) for each in Level])
    basis = serializers.ChoiceField(choices=[Basis.SIMILARITY, Basis.RERANK])
    score = serializers.FloatField(help_text="The best, on the scale of the marks.")
    provisional = serializers.BooleanField(
        help_text="True: the model's marks have not been measured."
    )
    warning = serializers.CharField(help_text="What to try; empty unless low.")


class RoutingFallbackSerializer(serializers.Serializer[Any]):
    """Why the search ran again over all layers that you may search."""

    reason = serializers.CharField(help_text="insufficient_results or low_confidence")
    searched_layers = serializers.CharField(help_text="all")


class SearchResponseSerializer(serializers.Serializer[Any]):
    """What a search gives, best first."""

    status = serializers.CharField(help_text="ok")
    results = HitSerializer(many=True)
    labels = serializers.ListField(
        child=serializers.ChoiceField(choices=[str(each) for each in Label]),
        help_text="What is to be known about the result as a whole.",
    )
    notices = serializers.ListField(
        child=serializers.CharField(), help_text="The same in sentences, for people."
    )
    layers_ignored = serializers.IntegerField(
        help_text="How many of the named layers are unknown or not for you."
    )
    confidence = ConfidenceSerializer(
        allow_null=True, help_text="Null where nothing could be judged."
    )
    note = serializers.CharField(
        help_text="Named sections that are not among the results; else empty."
    )
    did_you_mean = serializers.CharField(
        help_text="The query as the documents write it, where that differs; else empty."
    )
    routing_fallback = RoutingFallbackSerializer(
        allow_null=True, help_text="Null unless routed layers gave too little."
    )
    model = serializers.CharField(
        allow_null=True, help_text="Whose vectors were compared; null without vectors."
    )
    interaction_id = serializers.CharField(
        required=False, help_text="To rate it by; left out where learning is off."
    )


class PassageSerializer(serializers.Serializer[Any]):
    """The text of a ref, and where it stands."""

    ref = serializers.CharField()
    text = serializers.CharField()
    current = serializers.BooleanField(
        help_text="Whether this revision is the one that searches find."
    )
    citation = CitationSerializer()


class KnowledgeBaseSerializer(serializers.Serializer[Any]):
    """A knowledge base that you may search."""

    slug = serializers.CharField()
    name = serializers.CharField()


class LayerSerializer(serializers.Serializer[Any]):
    """A layer that you may search."""

    name = serializers.CharField(
        source="__str__", help_text="As in knowledge-base/layer"
    )
    knowledge_base = KnowledgeBaseSerializer()
    layer = serializers.CharField(source="name")
    description = serializers.CharField()
    answer_mode = serializers.ChoiceField(choices=AnswerMode.choices)
    languages = serializers.ListField(child=serializers.CharField())


class LayersResponseSerializer(serializers.Serializer[Any]):
    """The layers that you may search."""

    layers = LayerSerializer(many=True)


class TokenSerializer(serializers.Serializer[ApiToken]):
    """The token of this request; never the token itself."""

    name = serializers.CharField()
    prefix = serializers.CharField(help_text="How it begins.")
    kind = serializers.ChoiceField(choices=TokenKind.choices)
    covers_all = serializers.BooleanField(
        help_text="True: all that its owner may search, now and later."
    )
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class MeSerializer(serializers.Serializer[Any]):
    """Who you are here, and what you may search."""

    username = serializers.CharField()
    name = serializers.CharField()
    token = TokenSerializer(allow_null=True, help_text="Null in a signed-in browser.")
    knowledge_bases = KnowledgeBaseSerializer(many=True)


class ContractSerializer(serializers.Serializer[Any]):
    """The answer contract."""

    contract = serializers.CharField(help_text="Markdown.")


class ErrorBodySerializer(serializers.Serializer[Any]):
    """Why a request was refused."""

    code = serializers.CharField(help_text="For programs.")
    message = serializers.CharField(help_text="A sentence a person can act on.")
    # The API's word for it; the class that is extended holds something else there.
    fields = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        help_text="What to correct in the body, by field.",
    )


class ErrorSerializer(serializers.Serializer[Any]):
    """The one shape of every refusal."""

    error = ErrorBodySerializer()
