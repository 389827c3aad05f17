"""`make bench-quality`: how well searches find the right passage.

Each corpus goes through the product's own ingest into a knowledge base of its own, in a
database that exists for this run, and each question through the product's own search.
The figures are those of the evaluation data's own `score.py`.
`reranked` is the final order, exact sections first. `refusals` tells which shares of
the questions are refused at the calibrated marks: of those whose article was removed, of
those whose passage does not hold the fact (adversarial), and of those that can be
answered.

    EVAL    folder with xquad/, poquad/, unanswerable/, docs-questions.jsonl
    DOCS    one or more folders of documents, separated by colons or spaces
    SCORE   the scorer, by default score.py beside the EVAL folder
    SIZE    small: every fifth question
    CALIBRATION  file for the scales fitted on all of these questions, as they ship with
            the bundled model; none are fitted by default

Vectors are kept in var/bench by the model's fingerprint and the SHA-256 of what was
embedded, so that only the first run pays for them.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.throwaway import (
    ROOT,
    folder,
    installation,
    is_small,
    kept,
    model_server,
    refuse,
)

if TYPE_CHECKING:
    from knowledge.models import EmbeddingSpace, Layer
    from knowledge.permissions import Reader
    from retrieval.calibrating import Measured
    from retrieval.embedding import QueryVector
    from retrieval.results import Confidence, Hit
    from retrieval.tuning import Tuning

FIGURES = (
    "questions",
    "ndcg@10",
    "recall@5",
    "mrr@10",
    "doc_recall@5",
    "superseded_first_rate",
)
LANGUAGES = ("en", "vi", "ru", "ro")
PAIRS = ("vi-en", "ru-en", "ro-en")
DEPTH = 10
STEP_OF_SMALL = 5

Rows = list[dict[str, Any]]
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Corpus:
    """One ingested knowledge base, and the row that each file stands for."""

    reader: Reader
    rows: Mapping[str, str]


# The weights that leave one branch alone, and all of them.
BRANCHES: dict[str, dict[str, float]] = {
    "meaning": {"keywords": 0, "relaxed": 0, "codes": 0},
    "keywords": {"meaning": 0, "codes": 0},
    "fused": {},
}
FINAL = "reranked"
MODES = (*BRANCHES, FINAL)
# Whose unanswerable questions are in which files.
UNANSWERABLE = {
    "en": ("xquad-removed.en.jsonl", "squad2-adversarial.en.jsonl"),
    "vi": ("xquad-removed.vi.jsonl",),
    "ru": ("xquad-removed.ru.jsonl",),
    "ro": ("xquad-removed.ro.jsonl",),
    "pl": ("poquad-removed.pl.jsonl", "poquad-adversarial.pl.jsonl"),
}


@dataclass(slots=True)
class Outcome:
    """What asking one set gave: its figures by mode, and the share that was refused."""

    figures: dict[str, Figures]
    refused: float


def main() -> None:
    """Measure and print."""
    evaluation = folder("EVAL", "../shared/eval/dev")
    documents = document_folders()
    score = Path(os.environ.get("SCORE", "").strip() or evaluation.parent / "score.py")
    if not score.is_file():
        refuse(f"SCORE={score} is not a file; set SCORE to the scorer, score.py.")
    for part in ("xquad", "poquad", "unanswerable", "docs-questions.jsonl"):
        if not (evaluation / part).exists():
            refuse(f"EVAL={evaluation} holds no {part}.")
    step = STEP_OF_SMALL if is_small() else 1
    with installation(durable=False), model_server():
        figures = measure(evaluation, documents, score, step)
    print_table(figures)
    print(json.dumps(figures))


def document_folders() -> list[Path]:
    """Return the folders of DOCS, or refuse."""
    given = os.environ.get("DOCS", "").strip()
    if not given or Path(given).is_dir():
        return [folder("DOCS", "../shared/eval/docs")]
    paths = [Path(part) for part in re.split(r"[:\s]+", given) if part]
    for path in paths:
        if not path.is_dir():
            refuse(f"DOCS={path} is not a folder; set DOCS to one or more.")
    return paths


def measure(
    evaluation: Path, documents: Sequence[Path], score: Path, step: int
) -> dict[str, Any]:
    """Return {set: {language, pair or kind: {mode: figures}}} and the refusals."""
    ingester = Ingester()
    scorer = Scorer(score)
    xquad, poquad = evaluation / "xquad", evaluation / "poquad"
    figures: dict[str, Any] = {"xquad": {}, "poquad": {}}
    corpora = {}
    for language in LANGUAGES:
        rows = read(xquad / f"corpus.{language}.jsonl")
        corpora[language] = ingester.rows(f"xquad {language}", rows)
    corpora["pl"] = ingester.rows("poquad pl", read(poquad / "corpus.pl.jsonl"))
    asked = {name: read(xquad / f"questions.{name}.jsonl") for name in LANGUAGES}
    asked["pl"] = read(poquad / "questions.pl.jsonl")
    unanswerable = {
        language: [
            row for name in names for row in read(evaluation / "unanswerable" / name)
        ]
        for language, names in UNANSWERABLE.items()
    }
    calibrate(corpora, asked, unanswerable)
    false_refusals = {}
    for name in (*LANGUAGES, *PAIRS, "pl"):
        language, _, searched = name.partition("-")
        part = "poquad" if name == "pl" else "xquad"
        questions = asked[language][::step]
        corpus = corpora[searched or language]
        outcome = answer(f"{part} {name}", corpus, questions, scorer)
        figures[part][name] = outcome.figures
        false_refusals[name] = outcome.refused
    refusals = {
        language: refuse_some(
            corpora[language], unanswerable[language][::step], false_refusals[language]
        )
        for language in UNANSWERABLE
    }
    questions = read(evaluation / "docs-questions.jsonl")[::step]
    corpus = ingester.files("docs", documents)
    figures["docs"] = answer_docs(corpus, questions, scorer)
    figures["refusals"] = refusals
    return figures


def calibrate(
    corpora: Mapping[str, Corpus],
    asked: Mapping[str, Rows],
    unanswerable: Mapping[str, Rows],
) -> None:
    """Fit the scales on all questions and write them, where CALIBRATION asks for it."""
    path = os.environ.get("CALIBRATION", "").strip()
    if not path:
        return
    from retrieval.calibrating import Measured, fit_all, numbers

    measured = Measured()
    space = None
    for name in (*LANGUAGES, *PAIRS, "pl"):
        language, _, searched = name.partition("-")
        corpus = corpora[searched or language]
        rows = [*asked[language], *unanswerable[language]]
        space = ask_for_calibration(corpus, rows, measured) or space
        say(f"calibration {name}: {len(rows)} questions")
    if space is None:
        refuse("There is nothing to calibrate with.")
    text = json.dumps(numbers(space, fit_all(measured)), indent=2) + "\n"
    Path(path).write_text(text, encoding="utf-8")


def ask_for_calibration(
    corpus: Corpus, rows: Rows, measured: Measured
) -> EmbeddingSpace | None:
    """Ask one set's questions, less the adversarial ones."""
    from retrieval.calibrating import Ask, ask_all
    from retrieval.reach import Reach
    from retrieval.tuning import current

    asks = [
        Ask(row["question"], row.get("answerable", True))
        for row in rows
        if row.get("type") != "adversarial"
    ]
    return ask_all(Reach.of(corpus.reader), asks, current(), measured)


