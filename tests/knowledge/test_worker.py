"""The worker on a real database: it works, survives what is killed, and stops cleanly."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.checks import ERROR
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ
from django_q.tasks import async_task
from pytest_django.fixtures import Settings

from knowledge.actions import Upload, upload_source
from knowledge.models import IngestRun, Source, WorkerBeat
from knowledge.models.ingest import RunState
from knowledge.models.source import SourceState
from knowledge.runs import claim
from knowledge.vitals import CLUSTER
from knowledge.worker import SWEEP_BATCH, forget_taken_tasks, queue_if_idle, sweep_runs
from strata_portal.checks import check_queue
from tests.factories import LayerFactory
from tests.model_proxy import ModelProxy
from tests.worker_process import (
    ROOT,
    Worker,
    environment,
    is_running,
    kill,
    until,
)

TEXT = "The reading room opens at eight. It closes at ten.\n"


def uploaded(text: str = TEXT, name: str = "room.md") -> Source:
    """Return a source that waits in the queue."""
    return upload_source(
        Upload(io.BytesIO(text.encode()), name), layer=LayerFactory(), actor=None
    )


def state_of(source: Source) -> str:
    """Return how far a source is."""
    return Source.objects.values_list("state", flat=True).get(pk=source.pk)


def is_ready(source: Source) -> bool:
    """Tell whether a source is ready."""
    return state_of(source) == SourceState.READY


def beats() -> int:
    """Return a number that rises with each sign of life."""
    beat = WorkerBeat.objects.filter(name=CLUSTER).first()
    return int(beat.at.timestamp() * 1000) if beat is not None else 0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a worker writes."""
    return tmp_path / "worker.log"


@pytest.fixture
def worker(transactional_db: None, log: Path) -> Iterator[Worker]:
    """A worker for which nothing embeds."""
    with Worker(log, PORTAL_EMBEDS="false") as worker:
        yield worker


@pytest.mark.req("REL-Q1", "D20")
def test_whatever_is_killed_the_work_goes_on(worker: Worker) -> None:
    victims = [
        ("a worker", lambda: worker.pool()[0]),
        ("another", lambda: worker.pool()[0]),
        ("one more", lambda: worker.pool()[0]),
        ("the pusher", lambda: worker.pool()[-1]),
        ("the sentinel", worker.sentinel),
        ("the main process", worker.main),
    ]
    for number, (name, victim) in enumerate(victims):
        until(lambda: len(worker.pool()) == 4, f"a whole pool before killing {name}")
        before = beats()
        until(lambda before=before: beats() > before, "a sign of life")
        kill(victim())
        source = uploaded(f"Rule {number}. {TEXT}")
        until(lambda source=source: is_ready(source), f"work after killing {name}")
    assert worker.process.poll() is None
    assert "It is restarted." in worker.said()


@pytest.mark.req("REL-Q3", "REL-Q1", "S2-ING-06")
@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_in_mid_ingest_loses_and_doubles_nothing(
    log: Path, settings: Settings, model_server_url: str
) -> None:
    with ModelProxy(model_server_url) as proxy:
        settings.STRATA_MODEL_URL = proxy.url
        proxy.open_gate.clear()
        source = uploaded()
        with Worker(log) as worker:
            until(lambda: proxy.waiting == 1, "the request for vectors")
            run = source.runs.get()
            assert run.state == RunState.RUNNING
            holder = int(run.worker.rpartition(":")[2])
            assert holder in worker.pool()
            kill(holder)
            proxy.open_gate.set()
            until(lambda: is_ready(source), "the second attempt")
    run.refresh_from_db()
    source.refresh_from_db()
    assert (run.state, run.attempts) == (RunState.DONE, 2)
    assert source.passages.count() == source.passage_count == 1
    assert source.documents.count() == 1


@pytest.mark.django_db(transaction=True)
def test_it_stops_in_order_and_hands_back_what_it_held(
    log: Path, settings: Settings, model_server_url: str
) -> None:
    with ModelProxy(model_server_url) as proxy:
        settings.STRATA_MODEL_URL = proxy.url
        proxy.open_gate.clear()
        source = uploaded()
        with Worker(log) as worker:
            until(lambda: proxy.waiting == 1, "the request for vectors")
            family = worker.family()
            worker.process.send_signal(signal.SIGINT)
            assert worker.process.wait(30) == 0
            assert not any(map(is_running, family))
        run = source.runs.get()
        # It was stopped, the file did nothing wrong.
        assert (run.state, run.attempts) == (RunState.QUEUED, 0)
        assert run.lease_until is None
        proxy.open_gate.set()
        with Worker(log):
            until(lambda: is_ready(source), "the next worker")
    assert "The worker has stopped." in worker.said()


