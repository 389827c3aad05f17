"""How often somebody may do a thing, counted once for all web processes."""

from datetime import timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from retrieval.models import RequestAllowance

PERIOD: Final = timedelta(minutes=1)

# One row for each caller says from when on its next request is on time; each request
# moves that by its share of the period, and one that would move it further than a
# period ahead is refused. A single statement, so that processes cannot overtake each
# other between a read and a write.
TAKE = """
INSERT INTO retrieval_requestallowance AS allowance (caller, ready_at)
VALUES (%(caller)s, clock_timestamp() + %(share)s)
ON CONFLICT (caller) DO UPDATE
SET ready_at = GREATEST(allowance.ready_at, clock_timestamp()) + %(share)s
WHERE GREATEST(allowance.ready_at, clock_timestamp()) + %(share)s
      <= clock_timestamp() + %(period)s
RETURNING 1
"""
WAIT = """
SELECT EXTRACT(EPOCH FROM ready_at + %(share)s - %(period)s - clock_timestamp())
FROM retrieval_requestallowance WHERE caller = %(caller)s
"""


def take(caller: str, rate: int) -> float:
    """Count one of `rate` requests a minute.

    Returns 0 where it is within the rate, else after how many seconds one will be. A
    pause earns requests back one by one, so a burst of the whole minute's is fine.
    """
    given: dict[str, Any] = {
        "caller": caller,
        "share": PERIOD / rate,
        "period": PERIOD,
    }
    with connection.cursor() as cursor:
        cursor.execute(TAKE, given)
        if cursor.fetchone() is not None:
            return 0.0
        cursor.execute(WAIT, given)
        row = cursor.fetchone()
    return max(1.0, float(row[0])) if row else 1.0


def forget(caller: str) -> None:
    """Give a caller all of its requests back, and drop the rows that say nothing."""
    RequestAllowance.objects.filter(Q(caller=caller) | Q(ready_at__lt=Now())).delete()
