"""What the task cluster leaves in the database, and what it tells of its health."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import DurationField, Expression, ExpressionWrapper, Max, Min
from django.db.models.functions import Now
from django.utils import timezone
from django_q.models import OrmQ

from knowledge.models import IngestRun, WorkerBeat
from knowledge.runs import due_runs, held_runs

# Whose signs of life are kept: the cluster's, and those of upkeep that takes minutes.
CLUSTER: Final = "cluster"
UPKEEP: Final = "upkeep"
# Runs that nobody takes for so long, while no run at all is taken, mean trouble (s).
OVERDUE_SECONDS: Final = 90
# More tasks than this taken from the queue and not settled: their ends get lost.
UNSETTLED_TASKS: Final = 50


def leave_sign(name: str) -> None:
    """Leave a sign of life; only a cluster that really works can run what calls this."""
    WorkerBeat.objects.update_or_create(name=name, defaults={"at": Now()})


def tasks_wait() -> bool:
    """Tell whether the queue holds a task that nobody has taken."""
    return bool(OrmQ.objects.filter(lock__lte=timezone.now()).exists())


@contextmanager
def shown(name: str) -> Iterator[None]:
    """Show from a thread of its own that some work goes on, however long it takes.

    The thread dies with the process, so a killed worker's signs end by themselves.
    """
    over = threading.Event()

    def show() -> None:
        while True:
            try:
                leave_sign(name)
            except DatabaseError:
                # The next round tries again, on a new connection.
                connection.close()
            if over.wait(settings.STRATA_LEASE_SECONDS / 4):
                break
        connection.close()

    thread = threading.Thread(target=show, daemon=True, name=name)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True, slots=True)
class VitalSigns:
    """The signs, with ages in seconds by the database's clock.

    `heartbeat_age` is None before the first beat, `last_start_age` before the first
    run. `busy` counts tasks that show by themselves that they go on; all workers may
    be busy with large sources for longer than a heartbeat. `unsettled` counts tasks
    taken from the queue whose end nobody has recorded.
    """

    heartbeat_age: float | None
    oldest_due_age: float
    last_start_age: float | None
    busy: int
    unsettled: int

    def trouble(self) -> str:
        """Return why the cluster counts as stuck, as a sentence; "" if it does not."""
        if self.busy >= settings.Q_CLUSTER["workers"]:
            return ""
        if self.heartbeat_age is None:
            return "The worker has shown no sign of life yet."
        if self.heartbeat_age > settings.STRATA_HEARTBEAT_SECONDS:
            return (
                f"The worker's last sign of life is {self.heartbeat_age:.0f} seconds "
                f"old; {settings.STRATA_HEARTBEAT_SECONDS} are allowed."
            )
        idle = self.last_start_age is None or self.last_start_age > OVERDUE_SECONDS
        if self.oldest_due_age > OVERDUE_SECONDS and idle:
            return (
                f"A source has waited {self.oldest_due_age:.0f} seconds for its turn, "
                "and none was taken in that time."
            )
        if self.unsettled > UNSETTLED_TASKS:
            return f"The ends of {self.unsettled} tasks were not recorded."
        return ""


def vital_signs() -> VitalSigns:
    """Read the signs; raises DatabaseError where the database does not answer."""
    beat = WorkerBeat.objects.filter(name=CLUSTER).aggregate(age=age(Max("at")))["age"]
    due = due_runs().aggregate(age=age(Min("due_at")))["age"]
    started = IngestRun.objects.aggregate(age=age(Max("started_at")))["age"]
    upkeep = WorkerBeat.objects.filter(
        name=UPKEEP, at__gt=Now() - timedelta(seconds=settings.STRATA_LEASE_SECONDS)
    )
    return VitalSigns(
        heartbeat_age=beat.total_seconds() if beat is not None else None,
        oldest_due_age=max(due.total_seconds(), 0.0) if due is not None else 0.0,
        last_start_age=started.total_seconds() if started is not None else None,
        busy=held_runs().count() + upkeep.count(),
        unsettled=OrmQ.objects.filter(lock__gt=timezone.now()).count(),
    )


def age(moment: Min | Max) -> Expression:
    """Return how long ago a moment was."""
    return ExpressionWrapper(Now() - moment, output_field=DurationField())
