"""Uploading, watching, replacing, switching and deleting sources in the admin."""

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from knowledge.actions import Upload, upload_source
from knowledge.models import IngestRun, Layer, Original, Source
from knowledge.models.ingest import RunState, Stage
from knowledge.models.source import SourceState
from knowledge.permissions import Reader, grant
from tests.cast import BOTH, Cast
from tests.factories import LayerFactory, SourceFactory, StaffFactory, ready_source
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

ADD = "/admin/knowledge/source/add/"
LIST = "/admin/knowledge/source/"


@pytest.fixture
def layer(shelves: Corpus) -> Layer:
    """The handbook's layer."""
    return Layer.objects.get(knowledge_base=shelves.handbook)


@pytest.fixture
def editor(cast: Cast) -> Client:
    """The editor of the handbook."""
    client = Client()
    client.force_login(cast.editor.user)  # type: ignore[arg-type]
    return client


def text_file(name: str, content: bytes = b"") -> SimpleUploadedFile:
    """Return a file as a browser sends it; its text is unlike any other."""
    return SimpleUploadedFile(name, content or f"The rules of {name}.\n".encode())


def stored_files() -> list[Path]:
    """Return what the storage holds."""
    folder = Path(default_storage.path("originals"))
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.req("S2-ING-08", "S2-ING-09", "S2-REF-03")
def test_a_file_sent_by_the_script_is_queued_with_its_path_and_time(
    editor: Client, layer: Layer, cast: Cast
) -> None:
    answer = editor.post(
        ADD,
        {
            "layer": layer.pk,
            "purpose": "faq",
            "file": text_file("leave.md"),
            "path": "../staff\\leave.md",
            "modified": "1700000000000",
        },
        headers={"Accept": "application/json"},
    )
    assert answer.status_code == 201
    source = Source.objects.get()
    assert answer.json() == {
        "id": str(source.pk),
        "title": "leave",
        "url": f"{LIST}{source.pk}/change/",
        "state": "pending",
        "label": "Pending",
    }
    assert (source.path, source.purpose, source.kind) == (
        "staff/leave.md",
        "faq",
        "document",
    )
    assert source.created_by == cast.editor.user
    assert source.original is not None
    assert source.original.modified_at == datetime.fromtimestamp(1_700_000_000, tz=UTC)


@pytest.mark.req("REL-U1", "REL-U4")
def test_of_several_files_each_is_judged_by_itself(
    editor: Client,
    layer: Layer,
    settings: Settings,
    django_capture_on_commit_callbacks: Any,
) -> None:
    settings.STRATA_MAX_UPLOAD_BYTES = 2000
    before = stored_files()
    form = {
        "layer": layer.pk,
        "purpose": "documentation",
        "file": [
            text_file("one.txt"),
            SimpleUploadedFile("empty.txt", b""),
            text_file("program.pdf", b"MZ\x90\x00" + bytes(200)),
            text_file("large.txt", b"many words " * 300),
            text_file("twin.txt", b"The rules of one.txt.\n"),
            text_file("two.txt"),
        ],
    }
    with django_capture_on_commit_callbacks(execute=True):
        answer = editor.post(ADD, form, follow=True)
    page = answer.content.decode()
    assert sorted(Source.objects.values_list("path", flat=True)) == [
        "one.txt",
        "two.txt",
    ]
    assert Original.objects.count() == 2
    assert len(stored_files()) == len(before) + 2
    assert "one is queued" in page
    assert "two is queued" in page
    assert "empty.txt: The file is empty" in page
    assert "program.pdf: " in page
    assert "large.txt is larger than" in page
    assert "twin.txt has the same content as" in page


@pytest.mark.req("REL-U1", "REL-A9")
def test_what_the_form_refuses_is_a_sentence(
    editor: Client, layer: Layer, shelves: Corpus
) -> None:
    foreign = Layer.objects.get(knowledge_base=shelves.vault)
    form = {"layer": layer.pk, "purpose": "faq", "file": text_file("a.txt")}
    for change, sentence in (
        ({"layer": foreign.pk}, "Select a valid choice"),
        ({"layer": ""}, "This field is required"),
        ({"purpose": "evil"}, "Select a valid choice"),
        ({"file": ""}, "Choose at least one file."),
    ):
        posted = {**form, **change}
        if posted["file"]:
            posted["file"] = text_file("a.txt")
        answer = editor.post(ADD, posted, headers={"Accept": "application/json"})
        assert answer.status_code == 400
        assert sentence in answer.json()["error"]
        if posted["file"]:
            posted["file"] = text_file("a.txt")
        assert sentence in editor.post(ADD, posted).content.decode()
    assert not Source.objects.exists()
    assert not Original.objects.exists()


