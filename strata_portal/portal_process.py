"""Asking this installation's web process, from the machine that it runs on."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from strata_portal.processes import LOCALHOST
from strata_portal.settings import env_int

TIMEOUT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and the JSON object that came with it; empty for other content."""

    status: int
    content: dict[str, Any]


def web_port() -> int:
    """Return the port on which the web process listens."""
    return env_int("STRATA_WEB_PORT", 8600, least=1, most=65535)


def ask_web(path: str) -> Answer | None:
    """Return the web process's answer to GET `path`, or None where nobody answers.

    The question looks as if it came through the proxy of BASE_URL.
    """
    base = urlsplit(settings.BASE_URL)
    headers = {"Host": base.netloc, "X-Forwarded-Proto": base.scheme}
    connection = http.client.HTTPConnection(
        LOCALHOST, web_port(), timeout=TIMEOUT_SECONDS
    )
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    return Answer(response.status, content if isinstance(content, dict) else {})
