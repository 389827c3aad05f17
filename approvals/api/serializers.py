"""What the gate's addresses take and give, field by field."""

from typing import Any

from rest_framework import serializers

from approvals.models.delivery import DeliveryKind
from approvals.models.question import LONGEST_QUESTION, Channel, State
from retrieval.api.serializers import StrictSerializer

MOST_ANSWERS = 100
CHANNELS = [(str(each), each.label) for each in Channel if each is not Channel.PORTAL]
# A cursor is a number of 64 bits.
LAST_SEQUENCE = 2**63 - 1


class SendRequestSerializer(StrictSerializer):
    """A question for a person."""

    interaction_id = serializers.UUIDField(
        required=False, help_text="An ask of your own, by the id that it gave."
    )
    question = serializers.CharField(
        required=False,
        max_length=LONGEST_QUESTION,
        help_text="The question in words, where there is no such ask.",
    )
    channel = serializers.ChoiceField(
        choices=CHANNELS,
        required=False,
        help_text="Where it was asked. Left out: what the agent client is set to.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Take either an ask or words."""
        if ("interaction_id" in attrs) == ("question" in attrs):
            raise serializers.ValidationError(
                {"body": ["Send either interaction_id or question."]}
            )
        return attrs


class SendResponseSerializer(serializers.Serializer[Any]):
    """The question as it waits."""

    status = serializers.CharField(help_text="ok")
    id = serializers.UUIDField(help_text="The entry's id, as answers name it.")
    state = serializers.ChoiceField(choices=State.choices)


class AnswersQuerySerializer(StrictSerializer):
    """From where on, and how many."""

    after = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=LAST_SEQUENCE,
        help_text=(
            "The cursor: what the last call gave as next_after. Left out: from behind "
            "what is acknowledged."
        ),
    )
    count = serializers.IntegerField(
        required=False, default=MOST_ANSWERS, min_value=1, max_value=MOST_ANSWERS
    )


class AnswerTextSerializer(serializers.Serializer[Any]):
    """One delivery: an approved answer, a changed one, or the end of one."""

    delivery_id = serializers.UUIDField(help_text="Stable: take each once.")
    sequence = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=DeliveryKind.choices)
    entry = serializers.UUIDField(
        help_text="What is answered. A later delivery of it takes the earlier's place."
    )
    revision = serializers.IntegerField()
    question = serializers.CharField(help_text="Empty where it is withdrawn.")
    answer = serializers.CharField(help_text="Empty where it is withdrawn.")
    knowledge_base = serializers.CharField()
    layer = serializers.CharField()
    ref = serializers.CharField(help_text="The answer's place, for citing it.")
    announced_at = serializers.DateTimeField()


class AnswersResponseSerializer(serializers.Serializer[Any]):
    """The next deliveries, in their order."""

    status = serializers.CharField(help_text="ok")
    answers = AnswerTextSerializer(many=True)
    next_after = serializers.IntegerField(
        help_text="Keep it with the answers, in one transaction."
    )
    has_more = serializers.BooleanField()


class AcknowledgeRequestSerializer(StrictSerializer):
    """Up to where you have kept everything."""

    through = serializers.IntegerField(
        min_value=1, max_value=LAST_SEQUENCE, help_text="A delivery's sequence."
    )


class AcknowledgeResponseSerializer(serializers.Serializer[Any]):
    """What that changed."""

    status = serializers.CharField(help_text="ok")
    acknowledged = serializers.IntegerField(help_text="How many of them are new.")