def test_the_upload_page_tells_the_real_limit_and_who_has_no_layer(
    editor: Client, cast: Cast, shelves: Corpus, settings: Settings
) -> None:
    settings.STRATA_MAX_UPLOAD_BYTES = 3 * 1024 * 1024
    page = editor.get(ADD).content.decode()
    assert "up to 3.0\xa0MB each" in page
    assert f'data-most-bytes="{3 * 1024 * 1024}"' in page
    shelves.handbook.user_access.all().delete()
    assert "There is no layer to upload into" in editor.get(ADD).content.decode()


@pytest.mark.req("S2-REF-03", "S2-ING-06")
def test_list_page_and_progress_show_where_a_source_is(
    editor: Client, layer: Layer
) -> None:
    moving = SourceFactory(layer=layer, state=SourceState.PROCESSING)
    run = IngestRun.objects.create(
        source=moving,
        generation=1,
        due_at=timezone.now(),
        state=RunState.RUNNING,
        stage=Stage.EMBED,
        percent=42,
    )
    waiting = SourceFactory(
        layer=layer, state=SourceState.PENDING, state_reason="The server is away."
    )
    IngestRun.objects.create(
        source=waiting, generation=1, due_at=timezone.now(), state=RunState.WAITING
    )
    failed = SourceFactory(
        layer=layer, state=SourceState.FAILED, state_reason="No text in the PDF."
    )
    page = editor.get(LIST).content.decode()
    for words in (
        "Computing vectors",
        "42 %",
        'data-state="processing">Processing<',
        "Waiting for the model server",
        "The server is away.",
        'data-state="failed">Failed<',
        "No text in the PDF.",
    ):
        assert words in page
    assert (
        "Computing vectors" in editor.get(f"{LIST}{moving.pk}/change/").content.decode()
    )

    progress = reverse("admin:knowledge_source_progress")
    ids = {"id": [moving.pk, waiting.pk, failed.pk]}
    rows = editor.get(progress, ids).json()["rows"]
    assert rows[str(moving.pk)] == {
        "state": "processing",
        "label": "Processing",
        "stage": "Computing vectors",
        "percent": 42,
        "message": "",
        "done": False,
    }
    assert rows[str(waiting.pk)]["stage"] == "Waiting for the model server"
    assert rows[str(failed.pk)]["done"] is True
    assert rows[str(failed.pk)]["message"] == "No text in the PDF."

    # A run of an earlier request says nothing about the newest.
    Source.objects.filter(pk=moving.pk).update(generation=2)
    assert editor.get(progress, ids).json()["rows"][str(moving.pk)]["percent"] == 0
    assert run.percent == 42


@pytest.mark.req("S2-ING-10", "S2-VIS-01", "S2-REF-04")
def test_a_source_is_switched_indexed_again_and_deleted_from_page_and_list(
    editor: Client, cast: Cast, layer: Layer
) -> None:
    reader = Reader.for_user(cast.granted.user)  # type: ignore[arg-type]
    source = ready_source("Rent is due in May.", layer=layer)
    page = f"{LIST}{source.pk}/"

    def found() -> bool:
        return source.passages.model.objects.visible_to(reader).exists()

    editor.post(f"{page}verb/switch-off/")
    assert not found()
    assert "it is switched off" in editor.get(f"{page}change/").content.decode()
    editor.post(f"{page}verb/switch-on/")
    assert found()
    for action, answer in (("switch_off", False), ("switch_on", True)):
        editor.post(LIST, {"action": action, "_selected_action": [source.pk]})
        assert found() is answer

    # Without a file there is nothing to index, and that is said.
    words = editor.post(f"{page}verb/reindex/", follow=True).content.decode()
    assert "has no file to index again" in words
    other = upload_source(
        Upload(io.BytesIO(b"The fees of May."), "fees.txt"), layer=layer, actor=None
    )
    editor.post(f"{LIST}{other.pk}/verb/reindex/")
    words = editor.post(
        LIST,
        {"action": "reindex", "_selected_action": [source.pk, other.pk]},
        follow=True,
    ).content.decode()
    assert "1 source is queued." in words
    other.refresh_from_db()
    assert other.generation == 4

    confirm = {"action": "delete_selected", "_selected_action": [source.pk, other.pk]}
    words = editor.post(LIST, confirm).content.decode()
    assert "with 1 passage, its file" in words
    editor.post(LIST, {**confirm, "post": "yes"})
    assert not Source.objects.exists()
    assert not found()


