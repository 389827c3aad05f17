"""What holds for the code as a whole: found by reading it, and by running it."""

import ast
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from django.conf import settings

ROOT = Path(__file__).resolve().parent.parent
APPS = ("strata_portal", "approvals", "retrieval", "knowledge")

# Where the rows behind a reader's view may be read without the reader, and why.
PASSAGES_WITHOUT_READER = {
    "knowledge/models/": "defines the door itself",
    "knowledge/ingest.py": "writes them",
    "knowledge/legacy.py": "writes those of an older version",
    "knowledge/publishing.py": "writes them",
    "knowledge/reindexing.py": "writes their terms anew",
    "knowledge/actions.py": "moves and deletes them with their source",
    "knowledge/purging.py": "erases them with every copy of their words",
    "knowledge/upkeep.py": "sweeps what no reader reaches any more",
    "knowledge/indexes.py": "counts them to decide on an index",
    "knowledge/admin/": "is scoped by ScopedAdmin",
    "retrieval/hidden.py": "counts, for auditors, what a search did not show",
    "approvals/gaps.py": "asks which words no passage that staff look after holds",
    "strata_portal/demo/": "counts what it has loaded",
    "strata_portal/doctor.py": "counts all of them for the operator",
    "strata_portal/management/": "works for the operator, not for a reader",
}
# What is dangerous in most hands, and why it is not in these.
DANGEROUS = re.compile(
    r"\b(mark_safe|SafeString|eval|exec|pickle|marshal|RawSQL|yaml\.load|os\.system)\b"
    r"|\.extra\(|shell=True|\|safe\b|autoescape off"
)
ALLOWED = {
    "knowledge/inference/local.py": "eval() is how the model is told to infer",
    "knowledge/frontmatter.py": "its loader is a SafeLoader that makes only texts",
    "templates/includes/field.html": "help texts are ours and Django's, never a person's",
}
# Where rows of a reader's pages are read after the door, and why.
AFTER_THE_DOOR = {
    "retrieval/hidden.py": "counts, for auditors, what a search did not show",
    "retrieval/admin/feedback.py": "names the sources of ratings that staff look after",
    "retrieval/admin/impact.py": "asks what a member of staff works on",
    "retrieval/admin/tuning.py": "counts the corpus whose settings it shows",
    "retrieval/models/question_set.py": "asks which sets a member of staff works on",
    "retrieval/cited.py": "compares the source of a citation that was let through",
    "retrieval/snapshots.py": "keeps what came through the door, and compares it",
    "retrieval/impact.py": "compares the texts of a source for whoever changed it",
    "retrieval/management/commands/calibrate.py": "works for the operator",
    "retrieval/management/commands/import_v0.py": "works for the operator",
    "retrieval/promoter.py": "asks which layers there are, for what nobody reads yet",
    "retrieval/opening.py": "compares what a receipt read, after it was let through",
    "retrieval/citations.py": "labels passages that came through the door",
    "retrieval/reach.py": "writes the conditions of the door as SQL",
    "retrieval/reading.py": "reads on in a document that came through the door",
    "retrieval/sizes.py": "counts the knowledge bases of a resolved reader",
}
# `hidden_from` is what the door leaves out, to subtract it; `administered_by` is the
# staff's own door.
DOORS = (
    ["visible_to"],
    ["hidden_from"],
    ["listed_to"],
    ["administered_by"],
    ["none"],
)
# The only signal: the ready roles are rows of the product and are kept like
# Django's own permission rows, after migrations; Django offers no other hook.
SIGNALS = {"knowledge/apps.py"}


def sources() -> Iterator[tuple[str, str]]:
    """Yield (path, text) of each Python file of the product."""
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if "/migrations/" not in name:
                yield name, path.read_text(encoding="utf-8")


def code_only(text: str) -> str:
    """Return the names and calls of a file, without its comments and texts."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.unparse(tree)


def chains(text: str, model: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, names) of each `model.objects.a().b()`, as ["a", "b"]."""
    tree = ast.parse(text)
    inner = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    } | {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Attribute, ast.Call)) or id(node) in inner:
            continue
        names: list[str] = []
        each: ast.expr = node
        while isinstance(each, (ast.Attribute, ast.Call)):
            if isinstance(each, ast.Attribute):
                names.append(each.attr)
                each = each.value
            else:
                each = each.func
        names.reverse()
        if isinstance(each, ast.Name) and each.id == model and names[:1] == ["objects"]:
            yield node.lineno, names[1:]


