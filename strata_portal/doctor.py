"""What is wrong with this installation, each with the sentence that mends it.

Nothing is changed. The checks read all knowledge bases, since they are for the person
who runs the machine; they print counts and paths, never titles or texts.
"""

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Exists, Max, OuterRef

from knowledge.embedding import active_space, gateway, is_model_of, vectors_stored
from knowledge.inference.gateway import ModelError
from knowledge.models import Original, Passage, PassageVector, Source
from knowledge.models.source import SourceState
from retrieval.anchor import NAME as HEAD
from retrieval.anchor import AnchorError, known_head
from retrieval.models import Receipt
from retrieval.signing import PRIVATE as RECEIPT_KEY
from retrieval.signing import PUBLIC, KeyFileError, trusted_keys
from retrieval.tuning import contradictions, current, suits_lexical
from strata_portal.embedded.place import find_place
from strata_portal.portal_process import ask_web, web_port

OK_STATUS = 200
FREE_BYTES = 2_000_000_000
FREE_SHARE = 0.05
# A file of an upload that is just coming in has no row yet.
ORPHAN_SECONDS = 3600
EXAMPLES = 3


class Level(StrEnum):
    """How much a finding matters; only a problem makes the doctor's status 1."""

    GOOD = "good"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; `remedy` says what to do, and is empty if nothing."""

    level: Level
    sentence: str
    remedy: str = ""


def good(sentence: str) -> Finding:
    """Return a finding that asks for nothing."""
    return Finding(Level.GOOD, sentence)


def problem(sentence: str, remedy: str) -> Finding:
    """Return a finding that must be mended."""
    return Finding(Level.PROBLEM, sentence, remedy)


def examine() -> Iterator[Finding]:
    """Yield the findings of all checks; without a database, of those that need none."""
    yield from check_disk()
    yield from check_secrets()
    yield from check_model()
    yield from check_web()
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        yield problem(
            f"The database does not answer: {str(error).strip()}",
            "Start it with make run, or correct DATABASE_URL.",
        )
        return
    yield from check_system()
    pending = list(check_migrations())
    yield from pending
    if any(finding.level is Level.PROBLEM for finding in pending):
        return
    for check in DATABASE_CHECKS:
        yield from check()


def check_disk() -> Iterator[Finding]:
    """Look for room where files and the database are kept."""
    folders = {"files": settings.VAR_DIR}
    if not os.environ.get("DATABASE_URL", "").strip():
        folders["the database"] = find_place().folder
    for what, folder in folders.items():
        there = next(each for each in (folder, *folder.parents) if each.exists())
        usage = shutil.disk_usage(there)
        free = f"{usage.free / 1e9:.1f} GB free for {what} in {folder}"
        if usage.free < min(FREE_BYTES, usage.total * FREE_SHARE):
            yield problem(
                f"Only {free}.",
                "Make room; a full disk stops uploads and, in the end, the database.",
            )
        else:
            yield good(f"{free}.")


def check_secrets() -> Iterator[Finding]:
    """Look who can read the files that hold secrets."""
    for name in ("secret_key", RECEIPT_KEY, "demo-login.txt"):
        path = settings.VAR_DIR / name
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield problem(
                f"Other users of this machine can read {path}.",
                f"Run chmod 600 {path}, and replace what is in it.",
            )
    if settings.DEBUG:
        yield Finding(
            Level.NOTE,
            "DEBUG is on: an error page shows settings and texts to whoever sees it.",
            "Unset DEBUG wherever others can reach the portal.",
        )


def check_model() -> Iterator[Finding]:
    """Ask the model server what it serves."""
    try:
        info = gateway().describe()
    except ModelError as error:
        yield problem(
            f"The model server at {settings.STRATA_MODEL_URL} does not serve: {error}",
            "Start it with make run, or correct STRATA_MODEL_URL. Until then searches "
            "use keywords and codes only, and uploads wait.",
        )
    else:
        yield good(f"The model server serves {info.model_id} ({info.dimension}).")


def check_web() -> Iterator[Finding]:
    """Ask the web process, and through it the worker."""
    answer = ask_web("/healthz")
    if answer is None or answer.status != OK_STATUS:
        said = "nobody answers" if answer is None else f"status {answer.status}"
        yield problem(
            f"The web process on port {web_port()} is not well: {said}.",
            f"Start it with make run; {settings.VAR_DIR / 'log' / 'web.log'} may say "
            "why it ended.",
        )
        return
    yield good(f"The web process answers on port {web_port()}.")
    worker = ask_web("/healthz/worker")
    if worker is None or worker.status != OK_STATUS:
        figures = worker.content if worker is not None else {}
        yield problem(
            f"The worker shows no sign of life (heartbeat {age(figures, 'heartbeat')}, "
            f"oldest waiting work {age(figures, 'oldest_due')}).",
            "It restarts itself within a minute; if it does not, see "
            f"{settings.VAR_DIR / 'log' / 'worker.log'} and start make run again.",
        )
    else:
        yield good("The worker is alive.")


def age(figures: dict[str, object], name: str) -> str:
    """Return an age from /healthz/worker in words."""
    seconds = figures.get(f"{name}_age_s")
    return f"{seconds:.0f} s ago" if isinstance(seconds, int | float) else "never"


def check_system() -> Iterator[Finding]:
    """Run Django's and our own system checks, the database's version among them."""
    found = checks.run_checks(databases=["default"])
    messages = [message for message in found if not message.is_silenced()]
    for message in messages:
        grave = message.level >= checks.ERROR
        yield Finding(
            Level.PROBLEM if grave else Level.NOTE,
            f"{message.msg} ({message.id})",
            message.hint or "",
        )
    if not messages:
        yield good("The settings, the libraries and the database fit together.")


def check_migrations() -> Iterator[Finding]:
    """Look for tables that are not as this release wants them."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        yield problem(
            f"{len(plan)} migrations are to be applied.",
            "Back the database up, then run make run or manage.py migrate.",
        )
    else:
        yield good("All migrations are applied.")