def refuse_some(
    corpus: Corpus, questions: Rows, false_refusal_rate: float
) -> dict[str, float | None]:
    """Return which shares of one language's questions are refused."""
    refused: dict[str, list[bool]] = {"removed_article": [], "adversarial": []}
    for question in questions:
        _hits, confidence = final(corpus, question["question"])
        refused[question["type"]].append(is_refused(confidence))
    return {
        **{
            f"{kind}_recall": round(sum(some) / len(some), 4) if some else None
            for kind, some in refused.items()
        },
        "false_refusal_rate": round(false_refusal_rate, 4),
    }


def read(path: Path) -> Rows:
    """Return the rows of a JSON lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def say(text: str) -> None:
    """Show progress, apart from the result."""
    print(text, file=sys.stderr, flush=True)


# --- Ingest --------------------------------------------------------------------


class Ingester:
    """Brings corpora in through the product's own verbs, reusing kept vectors."""

    def __init__(self) -> None:
        from django.contrib.auth import get_user_model

        from knowledge.embedding import gateway, space_for

        self.actor = get_user_model().objects.create_user("bench")
        self.space = space_for(gateway().describe())
        self.vectors = KeptVectors(self.space)
        self.vectors.stage()

    def rows(self, name: str, rows: Rows) -> Corpus:
        """Ingest one document for each row, named by the row's number alone."""
        named = {f"{number:05}.txt": row for number, row in enumerate(rows)}
        files = {path: row["text"].encode() for path, row in named.items()}
        return Corpus(
            self.ingest(name, files), {path: row["id"] for path, row in named.items()}
        )

    def files(self, name: str, folders: Sequence[Path]) -> Corpus:
        """Ingest every file of some folders under its path in them."""
        files = {
            str(path.relative_to(top)): path.read_bytes()
            for top in folders
            for path in sorted(top.rglob("*"))
            if path.is_file()
        }
        return Corpus(self.ingest(name, files), {})

    def ingest(self, name: str, files: Mapping[str, bytes]) -> Reader:
        """Ingest files into a new knowledge base; return a reader of it."""
        from knowledge.actions import (
            ActionError,
            Upload,
            create_knowledge_base,
            upload_source,
        )
        from knowledge.models import IngestRun, Source
        from knowledge.permissions import Reader

        started = time.monotonic()
        base = create_knowledge_base(name=name, actor=self.actor)
        layer: Layer = base.layers.get()
        for number, (path, content) in enumerate(files.items(), 1):
            try:
                source = upload_source(
                    Upload(BytesIO(content), path), layer=layer, actor=self.actor
                )
            except ActionError as error:
                say(f"{name}: {error}")
                continue
            finish(IngestRun.objects.get(source=source))
            if number % 50 == 0:
                self.vectors.keep()
                say(f"{name}: {number} of {len(files)} files")
        self.vectors.keep()
        sources = Source.objects.filter(layer=layer)
        for source in sources.filter(state="failed"):
            say(f"{name}: {source.path}: {source.state_reason}")
        passages = sum(sources.values_list("passage_count", flat=True))
        seconds = time.monotonic() - started
        say(f"{name}: {len(sources)} files, {passages} passages in {seconds:.0f} s")
        reader: Reader = Reader(user_id=self.actor.pk, limit=frozenset({base.pk}))
        return reader


