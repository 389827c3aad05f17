"""From an uploaded file to passages that a search finds, and what can go wrong."""

import hashlib
import io
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone
from pytest_django.fixtures import Settings

from knowledge.actions import (
    Upload,
    delete_source,
    reindex_source,
    replace_source,
    switch_source,
    upload_source,
)
from knowledge.embedding import SpaceKey, gateway, is_model_of
from knowledge.ingest import run_ingest
from knowledge.models import (
    Document,
    EmbeddingSpace,
    IngestRun,
    Layer,
    Passage,
    PassageTokens,
    PassageVector,
    Section,
    Source,
    StagedVector,
)
from knowledge.models.ingest import RunState, Stage
from knowledge.models.source import SourceState
from knowledge.permissions import Access, Reader, grant
from knowledge.runs import (
    WAIT_LEAST,
    LeaseLostError,
    claim,
    due_runs,
    hand_back,
    report,
    worker_name,
)
from knowledge.upkeep import clean
from tests.factories import LayerFactory, UserFactory
from tests.model_proxy import (
    ENCODE,
    ModelProxy,
    another_model,
    failing,
    one_missing,
    too_short,
    with_nan,
)
from tests.stored_corpus import bring_in
from tests.worker_process import children_of

TEXT = "The reading room opens at eight. It closes at ten.\n"
REGULATION = """\
---
title: Reading room
updated: 2026-02-28
date: 2020-01-01
supersedes: rules/room-2020.md
---
# Opening

The reading room opens at eight.

## 2 Reservations

A seat is kept for twenty minutes. Form QT-07 prolongs it.

### 2.1 Groups

Groups of six reserve the small room.
"""


@pytest.fixture
def layer(db: None) -> Layer:
    """A layer in a knowledge base of its own."""
    return LayerFactory()


@pytest.fixture
def proxy(settings: Settings, model_server_url: str) -> ModelProxy:
    """A model server whose answers a test may change."""
    with ModelProxy(model_server_url) as proxy:
        settings.STRATA_MODEL_URL = proxy.url
        settings.STRATA_QUERY_EMBED_TIMEOUT = 30
        yield proxy


def waiting_source(
    layer: Layer, content: str | bytes = TEXT, name: str = "room.md"
) -> Source:
    """Return a source that was uploaded and not read yet."""
    body = content.encode() if isinstance(content, str) else content
    return upload_source(Upload(io.BytesIO(body), name), layer=layer, actor=None)


def ingest(source: Source) -> str:
    """Carry a source's newest run as far as it goes; the source is read again."""
    state = run_ingest(newest(source).pk)
    source.refresh_from_db()
    return state


def newest(source: Source) -> IngestRun:
    """Return the run of the latest request."""
    return source.runs.order_by("-generation")[0]


def long_text(paragraphs: int, word: str = "seat") -> str:
    """Return a text of several passages, none like another."""
    return "\n\n".join(
        f"Rule {number} of the reading room. "
        + " ".join(f"The {word} {number}.{each} is kept." for each in range(40))
        for number in range(paragraphs)
    )


def contents(source: Source) -> list[tuple[object, ...]]:
    """Return all that a search sees of a source, vectors included, without ids."""
    rows = source.passages.order_by("ordinal")
    fields = (
        "ordinal",
        "start",
        "end",
        "text",
        "context",
        "terms",
        "codes",
        "metadata",
    )
    vectors = {
        vector.passage_id: hashlib.sha256(repr(vector.embedding).encode()).hexdigest()
        for vector in PassageVector.objects.filter(passage__source=source)
    }
    return [
        (*(str(getattr(row, name)) for name in fields), vectors.get(row.pk))
        for row in rows
    ]


# --- What a file becomes ------------------------------------------------------


