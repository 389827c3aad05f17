"""`manage.py import_v0`: bring in what an older version left (D26)."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.actions import ActionError
from knowledge.inference.gateway import ModelMismatchError, ModelUnavailableError
from knowledge.models import KnowledgeBase, User
from retrieval.legacy import bring_in
from retrieval.signing import KeyFileError


class Command(BaseCommand):
    """Bring an export of version v0 into a knowledge base."""

    help = (
        "Brings passages, receipts, learned pairs and interactions of an older version "
        "into a knowledge base. docs/legacy.md describes the file. It may be run again: "
        "what is there already is left alone."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file and where it goes."""
        parser.add_argument("file", type=Path, help="The export, JSON lines.")
        parser.add_argument(
            "--knowledge-base", required=True, metavar="SHORT-NAME", dest="slug"
        )
        parser.add_argument("--by", metavar="USER-NAME", help="who is said to do it")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Bring it in, and say what became of it."""
        base = KnowledgeBase.objects.filter(slug=options["slug"]).first()
        if base is None:
            raise CommandError(f"There is no knowledge base {options['slug']}.")
        actor = None
        if options["by"] is not None:
            actor = User.objects.filter(username=options["by"]).first()
            if actor is None:
                raise CommandError(f"There is no user {options['by']}.")
        try:
            outcome = bring_in(options["file"], base, actor=actor)
        except (
            ActionError,
            KeyFileError,
            ModelMismatchError,
            ModelUnavailableError,
        ) as error:
            raise CommandError(str(error)) from error
        for kind in ("passage", "receipt", "pair", "interaction"):
            self.stdout.write(
                f"{kind}s: {outcome.brought[kind]} brought in, "
                f"{outcome.known[kind]} there already"
            )
        for sentence in outcome.refused:
            self.stdout.write(f"Not taken: {sentence}")