def finish(run: Any) -> None:
    """Carry a run to its end, also where the model server lets it wait."""
    from knowledge.ingest import run_ingest
    from knowledge.models.ingest import OPEN_STATES

    run_ingest(run.pk)
    run.refresh_from_db()
    while run.state in OPEN_STATES:
        time.sleep(1)
        run_ingest(run.pk)
        run.refresh_from_db()


class KeptVectors:
    """Vectors of earlier runs, by what was embedded; staged as ingest stages its own."""

    def __init__(self, space: EmbeddingSpace) -> None:
        from knowledge.embedding import gateway

        self.space = space
        model = gateway().describe()
        self.path = kept() / f"vectors-{model.fingerprint[:16]}.sqlite3"
        with closing(sqlite3.connect(self.path)) as store, store:
            store.execute(
                "CREATE TABLE IF NOT EXISTS vector "
                "(sha256 TEXT PRIMARY KEY, embedding TEXT, packed BLOB)"
            )

    def stage(self) -> None:
        """Put every kept vector where ingest looks before it embeds."""
        from knowledge.models import StagedVector

        with closing(sqlite3.connect(self.path)) as store:
            rows = store.execute("SELECT sha256, embedding, packed FROM vector")
            while some := rows.fetchmany(1000):
                StagedVector.objects.bulk_create(
                    StagedVector(
                        space=self.space,
                        embedded_sha256=sha256,
                        embedding=json.loads(embedding),
                        packed=packed,
                    )
                    for sha256, embedding, packed in some
                )

    def keep(self) -> None:
        """Write what was embedded since the last time."""
        from django.db import connection

        with closing(sqlite3.connect(self.path)) as store, store:
            present = {row[0] for row in store.execute("SELECT sha256 FROM vector")}
            with connection.cursor() as cursor:
                cursor.execute(
                    """
                    SELECT DISTINCT ON (v.embedded_sha256)
                           v.embedded_sha256, v.embedding::text,
                           COALESCE(t.packed, '')
                    FROM knowledge_passagevector v
                    LEFT JOIN knowledge_passagetokens t
                           ON t.passage_id = v.passage_id AND t.space_id = v.space_id
                    WHERE v.space_id = %s AND NOT v.embedded_sha256 = ANY(%s)
                    """,
                    [self.space.pk, list(present)],
                )
                store.executemany(
                    "INSERT OR IGNORE INTO vector VALUES (?, ?, ?)",
                    ((row[0], row[1], bytes(row[2])) for row in cursor),
                )


