"""What is remembered about the caller's person, and their conversations."""

import uuid
from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from knowledge.actions import ActionError
from knowledge.memory import (
    MemoryClosedError,
    NoConversationError,
    end_conversation,
    forget,
    remember,
    start_conversation,
)
from knowledge.models import Statement
from knowledge.models.memory import LONGEST_STATEMENT
from retrieval.api.serializers import StrictSerializer
from retrieval.api.views import ApiView, refusals


class RememberSerializer(StrictSerializer):
    """What to remember."""

    text = serializers.CharField(
        max_length=LONGEST_STATEMENT, help_text="One statement about the person."
    )
    conversation = serializers.UUIDField(
        required=False,
        help_text="Recall it in this conversation alone, and forget it at its end.",
    )


class StatementSerializer(serializers.Serializer[Any]):
    """A statement that is remembered."""

    id = serializers.UUIDField(source="public_id")
    text = serializers.CharField()
    conversation = serializers.UUIDField(
        source="conversation.public_id", default=None, allow_null=True
    )
    state = serializers.CharField(
        source="source.state", help_text="It is recalled once this is ready."
    )
    created_at = serializers.DateTimeField()


class StatementsSerializer(serializers.Serializer[Any]):
    """What is remembered."""

    statements = StatementSerializer(many=True)


class ConversationSerializer(serializers.Serializer[Any]):
    """A conversation that goes on."""

    id = serializers.UUIDField(source="public_id")
    ends_at = serializers.DateTimeField(
        help_text="It ends then, if nothing is said before."
    )


CONVERSATION = OpenApiParameter(
    "conversation",
    uuid.UUID,
    description="Also what was said in this conversation of yours.",
)
CLOSED = OpenApiResponse(description="This token has no memory.")


def refuse(error: ActionError, field: str) -> exceptions.APIException:
    """Return the API's answer to an act that was refused."""
    if isinstance(error, MemoryClosedError):
        return exceptions.PermissionDenied(str(error))
    if isinstance(error, NoConversationError):
        return exceptions.ValidationError({"conversation": [str(error)]})
    return exceptions.ValidationError({field: [str(error)]})


def as_id(text: str) -> uuid.UUID:
    """Return an id from an address; one that is none is answered like a missing one."""
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise exceptions.NotFound from error


def named_conversation(request: Request) -> uuid.UUID | None:
    """Return the conversation in the address; what is no id opens nothing either."""
    try:
        return uuid.UUID(request.query_params.get("conversation", ""))
    except ValueError:
        return None


class MemoryView(ApiView):
    """What is remembered about you."""

    @extend_schema(
        operation_id="memory",
        summary="Memory",
        parameters=[CONVERSATION],
        responses={200: StatementsSerializer, **refusals()},
    )
    def get(self, request: Request) -> Response:
        """List what is remembered, newest first.

        What was said in a conversation is listed with that conversation's id alone.
        """
        reader = self.reader.recalling(named_conversation(request))
        statements: Any = ()
        if reader.searchable:
            statements = Statement.objects.recalled_by(reader).select_related(
                "source", "conversation"
            )
        return Response(StatementsSerializer({"statements": statements}).data)

    @extend_schema(
        operation_id="remember",
        summary="Remember",
        request=RememberSerializer,
        responses={201: StatementSerializer, 403: CLOSED, **refusals(413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Remember a statement about yourself.

        It is indexed like a document and recalled soon after. The same words are
        remembered once.
        """
        # `null` would count as "no data", which is another thing to say.
        data: Any = request.data
        given = RememberSerializer(data=data if data is not None else [])
        given.is_valid(raise_exception=True)
        try:
            statement = remember(
                self.reader,
                given.validated_data["text"],
                conversation_id=given.validated_data.get("conversation"),
            )
        except ActionError as error:
            raise refuse(error, "text") from error
        return Response(
            StatementSerializer(statement).data, status=status.HTTP_201_CREATED
        )


class StatementView(ApiView):
    """One statement."""

    http_method_names = ["delete"]

    @extend_schema(
        operation_id="forget",
        summary="Forget",
        responses={
            204: OpenApiResponse(description="Forgotten."),
            **refusals(404),
        },
    )
    def delete(self, request: Request, statement_id: str) -> Response:
        """Forget one statement now."""
        try:
            found = forget(self.reader, as_id(statement_id))
        except MemoryClosedError:
            found = False
        if not found:
            raise exceptions.NotFound
        return Response(status=status.HTTP_204_NO_CONTENT)


class ConversationsView(ApiView):
    """Your conversations."""

    http_method_names = ["post"]

    @extend_schema(
        operation_id="start_conversation",
        summary="Start a conversation",
        request=None,
        responses={201: ConversationSerializer, 403: CLOSED, **refusals(413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Start a conversation and get its id, which nobody else is told.

        It ends on call, or 24 hours after something was said in it last.
        """
        try:
            conversation = start_conversation(self.reader)
        except ActionError as error:
            raise refuse(error, "conversation") from error
        return Response(
            ConversationSerializer(conversation).data, status=status.HTTP_201_CREATED
        )


class ConversationEndView(ApiView):
    """The end of a conversation."""

    http_method_names = ["post"]

    @extend_schema(
        operation_id="end_conversation",
        summary="End a conversation",
        request=None,
        responses={
            204: OpenApiResponse(description="Ended."),
            **refusals(404, 413, 415),
        },
    )
    def post(self, request: Request, conversation_id: str) -> Response:
        """End a conversation; what was said in it is forgotten."""
        try:
            end_conversation(self.reader, as_id(conversation_id))
        except ActionError as error:
            raise exceptions.NotFound from error
        return Response(status=status.HTTP_204_NO_CONTENT)
