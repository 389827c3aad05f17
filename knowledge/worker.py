"""The worker: a light parent that keeps django-q2's cluster going (D20).

The cluster is forked from here once Django is set up, so that its processes share what
is loaded. Being alive proves nothing: an idle worker that is killed while it holds the
queue's lock stops the cluster for ever, with every process in place. So the parent
looks at what the cluster leaves in the database (`knowledge.vitals`) and, where that is too
old, kills all of it and starts it anew. It also queues again whatever should be going
and is not; the queue itself may lose anything but the run, which is a row of ours.
"""

import ctypes
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final, NoReturn

from django.conf import settings
from django.db import DatabaseError, connection, connections
from django.db.models.functions import Now
from django.utils import timezone
from django_q.models import OrmQ
from django_q.tasks import async_task

from knowledge.runs import due_runs, group_name, hand_back, held_runs
from knowledge.upkeep import EVERY
from knowledge.vitals import tasks_wait, vital_signs

logger = logging.getLogger(__name__)

TICK_SECONDS: Final = 1.0
SWEEP_SECONDS: Final = 2.0
TUNE_SECONDS: Final = 300.0
CLEAN_SECONDS: Final = 24 * 3600.0
# After the start, before the first daily clean-up.
CLEAN_DELAY_SECONDS: Final = 90.0
# How long the cluster may take to end its tasks when it is asked to stop.
STOP_SECONDS: Final = 8.0
# A cluster that ends before this, again and again, is started ever more rarely.
LEAST_LIFE_SECONDS: Final = 15.0
MOST_PAUSE_SECONDS: Final = 30.0
# Runs queued again at once.
SWEEP_BATCH: Final = 32
PR_SET_PDEATHSIG: Final = 1
ENDED: Final = {signal.SIGTERM, signal.SIGINT}
HEARD: Final = ENDED | {signal.SIGCHLD}


class Periodic:
    """Something to do every so many seconds, by the monotonic clock."""

    def __init__(self, seconds: float, act: Callable[[], object], *, delay: float = 0):
        """Let it be due for the first time after `delay` seconds."""
        self.seconds = seconds
        self.act = act
        self.due = time.monotonic() + delay

    def __call__(self) -> None:
        """Do it if it is due."""
        now = time.monotonic()
        if now >= self.due:
            self.due = now + self.seconds
            self.act()


