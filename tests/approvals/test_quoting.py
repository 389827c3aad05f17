"""What approved answers quote of sources that change or go."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from approvals import actions
from approvals.models import PendingQuestion
from knowledge.ingest import run_ingest
from knowledge.models import IngestRun, Source
from knowledge.permissions import Reader
from retrieval.impact import impact_of, keep
from retrieval.impact_pages import places_of, rows_of_impact
from retrieval.models.impact import Act, Moment
from tests.approvals.gaps import QUESTION, approver_of, pending_question
from tests.factories import LayerFactory, StaffFactory, UserFactory, ready_source

pytestmark = pytest.mark.django_db
YARD = "Bicycles are kept in the yard behind the bindery."
TEXT = f"# Yard\n\n{YARD}\n\nThe gate is locked at ten in the evening.\n"


def approved(source: Source, answer: str) -> PendingQuestion:
    """Return an approved answer in the knowledge base of a source."""
    base = source.knowledge_base
    pending = pending_question(base)
    return actions.propose_answer(
        pending,
        actor=approver_of(base),
        question=QUESTION,
        answer=answer,
        layer=source.layer,
        expected_version=pending.version,
    )


@pytest.fixture
def source() -> Source:
    """A document that answers are written from."""
    return ready_source(TEXT, layer=LayerFactory())


def test_an_answer_quotes_the_sentences_that_it_repeats(source: Source) -> None:
    approved(source, f"No, not inside. {YARD} Ask at the desk for the key.")
    assert impact_of(source, TEXT).figures == {"answer": {"stands": 1}}
    other = TEXT.replace("yard", "cellar")
    assert impact_of(source, other).figures == {"answer": {"changes": 1}}
    assert impact_of(source, None).figures == {"answer": {"vanishes": 1}}


def test_an_answer_quotes_what_it_names_by_its_ref(source: Source) -> None:
    document = source.documents.get()
    start = TEXT.index(YARD)
    ref = document.ref(start, start + len(YARD))
    approved(source, f"No, they have a place of their own ({ref}).")
    (span,) = impact_of(source, None).affected
    assert (span.span.words, span.span.start) == (YARD, start)


def test_an_answer_goes_with_its_own_source(source: Source) -> None:
    done = approved(source, "No. Bicycles have a place of their own, outside.")
    assert done.source is not None
    assert impact_of(done.source, None).figures == {"answer": {"vanishes": 1}}
    assert impact_of(source, None).figures == {}


def test_while_a_change_waits_the_answer_that_serves_counts(
    source: Source, settings: Any
) -> None:
    settings.PORTAL_EMBEDS = False
    done = approved(source, f"No, not inside. {YARD}")
    run_ingest(IngestRun.objects.get(source=done.source).pk)
    settings.STRATA_FOUR_EYES = True
    actions.change_answer(
        done, actor=done.author, question=QUESTION, answer="Something else entirely."
    )
    assert impact_of(source, None).figures == {"answer": {"vanishes": 1}}
    assert impact_of(done.source, None).figures == {"answer": {"vanishes": 1}}


def test_only_who_works_on_an_answer_sees_it_named(source: Source) -> None:
    done = approved(source, f"No, not inside. {YARD}")
    rows = rows_of_impact(impact_of(source, None))
    assert done.author is not None
    (place,), hidden = places_of(Reader.for_user(done.author), rows)
    assert (place.things[0].label, hidden) == (f"Answer to “{QUESTION}”", 0)
    assert places_of(Reader.for_user(UserFactory()), rows) == ([], 1)


def test_who_may_not_read_a_source_is_not_shown_its_new_text(
    source: Source, client: Client
) -> None:
    done = approved(source, f"No, not inside. {YARD}")
    report = keep(
        impact_of(source, TEXT.replace("yard", "cellar")),
        source,
        act=Act.REPLACEMENT,
        moment=Moment.BEFORE,
    )
    page = reverse("admin:retrieval_impactreport_change", args=[report.pk])
    boss = StaffFactory(is_superuser=True)
    for person, reads in ((done.author, True), (boss, False)):
        client.force_login(person)
        shown = client.get(page).content.decode()
        assert f"Answer to “{QUESTION}”" in shown
        assert ("cellar" in shown) is reads
