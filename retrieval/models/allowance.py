"""From when on a caller may ask again."""

from django.db import models


class RequestAllowance(models.Model):
    """From when on a caller's next request of the API is on time; see throttling.

    `caller` is "token:<id>", "person:<id>" or "sign-in:<digest>". The table is not written ahead to the
    database's log: after a crash everybody starts with a full allowance.
    """

    caller = models.CharField(primary_key=True, max_length=40)
    ready_at = models.DateTimeField()

    def __str__(self) -> str:
        """Return whose it is."""
        return self.caller
