"""The addresses by which programs ask a person, and hear of approved answers."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, status
from rest_framework.request import Request
from rest_framework.response import Response

from approvals import actions
from approvals.api import serializers
from approvals.delivering import acknowledge, deliveries_after
from approvals.errors import ApprovalError, ConflictError, ForbiddenError
from approvals.models import Subscriber
from approvals.models.question import Channel
from knowledge.models import AgentClient
from retrieval.api.errors import RETRY_SECONDS
from retrieval.api.views import ApiView, body_of, refusals


class BusyError(exceptions.APIException):
    """What cannot be filed at this moment, and can be in another one."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "unavailable"
    wait = RETRY_SECONDS


class QuestionsView(ApiView):
    """Questions that the documents do not answer, for a person."""

    @extend_schema(
        operation_id="send_question",
        summary="Send to a person",
        request=serializers.SendRequestSerializer,
        responses={
            201: serializers.SendResponseSerializer,
            **refusals(403, 413, 415),
        },
    )
    def post(self, request: Request) -> Response:
        """Put a question before the people who can answer it.

        What asks find nothing for is put before them by itself, some minutes later;
        this does it at once. Sent twice, it is the same entry.
        """
        sent = serializers.SendRequestSerializer(data=body_of(request))
        sent.is_valid(raise_exception=True)
        given = sent.validated_data
        try:
            pending = actions.send_to_person(
                self.reader,
                interaction_id=given.get("interaction_id"),
                question=given.get("question", ""),
                channel=self.channel(given),
            )
        except ForbiddenError as error:
            raise exceptions.PermissionDenied(str(error)) from error
        except ConflictError as error:
            raise BusyError(str(error)) from error
        except ApprovalError as error:
            field = "question" if "question" in given else "interaction_id"
            raise exceptions.ValidationError({field: [str(error)]}) from error
        content = serializers.SendResponseSerializer(
            {"status": "ok", "id": pending.public_id, "state": pending.state}
        )
        return Response(content.data, status=status.HTTP_201_CREATED)

    def channel(self, given: dict[str, Any]) -> Channel:
        """Return where a question was asked: as said, else as its client is set."""
        if "channel" in given:
            return Channel(given["channel"])
        known = Subscriber.objects.filter(client=self.agent_client).first()
        return Channel(known.channel) if known is not None else Channel.API


class AgentView(ApiView):
    """An address for agent clients alone."""

    @property
    def own_client(self) -> AgentClient:
        """The client that calls."""
        client = self.agent_client
        if client is None:
            raise exceptions.PermissionDenied(
                "Answers are told to agent clients. Use a token of one.",
                code="agents_only",
            )
        return client


class AnswersView(AgentView):
    """Approved answers, each told once."""

    @extend_schema(
        operation_id="answers",
        summary="Approved answers",
        parameters=[serializers.AnswersQuerySerializer],
        responses={200: serializers.AnswersResponseSerializer, **refusals(403)},
    )
    def get(self, request: Request) -> Response:
        """Return what people have answered since a cursor.

        Keep each answer and `next_after` in one transaction of yours, and each is there
        once, whatever breaks. Left out are answers in knowledge bases that you may not
        search at this moment, and those that a later delivery has overtaken.
        """
        client = self.own_client
        sent = serializers.AnswersQuerySerializer(data=request.query_params.dict())
        sent.is_valid(raise_exception=True)
        given = sent.validated_data
        page = deliveries_after(client, self.reader, given.get("after"), given["count"])
        return Response(
            {
                "status": "ok",
                "answers": [told.payload for told in page.told],
                "next_after": page.next_after,
                "has_more": page.has_more,
            }
        )


class AcknowledgeView(AgentView):
    """How far an agent client has kept what it was told."""

    @extend_schema(
        operation_id="acknowledge_answers",
        summary="Acknowledge answers",
        request=serializers.AcknowledgeRequestSerializer,
        responses={
            200: serializers.AcknowledgeResponseSerializer,
            **refusals(403, 413, 415),
        },
    )
    def post(self, request: Request) -> Response:
        """Say that everything up to a delivery is kept.

        Calls of `answers` without a cursor go on from there, and nothing of it is sent
        to you any more.
        """
        client = self.own_client
        sent = serializers.AcknowledgeRequestSerializer(data=body_of(request))
        sent.is_valid(raise_exception=True)
        count = acknowledge(client, sent.validated_data["through"])
        return Response({"status": "ok", "acknowledged": count})
