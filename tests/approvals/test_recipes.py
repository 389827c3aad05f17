"""The recipe for chat tools in docs/recipes, run as an operator runs it."""

import hmac
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from pytest_django.fixtures import Settings

from approvals.webhooks import WebhookError, send_signed, verify
from tests.approvals.channels import new_secret
from tests.approvals.test_webhooks import Receiver

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = DOCS / "recipes" / "chat_relay.py"
SECRET = new_secret()
CHAT_SECRET = "a secret that the chat tool and the relay share"


@pytest.fixture
def chat() -> Iterator[Receiver]:
    """The chat's incoming webhook, and the portal's door for replies."""
    with Receiver() as server:
        yield server


@pytest.fixture(params=["mattermost", "slack"])
def relay(
    request: pytest.FixtureRequest, chat: Receiver, settings: Settings, tmp_path: Path
) -> Iterator[tuple[str, str]]:
    """The address of a running relay, and the tool that it is set up for."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    name = "SLACK_SIGNING_SECRET" if request.param == "slack" else "MATTERMOST_TOKEN"
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT)],
        env={
            "PATH": os.environ["PATH"],
            "STRATA_SECRET": SECRET,
            "CHAT_URL": f"{chat.url}/incoming",
            "CHAT_USER": "U7",
            name: CHAT_SECRET,
            "RELAY_PORT": str(port),
            "RELAY_FILE": str(tmp_path / "relay.json"),
        },
    )
    settings.STRATA_WEBHOOK_HOSTS = [f"127.0.0.1:{port}"]
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}", request.param
    finally:
        process.kill()
        process.wait()


def wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the relay does not listen")


def command(
    url: str, tool: str, *, secret: str = CHAT_SECRET, **form: str
) -> httpx.Response:
    """Send a slash command as the tool does."""
    fields = {"user_id": "U7", "trigger_id": "t1", **form}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if tool == "mattermost":
        fields["token"] = secret
    body = urlencode(fields).encode()
    if tool == "slack":
        at = str(int(time.time()))
        digest = hmac.new(secret.encode(), f"v0:{at}:".encode() + body, "sha256")
        headers["X-Slack-Request-Timestamp"] = at
        headers["X-Slack-Signature"] = f"v0={digest.hexdigest()}"
    return httpx.post(f"{url}/chat", content=body, headers=headers, trust_env=False)


@pytest.mark.req("S2-APR-02")
def test_a_question_reaches_the_chat_and_its_answer_the_portal(
    relay: tuple[str, str], chat: Receiver
) -> None:
    url, tool = relay
    message = {
        "text": "Question 12 waits for an answer",
        "question": {"number": 12},
        "reply_to": f"{chat.url}/hooks/replies/abc",
    }
    with pytest.raises(WebhookError, match="401"):
        send_signed(f"{url}/strata", new_secret(), "evt-1", message)
    send_signed(f"{url}/strata", SECRET, "evt-1", message)
    path, _, body = chat.taken.pop()
    assert path == "/incoming"
    assert json.loads(body) == {"text": "Question 12 waits for an answer"}

    assert command(url, tool, secret="another", text="12 Yes.").status_code == 401
    assert command(url, tool, user_id="U8", text="12 Yes.").status_code == 401
    assert "number" in command(url, tool, text="13 Yes.").json()["text"]
    assert not chat.taken
    command(url, tool, text="#12 In the yard.\nBehind the bindery.")
    path, headers, body = chat.taken.pop()
    assert path == "/hooks/replies/abc"
    assert verify(headers, body, [SECRET])
    assert json.loads(body) == {"text": "In the yard.\nBehind the bindery."}


@pytest.mark.req("S2-APR-02")
def test_the_script_for_mail_servers_hands_a_mail_over(
    chat: Receiver, tmp_path: Path
) -> None:
    text = (DOCS / "notifications.md").read_text(encoding="utf-8")
    script = tmp_path / "strata-reply"
    script.write_text(
        text.partition("```sh\n")[2].partition("```")[0], encoding="utf-8"
    )
    mail = "From: a@b.example\r\n\r\nTak, w ogródku. Đúng.\r\n".encode()
    subprocess.run(
        ["/bin/sh", str(script)],
        input=mail,
        env={
            "PATH": os.environ["PATH"],
            "STRATA_SECRET": SECRET,
            "STRATA_URL": chat.url,
            "NO_PROXY": "*",
        },
        check=True,
        timeout=60,
    )
    ((path, headers, body),) = chat.taken
    assert (path, body) == ("/hooks/mail", mail)
    assert verify(headers, body, [SECRET])
