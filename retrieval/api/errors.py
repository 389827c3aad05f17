"""Every refusal of the API in one shape, without a word about its inside.

`{"error": {"code": …, "message": …, "fields": {…}}}`: `code` is for programs and
stays as it is, `message` is a sentence a person can act on, `fields` names what to
correct in the body and is empty where nothing in it is wrong.
"""

import logging
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import (
    BadRequest,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
)
from django.http import Http404, HttpResponseBase, JsonResponse
from rest_framework import exceptions, status
from rest_framework.response import Response

from retrieval.signing import KeyFileError

logger = logging.getLogger(__name__)

# When to ask again after the database did not answer (seconds).
RETRY_SECONDS = 5

MESSAGES = {
    status.HTTP_400_BAD_REQUEST: ("bad_request", "This request cannot be read."),
    status.HTTP_401_UNAUTHORIZED: (
        "not_authenticated",
        "Send a token in the header Authorization: Bearer strata_…, or sign in.",
    ),
    status.HTTP_404_NOT_FOUND: (
        "not_found",
        "There is nothing here, or nothing that you may see.",
    ),
    status.HTTP_405_METHOD_NOT_ALLOWED: (
        "method_not_allowed",
        "This address does not take that method. The Allow header names those it takes.",
    ),
    status.HTTP_413_REQUEST_ENTITY_TOO_LARGE: (
        "too_large",
        "The body is larger than the 1 MiB that are accepted.",
    ),
    status.HTTP_415_UNSUPPORTED_MEDIA_TYPE: (
        "unsupported_media_type",
        "Send the body as JSON, with the header Content-Type: application/json.",
    ),
    status.HTTP_500_INTERNAL_SERVER_ERROR: (
        "error",
        "Something went wrong here. The server's log says what.",
    ),
    status.HTTP_503_SERVICE_UNAVAILABLE: (
        "unavailable",
        "The database does not answer now. Please ask again in a moment.",
    ),
}


class LengthRequiredError(exceptions.APIException):
    """A body of unknown length, which could not be bounded before it is read."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_code = "length_required"
    default_detail = "Send the body with a Content-Length header, not in chunks."


class BodyTooLargeError(exceptions.APIException):
    """A body above the limit."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code, default_detail = MESSAGES[status_code]


class NoAnswerError(exceptions.APIException):
    """An answer or a check that cannot be given now."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "no_answer"
    default_detail = (
        "No receipt can be signed now, so there is no answer. Tell whoever looks after "
        "the portal: its log says why."
    )


def content(
    code: str, message: str, fields: Mapping[str, list[str]] | None = None
) -> dict[str, Any]:
    """Return the body of a refusal."""
    return {"error": {"code": code, "message": message, "fields": dict(fields or {})}}


def is_outage(error: BaseException | None) -> bool:
    """Tell whether the database failed us, and not we the database."""
    return isinstance(error, (DatabaseError, InterfaceError)) and not isinstance(
        error, (DataError, IntegrityError)
    )


def refuse(status_code: int) -> JsonResponse:
    """Return a refusal for what fails before or beside the API's own views."""
    code, message = MESSAGES[status_code]
    response = JsonResponse(content(code, message), status=status_code)
    protect(response)
    return response


def protect(response: HttpResponseBase) -> None:
    """Keep an answer out of every shared cache: it is for this caller alone."""
    response["Cache-Control"] = "no-store"
    response["Vary"] = "Authorization, Cookie"


def handle_error(error: Exception, context: Mapping[str, Any]) -> Response:
    """Return the response for whatever a view of the API raised.

    An error that is nobody's fault but ours is logged with its traceback and told
    without it. A failing database, the resolver's included, ends the request: the
    answer is never built from what could still be read.
    """
    if is_outage(error):
        # Any other error than these two is a fault of ours, and is looked for.
        is_away = isinstance(error, OperationalError | InterfaceError)
        logger.error(
            "the database failed the API: %s",
            type(error).__name__,
            exc_info=None if is_away else error,
        )
        return told(status.HTTP_503_SERVICE_UNAVAILABLE, {"Retry-After": RETRY_SECONDS})
    error = as_api_error(error)
    if isinstance(error, exceptions.ValidationError):
        fields = flatten(error.detail)
        message = " ".join(sentence for each in fields.values() for sentence in each)
        return Response(
            content("invalid", message, fields), status=status.HTTP_400_BAD_REQUEST
        )
    if not isinstance(error, exceptions.APIException):
        logger.error("the API failed", exc_info=error)
        return told(status.HTTP_500_INTERNAL_SERVER_ERROR, {})
    return of_api_error(error)


def as_api_error(error: Exception) -> Exception:
    """Return Django's and the search's own errors as the API's, others unchanged."""
    if isinstance(error, Http404):
        return exceptions.NotFound()
    if isinstance(error, PermissionDenied):
        return exceptions.PermissionDenied()
    if isinstance(error, RequestDataTooBig):
        return BodyTooLargeError()
    if isinstance(error, (SuspiciousOperation, BadRequest)):
        return exceptions.ParseError()
    if isinstance(error, KeyFileError):
        logger.error("a receipt cannot be signed: %s", error)
        return NoAnswerError()
    return error


def of_api_error(error: exceptions.APIException) -> Response:
    """Return the response for one of the API's errors, with the headers it asks for."""
    headers: dict[str, Any] = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = max(1, int(wait))
    fixed = {
        exceptions.NotAuthenticated: status.HTTP_401_UNAUTHORIZED,
        exceptions.NotFound: status.HTTP_404_NOT_FOUND,
        exceptions.MethodNotAllowed: status.HTTP_405_METHOD_NOT_ALLOWED,
        exceptions.UnsupportedMediaType: status.HTTP_415_UNSUPPORTED_MEDIA_TYPE,
    }.get(type(error))
    if fixed is not None:
        return told(fixed, headers)
    code = error.get_codes()
    return Response(
        content(code if isinstance(code, str) else "refused", str(error.detail)),
        status=error.status_code,
        headers=headers,
    )


def told(status_code: int, headers: Mapping[str, Any]) -> Response:
    """Return one of the fixed refusals."""
    code, message = MESSAGES[status_code]
    return Response(
        content(code, message),
        status=status_code,
        headers={name: str(value) for name, value in headers.items()},
    )


def flatten(detail: Any, path: str = "") -> dict[str, list[str]]:
    """Return the errors of a body as sentences by field, such as `layers.0`."""
    if isinstance(detail, Mapping):
        found: dict[str, list[str]] = {}
        for key, value in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            found.update(
                flatten(value, ".".join(part for part in (path, name) if part))
            )
        return found
    if isinstance(detail, (list, tuple)):
        return {path or "body": [str(each) for each in detail]}
    return {path or "body": [str(detail)]}