# --- Search --------------------------------------------------------------------


def tunings() -> dict[str, Tuning]:
    """Return the settings that leave one branch alone, and those in force."""
    from retrieval.tuning import current

    held = current()
    return {
        mode: replace(
            held,
            weights=replace(held.weights, **weights),
            keyword_slots=held.keyword_slots if mode == "fused" else 0,
        )
        for mode, weights in BRANCHES.items()
    }


def embedded(question: str) -> QueryVector:
    """Return a question's vector."""
    from retrieval.embedding import embed_now
    from retrieval.journal import Journal

    vector = embed_now(question, Journal())
    if vector is None:
        refuse("Nothing was indexed, so there is nothing to measure.")
    return vector


def final(
    corpus: Corpus, question: str, vector: QueryVector | None = None
) -> tuple[list[Hit], Confidence | None]:
    """Return the hits in the final order, and how surely they cover the question."""
    from retrieval.evidence import gather
    from retrieval.journal import Journal
    from retrieval.judging import judge_hits
    from retrieval.reach import Reach
    from retrieval.tuning import current

    known = vector or embedded(question)
    evidence = gather(
        Reach.of(corpus.reader),
        question,
        tuning=current(),
        count=DEPTH,
        journal=Journal(),
        vector=lambda: known,
        reranks=True,
    )
    return list(evidence.hits), judge_hits(known.space, question, evidence.hits)


def is_refused(confidence: Confidence | None) -> bool:
    """Tell whether a result says that the documents do not cover the question."""
    from retrieval.results import Level

    return confidence is not None and confidence.level is Level.LOW


def searches(
    corpus: Corpus, questions: Rows
) -> Iterator[tuple[dict[str, Any], dict[str, list[Hit]], bool]]:
    """Yield each question with the hits of each mode, and whether it is refused.

    The question is embedded once; a branch alone is the search with the weight of the
    others at nought, less what only the others found.
    """
    from retrieval.search import search

    settings = tunings()
    for question in questions:
        text = question["question"]
        vector = embedded(text)
        found = {}
        for mode, tuning in settings.items():
            result = search(
                corpus.reader,
                text,
                top_k=DEPTH,
                query_vector=vector.vector,
                query_model=vector.space.model_id,
                tuning=tuning,
            )
            found[mode] = [
                hit for hit in result.hits if mode == "fused" or mode in hit.branches
            ]
        found[FINAL], confidence = final(corpus, text, vector)
        yield question, found, is_refused(confidence)


