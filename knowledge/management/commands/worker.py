"""`manage.py worker`: do what is queued, until SIGTERM or Ctrl-C."""

from typing import Any

from django.core.management.base import BaseCommand

from knowledge.worker import Watchdog


class Command(BaseCommand):
    """Runs the worker."""

    help = "Index what is uploaded; runs until it is stopped."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Run until SIGTERM or SIGINT."""
        Watchdog().run()
