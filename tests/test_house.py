"""What holds the processes together: make, the process manager, login and doctor."""

import ast
import configparser
import importlib.metadata
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from pytest_django.fixtures import Settings

from knowledge.models import ApiToken, KnowledgeBase, Original, User
from knowledge.tokens import find_token, revoke_token
from retrieval import anchor
from strata_portal import doctor
from strata_portal.demo_login import ensure_login, password_holds
from strata_portal.doctor import Level
from strata_portal.processes import (
    Folders,
    Manager,
    ProcessError,
    Program,
    attached,
    port_is_free,
    settings_text,
)
from strata_portal.secret_key import ensure_secret_key
from tests.factories import ready_source
from tests.retrieval.receipts import issued
from tests.retrieval.shelf import layer_of, put, reader_of

ROOT = Path(__file__).parent.parent
APPS = ("strata_portal", "approvals", "retrieval", "knowledge")


# --- Requirements -------------------------------------------------------------


def listed(name: str) -> dict[str, str]:
    """The packages of a requirements file, by normalised name, with their versions."""
    lines = (ROOT / name).read_text().splitlines()
    found = (
        re.match(r"([\w.-]+)(?:\[[^]]*\])?((?:==|>=)[\w.]+)", line) for line in lines
    )
    return {normal(each[1]): each[2] for each in found if each}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_direct_dependencies_are_pinned() -> None:
    loose = {
        name
        for file in ("requirements.txt", "requirements-dev.txt")
        for name, version in listed(file).items()
        if not version.startswith("==")
    }
    assert loose == {"urllib3"}


def test_each_group_of_requirements_has_its_reason() -> None:
    for file in ("requirements.txt", "requirements-dev.txt"):
        groups = (ROOT / file).read_text().strip().split("\n\n")
        assert all(group.startswith("#") for group in groups)


