"""Signing, checking and sending messages, against a real server."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from pytest_django.fixtures import Settings

from approvals.webhooks import (
    SignatureError,
    WebhookError,
    refusal_of,
    secret_of,
    send_signed,
    sign,
    verify,
)
from tests.approvals.channels import new_secret
from tests.servers import Handler, LocalServer, fail, hang_up, never

BODY = '{"text": "Tak, w oddziale. Đúng."}'.encode()


def signed(at: float, secret: str, event_id: str = "msg-1") -> dict[str, str]:
    return sign(BODY, secret, int(at), event_id)


@pytest.mark.req("REL-W1")
def test_a_signature_is_that_of_standard_webhooks() -> None:
    secret = new_secret()
    now = int(time.time())
    headers = signed(now, secret)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"msg-1.{now}.".encode() + BODY
    wanted = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{wanted}"
    assert verify(headers, BODY, [secret]) == "msg-1"
    # Other signatures beside it, of other versions or keys, do not harm.
    headers["webhook-signature"] = f"v1a,xx v1,yy {headers['webhook-signature']}"
    assert verify(headers, BODY, [new_secret(), secret]) == "msg-1"


@pytest.mark.req("REL-W1")
@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": "v1,żółć"},
        {"webhook-id": "msg-2"},
        {"webhook-id": ""},
        {"webhook-id": "x" * 201},
        {"webhook-id": "msg-1\0"},
    ],
)
def test_what_is_not_signed_is_refused(changed: dict[str, str]) -> None:
    secret = new_secret()
    headers = {**signed(time.time(), secret), **changed}
    with pytest.raises(SignatureError):
        verify(headers, BODY, [secret])


@pytest.mark.req("REL-W1")
def test_the_bytes_are_signed_and_no_other_form_of_them() -> None:
    secret = new_secret()
    headers = signed(time.time(), secret)
    again = json.dumps(json.loads(BODY)).encode()
    for body in (again, BODY + b" ", b""):
        with pytest.raises(SignatureError):
            verify(headers, body, [secret])
    with pytest.raises(SignatureError):
        verify(headers, BODY, [new_secret()])


@pytest.mark.req("REL-W2")
@pytest.mark.parametrize(
    "written", ["-360", "+360", "", "soon", "1e9", "٣", "9" * 400, "-1"]
)
def test_a_message_must_be_of_now(written: str) -> None:
    secret = new_secret()
    at = time.time() + int(written) if written in {"-360", "+360"} else 0
    headers = signed(at, secret)
    if not at:
        headers["webhook-timestamp"] = written
    with pytest.raises(SignatureError):
        verify(headers, BODY, [secret])


def test_secrets_of_the_portal_follow_from_its_key(settings: Settings) -> None:
    first = secret_of("contact:1:1")
    assert first == secret_of("contact:1:1") != secret_of("contact:1:2")
    settings.SECRET_KEY = "another key of the portal, long enough for that purpose"
    assert secret_of("contact:1:1") != first


# --- Sending --------------------------------------------------------------------------


class Receiver(LocalServer):
    """Keeps what it was sent: headers and bytes."""

    def __init__(self) -> None:
        super().__init__(self.take)
        self.taken: list[tuple[str, dict[str, str], bytes]] = []

    def take(self, handler: Handler) -> None:
        """Take a message."""
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.taken.append((handler.path, headers, body))
        handler.send_content(204, b"")


def allow(settings: Settings, server: LocalServer) -> None:
    settings.STRATA_WEBHOOK_HOSTS = [server.url.removeprefix("http://")]


@pytest.mark.req("S2-APR-02", "REL-W1")
def test_what_is_sent_can_be_checked_by_its_receiver(settings: Settings) -> None:
    secret = new_secret()
    with Receiver() as server:
        allow(settings, server)
        send_signed(f"{server.url}/in/a-secret?x=1", secret, "evt-1", {"text": "Żółć"})
    ((path, headers, body),) = server.taken
    assert path == "/in/a-secret?x=1"
    assert verify(headers, body, [secret]) == "evt-1"
    assert json.loads(body) == {"text": "Żółć"}
    assert headers["content-type"] == "application/json"


def test_what_is_not_taken_says_why_and_names_no_secret(settings: Settings) -> None:
    secret = new_secret()
    for answer in (fail, hang_up):
        with LocalServer(answer) as server:
            allow(settings, server)
            with pytest.raises(WebhookError) as raised:
                send_signed(f"{server.url}/in/hidden", secret, "evt-1", {})
        assert server.url in str(raised.value)
        assert "hidden" not in str(raised.value)
        assert secret not in str(raised.value)


@pytest.mark.req("REL-C3")
def test_a_redirect_is_not_followed(settings: Settings) -> None:
    def redirect(handler: Handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "http://127.0.0.1:1/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with LocalServer(redirect) as server:
        allow(settings, server)
        with pytest.raises(WebhookError, match="status 302"):
            send_signed(server.url, new_secret(), "evt-1", {})


@pytest.mark.req("S1-PRV-02")
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://chat.example/hook", ""),
        ("https://chat.example:443/hook", ""),
        ("https://CHAT.example/hook", ""),
        ("https://chat.example:8443/hook", "STRATA_WEBHOOK_HOSTS"),
        ("https://evil.example/hook", "STRATA_WEBHOOK_HOSTS"),
        ("https://chat.example@evil.example/", "no address"),
        ("https://evil.example\\@chat.example/", "no address"),
        ("http://chat.example/hook", "https://"),
        ("http://127.0.0.1:9000/hook", ""),
        ("http://127.0.0.1:9001/hook", "STRATA_WEBHOOK_HOSTS"),
        ("http://[::1]:9000/hook", ""),
        ("http://2130706433:9000/", "https://"),
        ("ftp://chat.example/", "no address"),
        ("https://chat.example:x/", "no address"),
        ("not an address", "no address"),
        ("", "no address"),
    ],
)
def test_only_listed_hosts_are_sent_to(settings: Settings, url: str, said: str) -> None:
    settings.STRATA_WEBHOOK_HOSTS = ["chat.example", "127.0.0.1:9000", "[::1]:9000"]
    refused = refusal_of(url)
    assert (said in refused) if said else refused == ""
    if refused:
        with pytest.raises(WebhookError):
            send_signed(url, new_secret(), "evt-1", {})


def test_a_receiver_that_says_nothing_is_given_up(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("approvals.webhooks.SECONDS", 0.3)
    with LocalServer(never) as server:
        allow(settings, server)
        with pytest.raises(WebhookError, match="in time"):
            send_signed(server.url, new_secret(), "evt-1", {})
