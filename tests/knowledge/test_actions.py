"""The verbs: what each changes, refuses and leaves behind."""

import io
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django_q.models import OrmQ
from pytest_django.fixtures import Settings

from knowledge.actions import (
    ActionError,
    DuplicateError,
    Upload,
    UploadError,
    clean_path,
    create_knowledge_base,
    delete_knowledge_base,
    delete_source,
    move_source,
    queue_run,
    reindex_source,
    replace_source,
    switch_source,
    upload_source,
)
from knowledge.models import (
    AuditEntry,
    Document,
    IngestRun,
    KnowledgeBase,
    Layer,
    Original,
    Passage,
    Source,
)
from knowledge.models.ingest import RunState
from knowledge.models.source import SourceState
from knowledge.permissions import Access, Reader, grant
from knowledge.upkeep import UPLOAD_HOURS, clean
from tests.factories import LayerFactory, UserFactory, ready_source

Committed = Callable[..., AbstractContextManager[object]]
TEXT = "The reading room opens at eight. It closes at ten.\n"


@pytest.fixture
def media(settings: Settings, tmp_path: Path) -> Path:
    """An empty storage of this test's own."""
    settings.MEDIA_ROOT = str(tmp_path)
    return tmp_path


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Committed) -> Committed:
    """Runs what waits for the commit, which a test's own transaction never sees."""
    return django_capture_on_commit_callbacks


@pytest.fixture
def layer(db: None, media: Path) -> Layer:
    """A layer of a knowledge base with an empty storage."""
    return LayerFactory()


def upload(content: str | bytes = TEXT, name: str = "room.txt") -> Upload:
    """Return a file as it arrives."""
    body = content.encode() if isinstance(content, str) else content
    return Upload(io.BytesIO(body), name)


def stored(media: Path) -> list[Path]:
    """Return the files in the storage."""
    return [path for path in media.rglob("*") if path.is_file()]


def content_of(original: Original) -> bytes:
    """Return the bytes of a stored file."""
    return Path(original.file.path).read_bytes()


def reader_of(knowledge_base: KnowledgeBase) -> Reader:
    """Return a new reader who may search a knowledge base."""
    user = UserFactory()
    grant(knowledge_base, [Access.SEARCH], to=user, actor=None)
    return Reader(user_id=user.pk)


# --- Names --------------------------------------------------------------------


@pytest.mark.req("REL-U2", "S1-ING-01")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("room.txt", "room.txt"),
        ("regulations/2026/room.txt", "regulations/2026/room.txt"),
        ("regulations\\2026\\room.txt", "regulations/2026/room.txt"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\x\\room.txt", "x/room.txt"),
        ("a/./b/../room.txt", "a/b/room.txt"),
        ("%2e%2e/room.txt", "%2e%2e/room.txt"),
        ("room\x00.txt", "room.txt"),
        ("one\r\ntwo.txt", "one two.txt"),
        ("a\ud800b.txt", "ab.txt"),
        ("\u202efdp.exe", "fdp.exe"),
        ("mu\u031bo\u031b\u0323n.txt", "mượn.txt"),
        ("🌊.txt", "🌊.txt"),
        ("CON", "CON"),
        ("-rf.txt", "-rf.txt"),
        ("", "unnamed"),
        ("..", "unnamed"),
        (" \t ", "unnamed"),
    ],
)
def test_a_name_becomes_a_readable_relative_path(name: str, path: str) -> None:
    assert clean_path(name) == path


@pytest.mark.req("REL-U2")
def test_a_long_name_gives_a_title_that_fits(layer: Layer) -> None:
    source = upload_source(upload(name="é" * 600 + ".txt"), layer=layer, actor=None)
    assert source.title.endswith("é")
    assert len(source.title) == 300


@pytest.mark.req("REL-U2")
def test_a_long_name_keeps_its_end() -> None:
    path = clean_path("folder/" * 200 + "room.txt")
    assert len(path) == 500
    assert path.endswith("/room.txt")
    assert path.startswith("…")


