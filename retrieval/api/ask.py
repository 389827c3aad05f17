"""The addresses that answer a question from the documents."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from knowledge.permissions import Reader
from retrieval.api import ask_serializers as serializers
from retrieval.api.errors import NoAnswerError
from retrieval.api.turns import TURN_ID, TurnView, as_api_error
from retrieval.api.views import ApiView, body_of, refusals, refuse_beyond
from retrieval.ask import ask
from retrieval.narrowing import narrowed
from retrieval.receipts import ReadGoneError
from retrieval.results import Occasion
from retrieval.search import SearchInputError
from retrieval.tuning import current
from retrieval.turns import TURN, TurnError
from retrieval.weighing import ScoringError

# The ask's names of what it takes, where the API's are others.
FIELDS = {"query": "question", "query_model": "model", "count": "top_k"}


class ErrorStatus(ApiView):
    """Says in a refusal's body that the ask came to an error (S1-ASK-17)."""

    def handle_exception(self, exc: Exception) -> Response:
        """Return the refusal with its status."""
        response = super().handle_exception(exc)
        response.data = {"status": "error", **response.data}
        return response


def answered(reader: Reader, given: dict[str, Any], **more: Any) -> Response:
    """Return what asking gives, or raise what the API refuses with."""
    try:
        answer = ask(
            reader,
            given["question"],
            top_k=given.get("top_k"),
            mode=given.get("mode"),
            query_vector=given.get("query_vector"),
            query_model=given.get("model"),
            **more,
        )
    except SearchInputError as error:
        field = FIELDS.get(error.field, error.field)
        raise exceptions.ValidationError({field: [error.message]}) from error
    except TurnError as error:
        raise as_api_error(error) from error
    except (ScoringError, ReadGoneError) as error:
        raise NoAnswerError(str(error)) from error
    body = serializers.told(
        answer,
        is_detailed=given["response_format"] == serializers.DETAILED,
        include_sources=given["include_sources"],
    )
    return Response(body)


class AskView(ErrorStatus):
    """Answers, in the documents' own words or to be written from them."""

    @extend_schema(
        operation_id="ask",
        summary="Ask",
        request=serializers.AskRequestSerializer,
        responses={200: serializers.AnswerSerializer, **refusals(403, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Return what the documents that you may see say about a question.

        `status` tells whether they say it: found, partly_found or not_found. In grounded
        mode you write the answer from the passages and verify it; in extractive mode
        the documents' own sentences are the answer, with a receipt. `GET /contract`
        says how a model is to go about it.
        """
        sent = serializers.AskRequestSerializer(data=body_of(request))
        sent.is_valid(raise_exception=True)
        given = sent.validated_data
        client = self.agent_client
        if client is not None:
            refuse_beyond(client, given)
        return answered(
            self.reader,
            given,
            layers=given.get("layers"),
            occasion=Occasion("api"),
            tuning=narrowed(current(), client) if client is not None else None,
        )


class TurnAskView(ErrorStatus, TurnView):
    """Answers within a turn."""

    @extend_schema(
        operation_id="ask_turn",
        summary="Ask in a turn",
        parameters=[TURN_ID],
        request=serializers.TurnAskRequestSerializer,
        responses={
            200: serializers.AnswerSerializer,
            **refusals(403, 404, 409, 413, 415),
        },
    )
    def post(self, request: Request, turn_id: str) -> Response:
        """Return what the documents that the turn is bound to say about a question.

        As an ask, within what the turn's client is bound to and its owner may search.
        """
        turn = self.own_turn(turn_id)
        sent = serializers.TurnAskRequestSerializer(data=body_of(request))
        sent.is_valid(raise_exception=True)
        given = sent.validated_data
        refuse_beyond(turn.client, given)
        return answered(
            self.reader,
            given,
            turn=turn,
            conversation_id=turn.conversation_id,
            occasion=TURN,
        )