def imported() -> Iterator[str]:
    """The top-level names that the product imports."""
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    yield from (name.name.split(".")[0] for name in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    yield node.module.split(".")[0]


def test_everything_that_is_imported_is_listed() -> None:
    distributions = importlib.metadata.packages_distributions()
    known = set(listed("requirements.txt"))
    lacking = {
        name
        for name in set(imported()) - sys.stdlib_module_names - set(APPS)
        if not known & {normal(each) for each in distributions.get(name, [])}
    }
    # The demo's Word and PDF files are in the repository; who builds them anew prints
    # them with the browser of the tests.
    assert lacking <= {"playwright"}


# --- make ---------------------------------------------------------------------


def test_without_python_3_11_make_says_so(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("make", "sh", "echo"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements.txt").touch()
    done = subprocess.run(
        ["make", "run"],
        cwd=tmp_path,
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "needs Python 3.11" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_taken_port_is_said_with_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "manage.py", "quickstart"],
            cwd=ROOT,
            env={
                **os.environ,
                "STRATA_VAR_DIR": str(tmp_path),
                "STRATA_WEB_PORT": str(port),
                "STRATA_MODEL_URL": "http://127.0.0.1:9",
                "DJANGO_SETTINGS_MODULE": "strata_portal.settings",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert f"Another program uses port {port}" in done.stderr
    assert f"STRATA_WEB_PORT={port + 100} make run" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not port_is_free(port)
    assert port_is_free(port)


def test_the_signing_key_is_made_once_and_private(tmp_path: Path) -> None:
    path = ensure_secret_key(tmp_path / "var")
    key = path.read_text()
    assert len(key.strip()) >= 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ensure_secret_key(tmp_path / "var").read_text() == key


# --- The process manager ------------------------------------------------------


@pytest.fixture
def folders() -> Iterator[Folders]:
    """Folders of a short path, as that of a clone mostly is."""
    with tempfile.TemporaryDirectory(prefix="strata-processes-") as name:
        yield Folders(run=Path(name) / "run", log=Path(name) / "log")


def sleeper(name: str) -> Program:
    """A process that does nothing until it is stopped."""
    command = attached(sys.executable, "-c", "import time; time.sleep(600)")
    return Program(name, command)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen within 60 seconds"
        time.sleep(0.05)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def test_percent_signs_and_spaces_survive_the_settings(folders: Folders) -> None:
    program = Program("odd", ["/a folder/50%/run", "--now"])
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(settings_text([program], folders))
    command = parser["program:odd"]["command"]
    assert command == "'/a folder/50%%/run' --now"


def test_a_process_that_ends_is_restarted_and_said(folders: Folders) -> None:
    manager = Manager([sleeper("first"), sleeper("second")], folders)
    try:
        for name in ("first", "second"):
            manager.start(name, lambda: True, seconds=30)
        pids = {state.name: state.pid for state in manager.states()}
        said = manager.watch(0.1)
        os.kill(pids["second"], signal.SIGKILL)
        sentence = next(said)
        after = {state.name: state.pid for state in manager.states()}
    finally:
        manager.stop()
    assert sentence.startswith("second had ended unexpectedly and was restarted.")
    assert after["first"] == pids["first"]
    assert after["second"] != pids["second"]
    assert all(is_gone(pid) for pid in after.values())


def test_nothing_outlives_a_killed_manager(folders: Folders) -> None:
    manager = Manager([sleeper("orphan")], folders)
    manager.start("orphan", lambda: True, seconds=30)
    (state,) = manager.states()
    # The command puts itself into the parent's hands in its first moments.
    words = Path(f"/proc/{state.pid}/cmdline")
    wait_for(lambda: "strata_portal.attached" not in words.read_text())
    manager.child.kill()
    manager.child.wait()
    wait_for(lambda: is_gone(state.pid))


def test_a_process_that_does_not_start_is_said_with_its_last_words(
    folders: Folders,
) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such folder')"]
    manager = Manager([Program("broken", command)], folders)
    try:
        with pytest.raises(ProcessError, match="no such folder"):
            manager.start("broken", lambda: False, seconds=30)
    finally:
        manager.stop()


# --- The login ----------------------------------------------------------------


@pytest.mark.django_db
def test_the_login_is_made_once_and_printed_again(tmp_path: Path) -> None:
    path = tmp_path / "demo-login.txt"
    first = ensure_login(path)
    assert ensure_login(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert password_holds(first)
    token = find_token(first.token)
    assert token is not None
    assert token.owner.is_superuser
    assert ApiToken.objects.count() == 1


@pytest.mark.django_db
def test_a_changed_password_is_left_alone_and_a_revoked_token_replaced(
    tmp_path: Path,
) -> None:
    path = tmp_path / "demo-login.txt"
    first = ensure_login(path)
    user = User.objects.get(username=first.user)
    user.set_password("another one of mine")
    user.save()
    revoke_token(ApiToken.objects.get(), actor=user)
    second = ensure_login(path)
    user.refresh_from_db()
    assert user.check_password("another one of mine")
    assert not password_holds(second)
    assert second.token != first.token
    assert find_token(second.token) is not None


@pytest.mark.django_db
def test_an_installation_with_administrators_gets_no_other(tmp_path: Path) -> None:
    User.objects.create_superuser("alice", password="hers alone")
    login = ensure_login(tmp_path / "demo-login.txt")
    assert (login.user, login.token) == ("", "")
    assert list(User.objects.filter(is_superuser=True)) == [
        User.objects.get(username="alice")
    ]
    assert not ApiToken.objects.exists()


# --- The doctor ---------------------------------------------------------------


@pytest.fixture
def original(db: None, settings: Settings, tmp_path: Path) -> Original:
    """An original file, with nothing else in the folder of files."""
    settings.MEDIA_ROOT = tmp_path / "media"
    shelf = KnowledgeBase.objects.create(name="Shelf", slug="shelf")
    row = Original(
        knowledge_base=shelf, name="a.txt", kind="text", size=1, sha256="0" * 64
    )
    row.file.save("a.txt", ContentFile(b"a"))
    return row


def test_the_doctor_finds_a_missing_file(original: Original) -> None:
    (found,) = doctor.check_files()
    assert found.level is Level.GOOD
    Path(original.file.path).unlink()
    (found,) = doctor.check_files()
    assert found.level is Level.PROBLEM
    assert original.file.name in found.sentence
    assert "backup" in found.remedy


def test_the_doctor_notes_a_file_of_no_source(original: Original) -> None:
    stray = Path(original.file.path).with_name("stray")
    stray.write_bytes(b"?")
    (found,) = doctor.check_files()
    assert found.level is Level.GOOD, "an upload may be coming in"
    long_ago = time.time() - 2 * doctor.ORPHAN_SECONDS
    os.utime(stray, (long_ago, long_ago))
    (found,) = doctor.check_files()
    assert found.level is Level.NOTE
    assert "stray" in found.sentence


def test_the_doctor_finds_a_secret_that_others_can_read(
    settings: Settings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    key = ensure_secret_key(tmp_path)
    assert not list(doctor.check_secrets())
    key.chmod(0o644)
    (found,) = doctor.check_secrets()
    assert found.level is Level.PROBLEM
    assert "chmod 600" in found.remedy


@pytest.mark.req("REL-R3", "REL-R4")
@pytest.mark.django_db
def test_the_doctor_misses_receipts_and_their_keys(
    settings: Settings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    passage = put(layer_of("one"), "The harbour opens at six.")
    receipt = issued(reader_of("one"), passage)
    (found,) = doctor.check_receipts()
    assert found.level is Level.GOOD
    assert stat.S_IMODE((tmp_path / "receipt_key").stat().st_mode) == 0o600
    assert not list(doctor.check_secrets())
    anchor.advance(receipt.number + 2, "0" * 64)
    (found,) = doctor.check_receipts()
    assert found.sentence.startswith("2 receipts that were issued are not")
    anchor.path().unlink()
    public = tmp_path / "receipt-keys.json"
    public.rename(tmp_path / "aside")
    (tmp_path / "receipt_key").unlink()
    (found,) = doctor.check_receipts()
    assert found.level is Level.PROBLEM
    assert "keys that are not known" in found.sentence
    public.write_text("broken")
    (found,) = doctor.check_receipts()
    assert "is damaged" in found.sentence


def test_the_doctor_says_how_to_start_what_does_not_run(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.STRATA_MODEL_URL = "http://127.0.0.1:9"
    monkeypatch.setenv("STRATA_WEB_PORT", "9")
    model, web = [*doctor.check_model(), *doctor.check_web()]
    assert (model.level, web.level) == (Level.PROBLEM, Level.PROBLEM)
    assert "http://127.0.0.1:9" in model.sentence
    assert "nobody answers" in web.sentence
    assert "make run" in model.remedy
    assert "make run" in web.remedy


@pytest.mark.req("S2-HYB-05")
@pytest.mark.django_db
def test_the_doctor_suggests_a_search_by_words_for_a_small_corpus(
    settings: Settings,
) -> None:
    assert not list(doctor.check_tuning())
    ready_source("The rent is due in May.")
    (found,) = doctor.check_tuning()
    assert found.level is Level.NOTE
    assert "lexical" in found.remedy
    settings.STRATA_SEARCH_TYPE = "lexical"
    assert not list(doctor.check_tuning())


@pytest.mark.django_db
def test_the_doctor_finds_settings_that_contradict_each_other(
    settings: Settings,
) -> None:
    settings.STRATA_CANDIDATES = 5
    (found,) = doctor.check_tuning()
    assert found.level is Level.PROBLEM
    assert "candidates" in found.sentence
