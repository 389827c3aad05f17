"""The log as auditors meet it: what they see, why, once more, drawn and taken away."""

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.test import AsyncClient, Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from knowledge import upkeep
from knowledge.models import AuditEntry, Document, KnowledgeBase, Passage, User
from knowledge.permissions import Access, Reader, deny, grant
from retrieval.charts import charts
from retrieval.engine import find
from retrieval.hidden import count_hidden
from retrieval.journal import Journal
from retrieval.log import record_search
from retrieval.models import SearchDay, SearchLog
from retrieval.models.log import Status
from retrieval.reach import Reach
from retrieval.replay import logged, moves, replay
from retrieval.results import Occasion
from retrieval.retention import age_log
from retrieval.search import search
from retrieval.tuning import SearchType, current, with_values
from retrieval.why import causes_of, expected
from tests.asynchronous import play
from tests.factories import (
    PassageFactory,
    StaffFactory,
    UserFactory,
    ready_source,
)
from tests.retrieval.shelf import layer_of, put, reader_of

pytestmark = pytest.mark.django_db

LEXICAL = {"search_type": SearchType.LEXICAL}


def ask(reader: Reader, query: str, **arguments: Any) -> SearchLog:
    """Search by words and log it; return the row."""
    count = arguments.pop("count", 5)
    tuning = with_values(current(), LEXICAL)
    result = search(reader, query, top_k=count, tuning=tuning)
    found = find(Reach.of(reader), query, tuning=tuning, count=count, journal=Journal())
    row = record_search(
        reader,
        result,
        found,
        occasion=Occasion("portal"),
        query=query,
        count=count,
        **arguments,
    )
    assert row is not None
    return SearchLog.objects.get(pk=row.pk)


def grant_all(user: User, *bases: KnowledgeBase) -> Reader:
    """Return the reader that a person is, who may search these."""
    for base in bases:
        grant(base, [Access.LIST, Access.SEARCH], to=user, actor=None)
    return Reader.for_user(user)


@pytest.fixture
def auditor() -> User:
    """A member of staff who reads the log, and may search the handbook alone."""
    user = StaffFactory(username="auditor", groups=["Auditor"])
    grant_all(user, layer_of("handbook").knowledge_base)
    return user


@pytest.fixture
def asker() -> Reader:
    """Somebody who may search the handbook and the vault, and has asked nothing yet."""
    put(layer_of("handbook"), "The lift stands still on Tuesdays.", title="Lift")
    put(layer_of("vault"), "The secret lift goes down to the vault.", title="Vault")
    return reader_of("handbook", "vault")


def client_of(user: User) -> Client:
    """Return a signed-in browser."""
    client = Client()
    client.force_login(user)
    return client


def page(client: Client, path: str, status: int = 200) -> str:
    """Return a page of the log."""
    response = client.get(f"/admin/retrieval/searchlog/{path}")
    assert response.status_code == status
    return response.content.decode()


# --- Who sees what ---------------------------------------------------------------


@pytest.mark.req("S2-LOG-01", "REL-A3")
def test_an_auditor_reads_of_the_passages_what_they_may_search(
    asker: Reader, auditor: User
) -> None:
    row = ask(asker, "lift")
    assert row.returned == 2
    told = page(client_of(auditor), f"{row.pk}/change/")
    assert "stands still on Tuesdays" in told
    assert "secret" not in told
    assert "vault" not in told
    assert "A passage that you may not read, or that is gone" in told
    assert "handbook, another knowledge base" in told


@pytest.mark.req("R22", "S2-LOG-01")
@pytest.mark.parametrize("role", ["Viewer", "Editor", "Administrator"])
def test_no_other_role_reads_the_log(role: str, asker: Reader) -> None:
    row = ask(asker, "lift")
    client = client_of(StaffFactory(groups=[role]))
    for path in ("", "charts/", f"{row.pk}/change/", f"{row.pk}/replay/"):
        page(client, path, status=403)


@pytest.mark.req("S2-LOG-01")
def test_what_is_gone_and_what_is_closed_look_alike(
    asker: Reader, auditor: User
) -> None:
    row = ask(asker, "lift")
    before = page(client_of(auditor), f"{row.pk}/change/")
    Passage.objects.filter(knowledge_base__slug="vault").delete()
    Document.objects.filter(knowledge_base__slug="vault").delete()
    after = page(client_of(auditor), f"{row.pk}/change/")
    assert before.count("that is gone") == after.count("that is gone") == 1


