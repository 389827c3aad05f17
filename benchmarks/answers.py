"""`make bench-answers`: how often an ask answers what it can, and refuses the rest.

Each corpus goes through the product's own ingest into a knowledge base of its own, as
for `make bench-quality`, and each question through the product's own ask: grounded, and
in extractive mode. Prints a table and, last, one line of JSON:

    {"docs": {"all" | kind | language: figures}, "xquad" | "poquad": {language: figures}}

with figures {"status_accuracy", "citation_hit", "refusal_recall", "false_refusal_rate",
"extractive_contains_gold"}, null where nothing can be divided:

- status_accuracy: answerable questions found or partly found and unanswerable ones not
  found;
- citation_hit: of the answerable questions that are answered, those with the right
  passage among those handed back;
- refusal_recall: unanswerable questions that are not found;
- false_refusal_rate: answerable questions that are not found;
- extractive_contains_gold: of the answerable questions that extractive mode answers,
  those whose sentences hold a gold answer.

All are those of the evaluation data's own `score.py`. Adversarial questions (the right
passage is there and lacks the fact) count in none of them; how many of them are refused
is printed apart, and so is the share of answerable questions that extractive mode
refuses.

    EVAL, DOCS, SCORE, SIZE   as for bench-quality
    ONLY    docs, xquad or poquad: this part alone
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.quality import (
    LANGUAGES,
    STEP_OF_SMALL,
    UNANSWERABLE,
    Corpus,
    Ingester,
    Rows,
    Scorer,
    document_folders,
    read,
    say,
)
from benchmarks.throwaway import folder, installation, is_small, model_server, refuse

if TYPE_CHECKING:
    from retrieval.answers import Answer

# The figures, and what the scorer calls them.
GROUNDED = {
    "status_accuracy": "refusal_accuracy",
    "citation_hit": "citation_hit",
    "refusal_recall": "refusal_recall",
    "false_refusal_rate": "false_refusal_rate",
}
EXTRACTIVE = {"extractive_contains_gold": "answer_contains_gold"}
Figures = dict[str, float | None]


@dataclass(slots=True)
class Outcome:
    """What asking one set gave, as the scorer takes it; adversarial questions apart."""

    questions: Rows = field(default_factory=list)
    grounded: Rows = field(default_factory=list)
    extractive: Rows = field(default_factory=list)
    adversarial_refused: list[bool] = field(default_factory=list)


def main() -> None:
    """Measure and print."""
    evaluation = folder("EVAL", "../shared/eval/dev")
    documents = document_folders()
    score = Path(os.environ.get("SCORE", "").strip() or evaluation.parent / "score.py")
    if not score.is_file():
        refuse(f"SCORE={score} is not a file; set SCORE to the scorer, score.py.")
    only = os.environ.get("ONLY", "").strip()
    if only not in {"", "docs", "xquad", "poquad"}:
        refuse(f"ONLY is docs, xquad, poquad or not set, not {only!r}.")
    step = STEP_OF_SMALL if is_small() else 1
    scorer = Scorer(score)
    figures: dict[str, dict[str, Figures]] = {}
    with installation(durable=False), model_server():
        for name, outcome in ask_sets(evaluation, documents, only, step):
            part, _, language = name.partition(" ")
            found = figures_of(outcome, scorer, by_kind=part == "docs")
            if part == "docs":
                figures[part] = found
            else:
                figures.setdefault(part, {})[language] = found["all"]
            print_apart(name, outcome, scorer)
    print_table(figures)
    print(json.dumps(figures))


def ask_sets(
    evaluation: Path, documents: Sequence[Path], only: str, step: int
) -> Iterator[tuple[str, Outcome]]:
    """Yield each set by name with what asking its questions gave."""
    ingester = Ingester()
    if only in {"", "docs"}:
        questions = read(evaluation / "docs-questions.jsonl")[::step]
        corpus = ingester.files("docs", documents)
        yield "docs", ask_all("docs", corpus, questions)
    for language, files in UNANSWERABLE.items():
        part = "xquad" if language in LANGUAGES else "poquad"
        if only not in {"", part}:
            continue
        rows = read(evaluation / part / f"corpus.{language}.jsonl")
        corpus = ingester.rows(f"{part} {language}", rows)
        questions = read(evaluation / part / f"questions.{language}.jsonl")[::step]
        for name in files:
            questions += read(evaluation / "unanswerable" / name)[::step]
        yield f"{part} {language}", ask_all(f"{part} {language}", corpus, questions)


def ask_all(name: str, corpus: Corpus, questions: Rows) -> Outcome:
    """Ask each question in both modes; no answer leaves a trace."""
    from retrieval.ask import ask
    from retrieval.confidence import Status

    outcome = Outcome()
    for number, question in enumerate(questions, 1):
        text = question["question"]
        grounded = ask(corpus.reader, text)
        if question.get("type") == "adversarial":
            is_refused = grounded.status is Status.NOT_FOUND
            outcome.adversarial_refused.append(is_refused)
            continue
        extractive = ask(corpus.reader, text, mode="extractive")
        outcome.questions.append(question)
        outcome.grounded.append(scored(corpus, question, grounded))
        outcome.extractive.append(scored(corpus, question, extractive))
        if number % 200 == 0:
            say(f"{name}: {number} of {len(questions)} questions")
    return outcome


def scored(corpus: Corpus, question: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """Return an answer as the scorer takes it."""
    cited: list[Any] = [
        corpus.rows[each.citation.file]
        if corpus.rows
        else {"file": each.citation.file, "text": each.text}
        for each in answer.passages
    ]
    return {
        "id": question["id"],
        "status": answer.status,
        "cited": cited,
        "answer": " ".join(each.text for each in answer.sentences),
    }


# --- Figures ---------------------------------------------------------------------


def figures_of(
    outcome: Outcome, scorer: Scorer, *, by_kind: bool
) -> dict[str, Figures]:
    """Return the figures of all questions, and of each kind and language."""
    found = {"all": figures_of_some(outcome, scorer, outcome.questions)}
    if by_kind:
        for field_name in ("kind", "lang"):
            groups: dict[str, Rows] = {}
            for question in outcome.questions:
                groups.setdefault(question[field_name], []).append(question)
            for name, some in sorted(groups.items()):
                found[name] = figures_of_some(outcome, scorer, some)
    return found


def figures_of_some(outcome: Outcome, scorer: Scorer, questions: Rows) -> Figures:
    """Return the figures of some of the questions."""
    ids = {question["id"] for question in questions}
    grounded = scorer(questions, [row for row in outcome.grounded if row["id"] in ids])
    extractive = scorer(
        questions, [row for row in outcome.extractive if row["id"] in ids]
    )
    return {
        **{name: grounded.get(theirs) for name, theirs in GROUNDED.items()},
        **{name: extractive.get(theirs) for name, theirs in EXTRACTIVE.items()},
    }


def print_apart(name: str, outcome: Outcome, scorer: Scorer) -> None:
    """Print what the figures do not hold."""
    extractive = scorer(outcome.questions, outcome.extractive)
    refused = outcome.adversarial_refused
    adversarial = f"{sum(refused) / len(refused):.4f}" if refused else "–"
    print(
        f"{name}: extractive refuses {extractive['false_refusal_rate']} of the "
        f"answerable, {extractive['refusal_recall']} of the unanswerable; adversarial "
        f"refused {adversarial}"
    )


def print_table(figures: Mapping[str, Mapping[str, Figures]]) -> None:
    """Print the figures for people."""
    names = (*GROUNDED, *EXTRACTIVE)
    print(f"{'':18}" + "".join(f"{name:>26}" for name in names))
    for part, sets in figures.items():
        for name, each in sets.items():
            cells = "".join(
                f"{'–' if each[figure] is None else format(each[figure], '.4f'):>26}"
                for figure in names
            )
            print(f"{part + ' ' + name:18}{cells}")


if __name__ == "__main__":
    main()
