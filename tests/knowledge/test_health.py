"""What machines are told about web and worker."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from knowledge.models import IngestRun, WorkerBeat
from knowledge.models.ingest import RunState
from knowledge.tasks import beat
from knowledge.vitals import (
    CLUSTER,
    OVERDUE_SECONDS,
    UNSETTLED_TASKS,
    UPKEEP,
    VitalSigns,
)
from tests.factories import SourceFactory

WELL = VitalSigns(
    heartbeat_age=1.0, oldest_due_age=0.0, last_start_age=None, busy=0, unsettled=0
)


def run_of(state: str, **fields: object) -> IngestRun:
    """Return a run of a source of its own."""
    fields.setdefault("due_at", timezone.now() - timedelta(seconds=1))
    return IngestRun.objects.create(
        source=SourceFactory(), generation=1, state=state, **fields
    )


def leave_beat(age: float, name: str = CLUSTER) -> None:
    """Leave a sign of life in the past (seconds)."""
    at = timezone.now() - timedelta(seconds=age)
    WorkerBeat.objects.update_or_create(name=name, defaults={"at": at})


def test_the_web_process_answers_with_its_database(client: Client, db: None) -> None:
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json() == {"status": "ok"}


@pytest.mark.req("REL-Q1", "S2-ING-16")
def test_a_worker_that_beats_is_well(client: Client, db: None) -> None:
    beat()
    response = client.get("/healthz/worker")
    assert response.status_code == 200
    answer = response.json()
    assert answer["status"] == "ok"
    assert 0 <= answer["heartbeat_age_s"] < 60
    assert answer["oldest_due_age_s"] == 0
    assert "no-store" in response["Cache-Control"]


@pytest.mark.req("REL-Q1")
def test_a_silent_worker_is_stuck(client: Client, db: None, settings: Settings) -> None:
    assert client.get("/healthz/worker").status_code == 503
    leave_beat(settings.STRATA_HEARTBEAT_SECONDS + 1)
    response = client.get("/healthz/worker")
    assert response.status_code == 503
    assert response.json()["status"] == "stuck"
    assert "sign of life" in response.json()["trouble"]
    # Red within half a minute of the last sign.
    assert settings.STRATA_HEARTBEAT_SECONDS <= 30


@pytest.mark.req("REL-Q1")
def test_the_oldest_due_row_is_told(client: Client, db: None) -> None:
    beat()
    run_of(RunState.QUEUED, due_at=timezone.now() - timedelta(seconds=40))
    run_of(RunState.DONE, due_at=timezone.now() - timedelta(hours=2))
    run_of(RunState.WAITING, due_at=timezone.now() + timedelta(seconds=50))
    answer = client.get("/healthz/worker").json()
    assert answer["oldest_due_age_s"] >= 40
    assert answer["oldest_due_age_s"] < 3600
    assert answer["status"] == "ok"


def test_workers_that_are_all_busy_need_not_beat(
    client: Client, db: None, settings: Settings
) -> None:
    leave_beat(3600)
    lease = timezone.now() + timedelta(minutes=1)
    workers = settings.Q_CLUSTER["workers"]
    for _ in range(workers - 1):
        run_of(RunState.RUNNING, lease_until=lease)
    assert client.get("/healthz/worker").status_code == 503
    leave_beat(1, UPKEEP)
    response = client.get("/healthz/worker")
    assert response.status_code == 200
    assert response.json()["running"] == workers


@pytest.mark.parametrize(
    ("signs", "in_trouble"),
    [
        (WELL, False),
        (VitalSigns(None, 0.0, None, 0, 0), True),
        (VitalSigns(1.0, OVERDUE_SECONDS + 1, None, 0, 0), True),
        (VitalSigns(1.0, OVERDUE_SECONDS + 1, OVERDUE_SECONDS + 1.0, 1, 0), True),
        # Many wait, but one after the other is taken.
        (VitalSigns(1.0, 7200.0, 4.0, 0, 0), False),
        (VitalSigns(1.0, 7200.0, None, 2, 0), False),
        (VitalSigns(1.0, 0.0, None, 0, UNSETTLED_TASKS + 1), True),
    ],
)
def test_what_counts_as_trouble(*, signs: VitalSigns, in_trouble: bool) -> None:
    trouble = signs.trouble()
    assert bool(trouble) == in_trouble
    assert not trouble or trouble.endswith(".")
