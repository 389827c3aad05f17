"""The embedded PostgreSQL: private, idempotent, and gone when it should be."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from strata_portal import embedded
from strata_portal.embedded.place import (
    SHARED_PLACES,
    SOCKET_PATH_BYTES,
    Place,
    find_place,
    make_private,
    others_may_enter,
    server_user,
)
from strata_portal.embedded.server import running_pid

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user")


def new_folder(*, mode: int = 0o711) -> Path:
    """A folder outside pytest's own, through which the server's user may pass."""
    folder = Path(tempfile.mkdtemp(prefix="strata-place-")).resolve()
    folder.chmod(mode)
    return folder


def remove(folder: Path) -> None:
    embedded.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def made() -> Iterator[Place]:
    """A place of these tests' own, made once."""
    folder = new_folder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRATA_POSTGRES_DIR", str(folder / "place"))
        embedded.ensure_running()
        embedded.stop()
        yield find_place()
    shutil.rmtree(folder)


@pytest.fixture
def place(made: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The place of these tests; its server does not run before or after a test."""
    monkeypatch.setenv("STRATA_POSTGRES_DIR", str(made.folder))
    yield made
    embedded.stop()


def copy(source: Path, target: Path) -> None:
    """Copy a folder and whose each thing in it is."""
    shutil.copytree(source, target)
    for path in (source, *source.rglob("*")):
        found = path.lstat()
        os.chown(target / path.relative_to(source), found.st_uid, found.st_gid)


def ask(statement: str) -> tuple[object, ...]:
    with psycopg.connect(embedded.database_url(), autocommit=True) as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    return row


def do(statement: str) -> None:
    with psycopg.connect(embedded.database_url(), autocommit=True) as connection:
        connection.execute(statement)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not happen within 30 seconds"
        time.sleep(0.05)


def test_only_its_user_can_reach_it(place: Place) -> None:
    embedded.ensure_running()
    owner = server_user(place).pw_uid
    for folder in (place.data, place.socket_folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.stat().st_uid == owner
    assert ask("SHOW listen_addresses") == ("",)
    rules = place.folder.joinpath("pg_hba.conf").read_text()
    assert rules == "local all strata peer map=strata\n"


def test_the_application_is_no_superuser_and_has_the_extension(place: Place) -> None:
    embedded.ensure_running()
    row = ask(
        "SELECT current_user, rolsuper, rolcreatedb, extversion "
        "FROM pg_roles, pg_extension WHERE rolname = current_user "
        "AND extname = 'vector'"
    )
    assert row == ("strata", False, True, "0.8.5")
    superuser = embedded.database_url().replace("strata@", "postgres@")
    with pytest.raises(psycopg.OperationalError, match="no pg_hba"):
        psycopg.connect(superuser)


def test_words_of_all_our_languages_are_folded(place: Place) -> None:
    embedded.ensure_running()
    (words,) = ask("SELECT to_tsvector('simple', 'ĐƯỜNG ȚARĂ ŻÓŁĆ ПРИВЕТ')::text")
    assert words == "'đường':1 'żółć':3 'țară':2 'привет':4"


def test_a_failing_statement_leaves_no_text_in_the_log(place: Place) -> None:
    embedded.ensure_running()
    with pytest.raises(psycopg.DataError):
        ask("SELECT 'the secret question'::int")
    log = place.log.read_text()
    assert "ready to accept connections" in log
    assert "SELECT" not in log


def test_starting_twice_is_starting_once(place: Place) -> None:
    embedded.ensure_running()
    first = running_pid(place)
    embedded.ensure_running()
    assert running_pid(place) == first is not None
    assert embedded.stop()
    assert not embedded.stop()


def test_two_clones_run_at_once(place: Place) -> None:
    folder = new_folder()
    copy(place.folder, folder / "place")
    embedded.ensure_running()
    do("CREATE TABLE clone AS SELECT 1 AS number")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRATA_POSTGRES_DIR", str(folder / "place"))
        embedded.ensure_running()
        try:
            do("CREATE TABLE clone AS SELECT 2 AS number")
            assert ask("SELECT number FROM clone") == (2,)
        finally:
            remove(folder)
    assert ask("SELECT number FROM clone") == (1,)
    do("DROP TABLE clone")


def test_a_long_path_gets_a_short_socket(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = new_folder()
    folder = top / ("long-" * 20) / "place"
    folder.parent.mkdir()
    place.folder.rename(folder)
    monkeypatch.setenv("STRATA_POSTGRES_DIR", str(folder))
    socket_folder = find_place().socket_folder
    assert len(os.fsencode(socket_folder / ".s.PGSQL.5432")) <= SOCKET_PATH_BYTES
    assert not socket_folder.is_relative_to(top)
    try:
        embedded.ensure_running()
        assert ask("SELECT 1") == (1,)
        assert stat.S_IMODE(socket_folder.stat().st_mode) == 0o700
    finally:
        embedded.stop()
        shutil.rmtree(socket_folder)
        folder.rename(place.folder)
        shutil.rmtree(top)


def test_a_killed_server_starts_again_with_its_data(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRATA_POSTGRES_DURABLE", "true")
    embedded.ensure_running()
    do("CREATE TABLE kept AS SELECT 7 AS number")
    pid = running_pid(place)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: running_pid(place) is None)
    # Its other processes notice within moments; until then a start is refused.
    wait_for(lambda: not any(works_in(place.data)))
    embedded.ensure_running()
    assert ask("SELECT number FROM kept") == (7,)
    do("DROP TABLE kept")


def works_in(folder: Path) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                yield int(process.name)
        except OSError:
            continue


def test_a_pid_file_with_a_strangers_number_is_no_server(place: Place) -> None:
    stale = place.data / "postmaster.pid"
    stale.write_text(f"{os.getpid()}\n{place.data}\n0\n5432\n\n\n\nready   \n")
    owner = server_user(place)
    os.chown(stale, owner.pw_uid, owner.pw_gid)
    assert running_pid(place) is None
    embedded.ensure_running()
    assert running_pid(place) not in {None, os.getpid()}


def test_it_ends_with_the_process_that_started_it(place: Place) -> None:
    starter = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent("""
                import subprocess, sys
                command = [sys.executable, "-m", "strata_portal.embedded", "foreground"]
                subprocess.run(command)
            """),
        ],
        start_new_session=True,
    )
    embedded.wait_until_ready()
    starter.kill()
    starter.wait()
    wait_for(lambda: running_pid(place) is None)


def test_the_foreground_takes_over_a_server_left_behind(place: Place) -> None:
    embedded.ensure_running()
    before = running_pid(place)
    command = [sys.executable, "-m", "strata_portal.embedded", "foreground"]
    child = subprocess.Popen(command)
    wait_for(lambda: running_pid(place) == child.pid and embedded.is_ready())
    assert before != child.pid
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 0


def test_data_of_another_major_version_is_left_alone(place: Place) -> None:
    version = place.data / "PG_VERSION"
    version.write_text("17\n")
    try:
        with pytest.raises(embedded.EmbeddedDatabaseError, match="by PostgreSQL 17"):
            embedded.ensure_running()
    finally:
        version.write_text("18\n")


def test_a_socket_folder_that_others_may_enter_is_refused(place: Place) -> None:
    place.socket_folder.chmod(0o755)
    with pytest.raises(embedded.EmbeddedDatabaseError, match="mode 0700"):
        make_private(place.socket_folder, server_user(place))
    place.socket_folder.chmod(0o700)


def test_its_address_is_told_without_starting_it(place: Place) -> None:
    url = embedded.database_url()
    assert psycopg.conninfo.conninfo_to_dict(url) == {
        "user": "strata",
        "dbname": "strata",
        "host": str(place.socket_folder),
        "port": "5432",
    }
    assert running_pid(place) is None


@as_root
def test_below_a_private_folder_no_folder_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    private = new_folder(mode=0o700)
    monkeypatch.delenv("STRATA_POSTGRES_DIR", raising=False)
    monkeypatch.setenv("STRATA_VAR_DIR", str(private / "var"))
    place = find_place()
    assert place.folder.parent == SHARED_PLACES.resolve()
    try:
        embedded.ensure_running()
        assert ask("SELECT 1") == (1,)
        assert (private / "var" / "postgres").resolve() == place.folder
        assert find_place() == place
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert not others_may_enter(private)
    finally:
        remove(private)
        shutil.rmtree(place.folder)


@as_root
def test_a_chosen_folder_out_of_reach_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    private = new_folder(mode=0o700)
    monkeypatch.setenv("STRATA_POSTGRES_DIR", str(private / "database"))
    with pytest.raises(embedded.EmbeddedDatabaseError, match="may not enter"):
        embedded.ensure_running()
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    remove(private)
