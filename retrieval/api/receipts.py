"""Opening a receipt, by its id alone and within a turn."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from knowledge.permissions import Reader
from retrieval.api.turns import TURN_ID, TurnView
from retrieval.api.views import ApiView, refusals
from retrieval.models.receipt import ReceiptKind
from retrieval.opening import find_receipt, open_receipt
from retrieval.proof import Outcome
from retrieval.snapshots import Standing
from retrieval.turns import bound_reader

RECEIPT_ID = OpenApiParameter(
    "receipt_id", str, OpenApiParameter.PATH, description="As in rcpt_…"
)


class QuoteSerializer(serializers.Serializer[Any]):
    """A quoted part of a passage."""

    start = serializers.IntegerField(help_text="Where it begins in the text.")
    end = serializers.IntegerField(help_text="Where it ends in the text.")
    text = serializers.CharField(allow_null=True)


class ReadSerializer(serializers.Serializer[Any]):
    """A passage as the server read it, and how it stands today."""

    ref = serializers.CharField()
    revision = serializers.CharField()
    revision_sha256 = serializers.CharField(
        allow_null=True, help_text="SHA-256 of the revision's whole text."
    )
    title = serializers.CharField(allow_null=True)
    file = serializers.CharField(allow_null=True)
    text = serializers.CharField(
        allow_null=True, help_text="What was read; null where it was removed for good."
    )
    quotes = QuoteSerializer(many=True)
    words_removed_at = serializers.CharField(allow_null=True)
    standing = serializers.ChoiceField(
        choices=[str(each) for each in Standing],
        help_text=(
            "current; unchanged: replaced, and the current text still says so; changed: "
            "it says so no more; removed: the document is gone; erased: for good."
        ),
    )
    since = serializers.CharField(allow_null=True, help_text="Since when it so stands.")
    place = serializers.CharField(
        allow_blank=True, help_text="The ref of the words in the current text."
    )
    before = serializers.CharField(
        allow_blank=True, help_text="What stands before it; not signed."
    )
    after = serializers.CharField(
        allow_blank=True, help_text="What stands after it; not signed."
    )


class ProblemSerializer(serializers.Serializer[Any]):
    """A part of a receipt that does not hold."""

    part = serializers.CharField()
    message = serializers.CharField()


class IntegritySerializer(serializers.Serializer[Any]):
    """Whether a receipt is as it was issued."""

    outcome = serializers.ChoiceField(choices=[str(each) for each in Outcome])
    problems = ProblemSerializer(many=True)


class ImportedSerializer(serializers.Serializer[Any]):
    """What an older version said of a receipt, which it did not sign."""

    id = serializers.CharField(help_text="Its id then; by it the receipt opens too.")
    issued_at = serializers.CharField(allow_null=True)


class ReceiptSerializer(serializers.Serializer[Any]):
    """A receipt. Of one that was changed only its id and `integrity` are given."""

    receipt_id = serializers.CharField()
    integrity = IntegritySerializer()
    number = serializers.IntegerField(required=False)
    issued_at = serializers.CharField(required=False)
    kind = serializers.ChoiceField(choices=ReceiptKind.values, required=False)
    verification = serializers.ChoiceField(
        choices=["verified", "verbatim"],
        required=False,
        help_text="verified: a draft's quotes and facts; verbatim: sentences as they are.",
    )
    verification_note = serializers.CharField(
        required=False, allow_null=True, help_text="What it does not show, if anything."
    )
    question = serializers.CharField(required=False, allow_null=True)
    draft = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="The draft that was checked, scrubbed.",
    )
    unchecked_sentences = serializers.ListField(
        required=False,
        child=serializers.CharField(allow_null=True),
        help_text="Sentences of it that held no quote and no fact, scrubbed.",
    )
    read = ReadSerializer(many=True, required=False)
    is_current = serializers.BooleanField(
        required=False, help_text="False: the documents do not say all of it any more."
    )
    words_removed_at = serializers.CharField(required=False, allow_null=True)
    interaction_id = serializers.UUIDField(required=False, allow_null=True)
    imported = ImportedSerializer(
        required=False, allow_null=True, help_text="Only of one that was brought in."
    )
    made_with = serializers.DictField(
        required=False, help_text="Names and hashes of models and settings."
    )
    key_id = serializers.CharField(required=False)
    sha256 = serializers.CharField(
        required=False, help_text="SHA-256 of the signed part."
    )


def opened(reader: Reader, receipt_id: str) -> Response:
    """Return the response for a receipt that the reader may open; raises NotFound."""
    receipt = find_receipt(reader, receipt_id)
    if receipt is None:
        raise exceptions.NotFound
    return Response(ReceiptSerializer(open_receipt(receipt).content).data)


class ReceiptView(ApiView):
    """Receipts."""

    @extend_schema(
        operation_id="receipt",
        summary="Receipt",
        parameters=[RECEIPT_ID],
        responses={200: ReceiptSerializer, **refusals(404)},
    )
    def get(self, request: Request, receipt_id: str) -> Response:
        """Open a receipt: what was read and checked, whether it holds, how it stands.

        For whoever may search all of its knowledge bases at this moment.
        """
        return opened(self.reader, receipt_id)


class TurnReceiptView(TurnView):
    """Receipts within a turn."""

    @extend_schema(
        operation_id="turn_receipt",
        summary="Receipt in a turn",
        parameters=[TURN_ID, RECEIPT_ID],
        responses={200: ReceiptSerializer, **refusals(404)},
    )
    def get(self, request: Request, turn_id: str, receipt_id: str) -> Response:
        """Open a receipt, if the turn is bound to all of its knowledge bases."""
        return opened(bound_reader(self.own_turn(turn_id), self.reader), receipt_id)
