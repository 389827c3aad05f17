"""`make bench-ask`: how long an ask takes, stage by stage, at 10,000 passages.

The documents and rows of the evaluation data go through the product's own ingest, some
of them again into further knowledge bases until 10,000 passages stand; one reader may
search all of them. Then the evaluation's questions, evenly drawn from all languages, are
asked through the door of the API, warm, with reranking on, as the product answers them:
with interaction, citations, receipt, log row and charge. Each question is new, so that no
cache answers it.

Prints the 50th and 95th percentile of each stage and of the whole, with and without the
wait for the query's embedding, and last one line of JSON:

    {"passages", "questions", "grounded" | "extractive": {"total_p50_ms", "total_p95_ms",
     "besides_embedding_p50_ms", "besides_embedding_p95_ms", "stages_p95_ms": {stage: ms}}}

    EVAL, DOCS   as for bench-quality
    SIZE         small: 1,500 passages and fewer questions
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.quality import LANGUAGES, Ingester, document_folders, read, say
from benchmarks.throwaway import folder, installation, is_small, model_server

if TYPE_CHECKING:
    from knowledge.permissions import Reader

PASSAGES, PASSAGES_SMALL = 10_000, 1_500
QUESTIONS, QUESTIONS_SMALL = 200, 40
WARM_UP = 20
MODES = ("grounded", "extractive")


def main() -> None:
    """Measure and print."""
    evaluation = folder("EVAL", "../shared/eval/dev")
    documents = document_folders()
    wanted = PASSAGES_SMALL if is_small() else PASSAGES
    count = QUESTIONS_SMALL if is_small() else QUESTIONS
    with installation(durable=True), model_server():
        reader, passages = fill(evaluation, documents, wanted)
        questions = questions_of(evaluation)
        figures: dict[str, Any] = {"passages": passages, "questions": count}
        for mode in MODES:
            figures[mode] = measure(reader, questions, mode, count)
            print_table(mode, figures[mode])
    print(json.dumps(figures))


def fill(
    evaluation: Path, documents: Sequence[Path], wanted: int
) -> tuple[Reader, int]:
    """Ingest until `wanted` passages stand; return who may read all, and how many."""
    from django.db import connection

    from knowledge.models import Passage
    from knowledge.permissions import Reader

    ingester = Ingester()
    bases: set[int] = set()
    for corpus in corpora(ingester, evaluation, documents):
        bases |= corpus.limit or frozenset()
        passages = Passage.objects.count()
        if passages >= wanted:
            break
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return Reader(user_id=ingester.actor.pk, limit=frozenset(bases)), passages


def corpora(
    ingester: Ingester, evaluation: Path, documents: Sequence[Path]
) -> Iterator[Reader]:
    """Yield a reader of each knowledge base that was filled, without end."""
    sets = [(f"xquad {name}", "xquad", name) for name in LANGUAGES]
    sets.append(("poquad pl", "poquad", "pl"))
    again = ""
    while True:
        yield ingester.files(f"docs{again}", documents).reader
        for name, part, language in sets:
            rows = read(evaluation / part / f"corpus.{language}.jsonl")
            yield ingester.rows(f"{name}{again}", rows).reader
        again += " again"


def questions_of(evaluation: Path) -> Iterator[str]:
    """Yield questions, each once, in turn from every set."""
    files = [
        evaluation / "docs-questions.jsonl",
        *(evaluation / "xquad" / f"questions.{name}.jsonl" for name in LANGUAGES),
        evaluation / "poquad" / "questions.pl.jsonl",
    ]
    waiting = [iter(read(path)) for path in files]
    seen = set()
    while waiting:
        for rows in list(waiting):
            row = next(rows, None)
            if row is None:
                waiting.remove(rows)
            elif row["question"] not in seen:
                seen.add(row["question"])
                yield row["question"]


def measure(
    reader: Reader, questions: Iterator[str], mode: str, count: int
) -> dict[str, Any]:
    """Ask the next `count` questions after some that warm up; return the figures."""
    from retrieval.ask import ask
    from retrieval.results import Occasion

    totals, besides = [], []
    stages: dict[str, list[float]] = defaultdict(list)
    occasion = Occasion(door="api")
    for number in range(count + WARM_UP):
        question = next(questions, None)
        if question is None:
            break
        started = perf_counter()
        answer = ask(reader, question, mode=mode, occasion=occasion)
        total = 1000 * (perf_counter() - started)
        if number < WARM_UP:
            continue
        totals.append(total)
        besides.append(total - answer.stage_ms.get("embed", 0.0))
        for stage, milliseconds in answer.stage_ms.items():
            stages[str(stage)].append(milliseconds)
    say(f"{mode}: {len(totals)} questions")
    return {
        **percentiles("total", totals),
        **percentiles("besides_embedding", besides),
        "stages_p95_ms": {
            stage: round(percentile(times, 95), 1)
            for stage, times in sorted(stages.items())
        },
    }


def percentiles(name: str, times: Sequence[float]) -> dict[str, float]:
    """Return the two percentiles of some times under their names."""
    return {
        f"{name}_p{share}_ms": round(percentile(times, share), 1) for share in (50, 95)
    }


def percentile(times: Sequence[float], share: int) -> float:
    """Return the time within which `share` per cent end."""
    if len(times) < 2:
        return times[0]
    return quantiles(times, n=100, method="inclusive")[share - 1]


def print_table(mode: str, figures: dict[str, Any]) -> None:
    """Print one mode's figures for people."""
    print(f"{mode:20}{'p50 ms':>10}{'p95 ms':>10}")
    for name in ("total", "besides_embedding"):
        row = [figures[f"{name}_p{share}_ms"] for share in (50, 95)]
        print(f"{name.replace('_', ' '):20}" + "".join(f"{each:10.1f}" for each in row))
    for stage, milliseconds in figures["stages_p95_ms"].items():
        print(f"  {stage:18}{'':10}{milliseconds:10.1f}")
    print(flush=True)


if __name__ == "__main__":
    main()
