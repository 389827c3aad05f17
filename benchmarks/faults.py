"""`make faults`: kill workers, restart the database, end workers by their work, flip bits.

Everything runs on an installation of this run's own, with its own database server,
model server and worker. What was acknowledged is remembered and compared with what is
there in the end (rows F1 to F3 of the reliability list). Then receipts are issued, and
every bit of some is flipped (F12). Answers are approved while agent clients pull them
and the web process is killed under them (R17).

    SIZE    full: the long run, hours; otherwise minutes
    SEED    replays a run; each run prints its own
    ONLY    names of rows, such as R17: no others are run

Ends with status 1 where anything was lost, doubled or stuck.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

from benchmarks.gate_faults import told_once
from benchmarks.receipt_faults import FLIPPED, receipts
from benchmarks.throwaway import ROOT, installation, kept, model_server, refuse

if TYPE_CHECKING:
    from knowledge.models import Layer
    from tests.worker_process import Worker

# Each as (in minutes, in the long run).
KILLS, RESTARTS, POISONS = (50, 1000), (4, 100), (5, 200)
# Receipts that are issued and checked (F12).
RECEIPTS = (1000, 100_000)
# Answers that are approved while the web process is killed (R17).
ANSWERS = 1000
# Random worlds of readers, rows and sources that are compared with the oracle (F8).
WORLDS = (10_000, 50_000)
WORLD_TESTS = (
    "tests/knowledge/test_permissions.py",
    "tests/retrieval/test_worlds.py",
)
LEASE_SECONDS = HEARTBEAT_SECONDS = 6
# A run may take so long after the last fault before it counts as stuck.
SETTLE_SECONDS = 240
DATABASE_START_SECONDS = 60


@dataclass
class History:
    """What was acknowledged: the text of each source by its id."""

    texts: dict[int, str] = field(default_factory=dict)
    refused: int = 0


def main() -> None:
    """Run all faults, print what came of them, and end with 1 where anything did."""
    place = 1 if os.environ.get("SIZE", "").strip() == "full" else 0
    seed = int(os.environ.get("SEED", "").strip() or random.randrange(10**9))
    print(f"SEED={seed}", file=sys.stderr)
    os.environ["STRATA_LEASE_SECONDS"] = str(LEASE_SECONDS)
    os.environ["STRATA_HEARTBEAT_SECONDS"] = str(HEARTBEAT_SECONDS)
    draw = random.Random(seed)
    only = set(os.environ.get("ONLY", "").split())
    figures: dict[str, dict[str, Any]] = {}
    with installation(durable=True), model_server(), working() as (worker, layer):
        rows: dict[str, Callable[[], dict[str, Any]]] = {
            "F1": lambda: killed(worker, layer, draw, KILLS[place]),
            "F2": lambda: restarted(layer, draw, RESTARTS[place]),
            "F3": lambda: poisoned(layer, draw, POISONS[place]),
            "F12": lambda: signed(draw, RECEIPTS[place]),
            "R17": lambda: told(layer, draw, ANSWERS),
        }
        for name, run in rows.items():
            if not only or name in only:
                figures[name] = run()
    if not only or "F8" in only:
        figures["F8"] = worlds(seed, WORLDS[place])
    for name, row in figures.items():
        print(f"{name}  " + "  ".join(f"{key} {value}" for key, value in row.items()))
    print(json.dumps(figures))
    wrong = (
        *("lost", "doubled", "stuck", "wrong_starts"),
        *("mismatched", "broken", "missed", "foreign"),
    )
    sys.exit(any(row.get(key) for row in figures.values() for key in wrong))


@contextmanager
def working() -> Iterator[tuple[Worker, Layer]]:
    """Run the worker, and yield it with a layer to upload to."""
    from knowledge.actions import create_knowledge_base
    from tests.worker_process import Worker

    # Set by the settings module of this installation, not by a test's.
    changes = {"DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"]}
    for name in ("STRATA_LEASE_SECONDS", "STRATA_HEARTBEAT_SECONDS"):
        changes[name] = os.environ[name]
    layer = create_knowledge_base(name="Faults", actor=None).layers.get()
    with Worker(kept() / "faults-worker.log", **changes) as worker:
        yield worker, layer


# --- Uploading, and what must hold in the end -----------------------------------


def upload(layer: Layer, draw: random.Random, history: History) -> int:
    """Upload a text unlike any other, and remember it once it is acknowledged."""
    from knowledge.actions import Upload, upload_source

    number = len(history.texts) + history.refused
    text = f"Rule {draw.random()} of the reading room.\n" + "".join(
        f"Seat {draw.random()} is kept for {draw.randrange(90)} minutes.\n"
        for _ in range(draw.randrange(1, 40))
    )
    name = f"{draw.randrange(10**12)}-{number}.txt"
    source = upload_source(
        Upload(BytesIO(text.encode()), name), layer=layer, actor=None
    )
    history.texts[source.pk] = text.strip()
    return source.pk


def verdict(history: History) -> dict[str, int]:
    """Wait until all is done or stuck, and compare it with what was acknowledged."""
    from knowledge.models import IngestRun, Source
    from knowledge.models.ingest import OPEN_STATES

    runs = IngestRun.objects.filter(source__in=history.texts, state__in=OPEN_STATES)
    wait(lambda: not runs.exists(), SETTLE_SECONDS)
    lost = doubled = stuck = 0
    for pk, text in history.texts.items():
        source = Source.objects.filter(pk=pk).first()
        if source is None:
            lost += 1
        elif source.state != "ready":
            stuck += 1
        else:
            document = source.documents.get(is_current=True)
            spans = list(source.passages.values_list("ordinal", flat=True))
            covered = "".join(source.passages.values_list("text", flat=True))
            lost += document.text != text or len(covered) < len(text.replace("\n", ""))
            doubled += len(spans) != len(set(spans)) or source.documents.count() != 1
    return {
        "uploads": len(history.texts),
        "lost": lost,
        "doubled": doubled,
        "stuck": stuck,
    }


def wait(condition: Callable[[], object], seconds: float) -> bool:
    """Wait until a condition holds, through a database that comes and goes."""
    from django.db import DatabaseError, connection

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return True
        except DatabaseError:
            connection.close()
        time.sleep(0.2)
    return False


# --- The faults -----------------------------------------------------------------


def killed(
    worker: Worker, layer: Layer, draw: random.Random, number: int
) -> dict[str, Any]:
    """Kill processes of the worker, idle ones and ones at work (F1)."""
    from knowledge.runs import held_runs

    history = History()
    for kill in range(number):
        say(f"F1: kill {kill + 1} of {number}")
        wait(worker.pool, 60)
        for _ in range(draw.randrange(3)):
            upload(layer, draw, history)
        time.sleep(draw.random() * 2)
        busy = [
            int(name.rpartition(":")[2])
            for name in held_runs().values_list("worker", flat=True)
        ]
        others = [*worker.pool(), worker.sentinel(), worker.main()]
        victims = busy if busy and draw.random() < 0.5 else others
        with suppress(ProcessLookupError):
            if victim := draw.choice(victims or [0]):
                os.kill(victim, signal.SIGKILL)
    return {"kills": number, **verdict(history)}


def restarted(layer: Layer, draw: random.Random, number: int) -> dict[str, Any]:
    """Restart the database under uploads and ingest, half of the times at once (F2)."""
    from django.db import DatabaseError, connection

    from strata_portal.embedded import wait_until_ready
    from strata_portal.embedded.place import find_place
    from strata_portal.embedded.server import running_pid

    history = History()
    for restart in range(number):
        say(f"F2: restart {restart + 1} of {number}")
        for _ in range(3):
            try:
                upload(layer, draw, history)
            except DatabaseError:
                history.refused += 1
                connection.close()
        time.sleep(draw.random() * 2)
        pid = running_pid(find_place())
        if pid is None:
            refuse("The database of this run is gone.")
        os.kill(pid, signal.SIGQUIT if restart % 2 else signal.SIGINT)
        wait(lambda: running_pid(find_place()) is None, DATABASE_START_SECONDS)
        connection.close()
        subprocess.Popen(
            [sys.executable, "-m", "strata_portal.embedded", "foreground"],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until_ready()
    return {"restarts": number, **verdict(history)}


def poisoned(layer: Layer, draw: random.Random, number: int) -> dict[str, Any]:
    """End the worker each time that it takes one of some sources (F3)."""
    from knowledge.models import IngestRun
    from knowledge.models.ingest import RunState

    history, healthy = History(), History()
    for _ in range(number):
        upload(layer, draw, history)
        upload(layer, draw, healthy)
    runs = IngestRun.objects.filter(source__in=history.texts)
    ended: set[str] = set()

    def all_ended() -> bool:
        for run in runs.filter(state=RunState.RUNNING):
            # A worker's name and the attempt: each start is ended once.
            start = f"{run.pk} {run.attempts}"
            if start not in ended:
                with suppress(ProcessLookupError):
                    os.kill(int(run.worker.rpartition(":")[2]), signal.SIGKILL)
                ended.add(start)
        return not runs.exclude(state=RunState.FAILED).exists()

    say(f"F3: {number} sources end their workers")
    wait(all_ended, SETTLE_SECONDS * max(1, number // 5))
    wrong = runs.exclude(state=RunState.FAILED, code="dead-letter", attempts=3)
    return {"poisons": number, "wrong_starts": wrong.count(), **verdict(healthy)}


def signed(draw: random.Random, number: int) -> dict[str, Any]:
    """Issue receipts, check them, and flip bits (F12)."""
    say(f"F12: {number} receipts, and every bit of {FLIPPED} flipped")
    return {**receipts(draw, number)}


def told(layer: Layer, draw: random.Random, number: int) -> dict[str, Any]:
    """Approve answers while clients pull them and the web process is killed (R17)."""
    say(f"R17: {number} approved answers, pulled while the web process is killed")
    return {**told_once(layer, draw, number)}


def worlds(seed: int, number: int) -> dict[str, Any]:
    """Compare what readers find in random worlds with a plain oracle (F8)."""
    say(f"F8: {number} random worlds")
    changes = {"STRATA_TEST_WORLDS": str(number), "STRATA_TEST_SEED": str(seed)}
    left_out = {"DJANGO_SETTINGS_MODULE", "STRATA_VAR_DIR", "SECRET_KEY"}
    kept_ones = {key: text for key, text in os.environ.items() if key not in left_out}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "oracle", *WORLD_TESTS],
        cwd=ROOT,
        env={**kept_ones, **changes},
        stdout=sys.stderr,
        check=False,
    )
    return {"worlds": number, "mismatched": int(done.returncode != 0)}


def say(sentence: str) -> None:
    """Print one line of progress."""
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
