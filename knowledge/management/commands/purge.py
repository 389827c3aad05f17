"""`manage.py purge`: erase a text for good, wherever it is kept."""

import re
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from knowledge.models import Source
from knowledge.purging import purge_revision, purge_source

REVISION = re.compile(r"d([1-9][0-9]{0,15})(:\d+-\d+)?")


class Command(BaseCommand):
    """Erase a source, or one revision, with all that was kept of its words."""

    help = "Erase a text for good: a source by its id, or a revision such as d42."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what to erase, and the word that says it is meant."""
        parser.add_argument(
            "what", help="The id in a source's portal address, or a revision (d42)."
        )
        parser.add_argument(
            "--yes", action="store_true", help="Erase without asking. There is no undo."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Erase it, or say what is not clear."""
        what = str(options["what"])
        revision = REVISION.fullmatch(what)
        source = None if revision else find_source(what)
        if revision is None and source is None:
            raise CommandError(f"There is no source {what}, and it is no revision.")
        if not options["yes"]:
            answer = input(f"Erase {source or what} and all its words for good? [no] ")
            if answer.strip().lower() not in {"y", "yes"}:
                raise CommandError("Nothing was erased.")
        if source is not None:
            purge_source(source, actor=None)
            self.stdout.write("Erased.")
        elif revision is not None and purge_revision(int(revision[1]), actor=None):
            self.stdout.write("Erased.")
        else:
            self.stdout.write(
                "This revision was gone already. Words cited from it are erased."
            )


def find_source(what: str) -> Source | None:
    """Return a source by the id that the portal shows."""
    try:
        return Source.objects.filter(public_id=UUID(what)).first()
    except ValueError:
        return None
