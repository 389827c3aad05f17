"""The child process: limits first, then one extraction, then its answer."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from knowledge.extraction.blocks import ExtractionError
from knowledge.extraction.child import write_answer, write_refusal
from knowledge.extraction.extracting import extract
from knowledge.extraction.limits import MEBIBYTE, Limits

_PR_SET_PDEATHSIG = 1
_LARGEST_ANSWER = 1024 * MEBIBYTE


def main(arguments: Sequence[str]) -> int:
    """Read the request file, extract, and write the answer file."""
    request, answer = (Path(argument) for argument in arguments)
    asked = json.loads(request.read_text(encoding="utf-8"))
    limits = Limits(**asked["limits"])
    _confine(limits, int(asked["parent"]))
    try:
        write_answer(answer, extract(Path(asked["path"]), asked["name"], limits))
    except ExtractionError as error:
        write_refusal(answer, error)
    except MemoryError:
        write_refusal(answer, _too_much_memory(limits))
    except Exception:  # noqa: BLE001 a parser may raise anything on a broken file
        write_refusal(answer, _unreadable())
    return 0


def _confine(limits: Limits, parent: int) -> None:
    """Set the limits of this process and tie its life to its parent's."""
    if sys.platform == "linux":
        library: Any = ctypes.CDLL(None, use_errno=True)
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    _limit(resource.RLIMIT_AS, limits.memory_bytes)
    _limit(resource.RLIMIT_CPU, limits.cpu_seconds)
    _limit(resource.RLIMIT_FSIZE, _LARGEST_ANSWER)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, hard if kind == resource.RLIMIT_CPU else value))


def _too_much_memory(limits: Limits) -> ExtractionError:
    message = (
        f"Reading the document needs more than {limits.memory_bytes // MEBIBYTE} MiB of "
        "memory, so it was stopped. Please split the document into smaller ones."
    )
    return ExtractionError("too_large", message)


def _unreadable() -> ExtractionError:
    message = (
        "The document is damaged or unreadable. "
        "Please save it anew from its program and upload it again."
    )
    return ExtractionError("corrupt", message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
