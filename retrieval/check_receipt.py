"""`python -m retrieval.check_receipt RECEIPT KEYS`: check a receipt without the portal.

RECEIPT is a receipt's file as the portal exports it, KEYS the file of public keys of
the installation that issued it, which must have come another way than with the receipt.
Ends with status 0 where the receipt is intact, 1 where it was changed, and 2 where
nothing can be said, since the key is unknown or a file cannot be read.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from retrieval.proof import Check, Outcome, ProofError, check_file, read_keys
from retrieval.receipt_content import as_text, content_of

STATUS: Final = {Outcome.INTACT: 0, Outcome.CHANGED: 1, Outcome.UNKNOWN_KEY: 2}
VERDICTS: Final = {
    Outcome.INTACT: "Intact: this is what was issued, and nothing was changed since.",
    Outcome.CHANGED: "Changed: this is not what was issued.",
    Outcome.UNKNOWN_KEY: "Unknown: it is signed with a key that is not in the file.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the file, print what came of it, and return the status."""
    parser = ArgumentParser(prog="check_receipt", description=__doc__)
    parser.add_argument("receipt", type=Path, help="the receipt's file")
    parser.add_argument("keys", type=Path, help="the file of public keys")
    given = parser.parse_args(arguments)
    try:
        keys = read_keys(given.keys.read_bytes())
        data = given.receipt.read_bytes()
    except (OSError, ProofError) as error:
        sys.stderr.write(f"{error}\n")
        return STATUS[Outcome.UNKNOWN_KEY]
    found = check_file(data, keys)
    sys.stdout.write(report(found))
    return STATUS[found.outcome]


def report(found: Check) -> str:
    """Return what a check found, and what the receipt says where it is intact."""
    lines = [VERDICTS[found.outcome]]
    lines += [f"  {each.part}: {each.sentence}" for each in found.problems]
    text = "\n".join(lines) + "\n"
    if found.file is None or not found.is_intact:
        return text
    return f"{text}\n{as_text(content_of(found.file))}"


if __name__ == "__main__":
    sys.exit(main())
