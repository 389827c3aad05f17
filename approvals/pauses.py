"""Pauses after what could not be done now, so that it is not tried every few seconds."""

from datetime import timedelta
from typing import Final

from django.utils import timezone

from knowledge.models import WorkerBeat
from knowledge.vitals import leave_sign

PAUSE: Final = timedelta(minutes=1)


def pause(name: str) -> None:
    """Begin a pause, which every worker sees."""
    leave_sign(name)


def is_pausing(name: str) -> bool:
    """Tell whether a pause is not over yet."""
    since = timezone.now() - PAUSE
    return WorkerBeat.objects.filter(name=name, at__gte=since).exists()
