"""The API's addresses. Each answers from what the request's reader may see, alone."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.views import redirect_to_login
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.models import AgentClient, ApiToken, KnowledgeBase, Layer
from knowledge.permissions import Reader
from retrieval.api import serializers
from retrieval.api.authentication import TokenAuthentication
from retrieval.api.errors import LengthRequiredError, protect
from retrieval.contract import ANSWER_CONTRACT
from retrieval.narrowing import narrowed
from retrieval.passages import find_span
from retrieval.results import Occasion
from retrieval.search import SearchInputError, search
from retrieval.tuning import current

# The search's names of what it takes, where the API's are others.
FIELDS = {"query_model": "model"}
REFUSALS = {
    400: "The request cannot be read, or a field of it is wrong.",
    401: "No token, or one that is wrong, expired or revoked.",
    403: "Not for this caller, or switched off; the message says why.",
    404: "Nothing is there, or nothing that you may see.",
    409: "The turn has ended.",
    413: "The body is larger than 1 MiB.",
    415: "The body is not JSON.",
    429: "Too many requests; Retry-After says when to ask again.",
    503: "The database does not answer; Retry-After says when to ask again.",
}


def refusals(*codes: int) -> dict[int, OpenApiResponse]:
    """Return the described refusals of an address; some can happen everywhere."""
    return {
        code: OpenApiResponse(serializers.ErrorSerializer, REFUSALS[code])
        for code in sorted({*codes, 400, 401, 429, 503})
    }


class ApiView(APIView):
    """What all addresses share: no caches, bodies of known length, one reader."""

    http_method_names = ["get", "head", "post"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse a body whose length nobody knows, after the caller is known."""
        super().initial(request, *args, **kwargs)
        if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            raise LengthRequiredError
        if self.reader.is_agent:
            refuse_layers(request)

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Keep the answer out of shared caches."""
        response = super().finalize_response(request, response, *args, **kwargs)
        protect(response)
        return response

    @property
    def reader(self) -> Reader:
        """Whoever this request runs for."""
        reader: Reader = self.request.reader  # type: ignore[attr-defined]
        return reader

    @property
    def agent_client(self) -> AgentClient | None:
        """The agent client whose token this request carries."""
        auth = self.request.auth
        return auth.client if isinstance(auth, ApiToken) else None


def refuse_layers(request: Request) -> None:
    """Refuse layers from an agent client, at whichever address (R5).

    A model writes such a request, and may have been talked into it.
    """
    body = request.data if request.method == "POST" else None
    if "layers" in request.query_params or (
        isinstance(body, Mapping) and "layers" in body
    ):
        raise exceptions.ValidationError(
            {"layers": ["An agent client's token names no layers. Leave this out."]}
        )


def refuse_beyond(client: AgentClient, asked: Mapping[str, Any]) -> None:
    """Refuse a search that an agent client may not make."""
    if not client.search_enabled:
        raise exceptions.PermissionDenied(
            "Searching is switched off for this agent client.", code="search_off"
        )
    if (asked.get("top_k") or 1) > client.most_results:
        most = client.most_results
        raise exceptions.ValidationError(
            {"top_k": [f"This agent client may ask for at most {most} results."]}
        )


def body_of(request: Request) -> Any:
    """Return a request's body; `null` would count as "no data", which it is not."""
    data: Any = request.data
    return data if data is not None else []


class SearchView(ApiView):
    """Passages that answer a query best, among those you may see."""

    @extend_schema(
        operation_id="search",
        summary="Search",
        request=serializers.SearchRequestSerializer,
        responses={
            200: serializers.SearchResponseSerializer,
            **refusals(403, 413, 415),
        },
    )
    def post(self, request: Request) -> Response:
        """Return the best passages for a query, in the documents' own words.

        Three branches search what you may see: meaning, keywords and literal codes.
        Each result says which found it, at which rank and with which score.
        """
        given = serializers.SearchRequestSerializer(data=body_of(request))
        given.is_valid(raise_exception=True)
        asked = given.validated_data
        client = self.agent_client
        if client is not None:
            refuse_beyond(client, asked)
        try:
            found = search(
                self.reader,
                asked["query"],
                layers=asked.get("layers"),
                top_k=asked.get("top_k"),
                metadata_filter=asked.get("metadata_filter"),
                query_vector=asked.get("query_vector"),
                query_model=asked.get("model"),
                occasion=Occasion("api"),
                tuning=narrowed(current(), client) if client is not None else None,
            )
        except SearchInputError as error:
            field = FIELDS.get(error.field, error.field)
            raise exceptions.ValidationError({field: [error.message]}) from error
        content = {
            "status": "ok",
            "results": found.hits,
            "labels": found.labels,
            "notices": found.notices,
            "layers_ignored": found.layers_ignored,
            "model": found.model,
            "confidence": found.confidence,
            "note": found.note,
            "did_you_mean": found.did_you_mean,
            "routing_fallback": found.routing_fallback,
        }
        if found.interaction_id:
            content["interaction_id"] = found.interaction_id
        return Response(serializers.SearchResponseSerializer(content).data)


