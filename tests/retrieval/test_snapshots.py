"""Citations of a turn: their numbers, what is kept of them, and how they stand."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from knowledge.actions import delete_knowledge_base, delete_source, move_source
from knowledge.models import AgentClient, Document, Passage, Source
from knowledge.permissions import Access, Reader, deny, grant
from knowledge.upkeep import sweep_revisions
from retrieval.models import SearchLog, Snapshot, Turn, TurnStep
from retrieval.snapshots import (
    Standing,
    forget_queries,
    is_changed,
    stand_of_ref,
    stands_of,
)
from retrieval.turns import TurnResult, search_turn, start_turn
from tests.factories import DocumentFactory, PassageFactory, UserFactory
from tests.retrieval.shelf import layer_of, put

TEXT = "The harbour opens at six. A berth costs 5 euro."


def new_turn(*slugs: str) -> tuple[Turn, Reader]:
    """Start a turn of a new client that is bound to some knowledge bases."""
    bases = [layer_of(slug).knowledge_base for slug in slugs or ("one",)]
    owner = UserFactory()
    for base in bases:
        grant(base, [Access.SEARCH], to=owner, actor=None)
    client = AgentClient.objects.create(owner=owner, name="Clerk")
    client.knowledge_bases.set(bases)
    reader = Reader(owner.pk, limit=frozenset(base.pk for base in bases), is_agent=True)
    return start_turn(client, reader), reader


def again(reader: Reader) -> Reader:
    """Return the reader of another request of the same person."""
    return Reader(reader.user_id, limit=reader.limit, is_agent=reader.is_agent)


def search(turn: Turn, reader: Reader, query: str = "harbour") -> TurnResult:
    """Search as one request does."""
    return search_turn(turn, again(reader), query)


def replace_text(passage: Passage, text: str) -> Document:
    """Give a passage's source a new text, as publishing it does."""
    old = passage.document
    Document.objects.filter(pk=old.pk).update(
        is_current=False, superseded_at=timezone.now()
    )
    passage.delete()
    document: Document = DocumentFactory(source=old.source, text=text)
    PassageFactory(document=document)
    return document


def standing(turn: Turn) -> Standing:
    """Return how the turn's only citation stands."""
    snapshot = turn.snapshots.get()
    return stands_of([snapshot])[snapshot.pk].standing


@pytest.mark.req("S3-CIT-01", "S3-CIT-02")
@pytest.mark.django_db
def test_a_hit_is_saved_as_it_was_shown() -> None:
    passage = put(layer_of("one"), TEXT, title="Harbour rules")
    passage.clause_path = "Harbour rules > 2 Berths"
    passage.save()
    turn, reader = new_turn()
    (hit,) = search(turn, reader).hits
    saved = turn.snapshots.get()
    document = passage.document
    assert hit.number == saved.number == 1
    assert saved.text == hit.text == TEXT
    assert saved.title == "Harbour rules"
    assert saved.clause_path == "Harbour rules > 2 Berths"
    assert saved.revision == document.number
    assert saved.indexed_at == document.created_at
    assert saved.score == hit.score > 0
    assert saved.places == [
        {"ref": document.ref(0, len(TEXT)), "page": None, "lines": "1"}
    ]
    assert (saved.source, saved.document) == (passage.source, document)
    assert hit.citation.url == f"/cited/{turn.public_id}/1/"


@pytest.mark.req("S3-CIT-04")
@pytest.mark.django_db
def test_numbers_go_on_and_a_cited_passage_keeps_its_own() -> None:
    for number in range(3):
        put(layer_of("one"), f"The harbour has berth {number}.")
    turn, reader = new_turn()
    first = {each.ref: each.number for each in search(turn, reader).hits}
    assert sorted(first.values()) == [1, 2, 3]
    put(layer_of("one"), "The harbour has a crane.")
    second = {each.ref: each.number for each in search(turn, reader).hits}
    assert {ref: second[ref] for ref in first} == first
    assert sorted(second.values()) == [1, 2, 3, 4]
    other, reader = new_turn()
    assert [each.number for each in search(other, reader).hits] == [1, 2, 3, 4]