def test_its_processes_die_with_it(worker: Worker) -> None:
    family = worker.family()
    assert len(family) == 7
    kill(worker.process.pid)
    worker.process.wait()
    until(lambda: not any(map(is_running, family)), "the end of all processes")


@pytest.mark.req("REL-Q10", "REL-Q3")
def test_a_run_that_the_queue_lost_is_swept_up(worker: Worker) -> None:
    source = uploaded()
    OrmQ.objects.all().delete()
    until(lambda: is_ready(source), "the sweep")
    assert source.runs.get().attempts <= 1


@pytest.mark.req("REL-Q12", "D20")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"timeout": 13 * 3600}, "three times its timeout"),
        ({"timeout": None}, "no timeout"),
        ({"queue_limit": 9}, "more tasks than it has workers"),
        ({"orm": None, "redis": {}}, "default database"),
        ({"sync": True}, "default database"),
    ],
)
def test_a_queue_that_runs_a_task_twice_or_nowhere_is_refused(
    settings: Settings, change: dict[str, object], sentence: str
) -> None:
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **change}
    (found,) = check_queue()
    assert found.level >= ERROR
    assert sentence in found.msg


@pytest.mark.req("REL-Q12")
@pytest.mark.django_db
def test_the_worker_does_not_start_with_such_a_queue(tmp_path: Path) -> None:
    (tmp_path / "wrong_settings.py").write_text(
        "from tests.settings import *\nQ_CLUSTER['retry'] = Q_CLUSTER['timeout']\n"
    )
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "manage.py", "worker"],
        cwd=ROOT,
        env=environment(
            DJANGO_SETTINGS_MODULE="wrong_settings",
            PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]),
        ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode != 0
    assert "three times its timeout" in found.stderr


# --- What the parent puts into the queue ----------------------------------------


@pytest.mark.req("D20")
def test_a_sweep_queues_due_runs_once_and_in_order(db: None) -> None:
    sources = [uploaded(f"Rule {number}. {TEXT}") for number in range(3)]
    OrmQ.objects.all().delete()
    sweep_runs()
    assert not OrmQ.objects.exists()  # they came in this moment
    for hours, source in enumerate(sources):
        source.runs.update(due_at=timezone.now() - timedelta(hours=hours + 1))
    held = sources[0].runs.get()
    assert claim(held.pk) is not None
    for _ in range(3):
        sweep_runs()
    assert [row.task["args"] for row in OrmQ.objects.order_by("pk")] == [
        (sources[2].runs.get().pk,),
        (sources[1].runs.get().pk,),
    ]


def test_a_sweep_queues_no_more_than_a_batch(db: None) -> None:
    source = uploaded()
    OrmQ.objects.all().delete()
    due = timezone.now() - timedelta(minutes=1)
    source.runs.update(due_at=due)
    IngestRun.objects.bulk_create(
        IngestRun(source=source, generation=100 + number, due_at=due)
        for number in range(SWEEP_BATCH + 10)
    )
    sweep_runs()
    assert OrmQ.objects.count() == SWEEP_BATCH


def test_no_beat_is_queued_while_a_task_waits(db: None) -> None:
    queue_if_idle("knowledge.tasks.beat")
    queue_if_idle("knowledge.tasks.beat")
    assert OrmQ.objects.count() == 1


def test_what_a_cluster_that_is_gone_had_taken_is_forgotten(db: None) -> None:
    async_task("knowledge.tasks.beat")
    async_task("knowledge.tasks.beat")
    taken = OrmQ.objects.first()
    OrmQ.objects.filter(pk=taken.pk).update(lock=timezone.now() + timedelta(hours=13))
    time.sleep(0.01)
    forget_taken_tasks()
    assert OrmQ.objects.count() == 1
    assert not OrmQ.objects.filter(pk=taken.pk).exists()
    connection.check_constraints()
