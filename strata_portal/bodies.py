"""The size of what a request may bring, judged before any of it is kept.

Django's ASGI handler writes a whole body to disk before it asks who sent it. Only the
pages that take files may be sent more than a form.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpResponse

from retrieval.api.errors import refuse as refusal_of_api
from strata_portal.errors import API

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]

# The pages that take files. Without a script, a form sends several at once.
FILE_DOORS = "/admin/knowledge/source/"
FILES_AT_ONCE = 10
FORM_BYTES = 2 * 1024 * 1024
SENTENCE = "This is larger than what is accepted here. Send the files one by one."


def most_bytes(path: str) -> int:
    """Return how large the body of a request to an address may be."""
    if path.startswith(FILE_DOORS):
        return FILES_AT_ONCE * settings.STRATA_MAX_UPLOAD_BYTES + FORM_BYTES
    return FORM_BYTES


def bounded(application: Application) -> Application:
    """Return an application that answers 413 to a body that is too large.

    A body that announces its size is refused unread; one that does not is counted, and
    cut off where it grows too large.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        most = most_bytes(scope["path"])
        if announced(scope) > most:
            await refuse(scope["path"], send)
            return
        count = 0
        answered = False

        async def counted() -> Message:
            nonlocal count
            message = await receive()
            count += len(message.get("body", b""))
            return message if count <= most else {"type": "http.disconnect"}

        async def noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        await application(scope, counted, noted)
        if count > most and not answered:
            await refuse(scope["path"], send)

    return guarded


def announced(scope: Scope) -> int:
    """Return the size that a request announces, 0 where it announces none."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            # As text, the number may be longer than what int() reads.
            return int(value[:18])
    return 0


async def refuse(path: str, send: Send) -> None:
    """Answer 413 and end the connection, so that nothing more is sent on it."""
    response: HttpResponse = (
        refusal_of_api(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if path.startswith(API)
        else HttpResponse(
            SENTENCE,
            content_type="text/plain; charset=utf-8",
            status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        )
    )
    response["Connection"] = "close"
    response["Content-Length"] = str(len(response.content))
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in response.items()
    ]
    start = {"type": "http.response.start", "status": response.status_code}
    await send({**start, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})