@pytest.mark.req("S1-ING-02", "S1-ING-03", "D8")
def test_a_markdown_file_becomes_text_sections_and_passages(
    layer: Layer, model: str
) -> None:
    source = bring_in(layer, "rules/room.md", REGULATION)
    document = source.documents.get()
    assert document.is_current
    assert document.title == "Reading room"
    assert "A seat is kept for twenty minutes." in document.text
    paths = [tuple(section.path) for section in document.sections.all()]
    assert ("Opening", "2 Reservations", "2.1 Groups") in paths
    for section in document.sections.all():
        assert document.text[section.start : section.end].strip()
    passages = list(source.passages.all())
    assert source.passage_count == len(passages) > 0
    for passage in passages:
        assert passage.text == document.text[passage.start : passage.end]
        assert "Reading room" in passage.context
        assert passage.context not in passage.text
        assert (passage.knowledge_base, passage.layer) == (
            layer.knowledge_base,
            layer,
        )
    assert passages[0].clause_path.startswith("Opening")
    assert "qt07" in passages[0].codes


@pytest.mark.req("S1-EMB-01", "S2-EMB-02", "S2-IDX-03")
def test_each_passage_has_a_unit_vector_and_its_tokens_in_one_space(
    layer: Layer, model: str
) -> None:
    source = bring_in(layer, "room.md", REGULATION)
    space = EmbeddingSpace.objects.get()
    vectors = list(PassageVector.objects.select_related("passage"))
    assert {vector.passage for vector in vectors} == set(source.passages.all())
    for vector in vectors:
        values = vector.embedding
        assert len(values) == space.dimension == vector.dimension
        assert sum(value * value for value in values) == pytest.approx(1, abs=1e-3)
        assert vector.space == space
        assert vector.embedded_sha256 == vector.passage.embedded_sha256
    assert PassageTokens.objects.count() == len(vectors)
    assert not StagedVector.objects.exists()


@pytest.mark.req("S1-DAT-01", "S1-ING-07", "D31")
@pytest.mark.parametrize(
    ("head", "modified", "expected", "date_source"),
    [
        ("updated: 2026-02-28\ndate: 2020-01-01", None, "2026-02-28", "front_matter"),
        ("date: 2020-01-01", None, "2020-01-01", "front_matter"),
        ("updated: soon\ndate: 2020-01-01", None, "2020-01-01", "front_matter"),
        ("", datetime(2026, 5, 1, 23, 30, tzinfo=UTC), "2026-05-01", "file"),
        ("updated: soon", datetime(2026, 5, 1, tzinfo=UTC), "2026-05-01", "file"),
        (
            "date: 2020-01-01",
            datetime(2026, 5, 1, tzinfo=UTC),
            "2020-01-01",
            "front_matter",
        ),
        ("", None, None, ""),
    ],
)
def test_a_date_is_the_documents_own_or_the_files_never_the_uploads(
    layer: Layer,
    settings: Settings,
    head: str,
    modified: datetime | None,
    expected: str | None,
    date_source: str,
) -> None:
    settings.PORTAL_EMBEDS = False
    content = f"---\n{head}\n---\n{TEXT}" if head else TEXT
    source = upload_source(
        Upload(io.BytesIO(content.encode()), "room.md", modified),
        layer=layer,
        actor=None,
    )
    assert ingest(source) == RunState.DONE
    document = source.documents.get()
    assert document.date == (date.fromisoformat(expected) if expected else None)
    assert document.date_source == date_source


@pytest.mark.req("S1-ING-05", "S1-ING-06")
def test_lines_are_recoverable_and_a_text_file_has_no_page(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer, long_text(12), "rules.txt")
    ingest(source)
    text = source.documents.get().text
    for passage in source.passages.all():
        assert passage.page is None
        assert passage.line_start == text.count("\n", 0, passage.start) + 1
        assert passage.line_end == text.count("\n", 0, passage.end - 1) + 1
        assert passage.text_origin == "text"


