"""The addresses of ratings, and of what was learned."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from retrieval.api.serializers import StrictSerializer
from retrieval.api.views import ApiView, body_of, refusals
from retrieval.feedback import (
    Extras,
    FeedbackError,
    find_answered,
    give_feedback,
    is_taken,
)
from retrieval.learning import LearningStats, learning_stats
from retrieval.models import LearnedItem
from retrieval.models.feedback import Reason
from retrieval.models.learning import LESSONS, ORIGINS, ItemState


class FeedbackRequestSerializer(StrictSerializer):
    """What somebody says of an ask or a search."""

    interaction_id = serializers.CharField(
        max_length=100, help_text="As the answer gave it."
    )
    helpful = serializers.BooleanField(
        help_text="Whether it helped.",
        error_messages={
            "required": "Say whether it was helpful: true or false.",
            "invalid": "helpful is true or false.",
        },
    )
    correct_layer = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=130,
        help_text="The layer where the answer stands: layer or knowledge-base/layer.",
    )
    better_query = serializers.CharField(
        required=False, allow_blank=True, help_text="A question that would find it."
    )
    chunk_feedback = serializers.DictField(
        child=serializers.CharField(allow_blank=True),
        required=False,
        help_text=(
            "By passage, what it was worth: useful, wrong or outdated. A passage is "
            "named by its id in the answer (S1) or by its ref."
        ),
    )
    reasons = serializers.ListField(
        child=serializers.CharField(allow_blank=True),
        required=False,
        help_text="Why it did not help: " + ", ".join(Reason.values) + ".",
    )
    comment = serializers.CharField(
        required=False, allow_blank=True, help_text="In your words; bank details go."
    )


class FeedbackResponseSerializer(serializers.Serializer[Any]):
    """That a rating was stored, and what of it was not."""

    status = serializers.CharField(help_text="ok")
    interaction_id = serializers.CharField()
    not_stored = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="The extras that could not be stored; left out where all were.",
    )
    warning = serializers.CharField(required=False, help_text="Why, in sentences.")


class FeedbackView(ApiView):
    """Ratings."""

    @extend_schema(
        operation_id="feedback",
        summary="Rate an answer",
        request=FeedbackRequestSerializer,
        responses={200: FeedbackResponseSerializer, **refusals(403, 404, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Say whether an answer of yours helped, and which of its passages.

        Rating it again changes what you said. A value that is not known refuses all of
        it. No rating ever changes how passages are ranked.
        """
        if not is_taken():
            raise exceptions.PermissionDenied(
                "Learning is switched off here, so nothing is rated.",
                code="learning_off",
            )
        sent = FeedbackRequestSerializer(data=body_of(request))
        sent.is_valid(raise_exception=True)
        given = sent.validated_data
        answered = find_answered(self.reader, given["interaction_id"])
        if answered is None:
            raise exceptions.NotFound
        extras = Extras(
            correct_layer=given.get("correct_layer", ""),
            better_query=given.get("better_query", ""),
            passages=given.get("chunk_feedback"),
            reasons=given.get("reasons"),
            comment=given.get("comment"),
        )
        try:
            stored = give_feedback(
                self.reader, answered, helpful=given["helpful"], extras=extras
            )
        except FeedbackError as error:
            raise exceptions.ValidationError({error.field: [error.message]}) from error
        content: dict[str, Any] = {
            "status": "ok",
            "interaction_id": str(answered.id),
        }
        if stored.not_stored:
            content["not_stored"] = list(stored.not_stored)
            content["warning"] = stored.warning
        return Response(FeedbackResponseSerializer(content).data)


class LearnedItemSerializer(serializers.Serializer[LearnedItem]):
    """One thing that was learned."""

    kind = serializers.ChoiceField(choices=LESSONS)
    term = serializers.CharField(help_text="The word or question.")
    value = serializers.ListField(
        child=serializers.CharField(),
        help_text="What is searched for too; empty for an affinity.",
    )
    layer = serializers.SerializerMethodField(
        help_text="As in knowledge-base/layer; null where it holds without one."
    )
    state = serializers.ChoiceField(choices=[ItemState.ON, ItemState.OFF])
    applied = serializers.BooleanField(
        source="is_applied", help_text="False too where an older rule taught it."
    )
    pinned = serializers.BooleanField(source="is_pinned")
    origin = serializers.ChoiceField(choices=ORIGINS)
    seen = serializers.IntegerField(help_text="How many signals speak for it.")
    usage_count = serializers.IntegerField(help_text="How many answers used it.")
    failures = serializers.IntegerField(
        help_text="How many of them did not help within the last 30 days."
    )
    learned_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)

    def get_layer(self, item: LearnedItem) -> str | None:
        """Return the layer's full name."""
        return None if item.layer is None else str(item.layer)


class LearningSerializer(serializers.Serializer[LearningStats]):
    """What was learned within what you may search."""

    learning = serializers.BooleanField(
        source="is_on", help_text="Whether anything is learned and applied."
    )
    counts = serializers.DictField(child=serializers.IntegerField())
    signals = serializers.DictField(child=serializers.IntegerField())
    last_run_at = serializers.DateTimeField(source="run_at", allow_null=True)
    items = LearnedItemSerializer(many=True, help_text="The most used first.")


class LearningView(ApiView):
    """What was learned."""

    @extend_schema(
        operation_id="learning_stats",
        summary="What was learned",
        responses={200: LearningSerializer, **refusals()},
    )
    def get(self, request: Request) -> Response:
        """List what was learned and applies to your searches, each with its evidence.

        What was learned from questions over knowledge bases that you may not search is
        neither applied to yours nor listed.
        """
        return Response(LearningSerializer(learning_stats(self.reader)).data)
