"""What scrubbing finds, and what it takes by mistake: `make bench-scrubbing`.

10,000 lines with IBANs in every form, of which nothing may be left to read; 10,000 with
BICs, account and card numbers, of which 0.999 must go; and ordinary lines, of which at
most 1 in 1,000 may be changed: those of the repository's own documents and demo corpus,
10,000 made ones full of dates, amounts, codes, references and words in capitals, and
with `DOCS=` those of a folder of texts. Whatever goes wrong is printed, and the last
line is one JSON object. `SEED=` plays another round, `SIZE=small` a tenth.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.bank_details import Line, lines_with_ibans, lines_with_others
from benchmarks.ordinary_lines import lines_of_folder, made_lines
from knowledge.scrubbing import scrub

ROOT = Path(__file__).parent.parent
LINES = 10_000
MOST_SHOWN = 40


def main() -> None:
    """Scrub all of it and print what came of it."""
    seed = int(os.environ.get("SEED", "20261130"))
    count = LINES // (10 if os.environ.get("SIZE") == "small" else 1)
    print(f"Seed {seed}.")
    figures: dict[str, Any] = {
        "ibans": leaks(lines_with_ibans(Random(seed), count)),
        "others": leaks(lines_with_others(Random(seed + 1), count)),
        "made": mistakes(made_lines(Random(seed + 2), count)),
        "own documents": mistakes(own_lines()),
    }
    if folder := os.environ.get("DOCS"):
        figures["documents"] = mistakes(lines_of_folder(Path(folder)))
    print(json.dumps(figures, ensure_ascii=False))


def leaks(lines: Iterable[Line]) -> dict[str, Any]:
    """Return how many lines still give their number away, and print them."""
    count, left = 0, Counter[str]()
    for line in lines:
        count += 1
        scrubbed = scrub(line.text)
        if part := line.left_in(scrubbed):
            left[line.kind] += 1
            if left.total() <= MOST_SHOWN:
                print(f"LEFT {part} | {line.kind} | {line.text!r} | {scrubbed!r}")
    return {"lines": count, "leaks": left.total(), "by_kind": dict(left)}


def mistakes(lines: Iterable[str]) -> dict[str, Any]:
    """Return how many ordinary lines are changed, and print them."""
    count = changed = 0
    for line in lines:
        count += 1
        if (scrubbed := scrub(line)) != line:
            changed += 1
            if changed <= MOST_SHOWN:
                print(f"CHANGED | {line!r} | {scrubbed!r}")
    return {
        "lines": count,
        "changed": changed,
        "per_thousand": round(1000 * changed / max(1, count), 3),
    }


def own_lines() -> Iterator[str]:
    """Yield the lines of the repository's documents and of its demo corpus."""
    for folder in (ROOT / "docs", ROOT / "strata_portal" / "demo"):
        yield from lines_of_folder(folder)


if __name__ == "__main__":
    main()
