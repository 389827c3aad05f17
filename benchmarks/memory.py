"""`make bench-memory`: the memory of web and worker after real work.

Both run on an installation of this run's own: a file is uploaded and ingested, and
twenty searches go through the API. Then the proportional set size of each, summed over
its process tree: memory that processes share counts once. Linux only.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from benchmarks.ingest import take_in, worker_process
from benchmarks.throwaway import (
    ROOT,
    end,
    installation,
    kept,
    model_server,
    refuse,
)

SEARCHES = 20
START_SECONDS = 120
SETTLE_SECONDS = 10
TEXT = "\n\n".join(
    f"## Rule {number}\n\nThe reading room opens at {number} and closes an hour later. "
    f"Form QT-{number:02} prolongs a seat for twenty minutes."
    for number in range(1, 21)
)
QUERIES = ("When does the reading room open?", "QT-07", "prolong a seat", "Rule 12")


def main() -> None:
    """Measure and print."""
    if not Path("/proc/self/smaps_rollup").exists():
        refuse("This system does not tell how much memory processes share.")
    with installation(durable=True), model_server(), worker_process() as worker:
        token = prepare()
        with web_process() as (web, url):
            search(url, token)
            time.sleep(SETTLE_SECONDS)
            figures = {
                "web_mb": round(tree_megabytes(web), 1),
                "worker_mb": round(tree_megabytes(worker), 1),
            }
    for name, value in figures.items():
        print(f"{name.removesuffix('_mb'):<10}{value:>8} MB (at most 200)")
    print(json.dumps(figures))


def prepare() -> str:
    """Bring a file in and return a token that may search it."""
    from django.core.management import call_command

    from knowledge.actions import create_knowledge_base
    from knowledge.models import User
    from knowledge.models.token import TokenKind
    from knowledge.tokens import create_token

    call_command("collectstatic", interactive=False, verbosity=0)
    owner = User.objects.create_user("bench")
    base = create_knowledge_base(name="Bench", actor=owner)
    take_in(base.layers.get(), [("rules.md", TEXT.encode())])
    _row, token = create_token(
        owner=owner, name="bench", kind=TokenKind.PERSON, actor=owner
    )
    return token


@contextmanager
def web_process() -> Iterator[tuple[int, str]]:
    """Run the web process as `make run` does; yield its id and address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    log_path = kept() / "web.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "uvicorn",
                "strata_portal.asgi:application",
                "--lifespan=off",
                "--host=127.0.0.1",
                f"--port={port}",
            ],
            cwd=ROOT,
            env={**os.environ, "STRATA_DATABASE_POOL": "true"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + START_SECONDS
        while not answers(url):
            if process.poll() is not None or time.monotonic() > until:
                refuse(f"The web process does not start; see {log_path}.")
            time.sleep(0.2)
        yield process.pid, url
    finally:
        end(process, signal.SIGTERM)


def answers(url: str) -> bool:
    """Tell whether the web process answers."""
    try:
        return httpx.get(f"{url}/healthz", timeout=5).is_success
    except httpx.HTTPError:
        return False


def search(url: str, token: str) -> None:
    """Search over HTTP, and open the pages that a person opens."""
    headers = {"Authorization": f"Bearer {token}"}
    for number in range(SEARCHES):
        body = {"query": QUERIES[number % len(QUERIES)]}
        response = httpx.post(
            f"{url}/api/v1/search", json=body, headers=headers, timeout=60
        )
        if not response.is_success or not response.json()["results"]:
            refuse(f"A search failed: {response.status_code} {response.text[:300]}")
    httpx.get(f"{url}/accounts/login/", timeout=60)


def tree_megabytes(pid: int) -> float:
    """Return the proportional set size of a process and all below it (10^6 bytes)."""
    total = 0
    for each in tree(pid):
        for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total / 1_000_000


def tree(pid: int) -> list[int]:
    """Return a process and all below it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        # A process may end while it is looked at.
        with suppress(OSError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


if __name__ == "__main__":
    main()
