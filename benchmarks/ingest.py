"""`make bench-ingest`: the whole ingest against bare encoding, and searches meanwhile.

The files of DOCS are uploaded to an installation of this run's own, whose worker and
model server bring them in. Rounds alternate: one is timed and its texts are then
encoded by a process that does nothing else; in the next one searches run beside the
ingest, and before and after it without one. At the end all files are indexed again.

    DOCS    one or more folders of documents, separated by colons or spaces
    SIZE    small: every twelfth file
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.quality import document_folders
from benchmarks.throwaway import (
    ROOT,
    end,
    installation,
    is_small,
    kept,
    model_server,
    refuse,
)

if TYPE_CHECKING:
    from knowledge.models import Layer, Source
    from knowledge.permissions import Reader

STEP_OF_SMALL = 12
ROUNDS, ROUNDS_OF_SMALL = 8, 4
IDLE_SEARCHES = 60
BETWEEN_SEARCHES = 0.1
WARM_UP = "The portal indexes a first text.\n"
WAIT_SECONDS = 4 * 3600


@dataclass
class Measured:
    """What the rounds gave: passages and seconds, and the times of searches (s)."""

    passages: int = 0
    ingest_seconds: float = 0.0
    bare_seconds: float = 0.0
    idle: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


def main() -> None:
    """Measure and print."""
    files = read_files(document_folders())
    if is_small():
        files = files[::STEP_OF_SMALL]
    rounds = ROUNDS_OF_SMALL if is_small() else ROUNDS
    if len(files) < rounds:
        refuse(f"DOCS holds {len(files)} files; at least {rounds} are needed.")
    with installation(durable=True), model_server(), worker_process():
        figures = measure(files, rounds)
    print_table(figures)
    print(json.dumps(figures))


def read_files(folders: Sequence[Path]) -> list[tuple[str, bytes]]:
    """Return path and content of each file, sorted by path."""
    return [
        (f"{folder.name}/{path.relative_to(folder)}", path.read_bytes())
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]


@contextmanager
def worker_process() -> Iterator[int]:
    """Run the product's worker on this installation; yield its process id."""
    from django.conf import settings

    from knowledge.models import WorkerBeat

    os.environ["STRATA_MODEL_URL"] = settings.STRATA_MODEL_URL
    log_path = kept() / "worker.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "worker"],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        end_at = time.monotonic() + 120
        while not WorkerBeat.objects.exists():
            if process.poll() is not None or time.monotonic() > end_at:
                refuse(f"The worker does not start; see {log_path}.")
            time.sleep(0.2)
        yield process.pid
    finally:
        end(process, signal.SIGTERM)


class Bare:
    """The process that does nothing but encode."""

    def __init__(self) -> None:
        """Start it and wait until its model is loaded."""
        from django.conf import settings

        from knowledge.embedding import gateway
        from knowledge.ingest import EMBED_BATCH

        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.bare_encoding",
                f"--model={settings.STRATA_EMBEDDING_MODEL}",
                f"--models-dir={settings.STRATA_MODELS_DIR}",
                f"--prefix={gateway().describe().passage_prefix}",
                f"--batch={EMBED_BATCH}",
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.read()

    def read(self) -> str:
        """Return its next line."""
        if self.process.stdout is None:
            refuse("Bare encoding has no output.")
        line = self.process.stdout.readline()
        if not line:
            refuse("Bare encoding ended; see above.")
        return line

    def seconds(self, texts: Sequence[str]) -> float:
        """Return how long it takes to encode the texts."""
        if self.process.stdin is None:
            refuse("Bare encoding has no input.")
        self.process.stdin.write(json.dumps(texts) + "\n")
        self.process.stdin.flush()
        return float(self.read())


def measure(files: Sequence[tuple[str, bytes]], rounds: int) -> dict[str, Any]:
    """Run all rounds and return the figures."""
    from knowledge.actions import create_knowledge_base
    from knowledge.models import User
    from knowledge.permissions import Reader

    actor = User.objects.create_user("bench")
    base = create_knowledge_base(name="Bench", actor=actor)
    layer: Layer = base.layers.get()
    reader: Reader = Reader(user_id=actor.pk)
    take_in(layer, [("warm-up.txt", WARM_UP.encode())])
    bare = Bare()
    measured = Measured()
    try:
        for number in range(rounds):
            some = files[number::rounds]
            say(f"Round {number + 1} of {rounds}: {len(some)} files")
            if number % 2 == 0:
                against_bare(layer, some, bare, measured)
            else:
                beside_searches(layer, some, reader, measured)
    finally:
        end(bare.process, signal.SIGTERM)
    again = index_again(layer)
    passages_per_s = measured.passages / measured.ingest_seconds
    bare_per_s = measured.passages / measured.bare_seconds
    return {
        "passages_per_s": round(passages_per_s, 2),
        "bare_passages_per_s": round(bare_per_s, 2),
        "ratio": round(passages_per_s / bare_per_s, 3),
        **again,
        "search_p95_ratio_during_ingest": round(
            percentile(measured.busy, 95) / percentile(measured.idle, 95), 2
        ),
    }


