"""A real worker on the test's own database, and its processes to be killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from knowledge.models import IngestRun

ROOT = Path(__file__).resolve().parent.parent
# Short, so that a test need not wait long for what they guard.
HEARTBEAT_SECONDS = LEASE_SECONDS = 5
PATIENCE_SECONDS = 180.0


def database_url() -> str:
    """Return the address of the database that this test writes to."""
    at = connection.settings_dict
    password = f":{quote(at['PASSWORD'], safe='')}" if at["PASSWORD"] else ""
    host = quote(at["HOST"], safe="")
    port = f":{at['PORT']}" if at["PORT"] else ""
    return f"postgresql://{at['USER']}{password}@{host}{port}/{at['NAME']}"


def environment(**changes: str) -> dict[str, str]:
    """Return what a process of the product needs to work on this test's rows."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": database_url(),
        "STRATA_MODEL_URL": settings.STRATA_MODEL_URL,
        "STRATA_QUERY_EMBED_TIMEOUT": "30",
        "STRATA_HEARTBEAT_SECONDS": str(HEARTBEAT_SECONDS),
        "STRATA_LEASE_SECONDS": str(LEASE_SECONDS),
        **changes,
    }


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition holds; no time is asserted, only that it comes."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            runs = IngestRun.objects.values("state", "stage", "attempts", "reason")
            raise AssertionError(f"in vain: {what}; the runs are {list(runs)}")
        time.sleep(0.1)


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process, oldest first."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append((int(fields[19]), int(entry.name)))
    return [number for _start, number in sorted(found)]


def is_running(pid: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class Worker:
    """`manage.py worker`; a context manager that leaves no process behind."""

    def __init__(self, log: Path, **changes: str) -> None:
        """Start nothing yet; `changes` are environment variables."""
        self.log = log
        self.changes = changes

    def __enter__(self) -> "Worker":
        """Start it; it has cluster and workers a moment later."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "worker"],
                cwd=ROOT,
                env=environment(**self.changes),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        until(lambda: len(self.pool()) == 4, "the worker's processes")
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        """Stop it."""
        family = self.family()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(30)
        until(lambda: not any(map(is_running, family)), "the end of all processes")

    def family(self) -> list[int]:
        """Return all its processes, itself first."""
        found = [self.process.pid]
        for pid in found:
            found += children_of(pid)
        return found

    def main(self) -> int:
        """Return the cluster's main process."""
        return next(iter(children_of(self.process.pid)), 0)

    def sentinel(self) -> int:
        """Return the process that guards the pool."""
        return next(iter(children_of(self.main())), 0) if self.main() else 0

    def pool(self) -> list[int]:
        """Return the pool: two workers, the monitor and the pusher, by their age."""
        return children_of(self.sentinel()) if self.sentinel() else []

    def said(self) -> str:
        """Return what it has written."""
        return self.log.read_text()


def kill(pid: int) -> None:
    """Kill a process as the kernel does that runs out of memory."""
    os.kill(pid, signal.SIGKILL)
