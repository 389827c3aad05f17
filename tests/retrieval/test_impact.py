"""What quotes a source, before and after its text changes or goes."""

import io

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django.fixtures import Settings

from knowledge import dependents
from knowledge.actions import (
    ActionError,
    Upload,
    UploadError,
    delete_source,
    move_source,
    replace_source,
    upload_source,
)
from knowledge.dependents import tell_published
from knowledge.ingest import run_ingest
from knowledge.models import KnowledgeBase, Layer, Source
from knowledge.models.ingest import RunState
from knowledge.permissions import Access, Reader, grant
from knowledge.purging import purge_source
from retrieval.impact import go_ahead, impact_of, look_before
from retrieval.models import ImpactReport, Snapshot
from retrieval.models.impact import Act, Moment
from retrieval.snapshots import Standing, stands_of
from tests.factories import StaffFactory, UserFactory, ready_source
from tests.retrieval.receipts import issued, span_of
from tests.retrieval.shelf import layer_of
from tests.retrieval.test_snapshots import again, new_turn

FEES = (
    "# Fees\n\nA transfer costs 5 euro.\n\n# Deposits\n\nA cash deposit is free.\n\n"
    "# Cards\n\nCards are sent by post.\n"
)
TRANSFER = "A transfer costs 5 euro."
DEPOSIT = "A cash deposit is free."
CARDS = "Cards are sent by post."
NEW_FEES = "# Fees\n\nA transfer costs 6 euro.\n\n# Cards\n\nCards are sent by post.\n"


@pytest.fixture(autouse=True)
def words_alone(settings: Settings) -> None:
    """Find by words, so that no model is needed."""
    settings.PORTAL_EMBEDS = False


@pytest.fixture
def layer(db: None) -> Layer:
    """The layer that the sources of this module are in."""
    return layer_of("one")


def upload(text: str, name: str = "fees.md") -> Upload:
    """Return a file."""
    return Upload(io.BytesIO(text.encode()), name)


def ingested(source: Source) -> Source:
    """Carry a source's newest run to its end."""
    assert run_ingest(source.runs.latest("generation").pk) == RunState.DONE
    source.refresh_from_db()
    return source


def new_source(layer: Layer, text: str = FEES) -> Source:
    """Return a source that was brought in from a file."""
    return ingested(upload_source(upload(text), layer=layer, actor=None))


def cited(source: Source, words: str) -> Reader:
    """Have a turn of a new agent cite some words of a source; its reader."""
    turn, reader = new_turn("one")
    document = source.documents.get(is_current=True)
    start = document.text.index(words)
    end = start + len(words)
    Snapshot.objects.create(
        turn=turn,
        number=1,
        knowledge_base=source.knowledge_base,
        source=source,
        document=document,
        revision=document.number,
        start=start,
        end=end,
        ref=document.ref(start, end),
        text=words,
        text_sha256="0" * 64,
        layer="main",
        lines="1",
        text_origin="text",
        score=1.0,
        indexed_at=document.created_at,
    )
    return reader


def quoted(source: Source, reader: Reader, words: str) -> None:
    """Issue a receipt that quotes some words of a source."""
    passage = source.passages.get(text__contains=words)
    first = passage.text.index(words)
    span = span_of(passage, quotes=((first, first + len(words)),))
    issued(again(reader), passage, read=[span], draft="As it is said [S1].")


@pytest.mark.django_db
def test_a_new_file_is_looked_at_first_and_reported_as_it_goes_live(
    layer: Layer,
) -> None:
    source = new_source(layer)
    reader = cited(source, TRANSFER)
    cited(source, DEPOSIT)
    cited(source, CARDS)
    quoted(source, reader, DEPOSIT)
    quoted(source, reader, CARDS)
    actor = UserFactory()

    before = look_before(source, upload(NEW_FEES), actor=actor)

    source.refresh_from_db()
    assert source.documents.get().text == FEES.rstrip()
    assert source.runs.count() == 1
    counted = {
        "citation": {"changes": 1, "vanishes": 1, "stands": 1},
        "receipt": {"vanishes": 1, "stands": 1},
    }
    assert before.figures == counted
    changed = before.spans.get(outcome="changes")
    assert "costs 6 euro" in changed.now
    assert not before.spans.filter(outcome="vanishes").exclude(now="").exists()

    ingested(go_ahead(before, actor=actor))

    after = ImpactReport.objects.get(moment=Moment.AFTER)
    assert after.earlier == before
    assert after.made_by == actor
    assert after.figures == counted
    assert after.old_revision == before.old_revision
    assert after.new_revision == source.documents.get(is_current=True).number
    # Told again, as after a worker was killed: nothing is counted twice.
    tell_published(source.pk)
    assert ImpactReport.objects.filter(moment=Moment.AFTER).count() == 1
    stands = stands_of(Snapshot.objects.all()).values()
    assert sorted(stand.standing for stand in stands) == [
        Standing.CHANGED,
        Standing.CHANGED,
        Standing.UNCHANGED,
    ]


