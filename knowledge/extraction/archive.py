"""Opens a zip container only after its directory has been checked against limits."""

from __future__ import annotations

import zipfile
from pathlib import Path

from knowledge.extraction.blocks import ExtractionError
from knowledge.extraction.limits import Limits


def open_archive(path: Path, limits: Limits) -> zipfile.ZipFile:
    """Return an open archive whose members are few and small enough.

    Python reads no more of a member than its declared size, so the declared sizes
    bound the memory. Raises ExtractionError for a broken or oversized archive.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        message = (
            "The file is damaged or cut off and cannot be opened. "
            "Please upload it again, or save it anew from its program."
        )
        raise ExtractionError("corrupt", message) from error
    members = archive.infolist()
    if any(member.flag_bits & 0x1 for member in members):
        message = (
            "The file is protected by a password. "
            "Please remove the password and upload it again."
        )
        raise ExtractionError("encrypted", message)
    unpacked = sum(member.file_size for member in members)
    packed = max(1, path.stat().st_size)
    swollen = (
        unpacked > limits.zip_ratio_from_bytes and unpacked > limits.zip_ratio * packed
    )
    many = len(members) > limits.zip_members
    if many or unpacked > limits.unpacked_bytes or swollen:
        message = (
            "The file unpacks to far more than a document of its size should hold, "
            "so it was not opened. Please save it anew, or as PDF."
        )
        raise ExtractionError("too_large", message)
    return archive


def read_member(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """Return a member's bytes, or None if it is not there or cannot be read."""
    try:
        return archive.read(name.lstrip("/"))
    except (KeyError, zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None
    except (EOFError, RuntimeError):
        return None