@pytest.mark.django_db
def test_the_database_refuses_a_number_or_a_place_twice() -> None:
    put(layer_of("one"), TEXT)
    turn, reader = new_turn()
    search(turn, reader)
    for changes in ({"ref": "d9:0-1"}, {"number": 2}, {"ref": "d9:0-1", "number": 0}):
        twin = turn.snapshots.get()
        twin.pk = None
        for name, value in changes.items():
            setattr(twin, name, value)
        with pytest.raises(IntegrityError), transaction.atomic():
            twin.save(force_insert=True)


@pytest.mark.req("D24", "REL-K3", "S3-CIT-04")
@pytest.mark.django_db(transaction=True)
def test_parallel_searches_of_a_turn_share_dense_numbers() -> None:
    words = ("crane", "pier", "mole", "quay", "slip", "buoy", "dock", "tide")
    for word in words:
        for number in range(2):
            put(layer_of("one"), f"The {word} and the harbour, part {number}.")
    turns = [new_turn() for _ in range(4)]

    def ask(turn: Turn, reader: Reader, word: str) -> list[tuple[int | None, str]]:
        try:
            found = search(Turn.objects.get(pk=turn.pk), reader, f"{word} harbour")
            assert found.citations == "saved"
            return [(each.number, each.ref) for each in found.hits]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        waiting = [
            (turn, pool.submit(ask, turn, reader, word))
            for word in words
            for turn, reader in turns
        ]
        told = [(turn.pk, pair) for turn, each in waiting for pair in each.result()]
    for turn, _reader in turns:
        saved = list(turn.snapshots.values_list("number", "ref"))
        assert [number for number, _ref in saved] == list(range(1, 17))
        assert len({ref for _number, ref in saved}) == 16
        assert {pair for pk, pair in told if pk == turn.pk} == set(saved)


