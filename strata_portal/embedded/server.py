"""Starting, watching and stopping the embedded PostgreSQL."""

import ctypes
import fcntl
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from strata_portal.embedded.cluster import make_log, make_ready
from strata_portal.embedded.place import (
    PORT,
    EmbeddedDatabaseError,
    Place,
    database_url,
    find_place,
    make_place,
    not_ours,
    server_user,
)
from strata_portal.embedded.programs import (
    run_as,
    server_environment,
    server_programs,
)

START_SECONDS = STOP_SECONDS = 60
PR_SET_PDEATHSIG = 1
STATUS_LINE = 7


def ensure_running() -> str:
    """Start the server unless it runs, wait until it answers, return its address.

    The server then outlives this process; `stop` ends it.
    """
    place = find_place()
    make_place(place)
    with locked(place):
        if running_pid(place) is None:
            start_server(place)
    wait_until_ready()
    return database_url()


def stop() -> bool:
    """Stop the server if it runs, and wait for its end; tell whether it ran."""
    place = find_place()
    if running_pid(place) is None:
        return False
    stop_server(place)
    return True


def run_in_foreground() -> NoReturn:
    """Become the server; it ends when the process that started this one ends.

    A server that `ensure_running` left behind is stopped first.
    """
    place = find_place()
    make_place(place)
    with locked(place):
        if running_pid(place) is not None:
            stop_server(place)
        drop_recycled_locks(place)
        user = server_user(place)
        program = make_ready(place, user) / "postgres"
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    os.umask(0o077)
    os.chdir("/")
    die_with_parent(signal.SIGINT)
    options = ["-D", str(place.data), "-c", f"config_file={place.settings}"]
    os.execve(program, [str(program), *options], server_environment())  # noqa: S606


def die_with_parent(number: signal.Signals) -> None:
    """Have the kernel send this process `number` when its parent dies (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))


def wait_until_ready(seconds: float = START_SECONDS) -> None:
    """Wait until the server takes connections, or raise after `seconds`."""
    end = time.monotonic() + seconds
    while not is_ready():
        if time.monotonic() > end:
            raise EmbeddedDatabaseError(
                f"PostgreSQL in {find_place().folder} did not answer within "
                f"{seconds:.0f} seconds."
            )
        time.sleep(0.05)


def is_ready() -> bool:
    """Tell whether the server takes connections."""
    place = find_place()
    return running_pid(place) is not None and server_status(place) == "ready"


def start_server(place: Place) -> None:
    """Start the server in the background; the caller holds the place's lock."""
    drop_recycled_locks(place)
    user = server_user(place)
    programs = make_ready(place, user)
    make_log(place, user)
    run_as(
        user,
        [
            str(programs / "pg_ctl"),
            "start",
            "--wait",
            f"--timeout={START_SECONDS}",
            f"--pgdata={place.data}",
            f"--log={place.log}",
            f"--options={shlex.join(['-c', f'config_file={place.settings}'])}",
        ],
        failure=f"PostgreSQL did not start; {place.log} says why.",
    )


def stop_server(place: Place) -> None:
    """Stop the running server: sessions end, what was committed is on disk."""
    run_as(
        server_user(place),
        [
            str(server_programs(place) / "pg_ctl"),
            "stop",
            "--wait",
            "--mode=fast",
            f"--timeout={STOP_SECONDS}",
            f"--pgdata={place.data}",
        ],
        failure=f"PostgreSQL in {place.folder} did not stop.",
    )


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the place's lock, so that two starts at once do not meet."""
    try:
        lock = os.open(place.folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    except PermissionError as error:
        raise EmbeddedDatabaseError(not_ours(place)) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


# --- Whether it runs ----------------------------------------------------------


def running_pid(place: Place) -> int | None:
    """Return the id of the server that runs on `place`, or None."""
    pid = alive(lock_file_lines(place, pid_file(place)))
    return pid if pid is not None and works_in(pid, place.data) else None


def server_status(place: Place) -> str:
    """Return what the server wrote about itself: starting, ready or stopping."""
    lines = lock_file_lines(place, pid_file(place))
    return lines[STATUS_LINE].strip() if len(lines) > STATUS_LINE else "starting"


def drop_recycled_locks(place: Place) -> None:
    """Remove lock files whose number is another process's by now.

    PostgreSQL sees by itself that a process is gone, but takes a stranger with the
    same number, as after a restart of the machine, for a running server.
    """
    socket_lock = place.socket_folder / f".s.PGSQL.{PORT}.lock"
    for path in (pid_file(place), socket_lock):
        pid = alive(lock_file_lines(place, path))
        if pid is not None and not works_in(pid, place.data):
            path.unlink()


def pid_file(place: Place) -> Path:
    """Return the path of the file in which a running server writes its number."""
    return place.data / "postmaster.pid"


def lock_file_lines(place: Place, path: Path) -> list[str]:
    """Return the lines of a lock file; none where there is no file."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise EmbeddedDatabaseError(not_ours(place)) from error


def alive(lines: list[str]) -> int | None:
    """Return the process number in a lock file's first line, if one of ours has it."""
    if not lines or not lines[0].strip().isdigit():
        return None
    pid = int(lines[0])
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return None
    return pid


def works_in(pid: int, folder: Path) -> bool:
    """Tell whether a process works in `folder`, as a server does in its data folder.

    Where the system does not tell (no /proc), it is taken to.
    """
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == folder
    except OSError:
        return not Path("/proc/self").exists()
