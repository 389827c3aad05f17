"""What turns take and give, field by field."""

from typing import Any

from rest_framework import serializers

from knowledge.models.agent import MOST_RESULTS
from knowledge.models.passage import TextOrigin
from retrieval.api.serializers import (
    CheckedQuerySerializer,
    HitSerializer,
    StrictSerializer,
)
from retrieval.results import Label
from retrieval.snapshots import Standing

# Names by which a caller would choose what is searched (S3-VIS-04).
CHOICES = (
    "bindings",
    "filter",
    "filters",
    "knowledge_base",
    "knowledge_bases",
    "layer",
    "layers",
    "metadata",
    "metadata_filter",
    "source",
    "sources",
)


class NothingNamedSerializer(StrictSerializer):
    """Takes nothing by which a model could say what is searched."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the checked values; a field that names a place is refused for that."""
        named = [name for name in CHOICES if isinstance(data, dict) and name in data]
        if named:
            why = (
                "A turn searches what its agent client is bound to, as far as its owner "
                "may see it. Leave {} out."
            )
            raise serializers.ValidationError(
                {name: [why.format(name)] for name in named}
            )
        return super().to_internal_value(data)


class TurnRequestSerializer(NothingNamedSerializer):
    """What starting a turn takes."""

    conversation = serializers.UUIDField(
        required=False,
        help_text="The conversation that the turn belongs to, for what is remembered.",
    )


class TurnSearchRequestSerializer(NothingNamedSerializer, CheckedQuerySerializer):
    """What a search of a turn takes."""

    count = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_RESULTS,
        help_text=(
            "How many passages of each bound knowledge base, up to the client's cap. "
            "All of them together are then trimmed to the context budget."
        ),
    )


class TurnSerializer(serializers.Serializer[Any]):
    """A turn."""

    turn = serializers.UUIDField(source="public_id", help_text="Names it from now on.")
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class CitedHitSerializer(HitSerializer):
    """A passage with its number in the turn."""

    number = serializers.IntegerField(
        allow_null=True,
        help_text="Cite it by this; null where the citations could not be saved.",
    )
    cut = serializers.BooleanField(
        help_text="True: the passage is longer than the text given here."
    )


class RememberedSerializer(serializers.Serializer[Any]):
    """Something that is remembered about the person."""

    text = serializers.CharField()
    score = serializers.FloatField()
    similarity = serializers.FloatField()


class TurnSearchResponseSerializer(serializers.Serializer[Any]):
    """What a search of a turn gives, best first."""

    status = serializers.CharField(help_text="ok")
    turn = serializers.UUIDField()
    results = CitedHitSerializer(many=True)
    memory = RememberedSerializer(
        many=True,
        help_text="What is remembered about the person, if the client may recall it.",
    )
    citations = serializers.ChoiceField(
        choices=["saved", "unsaved"],
        help_text="unsaved: the results carry no numbers and cannot be cited.",
    )
    withheld = serializers.IntegerField(
        help_text="How many passages the context budget kept back."
    )
    labels = serializers.ListField(
        child=serializers.ChoiceField(choices=[str(each) for each in Label]),
        help_text="What is to be known about the result as a whole.",
    )
    notices = serializers.ListField(
        child=serializers.CharField(), help_text="The same in sentences, for people."
    )
    model = serializers.CharField(
        allow_null=True, help_text="Whose vectors were compared; null without vectors."
    )
    interaction_id = serializers.CharField(
        required=False, help_text="To rate it by; left out where learning is off."
    )


class PlaceSerializer(serializers.Serializer[Any]):
    """Where a matched passage sits."""

    ref = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    lines = serializers.CharField()


class SnapshotSerializer(serializers.Serializer[Any]):
    """A citation as it was saved, and how it stands today."""

    number = serializers.IntegerField()
    ref = serializers.CharField()
    text = serializers.CharField(help_text="What the agent was shown, for good.")
    cut = serializers.BooleanField()
    title = serializers.CharField(help_text="The document's title.")
    clause_path = serializers.CharField(help_text="The headings above the passage.")
    file = serializers.CharField()
    layer = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    lines = serializers.CharField()
    date = serializers.DateField(allow_null=True)
    date_source = serializers.CharField()
    text_origin = serializers.ChoiceField(choices=TextOrigin.choices)
    revision = serializers.CharField(help_text="The document revision, as in d42.")
    indexed_at = serializers.DateTimeField()
    saved_at = serializers.DateTimeField()
    places = PlaceSerializer(many=True)
    score = serializers.FloatField(help_text="Fused.")
    standing = serializers.ChoiceField(
        choices=[str(each) for each in Standing],
        help_text=(
            "current; unchanged: replaced, and the current text still says so; "
            "changed; removed; erased."
        ),
    )
    since = serializers.DateTimeField(
        allow_null=True, help_text="When it was replaced, removed or erased."
    )
    url = serializers.CharField(help_text="The portal's page of this citation.")


class CitationsSerializer(serializers.Serializer[Any]):
    """The citations of a turn that you may open."""

    turn = serializers.UUIDField()
    citations = SnapshotSerializer(many=True)
