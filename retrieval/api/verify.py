"""The addresses at which a drafted answer is checked."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from retrieval.api.serializers import StrictSerializer
from retrieval.api.turn_serializers import NothingNamedSerializer
from retrieval.api.turns import TURN_ID, TurnView, as_api_error
from retrieval.api.views import ApiView, body_of, refusals, refuse_beyond
from retrieval.results import Occasion
from retrieval.turns import TurnError
from retrieval.verification import FlagKind, Outcome
from retrieval.verification.verdict import MOST_SENTENCE_CHARACTERS, shortened
from retrieval.verify import (
    MOST_PASSAGES,
    Verified,
    VerifyInputError,
    verify,
    verify_in_turn,
)

MOST_REF_CHARACTERS = 100


class VerifyRequestSerializer(StrictSerializer):
    """A drafted answer and the passages it was written from."""

    draft = serializers.CharField(
        trim_whitespace=False,
        help_text=(
            "The answer, each claim with its citation, as in [S1]; up to 50,000 "
            "characters."
        ),
        error_messages={
            "required": "Send the draft: the answer with its citations.",
            "blank": "The draft is empty. Send the answer with its citations.",
            "null": "The draft is empty. Send the answer with its citations.",
            "invalid": "The draft is a text.",
        },
    )
    passages = serializers.ListField(
        child=serializers.CharField(
            max_length=MOST_REF_CHARACTERS,
            error_messages={"max_length": "A ref looks like d42:1830-1905."},
        ),
        allow_empty=True,
        help_text=(
            f"The refs of 1 to {MOST_PASSAGES} passages, exactly as they were returned; "
            "the first is S1. Their text is read from the documents."
        ),
        error_messages={
            "required": "Send passages: the refs that the draft cites, S1 first.",
            "not_a_list": "passages is a list of refs, such as d42:1830-1905.",
        },
    )


class TurnVerifyRequestSerializer(NothingNamedSerializer, VerifyRequestSerializer):
    """The same within a turn."""


class SentenceField(serializers.CharField):
    """A sentence, cut where it is long."""

    def to_representation(self, value: Any) -> str:
        """Return its beginning."""
        return shortened(str(value), MOST_SENTENCE_CHARACTERS)


class FlagSerializer(serializers.Serializer[Any]):
    """Something that is not as the draft says."""

    kind = serializers.ChoiceField(
        choices=[str(each) for each in FlagKind],
        help_text="passage: about a ref, and not about the draft.",
    )
    text = serializers.CharField(help_text="What the draft says, or the ref.")
    sentence = SentenceField(help_text="Where it says so; empty for a passage.")
    searched = serializers.ListField(
        child=serializers.CharField(), help_text="The passages searched: S1, S2, …"
    )
    message = serializers.CharField(help_text='As in "13 days" not found in S1–S4.')


class VerifyResponseSerializer(serializers.Serializer[Any]):
    """Whether the documents hold a draft's quotes and facts."""

    status = serializers.ChoiceField(
        source="outcome", choices=[str(each) for each in Outcome]
    )
    receipt_id = serializers.SerializerMethodField(
        help_text="Of a verified draft, to be shown with it; else null."
    )
    flags = FlagSerializer(many=True, help_text="At most 50; empty unless flagged.")
    unchecked_sentences = serializers.ListField(
        child=serializers.CharField(),
        help_text=(
            "Sentences without a quote or fact, which were not checked: tell the reader. "
            "At most 50, each cut to 200 characters."
        ),
    )
    note = serializers.CharField(help_text="What to do; empty unless nothing_checked.")
    notices = serializers.ListField(
        child=serializers.CharField(),
        help_text="Passages whose document has changed around them since.",
    )

    def get_receipt_id(self, verified: Verified) -> str | None:
        """Return the receipt's id, or null."""
        return verified.receipt_id or None


def input_error(error: VerifyInputError) -> exceptions.ValidationError:
    """Return what the sender has to correct as the API's error."""
    return exceptions.ValidationError({error.field: [error.message]})


class VerifyView(ApiView):
    """Drafts held against the documents."""

    @extend_schema(
        operation_id="verify",
        summary="Verify a draft",
        request=VerifyRequestSerializer,
        responses={200: VerifyResponseSerializer, **refusals(403, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Check a drafted answer against the passages it was written from.

        Every quote and every number, date, amount, percentage, code and clause must
        stand in a passage that its sentence cites. A paraphrase that changes the
        meaning without changing one of these is not found out.
        """
        given = VerifyRequestSerializer(data=body_of(request))
        given.is_valid(raise_exception=True)
        if self.agent_client is not None:
            refuse_beyond(self.agent_client, {})
        try:
            verified = verify(
                self.reader,
                given.validated_data["draft"],
                given.validated_data["passages"],
                occasion=Occasion("api"),
            )
        except VerifyInputError as error:
            raise input_error(error) from error
        return Response(VerifyResponseSerializer(verified).data)


class TurnVerifyView(TurnView):
    """Drafts of a turn held against the documents."""

    @extend_schema(
        operation_id="verify_in_turn",
        summary="Verify a draft in a turn",
        parameters=[TURN_ID],
        request=TurnVerifyRequestSerializer,
        responses={
            200: VerifyResponseSerializer,
            **refusals(403, 404, 409, 413, 415),
        },
    )
    def post(self, request: Request, turn_id: str) -> Response:
        """Check a drafted answer against passages of what the turn is bound to."""
        turn = self.own_turn(turn_id)
        given = TurnVerifyRequestSerializer(data=body_of(request))
        given.is_valid(raise_exception=True)
        try:
            verified = verify_in_turn(
                turn,
                self.reader,
                given.validated_data["draft"],
                given.validated_data["passages"],
            )
        except TurnError as error:
            raise as_api_error(error) from error
        except VerifyInputError as error:
            raise input_error(error) from error
        return Response(VerifyResponseSerializer(verified).data)