@pytest.mark.req("REL-U2")
@pytest.mark.parametrize("name", ["../../x.txt", "x" * 300 + ".txt", "\u202etxt.x"])
def test_nothing_of_a_name_reaches_the_disk(
    layer: Layer, media: Path, name: str
) -> None:
    upload_source(upload(name=name), layer=layer, actor=None)
    (file,) = stored(media)
    original = Original.objects.get()
    assert file == Path(original.file.path)
    assert file.is_relative_to(media / "originals")
    assert file.name.isalnum()
    assert file.read_bytes() == TEXT.encode()
    assert len(original.name) <= 255


# --- Uploading ----------------------------------------------------------------


@pytest.mark.req("S2-REF-01", "S2-ING-15")
def test_an_upload_leaves_source_run_queue_row_and_audit_entry(
    layer: Layer, media: Path
) -> None:
    user = UserFactory()
    when = datetime(2026, 3, 1, 12, tzinfo=UTC)
    source = upload_source(
        Upload(io.BytesIO(TEXT.encode()), "notices/room.txt", when),
        layer=layer,
        actor=user,
    )
    assert source.state == SourceState.PENDING
    assert source.path == "notices/room.txt"
    assert source.knowledge_base == layer.knowledge_base
    assert source.content_sha256 == source.original.sha256
    assert source.original.modified_at == when
    assert content_of(source.original) == TEXT.encode()
    run = source.runs.get()
    assert run.state == RunState.QUEUED
    assert run.generation == source.generation
    (row,) = OrmQ.objects.all()
    assert row.task["func"] == "knowledge.tasks.ingest_source"
    assert row.task["args"] == (run.pk,)
    entry = AuditEntry.objects.get(target_type="source")
    assert (entry.actor, entry.verb, entry.target_id) == (user, "uploaded", source.pk)


@pytest.mark.req("REL-Q10", "D20")
def test_an_upload_that_is_rolled_back_leaves_nothing_to_do(
    layer: Layer, media: Path
) -> None:
    with transaction.atomic():
        upload_source(upload(), layer=layer, actor=None)
        assert OrmQ.objects.count() == 1
        transaction.set_rollback(True)
    assert not Source.objects.exists()
    assert not IngestRun.objects.exists()
    assert not OrmQ.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.req("REL-U1", "S2-ING-01")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.txt", b""),
        ("picture.txt", b"\x89PNG\r\n\x1a\n" + bytes(64)),
        ("program.pdf", b"MZ\x90\x00" + bytes(64)),
        ("page.pdf", b"<!doctype html><html><body>Hello</body></html>"),
        ("archive.txt", b"PK\x03\x04" + bytes(64)),
        ("letter.docx", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
        ("report.pdf.exe", b"MZ\x90\x00" + bytes(64)),
        ("noise.bin", b"\x00\x01\x02\x03" * 16),
    ],
)
def test_a_file_that_is_not_what_is_taken_leaves_nothing(
    layer: Layer, media: Path, name: str, content: bytes
) -> None:
    with pytest.raises(UploadError) as refused:
        upload_source(upload(content, name), layer=layer, actor=None)
    message = str(refused.value)
    assert name in message
    assert message.endswith(".")
    assert not Source.objects.exists()
    assert not Original.objects.exists()
    assert stored(media) == []
    assert not OrmQ.objects.exists()


def test_a_file_beyond_the_limit_is_refused_with_the_limit(
    layer: Layer, media: Path, settings: Settings
) -> None:
    settings.STRATA_MAX_UPLOAD_BYTES = 2_000_000
    with pytest.raises(UploadError, match="2 MB"):
        upload_source(upload(b"a" * 2_000_001), layer=layer, actor=None)
    assert stored(media) == []


