"""Whether the web process and the worker do their work, for machines to ask."""

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import DurationField, ExpressionWrapper, F, Q
from django.db.models.functions import Now
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from knowledge.models import IngestRun, WorkerBeat
from knowledge.models.ingest import OPEN_STATES, RunState
from knowledge.tasks import CLUSTER

# Work that waits for the model server or for its turn is not the worker's fault; a run
# that nobody took for so long is (seconds).
OVERDUE_SECONDS = 120


@require_safe
@never_cache
def web(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the web process reaches its database, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "no database"}, status=503)
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def worker(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the worker beats or visibly works, else 503, with the figures.

    All workers may be busy with large sources for longer than a heartbeat; a run whose
    lease was just extended is as good a sign of life.
    """
    now = ExpressionWrapper(Now() - F("at"), output_field=DurationField())
    beat = WorkerBeat.objects.filter(name=CLUSTER).annotate(age=now).first()
    busy = IngestRun.objects.filter(
        state=RunState.RUNNING, lease_until__gt=Now()
    ).count()
    due = (
        IngestRun.objects.filter(
            Q(lease_until__isnull=True) | Q(lease_until__lt=Now()),
            state__in=OPEN_STATES,
            due_at__lte=Now(),
        )
        .annotate(
            age=ExpressionWrapper(Now() - F("due_at"), output_field=DurationField())
        )
        .order_by("due_at")
        .first()
    )
    heartbeat = beat.age.total_seconds() if beat is not None else None
    oldest = due.age.total_seconds() if due is not None else 0.0
    beating = heartbeat is not None and heartbeat <= settings.STRATA_HEARTBEAT_SECONDS
    healthy = (beating or busy > 0) and (busy > 0 or oldest <= OVERDUE_SECONDS)
    return JsonResponse(
        {
            "status": "ok" if healthy else "stuck",
            "heartbeat_age_s": heartbeat,
            "oldest_due_age_s": oldest,
            "running": busy,
        },
        status=200 if healthy else 503,
    )
