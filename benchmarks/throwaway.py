"""An installation that exists for one benchmark: its own database server and folders.

Import nothing of Django before `installation` has been entered: the settings read the
environment that it prepares.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
# The folders of the clone's own installation; nothing of it is read or changed, but for
# the bundled model, which takes a while to make, and what benchmarks keep.
VAR = Path(os.environ.get("STRATA_VAR_DIR", "").strip() or ROOT / "var").resolve()
MODEL_START_SECONDS = 300


def refuse(sentence: str) -> NoReturn:
    """End with one sentence and status 2: something to measure with is missing."""
    print(sentence, file=sys.stderr)
    raise SystemExit(2)


def folder(variable: str, default: str) -> Path:
    """Return the folder that an environment variable names, or refuse."""
    path = Path(os.environ.get(variable, "").strip() or ROOT / default)
    if not path.is_dir():
        refuse(f"{variable}={path} is not a folder; set {variable} to one.")
    return path


def is_small() -> bool:
    """Tell whether SIZE asks for a run of minutes."""
    size = os.environ.get("SIZE", "").strip()
    if size not in {"", "small", "full"}:
        refuse(f"SIZE is small, full or not set, not {size!r}.")
    return size == "small"


def kept() -> Path:
    """Return the folder for what a later run can use again."""
    path = VAR / "bench"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def installation(*, durable: bool) -> Iterator[None]:
    """Set Django up on an empty, migrated database of a server of its own.

    A server that is not durable is quicker to fill, but gets little memory.
    """
    os.environ.setdefault("STRATA_MODELS_DIR", str(VAR / "models"))
    # Ended by a signal, too, nothing is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    place = Path(tempfile.mkdtemp(prefix="strata-bench-"))
    # As root, PostgreSQL runs as another user, who must pass through.
    place.chmod(0o711)
    for name in ("DATABASE_URL", "STRATA_POSTGRES_DIR", "BASE_URL", "ALLOWED_HOSTS"):
        os.environ.pop(name, None)
    os.environ["STRATA_VAR_DIR"] = str(place)
    os.environ["STRATA_POSTGRES_DURABLE"] = "true" if durable else "false"
    os.environ["SECRET_KEY"] = secrets.token_urlsafe(48)
    os.environ["DJANGO_SETTINGS_MODULE"] = "strata_portal.settings"
    os.environ.setdefault("LOG_LEVEL", "ERROR")
    with (place / "postgres.output").open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "strata_portal.embedded", "foreground"],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        prepare()
        yield
    finally:
        from django.db import connections

        connections.close_all()
        end(server, signal.SIGINT)
        shutil.rmtree(place, ignore_errors=True)


def prepare() -> None:
    """Set Django up and make the tables."""
    import django
    from django.core.management import call_command

    from strata_portal.embedded import wait_until_ready

    wait_until_ready()
    django.setup()
    call_command("migrate", verbosity=0)


@contextmanager
def model_server() -> Iterator[None]:
    """Run the product's model server on a free port, and point the gateway at it."""
    from django.conf import settings

    from knowledge.embedding import gateway
    from knowledge.inference.gateway import ModelUnavailableError

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings.STRATA_MODEL_URL = f"http://127.0.0.1:{port}"
    # Questions are to be answered with their vector, however busy the machine is.
    settings.STRATA_QUERY_EMBED_TIMEOUT = 30
    log_path = kept() / "model-server.log"
    with log_path.open("wb") as log:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "strata_portal.attached",
                str(os.getpid()),
                sys.executable,
                "-m",
                "knowledge.inference.server",
                f"--port={port}",
                f"--model={settings.STRATA_EMBEDDING_MODEL}",
                f"--models-dir={settings.STRATA_MODELS_DIR}",
            ],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        end_at = time.monotonic() + MODEL_START_SECONDS
        while True:
            try:
                gateway().describe()
                break
            except ModelUnavailableError as error:
                if server.poll() is not None or time.monotonic() > end_at:
                    refuse(
                        f"The model server does not start ({error}); see {log_path}."
                    )
                time.sleep(0.5)
        yield
    finally:
        end(server, signal.SIGTERM)


def end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Stop a process of ours, at last by force."""
    process.send_signal(number)
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