@pytest.mark.req("S1-ING-07")
@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("rules/room-2020.md", "rules/room-2020.md"),
        ("[room-2019.md, rules/room-2020.md]", "room-2019.md\nrules/room-2020.md"),
        ("room-2019.md, room-2020.md", "room-2019.md\nroom-2020.md"),
    ],
)
def test_what_a_document_replaces_is_kept(
    layer: Layer, settings: Settings, written: str, kept: str
) -> None:
    settings.PORTAL_EMBEDS = False
    head = REGULATION.replace("rules/room-2020.md", written)
    source = waiting_source(layer, head)
    ingest(source)
    assert source.documents.get().supersedes == kept


# --- Where nothing embeds -----------------------------------------------------


@pytest.mark.req("S2-EMB-05", "S3-EMB-01")
def test_without_embedding_the_text_is_searchable_by_words(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    settings.STRATA_MODEL_URL = "http://127.0.0.1:9"
    source = waiting_source(layer)
    assert ingest(source) == RunState.DONE
    assert source.state == SourceState.READY
    assert not PassageVector.objects.exists()
    assert Passage.objects.filter(search_vector="reading").count() == 1


# --- What is refused ----------------------------------------------------------


@pytest.mark.req("S2-ING-06")
def test_a_file_without_text_fails_with_a_reason(layer: Layer, model: str) -> None:
    source = waiting_source(layer, "---\ntitle: Nothing\n---\n   \n\n", "empty.md")
    assert ingest(source) == RunState.FAILED
    assert source.state == SourceState.FAILED
    assert source.state_reason.endswith(".")
    assert not source.passages.exists()
    assert newest(source).finished_at is not None


def test_a_file_that_left_the_storage_fails_with_the_way_out(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer)
    Path(source.original.file.path).unlink()
    assert ingest(source) == RunState.FAILED
    assert "Upload it again" in source.state_reason


def test_too_many_passages_are_refused(layer: Layer, settings: Settings) -> None:
    settings.PORTAL_EMBEDS = False
    settings.STRATA_MAX_PASSAGES = 2
    source = waiting_source(layer, long_text(12))
    assert ingest(source) == RunState.FAILED
    assert "2 are accepted" in source.state_reason
    assert not Passage.objects.exists()


def test_a_failed_replacement_leaves_the_text_from_before(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer)
    ingest(source)
    before = contents(source)
    settings.STRATA_MAX_PASSAGES = 2
    replaced = upload(long_text(12))
    replace_source(source, replaced, actor=None)
    assert ingest(source) == RunState.FAILED
    assert "text from before is still searched" in source.state_reason
    assert contents(source) == before
    assert source.documents.get(is_current=True).text == TEXT.strip()


def upload(content: str, name: str = "room.md") -> Upload:
    """Return a file as it arrives."""
    return Upload(io.BytesIO(content.encode()), name)


# --- Again: unchanged, changed ------------------------------------------------


@pytest.mark.req("S2-EMB-03", "S2-REF-01", "D4")
def test_an_unchanged_source_is_indexed_again_without_embedding(
    layer: Layer, proxy: ModelProxy
) -> None:
    source = waiting_source(layer, REGULATION)
    ingest(source)
    before, number = contents(source), source.documents.get().number
    first_ids = set(source.passages.values_list("pk", flat=True))
    embedded = proxy.embedded
    assert embedded == source.passage_count
    reindex_source(source, actor=None)
    assert ingest(source) == RunState.DONE
    assert proxy.embedded == embedded
    assert contents(source) == before
    assert source.documents.get().number == number
    assert not first_ids & set(source.passages.values_list("pk", flat=True))
    run = newest(source)
    assert (run.embedded, run.reused) == (0, source.passage_count)


@pytest.mark.req("S2-EMB-03", "D4")
def test_the_same_text_elsewhere_costs_no_embedding_and_survives_the_first(
    layer: Layer, proxy: ModelProxy
) -> None:
    first = waiting_source(layer, REGULATION)
    ingest(first)
    embedded = proxy.embedded
    second = waiting_source(LayerFactory(), REGULATION)
    ingest(second)
    assert proxy.embedded == embedded
    assert contents(second) == contents(first)
    assert {row.pk for row in first.passages.all()}.isdisjoint(
        row.pk for row in second.passages.all()
    )
    delete_source(first, actor=None)
    assert PassageVector.objects.count() == second.passage_count


@pytest.mark.req("D2", "S2-REF-02")
def test_a_changed_file_makes_a_revision_and_the_old_one_stays_as_text(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer, "It opens at eight.\n")
    ingest(source)
    old = source.documents.get()
    replace_source(source, upload("It opens at nine.\n"), actor=None)
    assert ingest(source) == RunState.DONE
    old.refresh_from_db()
    new = source.documents.get(is_current=True)
    assert new.number != old.number
    assert (old.is_current, old.text) == (False, "It opens at eight.")
    assert old.superseded_at is not None
    assert not old.passages.exists()
    assert [passage.text for passage in source.passages.all()] == ["It opens at nine."]


@pytest.mark.req("D2")
def test_a_replaced_revision_is_swept_after_its_time(
    layer: Layer, settings: Settings, django_capture_on_commit_callbacks: object
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer, "It opens at eight.\n")
    ingest(source)
    old = source.documents.get()
    old_file = Path(old.original.file.path)
    replace_source(source, upload("It opens at nine.\n"), actor=None)
    ingest(source)
    days = settings.STRATA_KEEP_REVISION_DAYS
    for age, is_kept in ((days - 1, True), (days + 1, False)):
        Document.objects.filter(pk=old.pk).update(
            superseded_at=timezone.now() - timedelta(days=age)
        )
        with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
            clean()
        assert Document.objects.filter(pk=old.pk).exists() == is_kept
        assert old_file.exists() == is_kept
    assert source.passages.count() == 1


def test_another_file_of_the_same_text_keeps_the_revision_and_one_file(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer, TEXT)
    ingest(source)
    number = source.documents.get().number
    replace_source(source, upload(TEXT.replace("\n", "\r\n")), actor=None)
    assert ingest(source) == RunState.DONE
    document = source.documents.get()
    assert document.number == number
    assert document.original == source.original
    assert Path(source.original.file.path).read_bytes().endswith(b"\r\n")


# --- The model server ---------------------------------------------------------


@pytest.mark.req("REL-Q7", "D20")
def test_without_a_model_server_a_source_waits_and_loses_no_attempt(
    layer: Layer, settings: Settings, model_server_url: str
) -> None:
    settings.STRATA_MODEL_URL = "http://127.0.0.1:9"
    source = waiting_source(layer)
    for _ in range(settings.STRATA_INGEST_ATTEMPTS + 1):
        make_due(source)
        assert ingest(source) == RunState.WAITING
        assert source.state == SourceState.PROCESSING
        assert "model server" in source.state_reason
        assert newest(source).attempts == 0
    pause = newest(source).due_at - timezone.now()
    assert timedelta(0) < pause <= timedelta(seconds=WAIT_LEAST)
    settings.STRATA_MODEL_URL = model_server_url
    make_due(source)
    assert ingest(source) == RunState.DONE
    assert (source.state, source.state_reason) == (SourceState.READY, "")
    assert newest(source).attempts == 1


def make_due(source: Source) -> None:
    """Let a run's pause be over."""
    source.runs.update(due_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.req("REL-Q7")
@pytest.mark.parametrize("tamper", [failing, with_nan, too_short, one_missing])
def test_an_answer_that_cannot_be_the_models_is_never_stored(
    layer: Layer, proxy: ModelProxy, tamper: object
) -> None:
    source = waiting_source(layer, REGULATION)
    proxy.tamper = tamper  # type: ignore[assignment]
    assert ingest(source) == RunState.WAITING
    assert source.state == SourceState.PROCESSING
    assert source.state_reason.endswith(".")
    assert not StagedVector.objects.exists()
    assert not PassageVector.objects.exists()
    assert not Passage.objects.exists()


@pytest.mark.req("REL-Q7", "D5")
def test_another_model_after_a_restart_is_refused_until_the_first_is_back(
    layer: Layer, proxy: ModelProxy
) -> None:
    first = waiting_source(layer, REGULATION)
    ingest(first)
    normal = proxy.tamper
    proxy.tamper = another_model
    second = waiting_source(layer, TEXT, "second.md")
    for _ in range(2):
        make_due(second)
        assert ingest(second) == RunState.WAITING
        assert second.state_reason
    assert PassageVector.objects.count() == first.passage_count
    proxy.tamper = normal
    make_due(second)
    assert ingest(second) == RunState.DONE
    assert EmbeddingSpace.objects.count() == 1


@pytest.mark.req("D5")
def test_a_corpus_cut_in_an_older_way_goes_on_with_the_same_model(
    layer: Layer, model: str
) -> None:
    """Its vectors are the same model's, so new texts join them and searches go on."""
    bring_in(layer, "room.md", REGULATION)
    info = gateway().describe()
    older = SpaceKey(info, chunker_version="0").fingerprint
    EmbeddingSpace.objects.update(fingerprint=older, chunker_version="0")
    source = waiting_source(layer, name="second.md")
    assert ingest(source) == RunState.DONE
    space = EmbeddingSpace.objects.get()
    assert space.fingerprint == older
    assert is_model_of(info, space)
    assert not is_model_of(replace(info, weights="0" * 64), space)
    assert PassageVector.objects.filter(passage__source=source).exists()


@pytest.mark.req("D5", "S2-EMB-04")
def test_a_corpus_of_another_model_waits_with_the_way_out(
    layer: Layer, model: str
) -> None:
    bring_in(layer, "room.md", REGULATION)
    EmbeddingSpace.objects.update(fingerprint="0" * 64, model_id="another")
    source = waiting_source(layer, name="second.md")
    assert ingest(source) == RunState.WAITING
    assert "STRATA_MODEL_URL" in source.state_reason
    assert "another" in source.state_reason


def test_staged_vectors_of_a_lost_attempt_are_used_by_the_next(
    layer: Layer, proxy: ModelProxy
) -> None:
    source = waiting_source(layer, REGULATION)
    run = newest(source)
    ingest(source)
    count = proxy.embedded
    # As if the attempt had been killed between embedding and publishing.
    rows = [
        StagedVector(
            space=vector.space,
            embedded_sha256=vector.embedded_sha256,
            embedding=vector.embedding,
            packed=PassageTokens.objects.get(passage=vector.passage).packed,
        )
        for vector in PassageVector.objects.all()
    ]
    before = contents(source)
    delete_all_text(source)
    StagedVector.objects.bulk_create(rows)
    IngestRun.objects.filter(pk=run.pk).update(state=RunState.QUEUED)
    make_due(source)
    assert ingest(source) == RunState.DONE
    assert proxy.embedded == count
    assert contents(source) == before
    assert PassageTokens.objects.count() == source.passage_count
    assert not StagedVector.objects.exists()


def delete_all_text(source: Source) -> None:
    """Take a source back to before its first publishing."""
    Source.objects.filter(pk=source.pk).update(
        state=SourceState.PENDING, passage_count=0
    )
    Passage.objects.delete_of(source)
    source.documents.all().delete()


# --- Leases, attempts, deliveries ---------------------------------------------


@pytest.mark.req("REL-Q2", "D20")
def test_a_run_that_ends_its_worker_is_started_three_times_and_no_more(
    layer: Layer, settings: Settings
) -> None:
    source = waiting_source(layer)
    starts = 0
    for _ in range(6):
        # A worker takes it and is killed: its lease is never given back.
        if claim(newest(source).pk) is not None:
            starts += 1
        source.runs.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert starts == 3
    source.refresh_from_db()
    run = newest(source)
    assert (run.state, run.code, run.attempts) == (RunState.FAILED, "dead-letter", 3)
    assert source.state == SourceState.FAILED
    assert "3 times" in source.state_reason
    assert run not in due_runs()
    # A new request starts anew.
    settings.PORTAL_EMBEDS = False
    reindex_source(source, actor=None)
    assert ingest(source) == RunState.DONE


@pytest.mark.req("REL-Q3")
def test_a_run_leaves_its_worker_within_one_lease(layer: Layer) -> None:
    source = waiting_source(layer)
    run = claim(newest(source).pk)
    assert run is not None
    assert run not in due_runs()
    assert claim(run.pk) is None
    source.runs.update(lease_until=F("lease_until") - timedelta(minutes=5))
    assert run in due_runs()
    again = claim(run.pk)
    assert again is not None
    assert again.attempts == 2
    with pytest.raises(LeaseLostError):
        report(run, Stage.EMBED)
    report(again, Stage.EMBED)


def test_a_worker_that_is_stopped_hands_back_without_losing_an_attempt(
    layer: Layer,
) -> None:
    source = waiting_source(layer)
    run = claim(newest(source).pk)
    assert run is not None
    hand_back(["somebody else:1:1"])
    assert newest(source).state == RunState.RUNNING
    hand_back([worker_name()])
    run.refresh_from_db()
    assert (run.state, run.attempts, run.lease_until) == (RunState.QUEUED, 0, None)


@pytest.mark.req("REL-Q4")
def test_ten_deliveries_make_one_set_of_passages(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer, REGULATION)
    states = [ingest(source) for _ in range(10)]
    assert states == [RunState.DONE] + [""] * 9
    assert source.passages.count() == source.passage_count
    assert source.documents.count() == 1


@pytest.mark.req("REL-Q4")
def test_a_stale_generation_never_goes_live(layer: Layer, settings: Settings) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer, "It opens at eight.\n")
    stale = newest(source)
    replace_source(source, upload("It opens at nine.\n"), actor=None)
    assert ingest(source) == RunState.DONE
    assert run_ingest(stale.pk) == ""
    stale.refresh_from_db()
    assert stale.state == RunState.SUPERSEDED
    assert [passage.text for passage in source.passages.all()] == ["It opens at nine."]


@pytest.mark.req("REL-Q4")
def test_a_deleted_source_stays_deleted(layer: Layer, settings: Settings) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer)
    run = claim(newest(source).pk)
    assert run is not None
    delete_source(source, actor=None)
    assert run_ingest(run.pk) == ""
    with pytest.raises(LeaseLostError):
        report(run, Stage.PUBLISH)
    assert not Passage.objects.exists()
    assert not Document.objects.exists()


