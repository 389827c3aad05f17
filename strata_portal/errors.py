"""Pages for what went wrong, where a view could not say it itself."""

import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.defaults import server_error

from retrieval.api.errors import RETRY_SECONDS, is_outage, refuse

API = "/api/v1/"


def bad_request(request: HttpRequest) -> HttpResponse:
    """Refuse an address that cannot be read, in the form that the caller reads."""
    if request.path_info.startswith(API):
        return refuse(400)
    return render(request, "400.html", status=400)


def failed(request: HttpRequest) -> HttpResponse:
    """Answer 503 where the database did not answer, else 500; called as handler500.

    A page is never built from what could still be read: it fails as a whole, and may
    be asked for again.
    """
    is_api = request.path_info.startswith(API)
    if is_outage(sys.exc_info()[1]):
        response = refuse(503) if is_api else render(request, "503.html", status=503)
        response["Retry-After"] = str(RETRY_SECONDS)
        return response
    return refuse(500) if is_api else server_error(request)
