"""Agent clients that pull approved answers while the server is killed under them.

Each keeps what it is told and its cursor in one transaction of its own, as docs/api.md
asks, and loses one now and then before it is committed. In the end it must have each
entry once. Used by the suite and, with many more entries, by `make faults`.
"""

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = "127.0.0.1"
START_SECONDS = 120.0


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port: int = free.getsockname()[1]
        return port


@dataclass
class Server:
    """The portal's web process on a port of its own, to be killed and started again."""

    environment: Mapping[str, str]
    log: Path
    port: int = field(default_factory=free_port)
    kills: int = 0

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [
                    *(
                        sys.executable,
                        "-m",
                        "uvicorn",
                        "strata_portal.asgi:application",
                    ),
                    *("--lifespan", "off", "--host", LOOPBACK),
                    *("--port", str(self.port), "--no-access-log"),
                ],
                cwd=ROOT,
                env=dict(self.environment),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + START_SECONDS
        while not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(
                    f"the server does not start:\n{self.log.read_text()}"
                )
            time.sleep(0.1)

    def answers(self) -> bool:
        """Tell whether it answers."""
        connection = HTTPConnection(LOOPBACK, self.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """Kill it, whatever it is doing."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_now_and_then(self, draw: random.Random, over: threading.Event) -> None:
        """Kill it at random moments and start it again, until it is over."""
        while not over.wait(draw.uniform(0.1, 2.5)):
            self.kill()
            self.kills += 1
            self.start()


@dataclass
class PullingClient:
    """An agent client with a store of its own: entries and cursor."""

    port: int
    token: str
    store: Path
    draw: random.Random
    lost: int = 0

    def __post_init__(self) -> None:
        with self.opened() as database:
            database.execute("CREATE TABLE entries (entry TEXT, answer TEXT)")
            database.execute("CREATE TABLE place (after INTEGER)")
            database.execute("INSERT INTO place VALUES (0)")

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose work is committed in one transaction, or none of it."""
        database = sqlite3.connect(self.store, timeout=60)
        try:
            with database:
                yield database
        finally:
            database.close()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Pull until it is over and nothing is left."""
        while True:
            last_round = is_over()
            try:
                told = self.pull()
            except (OSError, HTTPException):
                # The server was killed; it will be there again.
                time.sleep(0.05)
                continue
            if last_round and not told:
                return
            if not told:
                time.sleep(0.05)

    def pull(self) -> int:
        """Take what comes next; returns how many entries were told."""
        after = self.read("SELECT after FROM place")[0][0]
        count = self.draw.randrange(1, 12)
        page = self.call(f"/api/v1/answers?after={after}&count={count}")
        with self.opened() as database:
            database.executemany(
                "INSERT INTO entries VALUES (?, ?)",
                [(each["entry"], each["answer"]) for each in page["answers"]],
            )
            database.execute("UPDATE place SET after = ?", [page["next_after"]])
            if page["answers"] and self.draw.random() < 0.1:
                # The client dies before it has kept anything of it.
                database.rollback()
                self.lost += 1
        if self.draw.random() < 0.3 and after:
            self.call("/api/v1/answers/acknowledge", {"through": after})
        return len(page["answers"])

    def call(self, path: str, body: object = None) -> dict[str, Any]:
        """Call the portal, and return its answer; raises OSError and HTTPException."""
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
        }
        sent = None if body is None else json.dumps(body)
        connection = HTTPConnection(LOOPBACK, self.port, timeout=30)
        try:
            connection.request("GET" if sent is None else "POST", path, sent, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise AssertionError(f"{path}: {response.status} {content!r}")
        answer: dict[str, Any] = json.loads(content)
        return answer

    def read(self, query: str) -> list[tuple[object, ...]]:
        """Return what a query gives."""
        with self.opened() as database:
            return database.execute(query).fetchall()

    def entries(self) -> list[str]:
        """Return the entries that it has kept, as often as it has them."""
        return [str(row[0]) for row in self.read("SELECT entry FROM entries")]


def pulled_through_kills(
    server: Server,
    tokens: list[str],
    folder: Path,
    draw: random.Random,
    approve_all: Callable[[], list[str]],
) -> dict[str, int]:
    """Approve entries while clients pull and the server is killed; compare in the end.

    `approve_all` returns the ids of all entries once the last is announced.
    """
    clients = [
        PullingClient(
            server.port,
            token,
            folder / f"client-{number}.db",
            random.Random(draw.random()),
        )
        for number, token in enumerate(tokens)
    ]
    approved, quiet = threading.Event(), threading.Event()
    server.start()
    killer = threading.Thread(
        target=server.kill_now_and_then, args=[random.Random(draw.random()), quiet]
    )
    threads = [
        threading.Thread(target=client.run, args=[approved.is_set])
        for client in clients
    ]
    for thread in (killer, *threads):
        thread.start()
    try:
        entries = approve_all()
        # As many kills again while the clients catch up.
        time.sleep(draw.uniform(1, 4))
    finally:
        quiet.set()
        killer.join()
        approved.set()
        for thread in threads:
            thread.join()
        server.kill()
    kept = [client.entries() for client in clients]
    return {
        "entries": len(entries),
        "clients": len(clients),
        "kills": server.kills,
        "rolled_back": sum(client.lost for client in clients),
        "lost": sum(len(set(entries) - set(each)) for each in kept),
        "doubled": sum(len(each) - len(set(each)) for each in kept),
        "foreign": sum(len(set(each) - set(entries)) for each in kept),
    }