def test_a_worker_killed_after_publishing_has_only_the_reading_back_left(
    layer: Layer, proxy: ModelProxy
) -> None:
    source = waiting_source(layer, REGULATION)
    ingest(source)
    run = newest(source)
    IngestRun.objects.filter(pk=run.pk).update(
        state=RunState.RUNNING, worker="gone:1:1", lease_until=timezone.now()
    )
    Source.objects.filter(pk=source.pk).update(state=SourceState.PROCESSING)
    proxy.tamper = failing
    ids = set(source.passages.values_list("pk", flat=True))
    assert ingest(source) == RunState.DONE
    assert source.state == SourceState.READY
    assert set(source.passages.values_list("pk", flat=True)) == ids


@pytest.mark.req("S2-ING-06")
def test_what_cannot_be_read_back_is_not_ready(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer, REGULATION)
    ingest(source)
    IngestRun.objects.filter(pk=newest(source).pk).update(
        state=RunState.RUNNING, worker="gone:1:1", lease_until=timezone.now()
    )
    Passage.objects.delete_of(source)
    assert ingest(source) == RunState.FAILED
    assert source.state == SourceState.FAILED
    assert "read back" in source.state_reason


# --- What a reader sees at the next search --------------------------------------


@pytest.mark.req("S2-ING-10", "REL-A13")
def test_an_ingest_never_switches_a_source_on(layer: Layer, settings: Settings) -> None:
    settings.PORTAL_EMBEDS = False
    user = UserFactory()
    grant(layer.knowledge_base, [Access.SEARCH], to=user, actor=None)
    reader = Reader(user_id=user.pk)
    source = waiting_source(layer)
    switch_source(source, enabled=False, actor=None)
    assert ingest(source) == RunState.DONE
    assert not Passage.objects.visible_to(reader).exists()
    switch_source(source, enabled=True, actor=None)
    assert Passage.objects.visible_to(reader).count() == 1


