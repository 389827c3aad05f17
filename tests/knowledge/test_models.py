"""What the database itself refuses, and a database that has no vectors."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import DataError, IntegrityError, connection, transaction
from django.utils import timezone
from psycopg import connect, sql

from knowledge.models import (
    Document,
    EmbeddingSpace,
    KnowledgeBase,
    Layer,
    Passage,
    PassageTokens,
    PassageVector,
    Source,
    StagedVector,
)
from knowledge.models.document import random_number
from knowledge.models.vectors import SpaceState
from tests.factories import (
    DocumentFactory,
    LayerFactory,
    SourceFactory,
    UserFactory,
    ready_source,
)
from tests.worker_process import ROOT, database_url, environment

TEXT = "The reading room opens at eight.\n"


def refused(act: Callable[[], object]) -> None:
    """Do something that the database must refuse, at once or at the commit."""
    with pytest.raises(IntegrityError), transaction.atomic():  # noqa: PT012
        act()
        connection.check_constraints()


def space(dimension: int = 3, **fields: object) -> EmbeddingSpace:
    """Return a space."""
    fields.setdefault("state", SpaceState.ACTIVE)
    fields.setdefault("fingerprint", f"{dimension:064}")
    return EmbeddingSpace.objects.create(
        model_id="m", dimension=dimension, chunker_version="1", **fields
    )


def vector_of(passage: Passage, of: EmbeddingSpace, **fields: object) -> PassageVector:
    """Return a vector row that is not stored yet."""
    given = {
        "space": of,
        "passage": passage,
        "knowledge_base_id": passage.knowledge_base_id,
        "dimension": of.dimension,
        "embedded_sha256": passage.embedded_sha256,
        "embedding": [1.0] + [0.0] * (of.dimension - 1),
    }
    return PassageVector(**{**given, **fields})


@pytest.mark.req("S2-ING-06")
def test_no_source_without_passages_is_ready(db: None) -> None:
    source = SourceFactory()
    refused(lambda: Source.objects.filter(pk=source.pk).update(state="ready"))


@pytest.mark.req("S2-REF-03", "D6")
def test_a_source_has_known_states_and_kinds_and_a_reason_to_fail(db: None) -> None:
    rows = Source.objects.filter(pk=SourceFactory().pk)
    for change in (
        {"state": "done"},
        {"kind": "attachment"},
        {"purpose": "fun"},
        {"state": "failed"},
    ):
        refused(lambda change=change: rows.update(**change))
    assert rows.update(state="failed", state_reason="The file is empty.") == 1


@pytest.mark.req("D1", "S3-IDX-01")
def test_a_passage_cannot_lie_in_another_knowledge_base_than_its_source(
    db: None,
) -> None:
    ready_source(TEXT)
    other = LayerFactory()
    for change in (
        {"knowledge_base": other.knowledge_base},
        {"layer": other},
        {"layer": other, "knowledge_base": other.knowledge_base},
        {"source": SourceFactory()},
        {"document": DocumentFactory()},
    ):
        refused(lambda change=change: Passage.objects.update(**change))
    refused(lambda: Document.objects.update(knowledge_base=other.knowledge_base))
    refused(lambda: Source.objects.update(knowledge_base=other.knowledge_base))


@pytest.mark.req("D1")
def test_layer_names_are_unique_within_a_knowledge_base(db: None) -> None:
    layer = LayerFactory()
    LayerFactory(name=layer.name)
    refused(
        lambda: Layer.objects.create(
            knowledge_base=layer.knowledge_base, name=layer.name
        )
    )


@pytest.mark.req("D2")
def test_a_source_has_one_current_revision(db: None) -> None:
    document = DocumentFactory()
    refused(lambda: DocumentFactory(source=document.source))
    DocumentFactory(source=document.source, is_current=False)
    assert document.source.documents.count() == 2


@pytest.mark.req("D2")
def test_a_revisions_number_counts_nothing() -> None:
    numbers = [random_number() for _ in range(200)]
    assert len(set(numbers)) == 200
    assert all(0 < number < 2**53 for number in numbers)
    assert sum(number > 2**52 for number in numbers) > 50


@pytest.mark.req("S1-DAT-01", "S1-DAT-02")
def test_a_date_names_where_it_was_read(db: None) -> None:
    DocumentFactory()
    refused(lambda: Document.objects.update(date=date(2026, 1, 1)))
    refused(lambda: Document.objects.update(date_source="file"))
    Document.objects.update(date=date(2026, 1, 1), date_source="file")


@pytest.mark.req("D5", "REL-G3")
def test_a_vector_has_the_dimension_of_its_space(db: None) -> None:
    passage = ready_source(TEXT).passages.get()
    of = space(3)
    refused(lambda: vector_of(passage, of, embedding=[1.0, 0.0]).save())
    refused(lambda: vector_of(passage, of, embedding=[1.0] * 4, dimension=4).save())
    with pytest.raises(DataError), transaction.atomic():
        vector_of(passage, of, embedding=[float("nan"), 0.0, 0.0]).save()
    vector_of(passage, of).save()
    refused(lambda: vector_of(passage, of).save())


@pytest.mark.req("D5")
def test_one_space_is_active(db: None) -> None:
    space(3)
    refused(lambda: space(4))
    space(4, state=SpaceState.BUILDING)


def test_a_passage_takes_its_vectors_and_tokens_along(db: None) -> None:
    source = ready_source(TEXT)
    passage, of = source.passages.get(), space(3)
    vector_of(passage, of).save()
    PassageTokens.objects.create(space=of, passage=passage, packed=b"tokens")
    there = LayerFactory()
    Source.objects.filter(pk=source.pk).update(
        layer=there, knowledge_base=there.knowledge_base
    )
    assert PassageVector.objects.get().knowledge_base_id == there.knowledge_base_id
    Passage.objects.delete_of(source)
    assert not PassageVector.objects.exists()
    assert not PassageTokens.objects.exists()


@pytest.mark.req("S2-EMB-03", "D4")
def test_vectors_are_attached_from_what_was_staged_else_from_a_twin(db: None) -> None:
    of = space(3)
    first, second, third = (ready_source(TEXT).passages.get() for _ in range(3))
    Passage.objects.update(embedded_sha256="a" * 64)
    assert PassageVector.objects.attach(first.document, of, after=0) == 0
    StagedVector.objects.create(
        space=of, embedded_sha256="a" * 64, embedding=[0.0, 1.0, 0.0], packed=b"one"
    )
    assert PassageVector.objects.attach(first.document, of, after=0) == 1
    assert not StagedVector.objects.exists()
    assert PassageVector.objects.attach(second.document, of, after=0) == 1
    assert {
        (bytes(row.packed), tuple(row.passage.vectors.get().embedding))
        for row in PassageTokens.objects.all()
    } == {(b"one", (0.0, 1.0, 0.0))}
    assert PassageVector.objects.attach(third.document, of, after=third.pk) == 0


@pytest.mark.req("D25")
def test_no_search_reads_a_list_of_new_passages(db: None) -> None:
    """What others have just brought in costs a reader nothing."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, c.reloptions FROM pg_index i "
            "JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam "
            "WHERE a.amname = 'gin' AND i.indrelid = 'knowledge_passage'::regclass"
        )
        options = dict(cursor.fetchall())
    assert {"passage_search_vector", "passage_codes", "passage_meta"} <= set(options)
    assert all(each == ["fastupdate=off"] for each in options.values())