class PassageView(ApiView):
    """The text of a ref."""

    @extend_schema(
        operation_id="passage",
        summary="Passage",
        parameters=[
            OpenApiParameter(
                "ref",
                str,
                OpenApiParameter.PATH,
                description="A ref as searches give it, such as d42:1830-1905.",
            )
        ],
        responses={200: serializers.PassageSerializer, **refusals(404)},
    )
    def get(self, request: Request, ref: str) -> Response:
        """Return the text of a ref and where it stands.

        A ref goes on naming the same text when its document changes. One that is
        missing, malformed or not for you is answered alike.
        """
        span = find_span(self.reader, ref)
        if span is None:
            raise exceptions.NotFound
        return Response(serializers.PassageSerializer(span).data)


class LayersView(ApiView):
    """The layers that you may search."""

    @extend_schema(
        operation_id="layers",
        summary="Layers",
        responses={200: serializers.LayersResponseSerializer, **refusals()},
    )
    def get(self, request: Request) -> Response:
        """List the layers that you may search, by their full names."""
        layers = (
            Layer.objects.visible_to(self.reader)
            .select_related("knowledge_base")
            .order_by("knowledge_base__slug", "name")
        )
        return Response(serializers.LayersResponseSerializer({"layers": layers}).data)


class ContractView(ApiView):
    """What a model that answers from the documents is asked to do."""

    @extend_schema(
        operation_id="contract",
        summary="Answer contract",
        responses={200: serializers.ContractSerializer, **refusals()},
    )
    def get(self, request: Request) -> Response:
        """Return the answer contract, for the instructions of the model that answers.

        It is the same for everybody and says nothing of any document.
        """
        content = serializers.ContractSerializer({"contract": ANSWER_CONTRACT})
        return Response(content.data)


class MeView(ApiView):
    """Who you are here."""

    @extend_schema(
        operation_id="me",
        summary="Me",
        responses={200: serializers.MeSerializer, **refusals()},
    )
    def get(self, request: Request) -> Response:
        """Tell whom the request runs for, the token's scope, and when it expires."""
        user = request.user
        content = serializers.MeSerializer(
            {
                "username": user.get_username(),
                "name": str(user),
                "token": request.auth if isinstance(request.auth, ApiToken) else None,
                "knowledge_bases": KnowledgeBase.objects.visible_to(
                    self.reader
                ).order_by("slug"),
            }
        )
        return Response(content.data)


class NothingView(ApiView):
    """Every other address below the API's."""

    schema = None

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Take any method, so that all get the same answer."""
        self.http_method_names = [(request.method or "GET").lower()]
        setattr(self, self.http_method_names[0], self.nothing)
        return super().dispatch(request, *args, **kwargs)

    def nothing(self, request: Request, **kwargs: Any) -> Response:
        """Say that there is nothing."""
        raise exceptions.NotFound


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the description says that a token is sent."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Return the scheme as OpenAPI writes it."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token made on the page of your tokens, as in strata_…",
        }


class SchemaView(SpectacularAPIView):
    """The OpenAPI description of the API, for whoever may call it."""

    http_method_names = ["get", "head"]

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Keep it out of shared caches; a refusal has the shape of all others."""
        if getattr(response, "exception", False):
            request.accepted_renderer = JSONRenderer()
            request.accepted_media_type = JSONRenderer.media_type
        response = super().finalize_response(request, response, *args, **kwargs)
        protect(response)
        return response


class DocsView(SpectacularSwaggerSplitView):
    """The description as a page to try things on, for people who are signed in."""

    http_method_names = ["get", "head"]
    template_name = "retrieval/api_docs.html"

    def handle_exception(self, exc: Exception) -> Any:
        """Send a person who is not signed in to sign in, instead of refusing them."""
        if isinstance(exc, exceptions.NotAuthenticated):
            return redirect_to_login(self.request.get_full_path())
        return super().handle_exception(exc)

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Keep the page out of shared caches; it holds the person's CSRF token."""
        response = super().finalize_response(request, response, *args, **kwargs)
        protect(response)
        return response