@pytest.mark.req("S2-REF-01")
def test_a_file_is_replaced_and_what_is_refused_changes_nothing(
    editor: Client, layer: Layer
) -> None:
    source = upload_source(
        Upload(io.BytesIO(b"The fees of May."), "fees.txt"), layer=layer, actor=None
    )
    verb = f"{LIST}{source.pk}/verb/replace/"
    for posted, sentence in (
        ({}, "Choose the file that takes its place."),
        ({"file": text_file("fees.txt", b"The fees of May.")}, "has not changed"),
        ({"file": SimpleUploadedFile("fees.txt", b"")}, "The file is empty"),
    ):
        assert sentence in editor.post(verb, posted, follow=True).content.decode()
    before = source.content_sha256
    source.refresh_from_db()
    assert source.content_sha256 == before
    editor.post(verb, {"file": text_file("fees.txt", b"The fees of June.")})
    source.refresh_from_db()
    assert source.content_sha256 != before
    assert editor.get(verb).status_code == 404


@pytest.mark.req("REL-A8")
def test_who_may_only_add_replaces_nothing(cast: Cast, layer: Layer) -> None:
    source = upload_source(
        Upload(io.BytesIO(b"The fees of May."), "fees.txt"), layer=layer, actor=None
    )
    adder = StaffFactory(groups=["Viewer"])
    adder.user_permissions.set(Permission.objects.filter(codename="add_source"))
    grant(layer.knowledge_base, BOTH, to=adder, actor=None)
    client = Client()
    client.force_login(adder)
    assert "Replace sources" not in client.get(ADD).content.decode()
    answer = client.post(
        ADD,
        {
            "layer": layer.pk,
            "purpose": "other",
            "replace": "on",
            "file": text_file("fees.txt", b"The fees of June."),
        },
        headers={"Accept": "application/json"},
    )
    assert answer.status_code == 409
    source.refresh_from_db()
    assert source.runs.count() == 1


def test_the_form_changes_what_needs_no_new_index(
    editor: Client, layer: Layer, cast: Cast
) -> None:
    source = ready_source("Rent is due in May.", layer=layer, path="a.txt")
    other = LayerFactory(knowledge_base=layer.knowledge_base, name="other")
    ready_source("Another one.", layer=other, path="a.txt")
    page = f"{LIST}{source.pk}/change/"
    version = layer.knowledge_base.version
    form = {"title": "Rent", "purpose": "faq", "layer": layer.pk}
    expiry = {"expires_at_0": "2020-01-01", "expires_at_1": "12:00"}
    assert editor.post(page, {**form, **expiry}).status_code == 302
    source.refresh_from_db()
    layer.knowledge_base.refresh_from_db()
    assert (source.title, source.purpose) == ("Rent", "faq")
    assert layer.knowledge_base.version > version
    reader = Reader.for_user(cast.granted.user)  # type: ignore[arg-type]
    assert not Source.objects.visible_to(reader).filter(pk=source.pk).exists()
    assert "it has expired" in editor.get(page).content.decode()

    words = editor.post(page, {**form, "layer": other.pk}).content.decode()
    assert "already has this path or this content" in words
    source.refresh_from_db()
    assert source.layer_id == layer.pk


@pytest.mark.req("S2-ING-14", "S2-ING-13")
def test_what_was_not_extracted_stands_on_source_and_document(
    editor: Client, layer: Layer
) -> None:
    source = ready_source("Rent is due in May.", layer=layer)
    document = source.documents.get()
    page = f"{LIST}{source.pk}/change/"
    assert "Everything was extracted." in editor.get(page).content.decode()
    document.report = ["Page 3 holds only an image."]
    document.save()
    address = reverse("admin:knowledge_document_change", args=[document.pk])
    assert "Page 3 holds only an image." in editor.get(page).content.decode()
    assert "Page 3 holds only an image." in editor.get(address).content.decode()

    drawn = editor.get(reverse("admin:knowledge_passage_random"), follow=True)
    words = drawn.content.decode()
    assert "Rent is due in May." in words
    assert "Another random passage" in words
    assert f"/read/{document.ref(0, len(document.text))}/" in words


