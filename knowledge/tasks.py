"""What the queue carries: ids. Every task may run twice."""

from django.db.models.functions import Now

from knowledge.ingest import run_ingest, sweep_revisions
from knowledge.models import WorkerBeat

CLUSTER = "cluster"


def ingest_source(run_id: int) -> str:
    """Carry one ingest run as far as it goes."""
    return run_ingest(run_id)


def beat() -> None:
    """Leave a sign of life: only a cluster that really works can run this."""
    WorkerBeat.objects.update_or_create(name=CLUSTER, defaults={"at": Now()})


def sweep() -> int:
    """Delete replaced revisions past their keeping time."""
    return sweep_revisions()
