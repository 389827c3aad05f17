"""`manage.py receipt ID`: open, check and export a receipt, or check all of them."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from retrieval.api.receipts import ReceiptSerializer
from retrieval.check_receipt import VERDICTS
from retrieval.models import Receipt
from retrieval.opening import Opened, check_chain, export, open_receipt
from retrieval.proof import Outcome, ProofError
from retrieval.receipt_content import as_text
from retrieval.signing import KeyFileError


class Command(BaseCommand):
    """Receipts for the operator, who needs no grant."""

    help = (
        "Print a receipt, with each quote between >>> and <<< in its context; check it, "
        "or write the file that is checked without the database."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the id, and what to do with it."""
        parser.add_argument("receipt_id", nargs="?", metavar="ID", help="as in rcpt_…")
        parser.add_argument(
            "--json", action="store_true", help="print what the API answers"
        )
        parser.add_argument(
            "--verify",
            action="store_true",
            help="say only whether it is as it was issued; status 1 if it is not",
        )
        parser.add_argument(
            "--export",
            type=Path,
            metavar="FILE",
            help="write it to a file for python -m retrieval.check_receipt",
        )
        parser.add_argument(
            "--verify-all",
            action="store_true",
            help="check every receipt, and that none is missing between or at the end",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it; raises CommandError for what is not there and for what does not hold."""
        if options["verify_all"]:
            self.verify_all()
            return
        name = options["receipt_id"]
        if not name:
            raise CommandError("Name a receipt, as in manage.py receipt rcpt_…")
        receipt = Receipt.objects.filter(public_id=name).first()
        if receipt is None:
            raise CommandError(f"There is no receipt {name}.")
        if options["export"]:
            self.export(receipt, options["export"])
            return
        opened = open_receipt(receipt)
        if options["json"]:
            content = ReceiptSerializer(opened.content).data
            self.stdout.write(json.dumps(content, ensure_ascii=False, indent=2))
        else:
            self.show(opened, whole=not options["verify"])

    def show(self, opened: Opened, *, whole: bool) -> None:
        """Print what the check found and, where it holds, what the receipt says."""
        found = opened.check
        if not found.is_intact:
            lines = [f"{each.part}: {each.sentence}" for each in found.problems]
            raise CommandError("\n  ".join([VERDICTS[found.outcome], *lines]))
        self.stdout.write(VERDICTS[Outcome.INTACT])
        if found.removed:
            when = max(found.removed.values())
            self.stdout.write(f"It holds, with words removed on {when}.")
        if not opened.content["is_current"]:
            self.stdout.write("The documents have changed since it was issued.")
        if whole:
            self.stdout.write("")
            self.stdout.write(as_text(opened.content), ending="")

    def export(self, receipt: Receipt, path: Path) -> None:
        """Write a receipt's file; a file that is there already is left alone."""
        try:
            with path.open("xb") as file:
                file.write(export(receipt))
        except (OSError, ProofError) as error:
            raise CommandError(f"{path} could not be written: {error}") from error
        self.stdout.write(
            f"{path} is written. Check it with python -m retrieval.check_receipt "
            f"{path} and the file of public keys (manage.py receipt_key --export)."
        )

    def verify_all(self) -> None:
        """Check every receipt and the chain."""
        try:
            wrong = list(check_chain())
        except KeyFileError as error:
            raise CommandError(str(error)) from error
        if wrong:
            lines = [f"{name} {each.part}: {each.sentence}" for name, each in wrong]
            raise CommandError("\n".join(line.strip() for line in lines))
        count = Receipt.objects.count()
        self.stdout.write(
            f"All {count} receipts are as they were issued; none is missing."
        )
