"""The address that clears what was learned, for who may do so in the admin too."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from knowledge.models import Layer, User
from retrieval.api.serializers import StrictSerializer
from retrieval.api.views import ApiView, body_of, refusals
from retrieval.learning import reset_learning


class ResetRequestSerializer(StrictSerializer):
    """What is to be cleared: one layer, or everything."""

    layer = serializers.CharField(
        required=False, max_length=130, help_text="As in knowledge-base/layer."
    )
    everything = serializers.BooleanField(
        required=False,
        help_text="True clears all of it and the history; for superusers.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a body that names both or neither."""
        if ("layer" in attrs) == bool(attrs.get("everything")):
            raise serializers.ValidationError(
                {"layer": ["Name a layer, or say everything: true."]}
            )
        return attrs


class ResetResponseSerializer(serializers.Serializer[Any]):
    """What went."""

    status = serializers.CharField(help_text="ok")
    removed = serializers.IntegerField(help_text="How many learned items went.")


class ResetLearningView(ApiView):
    """Resets of what was learned."""

    @extend_schema(
        operation_id="reset_learning",
        summary="Reset what was learned",
        request=ResetRequestSerializer,
        responses={200: ResetResponseSerializer, **refusals(403, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Clear what was learned of a layer, or all of it.

        A layer's reset keeps the history: what there is evidence enough for is learned
        again, and what is stored without a layer is not reached. A reset of everything
        takes the history too. What a person pinned or removed for good stays as decided.
        """
        person = self.person_who_may(request)
        sent = ResetRequestSerializer(data=body_of(request))
        sent.is_valid(raise_exception=True)
        if sent.validated_data.get("everything"):
            if not person.is_superuser or self.reader.limit is not None:
                raise exceptions.PermissionDenied(
                    "Only a superuser clears everything, with a token for all that "
                    "they may see. Name a layer.",
                    code="not_everything",
                )
            removed = reset_learning(actor=person)
        else:
            layer = self.layer_named(sent.validated_data["layer"], person)
            removed = reset_learning(actor=person, layer=layer)
        content = ResetResponseSerializer({"status": "ok", "removed": removed})
        return Response(content.data)

    def person_who_may(self, request: Request) -> User:
        """Return who calls; raises PermissionDenied for who may not reset anything."""
        person = request.user
        if (
            not isinstance(person, User)
            # A model writes an agent's requests, and may have been talked into it.
            or self.reader.is_agent
            or self.reader.acting_user_id is not None
            or not person.has_perm("retrieval.reset_learning")
        ):
            raise exceptions.PermissionDenied(
                "You have no right to reset what was learned.", code="no_reset"
            )
        return person

    def layer_named(self, name: str, person: User) -> Layer:
        """Return a layer that the person works on, within the token's scope."""
        slug, _slash, layer = name.strip().partition("/")
        layers = Layer.objects.administered_by(person)
        if self.reader.limit is not None:
            layers = layers.filter(knowledge_base__in=self.reader.limit)
        found = layers.filter(knowledge_base__slug=slug, name=layer).first()
        if found is None:
            raise exceptions.ValidationError(
                {"layer": ["You work on no layer of this name: knowledge-base/layer."]}
            )
        return found
