"""A proxy in front of the real model server, through which faults are put in.

Every answer comes from the real model; a test may hold requests back, change answers on
their way, or count what was asked.
"""

import base64
import http.client
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar
from urllib.parse import urlsplit

ENCODE = "/strata/v1/encode"
# Takes the path, the status and the parsed answer; returns the status and answer sent.
Tamper = Callable[[str, int, Any], tuple[int, Any]]


def leave_alone(_path: str, status: int, answer: Any) -> tuple[int, Any]:
    """Send the answer as it is."""
    return status, answer


def failing(path: str, status: int, answer: Any) -> tuple[int, Any]:
    """Let embedding fail with an error of the server."""
    if path != ENCODE:
        return status, answer
    return 500, {"error": {"message": "Out of memory.", "type": "server_error"}}


def with_nan(path: str, status: int, answer: Any) -> tuple[int, Any]:
    """Put NaN into the last vector."""
    return status, changed_vector(
        path, answer, lambda raw: b"\x00\x00\xc0\x7f" + raw[4:]
    )


def too_short(path: str, status: int, answer: Any) -> tuple[int, Any]:
    """Cut the last vector to half its length."""
    return status, changed_vector(path, answer, lambda raw: raw[: len(raw) // 2])


def changed_vector(path: str, answer: Any, change: Callable[[bytes], bytes]) -> Any:
    """Change the bytes of the last vector of an answer of the encode route."""
    if path == ENCODE:
        last = answer["data"][-1]
        raw = change(base64.b64decode(last["vector"]))
        last["vector"] = base64.b64encode(raw).decode("ascii")
    return answer


def one_missing(path: str, status: int, answer: Any) -> tuple[int, Any]:
    """Leave the last vector out."""
    if path == ENCODE:
        answer["data"].pop()
    return status, answer


def another_model(path: str, status: int, answer: Any) -> tuple[int, Any]:
    """Answer as a server that was restarted with another model of the same size."""
    if "fingerprint" in answer:
        answer["fingerprint"] = "0" * 64
    return status, answer


@dataclass
class ModelProxy:
    """The proxy; a context manager that serves from a thread.

    `embedded` counts the texts that went through the encode route, `open_gate` lets
    requests to it through.
    """

    target: str
    tamper: Tamper = leave_alone
    embedded: int = 0
    waiting: int = 0
    open_gate: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "ModelProxy":
        """Start serving."""
        self.open_gate.set()
        handler = type("Handler", (ProxyHandler,), {"proxy": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        """Stop serving; nothing waits any more."""
        self.open_gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def forward(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Ask the real server, and return what is to be answered."""
        if path == ENCODE:
            self.waiting += 1
            self.open_gate.wait(60)
            self.waiting -= 1
        address = urlsplit(self.target)
        connection = http.client.HTTPConnection(address.netloc, timeout=120)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            status, answer = response.status, json.loads(response.read())
        finally:
            connection.close()
        if path == ENCODE and status == http.client.OK:
            self.embedded += len(answer["data"])
        status, answer = self.tamper(path, status, answer)
        return status, json.dumps(answer).encode()


class ProxyHandler(BaseHTTPRequestHandler):
    """One request."""

    proxy: ClassVar[ModelProxy]

    def do_GET(self) -> None:
        """Pass a question without a body on."""
        self.answer(b"")

    def do_POST(self) -> None:
        """Pass a question with a body on."""
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, body: bytes) -> None:
        """Send what the proxy says; a client that left is no matter."""
        status, content = self.proxy.forward(self.command, self.path, body)
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""
