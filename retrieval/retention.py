"""What becomes of the log of searches after its time: counts by day (S2-LOG-02)."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.models import Min
from django.utils import timezone

from retrieval.models import SearchLog

logger = logging.getLogger(__name__)

# A row is counted by the statement that deletes it: never twice, never not at all.
COUNT_AND_DELETE: Final = """
WITH gone AS (
    DELETE FROM retrieval_searchlog WHERE at >= %(day)s AND at < %(next_day)s
    RETURNING layer_id, door, status
)
INSERT INTO retrieval_searchday (day, layer_id, door, status, searches)
SELECT %(day)s::timestamptz AT TIME ZONE 'UTC', layer_id, door, status, count(*)
FROM gone GROUP BY layer_id, door, status
"""


def age_log() -> None:
    """Turn the days of the log that are past their time into counts, oldest first."""
    today = (
        timezone.now()
        .astimezone(UTC)
        .replace(hour=0, minute=0, second=0, microsecond=0)
    )
    limit = today - timedelta(days=settings.STRATA_KEEP_LOG_DAYS)
    days = 0
    while (oldest := oldest_before(limit)) is not None:
        day = oldest.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        with connection.cursor() as cursor:
            cursor.execute(
                COUNT_AND_DELETE, {"day": day, "next_day": day + timedelta(days=1)}
            )
        days += 1
    logger.info("Turned %s days of the log of searches into counts.", days)


def oldest_before(limit: datetime) -> datetime | None:
    """Return when the oldest search before a moment was made."""
    found: datetime | None = SearchLog.objects.filter(at__lt=limit).aggregate(
        oldest=Min("at")
    )["oldest"]
    return found