@pytest.mark.req("REL-U4", "D4")
def test_the_same_content_is_one_source_of_a_knowledge_base(
    layer: Layer, media: Path
) -> None:
    first = upload_source(upload(), layer=layer, actor=None, title="Opening hours")
    with pytest.raises(DuplicateError, match="Opening hours"):
        upload_source(upload(name="copy.txt"), layer=layer, actor=None)
    assert list(Source.objects.all()) == [first]
    assert Original.objects.get() == first.original
    # Elsewhere it is a source of its own, and nothing tells of the other.
    other = upload_source(upload(), layer=LayerFactory(), actor=None)
    assert other.knowledge_base != first.knowledge_base
    assert other.original != first.original


@pytest.mark.req("REL-U4")
def test_another_content_of_the_same_path_is_refused_or_replaces(
    layer: Layer, media: Path
) -> None:
    source = upload_source(upload(), layer=layer, actor=None)
    with pytest.raises(DuplicateError, match="Replace it"):
        upload_source(upload("It opens at nine.\n"), layer=layer, actor=None)
    assert Original.objects.get() == source.original
    same = upload_source(
        upload("It opens at nine.\n"), layer=layer, actor=None, replace=True
    )
    assert same == source
    assert same.generation == source.generation + 1
    # The first file was never read by anyone: nothing names it any more.
    assert Original.objects.get().sha256 == same.content_sha256


@pytest.mark.req("REL-U4", "D24")
@pytest.mark.django_db(transaction=True)
def test_of_two_uploads_of_the_same_content_at_once_one_wins(media: Path) -> None:
    layer = LayerFactory()
    results = at_once(4, lambda: upload_source(upload(), layer=layer, actor=None))
    assert sum(isinstance(result, Source) for result in results) == 1
    assert sum(isinstance(result, DuplicateError) for result in results) == 3
    assert Source.objects.count() == 1
    assert Original.objects.count() == 1
    assert len(stored(media)) == 1


def at_once(number: int, act: Callable[[], object]) -> list[object]:
    """Do something in several threads at the same moment; results or errors."""
    barrier = threading.Barrier(number)
    results: list[object] = []

    def go() -> None:
        barrier.wait()
        try:
            results.append(act())
        except ActionError as error:
            results.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=go) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


# --- What a crash between file and row leaves (U5) ------------------------------


@pytest.mark.req("REL-U5")
def test_files_without_a_row_are_swept_once_no_upload_can_own_them(
    layer: Layer, media: Path
) -> None:
    kept = upload_source(upload(), layer=layer, actor=None)
    old = (datetime.now(UTC) - timedelta(hours=UPLOAD_HOURS + 1)).timestamp()
    for name in ("aa/left", "aa/young"):
        default_storage.save(f"originals/{name}", io.BytesIO(b"half a file"))
    os.utime(media / "originals/aa/left", (old, old))
    os.utime(kept.original.file.path, (old, old))
    clean()
    assert {path.name for path in stored(media)} == {
        "young",
        Path(kept.original.file.path).name,
    }


@pytest.mark.req("REL-U5")
def test_originals_without_a_source_are_swept(
    layer: Layer, media: Path, committed: Committed
) -> None:
    source = upload_source(upload(), layer=layer, actor=None)
    original = source.original
    Source.objects.filter(pk=source.pk).update(original=None)
    clean()
    assert Original.objects.exists()
    long_ago = datetime.now(UTC) - timedelta(hours=UPLOAD_HOURS + 1)
    Original.objects.filter(pk=original.pk).update(created_at=long_ago)
    with committed(execute=True):
        clean()
    assert not Original.objects.exists()
    assert stored(media) == []


# --- Replacing, switching, moving, deleting -------------------------------------


