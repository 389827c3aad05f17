"""The addresses that a model drives: turns, their searches and their citations."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, status
from rest_framework.request import Request
from rest_framework.response import Response

from retrieval.api import turn_serializers as serializers
from retrieval.api.views import FIELDS, ApiView, body_of, refusals
from retrieval.models import Turn
from retrieval.search import SearchInputError
from retrieval.snapshots import stands_of
from retrieval.turns import (
    TurnError,
    as_uuid,
    end_turn,
    find_turn,
    search_turn,
    start_turn,
)

TURN_ID = OpenApiParameter(
    "turn_id", str, OpenApiParameter.PATH, description="As starting the turn gave it."
)


class ConflictError(exceptions.APIException):
    """What cannot be done any more."""

    status_code = status.HTTP_409_CONFLICT


def as_api_error(error: TurnError) -> exceptions.APIException:
    """Return a turn's refusal as the API's."""
    if error.code == "turn_ended":
        return ConflictError(error.message, code=error.code)
    return exceptions.PermissionDenied(error.message, code=error.code)


class TurnView(ApiView):
    """What the addresses of turns share."""

    def own_turn(self, turn_id: str) -> Turn:
        """Return the client's own turn; anybody else's is as absent as no turn."""
        turn = (
            find_turn(self.agent_client, turn_id)
            if self.agent_client is not None
            else None
        )
        if turn is None:
            raise exceptions.NotFound
        return turn


class StartTurnView(TurnView):
    """Turns."""

    @extend_schema(
        operation_id="start_turn",
        summary="Start a turn",
        request=serializers.TurnRequestSerializer,
        responses={201: serializers.TurnSerializer, **refusals(403, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Start a turn: one answer that an agent composes from several searches.

        Only an agent client's token starts turns. What a turn searches follows from
        what the client is bound to and what its owner may search; nobody can name it.
        """
        if self.agent_client is None:
            raise exceptions.PermissionDenied(
                "Only an agent client starts turns. Send the token of one.",
                code="agent_client_required",
            )
        given = serializers.TurnRequestSerializer(data=body_of(request))
        given.is_valid(raise_exception=True)
        try:
            turn = start_turn(
                self.agent_client,
                self.reader,
                conversation_id=given.validated_data.get("conversation"),
            )
        except TurnError as error:
            raise as_api_error(error) from error
        turn.refresh_from_db()
        content = serializers.TurnSerializer(turn).data
        return Response(content, status=status.HTTP_201_CREATED)


class TurnSearchView(TurnView):
    """Searches of a turn."""

    @extend_schema(
        operation_id="search_turn",
        summary="Search in a turn",
        parameters=[TURN_ID],
        request=serializers.TurnSearchRequestSerializer,
        responses={
            200: serializers.TurnSearchResponseSerializer,
            **refusals(403, 404, 409, 413, 415),
        },
    )
    def post(self, request: Request, turn_id: str) -> Response:
        """Return the best passages of all that the turn is bound to, each numbered.

        Several searches of a turn may run at once; their numbers never collide, and a
        passage that the turn has cited before keeps its number.
        """
        turn = self.own_turn(turn_id)
        given = serializers.TurnSearchRequestSerializer(data=body_of(request))
        given.is_valid(raise_exception=True)
        asked = given.validated_data
        try:
            found = search_turn(
                turn,
                self.reader,
                asked["query"],
                count=asked.get("count"),
                query_vector=asked.get("query_vector"),
                query_model=asked.get("model"),
            )
        except TurnError as error:
            raise as_api_error(error) from error
        except SearchInputError as error:
            field = FIELDS.get(error.field, error.field)
            raise exceptions.ValidationError({field: [error.message]}) from error
        content: dict[str, Any] = {
            "status": "ok",
            "turn": turn.public_id,
            "results": found.hits,
            "memory": found.memory,
            "citations": found.citations,
            "withheld": found.withheld,
            "labels": found.labels,
            "notices": found.notices,
            "model": found.model,
        }
        if found.interaction_id:
            content["interaction_id"] = found.interaction_id
        return Response(serializers.TurnSearchResponseSerializer(content).data)


class EndTurnView(TurnView):
    """The end of a turn."""

    @extend_schema(
        operation_id="end_turn",
        summary="End a turn",
        parameters=[TURN_ID],
        request=serializers.NothingNamedSerializer,
        responses={200: serializers.TurnSerializer, **refusals(404, 413, 415)},
    )
    def post(self, request: Request, turn_id: str) -> Response:
        """End a turn: it takes no search any more, and its citations stay."""
        turn = self.own_turn(turn_id)
        given = serializers.NothingNamedSerializer(data=body_of(request))
        given.is_valid(raise_exception=True)
        return Response(serializers.TurnSerializer(end_turn(turn)).data)


class TurnCitationsView(TurnView):
    """The citations of a turn."""

    @extend_schema(
        operation_id="turn_citations",
        summary="Citations of a turn",
        parameters=[TURN_ID],
        responses={200: serializers.CitationsSerializer, **refusals(404)},
    )
    def get(self, request: Request, turn_id: str) -> Response:
        """List a turn's citations, as they were saved, in the order of their numbers.

        For the agent client and for the person it acts for. Citations of what they may
        not search at this moment are left out.
        """
        key = as_uuid(turn_id)
        if key is None:
            raise exceptions.NotFound
        turns = Turn.objects.filter(public_id=key)
        turn = (
            turns.filter(client=self.agent_client)
            if self.reader.is_agent
            else turns.filter(owner=self.reader.user_id)
        ).first()
        if turn is None:
            raise exceptions.NotFound
        rows = list(turn.snapshots.visible_to(self.reader))
        stands = stands_of(rows)
        content = serializers.CitationsSerializer(
            {
                "turn": turn.public_id,
                "citations": [
                    {
                        **vars(row),
                        "revision": f"d{row.revision}",
                        "standing": stands[row.pk].standing,
                        "since": stands[row.pk].since,
                        "url": reverse(
                            "portal:cited", args=[turn.public_id, row.number]
                        ),
                    }
                    for row in rows
                ],
            }
        )
        return Response(content.data)
