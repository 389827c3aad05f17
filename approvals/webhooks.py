"""Signed webhooks, out and in, in the form of Standard Webhooks.

A message is signed with HMAC-SHA256 over its id, its time and its bytes as they are
sent. Whoever receives one checks the signature in constant time, refuses what is older
or newer than five minutes, and takes each id once. Ready libraries of many languages
speak this form; docs/notifications.md shows it in a few lines.
"""

import base64
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from knowledge.inference.gateway import ModelUnavailableError
from knowledge.inference.http import Deadline, Http, is_loopback_host

# How far a message's time may lie from ours (s); REL-W2.
TOLERANCE: Final = 300
# How long a receiver may take (s), and how much it may say.
SECONDS: Final = 10.0
MOST_BYTES: Final = 64 * 1024
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 (how secrets begin, none itself)
_VERSION: Final = "v1"
_LONGEST_ID: Final = 200
_PORT = re.compile(r"(?<!:):[0-9]{1,5}$")


class WebhookError(Exception):
    """A message was not taken; the message says why, and names no secret."""


class SignatureError(Exception):
    """A message is not signed by who may send it, or not now."""


def secret_of(purpose: str) -> str:
    """Return the portal's own secret for a purpose.

    It follows from SECRET_KEY and is kept nowhere, so that who reads the database
    cannot sign.
    """
    key = hmac.new(settings.SECRET_KEY.encode(), f"webhooks:{purpose}".encode(), sha256)
    return SECRET_PREFIX + base64.b64encode(key.digest()).decode("ascii")


def sign(body: bytes, secret: str, timestamp: int, event_id: str) -> dict[str, str]:
    """Return the headers that sign a body; `timestamp` in seconds since 1970."""
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"{_VERSION},{_signature(body, secret, timestamp, event_id)}",
    }


def verify(headers: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> str:
    """Return the id of a message that is signed with one of the secrets, now.

    `headers` find their names in any case. Raises SignatureError without telling what
    was wrong with it.
    """
    event_id = headers.get("webhook-id", "")
    written = headers.get("webhook-timestamp", "")
    given = headers.get("webhook-signature", "").split(" ")
    is_timed = (
        written.isascii()
        and written.isdecimal()
        and len(written) <= 12
        and abs(time.time() - int(written)) <= TOLERANCE
    )
    is_named = (
        0 < len(event_id) <= _LONGEST_ID
        and event_id.isascii()
        and event_id.isprintable()
    )
    if not is_timed or not is_named:
        raise SignatureError
    is_right = False
    # All are compared, whichever fits, so that time tells nothing.
    for secret in secrets:
        wanted = f"{_VERSION},{_signature(body, secret, int(written), event_id)}"
        for each in given[:8]:
            is_right |= hmac.compare_digest(wanted.encode(), each.encode())
    if not is_right:
        raise SignatureError
    return event_id


def _signature(body: bytes, secret: str, timestamp: int, event_id: str) -> str:
    """Return the signature of a message, in base 64."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    signed = f"{event_id}.{timestamp}.".encode() + body
    return base64.b64encode(hmac.new(key, signed, sha256).digest()).decode("ascii")


def refusal_of(url: str) -> str:
    """Return why nothing is sent to an address, "" where it may be.

    Only hosts that the operator lists are sent to: nobody who may write an address
    into a form reaches the network behind the portal.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError:
        return _("This is no address of a webhook.")
    host = parts.hostname or ""
    if not port or not host or parts.username is not None or "\\" in url:
        return _("This is no address of a webhook.")
    if parts.scheme == "http" and not is_loopback_host(host):
        return _("An address on another machine must begin with https://.")
    if f"{host}:{port}" not in allowed_hosts():
        return _(
            "Messages may not go to %(host)s:%(port)s. An operator adds it to "
            "STRATA_WEBHOOK_HOSTS."
        ) % {"host": host, "port": port}
    return ""


def allowed_hosts() -> frozenset[str]:
    """Return the hosts that may be sent to, each with its port."""
    return frozenset(
        re.sub(r"[\[\]]", "", each if _PORT.search(each) else f"{each}:443").lower()
        for each in settings.STRATA_WEBHOOK_HOSTS
    )


def send_signed(
    url: str, secret: str, event_id: str, payload: Mapping[str, Any]
) -> None:
    """Send a message, signed; any status from 200 to 299 means that it was taken.

    `event_id` stays the same over attempts, so that the receiver takes it once. Raises
    WebhookError with a sentence. Redirects are not followed.
    """
    if refused := refusal_of(url):
        raise WebhookError(refused)
    body = json.dumps(payload, ensure_ascii=True).encode("ascii")
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}"
    client = Http(
        place,
        sign(body, secret, int(time.time()), event_id),
        name=_("The receiver"),
        most_bytes=MOST_BYTES,
    )
    try:
        # The path of such an address is often a secret; no message names it.
        path = url.removeprefix(place) or "/"
        status, _answer = client.call("POST", path, body, Deadline(SECONDS))
    except ModelUnavailableError as error:
        raise WebhookError(str(error)) from error
    finally:
        client.close()
    if not 200 <= status < 300:
        raise WebhookError(
            _("The receiver at %(place)s answered with status %(status)s.")
            % {"place": place, "status": status}
        )
