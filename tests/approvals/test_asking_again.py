"""From an approval to the closed gap: ingest, asking again, and workers that die."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import actions
from approvals.asking_again import due, follow_up
from approvals.likeness import learn_wordings, unknown_wordings
from approvals.models import Delivery, PendingQuestion
from approvals.models.question import Channel, Gap, State
from approvals.queue import nearest_passages, preview, similar_questions, wanted_first
from knowledge.ingest import run_ingest
from knowledge.models import (
    AgentClient,
    Document,
    IngestRun,
    LedgerEntry,
    Passage,
    Source,
)
from knowledge.permissions import Reader, grant
from knowledge.runs import claim
from retrieval.ask import ask
from retrieval.models import Interaction, SearchLog
from retrieval.results import Occasion
from tests.approvals.gaps import (
    ANSWER,
    BOTH,
    QUESTION,
    approver_of,
    asked,
    pending_question,
)
from tests.factories import KnowledgeBaseFactory, LayerFactory, UserFactory
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

IN_POLISH = "Czy mogę trzymać rower w czytelni?"


def ingest() -> None:
    """Bring in whatever waits."""
    for run in IngestRun.objects.filter(state="queued"):
        run_ingest(run.pk)


@pytest.mark.req("S2-APR-02", "S2-APR-10", "R17")
def test_an_approved_answer_closes_the_gap_in_the_words_it_was_asked_in(
    corpus: Corpus,
) -> None:
    person = approver_of(corpus.handbook)
    pending = pending_question(corpus.handbook)
    other = pending_question(corpus.handbook, text=IN_POLISH)
    actions.merge([other], into=pending, actor=person)
    before = Interaction.objects.count(), SearchLog.objects.count()

    actions.propose_answer(pending, actor=person, question=QUESTION, answer=ANSWER)
    assert not due().filter(source__state="ready").exists()
    ingest()
    charged = LedgerEntry.objects.count()
    assert follow_up() == 1

    pending.refresh_from_db()
    assert (pending.state, pending.gap) == (State.APPROVED, Gap.CLOSED)
    assert pending.gap_checked_at is not None
    assert pending.wordings.get().finds
    # A wording of a duplicate is asked too, and keeps what came of it.
    assert other.wordings.get().finds is not None
    # Asking again leaves no trace (R19), and is done once.
    assert (Interaction.objects.count(), SearchLog.objects.count()) == before
    assert LedgerEntry.objects.count() == charged
    assert follow_up() == 0

    # Whoever asks finds it, and what is cited is the approved pair.
    answer = ask(Reader.for_user(person), QUESTION, occasion=Occasion("portal"))
    first = answer.passages[0]
    assert answer.status != "not_found"
    assert (first.text, first.citation.title) == (ANSWER, QUESTION)


def test_an_answer_to_something_else_leaves_the_gap_open(corpus: Corpus) -> None:
    person = approver_of(corpus.handbook)
    pending = pending_question(corpus.handbook)
    actions.propose_answer(
        pending,
        actor=person,
        question="When is the next fire drill?",
        answer="On the first Monday of March.",
    )
    ingest()
    follow_up()

    pending.refresh_from_db()
    assert (pending.state, pending.gap) == (State.APPROVED, Gap.OPEN)
    assert pending.wordings.get().finds is False


def test_without_the_model_it_is_asked_again_later(
    corpus: Corpus, settings: Any
) -> None:
    person = approver_of(corpus.handbook)
    pending = pending_question(corpus.handbook)
    actions.propose_answer(pending, actor=person, question=QUESTION, answer=ANSWER)
    ingest()
    url = settings.STRATA_MODEL_URL
    settings.STRATA_MODEL_URL = "http://127.0.0.1:9"
    follow_up()
    pending.refresh_from_db()
    assert pending.gap == Gap.UNKNOWN

    settings.STRATA_MODEL_URL = url
    # Not at once again, but some minutes later.
    assert (pending.follow_attempts, follow_up()) == (1, 0)
    PendingQuestion.objects.update(follow_after=timezone.now())
    follow_up()
    pending.refresh_from_db()
    assert pending.gap == Gap.CLOSED
    assert (pending.follow_attempts, pending.follow_after) == (0, None)


def test_one_that_fails_again_and_again_lets_the_others_pass(settings: Any) -> None:
    settings.PORTAL_EMBEDS = False
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    owner = UserFactory()
    grant(layer.knowledge_base, BOTH, to=owner, actor=None)
    client = AgentClient.objects.create(owner=owner, name="kiosk")
    client.knowledge_bases.add(layer.knowledge_base)
    broken, sound = (
        pending_question(layer.knowledge_base, text=text) for text in ("One?", "Two?")
    )
    for each in (broken, sound):
        actions.propose_answer(
            each, actor=person, question=each.question, answer=f"Yes to {each.pk}."
        )
    ingest()
    # What is in the way of telling it.
    Delivery.objects.create(
        client=client, pending=broken, revision=1, kind="answer", sequence=9
    )

    assert follow_up() == 1
    sound.refresh_from_db()
    assert sound.gap != Gap.UNKNOWN
    assert not due().exists()
    # Behind what was never tried, when its time comes.
    PendingQuestion.objects.filter(pk=broken.pk).update(follow_after=timezone.now())
    PendingQuestion.objects.filter(pk=sound.pk).update(gap=Gap.UNKNOWN)
    assert list(due()) == [sound, broken]
    # What is written anew begins anew.
    changed = actions.change_answer(
        broken, actor=person, question="One?", answer="No to that."
    )
    assert (changed.follow_attempts, changed.follow_after) == (0, None)


@pytest.mark.req("REL-W7")
def test_a_worker_killed_on_the_way_publishes_and_tells_once(settings: Any) -> None:
    settings.PORTAL_EMBEDS = False
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    owner = UserFactory()
    grant(layer.knowledge_base, BOTH, to=owner, actor=None)
    client = AgentClient.objects.create(owner=owner, name="kiosk")
    client.knowledge_bases.add(layer.knowledge_base)
    pending = pending_question(layer.knowledge_base)
    actions.propose_answer(pending, actor=person, question=QUESTION, answer=ANSWER)

    # Killed after it took the run: all that is left of it is a lease that ends.
    run = claim(IngestRun.objects.get().pk)
    assert run is not None
    follow_up()
    assert not Delivery.objects.exists()
    IngestRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    for _again in range(2):
        run_ingest(run.pk)
    # Killed after publishing, or after telling: the next round finds it done.
    for _again in range(2):
        follow_up()

    assert Document.objects.filter(source__kind="qa", is_current=True).count() == 1
    assert Passage.objects.filter(source__kind="qa").count() == 1
    assert Delivery.objects.count() == 1


def test_an_answer_that_the_register_keeps_out_is_not_announced(
    settings: Any,
) -> None:
    settings.PORTAL_EMBEDS = False
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    layer.knowledge_base.never_rules.create(
        kind="content", pattern="bindery", reason="The bindery is not ours."
    )
    pending = pending_question(layer.knowledge_base)
    actions.propose_answer(pending, actor=person, question=QUESTION, answer=ANSWER)
    ingest()
    follow_up()

    pending.refresh_from_db()
    source = Source.objects.get()
    assert (source.state, pending.gap) == ("failed", Gap.UNKNOWN)
    assert "The bindery is not ours." in source.state_reason


# --- The queue ----------------------------------------------------------------------


def test_the_most_wanted_come_first_and_what_is_put_off_last() -> None:
    base = KnowledgeBaseFactory()
    person = approver_of(base)
    now = timezone.now()
    old, new, wanted, later = (
        pending_question(base, text=text, at=now - timedelta(days=days))
        for text, days in (("Old?", 9), ("New?", 1), ("Wanted?", 2), ("Later?", 10))
    )
    for _number in range(2):
        pending_question(base, text="Wanted?", asker=UserFactory())
    actions.snooze(later, actor=person, until=now + timedelta(days=1))

    assert list(wanted_first(person)) == [wanted, old, new, later]
    assert not wanted_first(approver_of(KnowledgeBaseFactory()))


@pytest.mark.req("S2-APR-04", "REL-W8")
def test_alike_questions_are_offered_in_any_language_to_who_works_on_them(
    corpus: Corpus,
) -> None:
    person = approver_of(corpus.handbook)
    pending = pending_question(corpus.handbook)
    reworded = pending_question(
        corpus.handbook, text="Can I take my bicycle into the reading room?"
    )
    polish = pending_question(corpus.handbook, text=IN_POLISH)
    pending_question(corpus.handbook, text="Who signs a travel order?")
    elsewhere = pending_question(corpus.branches)
    assert similar_questions(pending, person) == []

    assert learn_wordings() == 5
    assert not unknown_wordings().exists()
    found = similar_questions(pending, person)
    assert [each.pending for each in found] == [reworded, polish]
    assert 1 > found[0].likeness > found[1].likeness
    both = approver_of(corpus.handbook, corpus.branches)
    assert elsewhere in [each.pending for each in similar_questions(pending, both)]


@pytest.mark.req("REL-W8")
def test_the_nearest_passages_are_those_that_the_approver_may_see(
    corpus: Corpus,
) -> None:
    pending = pending_question(corpus.handbook, text="Who pays for a lost card?")
    reader = Reader.for_user(approver_of(corpus.handbook))

    result = nearest_passages(pending, reader, 3)
    assert result is not None
    hits = result.hits
    assert len(hits) == 3
    assert {hit.citation.knowledge_base for hit in hits} == {corpus.handbook.slug}
    nothing = nearest_passages(pending, Reader.for_user(UserFactory()))
    assert nothing is not None
    assert nothing.hits == ()
    assert not SearchLog.objects.exists()


def test_the_preview_is_what_is_found_later(settings: Any) -> None:
    settings.PORTAL_EMBEDS = False
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = pending_question(layer.knowledge_base)
    shown = preview(pending, question=QUESTION, answer=ANSWER, layer=layer)
    actions.propose_answer(pending, actor=person, question=QUESTION, answer=ANSWER)
    ingest()

    source = Source.objects.get()
    assert (shown.title, shown.file) == (source.documents.get().title, source.path)
    assert list(shown.passages) == [each.text for each in Passage.objects.all()]


def test_the_gap_of_an_answer_is_that_of_its_own_place(corpus: Corpus) -> None:
    # The question is asked over two knowledge bases and answered in one of them.
    person = approver_of(corpus.branches)
    pending = pending_question(corpus.handbook, corpus.branches)
    actions.propose_answer(pending, actor=person, question=QUESTION, answer=ANSWER)
    ingest()
    follow_up()

    pending.refresh_from_db()
    assert pending.gap == Gap.CLOSED
    assert pending.source.knowledge_base == corpus.branches


def test_the_same_words_again_reopen_nothing_but_an_open_gap_counts_them(
    settings: Any,
) -> None:
    settings.PORTAL_EMBEDS = False
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = pending_question(layer.knowledge_base)
    actions.propose_answer(pending, actor=person, question=QUESTION, answer=ANSWER)
    PendingQuestion.objects.update(gap=Gap.OPEN)
    again = pending_question(layer.knowledge_base, asker=UserFactory())
    assert (again.pk, again.asked_count) == (pending.pk, 2)

    PendingQuestion.objects.update(gap=Gap.CLOSED)
    anew = pending_question(layer.knowledge_base, asker=UserFactory())
    assert anew.pk != pending.pk


def test_who_sends_what_they_asked_is_named_among_the_askers() -> None:
    base = KnowledgeBaseFactory()
    reader = UserFactory()
    grant(base, BOTH, to=reader, actor=None)
    interaction = asked(reader, QUESTION, base)
    pending = actions.send_to_person(
        Reader.for_user(reader),
        interaction_id=interaction.public_id,
        channel=Channel.PORTAL,
    )
    assert pending.wordings.get().asker == reader
