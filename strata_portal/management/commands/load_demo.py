"""Load the demo corpus and its people."""

import secrets
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from knowledge.tokens import create_token
from strata_portal.demo.loader import DemoError, ingest_demo, load_demo


class Command(BaseCommand):
    """Load what is missing of the demo; a second call changes nothing."""

    help = (
        "Load the demo: five knowledge bases of an invented institution, and five "
        "readers who see different parts of them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--password-file",
            type=Path,
            help="File whose first line becomes the password of the demo people, the "
            "first time; without it one is drawn and printed.",
        )
        parser.add_argument(
            "--now",
            action="store_true",
            help="Ingest in this process instead of leaving it to the worker.",
        )
        parser.add_argument(
            "--token",
            action="store_true",
            help="Create an API token for the demo's administrator and print it.",
        )

    def handle(
        self,
        *_args: Any,
        password_file: Path | None,
        now: bool,
        token: bool,
        **_options: Any,
    ) -> None:
        """Load, then ingest and print what was asked for."""
        password = self.password(password_file)
        try:
            loaded = load_demo(password=password, progress=self.stdout.write)
        except DemoError as error:
            raise CommandError(str(error)) from error
        if now and not ingest_demo(progress=self.stdout.write):
            self.stdout.write(
                "Some files are not indexed yet; the worker goes on with them."
            )
        if loaded.people and password_file is None:
            names = ", ".join(loaded.people)
            self.stdout.write(f"The password of {names} is {password}")
        if token:
            _row, text = create_token(
                owner=loaded.administrator, name="demo", actor=loaded.administrator
            )
            name = loaded.administrator.get_username()
            self.stdout.write(f"API token of {name}: {text}")

    def password(self, file: Path | None) -> str:
        """Return the password in a file, or a new one."""
        if file is None:
            return secrets.token_urlsafe(12)
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"The password file cannot be read: {error}") from error
        if not lines or len(lines[0]) < 8:
            raise CommandError(
                f"The first line of {file} must hold a password of at least 8 characters."
            )
        return lines[0]