@pytest.fixture
def no_more_snapshots(db: None) -> Iterator[None]:
    """The database refuses each new snapshot."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_snapshots() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the disk is full'; END $$;"
            "CREATE TRIGGER refuse_snapshots BEFORE INSERT ON retrieval_snapshot "
            "FOR EACH ROW EXECUTE FUNCTION refuse_snapshots()"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute(
            "DROP TRIGGER refuse_snapshots ON retrieval_snapshot;"
            "DROP FUNCTION refuse_snapshots"
        )


@pytest.mark.req("S3-CIT-05", "D33")
def test_a_failing_snapshot_does_not_fail_the_search(no_more_snapshots: None) -> None:
    put(layer_of("one"), TEXT)
    turn, reader = new_turn()
    found = search(turn, reader)
    assert found.citations == "unsaved"
    assert [(each.number, each.text) for each in found.hits] == [(None, TEXT)]
    assert found.hits[0].citation.url.startswith("/read/")
    step = TurnStep.objects.get()
    assert not step.citations_saved
    assert len(step.hits) == 1
    assert not Snapshot.objects.exists()


@pytest.mark.req("S3-CIT-03", "R21")
@pytest.mark.django_db
def test_a_citation_stands_as_its_document_does() -> None:
    passage = put(layer_of("one"), TEXT)
    turn, reader = new_turn()
    search(turn, reader)
    assert standing(turn) is Standing.CURRENT
    longer = replace_text(passage, f"# Harbour\n\n{TEXT.replace(' A', chr(10) + 'A')}")
    snapshot = turn.snapshots.get()
    stand = stands_of([snapshot])[snapshot.pk]
    assert stand.standing is Standing.UNCHANGED
    assert stand.since is not None
    assert stand.place == longer.ref(11, 11 + len(TEXT))
    replace_text(longer.passages.get(), TEXT.replace("5", "6"))
    assert standing(turn) is Standing.CHANGED
    source = turn.snapshots.get().source
    assert source is not None
    delete_source(source, actor=None)
    snapshot = turn.snapshots.get()
    stand = stands_of([snapshot])[snapshot.pk]
    assert (stand.standing, stand.since) == (Standing.REMOVED, snapshot.removed_at)
    assert snapshot.removed_at is not None
    assert snapshot.text == TEXT


@pytest.mark.req("S1-CIT-01", "R21")
@pytest.mark.django_db
def test_a_ref_whose_words_are_gone_is_changed() -> None:
    passage = put(layer_of("one"), TEXT)
    _turn, reader = new_turn()
    kept, gone = passage.document.ref(0, 25), passage.document.ref(26, len(TEXT))
    assert not is_changed(again(reader), kept)
    replace_text(passage, TEXT.replace("5", "6"))
    assert not is_changed(again(reader), kept)
    assert is_changed(again(reader), gone)
    stand = stand_of_ref(again(reader), kept)
    assert stand is not None
    assert stand.standing is Standing.UNCHANGED
    for ref in ("d1:0-5", "nothing", passage.document.ref(0, 999)):
        assert is_changed(again(reader), ref)
    deny(layer_of("one").knowledge_base, to=owner_of(reader), actor=None)
    assert is_changed(again(reader), kept)


def owner_of(reader: Reader) -> Any:
    """Return the person behind a reader."""
    from knowledge.models import User

    return User.objects.get(pk=reader.user_id)


@pytest.mark.req("D2")
@pytest.mark.django_db
def test_a_revision_that_a_citation_names_is_kept(settings: Any) -> None:
    cited, other = put(layer_of("one"), TEXT), put(layer_of("one"), "A pier.")
    turn, reader = new_turn()
    search(turn, reader)
    for passage in (cited, other):
        replace_text(passage, "Nothing of it.")
    long_ago = timezone.now() - timedelta(days=settings.STRATA_KEEP_REVISION_DAYS + 1)
    Document.objects.filter(is_current=False).update(superseded_at=long_ago)
    assert sweep_revisions() == 1
    assert turn.snapshots.get().document == cited.document
    turn.delete()
    assert sweep_revisions() == 1


@pytest.mark.req("REL-A13", "REL-A7")
@pytest.mark.django_db
def test_a_citation_moves_with_its_source() -> None:
    passage = put(layer_of("one"), TEXT)
    turn, reader = new_turn("one")
    search(turn, reader)
    assert turn.snapshots.visible_to(again(reader)).count() == 1
    move_source(passage.source, layer=layer_of("vault"), actor=None)
    assert not turn.snapshots.visible_to(again(reader)).exists()
    delete_source(Source.objects.get(pk=passage.source_id), actor=None)
    assert not turn.snapshots.visible_to(again(reader)).exists()
    insider = UserFactory()
    grant(layer_of("vault").knowledge_base, [Access.SEARCH], to=insider, actor=None)
    assert turn.snapshots.visible_to(Reader(insider.pk)).count() == 1


@pytest.mark.django_db
def test_a_citation_is_as_hidden_as_its_source() -> None:
    passage = put(layer_of("one"), TEXT)
    turn, reader = new_turn()
    search(turn, reader)
    Source.objects.filter(pk=passage.source_id).update(enabled=False)
    assert not turn.snapshots.visible_to(again(reader)).exists()
    Source.objects.filter(pk=passage.source_id).update(enabled=True)
    deny(layer_of("one").knowledge_base, to=owner_of(reader), actor=None)
    assert not turn.snapshots.visible_to(again(reader)).exists()
    assert not turn.snapshots.visible_to(Reader(None)).exists()
    delete_knowledge_base(layer_of("one").knowledge_base, actor=None)
    assert not Snapshot.objects.exists()


@pytest.mark.req("R16")
@pytest.mark.django_db
def test_a_query_is_scrubbed_and_forgotten_with_the_log() -> None:
    put(layer_of("one"), TEXT)
    turn, reader = new_turn()
    search(turn, reader, "harbour PL61109010140000071219812874")
    step = TurnStep.objects.get()
    assert step.query == "harbour [IBAN]"
    assert forget_queries() == 0
    TurnStep.objects.update(at=timezone.now() - timedelta(days=181))
    assert forget_queries() == 1
    step.refresh_from_db()
    assert step.query == ""
    assert len(step.hits) == turn.snapshots.count() == 1


@pytest.mark.req("S3-BIL-01", "S2-LOG-01")
@pytest.mark.django_db
def test_a_search_of_a_turn_is_logged(settings: Any) -> None:
    settings.STRATA_TURN_BUDGET = 40
    for number in range(3):
        put(layer_of("one"), f"The harbour has berth {number}.")
    turn, reader = new_turn()
    found = search(turn, reader)
    row = SearchLog.objects.get()
    assert (row.door, row.by_agent, row.returned) == ("turn", True, len(found.hits))
    assert len(row.withheld) == found.withheld > 0
