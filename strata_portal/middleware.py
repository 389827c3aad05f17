"""What every request passes: one cleaning layer, and the reader it runs for."""

from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from knowledge.permissions import Reader
from strata_portal.errors import bad_request

Handler = Callable[[HttpRequest], HttpResponse]


def clean_request_middleware(get_response: Handler) -> Handler:
    """Refuse addresses that hold a NUL, which PostgreSQL cannot even compare with."""

    def middleware(request: HttpRequest) -> HttpResponse:
        query = request.META.get("QUERY_STRING", "")
        if "\x00" in request.path_info or b"\x00" in unquote_to_bytes(query):
            return bad_request(request)
        return get_response(request)

    return middleware


def reader_middleware(get_response: Handler) -> Handler:
    """Set `request.reader`, resolved at most once for each request.

    API tokens replace it in `retrieval.api.authentication`.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        request.reader = SimpleLazyObject(lambda: Reader.for_user(request.user))  # type: ignore[attr-defined]
        return get_response(request)

    return middleware