def take_in(layer: Layer, files: Sequence[tuple[str, bytes]]) -> list[Source]:
    """Upload files and return their sources once the worker is done with all."""
    from knowledge.actions import ActionError, Upload, upload_source

    sources = []
    for path, content in files:
        try:
            sources.append(
                upload_source(Upload(BytesIO(content), path), layer=layer, actor=None)
            )
        except ActionError as error:
            say(str(error))
    wait_for(sources)
    return sources


def wait_for(sources: Sequence[Source]) -> None:
    """Wait until no run of the sources is open."""
    from knowledge.models import IngestRun
    from knowledge.models.ingest import OPEN_STATES

    until = time.monotonic() + WAIT_SECONDS
    runs = IngestRun.objects.filter(source__in=sources, state__in=OPEN_STATES)
    while runs.exists():
        if time.monotonic() > until:
            refuse("The worker is not done after hours.")
        time.sleep(0.05)


def texts_of(sources: Sequence[Source], seen: set[str]) -> list[str]:
    """Return what was embedded for sources, each text once and none seen before."""
    from knowledge.chunking.chunks import embedded_text
    from knowledge.models import Passage

    texts = {}
    for passage in Passage.objects.filter(source__in=sources).iterator():
        if passage.embedded_sha256 not in seen:
            text = embedded_text(passage.context, passage.text)
            texts[passage.embedded_sha256] = text
    seen.update(texts)
    return list(texts.values())


def against_bare(
    layer: Layer, files: Sequence[tuple[str, bytes]], bare: Bare, measured: Measured
) -> None:
    """Time one round of ingest, then bare encoding of the same texts."""
    started = time.perf_counter()
    sources = take_in(layer, files)
    seconds = time.perf_counter() - started
    texts = texts_of(sources, measured.seen)
    bare_seconds = bare.seconds(texts)
    measured.passages += len(texts)
    measured.ingest_seconds += seconds
    measured.bare_seconds += bare_seconds
    say(
        f"  {len(texts)} passages: ingest {seconds:.1f} s, bare {bare_seconds:.1f} s, "
        f"ratio {bare_seconds / seconds:.3f}"
    )


def beside_searches(
    layer: Layer, files: Sequence[tuple[str, bytes]], reader: Reader, measured: Measured
) -> None:
    """Time searches before, during and after one round of ingest."""
    from knowledge.models import Section

    titles = Section.objects.exclude(title="").order_by("pk")
    queries = list(titles.values_list("title", flat=True)[:2000:7])
    measured.idle += search_times(reader, queries, count=IDLE_SEARCHES)
    over = threading.Event()
    thread = threading.Thread(target=lambda: (take_in(layer, files), over.set()))
    thread.start()
    busy = search_times(reader, queries, until=over)
    thread.join()
    measured.busy += busy
    measured.idle += search_times(reader, queries, count=IDLE_SEARCHES)
    say(f"  {len(busy)} searches during the ingest")


def search_times(
    reader: Reader,
    queries: Sequence[str],
    *,
    count: int = 0,
    until: threading.Event | None = None,
) -> list[float]:
    """Search again and again, and return how long each took (s)."""
    from retrieval.search import search

    times: list[float] = []
    while (until is not None and not until.is_set()) or len(times) < count:
        query = queries[len(times) % len(queries)]
        started = time.perf_counter()
        search(reader, query)
        times.append(time.perf_counter() - started)
        time.sleep(BETWEEN_SEARCHES)
    return times


def index_again(layer: Layer) -> dict[str, Any]:
    """Index all unchanged files again and tell their speed and embedding calls."""
    from knowledge.actions import reindex_source
    from knowledge.models import IngestRun, Source
    from knowledge.models.source import SourceState

    sources = list(Source.objects.filter(layer=layer, state=SourceState.READY))
    say(f"All {len(sources)} files again, unchanged")
    started = time.perf_counter()
    runs = [reindex_source(source, actor=None).pk for source in sources]
    wait_for(sources)
    seconds = time.perf_counter() - started
    embedded = IngestRun.objects.filter(pk__in=runs, embedded__gt=0)
    return {
        "unchanged_files_per_s": round(len(sources) / seconds, 2),
        "unchanged_embedding_calls": sum(embedded.values_list("embedded", flat=True)),
    }


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which `percent` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def print_table(figures: dict[str, Any]) -> None:
    """Print the figures for people."""
    rows = [
        ("ingest, passages a second", figures["passages_per_s"]),
        ("bare encode, passages a second", figures["bare_passages_per_s"]),
        ("ratio (at least 0.9)", figures["ratio"]),
        ("unchanged files a second", figures["unchanged_files_per_s"]),
        ("embedding calls for them (none)", figures["unchanged_embedding_calls"]),
        (
            "search p95 during ingest, against idle",
            figures["search_p95_ratio_during_ingest"],
        ),
    ]
    for name, value in rows:
        print(f"{name:<42}{value:>10}")


def say(sentence: str) -> None:
    """Print one line of progress."""
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
