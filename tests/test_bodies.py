"""A body that is too large is refused before any of it is kept."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.asgi import get_asgi_application
from pytest_django.fixtures import Settings

from strata_portal.bodies import FORM_BYTES, bounded

PIECE = b"x" * 64 * 1024
MIB = 1024 * 1024


def post(path: str, size: int, *, announced: bool) -> tuple[int, bytes, int]:
    """Send a body in pieces; return status, answer, and the bytes that were taken."""
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"text/plain")]
    if announced:
        headers.append((b"content-length", str(size).encode()))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    taken = 0
    sent: list[dict[str, Any]] = []

    def pieces() -> Iterator[dict[str, Any]]:
        nonlocal taken
        while taken < size:
            piece = PIECE[: size - taken]
            taken += len(piece)
            yield {"type": "http.request", "body": piece, "more_body": taken < size}

    coming = pieces()
    over = {"type": "http.disconnect"}

    async def receive() -> dict[str, Any]:
        message = next(coming, None)
        if message is None:
            # The caller stays on the line until it is answered.
            await asyncio.sleep(60)
            return over
        return message

    async def send(message: Any) -> None:
        sent.append(message)

    async def answer() -> None:
        await bounded(get_asgi_application())(scope, receive, send)

    # In a thread of its own: a browser test before this one leaves a loop running here.
    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(lambda: asyncio.run(answer())).result()
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], body, taken


@pytest.mark.req("REL-U3")
@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_cut_off(
    announced: bool,  # noqa: FBT001
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.STRATA_MAX_UPLOAD_BYTES = MIB
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    most = 10 * MIB + FORM_BYTES
    path = "/admin/knowledge/source/add/"
    status, answer, taken = post(path, 2 * most, announced=announced)
    assert status == 413
    assert b"larger than what is accepted" in answer
    assert taken <= (0 if announced else most + len(PIECE))
    assert not list(tmp_path.iterdir())


@pytest.mark.req("REL-U3")
def test_only_the_pages_that_take_files_are_sent_more_than_a_form() -> None:
    for path in ("/login/", "/admin/login/", "/admin/knowledge/layer/add/"):
        assert post(path, FORM_BYTES + 1, announced=True)[0] == 413
    status, answer, _taken = post("/api/v1/search", FORM_BYTES + 1, announced=False)
    assert status == 413
    assert json.loads(answer)["error"]["code"] == "too_large"
    # A small one is read; here it lacks the token against forgery.
    assert post("/login/", 1000, announced=True)[0] == 403