@pytest.mark.django_db
def test_a_file_that_nobody_looked_at_is_reported_too(layer: Layer) -> None:
    source = new_source(layer)
    cited(source, TRANSFER)
    ingested(replace_source(source, upload(NEW_FEES), actor=None))
    report = ImpactReport.objects.get()
    assert report.figures == {"citation": {"changes": 1}}
    # What was out of date before is told apart the next time, and is no news alone.
    for number in range(2):
        longer = f"# Preface {number}\n\nRead this.\n\n{NEW_FEES}"
        ingested(replace_source(source, upload(longer), actor=None))
        if number == 0:
            assert ImpactReport.objects.get() == report
            cited(source, CARDS)
    figures = {"citation": {"before": 1, "stands": 1}}
    assert ImpactReport.objects.latest("made_at").figures == figures


@pytest.mark.django_db
def test_a_report_that_fails_costs_nobody_the_ingest(layer: Layer) -> None:
    """The text is live; whoever is told next still is."""
    told: list[int] = []

    def fail(source_id: int) -> None:
        told.append(source_id)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    dependents.published.insert(0, fail)
    try:
        source = new_source(layer)
        cited(source, TRANSFER)
        ingested(replace_source(source, upload(NEW_FEES), actor=None))
    finally:
        dependents.published.remove(fail)
    assert told == [source.pk] * 2
    assert ImpactReport.objects.get().figures == {"citation": {"changes": 1}}


@pytest.mark.django_db
def test_a_source_that_nothing_quotes_leaves_no_report(layer: Layer) -> None:
    source = new_source(layer)
    ingested(replace_source(source, upload(NEW_FEES), actor=None))
    delete_source(source, actor=None)
    assert not ImpactReport.objects.exists()


@pytest.mark.req("REL-K4")
@pytest.mark.django_db
def test_a_removal_is_reported_in_its_own_transaction(layer: Layer) -> None:
    source = new_source(layer)
    reader = cited(source, TRANSFER)
    quoted(source, reader, TRANSFER)
    assert impact_of(source, None).figures == {
        "citation": {"vanishes": 1},
        "receipt": {"vanishes": 1},
    }
    actor = UserFactory()
    delete_source(source, actor=actor)
    report = ImpactReport.objects.get()
    assert (report.act, report.source, report.title) == (Act.REMOVAL, None, "fees")
    assert report.made_by == actor
    assert report.spans.count() == 2
    snapshot = Snapshot.objects.get()
    assert stands_of([snapshot])[snapshot.pk].standing is Standing.REMOVED


@pytest.mark.django_db
def test_a_purge_leaves_figures_but_neither_names_nor_words(layer: Layer) -> None:
    source = new_source(layer)
    cited(source, TRANSFER)
    ingested(replace_source(source, upload(NEW_FEES), actor=None))
    cited(source, CARDS)
    purge_source(source, actor=None)
    reports = ImpactReport.objects.all()
    assert [report.act for report in reports] == [Act.REMOVAL, Act.REPLACEMENT]
    for report in reports:
        assert (report.title, report.path) == ("", "")
        assert report.figures
        assert set(report.spans.values_list("now", flat=True)) == {""}


