"""Stands between Strata Portal and a chat tool: Mattermost or Slack. Needs only Python.

What the portal sends to /strata goes, once its signature is checked, to the chat's
incoming webhook. A slash command of the chat (`/answer 12 In the yard.`) comes to /chat
and goes, signed, to where the portal takes the reply to question 12. Only the one person
whose contact this is may answer. See docs/notifications.md; everything is set by the
environment:

    STRATA_SECRET         the contact's secret, as the portal showed it (whsec_…)
    CHAT_URL              the incoming webhook of the chat
    CHAT_USER             the id of the person in the chat
    MATTERMOST_TOKEN      the token of the slash command, for Mattermost
    SLACK_SIGNING_SECRET  the signing secret of the app, for Slack
    RELAY_PORT            where it listens on this machine (8700)
    RELAY_FILE            where it keeps which question is replied to where
"""

import base64
import hmac
import json
import os
import re
import time
import urllib.error
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

SECRET = base64.b64decode(os.environ["STRATA_SECRET"].removeprefix("whsec_"))
CHAT_URL = os.environ["CHAT_URL"]
CHAT_USER = os.environ["CHAT_USER"]
MATTERMOST_TOKEN = os.environ.get("MATTERMOST_TOKEN", "")
SLACK_SECRET = os.environ.get("SLACK_SIGNING_SECRET", "")
PORT = int(os.environ.get("RELAY_PORT", "8700"))
KEPT = Path(os.environ.get("RELAY_FILE", "relay.json"))
SECONDS = 300
MOST_BYTES = 256 * 1024


def signature(body: bytes, event_id: str, at: str) -> str:
    """Return the signature of a message, as Standard Webhooks writes it."""
    digest = hmac.digest(SECRET, f"{event_id}.{at}.".encode() + body, "sha256")
    return "v1," + base64.b64encode(digest).decode()


def is_now(at: str) -> bool:
    """Tell whether a time, in seconds since 1970, is at most five minutes away."""
    return at.isascii() and at.isdecimal() and abs(time.time() - int(at)) <= SECONDS


def post(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    """Send JSON and return what came back."""
    headers = {"Content-Type": "application/json", **headers}
    # Both addresses are the operator's own.
    request = urllib.request.Request(url, body, headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return answer.status, answer.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        return error.code, error.read(MOST_BYTES)


class Relay(BaseHTTPRequestHandler):
    """One message, from either side."""

    def do_POST(self) -> None:
        """Take it."""
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(min(length, MOST_BYTES))
        if self.path == "/strata":
            self.from_portal(body)
        elif self.path == "/chat":
            self.from_chat(body)
        else:
            self.answer(404)

    def from_portal(self, body: bytes) -> None:
        """Pass a message on to the chat."""
        event_id, at = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        given = (self.headers["webhook-signature"] or "").split(" ")
        wanted = signature(body, event_id, at).encode()
        is_right = any(hmac.compare_digest(each.encode(), wanted) for each in given)
        if not (is_now(at or "") and is_right):
            self.answer(401)
            return
        said = json.loads(body)
        if "reply_to" in said:
            kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
            kept[str(said["question"]["number"])] = said["reply_to"]
            KEPT.write_text(json.dumps(kept))
        status, _ = post(CHAT_URL, json.dumps({"text": said["text"]}).encode(), {})
        self.answer(204 if status < 300 else 502)

    def from_chat(self, body: bytes) -> None:
        """Pass an answer on to the portal, and say in the chat what became of it."""
        form = {name: each[0] for name, each in parse_qs(body.decode()).items()}
        if not self.is_chat(body, form) or form.get("user_id") != CHAT_USER:
            self.answer(401)
            return
        found = re.fullmatch(r"#?(\d+)\s+(.+)", form.get("text", "").strip(), re.DOTALL)
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        if found is None or found[1] not in kept:
            self.say("Write the number of a question and then the answer.")
            return
        reply = json.dumps({"text": found[2]}).encode()
        # The same command, sent twice by the chat, has its effect once.
        command = form.get("trigger_id") or str(uuid.uuid4())
        event_id = str(uuid.uuid5(uuid.NAMESPACE_URL, command))
        at = str(int(time.time()))
        headers = {
            "webhook-id": event_id,
            "webhook-timestamp": at,
            "webhook-signature": signature(reply, event_id, at),
        }
        status, answer = post(kept[found[1]], reply, headers)
        if 200 <= status < 300:
            self.say(f"Question {found[1]}: your answer was taken.")
            return
        try:
            self.say(json.loads(answer)["error"])
        except (ValueError, KeyError):
            self.say("The portal did not take it. Try again, or answer there.")

    def is_chat(self, body: bytes, form: dict[str, str]) -> bool:
        """Tell whether a command comes from the chat tool."""
        if SLACK_SECRET:
            at = self.headers.get("X-Slack-Request-Timestamp", "")
            content = f"v0:{at}:".encode() + body
            digest = hmac.new(SLACK_SECRET.encode(), content, "sha256").hexdigest()
            given = self.headers.get("X-Slack-Signature", "")
            return is_now(at) and hmac.compare_digest(
                given.encode(), f"v0={digest}".encode()
            )
        token = form.get("token", "").encode()
        return bool(MATTERMOST_TOKEN) and hmac.compare_digest(
            token, MATTERMOST_TOKEN.encode()
        )

    def say(self, text: str) -> None:
        """Answer in the chat, to the person alone."""
        said = json.dumps({"response_type": "ephemeral", "text": text})
        self.answer(200, said.encode())

    def answer(self, status: int, body: bytes = b"") -> None:
        """Send a whole answer."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing: addresses and texts may be secrets."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), Relay).serve_forever()
