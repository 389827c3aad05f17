"""Erasing a text for good: afterwards it is nowhere, and its hashes are."""

from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from knowledge.actions import Upload, delete_source, replace_source
from knowledge.ingest import run_ingest
from knowledge.models import AgentClient, AuditEntry, Document, Source, User
from knowledge.permissions import Access, Reader, grant
from knowledge.purging import purge_revision, purge_source
from retrieval.models import Snapshot, Turn, TurnStep
from retrieval.results import Occasion
from retrieval.search import search
from retrieval.snapshots import Standing, stands_of
from retrieval.turns import search_turn, start_turn
from tests.factories import StaffFactory, UserFactory
from tests.stored_corpus import Corpus, bring_in

WORD = "zyxoquartz"
TEXT = f"# Secret\n\nThe {WORD} mine closes in May. Nobody may enter it.\n"

# Every column that can hold a text, of every table.
COLUMNS = """
SELECT c.table_name, c.column_name FROM information_schema.columns c
JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'
  AND c.data_type IN ('text', 'character varying', 'bytea', 'jsonb', 'json', 'ARRAY',
                      'tsvector', 'USER-DEFINED')
"""


def places_of(word: str) -> Iterator[str]:
    """Yield where a word stands: in which columns, and in which stored files."""
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        for table, column in cursor.fetchall():
            cursor.execute(
                f'SELECT count(*) FROM "{table}" WHERE strpos(lower('  # noqa: S608
                f"""CASE WHEN pg_typeof("{column}") = 'bytea'::regtype
                         THEN encode("{column}"::text::bytea, 'escape')
                         ELSE "{column}"::text END), %s) > 0""",
                [word],
            )
            if cursor.fetchone()[0]:
                yield f"{table}.{column}"
    for path in Path(default_storage.location).rglob("*"):
        if path.is_file() and word in path.read_bytes().decode(errors="replace"):
            yield str(path)


@pytest.fixture
def staged_files(
    settings: Any, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> Any:
    """A storage of this test's own, and the means to run what waits for a commit."""
    settings.MEDIA_ROOT = tmp_path
    return django_capture_on_commit_callbacks


def cite_it(base: Any) -> Turn:
    """Search for the text in a turn and on the portal, so that it is cited."""
    owner = UserFactory()
    grant(base, [Access.SEARCH], to=owner, actor=None)
    client = AgentClient.objects.create(owner=owner, name="Clerk")
    client.knowledge_bases.set([base])
    turn = start_turn(client, Reader(owner.pk))
    found = search_turn(turn, Reader(owner.pk), f"When does the {WORD} mine close?")
    assert WORD in found.hits[0].text
    search(Reader(owner.pk), f"{WORD} mine", occasion=Occasion("portal"))
    return turn


@pytest.mark.req("D2")
@pytest.mark.django_db
def test_a_purged_text_is_nowhere(corpus: Corpus, staged_files: Any) -> None:
    layer = corpus.handbook.layers.order_by("pk").first()
    assert layer is not None
    source = bring_in(layer, f"{WORD}.md", TEXT)
    with staged_files(execute=True):
        replace_source(
            source,
            Upload(BytesIO(TEXT.replace("May", "June").encode()), "x.md"),
            actor=None,
        )
        run_ingest(source.runs.order_by("-pk")[0].pk)
    turn = cite_it(corpus.handbook)
    hashes = set(source.documents.values_list("text_sha256", flat=True))
    assert len(hashes) == 2
    before = set(places_of(WORD))
    assert {"knowledge_document.text", "retrieval_snapshot.text"} <= before
    assert any(place.startswith(default_storage.location) for place in before)
    with staged_files(execute=True):
        purge_source(Source.objects.get(pk=source.pk), actor=None)
    assert set(places_of(WORD)) == set()
    entry = AuditEntry.objects.get(verb="erased")
    assert set(entry.detail["text_sha256"]) == hashes
    snapshot = turn.snapshots.first()
    assert snapshot is not None
    assert len(snapshot.text_sha256) == 64
    assert stands_of([snapshot])[snapshot.pk].standing is Standing.ERASED
    assert TurnStep.objects.get().hits


@pytest.mark.req("D2")
@pytest.mark.django_db
def test_what_was_cited_of_a_deleted_text_can_still_be_erased(
    corpus: Corpus, staged_files: Any
) -> None:
    layer = corpus.handbook.layers.order_by("pk").first()
    assert layer is not None
    source = bring_in(layer, "mine.md", TEXT)
    turn = cite_it(corpus.handbook)
    number = source.documents.get().number
    delete_source(source, actor=None)
    assert "retrieval_snapshot.text" in set(places_of(WORD))
    out = StringIO()
    call_command("purge", f"d{number}", "--yes", stdout=out)
    assert "gone already" in out.getvalue()
    assert "retrieval_snapshot.text" not in set(places_of(WORD))
    assert turn.snapshots.count() == Snapshot.objects.count() > 0


@pytest.mark.django_db
def test_an_old_revision_is_erased_alone(corpus: Corpus, staged_files: Any) -> None:
    layer = corpus.handbook.layers.order_by("pk").first()
    assert layer is not None
    source = bring_in(layer, "mine.md", TEXT)
    old = source.documents.get()
    cite_it(corpus.handbook)
    with staged_files(execute=True):
        replace_source(
            source, Upload(BytesIO(b"The pit closes in May.\n"), "x.md"), actor=None
        )
        run_ingest(source.runs.order_by("-pk")[0].pk)
        assert purge_revision(old.number, actor=None)
    assert set(places_of(WORD)) == set()
    assert Document.objects.get(source=source).is_current
    with staged_files(execute=True):
        assert purge_revision(source.documents.get().number, actor=None)
    assert not Source.objects.filter(pk=source.pk).exists()


@pytest.mark.django_db
def test_the_command_erases_a_source_and_asks_first(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = corpus.handbook.sources.order_by("pk").first()
    assert source is not None
    monkeypatch.setattr("builtins.input", lambda _question: "")
    with pytest.raises(CommandError, match="Nothing was erased"):
        call_command("purge", str(source.public_id))
    call_command("purge", str(source.public_id), "--yes", stdout=StringIO())
    assert not Source.objects.filter(pk=source.pk).exists()
    for what in (str(source.public_id), "nothing", "d0"):
        with pytest.raises(CommandError, match="There is no source"):
            call_command("purge", what, "--yes")


@pytest.mark.django_db
def test_erasing_wants_the_right_and_a_word(corpus: Corpus) -> None:
    source = corpus.handbook.sources.order_by("pk").first()
    assert source is not None
    address = reverse("admin:knowledge_source_erase", args=[source.pk])
    editor: User = StaffFactory(groups=["Editor"])
    head: User = StaffFactory(groups=["Administrator"])
    for person in (editor, head):
        grant(corpus.handbook, [Access.SEARCH], to=person, actor=None)
    client = Client()
    client.force_login(editor)
    assert client.post(address, {"sure": "on"}).status_code == 403
    client.force_login(head)
    assert "nobody can bring it back" in client.get(address).content.decode()
    assert "Tick this" in client.post(address, {}).content.decode()
    assert Source.objects.filter(pk=source.pk).exists()
    answer = client.post(address, {"sure": "on"}, follow=True).content.decode()
    assert "Nothing of its words is left" in answer
    assert not Source.objects.filter(pk=source.pk).exists()
