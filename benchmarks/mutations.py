"""What verification finds out: `make bench-mutations`.

2,000 true drafts in five languages, all of which should be verified, and 10,000 with one
number, date, unit, code, clause, quoted word or citation changed, of which at least
0.995 should be flagged. Every draft that goes wrong is printed, and the last line is one
JSON object. `SEED=` plays another round.
"""

import json
import os
from collections import Counter
from random import Random

from benchmarks.mutants import Draft, mutants, true_drafts
from retrieval.verification import Outcome, Read, Verdict, check_draft

TRUE_DRAFTS = 2_000
MUTANTS = 10_000


def main() -> None:
    """Check both kinds of drafts and print what came of it."""
    seed = int(os.environ.get("SEED", "20261130"))
    print(f"Seed {seed}.")
    wrong = [
        (draft, verdict)
        for draft in true_drafts(Random(seed), TRUE_DRAFTS)
        if (verdict := checked(draft)).outcome is not Outcome.VERIFIED
    ]
    for draft, verdict in wrong:
        show(draft, verdict)
    made: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for draft in mutants(Random(seed + 1), MUTANTS):
        verdict = checked(draft)
        for name in (draft.change, draft.language):
            made[name] += 1
            found[name] += verdict.outcome is Outcome.FLAGGED
        if verdict.outcome is not Outcome.FLAGGED:
            show(draft, verdict)
    changes = {name: made[name] for name in sorted(made) if len(name) > 2}
    flagged = sum(found[name] for name in changes)
    print(
        json.dumps(
            {
                "true": {
                    "drafts": TRUE_DRAFTS,
                    "verified": (TRUE_DRAFTS - len(wrong)) / TRUE_DRAFTS,
                },
                "mutants": {
                    "drafts": MUTANTS,
                    "flagged": flagged / MUTANTS,
                    "missed": MUTANTS - flagged,
                    "by_change": {
                        name: round(found[name] / made[name], 4) for name in changes
                    },
                    "by_language": {
                        name: round(found[name] / made[name], 4)
                        for name in sorted(set(made) - set(changes))
                    },
                },
            }
        )
    )


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
