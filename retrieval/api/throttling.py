"""How many requests a reader may make."""

import math
from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from knowledge.models import ApiToken
from retrieval.allowances import take

if TYPE_CHECKING:
    # rest_framework.views itself imports this module, by its name in the settings.
    from rest_framework.views import APIView


class ReaderThrottle(BaseThrottle):
    """STRATA_API_RATE requests a minute for each token and each signed-in person."""

    seconds: float | None = None

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Return whether this request is within the limit, and count it."""
        rate = settings.STRATA_API_RATE
        if not rate:
            return True
        self.seconds = math.ceil(take(caller(request), rate)) or None
        return self.seconds is None

    def wait(self) -> float | None:
        """Return after how many seconds to ask again."""
        return self.seconds


def caller(request: Request) -> str:
    """Return who is counted: the token, else the person."""
    if isinstance(request.auth, ApiToken):
        return f"token:{request.auth.pk}"
    return f"person:{request.user.pk}"
