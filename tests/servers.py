"""Real local HTTP servers that misbehave, or that speak another server's form."""

import http.client
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

# Answers one request, through the handler's own methods.
Answer = Callable[["Handler"], None]


class LocalServer:
    """Serves ``answer`` from threads on a free loopback port; a context manager.

    ``requests`` counts what came in. ``closing`` is set when the server stops, so that
    an answer that takes for ever ends then.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests = 0
        self.closing = threading.Event()

    def __enter__(self) -> "LocalServer":
        """Start serving."""
        handler = type("BoundHandler", (Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        """Stop serving and end every answer."""
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """One connection of a ``LocalServer``."""

    owner: LocalServer

    def do_GET(self) -> None:
        """Answer a question without a body."""
        self._answer()

    def do_POST(self) -> None:
        """Answer a question with a body."""
        self._answer()

    def read_json(self) -> Any:
        """Read the request's body."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def send_content(self, status: int, content: bytes) -> None:
        """Send a whole answer."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        self.owner.requests += 1
        try:
            self.owner.answer(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


def never(handler: Handler) -> None:
    """Take the request and say nothing until the server stops."""
    handler.owner.closing.wait(60)
    handler.close_connection = True


def drip_headers(handler: Handler) -> None:
    """Send a header line that does not end, byte by byte."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _drip(handler)


def drip_body(handler: Handler) -> None:
    """Send a body that does not end, byte by byte."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    _drip(handler)


def _drip(handler: Handler) -> None:
    while not handler.owner.closing.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()
    handler.close_connection = True


def hang_up(handler: Handler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


def no_http(handler: Handler) -> None:
    """Send what is no HTTP."""
    handler.wfile.write(b"\x00\xff 220 mail.example ready\r\n")
    handler.close_connection = True


def fail(handler: Handler) -> None:
    """Send status 500 with an error in the OpenAI form."""
    handler.send_content(500, b'{"error": {"message": "Out of memory."}}')


def no_json(handler: Handler) -> None:
    """Send status 200 with a page."""
    handler.send_content(200, b"<html>It works!</html>")


def cut_off(handler: Handler) -> None:
    """Announce more than is sent, then close."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


# Takes the parsed answer of the real server and returns what is sent.
Change = Callable[[dict[str, Any]], dict[str, Any]]


def speak_openai(real_url: str, change: Change = lambda answer: answer) -> Answer:
    """Offer ``/v1/embeddings`` alone, answered by the real model behind."""
    address = urlsplit(real_url).netloc

    def answer(handler: Handler) -> None:
        if handler.path != "/v1/embeddings":
            handler.send_content(404, b'{"error": {"message": "Not found."}}')
            return
        request = handler.read_json()
        # The real server adds prefixes by itself and knows one model name.
        request.pop("model", None)
        connection = http.client.HTTPConnection(address, timeout=120)
        try:
            connection.request(
                "POST",
                "/v1/embeddings",
                json.dumps(request),
                {"Content-Type": "application/json"},
            )
            body = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        handler.send_content(200, json.dumps(change(body)).encode())

    return answer


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a language model: where to, with which headers, asking what.

    `instructions` and `message` are what both forms of request hold.
    """

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    instructions: str
    message: str


class LanguageModel(LocalServer):
    """A language model that says prepared things in turn, and the last one for ever.

    It speaks the forms of Anthropic (``/v1/messages``) and of OpenAI
    (``/v1/chat/completions``), and keeps what it was asked in ``prompts``. What it says
    is a text, or a function of the prompt.
    """

    def __init__(self, *says: str | Callable[[Prompt], str]) -> None:
        super().__init__(self.reply)
        self.says = says
        self.prompts: list[Prompt] = []

    def reply(self, handler: Handler) -> None:
        """Say the next thing."""
        body = handler.read_json()
        said = body["messages"]
        prompt = Prompt(
            handler.path,
            dict(handler.headers.items()),
            body,
            body.get("system") or said[0]["content"],
            said[-1]["content"],
        )
        self.prompts.append(prompt)
        say = self.says[min(len(self.prompts), len(self.says)) - 1]
        text = say if isinstance(say, str) else say(prompt)
        answers = {
            "/v1/messages": {
                "content": [{"type": "text", "text": text}],
                "usage": {"input_tokens": 200, "output_tokens": 30},
            },
            "/v1/chat/completions": {
                "choices": [{"message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 20},
            },
        }
        if handler.path in answers:
            handler.send_content(200, json.dumps(answers[handler.path]).encode())
        else:
            handler.send_content(404, b'{"error": {"message": "Not found."}}')