@pytest.mark.req("S2-LOG-01")
def test_hidden_rows_are_counted_on_demand_and_once(
    auditor: User, asker: Reader
) -> None:
    some = reader_of("handbook")
    row = ask(some, "lift")
    assert row.hidden_rows is None
    client = client_of(auditor)
    assert "Count the rows" in page(client, f"{row.pk}/change/")
    where = f"/admin/retrieval/searchlog/{row.pk}/hidden/"
    assert client.get(where).status_code == 404
    client.post(where)
    row.refresh_from_db()
    assert row.hidden_rows == 1
    assert "1 candidate, counted" in page(client, f"{row.pk}/change/")
    assert AuditEntry.objects.filter(verb="counted hidden rows").count() == 1
    client.post(where)
    assert AuditEntry.objects.filter(verb="counted hidden rows").count() == 1
    # For whoever sees all there is nothing to count.
    assert count_hidden(ask(asker, "lift")) == 0


# --- Why -------------------------------------------------------------------------


def causes(row: SearchLog, reader: Reader) -> dict[int, Any]:
    """Return the four causes by number."""
    return dict(enumerate(causes_of(logged(row, reader), reader), start=1))


@pytest.mark.req("S2-CHK-07")
def test_the_four_causes_stand_in_their_order(asker: Reader) -> None:
    found = causes(ask(asker, "lift"), asker)
    assert [cause.title for cause in found.values()] == [
        "Passages too large",
        "Cut inside a sentence, without overlap",
        "Too few passages in the context",
        "The same fact in several versions, the old one first",
    ]
    assert [cause.applies for cause in found.values()] == [False] * 4


@pytest.mark.req("S2-CHK-07")
def test_finds_passages_that_are_too_large() -> None:
    layer = layer_of("handbook")
    reader = reader_of("handbook")
    put(layer, "The lift. " * 200, title="All about it")
    mixed = put(layer, "The lift is old. The stairs are new. The roof leaks. Yes.")
    for start in (17, 36, 50):
        mixed.document.sections.create(
            knowledge_base=mixed.knowledge_base,
            ordinal=start,
            kind="heading",
            level=1,
            start=start,
            end=start + 5,
        )
    cause = causes(ask(reader, "lift"), reader)[1]
    assert cause.applies
    assert {each.note.split(";")[0] for each in cause.evidence} == {
        "2000 characters",
        "The question's words stand in 1 of its 4 sections.",
    }


@pytest.mark.req("S2-CHK-07", "S2-CHK-04")
def test_finds_passages_that_are_cut_where_nothing_repeats_it() -> None:
    layer = layer_of("handbook")
    reader = reader_of("handbook")
    text = "The lift stands still on every Tuesday until the stairs are done."
    source = ready_source(text, layer=layer)
    Passage.objects.filter(source=source).delete()
    document = source.documents.get()
    PassageFactory(document=document, start=0, end=30, cut_end=True)
    PassageFactory(document=document, ordinal=1, start=30, end=65, cut_start=True)
    cause = causes(ask(reader, "lift"), reader)[2]
    assert cause.applies
    assert cause.evidence[0].note == "It stops inside a sentence."
    # With an overlap, nothing is lost.
    Passage.objects.filter(ordinal=1).update(start=20)
    assert not causes(ask(reader, "lift"), reader)[2].applies


@pytest.mark.req("S2-CHK-07", "S3-LOG-01")
def test_finds_that_too_few_were_passed_on() -> None:
    layer = layer_of("handbook")
    reader = reader_of("handbook")
    passages = [
        put(layer, f"The lift of house {number}.", title=f"House {number}")
        for number in range(4)
    ]
    cause = causes(ask(reader, "lift", count=1), reader)[3]
    assert cause.applies
    assert cause.sentence.startswith("1 were asked for")
    assert "words no." in cause.evidence[0].note
    withheld = ask(reader, "lift", count=4, withheld=[passages[0].pk])
    cause = causes(withheld, reader)[3]
    assert cause.sentence == "The turn's budget withheld 1 passage that was found."
    assert not causes(ask(reader, "lift"), reader)[3].applies


