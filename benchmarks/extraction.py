"""Measure extraction on a corpus of foreign documents.

    python benchmarks/extraction.py [CORPUS]

CORPUS (argument or environment, default ../shared/corpus beside this repository)
holds documents, `manifest.jsonl` and `check.py`. Each file of a kind that we read is
extracted in the child process, as ingest does it, and the folder's own `check.py`
judges the results. The last line is one JSON object. Status 0: measured; 2: there is
no such corpus.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from knowledge.extraction import ExtractionError, Limits, extract_in_child  # noqa: E402

KINDS = ("pdf", "docx", "doc", "txt", "md", "csv", "json", "log")


def main() -> int:
    """Extract, have it judged, print a table and the totals."""
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CORPUS", "")
    corpus = Path(given) if given else ROOT.parent / "shared" / "corpus"
    manifest, check = corpus / "manifest.jsonl", corpus / "check.py"
    if not manifest.is_file() or not check.is_file():
        print(f"There is no corpus with manifest.jsonl and check.py in {corpus}.")
        return 2
    entries = [
        json.loads(line)
        for line in manifest.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    entries = [entry for entry in entries if entry["kind"] in KINDS]
    with tempfile.TemporaryDirectory() as folder:
        seconds = {
            entry["file"]: extract_one(corpus, entry["file"], Path(folder))
            for entry in entries
        }
        judged = subprocess.run(
            [
                sys.executable,
                str(check),
                str(manifest),
                folder,
                "--kind",
                ",".join(KINDS),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    lines = judged.stdout.strip().splitlines()
    verdicts = {
        line[5:].split(":", maxsplit=1)[0].strip(): line
        for line in lines
        if line.startswith(("ok ", "FAIL "))
    }
    print(f"{'file':50} {'seconds':>8}  verdict")
    for name, took in seconds.items():
        verdict = verdicts.get(name, "no verdict")
        print(f"{name[:50]:50} {took:8.2f}  {verdict.replace(name, '').strip(' :')}")
    totals = json.loads(lines[-1])
    keys = ("files", "ok", "fail", "failed", "by_kind")
    print(json.dumps({key: totals[key] for key in keys}))
    return 0


def extract_one(corpus: Path, name: str, folder: Path) -> float:
    """Write the text or the refusal of a file; return the seconds it took."""
    started = time.perf_counter()
    try:
        extracted = extract_in_child(corpus / name, name, Limits())
    except ExtractionError as error:
        (folder / f"{name}.error").write_text(error.message, encoding="utf-8")
    else:
        (folder / f"{name}.txt").write_text(extracted.text, encoding="utf-8")
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
