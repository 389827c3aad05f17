"""`manage.py tune_indexes`: make and drop the vector indexes now."""

from typing import Any

from django.core.management.base import BaseCommand

from knowledge.indexes import tune


class Command(BaseCommand):
    """Run one round of the upkeep that the worker does by itself."""

    help = (
        "Give each large knowledge base its own vector index, and drop those that are "
        "broken or not needed any more. Searches go on meanwhile."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Tune, and say what was done."""
        tuned = tune(progress=self.stdout.write)
        if tuned.is_busy:
            self.stdout.write("Another process is at it; nothing was done.")
        else:
            self.stdout.write(f"{len(tuned.made)} made, {len(tuned.dropped)} dropped.")
