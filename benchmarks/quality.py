"""`make bench-quality`: how well searches find the right passage.

Each corpus goes through the product's own ingest into a knowledge base of its own, in a
database that exists for this run, and each question through the product's own search.
The figures are those of the evaluation data's own `score.py`.

    EVAL    folder with xquad/, poquad/, docs-questions.jsonl
    DOCS    one or more folders of documents, separated by colons or spaces
    SCORE   the scorer, by default score.py beside the EVAL folder
    SIZE    small: every fifth question

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
from dataclasses import dataclass
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
    from retrieval.results import Hit

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
MODES: dict[str, dict[str, float]] = {
    "meaning": {"keywords": 0, "relaxed": 0, "codes": 0, "slots": 0},
    "keywords": {"meaning": 0, "codes": 0, "slots": 0},
    "fused": {},
}
SETTINGS = {
    "meaning": "STRATA_WEIGHT_MEANING",
    "keywords": "STRATA_WEIGHT_KEYWORDS",
    "relaxed": "STRATA_WEIGHT_RELAXED",
    "codes": "STRATA_WEIGHT_CODES",
    "slots": "HYBRID_KEYWORD_SLOTS",
}


def main() -> None:
    """Measure and print."""
    evaluation = folder("EVAL", "../shared/eval/dev")
    documents = document_folders()
    score = Path(os.environ.get("SCORE", "").strip() or evaluation.parent / "score.py")
    if not score.is_file():
        refuse(f"SCORE={score} is not a file; set SCORE to the scorer, score.py.")
    for part in ("xquad", "poquad", "docs-questions.jsonl"):
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
) -> dict[str, dict[str, dict[str, Figures]]]:
    """Return {set: {language, pair or kind: {mode: figures}}}."""
    ingester = Ingester()
    scorer = Scorer(score)
    xquad, poquad = evaluation / "xquad", evaluation / "poquad"
    figures: dict[str, dict[str, dict[str, Figures]]] = {"xquad": {}, "poquad": {}}
    corpora = {}
    for language in LANGUAGES:
        rows = read(xquad / f"corpus.{language}.jsonl")
        corpora[language] = ingester.rows(f"xquad {language}", rows)
    for name in (*LANGUAGES, *PAIRS):
        asked, _, searched = name.partition("-")
        questions = read(xquad / f"questions.{asked}.jsonl")[::step]
        corpus = corpora[searched or asked]
        figures["xquad"][name] = answer(f"xquad {name}", corpus, questions, scorer)
    rows = read(poquad / "corpus.pl.jsonl")
    questions = read(poquad / "questions.pl.jsonl")[::step]
    corpus = ingester.rows("poquad pl", rows)
    figures["poquad"]["pl"] = answer("poquad pl", corpus, questions, scorer)
    questions = read(evaluation / "docs-questions.jsonl")[::step]
    corpus = ingester.files("docs", documents)
    figures["docs"] = answer_docs(corpus, questions, scorer)
    return figures


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
        self.space = space
        self.path = kept() / f"vectors-{space.fingerprint[:16]}.sqlite3"
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


def searches(
    corpus: Corpus, questions: Rows
) -> Iterator[tuple[dict[str, Any], dict[str, list[Hit]]]]:
    """Yield each question with the hits of each mode, best first.

    The question is embedded once; a branch alone is the search with the weight of the
    others at nought, less what only the others found.
    """
    from django.test.utils import override_settings

    from knowledge.embedding import active_space, gateway
    from retrieval.search import search

    space = active_space()
    if space is None:
        refuse("Nothing was indexed, so there is nothing to measure.")
    for question in questions:
        vector = gateway().embed_query(question["question"]).vector
        found = {}
        for mode, weights in MODES.items():
            changed = {SETTINGS[name]: value for name, value in weights.items()}
            with override_settings(**changed):
                result = search(
                    corpus.reader,
                    question["question"],
                    top_k=DEPTH,
                    query_vector=vector,
                    query_model=space.model_id,
                )
            found[mode] = [
                hit for hit in result.hits if mode == "fused" or mode in hit.branches
            ]
        yield question, found


def answer(
    name: str, corpus: Corpus, questions: Rows, scorer: Scorer
) -> dict[str, Figures]:
    """Return the figures of each mode for one set whose hits are rows."""
    results: dict[str, Rows] = {mode: [] for mode in MODES}
    for question, found in searches(corpus, questions):
        for mode, hits in found.items():
            ranked = [corpus.rows[hit.citation.file] for hit in hits]
            results[mode].append({"id": question["id"], "ranked": ranked})
    figures = {mode: pick(scorer(questions, rows)) for mode, rows in results.items()}
    say(f"{name}: " + ", ".join(f"{m} {f['ndcg@10']}" for m, f in figures.items()))
    return figures


def answer_docs(
    corpus: Corpus, questions: Rows, scorer: Scorer
) -> dict[str, dict[str, Figures]]:
    """Return {all or kind: {mode: figures}} for the set whose hits are places."""
    results: dict[str, Rows] = {mode: [] for mode in MODES}
    for question, found in searches(corpus, questions):
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


def print_table(figures: Mapping[str, Mapping[str, Mapping[str, Figures]]]) -> None:
    """Print nDCG@10 and recall@5 for people."""
    print(f"{'':18}" + "".join(f"{mode:>22}" for mode in MODES))
    print(f"{'':18}" + f"{'nDCG@10':>13}{'rec@5':>9}" * len(MODES))
    for name, parts in figures.items():
        for part, modes in parts.items():
            cells = "".join(
                f"{modes[mode]['ndcg@10']:13.4f}{modes[mode]['recall@5']:9.4f}"
                for mode in MODES
            )
            print(f"{name + ' ' + part:18}{cells}")


if __name__ == "__main__":
    main()
