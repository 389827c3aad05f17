"""The processes of `make run`, under supervisor: which there are, and how they fare.

supervisor starts them, restarts one that ends by itself, keeps their logs small, and
stops them all. It answers on a socket that only its own user can open.
"""

import hashlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from supervisor.xmlrpc import SupervisorTransport

ROOT = Path(__file__).resolve().parent.parent
LOCALHOST: Final = "127.0.0.1"
SOCKET_PATH_BYTES = 107
# supervisor binds `<socket>.<process id>` first, and then renames it.
SOCKET_SUFFIX_BYTES = 9
START_SECONDS = 20
STOP_SECONDS = 60
# supervisor's words for the state of a program.
STARTING, RUNNING, FATAL = "STARTING", "RUNNING", "FATAL"


class ProcessError(Exception):
    """A process did not start; the message says which, why and where to look."""


@dataclass(frozen=True, slots=True)
class Program:
    """One process to keep running.

    `stop_signal` asks it to end in order; it is killed `stop_seconds` later.
    """

    name: str
    command: Sequence[str]
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: int = 15


@dataclass(frozen=True, slots=True)
class State:
    """How one process fares; `pid` is 0 while there is none."""

    name: str
    word: str
    pid: int


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the process manager keeps its own files."""

    run: Path
    log: Path

    @property
    def settings(self) -> Path:
        """supervisor's settings, written anew at each start."""
        return self.run / "supervisord.conf"

    @property
    def socket(self) -> Path:
        """The socket on which supervisor answers; elsewhere where that is too long."""
        path = self.run / "supervisor.sock"
        if len(os.fsencode(path)) + SOCKET_SUFFIX_BYTES <= SOCKET_PATH_BYTES:
            return path
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"strata-portal-{os.geteuid()}-{digest}"
        return folder / "supervisor.sock"

    def log_of(self, name: str) -> Path:
        """Return the log file of one process."""
        return self.log / f"{name}.log"


