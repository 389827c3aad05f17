"""Pytest plugin: this run's own embedded PostgreSQL.

It starts only when a collected test needs the database and DATABASE_URL is not set,
takes part of no other run, and ends with pytest even if that is killed.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from strata_portal.embedded import wait_until_ready

DATABASE_FIXTURES = {"db", "transactional_db", "live_server", "django_db_setup"}
SERVER = pytest.StashKey[subprocess.Popen[bytes]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the server if one of the collected tests needs it."""
    config = session.config
    if config.option.collectonly or os.environ.get("DATABASE_URL"):
        return
    if any(needs_database(item) for item in session.items):
        config.stash[SERVER] = start_server()


def needs_database(item: pytest.Item) -> bool:
    """Tell whether a test uses Django's database."""
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(item.get_closest_marker("django_db") or fixtures & DATABASE_FIXTURES)


def start_server() -> subprocess.Popen[bytes]:
    """Start the server as a child of this process and wait until it answers."""
    log = Path(os.environ["STRATA_TEST_RUN"]) / "postgres.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "strata_portal.embedded", "foreground"],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until_ready()
    except Exception as error:
        raise pytest.UsageError(f"{error}\n{log.read_text()}") from error
    return server


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server and remove the run's folder, and those of killed runs."""
    server = config.stash.get(SERVER, None)
    if server is not None:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)
    if run := os.environ.get("STRATA_TEST_RUN"):
        shutil.rmtree(run, ignore_errors=True)
    for folder in Path(tempfile.gettempdir()).glob("strata-test-*"):
        number = re.match(r"strata-test-(\d+)-", folder.name)
        if number and folder.owner() == Path.home().owner():
            try:
                os.kill(int(number[1]), 0)
            except ProcessLookupError:
                shutil.rmtree(folder, ignore_errors=True)
