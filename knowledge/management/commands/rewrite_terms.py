"""`manage.py rewrite_terms`: bring what the keyword branch looks up to this version."""

from typing import Any

from django.core.management.base import BaseCommand

from knowledge.reindexing import rewrite_terms


class Command(BaseCommand):
    """Run one round of the upkeep that the worker does by itself."""

    help = (
        "Write the keyword branch's terms of passages that an older version indexed, "
        "from their stored text. Nothing is embedded again; searches go on meanwhile."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Rewrite, and say how many passages."""
        count = rewrite_terms(progress=self.stdout.write)
        self.stdout.write(f"Passages with new terms: {count}.")
