"""The state of ingest work: who holds a run, how far it is, and how an attempt ends.

It is ours, not the queue's (D20). Whoever takes a run holds it by a lease, on the
database's clock; the attempt is counted and committed before the work begins, so that
a file which kills its worker is started a known number of times.

Locks are taken in one order everywhere: the source, its run, its passages, and the
knowledge base (`actions.touch`) last.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    models,
    transaction,
)
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from knowledge.models import IngestRun, Source
from knowledge.models.ingest import OPEN_STATES, RunState, Stage
from knowledge.models.source import SourceState

# How long a run that has to wait pauses: a tenth of its age, within these bounds (s).
WAIT_LEAST, WAIT_MOST = 3, 60
# Where each stage stands in the whole, in percent.
SPAN = {
    Stage.EXTRACT: (0, 10),
    Stage.STRUCTURE: (10, 12),
    Stage.CHUNK: (12, 15),
    Stage.EMBED: (15, 90),
    Stage.PUBLISH: (90, 97),
    Stage.VERIFY: (97, 100),
}
# Classes of SQLSTATE that speak of the database's moment, not of what was written:
# connection, rollback, resources, locks, operator.
WEATHER = {"08", "40", "53", "55", "57", "58"}
QUERY_CANCELED = "57014"


class LeaseLostError(Exception):
    """The run is no longer this worker's: taken over, superseded or deleted."""


def group_name(group: int) -> str:
    """Return what the names of all workers in one process group begin with."""
    return f"{socket.gethostname()[:80]}:{group}:"


def worker_name() -> str:
    """Return who holds a lease: host, process group and process."""
    return f"{group_name(os.getpgid(0))}{os.getpid()}"


# --- Sets of runs -------------------------------------------------------------


def due_runs() -> models.QuerySet[IngestRun]:
    """Return the runs that should be going now and that nobody holds."""
    return IngestRun.objects.filter(
        Q(lease_until__isnull=True) | Q(lease_until__lt=Now()),
        state__in=OPEN_STATES,
        due_at__lte=Now(),
    )


def held_runs() -> models.QuerySet[IngestRun]:
    """Return the runs that a worker holds now."""
    return IngestRun.objects.filter(state=RunState.RUNNING, lease_until__gt=Now())


def held(run: IngestRun) -> models.QuerySet[IngestRun]:
    """Return the run's row as long as this process still holds it."""
    return IngestRun.objects.filter(
        pk=run.pk,
        state=RunState.RUNNING,
        worker=run.worker,
        attempts=run.attempts,
        source__generation=run.generation,
    )


# --- Taking and keeping -------------------------------------------------------


def claim(run_id: int) -> IngestRun | None:
    """Take a run's lease, counting the attempt before its work begins.

    Returns None where there is nothing to take: the run is held, done, superseded,
    deleted or not due, or its source is being changed at this moment.
    """
    with transaction.atomic():
        source = (
            Source.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("layer", "original")
            .filter(runs=run_id)
            .first()
        )
        if source is None:
            return None
        run = due_runs().select_for_update().filter(pk=run_id).first()
        if run is None:
            return None
        run.source = source
        if run.generation != source.generation:
            run.state = RunState.SUPERSEDED
            run.finished_at = Now()
            run.save(update_fields=["state", "finished_at"])
            return None
        if run.attempts >= settings.STRATA_INGEST_ATTEMPTS:
            bury(run)
            return None
        start(run)
    return run


def start(run: IngestRun) -> None:
    """Count the attempt, take the lease, and show the source as being worked on."""
    source = run.source
    has_text = source.documents.filter(is_current=True).exists()
    source.state = SourceState.REPROCESSING if has_text else SourceState.PROCESSING
    # Why it waits stays to be read until it is known to wait no longer.
    if run.state != RunState.WAITING:
        source.state_reason = ""
    source.save(update_fields=["state", "state_reason"])
    run.attempts += 1
    run.state = RunState.RUNNING
    run.worker = worker_name()
    run.lease_until = Now() + timedelta(seconds=settings.STRATA_LEASE_SECONDS)
    run.started_at = Now()
    run.save(update_fields=["attempts", "state", "worker", "lease_until", "started_at"])


def bury(run: IngestRun) -> None:
    """End a run that ended its workers again and again; the caller has locked it."""
    reason = _(
        "Reading this file stopped the worker %(count)s times, so it is not tried "
        "again. Save the file in another format and replace it here."
    ) % {"count": run.attempts}
    run.state = RunState.FAILED
    run.code = "dead-letter"
    run.reason = with_text_from_before(run, reason)
    run.lease_until = None
    run.finished_at = Now()
    run.save(update_fields=["state", "code", "reason", "lease_until", "finished_at"])
    Source.objects.filter(pk=run.source_id).update(
        state=SourceState.FAILED, state_reason=run.reason
    )


