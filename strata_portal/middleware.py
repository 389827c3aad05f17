"""What every request passes: one cleaning layer, and the reader it runs for."""

from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _

from knowledge import viewing
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

    API tokens replace it in `retrieval.api.authentication`. Who sees the portal as
    another person has that person's reader.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        seen_as = request.viewing  # type: ignore[attr-defined]
        request.reader = SimpleLazyObject(  # type: ignore[attr-defined]
            lambda: seen_as.reader if seen_as else Reader.for_user(request.user)
        )
        return get_response(request)

    return middleware


class ViewingMiddleware:
    """Keep who sees the portal as another person to reading its pages.

    What is not named here is closed meanwhile: the admin, the account with its tokens
    and memory, the API without a token of its own, and everything that writes.
    """

    READABLE = frozenset(
        {
            "portal:search",
            "portal:ask",
            "portal:read",
            "portal:difference",
            "portal:source",
            "portal:original",
            "portal:knowledge-bases",
            "portal:data-flow",
            "health",
            "health-worker",
        }
    )
    ENDING = frozenset({"stop-viewing", "logout"})

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Set `request.viewing`, and end what has run its time."""
        request.viewing = None  # type: ignore[attr-defined]
        if settings.SESSION_COOKIE_NAME in request.COOKIES and not brings_token(
            request
        ):
            seen_as = viewing.current(request)
            if seen_as is None and viewing.is_marked(request):
                viewing.end(request, by_itself=True)
                messages.info(
                    request,
                    _("Viewing as another person has ended. You see your own view."),
                )
            request.viewing = seen_as  # type: ignore[attr-defined]
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponse | None:
        """Refuse what is not reading."""
        match = request.resolver_match
        if not request.viewing or match is None:  # type: ignore[attr-defined]
            return None
        if match.view_name in self.ENDING:
            # Signing out drops the session, and the audit should say so.
            if match.view_name == "logout" and request.method == "POST":
                viewing.end(request)
            return None
        if match.view_name in self.READABLE and request.method in {"GET", "HEAD"}:
            return None
        return render(request, "viewing_only.html", status=403)


def brings_token(request: HttpRequest) -> bool:
    """Tell whether a call of the API is its token's and not the session's."""
    return request.path_info.startswith("/api/") and request.headers.get(
        "Authorization", ""
    ).lower().startswith("bearer ")
