"""`manage.py quickstart`, which `make run` calls: from a clone to a running portal."""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from knowledge.embedding import gateway
from knowledge.inference.bundled import BundledModelError, ensure_bundled_model
from knowledge.inference.gateway import ModelError
from knowledge.models import AuditEntry, IngestRun, KnowledgeBase, Source, User
from knowledge.models.ingest import OPEN_STATES
from knowledge.models.source import SourceState
from retrieval.signing import KeyFileError, ensure_key
from strata_portal import embedded
from strata_portal.demo.loader import SET_UP, DemoError, load_demo
from strata_portal.demo.manifest import read_manifest
from strata_portal.demo_login import Login, ensure_login, password_holds
from strata_portal.portal_process import ask_web, web_port
from strata_portal.processes import (
    LOCALHOST,
    Folders,
    Manager,
    ProcessError,
    Program,
    attached,
    port_is_free,
)
from strata_portal.settings import env_bool

POSTGRES_SECONDS = 90
# A first start reads 465 MB of weights, from a slow disk perhaps.
MODEL_SECONDS = 300
WEB_SECONDS = 60
STALL_SECONDS = 120
STEPS = 7
OK = 200


class Command(BaseCommand):
    """Prepare everything that is not there yet, run all processes, and watch them."""

    help = "Prepare and run the portal, until Ctrl-C."
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Prepare, run, print how to sign in, and say what happens."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, interrupt)
        self.began = time.monotonic()
        self.folders = Folders(
            run=settings.VAR_DIR / "run", log=settings.VAR_DIR / "log"
        )
        self.folders.run.mkdir(parents=True, exist_ok=True)
        with alone(self.folders.run / "quickstart.lock"):
            self.check_ports()
            try:
                self.manager = Manager(programs(), self.folders)
            except ProcessError as error:
                raise CommandError(str(error)) from error
            try:
                self.prepare()
                self.watch()
            except KeyboardInterrupt:
                self.stdout.write("\nStopping …")
            except (ProcessError, BundledModelError) as error:
                raise CommandError(str(error)) from error
            finally:
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)
                self.manager.stop()
                self.stdout.write("All processes have stopped.")

    def check_ports(self) -> None:
        """Refuse to start where another program listens already."""
        wanted = {"STRATA_WEB_PORT": web_port()}
        if runs_model():
            wanted["STRATA_MODEL_PORT"] = settings.STRATA_MODEL_PORT
        taken = {name: port for name, port in wanted.items() if not port_is_free(port)}
        if taken:
            ports = " and ".join(str(port) for port in taken.values())
            others = " ".join(f"{name}={port + 100}" for name, port in taken.items())
            raise CommandError(
                f"Another program uses port {ports} of this machine. Stop it, or "
                f"choose other ports: {others} make run"
            )

    def prepare(self) -> None:
        """Do the steps that lead to a running portal; each leaves alone what is there."""
        self.step(1, "Database")
        self.start_database()
        self.step(2, "Tables")
        call_command("migrate", interactive=False, verbosity=1, stdout=self.stdout)
        self.make_key()
        self.step(3, "Static files")
        call_command("collectstatic", interactive=False, verbosity=0)
        self.step(4, "Embedding model")
        self.start_model()
        self.step(5, "Worker and web")
        self.manager.start("worker", lambda: True, seconds=WEB_SECONDS)
        self.manager.start("web", web_answers, seconds=WEB_SECONDS)
        login = ensure_login(settings.VAR_DIR / "demo-login.txt")
        self.step(6, "Demo corpus")
        self.load_demo(login)
        connection.close()
        self.step(7, f"Ready after {time.monotonic() - self.began:.0f} seconds")
        self.stdout.write(self.welcome(login))
        self.stdout.flush()

    def step(self, number: int, name: str) -> None:
        """Say which step begins."""
        self.stdout.write(self.style.MIGRATE_HEADING(f"[{number}/{STEPS}] {name}"))
        self.stdout.flush()

    def say(self, sentence: str) -> None:
        """Print one line below a step."""
        self.stdout.write(f"  {sentence}")
        self.stdout.flush()

    def start_database(self) -> None:
        """Start the embedded PostgreSQL, or reach the one of DATABASE_URL."""
        if uses_embedded():
            self.manager.start("postgres", embedded.is_ready, seconds=POSTGRES_SECONDS)
        try:
            connection.ensure_connection()
        except DatabaseError as error:
            raise CommandError(
                f"The database does not answer: {str(error).strip()}\n"
                "Correct DATABASE_URL, or unset it to use the embedded PostgreSQL."
            ) from error
        name = "embedded PostgreSQL" if uses_embedded() else "server of DATABASE_URL"
        version = ".".join(str(part) for part in connection.get_database_version())
        self.say(f"The {name} answers (PostgreSQL {version}).")

    def make_key(self) -> None:
        """Make the key that receipts are signed with, unless there is one."""
        try:
            ensure_key()
        except (KeyFileError, OSError) as error:
            raise CommandError(str(error)) from error

    def start_model(self) -> None:
        """Make the bundled model and start the model server; reach a foreign one."""
        if not runs_model():
            self.say(f"The models are those of {settings.STRATA_MODEL_URL}.")
            return
        if settings.STRATA_EMBEDDING_MODEL == "bundled":
            self.make_model()
        self.manager.start("model", model_answers, seconds=MODEL_SECONDS)
        self.say(f"The model server answers on port {settings.STRATA_MODEL_PORT}.")

    def make_model(self) -> None:
        """Make the bundled model's folder once, with progress."""
        shown = ""

        def report(share: float, sentence: str) -> None:
            nonlocal shown
            line = f"{share:4.0%} {sentence}"
            if line != shown:
                self.say(line)
                shown = line

        ensure_bundled_model(settings.STRATA_MODELS_DIR, report)

    def load_demo(self, login: Login) -> None:
        """Load what is missing of the demo, and wait until the worker has indexed it.

        An installation that has content of its own gets none.
        """
        known = AuditEntry.objects.filter(verb=SET_UP).exists()
        if not env_bool("STRATA_DEMO", default=True):
            self.say("Left out, as STRATA_DEMO says.")
        elif KnowledgeBase.objects.exists() and not known:
            self.say("Left out: there are knowledge bases already.")
        else:
            try:
                load_demo(password=login.password, progress=self.say)
            except DemoError as error:
                self.say(str(error))
            self.wait_for_demo()

    def wait_for_demo(self) -> None:
        """Show how the worker gets on, until it is done or gets no further."""
        slugs = [base.slug for base in read_manifest().knowledge_bases]
        runs = IngestRun.objects.filter(
            source__knowledge_base__slug__in=slugs, state__in=OPEN_STATES
        )
        total = left = runs.count()
        moved = time.monotonic()
        while left:
            time.sleep(1)
            now = runs.count()
            if now != left:
                moved = time.monotonic()
                self.say(f"{total - now} of {total} files are indexed.")
            elif time.monotonic() - moved > STALL_SECONDS:
                self.say("The worker goes on with the rest in the background.")
                return
            left = now
        failed = Source.objects.filter(
            knowledge_base__slug__in=slugs, state=SourceState.FAILED
        )
        if number := failed.count():
            self.say(
                f"{number} files failed, the first because: {failed[0].state_reason}"
            )

    def welcome(self, login: Login) -> str:
        """Return the last block: where to go, how to sign in, what to paste."""
        base = settings.BASE_URL
        lines = [
            "",
            self.style.SUCCESS("Strata Portal is running."),
            "",
            f"  Portal    {base}/",
            f"  Admin     {base}/admin/",
        ]
        readers = demo_readers()
        if login.user:
            holds = password_holds(login)
            password = login.password if holds else "(the password that you chose)"
            lines += [f"  Login     {login.user}  {password}"]
        else:
            lines += ["  Login     as this installation's administrators do"]
        if readers:
            lines += [f"  Readers   {readers}  {login.password}"]
        if login.token:
            lines += [
                f"  Token     {login.token}",
                "",
                "  Try       curl -s -H 'Content-Type: application/json' \\",
                f"              -H 'Authorization: Bearer {login.token}' \\",
                f"""              -d '{{"query": "form QT-07"}}' {base}/api/v1/search""",
            ]
        lines += ["", f"Logs are in {self.folders.log}. Ctrl-C stops everything.", ""]
        return "\n".join(lines)

    def watch(self) -> NoReturn:
        """Say which process ended by itself, until Ctrl-C."""
        for sentence in self.manager.watch():
            self.stdout.write(
                self.style.WARNING(f"{time.strftime('%H:%M:%S')} {sentence}")
            )
            self.stdout.flush()
        raise ProcessError(
            "The process manager has ended, and all processes with it; "
            f"{self.folders.log_of('supervisord')} may say why."
        )