@pytest.mark.req("D2", "S2-REF-02")
def test_a_replacement_keeps_the_file_of_the_text_that_still_serves(
    layer: Layer, media: Path
) -> None:
    source = upload_source(upload(), layer=layer, actor=None)
    Document.objects.create(
        source=source,
        knowledge_base=source.knowledge_base,
        original=source.original,
        title="Room",
        kind="text",
        text=TEXT,
        text_sha256="0" * 64,
        is_current=True,
    )
    replaced = replace_source(source, upload("It opens at nine.\n"), actor=None)
    assert replaced.state == SourceState.REPROCESSING
    assert replaced.runs.filter(state=RunState.QUEUED).count() == 1
    assert Original.objects.count() == 2
    assert content_of(Document.objects.get().original) == TEXT.encode()


def test_an_unchanged_file_replaces_nothing(layer: Layer, media: Path) -> None:
    source = upload_source(upload(), layer=layer, actor=None)
    with pytest.raises(DuplicateError, match="not changed"):
        replace_source(source, upload(), actor=None)
    assert Source.objects.get().generation == source.generation
    assert Original.objects.get() == source.original


@pytest.mark.req("S2-REF-04")
def test_a_new_request_supersedes_what_is_not_done(layer: Layer) -> None:
    source = upload_source(upload(), layer=layer, actor=None)
    first = source.runs.get()
    second = reindex_source(source, actor=None)
    first.refresh_from_db()
    assert first.state == RunState.SUPERSEDED
    assert second.generation == first.generation + 1


def test_a_deleted_source_is_neither_replaced_nor_indexed_again(
    layer: Layer, media: Path, committed: Committed
) -> None:
    source = upload_source(upload(), layer=layer, actor=None)
    with committed(execute=True):
        delete_source(Source.objects.get(), actor=None)
    with pytest.raises(ActionError, match="deleted"):
        replace_source(source, upload("It opens at nine.\n"), actor=None)
    with pytest.raises(ActionError, match="deleted"):
        reindex_source(source, actor=None)
    assert not Original.objects.exists()


def test_a_source_without_a_file_cannot_be_indexed_again(layer: Layer) -> None:
    with pytest.raises(ActionError, match="no file"):
        reindex_source(ready_source(TEXT, layer=layer), actor=None)


@pytest.mark.req("S2-ING-10", "S2-VIS-01")
def test_the_switch_is_part_of_what_a_reader_can_see(layer: Layer) -> None:
    source = ready_source(TEXT, layer=layer)
    reader = reader_of(layer.knowledge_base)
    versions = []

    def look() -> None:
        layer.knowledge_base.refresh_from_db()
        versions.append(layer.knowledge_base.version)

    look()
    assert Passage.objects.visible_to(reader).count() == 1
    switch_source(source, enabled=False, actor=None)
    assert not Passage.objects.visible_to(reader).exists()
    assert not Source.objects.visible_to(reader).exists()
    assert not Document.objects.visible_to(reader).exists()
    look()
    switch_source(source, enabled=True, actor=None)
    look()
    switch_source(source, enabled=True, actor=None)
    assert Passage.objects.visible_to(reader).count() == 1
    look()
    assert versions[0] < versions[1] < versions[2] == versions[3]
    verbs = AuditEntry.objects.filter(target_type="source").values_list("verb")
    assert sorted(verbs) == [("switched off",), ("switched on",)]


@pytest.mark.req("R13")
def test_an_expired_source_is_out_of_sight(layer: Layer) -> None:
    source = ready_source(TEXT, layer=layer)
    reader = reader_of(layer.knowledge_base)
    now = datetime.now(UTC)
    for expires, count in ((now + timedelta(hours=1), 1), (now, 0)):
        Source.objects.filter(pk=source.pk).update(expires_at=expires)
        assert Passage.objects.visible_to(reader).count() == count