def test_each_publishing_raises_the_knowledge_bases_version(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer)
    ingest(source)
    layer.knowledge_base.refresh_from_db()
    first = layer.knowledge_base.version
    reindex_source(source, actor=None)
    ingest(source)
    layer.knowledge_base.refresh_from_db()
    assert layer.knowledge_base.version == first + 1


def test_sections_are_those_of_the_current_reading(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(layer, REGULATION)
    ingest(source)
    count = Section.objects.count()
    reindex_source(source, actor=None)
    ingest(source)
    assert Section.objects.count() == count
    connection.check_constraints()


# --- What happens while a source is being read ---------------------------------


@dataclass
class Meanwhile:
    """A tamper of the proxy that does something once, while vectors are computed."""

    act: Callable[[], object]
    done: bool = False

    def __call__(self, path: str, status: int, answer: Any) -> tuple[int, Any]:
        """Do it at the first answer with vectors, in a transaction of its own."""
        if path == ENCODE and not self.done:
            self.done = True
            self.act()
            connection.close()
        return status, answer


@pytest.mark.req("REL-Q4", "REL-K1")
@pytest.mark.django_db(transaction=True)
def test_a_replacement_stops_the_run_that_is_going(proxy: ModelProxy) -> None:
    source = waiting_source(LayerFactory(), REGULATION)
    proxy.tamper = Meanwhile(
        lambda: replace_source(source, upload("It opens at nine.\n"), actor=None)
    )
    assert ingest(source) == RunState.SUPERSEDED
    assert not Document.objects.exists()
    assert source.state == SourceState.PENDING
    assert ingest(source) == RunState.DONE
    assert [passage.text for passage in source.passages.all()] == ["It opens at nine."]
    assert set(source.runs.values_list("generation", "state")) == {
        (source.generation - 1, RunState.SUPERSEDED),
        (source.generation, RunState.DONE),
    }


@pytest.mark.req("REL-Q4")
@pytest.mark.django_db(transaction=True)
def test_a_deletion_stops_the_run_that_is_going(proxy: ModelProxy) -> None:
    source = waiting_source(LayerFactory(), REGULATION)
    run = newest(source)
    proxy.tamper = Meanwhile(lambda: delete_source(source, actor=None))
    assert run_ingest(run.pk) == RunState.SUPERSEDED
    for model in (Source, Document, Passage, PassageVector, IngestRun):
        assert not model.objects.exists()


@pytest.mark.req("D4")
@pytest.mark.django_db(transaction=True)
def test_vectors_that_vanish_before_publishing_are_computed_by_the_next_attempt(
    proxy: ModelProxy,
) -> None:
    # Each section is a passage, so the longer text has the shorter one's passages.
    shared, *added = (
        f"## Part {number}\n\n{text}\n"
        for number, text in enumerate(long_text(2).split("\n\n"))
    )
    first = waiting_source(LayerFactory(), "# Rules\n\n" + shared)
    assert ingest(first) == RunState.DONE
    second = waiting_source(LayerFactory(), "\n".join(["# Rules\n", shared, *added]))
    before = proxy.embedded
    proxy.tamper = Meanwhile(lambda: delete_source(first, actor=None))
    assert ingest(second) == RunState.QUEUED
    assert not second.passages.exists()
    make_due(second)
    assert ingest(second) == RunState.DONE
    assert newest(second).attempts == 2
    assert proxy.embedded == before + second.passage_count


@pytest.mark.req("REL-K1", "REL-K7")
@pytest.mark.django_db(transaction=True)
def test_of_two_requests_at_once_one_generation_is_left(settings: Settings) -> None:
    settings.PORTAL_EMBEDS = False
    source = waiting_source(LayerFactory(), REGULATION)
    ingest(source)
    expected = contents(source)
    for _ in range(10):
        at_once(
            lambda: run_ingest(reindex_source(source, actor=None).pk),
            lambda: run_ingest(reindex_source(source, actor=None).pk),
        )
        source.refresh_from_db()
        assert source.state == SourceState.READY
        assert contents(source) == expected
        assert newest(source).state == RunState.DONE
        assert Section.objects.count() == source.documents.get().sections.count()


@pytest.mark.req("REL-K2", "D3")
@pytest.mark.django_db(transaction=True)
def test_a_reader_sees_one_whole_generation_while_it_is_replaced(
    settings: Settings,
) -> None:
    settings.PORTAL_EMBEDS = False
    layer = LayerFactory()
    user = UserFactory()
    grant(layer.knowledge_base, [Access.SEARCH], to=user, actor=None)
    reader = Reader(user_id=user.pk)
    source = waiting_source(layer, long_text(4, "old"))
    ingest(source)
    visible = Passage.objects.visible_to(reader).order_by("ordinal")
    whole = {tuple(visible.values_list("text", flat=True))}
    over = threading.Event()

    def replace_again_and_again() -> None:
        for number in range(6):
            content = upload(long_text(4, f"new{number}"))
            replace_source(source, content, actor=None)
            run_ingest(newest(source).pk)
        over.set()
        connection.close()

    thread = threading.Thread(target=replace_again_and_again)
    thread.start()
    seen = set()
    while not over.is_set():
        seen.add(tuple(visible.values_list("text", flat=True)))
    thread.join()
    for document in source.documents.all():
        whole |= {texts for texts in seen if covers(document, texts)}
    assert len(seen) > 1
    assert seen <= whole


def covers(document: Document, texts: Sequence[str]) -> bool:
    """Tell whether passages are all of one revision, from its start to its end."""
    return (
        bool(texts)
        and document.text.startswith(texts[0])
        and document.text.endswith(texts[-1])
        and all(text in document.text for text in texts)
    )


@pytest.mark.req("REL-P10")
def test_a_parse_that_is_killed_is_tried_once_more_and_then_fails(
    layer: Layer, settings: Settings
) -> None:
    settings.PORTAL_EMBEDS = False
    # Long enough that none is over before it is killed.
    source = waiting_source(layer, TEXT * 20_000)
    with every_parse_killed():
        assert ingest(source) == RunState.QUEUED
        make_due(source)
        assert ingest(source) == RunState.FAILED
    assert source.state_reason.endswith(".")
    make_due(source)
    assert ingest(source) == ""
    assert newest(source).attempts == 2


@contextmanager
def every_parse_killed() -> Iterator[None]:
    """Kill each parse of this process as soon as it is there."""
    over = threading.Event()

    def kill_parses() -> None:
        while not over.wait(0.01):
            for pid in children_of(os.getpid()):
                with suppress(OSError):
                    if b"-I" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill_parses)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def at_once(*acts: Callable[[], object]) -> None:
    """Do several things at the same moment, each on a connection of its own."""
    barrier = threading.Barrier(len(acts))
    errors: list[Exception] = []

    def go(act: Callable[[], object]) -> None:
        barrier.wait()
        try:
            act()
        except Exception as error:  # noqa: BLE001 - told by the assertion below
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