def answer(name: str, corpus: Corpus, questions: Rows, scorer: Scorer) -> Outcome:
    """Return what one set gives whose hits are rows."""
    results: dict[str, Rows] = {mode: [] for mode in MODES}
    refusals = 0
    for question, found, refused in searches(corpus, questions):
        refusals += refused
        for mode, hits in found.items():
            ranked = [corpus.rows[hit.citation.file] for hit in hits]
            results[mode].append({"id": question["id"], "ranked": ranked})
    figures = {mode: pick(scorer(questions, rows)) for mode, rows in results.items()}
    say(f"{name}: " + ", ".join(f"{m} {f['ndcg@10']}" for m, f in figures.items()))
    return Outcome(figures, refusals / len(questions))


def answer_docs(
    corpus: Corpus, questions: Rows, scorer: Scorer
) -> dict[str, dict[str, Figures]]:
    """Return {all or kind: {mode: figures}} for the set whose hits are places."""
    results: dict[str, Rows] = {mode: [] for mode in MODES}
    for question, found, _refused in searches(corpus, questions):
        for mode, hits in found.items():
            ranked = [{"file": hit.citation.file, "text": hit.text} for hit in hits]
            results[mode].append({"id": question["id"], "ranked": ranked})
    figures: dict[str, dict[str, Figures]] = {"all": {}}
    for mode, rows in results.items():
        scored = scorer(questions, rows, by="kind")
        figures["all"][mode] = pick(scored)
        for kind, part in scored["by_kind"].items():
            if part["retrieval_questions"]:
                figures.setdefault(kind, {})[mode] = pick(part)
    return figures


def pick(scored: Mapping[str, Any]) -> Figures:
    """Return the figures about ranking."""
    return {name: scored[name] for name in FIGURES if scored.get(name) is not None}


class Scorer:
    """Runs the evaluation data's own scorer."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(
        self, questions: Rows, results: Rows, *, by: str | None = None
    ) -> dict[str, Any]:
        """Return what the scorer prints for some questions and their results."""
        with tempfile.TemporaryDirectory() as place:
            gold, given = Path(place, "gold.jsonl"), Path(place, "results.jsonl")
            for path, rows in ((gold, questions), (given, results)):
                lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                path.write_text("".join(lines), encoding="utf-8")
            done = subprocess.run(
                [
                    sys.executable,
                    str(self.path),
                    f"--results={given}",
                    *([f"--by={by}"] if by else []),
                    str(gold),
                ],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            refuse(f"{self.path} failed: {done.stderr.strip()}")
        scored: dict[str, Any] = json.loads(done.stdout)
        return scored


def print_table(figures: Mapping[str, Mapping[str, Any]]) -> None:
    """Print nDCG@10, recall@5 and the refusals for people."""
    print(f"{'':18}" + "".join(f"{mode:>22}" for mode in MODES))
    print(f"{'':18}" + f"{'nDCG@10':>13}{'rec@5':>9}" * len(MODES))
    for name, parts in figures.items():
        if name == "refusals":
            continue
        for part, modes in parts.items():
            cells = "".join(
                f"{modes[mode]['ndcg@10']:13.4f}{modes[mode]['recall@5']:9.4f}"
                for mode in MODES
            )
            print(f"{name + ' ' + part:18}{cells}")
    print(f"{'refused':18}{'removed':>13}{'adversarial':>13}{'answerable':>13}")
    for language, shares in figures["refusals"].items():
        cells = "".join(
            f"{'–' if share is None else f'{share:.4f}':>13}"
            for share in shares.values()
        )
        print(f"{language:18}{cells}")


if __name__ == "__main__":
    main()