@pytest.mark.req("REL-A13")
def test_a_moved_source_is_gone_from_where_it_was(layer: Layer, media: Path) -> None:
    source = ready_source(TEXT, layer=layer)
    there = LayerFactory()
    old_reader = reader_of(layer.knowledge_base)
    new_reader = reader_of(there.knowledge_base)
    move_source(source, layer=there, actor=None)
    for model in (Passage, Document, Source):
        assert not model.objects.visible_to(old_reader).exists()
        assert model.objects.visible_to(new_reader).count() == 1
    passage = Passage.objects.get()
    assert (passage.layer, passage.knowledge_base) == (there, there.knowledge_base)
    for knowledge_base in KnowledgeBase.objects.all():
        assert knowledge_base.version > 1


def test_a_move_onto_a_path_that_is_taken_changes_nothing(layer: Layer) -> None:
    source = ready_source(TEXT, layer=layer, path="room.txt")
    there = LayerFactory()
    ready_source("Another text.\n", layer=there, path="room.txt")
    with pytest.raises(DuplicateError, match="already has"):
        move_source(source, layer=there, actor=None)
    source.refresh_from_db()
    assert source.layer == layer


@pytest.mark.req("R9")
def test_a_layer_that_cuts_otherwise_indexes_what_moves_there(layer: Layer) -> None:
    source = upload_source(upload(), layer=layer, actor=None)
    same = LayerFactory(knowledge_base=layer.knowledge_base)
    move_source(source, layer=same, actor=None)
    assert source.runs.count() == 1
    voice = LayerFactory(knowledge_base=layer.knowledge_base, chunk_preset="voice")
    move_source(source, layer=voice, actor=None)
    assert source.runs.filter(state=RunState.QUEUED).count() == 1
    assert source.runs.count() == 2


@pytest.mark.req("D2")
def test_a_deleted_source_leaves_its_audit_entry_alone(
    layer: Layer, media: Path, committed: Committed
) -> None:
    source = upload_source(upload(), layer=layer, actor=None)
    kept = ready_source("Another text.\n", layer=layer)
    with committed(execute=True):
        delete_source(source, actor=None)
    assert list(Source.objects.all()) == [kept]
    assert stored(media) == []
    assert not Original.objects.exists()
    assert not IngestRun.objects.exists()
    entry = AuditEntry.objects.get(verb="deleted")
    assert entry.target_label == "room"
    assert entry.detail == {"path": "room.txt"}


def test_a_deleted_knowledge_base_leaves_nothing_of_it(
    layer: Layer, media: Path, committed: Committed
) -> None:
    upload_source(upload(), layer=layer, actor=None)
    ready_source("Another text.\n", layer=layer)
    kept = ready_source(TEXT)
    reader = reader_of(layer.knowledge_base)
    with committed(execute=True):
        delete_knowledge_base(layer.knowledge_base, actor=None)
    assert list(Source.objects.all()) == [kept]
    assert list(Layer.objects.all()) == [kept.layer]
    assert stored(media) == []
    assert reader.searchable == frozenset()


@pytest.mark.req("D1", "D27")
def test_a_knowledge_base_is_born_with_a_layer_and_a_reader(db: None) -> None:
    user = UserFactory()
    made = create_knowledge_base(name="Regulations", actor=user)
    assert made.slug == "regulations"
    assert made.layers.get().name == "main"
    reader = Reader(user_id=user.pk)
    assert reader.searchable == reader.listed == {made.pk}


def test_names_without_latin_letters_get_short_names_of_their_own(db: None) -> None:
    made = [
        create_knowledge_base(name=name, actor=None) for name in ("Правила", "Приказы")
    ]
    assert len({each.slug for each in made}) == 2
    assert all(each.slug.startswith("kb-") for each in made)


def test_queueing_again_counts_generations(layer: Layer) -> None:
    source = upload_source(upload(), layer=layer, actor=None)
    generations = [queue_run(source, actor=None).generation for _ in range(3)]
    assert generations == [3, 4, 5]
    assert source.runs.exclude(state=RunState.SUPERSEDED).count() == 1
