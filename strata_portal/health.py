"""Whether the web process and the worker do their work, for machines to ask."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from knowledge.vitals import vital_signs


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
    """Answer 200 when the worker beats or visibly works, else 503, with the figures."""
    try:
        signs = vital_signs()
    except DatabaseError:
        return JsonResponse({"status": "no database"}, status=503)
    trouble = signs.trouble()
    return JsonResponse(
        {
            "status": "stuck" if trouble else "ok",
            "trouble": trouble,
            "heartbeat_age_s": signs.heartbeat_age,
            "oldest_due_age_s": signs.oldest_due_age,
            "running": signs.busy,
        },
        status=503 if trouble else 200,
    )