def test_expiry_is_judged_by_the_databases_clock(db: None) -> None:
    source = ready_source(TEXT)
    Source.objects.filter(pk=source.pk).update(expires_at=timezone.now())
    assert not Source.objects.live().exists()


def test_a_person_who_goes_leaves_their_sources(db: None) -> None:
    user = UserFactory()
    source = ready_source(TEXT, created_by=user)
    user.delete()
    source.refresh_from_db()
    assert source.created_by is None
    assert KnowledgeBase.objects.filter(sources=source).exists()


# --- A database without vectors (R8) --------------------------------------------

# Runs in a process of its own, whose database has no vector tables.
INGEST_AND_SEARCH = """
import io, json
from django.db import connection
from knowledge.actions import Upload, create_knowledge_base, upload_source
from knowledge.embedding import vectors_stored
from knowledge.ingest import run_ingest
from knowledge.models import User
from knowledge.permissions import Reader
from retrieval.search import search
from strata_portal.checks import check_database

user = User.objects.create_user("reader")
base = create_knowledge_base(name="Rules", actor=user)
content = io.BytesIO(b"The reading room opens at eight. Form QT-07 prolongs a seat.")
source = upload_source(Upload(content, "room.txt"), layer=base.layers.get(), actor=user)
run_ingest(source.runs.get().pk)
source.refresh_from_db()
reader = Reader(user_id=user.pk)
found = {
    query: search(reader, query)
    for query in ("reading room", "QT-07", "prolonging a seats")
}
print(json.dumps({
    "vectors_stored": vectors_stored(),
    "told": [str(each) for each in check_database(databases=["default"])],
    "tables": connection.introspection.table_names(),
    "state": source.state,
    "hits": {query: len(result.hits) for query, result in found.items()},
    "labels": sorted({label for result in found.values() for label in result.labels}),
}))
"""


@pytest.fixture
def bare_database(db: None) -> Iterator[str]:
    """The address of an empty database in which nobody may create the extension."""
    parts = urlsplit(database_url())
    name = f"{parts.path.lstrip('/')}_bare"
    server = urlunsplit(parts._replace(path="/postgres"))
    quoted = sql.Identifier(name)
    # The template with the extension is the other one.
    create = sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(quoted)
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(quoted)
    with connect(server, autocommit=True) as admin:
        is_superuser = admin.execute("SHOW is_superuser").fetchone()
        if is_superuser == ("on",):
            pytest.skip("this server's role may create the extension anywhere")
        admin.execute(drop)
        admin.execute(create)
        yield urlunsplit(parts._replace(path=f"/{name}"))
        admin.execute(drop)


@pytest.mark.req("S2-IDX-02", "S2-IDX-04", "S2-EMB-05")
def test_without_the_extension_everything_but_vectors_works(
    bare_database: str,
) -> None:
    def manage(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "manage.py", *arguments],
            cwd=ROOT,
            env=environment(DATABASE_URL=bare_database, LOG_LEVEL="ERROR"),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    manage("migrate", "--verbosity=0")
    answer = json.loads(
        manage("shell", "--no-imports", "-c", INGEST_AND_SEARCH).splitlines()[-1]
    )
    assert answer["vectors_stored"] is False
    assert len(answer["told"]) == 1
    assert "do not scale to hundreds of thousands of passages" in answer["told"][0]
    tables = set(answer["tables"])
    assert not tables & {"knowledge_passagevector", "knowledge_stagedvector"}
    assert {"knowledge_passage", "knowledge_passagetokens"} <= tables
    assert answer["state"] == "ready"
    assert answer["hits"]["reading room"] == answer["hits"]["QT-07"] == 1
    assert "keyword-only" in answer["labels"]