@pytest.mark.req("REL-A6")
@pytest.mark.parametrize("model", ["Passage", "PassageVector", "PassageTokens"])
def test_passages_are_read_through_the_one_door(model: str) -> None:
    found = []
    for name, text in sources():
        if any(name.startswith(place) for place in PASSAGES_WITHOUT_READER):
            continue
        for line, names in chains(text, model):
            if model != "Passage" or names[:1] not in DOORS:
                found.append(f"{name}:{line}: {model}.objects.{'.'.join(names)}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("model", ["Document", "Source", "Layer", "KnowledgeBase"])
def test_readers_pages_and_api_start_at_a_readers_rows(model: str) -> None:
    found = []
    for name, text in sources():
        if not name.startswith("retrieval/") or name in AFTER_THE_DOOR:
            continue
        for line, names in chains(text, model):
            if names[:1] not in DOORS:
                found.append(f"{name}:{line}: {model}.objects.{'.'.join(names)}")
    assert not found, "\n".join(found)


def test_the_lint_sees_what_it_should() -> None:
    text = (
        "a = Passage.objects.filter(pk=1)\n"
        "b = Passage.objects.visible_to(reader).filter(pk=1)\n"
        "c = list(x for x in Passage.objects.all())\n"
        "d = Passage.objects\n"
    )
    assert sorted(chains(text, "Passage")) == [
        (1, ["filter"]),
        (2, ["visible_to", "filter"]),
        (3, ["all"]),
        (4, []),
    ]


def test_no_signals_but_one() -> None:
    found = [
        name
        for name, text in sources()
        if re.search(r"\bSignal\(|@receiver|\.signals\b|\.connect\(", code_only(text))
        and name not in SIGNALS
    ]
    assert found == []


@pytest.mark.req("REL-O4")
def test_nothing_dangerous_but_what_is_listed() -> None:
    found = [
        f"{name}: {match[0]}"
        for name, text in sources()
        if (match := DANGEROUS.search(code_only(text))) and name not in ALLOWED
    ]
    found += [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        if (match := DANGEROUS.search(path.read_text(encoding="utf-8")))
        and path.relative_to(ROOT).as_posix() not in ALLOWED
    ]
    assert found == []


@pytest.mark.req("REL-X9")
def test_templates_hold_no_script_and_no_style() -> None:
    inline = re.compile(
        r"<script(?![^>]*\ssrc=)[^>]*>|<style|\sstyle=|\son[a-z]+=|javascript:"
    )
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for match in inline.finditer(path.read_text(encoding="utf-8"))
        if 'type="application/json"' not in match[0]
    ]
    assert found == []


def test_no_module_is_a_drawer_for_leftovers() -> None:
    forbidden = {"utils", "helpers", "services", "managers", "common", "misc"}
    assert [
        name
        for name, _text in sources()
        if forbidden & set(Path(name).with_suffix("").parts)
    ] == []


# --- Booted processes ----------------------------------------------------------

MODEL_LIBRARIES = ("torch", "transformers", "sentence_transformers", "tokenizers")


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def family(pid: int) -> set[int]:
    """Return a process and all that it started, directly or not."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(encoding="utf-8")
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, of in parents.items() if of in found} - found:
        found |= more
    return found


def libraries_of(pid: int) -> str:
    """Return the files that a process has mapped into its memory."""
    return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")


@pytest.fixture
def environment(transactional_db: None) -> dict[str, str]:
    """What a process of the product needs to work on this test's database."""
    database = settings.DATABASES["default"]
    url = (
        f"host='{database['HOST']}' port='{database['PORT']}' "
        f"user='{database['USER']}' dbname='{database['NAME']}'"
    )
    if database["PASSWORD"]:
        url += f" password='{database['PASSWORD']}'"
    return {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "strata_portal.settings",
        "SECRET_KEY": settings.SECRET_KEY,
        "STRATA_MODEL_URL": "http://127.0.0.1:9",
    }


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop a process; kill it if it does not go by itself."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.req("R7")
def test_the_web_process_never_loads_the_model_library(
    environment: dict[str, str],
) -> None:
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "strata_portal.asgi:application"]
    web = subprocess.Popen(
        [*command, "--port", str(port), "--lifespan", "off", "--log-level", "warning"],
        cwd=ROOT,
        env=environment,
    )
    try:
        assert wait_for(f"http://127.0.0.1:{port}/healthz", web) == 200
        # To find that address, all views were loaded, the admin and the API too.
        assert_no_model_library(web.pid)
    finally:
        end(web)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.req("R7")
def test_the_worker_never_loads_the_model_library(environment: dict[str, str]) -> None:
    from knowledge.models import WorkerBeat

    worker = subprocess.Popen(
        [sys.executable, "manage.py", "worker"], cwd=ROOT, env=environment
    )
    try:
        until = time.monotonic() + 120
        while not WorkerBeat.objects.exists():
            assert worker.poll() is None, "the worker ended"
            assert time.monotonic() < until, "the worker gave no sign of life"
            time.sleep(0.2)
        # A task has run, so all that tasks import is loaded.
        assert len(family(worker.pid)) > 1
        assert_no_model_library(worker.pid)
    finally:
        end(worker)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> int:
    """Return the status of an address once it answers."""
    until = time.monotonic() + 120
    while True:
        try:
            with urlopen(url) as response:  # noqa: S310
                return int(response.status)
        except OSError:
            assert process.poll() is None, "the process ended"
            assert time.monotonic() < until, "the process does not answer"
            time.sleep(0.2)


def assert_no_model_library(pid: int) -> None:
    """Check a process and its children for the model library's shared objects."""
    for each in family(pid):
        mapped = libraries_of(each)
        for library in MODEL_LIBRARIES:
            assert f"/{library}/" not in mapped, (each, library)