@pytest.mark.req("S2-CHK-07", "S1-DAT-06")
def test_finds_an_old_version_above_the_new_one() -> None:
    layer = layer_of("handbook")
    reader = reader_of("handbook")
    old = put(layer, "The lift costs 20 crowns a month. The lift.", title="Old")
    new = put(layer, "The lift costs 30 crowns a month.", title="New")
    Document.objects.filter(pk=old.document_id).update(
        date=date(2024, 1, 1), date_source="file"
    )
    Document.objects.filter(pk=new.document_id).update(
        date=date(2026, 1, 1), date_source="file"
    )
    row = ask(reader, "lift")
    first = row.hits[0]["passage"]
    if first == new.pk:  # whichever of the two the words put first is made the old one
        Document.objects.filter(pk=new.document_id).update(date=date(2020, 1, 1))
    cause = causes(row, reader)[4]
    assert cause.applies
    assert "says nearly the same" in cause.evidence[0].note


@pytest.mark.req("S2-CHK-07")
def test_nothing_is_told_of_passages_that_may_not_be_read(asker: Reader) -> None:
    row = ask(asker, "lift")
    stranger = Reader.for_user(UserFactory())
    found = causes(row, stranger)
    assert [found[number].applies for number in (1, 2, 4)] == [None] * 3
    assert not any(cause.evidence for cause in found.values())


@pytest.mark.req("S2-LOG-01")
def test_tells_what_became_of_an_expected_passage(asker: Reader) -> None:
    layer = layer_of("handbook")
    passage = put(layer, "The stairs are closed; take the lift.", title="Stairs")
    ref = passage.document.ref(passage.start, passage.end)
    row = ask(asker, "lift", count=1)
    seen = logged(row, asker)
    told = expected(seen, f"https://portal/read/{ref}/#cited", asker).sentences
    assert any("In words it was no." in each for each in told)
    for written in ("d1:0-1", "nonsense"):
        assert "no such passage" in expected(seen, written, asker).sentences[0]
    elsewhere = put(layer_of("elsewhere"), "The lift of another house.")
    other = reader_of("elsewhere")
    ref = elsewhere.document.ref(elsewhere.start, elsewhere.end)
    assert "closed to whoever asked" in expected(seen, ref, other).sentences[0]


# --- Once more -------------------------------------------------------------------


@pytest.mark.req("R19", "S2-LOG-01")
def test_a_replay_runs_as_the_same_reader_and_leaves_no_trace(
    asker: Reader, auditor: User
) -> None:
    row = ask(asker, "lift")
    viewer = Reader.for_user(auditor)
    again = replay(row, viewer, with_values(current(), LEXICAL), count=5)
    assert again.result is not None
    assert len(again.hits) == 2
    assert [hit.citation is not None for hit in again.hits].count(True) == 1
    assert moves(logged(row, viewer).hits, again.hits) == {
        hit.ref: 0 for hit in again.hits
    }
    assert SearchLog.objects.count() == 1
    # Their grants are those of now.
    assert asker.user_id is not None
    user = User.objects.get(pk=asker.user_id)
    deny(layer_of("vault").knowledge_base, to=user, actor=None)
    assert len(replay(row, viewer, current(), count=5).hits) == 1


@pytest.mark.req("R19")
def test_a_replay_shows_what_other_settings_change(
    asker: Reader, auditor: User
) -> None:
    put(layer_of("handbook"), "Every lift, each lift, any lift.", title="Lifts")
    row = ask(asker, "lift")
    client = client_of(auditor)
    told = page(client, f"{row.pk}/replay/")
    assert "Then" in told
    assert "secret" not in told
    query = (
        "?count=1&search_type=lexical&fusion=rrf&weight_meaning=0.7"
        "&weight_keywords=0.3&weight_codes=1&weight_relaxed=0.3&rrf_k=60"
        "&keyword_slots=1&candidates=50&similarity_floor=-1&rerank_depth=20"
    )
    told = page(client, f"{row.pk}/replay/{query}")
    assert "Other than the settings of now: Type of search, Reranker" in told
    assert told.count("is-gone") == 2
    told = page(client, f"{row.pk}/replay/{query.replace('count=1', 'count=99')}")
    assert "less than or equal to 50" in told


@pytest.mark.req("R19")
def test_a_replay_says_when_it_cannot_be_run(asker: Reader, auditor: User) -> None:
    row = ask(asker, "lift")
    viewer = Reader.for_user(auditor)
    row.layers = []
    assert "layers it was about are gone" in replay(row, viewer, current(), count=5).why
    User.objects.filter(pk=asker.user_id).delete()
    row.refresh_from_db()
    assert "not here any more" in replay(row, viewer, current(), count=5).why


# --- All of them -----------------------------------------------------------------


def body_of(response: Any) -> str:
    """Return a streamed body."""
    return b"".join(response.streaming_content).decode()


