"""The corpus of the tests: ingested once for each run, given to each test that asks.

The files of `tests/corpus/<knowledge base>/<layer>/` go through the product's own
ingest with the real model at the first test that asks for the fixture `corpus`. The
rows are then kept as COPY data and taken back out, so that a database is empty for
every test but those which ask; they get the rows in some milliseconds, in a
transaction or not.
"""

import io
from dataclasses import dataclass
from pathlib import Path

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, models, transaction

from knowledge.actions import Upload, create_knowledge_base, upload_source
from knowledge.ingest import run_ingest
from knowledge.models import (
    Document,
    EmbeddingSpace,
    IngestRun,
    KnowledgeBase,
    Layer,
    Original,
    Passage,
    PassageTokens,
    PassageVector,
    Section,
    Source,
)
from knowledge.models.source import SourceState

FOLDER = Path(__file__).with_name("corpus")
NAMES = {
    "handbook": "Member handbook",
    "branches": "Branch notes",
    "quillback-vault": "Quillback vault",
}
# Stands in the name, titles, paths and texts of `quillback-vault` and nowhere else.
CANARY = "quillback"
# Each after those it points to.
TABLES: tuple[type[models.Model], ...] = (
    KnowledgeBase,
    Layer,
    Original,
    Source,
    IngestRun,
    Document,
    Section,
    Passage,
    EmbeddingSpace,
    PassageTokens,
    PassageVector,
)


@dataclass(frozen=True, slots=True)
class StoredCorpus:
    """The rows by table, as PostgreSQL's binary COPY writes them, and the files."""

    rows: dict[str, bytes]
    files: dict[str, bytes]

    def restore(self) -> None:
        """Put all rows and files back; the tables hold none of them now."""
        with connection.cursor() as cursor:
            for table, rows in self.rows.items():
                with cursor.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy:
                    copy.write(rows)
        for name, content in self.files.items():
            if not default_storage.exists(name):
                default_storage.save(name, ContentFile(content))


@dataclass(frozen=True, slots=True)
class Corpus:
    """The three knowledge bases of the tests."""

    handbook: KnowledgeBase
    branches: KnowledgeBase
    vault: KnowledgeBase


def find_corpus() -> Corpus:
    """Return the knowledge bases that a restored corpus has."""
    found = KnowledgeBase.objects.in_bulk(list(NAMES), field_name="slug")
    return Corpus(found["handbook"], found["branches"], found["quillback-vault"])


def store_corpus() -> StoredCorpus:
    """Ingest the files of the corpus, keep the rows, and take them out again."""
    with transaction.atomic():
        for slug, name in NAMES.items():
            fill(create_knowledge_base(name=name, slug=slug, actor=None))
        stored = StoredCorpus(
            rows={table._meta.db_table: dump(table) for table in TABLES},
            files={
                name: stored_file(name)
                for name in Original.objects.values_list("file", flat=True)
            },
        )
        transaction.set_rollback(True)
    return stored


def fill(knowledge_base: KnowledgeBase) -> None:
    """Ingest the folder of one knowledge base."""
    for path in sorted((FOLDER / knowledge_base.slug).glob("*/*")):
        layer, _created = Layer.objects.get_or_create(
            knowledge_base=knowledge_base, name=path.parent.name
        )
        bring_in(layer, path.name, path.read_bytes())


def dump(table: type[models.Model]) -> bytes:
    """Return a table's rows; generated columns are left out."""
    kept = io.BytesIO()
    command = f"COPY {table._meta.db_table} TO STDOUT (FORMAT BINARY)"
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        for piece in copy:
            kept.write(piece)
    return kept.getvalue()


def stored_file(name: str) -> bytes:
    """Return a file of the storage."""
    with default_storage.open(name) as file:
        content: bytes = file.read()
    return content


def bring_in(layer: Layer, name: str, content: str | bytes) -> Source:
    """Upload a file and ingest it now, in this process; it must become ready.

    Needs the fixture `model`, which the real vectors come from.
    """
    body = content.encode() if isinstance(content, str) else content
    source = upload_source(Upload(io.BytesIO(body), name), layer=layer, actor=None)
    run_ingest(source.runs.get().pk)
    source.refresh_from_db()
    if source.state != SourceState.READY:
        raise AssertionError(f"{name} is {source.state}: {source.state_reason}")
    return source
