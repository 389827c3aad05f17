"""How many requests a reader may make, counted once for all web processes."""

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from knowledge.models import ApiToken

if TYPE_CHECKING:
    # rest_framework.views itself imports this module, by its name in the settings.
    from rest_framework.views import APIView

PERIOD = timedelta(minutes=1)

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


class ReaderThrottle(BaseThrottle):
    """STRATA_API_RATE requests a minute for each token and each signed-in person.

    A pause earns them back one by one, so a burst of the whole minute's is fine.
    """

    seconds: float | None = None

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Return whether this request is within the limit, and count it."""
        rate = settings.STRATA_API_RATE
        if not rate:
            return True
        given: dict[str, Any] = {
            "caller": caller(request),
            "share": PERIOD / rate,
            "period": PERIOD,
        }
        with connection.cursor() as cursor:
            cursor.execute(TAKE, given)
            if cursor.fetchone() is not None:
                return True
            cursor.execute(WAIT, given)
            row = cursor.fetchone()
        self.seconds = max(1.0, math.ceil(float(row[0]))) if row else 1.0
        return False

    def wait(self) -> float | None:
        """Return after how many seconds to ask again."""
        return self.seconds


def caller(request: Request) -> str:
    """Return who is counted: the token, else the person."""
    if isinstance(request.auth, ApiToken):
        return f"token:{request.auth.pk}"
    return f"person:{request.user.pk}"
