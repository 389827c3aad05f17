"""How far the chain of receipts has come, kept outside the database.

A chain alone does not tell that its newest receipts are missing: whoever restores an
older backup, or cuts the newest rows off, leaves a shorter chain that holds. The file
beside the keys remembers the newest receipt that was committed.
"""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.conf import settings

NAME: Final = "receipt-head.json"


class AnchorError(Exception):
    """The file is damaged, so that it says nothing; the message names it."""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest receipt that is known of: its number and its hash."""

    number: int
    sha256: str


def path() -> Path:
    """Return where it is kept."""
    return Path(settings.VAR_DIR) / NAME


def known_head() -> Head | None:
    """Return the newest receipt that was ever committed here, None before the first.

    Raises AnchorError where the file is damaged.
    """
    try:
        data = path().read_bytes()
    except FileNotFoundError:
        return None
    return head_of(data)


def head_of(data: bytes) -> Head | None:
    """Return what the file says, None where it is new; raises AnchorError."""
    if not data:
        return None
    try:
        found = json.loads(data)
        return Head(int(found["number"]), str(found["sha256"]))
    except (ValueError, KeyError, TypeError) as error:
        raise AnchorError(f"{NAME} is damaged: it does not name a receipt.") from error


def advance(number: int, sha256: str) -> None:
    """Remember a receipt that is committed, unless a newer one is known already.

    Several processes may do so at once. Raises OSError and AnchorError.
    """
    path().parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path(), os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = head_of(file.read())
        if known is not None and known.number >= number:
            return
        file.seek(0)
        file.write(json.dumps({"number": number, "sha256": sha256}).encode() + b"\n")
        file.truncate()