class Watchdog:
    """The parent process: starts the cluster, watches it, feeds it, stops it."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self.pid = 0
        self.started_at = 0.0
        self.database_answers = True
        # Signs are judged only when the cluster has had the time to give them.
        self.judge_from = 0.0
        self.pause = 0.0
        beat = settings.STRATA_HEARTBEAT_SECONDS / 3
        self.rounds = [
            # The sweep first: after it a beat is often not needed, while a beat that
            # waits would keep the sweep from queueing anything.
            Periodic(SWEEP_SECONDS, sweep_runs),
            Periodic(beat, lambda: queue_if_idle("knowledge.tasks.beat")),
            Periodic(
                TUNE_SECONDS, lambda: async_task("knowledge.tasks.tune", save=False)
            ),
            Periodic(
                CLEAN_SECONDS,
                lambda: async_task("knowledge.tasks.sweep", save=False),
                delay=CLEAN_DELAY_SECONDS,
            ),
            *(Periodic(seconds, act) for seconds, act in EVERY),
        ]

    def run(self) -> None:
        """Keep the cluster going until SIGTERM or SIGINT."""
        # Waited for, not handled: nothing is interrupted half-way.
        signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
        without_pool()
        logger.info("The worker starts.")
        gc.collect()
        # What is loaded by now is never looked at again by the collector, so that the
        # processes below go on sharing its memory.
        gc.freeze()
        self.start()
        while not self.asked_to_end(TICK_SECONDS):
            self.look_after()
        logger.info("The worker stops.")
        self.stop(grace=STOP_SECONDS)
        logger.info("The worker has stopped.")

    def asked_to_end(self, seconds: float) -> bool:
        """Wait so long, or until a signal; tell whether it asks this process to end."""
        caught = signal.sigtimedwait(HEARD, seconds)
        return caught is not None and caught.si_signo in ENDED

    def look_after(self) -> None:
        """Do one round: is the cluster alive, does it work, what is there to do."""
        if self.has_ended():
            self.restart("The task cluster has ended by itself.")
            return
        try:
            signs = vital_signs()
            for act in self.rounds:
                act()
        except DatabaseError as error:
            self.without_database(error)
            return
        if not self.database_answers:
            self.database_answers = True
            self.be_patient()
            logger.info("The database answers again.")
        if time.monotonic() > self.judge_from and (trouble := signs.trouble()):
            self.restart(trouble)

    def without_database(self, error: DatabaseError) -> None:
        """Say once that the database is away; what it did not tell proves nothing."""
        connection.close()
        self.be_patient()
        if self.database_answers:
            self.database_answers = False
            logger.warning("The database does not answer, so work waits: %s", error)

    def be_patient(self) -> None:
        """Give the cluster the time of one heartbeat before it is judged."""
        self.judge_from = time.monotonic() + settings.STRATA_HEARTBEAT_SECONDS

    # --- The cluster's processes ----------------------------------------------

    def start(self) -> None:
        """Fork the cluster, with no connection open that two could then use."""
        try:
            forget_taken_tasks()
        except DatabaseError as error:
            self.without_database(error)
        connections.close_all()
        self.started_at = time.monotonic()
        self.be_patient()
        self.pid = os.fork()
        if self.pid == 0:
            run_cluster()

    def restart(self, why: str) -> None:
        """Kill whatever is left of the cluster and start a new one."""
        lasted = time.monotonic() - self.started_at
        ends_at_once = lasted < LEAST_LIFE_SECONDS
        self.pause = (
            min(self.pause * 2 + 1, MOST_PAUSE_SECONDS) if ends_at_once else 0.0
        )
        logger.error("%s It is restarted.", why)
        self.stop(grace=1.0)
        if self.pause and signal.sigtimedwait(ENDED, self.pause) is not None:
            # The main loop waits for the same signal.
            os.kill(os.getpid(), signal.SIGTERM)
        self.start()

    def has_ended(self) -> bool:
        """Tell whether the cluster's main process is gone."""
        try:
            return os.waitpid(self.pid, os.WNOHANG) != (0, 0)
        except ChildProcessError:
            return True

    def stop(self, *, grace: float) -> None:
        """Ask the cluster to end, then kill all of it; hand back what it held.

        A source that was being read is taken up again by the next worker, and the
        attempt is not held against it: it is this process that ended it.
        """
        held = self.living_holders()
        end = time.monotonic() + grace
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        while not self.has_ended() and time.monotonic() < end:
            time.sleep(0.05)
        # Whatever is left of it, the main process or those below a dead one.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        try:
            if held:
                hand_back(held)
        except DatabaseError as error:
            self.without_database(error)

    def living_holders(self) -> list[str]:
        """Return the names under which processes of this cluster hold runs, alive."""
        prefix = group_name(self.pid)
        try:
            names = list(
                held_runs()
                .filter(worker__startswith=prefix)
                .values_list("worker", flat=True)
            )
        except DatabaseError as error:
            self.without_database(error)
            return []
        return [name for name in names if is_alive(int(name.rpartition(":")[2]))]


def is_alive(pid: int) -> bool:
    """Tell whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def without_pool() -> None:
    """Drop the connection pool, whose threads no forked process would have."""
    for each in connections.all():
        each.close()
        each.close_pool()  # type: ignore[attr-defined]
        each.settings_dict["OPTIONS"].pop("pool", None)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def run_cluster() -> NoReturn:
    """Be django-q2's cluster, in a process group of its own, until it ends."""
    status = 1
    try:
        os.setpgid(0, 0)
        # Each process below it dies with the one above: none is left behind.
        os.register_at_fork(after_in_child=die_with_parent)
        die_with_parent()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
        from django_q.cluster import Cluster

        cluster = Cluster()
        cluster.start()
        cluster.sentinel.join()
        status = 0
    finally:
        os._exit(status)


# --- What the parent queues ---------------------------------------------------


def forget_taken_tasks() -> None:
    """Drop the queue rows that a cluster now gone had taken.

    They would come back hours later. What they stood for is a run that is due, and the
    sweep queues it again.
    """
    OrmQ.objects.filter(lock__gt=timezone.now()).delete()


def queue_if_idle(task: str) -> None:
    """Queue a task unless others wait already: each of them is a sign of life too."""
    if not tasks_wait():
        async_task(task, save=False)


def sweep_runs() -> None:
    """Queue the runs that should be going and are not, unless the queue holds some.

    So no more than a batch of them waits there twice; a second delivery does nothing.
    """
    if tasks_wait():
        return
    waiting = due_runs().filter(due_at__lte=Now() - timedelta(seconds=2))
    for run_id in waiting.order_by("due_at", "pk").values_list("pk", flat=True)[
        :SWEEP_BATCH
    ]:
        async_task("knowledge.tasks.ingest_source", run_id, save=False)