@pytest.mark.django_db
def test_a_report_follows_its_source_to_another_knowledge_base(layer: Layer) -> None:
    source = new_source(layer)
    cited(source, TRANSFER)
    report = look_before(source, upload(NEW_FEES), actor=None)
    move_source(source, layer=layer_of("two"), actor=None)
    report.refresh_from_db()
    assert report.knowledge_base.slug == "two"


@pytest.mark.req("REL-K5")
@pytest.mark.django_db
def test_a_file_is_not_put_in_place_of_a_text_that_was_not_looked_at(
    layer: Layer,
) -> None:
    source = new_source(layer)
    report = look_before(source, upload(NEW_FEES), actor=None)
    ingested(replace_source(source, upload("Quite another text.\n"), actor=None))
    with pytest.raises(ActionError, match="another text since you looked"):
        go_ahead(report, actor=None)
    again = look_before(source, upload(NEW_FEES), actor=None)
    go_ahead(again, actor=None)
    with pytest.raises(ActionError, match="already"):
        go_ahead(again, actor=None)


@pytest.mark.django_db
def test_a_file_that_cannot_be_read_is_refused_with_a_sentence(layer: Layer) -> None:
    source = new_source(layer)
    with pytest.raises(UploadError, match=r"fees\.md: "):
        look_before(source, upload("%PDF-1.7 broken", "fees.pdf"), actor=None)
    assert not ImpactReport.objects.exists()


@pytest.mark.django_db
def test_many_citations_cost_no_more_queries(
    layer: Layer,
) -> None:
    source = new_source(layer)
    cited(source, TRANSFER)
    with CaptureQueriesContext(connection) as few:
        assert impact_of(source, NEW_FEES).figures == {"citation": {"changes": 1}}
    one = Snapshot.objects.get()
    turn = one.turn
    Snapshot.objects.bulk_create(
        Snapshot(
            **{
                field.attname: getattr(one, field.attname)
                for field in Snapshot._meta.concrete_fields
                if field.attname not in {"id", "number", "ref"}
            },
            number=number,
            ref=f"{one.ref}#{number}",
        )
        for number in range(2, 3000)
    )
    assert turn is not None
    with CaptureQueriesContext(connection) as many:
        assert impact_of(source, NEW_FEES).figures == {"citation": {"changes": 2999}}
    assert len(many) == len(few)


# --- The pages -------------------------------------------------------------------


def staff(base: KnowledgeBase, *, reads: bool) -> Client:
    """Return a superuser's client, who has granted themself to read there or not."""
    person = StaffFactory(is_superuser=True)
    if reads:
        grant(base, [Access.LIST, Access.SEARCH], to=person, actor=None)
    client = Client()
    client.force_login(person)
    return client


@pytest.mark.django_db
def test_the_pages_show_to_whoever_may_read_and_count_for_the_others(
    layer: Layer,
) -> None:
    source = new_source(layer)
    cited(source, TRANSFER)
    look = reverse("admin:retrieval_impactreport_look", args=[source.pk])
    removal = reverse("admin:retrieval_impactreport_removal", args=[source.pk])
    for reads in (True, False):
        client = staff(layer.knowledge_base, reads=reads)
        answer = client.post(look, {"file": io.BytesIO(NEW_FEES.encode())}, follow=True)
        page = answer.content.decode()
        assert "Put the file in its place" in page
        assert ("costs" in page) is reads
        assert ("only counted" in page) is not reads
        page = client.get(removal).content.decode()
        assert ("A transfer costs 5 euro." in page) is reads
        delete = reverse("admin:knowledge_source_delete", args=[source.pk])
        assert "1 thing quotes fees" in client.get(delete).content.decode()
        asked = {"action": "delete_selected", "_selected_action": [source.pk]}
        chosen = client.post(reverse("admin:knowledge_source_changelist"), asked)
        assert "1 thing quotes fees" in chosen.content.decode()
        assert "was not looked up" not in chosen.content.decode()
    # Of many at once the first are looked up, and that there are more is said.
    others = [ready_source(TRANSFER, layer=layer).pk for _number in range(21)]
    asked["_selected_action"] = [source.pk, *others]
    chosen = client.post(reverse("admin:knowledge_source_changelist"), asked)
    assert chosen.content.decode().count('class="impact-warning"') == 20
    assert "What quotes 2 more sources was not looked up" in chosen.content.decode()
