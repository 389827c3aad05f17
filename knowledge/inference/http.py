"""HTTP to the servers of models: one deadline over all of a call, and no waiting twice.

Every call has one deadline over all of it: name look-up, connection, waiting in the
server's queue, a drip of single bytes. After a failure guarded calls fail at once for a
few seconds (``RETRY_SECONDS``), then one of them tries again.
"""

import asyncio
import ipaddress
import json
import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import httpx

from knowledge.inference.gateway import ModelError, ModelUnavailableError

RETRY_SECONDS = 3.0


def bearer(key: str | None) -> dict[str, str]:
    """Return the header that carries a key, if there is one."""
    return {"Authorization": f"Bearer {key}"} if key else {}


class Deadline:
    """A point in time, for all steps of a call together."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self._at - time.monotonic())


class Breaker:
    """Remembers that the server failed, so that not every caller waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._retry_at = 0.0
        self._reason = ""

    def guard(self) -> "Guard":
        """Fail at once while the server is taken for dead."""
        with self._lock:
            now = time.monotonic()
            if self._reason and now < self._retry_at:
                raise ModelUnavailableError(self._reason)
            # Only this caller tries; the others go on failing at once meanwhile.
            self._retry_at = now + RETRY_SECONDS
        return Guard(self)

    def watch(self) -> "Guard":
        """Always try, and remember the outcome."""
        return Guard(self)

    def remember(self, reason: str) -> None:
        """Take the server for dead ("": alive again)."""
        with self._lock:
            self._reason = reason
            self._retry_at = time.monotonic() + RETRY_SECONDS


class Guard:
    """Tells its breaker how a call ended; a context manager around that call."""

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _type: object, error: BaseException | None, _at: object) -> None:
        """Remember a server that did not answer, and one that did."""
        if isinstance(error, ModelUnavailableError):
            self._breaker.remember(str(error))
        elif error is None or isinstance(error, ModelError):
            self._breaker.remember("")


class Http:
    """An HTTP client with a deadline over everything, for callers in any thread.

    The timeouts of httpx hold for each read, so a server that sends a byte a second
    would never run into one. Requests therefore run in an event loop in a thread of
    its own, where a deadline cancels whatever is going on. A redirect is not followed.

    Args:
        url: of the server; each call's path is added to it.
        headers: sent with every call, keys among them; none is ever in a message.
        name: how messages call the server.
        most_bytes: of an answer; a longer one counts as none.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        name: str = "The model server",
        most_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self._url = url
        self._headers = {"Accept-Encoding": "identity", **headers}
        self._name = name
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._process = 0
        self._client: httpx.AsyncClient | None = None

    def call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | bytes | None,
        deadline: Deadline,
    ) -> tuple[int, bytes]:
        """Return status and body. A body of bytes is sent as it is.

        Raises:
            ModelUnavailableError: there was no whole answer before the deadline.
        """
        content = json.dumps(body).encode("ascii") if isinstance(body, dict) else body
        future = self._submit(method, path, content, deadline)
        try:
            # The loop keeps the deadline; this one is for a loop that is starved.
            return future.result(deadline.left() + 0.2)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            future.cancel()
            what = "does not answer in time"
            if not isinstance(error, (TimeoutError, httpx.TimeoutException)):
                what = f"cannot be reached ({str(error) or type(error).__name__})"
            raise ModelUnavailableError(
                f"{self._name} at {self._url} {what}."
            ) from error

    def close(self) -> None:
        """Close the kept connections; a later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None and self._process == os.getpid():
            asyncio.run_coroutine_threadsafe(client.aclose(), _event_loop()).result(5)

    def _submit(
        self, method: str, path: str, content: bytes | None, deadline: "Deadline"
    ) -> "Future[tuple[int, bytes]]":
        loop = _event_loop()
        with self._lock:
            if self._client is None or self._process != os.getpid():
                self._client = httpx.AsyncClient(
                    base_url=self._url,
                    headers=self._headers,
                    timeout=None,  # noqa: S113 (the deadline of each call holds)
                    # Certificates take time and memory to load; without TLS unused.
                    verify=self._url.startswith("https:"),
                    trust_env=not is_loopback(self._url),
                    limits=httpx.Limits(max_keepalive_connections=4),
                )
                self._process = os.getpid()
            request = self._request(self._client, method, path, content, deadline)
        return asyncio.run_coroutine_threadsafe(request, loop)

    async def _request(
        self,
        client: httpx.AsyncClient,
        method: str,
        path: str,
        content: bytes | None,
        deadline: "Deadline",
    ) -> tuple[int, bytes]:
        async with asyncio.timeout(deadline.left()):
            try:
                return await self._exchange(client, method, path, content)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                # A kept connection that the server closed meanwhile; asking twice does
                # no harm.
                return await self._exchange(client, method, path, content)

    async def _exchange(
        self, client: httpx.AsyncClient, method: str, path: str, content: bytes | None
    ) -> tuple[int, bytes]:
        headers = {} if content is None else {"Content-Type": "application/json"}
        async with client.stream(
            method, path, content=content, headers=headers
        ) as response:
            parts: list[bytes] = []
            size = 0
            async for part in response.aiter_raw():
                size += len(part)
                if size > self._most_bytes:
                    raise httpx.DecodingError("the answer is far too long")
                parts.append(part)
            return response.status_code, b"".join(parts)


_loops: dict[int, asyncio.AbstractEventLoop] = {}
_loops_lock = threading.Lock()


def _event_loop() -> asyncio.AbstractEventLoop:
    """Return this process's loop. A forked child has no thread of its parent's."""
    with _loops_lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = asyncio.new_event_loop()
            threading.Thread(
                target=loop.run_forever, name="model-http", daemon=True
            ).start()
            _loops[os.getpid()] = loop
        return loop


def is_loopback(url: str) -> bool:
    """Tell whether a URL names this very machine; no name is looked up for it."""
    return is_loopback_host(httpx.URL(url).host)


def is_loopback_host(host: str) -> bool:
    """Tell whether a host is this very machine: 127.x.y.z, ::1 or localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