def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """End in order, whichever way we are asked to."""
    raise KeyboardInterrupt


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock file, or say that the portal runs from this folder already."""
    with path.open("w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandError(
                f"Strata Portal runs from this folder already: {settings.BASE_URL}"
            ) from error
        yield


def uses_embedded() -> bool:
    """Tell whether the database is ours to run."""
    return not os.environ.get("DATABASE_URL", "").strip()


def runs_model() -> bool:
    """Tell whether the model server is ours to run."""
    own = f"http://{LOCALHOST}:{settings.STRATA_MODEL_PORT}"
    return settings.STRATA_MODEL_URL.rstrip("/") == own


def demo_readers() -> str:
    """Return the user names of the demo's readers that are there."""
    names = [person.access.name for person in read_manifest().people]
    people = User.objects.filter(username__in=names, is_active=True)
    return ", ".join(people.order_by("pk").values_list("username", flat=True))


def web_answers() -> bool:
    """Tell whether the web process reaches its database."""
    answer = ask_web("/healthz")
    return answer is not None and answer.status == OK


def model_answers() -> bool:
    """Tell whether the model server has loaded its model."""
    try:
        gateway().describe()
    except ModelError:
        return False
    return True


def programs() -> list[Program]:
    """Return the processes of this installation, in the order of their start."""
    python = sys.executable
    found = []
    if uses_embedded():
        command = [python, "-m", "strata_portal.embedded", "foreground"]
        found.append(Program("postgres", command, signal.SIGINT, stop_seconds=60))
    if runs_model():
        port, model = settings.STRATA_MODEL_PORT, settings.STRATA_EMBEDDING_MODEL
        options = ["--host", LOCALHOST, "--port", str(port), "--model", model]
        options += ["--models-dir", str(settings.STRATA_MODELS_DIR)]
        if settings.STRATA_RERANKING_URL == settings.STRATA_MODEL_URL:
            options += ["--reranking-model", settings.RERANKING_MODEL]
        server = attached(python, "-m", "knowledge.inference.server", *options)
        found.append(Program("model", server))
    worker = attached(python, "manage.py", "worker")
    found.append(Program("worker", worker, stop_seconds=30))
    web = ["-m", "uvicorn", "strata_portal.asgi:application", "--lifespan", "off"]
    web += ["--host", LOCALHOST, "--port", str(web_port()), "--no-server-header"]
    # An access log would hold people's questions, which are in the addresses.
    web += ["--log-level", "warning", "--no-access-log"]
    web += ["--timeout-graceful-shutdown", "10"]
    found.append(Program("web", attached(python, *web), stop_seconds=20))
    return found