def test_a_layer_goes_only_when_nothing_is_in_it(
    cast: Cast, layer: Layer, shelves: Corpus
) -> None:
    client = Client()
    client.force_login(cast.superuser.user)  # type: ignore[arg-type]
    source = ready_source("Rent is due in May.", layer=layer)
    page = reverse("admin:knowledge_layer_delete", args=[layer.pk])
    for words in (
        client.get(page).content.decode(),
        client.post(page, {"post": "yes"}).content.decode(),
        client.post(
            reverse("admin:knowledge_layer_changelist"),
            {
                "action": "delete_selected",
                "_selected_action": [layer.pk],
                "post": "yes",
            },
        ).content.decode(),
    ):
        assert "handbook/main still has 1 source." in words
    assert Layer.objects.filter(pk=layer.pk).exists()
    client.post(f"{LIST}{source.pk}/delete/", {"post": "yes"})
    assert client.post(page, {"post": "yes"}).status_code == 302
    assert not Layer.objects.filter(pk=layer.pk).exists()

    add = reverse("admin:knowledge_layer_add")
    form = {
        "knowledge_base": shelves.handbook.pk,
        "name": "prices",
        "answer_mode": "grounded",
        "chunk_preset": "text",
        "languages": ["en", "vi"],
        "archived_patterns": "archive/*\n\nold/*\n",
    }
    assert client.post(add, form).status_code == 302
    made = Layer.objects.get(name="prices")
    assert made.archived_patterns == ["archive/*", "old/*"]
    assert "already has a layer" in client.post(add, form).content.decode()
    change = reverse("admin:knowledge_layer_change", args=[made.pk])
    words = client.post(change, {**form, "chunk_preset": "voice"}, follow=True)
    assert "holds for sources that are indexed from now on" in words.content.decode()


def test_a_knowledge_base_is_made_granted_and_deleted_with_all_in_it(
    cast: Cast,
) -> None:
    client = Client()
    client.force_login(cast.superuser.user)  # type: ignore[arg-type]
    add = reverse("admin:knowledge_knowledgebase_add")
    client.post(add, {"name": "Night desk", "slug": "night-desk"})
    layer = Layer.objects.get(knowledge_base__slug="night-desk")
    reader = Reader.for_user(cast.superuser.user)  # type: ignore[arg-type]
    assert layer.knowledge_base_id in reader.searchable
    ready_source("Rent is due in May.", layer=layer)
    listing = reverse("admin:knowledge_knowledgebase_changelist")
    assert "Night desk" in client.get(listing).content.decode()
    page = reverse(
        "admin:knowledge_knowledgebase_delete", args=[layer.knowledge_base_id]
    )
    assert "1 sources and 1 passages" in client.get(page).content.decode()
    assert client.post(page, {"post": "yes"}).status_code == 302
    assert not Layer.objects.filter(pk=layer.pk).exists()


def test_a_long_list_asks_the_database_as_often_as_a_short_one(
    editor: Client, layer: Layer
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert editor.get(LIST).status_code == 200
        return len(queries)

    SourceFactory(layer=layer)
    asked()
    short = asked()
    for number in range(49):
        SourceFactory(
            layer=layer,
            state=SourceState.PROCESSING if number % 2 else SourceState.PENDING,
        )
    assert asked() == short
    assert short <= 16


@pytest.mark.req("S2-ING-16")
def test_the_overview_tells_each_stage_by_itself(
    cast: Cast, layer: Layer, model: str
) -> None:
    client = Client()
    client.force_login(cast.superuser.user)  # type: ignore[arg-type]
    broken = SourceFactory(
        layer=layer, title="Scan", state=SourceState.FAILED, state_reason="No text."
    )
    IngestRun.objects.create(
        source=broken,
        generation=1,
        due_at=timezone.now(),
        finished_at=timezone.now(),
        state=RunState.FAILED,
        stage=Stage.EXTRACT,
        reason="No text.",
    )
    kept = SourceFactory(layer=layer, state=SourceState.PENDING)
    IngestRun.objects.create(
        source=kept,
        generation=1,
        due_at=timezone.now(),
        state=RunState.WAITING,
        reason="The model server is away.",
    )
    page = client.get(reverse("admin:index"))
    stages = {row["label"]: row for row in page.context["dashboard"]["stages"]}
    assert stages[Stage.EXTRACT.label]["error"].source == broken
    assert stages[Stage.EMBED.label]["error"] is None
    words = page.content.decode()
    assert "1 source waits for the model server." in words
    assert "The model server is away." in words
    assert "The worker has shown no sign of life yet." in words
    assert "The model server serves" in words
    assert "of the disk are free" in words


def test_the_overview_stands_without_a_model_server(
    cast: Cast, settings: Settings
) -> None:
    client = Client()
    client.force_login(cast.superuser.user)  # type: ignore[arg-type]
    words = client.get(reverse("admin:index")).content.decode()
    assert "Searches go by words and codes until it answers again." in words
    settings.PORTAL_EMBEDS = False
    words = client.get(reverse("admin:index")).content.decode()
    assert "Callers bring their own vectors" in words