@contextmanager
def kept_lease(run: IngestRun) -> Iterator[None]:
    """Extend a run's lease from a thread of its own for as long as the work lasts.

    The thread dies with the process, so a killed worker's lease ends by itself.
    """
    over = threading.Event()

    def extend() -> None:
        while not over.wait(settings.STRATA_LEASE_SECONDS / 4):
            try:
                held(run).update(
                    lease_until=Now() + timedelta(seconds=settings.STRATA_LEASE_SECONDS)
                )
            except DatabaseError:
                # The next round tries again, on a new connection.
                connection.close()
        connection.close()

    thread = threading.Thread(target=extend, daemon=True, name=f"lease-{run.pk}")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def report(run: IngestRun, stage: Stage, done: float = 0.0) -> None:
    """Tell stage and progress (0 to 1 within it); raises LeaseLostError."""
    low, high = SPAN[stage]
    run.stage = stage
    run.percent = int(low + (high - low) * min(max(done, 0.0), 1.0))
    if not held(run).update(stage=run.stage, percent=run.percent):
        raise LeaseLostError


# --- How an attempt ends ------------------------------------------------------


def leave(run: IngestRun, source: Mapping[str, object], **changes: object) -> bool:
    """Give the lease back and write how run and source stand; False if it was lost."""
    with transaction.atomic():
        locked = Source.objects.select_for_update(of=("self",)).filter(pk=run.source_id)
        if locked.first() is None:
            return False
        if not held(run).update(lease_until=None, **changes):
            return False
        Source.objects.filter(pk=run.source_id).update(**source)
    return True


def finish(run: IngestRun, passages: int) -> str:
    """End a run whose passages were read back."""
    done = leave(
        run,
        {"state": SourceState.READY, "state_reason": ""},
        state=RunState.DONE,
        stage=Stage.VERIFY,
        percent=100,
        passages=passages,
        code="",
        reason="",
        finished_at=Now(),
    )
    if not done:
        raise LeaseLostError
    return RunState.DONE


def fail(run: IngestRun, code: str, reason: str) -> str:
    """End a run whose content cannot be taken; an older text goes on serving."""
    reason = with_text_from_before(run, reason)
    leave(
        run,
        {"state": SourceState.FAILED, "state_reason": reason},
        state=RunState.FAILED,
        code=code,
        reason=reason,
        finished_at=Now(),
    )
    return RunState.FAILED


def with_text_from_before(run: IngestRun, reason: str) -> str:
    """Add to a reason that an older text serves, where one does."""
    if not run.source.documents.filter(is_current=True).exists():
        return reason
    return _("%(reason)s The text from before is still searched.") % {"reason": reason}


def wait(run: IngestRun, reason: str) -> str:
    """Put a run back until the model server answers; that is no attempt lost."""
    leave(
        run,
        {"state_reason": reason},
        state=RunState.WAITING,
        attempts=F("attempts") - 1,
        code="waiting",
        reason=reason,
        due_at=after_pause(run),
    )
    return RunState.WAITING


def wait_for_database(run: IngestRun) -> str:
    """Put a run back after the database was away or busy; that is no attempt lost."""
    leave(
        run,
        {},
        state=RunState.QUEUED,
        attempts=F("attempts") - 1,
        due_at=after_pause(run),
    )
    return RunState.QUEUED


def once_database_answers(write: Callable[[], str]) -> str:
    """Do a write, again and again while the database is away, and return its result.

    Gives up after twice the time of a lease; the run is then taken up by the sweep.
    """
    end = time.monotonic() + 2 * settings.STRATA_LEASE_SECONDS
    while True:
        try:
            return write()
        except DatabaseError as error:
            if not is_weather(error) or time.monotonic() > end:
                raise
        connection.close()
        time.sleep(1)


def after_pause(run: IngestRun) -> models.Expression:
    """Return when a run that waits is due again: the older it is, the rarer."""
    age = (timezone.now() - run.created_at).total_seconds()
    return Now() + timedelta(seconds=min(max(age / 10, WAIT_LEAST), WAIT_MOST))


def try_again(run: IngestRun) -> str:
    """Put a run back after an error of ours, or end it after the last attempt."""
    if run.attempts >= settings.STRATA_INGEST_ATTEMPTS:
        return fail(
            run,
            "error",
            _(
                "Something went wrong %(count)s times while this source was indexed. "
                "The server's log says what."
            )
            % {"count": run.attempts},
        )
    leave(run, {}, state=RunState.QUEUED, due_at=Now() + timedelta(seconds=WAIT_LEAST))
    return RunState.QUEUED


def is_weather(error: DatabaseError) -> bool:
    """Tell whether an error is the database's moment, not what was written to it."""
    sqlstate = getattr(error.__cause__, "sqlstate", None)
    if sqlstate is None:
        return isinstance(error, OperationalError | InterfaceError)
    return sqlstate[:2] in WEATHER and sqlstate != QUERY_CANCELED


def hand_back(workers: Sequence[str]) -> None:
    """Free the runs of workers that were stopped on purpose; no attempt is lost."""
    IngestRun.objects.filter(state=RunState.RUNNING, worker__in=workers).update(
        state=RunState.QUEUED,
        attempts=F("attempts") - 1,
        lease_until=None,
        due_at=Now(),
    )