def check_space() -> Iterator[Finding]:
    """Compare the model that is served with the one that the corpus is indexed with."""
    space = active_space()
    if space is None:
        return
    try:
        info = gateway().describe()
    except ModelError:
        return
    if not is_model_of(info, space):
        yield problem(
            f"The corpus is indexed with {space.model_id}, and the model server serves "
            f"{info.model_id}: questions have no vector, and uploads wait.",
            "Serve the former model again: correct STRATA_EMBEDDING_MODEL.",
        )


def check_vectors() -> Iterator[Finding]:
    """Count passages that the meaning branch cannot find."""
    space = active_space()
    if space is None or not vectors_stored():
        return
    vectors = PassageVector.objects.filter(space=space, passage=OuterRef("pk"))
    lacking = Passage.objects.filter(~Exists(vectors))
    sources = lacking.values("source").distinct().count()
    if sources:
        yield problem(
            f"{lacking.count()} passages of {sources} sources have no vector.",
            "Index these sources again: the admin's list of sources has an action.",
        )


def check_sources() -> Iterator[Finding]:
    """Count the sources that no search finds."""
    counts = dict(
        Source.objects.order_by().values_list("state").annotate(number=Count("pk"))
    )
    total = sum(counts.values())
    yield good(f"{counts.get(SourceState.READY, 0)} of {total} sources are ready.")
    if failed := counts.get(SourceState.FAILED, 0):
        # Single files may be unreadable; when most are, the installation is.
        yield Finding(
            Level.PROBLEM if failed > total / 2 else Level.NOTE,
            f"{failed} sources failed.",
            "The admin's list of sources says why, each in a sentence; the worker's "
            f"log is {settings.VAR_DIR / 'log' / 'worker.log'}.",
        )
    waiting = counts.get(SourceState.PENDING, 0)
    if waiting:
        yield Finding(
            Level.NOTE,
            f"{waiting} sources wait to be indexed.",
            "If the number does not fall, look at the worker and the model server.",
        )


def check_tuning() -> Iterator[Finding]:
    """Look whether the search's settings fit each other and the size of the corpus."""
    tuning = current()
    for sentence in contradictions(tuning):
        yield problem(
            f"The search's settings contradict each other: {sentence}",
            "Correct them in the admin under Search settings; the environment may have "
            "changed below what was saved there.",
        )
    passages = Passage.objects.count()
    if suits_lexical(tuning, passages):
        yield Finding(
            Level.NOTE,
            f"The corpus is small ({passages} passages); a search by words alone may "
            "find as much there, and needs no model.",
            "Try the search type lexical in the admin's search lab, against a question "
            "set if you keep one.",
        )


def check_files() -> Iterator[Finding]:
    """Compare the original files on disk with those that the database knows."""
    root = Path(settings.MEDIA_ROOT)
    known = set(Original.objects.values_list("file", flat=True))
    missing = sorted(name for name in known if not (root / name).is_file())
    orphans = sorted(name for name in stored_files(root) if name not in known)
    if missing:
        yield problem(
            f"{len(missing)} original files are missing below {root}: "
            f"{examples(missing)}.",
            "Restore them from the backup of the same day as the database.",
        )
    if orphans:
        yield Finding(
            Level.NOTE,
            f"{len(orphans)} files below {root} belong to no source: "
            f"{examples(orphans)}.",
            "They do no harm; a crash in the middle of an upload leaves them. Remove "
            "them once no backup needs them.",
        )
    if not missing and not orphans:
        yield good(f"All {len(known)} original files are there, and no others.")


def check_receipts() -> Iterator[Finding]:
    """Look whether receipts can be checked, and whether the newest ones are there."""
    try:
        known = set(trusted_keys())
        head = known_head()
    except (KeyFileError, AnchorError) as error:
        yield problem(
            f"What is kept of receipts beside the database is damaged: {error}",
            f"Bring {PUBLIC} and {HEAD} in {settings.VAR_DIR} back from a backup.",
        )
        return
    used = set(Receipt.objects.order_by().values_list("key_id", flat=True).distinct())
    last = Receipt.objects.aggregate(last=Max("number", default=0))["last"]
    if lacking := sorted(used - known):
        yield problem(
            f"Receipts are signed with {len(lacking)} keys that are not known here: "
            f"{examples(lacking)}.",
            f"Bring {settings.VAR_DIR / PUBLIC} back from a backup: without these keys "
            "nobody can check their receipts.",
        )
    if head is not None and head.number > last:
        yield problem(
            f"{head.number - last} receipts that were issued are not in the database.",
            "Bring a newer backup back, or find out who deleted them. If the loss is "
            f"known and final, remove {settings.VAR_DIR / HEAD}.",
        )
    if not lacking and (head is None or head.number <= last):
        yield good(f"{last} receipts were issued, and their keys are known.")


def stored_files(root: Path) -> Iterator[str]:
    """Yield the originals on disk, relative to `root`, older than an upload takes."""
    newest = time.time() - ORPHAN_SECONDS
    for path in (root / "originals").rglob("*"):
        if path.is_file() and path.stat().st_mtime < newest:
            yield path.relative_to(root).as_posix()


def examples(names: list[str]) -> str:
    """Return the first few names, and how many more there are."""
    shown = ", ".join(names[:EXAMPLES])
    more = len(names) - EXAMPLES
    return f"{shown} and {more} more" if more > 0 else shown


DATABASE_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_space,
    check_vectors,
    check_sources,
    check_tuning,
    check_files,
    check_receipts,
)
