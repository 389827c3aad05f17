"""`manage.py receipt_key`: the keys that receipts are signed with."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from retrieval.signing import (
    KeyFileError,
    ensure_key,
    private_path,
    public_path,
    published_keys,
    rotate_key,
)


class Command(BaseCommand):
    """Keys for the operator."""

    help = "Make the key of receipts if there is none; name it, change or export it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what to do."""
        parser.add_argument(
            "--rotate",
            action="store_true",
            help="sign with a new key from now on; earlier receipts still hold",
        )
        parser.add_argument(
            "--export",
            type=Path,
            metavar="FILE",
            help="write the public keys to a file",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it."""
        try:
            name = rotate_key() if options["rotate"] else ensure_key()
            if options["export"]:
                options["export"].write_bytes(published_keys())
        except (KeyFileError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Receipts are signed with the key {name}.")
        self.stdout.write(f"Private: {private_path()}. Public: {public_path()}.")
