"""Runs an extraction in a child process that can be killed.

The child has limits of memory and CPU time, no environment (so no database address
and no secret), a wall clock, and dies with its parent. What it hands back is JSON in
a file: nothing that it writes is unpickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from knowledge.extraction.blocks import (
    Block,
    BlockKind,
    Extracted,
    ExtractionError,
    Page,
)
from knowledge.extraction.limits import Limits

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


def extract_in_child(path: Path, name: str, limits: Limits) -> Extracted:
    """Return the text of a file, extracted in a process of its own.

    Raises ExtractionError: the parser's own, or `timeout` and `crashed` with a
    sentence when the child was stopped or died.
    """
    with tempfile.TemporaryDirectory(prefix="extraction-") as folder:
        request, answer = Path(folder, "request.json"), Path(folder, "answer.json")
        request.write_text(
            json.dumps(
                {
                    "path": str(path.resolve()),
                    "name": name,
                    "limits": asdict(limits),
                    "parent": os.getpid(),
                }
            ),
            encoding="utf-8",
        )
        command = [
            sys.executable,
            "-I",
            "-c",
            _START,
            str(_PACKAGE_ROOT),
            str(request),
            str(answer),
        ]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={"LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=limits.wall_seconds)
        except subprocess.TimeoutExpired:
            raise _timeout(limits.wall_seconds) from None
        finally:
            _kill_group(process)
        return _read_answer(answer, status, limits)


# Isolated mode (-I) reads no environment and no user site; the package's folder has
# to be named.
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from knowledge.extraction.__main__ import main; sys.exit(main(sys.argv[1:]))"
)


def write_answer(answer: Path, extracted: Extracted) -> None:
    """Write what was extracted for the parent to read."""
    _write(answer, {"extracted": asdict(extracted)})


def write_refusal(answer: Path, error: ExtractionError) -> None:
    """Write why nothing was extracted for the parent to read."""
    _write(answer, {"error": {"code": error.code, "message": error.message}})


def _write(answer: Path, content: dict[str, Any]) -> None:
    # In one step, so that a child that is killed leaves a whole answer or none.
    part = answer.with_suffix(".part")
    part.write_text(json.dumps(content), encoding="utf-8")
    part.replace(answer)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read_answer(answer: Path, status: int, limits: Limits) -> Extracted:
    try:
        content = json.loads(answer.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise _death(status, limits) from None
    if "error" in content:
        error = content["error"]
        raise ExtractionError(str(error["code"]), str(error["message"]))
    return _extracted(content["extracted"])


def _extracted(values: dict[str, Any]) -> Extracted:
    return Extracted(
        text=values["text"],
        kind=values["kind"],
        title=values["title"],
        blocks=tuple(_block(one) for one in values["blocks"]),
        pages=tuple(Page(**one) for one in values["pages"]),
        front_matter=values["front_matter"],
        ocr_spans=tuple((start, end) for start, end in values["ocr_spans"]),
        properties=values["properties"],
        report=tuple(values["report"]),
    )


def _block(values: dict[str, Any]) -> Block:
    box = values["bbox"]
    return Block(
        kind=BlockKind(values["kind"]),
        start=values["start"],
        end=values["end"],
        level=values["level"],
        page=values["page"],
        bbox=None if box is None else (box[0], box[1], box[2], box[3]),
    )


def _timeout(seconds: float) -> ExtractionError:
    message = (
        f"Reading the document took more than {seconds:g} seconds, so it "
        "was stopped. Please split the document, or save it anew from its program."
    )
    return ExtractionError("timeout", message)


def _death(status: int, limits: Limits) -> ExtractionError:
    if status == -signal.SIGXCPU:
        return _timeout(limits.cpu_seconds)
    message = (
        "The document is unreadable: the program that reads it stopped unexpectedly, "
        "as it does on damaged or very large files. Please save it anew from its "
        "program, or upload it as PDF or plain text."
    )
    return ExtractionError("crashed", message)