@pytest.mark.req("S2-LOG-01", "REL-A3")
def test_the_export_holds_what_its_reader_may_see_and_is_recorded(
    asker: Reader, auditor: User
) -> None:
    ask(asker, "=lift")
    client = client_of(auditor)
    where = "/admin/retrieval/searchlog/export/"
    told = body_of(client.post(where, {"format": "jsonl"}))
    (row,) = [json.loads(line) for line in told.splitlines()]
    assert row["knowledge_bases"] == ["handbook", "another"]
    assert sorted(hit["ref"] is None for hit in row["passages"]) == [False, True]
    assert row["question"] == "=lift"
    table = list(
        csv.DictReader(io.StringIO(body_of(client.post(where, {"format": "csv"}))))
    )
    # No table program takes it for a formula.
    assert table[0]["question"] == "'=lift"
    assert table[0]["outcome"] in Status.values
    entry = AuditEntry.objects.filter(verb="exported the search log").first()
    assert entry is not None
    assert (entry.actor, entry.detail["rows"]) == (auditor, 1)
    narrowed = client.post(f"{where}?door__exact=api", {"format": "jsonl"})
    assert body_of(narrowed) == ""
    assert client.get(where).status_code == 404
    assert client.post(f"{where}?at__year=x", {"format": "csv"}).status_code == 404
    assert client.post(where, {"format": "exe"}).status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.req("S2-LOG-01")
def test_the_export_is_streamed_where_requests_are_served_asynchronously(
    asker: Reader, auditor: User
) -> None:
    ask(asker, "lift")

    async def read(client: AsyncClient) -> bytes:
        where = "/admin/retrieval/searchlog/export/"
        response: Any = await client.post(where, {"format": "jsonl"})
        return b"".join([part async for part in response.streaming_content])

    assert json.loads(play(read, auditor))["question"] == "lift"


@pytest.mark.req("S2-LOG-02")
def test_after_its_time_the_log_is_counts(settings: Settings, asker: Reader) -> None:
    settings.STRATA_KEEP_LOG_DAYS = 30
    rows = [ask(asker, "lift"), ask(asker, "lift"), ask(asker, "stairs")]
    long_ago = datetime.combine(
        timezone.now().date() - timedelta(days=40), datetime.min.time(), UTC
    )
    for hours, row in zip((1, 23, 25), rows, strict=True):
        SearchLog.objects.filter(pk=row.pk).update(at=long_ago + timedelta(hours=hours))
    fresh = ask(asker, "lift")
    # The worker's daily upkeep does it.
    assert age_log in upkeep.ALSO
    for _time in range(2):
        age_log()
        assert SearchLog.objects.get() == fresh
        counted = SearchDay.objects.order_by("day").values_list(
            "day", "door", "status", "searches"
        )
        assert list(counted) == [
            (long_ago.date(), "portal", "found", 2),
            (long_ago.date() + timedelta(days=1), "portal", "not_found", 1),
        ]
    assert SearchDay.objects.get(searches=2).layer_id == rows[0].layer_id
    # The charts go on counting them.
    assert charts(13, UserFactory()).total == 4


@pytest.mark.req("S2-LOG-01")
def test_charts_count_by_week_outcome_and_layer(asker: Reader, auditor: User) -> None:
    for _time in range(3):
        ask(asker, "lift")
    ask(asker, "nothing of the kind")
    SearchLog.objects.update(total_ms=40)
    SearchLog.objects.filter(returned=0).update(total_ms=400)
    drawn = charts(13, auditor)
    week = drawn.weeks[-1]
    assert week.counts == {"found": 3, "partly_found": 0, "not_found": 1}
    assert week.median == 40
    assert week.slow is not None
    assert 300 < week.slow < 400
    found, _partly, missing = drawn.outcomes
    assert (found.total, found.share, missing.share) == (3, 75, 25)
    assert len(found.shapes) == 13
    names = {row.name for row in drawn.layers}
    assert names <= {"handbook/main", "other knowledge bases", "nothing came back"}
    assert "nothing came back" in names
    assert {line.key for line in drawn.lines} == {"slow", "median"}


@pytest.mark.req("S2-LOG-01")
def test_the_pages_are_drawn_also_where_numbers_have_commas(
    asker: Reader, auditor: User
) -> None:
    for _time in range(7):
        ask(asker, "lift")
    client = client_of(auditor)
    client.cookies["django_language"] = "vi"
    told = page(client, "charts/?weeks=52")
    rectangles = told.split('class="chart-bar"')[1:]
    assert rectangles
    assert not any("," in each.split(">")[0] for each in rectangles)
    assert "lift" in page(client, "")