def settings_text(programs: Sequence[Program], folders: Folders) -> str:
    """Return supervisor's settings for `programs`, none of which starts by itself."""
    sections = {
        "unix_http_server": {"file": str(folders.socket), "chmod": "0700"},
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": (
                "supervisor.rpcinterface:make_main_rpcinterface"
            )
        },
        "supervisord": {
            "nodaemon": "true",
            "silent": "true",
            "logfile": str(folders.log_of("supervisord")),
            "logfile_maxbytes": "1MB",
            "logfile_backups": "1",
            "pidfile": str(folders.run / "supervisord.pid"),
            "minfds": "256",
        },
    }
    for program in programs:
        sections[f"program:{program.name}"] = {
            "command": shlex.join(program.command),
            "autostart": "false",
            "autorestart": "true",
            "startsecs": "2",
            "startretries": "8",
            "stopsignal": program.stop_signal.name.removeprefix("SIG"),
            "stopwaitsecs": str(program.stop_seconds),
            "killasgroup": "true",
            "redirect_stderr": "true",
            "stdout_logfile": str(folders.log_of(program.name)),
            "stdout_logfile_maxbytes": "10MB",
            "stdout_logfile_backups": "1",
        }
    lines = []
    for title, values in sections.items():
        lines.append(f"[{title}]")
        # supervisor expands %(…)s.
        lines += [f"{key}={value.replace('%', '%%')}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


class Manager:
    """supervisor, running as a child of this process and ending with it."""

    def __init__(self, programs: Sequence[Program], folders: Folders) -> None:
        """Start supervisor; no program runs yet."""
        self.folders = folders
        for folder in (folders.run, folders.log):
            folder.mkdir(parents=True, exist_ok=True)
        self.make_socket_folder()
        self.stop_former()
        folders.settings.touch(mode=0o600)
        folders.settings.write_text(settings_text(programs, folders), encoding="utf-8")
        supervisor = "from supervisor.supervisord import main; main()"
        options = ["-n", "-c", str(folders.settings)]
        self.child = subprocess.Popen(
            attached(sys.executable, "-c", supervisor, *options, parent=os.getpid()),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Ctrl-C reaches the whole terminal group; we pass it on in order.
            start_new_session=True,
        )
        self.wait_for_socket()

    @contextmanager
    def server(self) -> Iterator[Any]:
        """Connect to supervisor anew: a connection that failed cannot be used again."""
        transport = SupervisorTransport(None, None, f"unix://{self.folders.socket}")
        proxy = xmlrpc.client.ServerProxy("http://supervisor", transport=transport)
        try:
            yield proxy.supervisor
        finally:
            transport.close()

    def make_socket_folder(self) -> None:
        """Make the socket's folder where it is not the usual one; it is ours alone."""
        folder = self.folders.socket.parent
        if folder == self.folders.run:
            return
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ProcessError(
                f"{folder} belongs to another user. Remove it and start again."
            )

    def answering(self) -> int | None:
        """Return the process id of the supervisor that answers, or None."""
        try:
            with self.server() as server:
                return int(server.getPID())
        except (OSError, xmlrpc.client.Error):
            return None

    def stop_former(self) -> None:
        """End a supervisor that a killed run left behind, and all its processes."""
        with suppress(OSError, xmlrpc.client.Error), self.server() as server:
            server.shutdown()
        end = time.monotonic() + STOP_SECONDS
        while self.answering() is not None and time.monotonic() < end:
            time.sleep(0.1)

    def wait_for_socket(self) -> None:
        """Wait until supervisor answers."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.child.poll() is None:
            if self.answering() == self.child.pid:
                return
            time.sleep(0.05)
        self.stop()
        raise ProcessError(
            "The process manager did not start; "
            f"{self.folders.log_of('supervisord')} says why."
        )

    def start(self, name: str, ready: Callable[[], bool], *, seconds: float) -> None:
        """Start one program and return once `ready` says so.

        Raises ProcessError when it ends instead, or is not ready after `seconds`.
        """
        with suppress(xmlrpc.client.Fault), self.server() as server:
            server.startProcess(name, False)  # noqa: FBT003
        end = time.monotonic() + seconds
        while not ready():
            state = next(each for each in self.states() if each.name == name)
            if state.word not in {STARTING, RUNNING} or time.monotonic() > end:
                raise ProcessError(self.failure(name))
            time.sleep(0.1)

    def failure(self, name: str) -> str:
        """Return the sentence for a program that will not start."""
        log = self.folders.log_of(name)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        words = "\n".join(lines[-10:])
        return f"The process {name} does not get ready; {log} ends so:\n{words}"

    def states(self) -> list[State]:
        """Return how each program fares."""
        with self.server() as server:
            found = server.getAllProcessInfo()
        return [State(each["name"], each["statename"], each["pid"]) for each in found]

    def watch(self, seconds: float = 1.0) -> Iterator[str]:
        """Yield a sentence for each program that ended by itself, as it happens.

        Ends when supervisor itself has ended.
        """
        before = {state.name: state for state in self.states()}
        while self.child.poll() is None:
            time.sleep(seconds)
            try:
                now = {state.name: state for state in self.states()}
            except (OSError, xmlrpc.client.Error):
                continue
            for name, state in now.items():
                if sentence := self.change(before[name], state):
                    yield sentence
            before = now

    def change(self, before: State, now: State) -> str:
        """Return what to say of a program's change, or an empty string."""
        log = self.folders.log_of(now.name)
        if now.word == FATAL and before.word != FATAL:
            return (
                f"{now.name} ends again and again and is not restarted any more. "
                f"See {log}, and start anew with Ctrl-C and make run."
            )
        if now.pid not in {0, before.pid}:
            return f"{now.name} had ended unexpectedly and was restarted. See {log}."
        return ""

    def stop(self) -> None:
        """Stop all programs and supervisor, and wait for their end."""
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def attached(*command: str, parent: int = 0) -> list[str]:
    """Return the command that runs `command` and dies with whoever started it.

    `parent` is who that will be, where it is known.
    """
    return [sys.executable, "-m", "strata_portal.attached", str(parent), *command]


def port_is_free(port: int) -> bool:
    """Tell whether a server can listen on this port of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, port))
        except OSError:
            return False
    return True
