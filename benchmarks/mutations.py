"""What verification finds out: `make bench-mutations`.

2,000 true drafts in five languages, all of which should be verified, and 10,000 with one
number, date, unit, code, clause, quoted word or citation changed, of which at least
0.995 should be flagged. Every draft that goes wrong is printed, and the last line is one
JSON object. `SEED=` plays another round; `DOCS=` names a folder of documents to copy
sentences from as well, for a second pair of figures.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.document_mutants import changed_copies, true_copies, windows_of
from benchmarks.mutants import Draft, mutants, true_drafts
from retrieval.verification import Outcome, Read, Verdict, check_draft

TRUE_DRAFTS = 2_000
MUTANTS = 10_000


def main() -> None:
    """Check both kinds of drafts and print what came of it."""
    seed = int(os.environ.get("SEED", "20261130"))
    print(f"Seed {seed}.")
    figures = judged(
        true_drafts(Random(seed), TRUE_DRAFTS), mutants(Random(seed + 1), MUTANTS)
    )
    if folder := os.environ.get("DOCS"):
        windows = windows_of(Path(folder))
        print(f"{len(windows)} parts of the documents in {folder}.")
        figures["documents"] = judged(
            true_copies(Random(seed), windows, TRUE_DRAFTS),
            changed_copies(Random(seed + 1), windows, MUTANTS),
        )
    print(json.dumps(figures))


def judged(true: Iterable[Draft], changed: Iterable[Draft]) -> dict[str, Any]:
    """Return the figures of drafts, and print those that were judged wrongly."""
    made: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for draft in chain(true, changed):
        verdict = checked(draft)
        wanted = Outcome.FLAGGED if draft.change else Outcome.VERIFIED
        is_right = verdict.outcome is wanted
        for name in ("mutants" if draft.change else "true", draft.change):
            made[name] += 1
            right[name] += is_right
        if not is_right:
            show(draft, verdict)
    return {
        "true": {"drafts": made["true"], "verified": right["true"] / made["true"]},
        "mutants": {
            "drafts": made["mutants"],
            "flagged": right["mutants"] / made["mutants"],
            "missed": made["mutants"] - right["mutants"],
            "by_change": {
                name: round(right[name] / made[name], 4)
                for name in sorted(made)
                if name not in {"", "true", "mutants"}
            },
        },
    }


def checked(draft: Draft) -> Verdict:
    """Return what verification says of a draft."""
    reads = [
        Read(f"d{number}:0-{len(text)}", text)
        for number, text in enumerate(draft.passages, start=1)
    ]
    return check_draft(draft.text, reads)


def show(draft: Draft, verdict: Verdict) -> None:
    """Print a draft that was judged wrongly."""
    kind = f"mutant not flagged ({draft.change})" if draft.change else "true draft"
    print(f"{draft.language}: {kind}: {draft.was!r} -> {draft.now!r}")
    for flag in verdict.flags:
        print(f"    {flag.message}")
    print("    " + " / ".join([draft.text, *draft.passages]).replace("\n", "\\n"))


if __name__ == "__main__":
    main()
