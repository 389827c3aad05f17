"""What the gate does now and then: settle, announce, ask again, send, remind.

The watchdog only looks whether something is due, and queues one round at a time; the
queue's workers do it.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.utils import timezone
from django_q.tasks import async_task

from approvals import (
    asking_again,
    likeness,
    notifying,
    pushing,
    reminding,
    settling,
)
from approvals.chains import MOST_MISSES, PAUSE
from approvals.models import SettlingMark
from approvals.pauses import is_pausing
from knowledge.models import WorkerBeat
from knowledge.vitals import leave_sign, shown, tasks_wait

logger = logging.getLogger(__name__)

# How often the watchdog looks (seconds).
SECONDS: Final = 5.0
# A round that nobody has begun after so long was lost, however full the queue is.
LOST: Final = timedelta(minutes=10)
# The signs of a round: as long as it goes on, and at its end.
BEAT: Final = "gate"
ENDED: Final = "gate ended"


class Rounds:
    """Queues a round when one is due and none waits."""

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self.queued_at: datetime | None = None

    def __call__(self) -> None:
        """Look, and queue a round if there is something to do."""
        if not self.waits() and is_due():
            self.queued_at = timezone.now()
            async_task("approvals.tasks.go_round", save=False)

    def waits(self) -> bool:
        """Tell whether the round that was queued last has yet to end.

        While it works on what is due, another one would only do the same.
        """
        if self.queued_at is None:
            return False
        signs = dict(WorkerBeat.objects.values_list("name", "at"))
        ended = signs.get(ENDED)
        if ended is not None and ended >= self.queued_at:
            return False
        last = max(self.queued_at, signs.get(BEAT, self.queued_at))
        if last == self.queued_at and tasks_wait():
            return timezone.now() - last <= LOST
        # It was taken, or has begun. Without a sign for so long, its worker was killed.
        return timezone.now() - last <= timedelta(seconds=settings.STRATA_LEASE_SECONDS)


def is_due() -> bool:
    """Tell whether a round would find something to do."""
    return (
        settling_is_due()
        or asking_again.due().exists()
        or pushing.due().exists()
        or pushing.looking_is_due()
        or likeness.is_due()
        or notifying.due().exists()
        or reminding.is_due()
    )


def settling_is_due() -> bool:
    """Tell whether a chain may have ended that is not filed yet."""
    if is_pausing(settling.PAUSED):
        return False
    mark = SettlingMark.objects.first()
    since = timezone.now() - settling.FIRST_LOOK
    if mark is not None:
        since = mark.settled_before
    waiting = settling.unsettled(since)
    times = list(waiting.values_list("at", flat=True)[:MOST_MISSES])
    return len(times) == MOST_MISSES or any(
        at < timezone.now() - PAUSE for at in times[:1]
    )


def go_round() -> None:
    """Do all that is due, in the order in which one thing leads to the next."""
    acts: tuple[Callable[[], object], ...] = (
        settling.settle,
        asking_again.follow_up,
        pushing.push_all,
        reminding.remind_in_time,
        notifying.send_due,
        likeness.learn_wordings,
    )
    with shown(BEAT):
        for act in acts:
            try:
                act()
            except Exception:
                # What fails must not keep the rest from its turn.
                logger.exception("a part of the gate's round failed")
    leave_sign(ENDED)
