"""What agent clients are told of approved answers: each of them once."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from approvals import actions
from approvals.asking_again import follow_up
from approvals.delivering import (
    acknowledge,
    announce,
    deliveries_after,
    reader_of_client,
)
from approvals.models import Delivery, PendingQuestion, Subscriber
from approvals.models.question import State
from knowledge.actions import delete_source, move_source, switch_source
from knowledge.ingest import run_ingest
from knowledge.models import AgentClient, IngestRun, Layer, User
from knowledge.permissions import deny, grant
from knowledge.purging import purge_source
from tests.approvals.gaps import (
    ANSWER,
    BOTH,
    QUESTION,
    approver_of,
    pending_question,
)
from tests.factories import LayerFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def without_vectors(settings: Any) -> None:
    """Words are enough here."""
    settings.PORTAL_EMBEDS = False


@pytest.fixture
def layer() -> Layer:
    """Where answers go."""
    found: Layer = LayerFactory()
    return found


@pytest.fixture
def person(layer: Layer) -> User:
    """Who answers."""
    return approver_of(layer.knowledge_base)


def client_of(*layers: Layer, name: str = "kiosk") -> AgentClient:
    """Return an agent client that may search what it is bound to."""
    owner = UserFactory()
    client = AgentClient.objects.create(owner=owner, name=name)
    for layer in layers:
        client.knowledge_bases.add(layer.knowledge_base)
        grant(layer.knowledge_base, BOTH, to=owner, actor=None)
    return client


def told(client: AgentClient, after: int | None = 0) -> list[tuple[str, str]]:
    """Return (kind, answer) of what a client is told from a cursor on."""
    page = deliveries_after(client, reader_of_client(client), after, 100)
    return [(each.kind, each.answer) for each in page.told]


def ingested() -> None:
    """Bring in whatever waits, and do what follows from it."""
    for run in IngestRun.objects.filter(state="queued"):
        run_ingest(run.pk)
    follow_up()


def approved(layer: Layer, person: User, **more: Any) -> PendingQuestion:
    """Return a question that is answered, with its answer in the corpus."""
    fields = {"question": QUESTION, "answer": ANSWER, **more}
    pending = pending_question(layer.knowledge_base, text=fields["question"])
    done = actions.propose_answer(pending, actor=person, layer=layer, **fields)
    ingested()
    done.refresh_from_db()
    return done


@pytest.mark.req("S2-APR-05", "R17")
def test_each_client_is_told_once_when_the_answer_is_found(
    layer: Layer, person: User
) -> None:
    client = client_of(layer)
    pending = pending_question(layer.knowledge_base)
    actions.propose_answer(pending, actor=person, question=QUESTION, answer=ANSWER)
    follow_up()
    assert told(client) == []

    ingested()
    follow_up()
    pending.refresh_from_db()
    announce(pending)
    assert told(client) == [("answer", ANSWER)]
    assert Delivery.objects.count() == 1


@pytest.mark.req("REL-W8")
def test_only_clients_that_may_search_the_answers_place_are_told(
    layer: Layer, person: User
) -> None:
    elsewhere = LayerFactory()
    seeing, bound_only, other = (
        client_of(layer),
        client_of(layer),
        client_of(elsewhere),
    )
    deny(layer.knowledge_base, to=bound_only.owner, actor=None)
    approved(layer, person)

    assert told(seeing) == [("answer", ANSWER)]
    assert told(bound_only) == told(other) == []
    # Resolved again when it is handed out.
    deny(layer.knowledge_base, to=seeing.owner, actor=None)
    assert told(seeing) == []


def test_asking_twice_gives_the_same_and_a_cursor_goes_on(
    layer: Layer, person: User
) -> None:
    client = client_of(layer)
    for number in range(3):
        approved(layer, person, question=f"Question {number}?", answer=f"Yes {number}.")

    reader = reader_of_client(client)
    first = deliveries_after(client, reader, 0, 2)
    assert deliveries_after(client, reader, 0, 2) == first
    assert (first.next_after, first.has_more) == (2, True)
    rest = deliveries_after(client, reader, first.next_after, 2)
    assert ([each.sequence for each in rest.told], rest.has_more) == ([3], False)
    assert deliveries_after(client, reader, 3, 2).next_after == 3


def test_without_a_cursor_it_goes_on_from_what_is_acknowledged(
    layer: Layer, person: User
) -> None:
    client = client_of(layer)
    for number in range(2):
        approved(layer, person, question=f"Question {number}?", answer=f"Yes {number}.")

    assert len(told(client, None)) == 2
    assert acknowledge(client, 1) == 1
    assert acknowledge(client, 1) == 0
    assert told(client, None) == [("answer", "Yes 1.")]
    acknowledge(client, 2)
    assert told(client, None) == []
    assert len(told(client, 0)) == 2


@pytest.mark.req("R17")
def test_a_change_is_told_once_and_overtakes_what_was_not_taken(
    layer: Layer, person: User
) -> None:
    client = client_of(layer)
    pending = approved(layer, person)
    changed = actions.change_answer(
        pending, actor=person, question=QUESTION, answer="Yes, folded."
    )
    # Until the new words are found, the old ones hold.
    assert told(client) == [("answer", ANSWER)]
    ingested()
    follow_up()

    assert told(client) == [("changed", "Yes, folded.")]
    assert told(client, 1) == [("changed", "Yes, folded.")]
    assert changed.revision == 2


@pytest.mark.req("R17")
def test_a_withdrawal_is_told_to_whoever_was_told_the_answer(
    layer: Layer, person: User
) -> None:
    client, late = client_of(layer), client_of(layer)
    late.knowledge_bases.clear()
    pending = approved(layer, person)
    late.knowledge_bases.add(layer.knowledge_base)
    deny(layer.knowledge_base, to=client.owner, actor=None)

    actions.withdraw(pending, actor=person, because="It was wrong.")

    # Also to one that may not search it any more; it is told no word.
    assert told(client) == [("withdrawn", "")]
    assert told(late) == []


def test_what_waits_for_a_second_person_is_told_to_nobody(
    layer: Layer, person: User, settings: Any
) -> None:
    client = client_of(layer)
    pending = approved(layer, person)
    settings.STRATA_FOUR_EYES = True
    actions.change_answer(pending, actor=person, question=QUESTION, answer="A secret.")
    ingested()

    assert told(client) == [("answer", ANSWER)]


def test_an_answer_whose_source_is_switched_off_is_not_handed_out(
    layer: Layer, person: User
) -> None:
    client = client_of(layer)
    pending = approved(layer, person)
    switch_source(pending.source, enabled=False, actor=None)
    assert told(client) == []


@pytest.mark.parametrize("act", [delete_source, purge_source])
def test_an_answer_that_was_deleted_past_the_gate_counts_as_withdrawn(
    layer: Layer, person: User, act: Any
) -> None:
    client = client_of(layer)
    pending = approved(layer, person)
    act(pending.source, actor=None)
    assert told(client) == []
    follow_up()

    pending.refresh_from_db()
    assert (pending.state, pending.answer) == (State.PENDING, "")
    assert told(client) == [("withdrawn", "")]


def test_an_answer_that_is_deleted_while_its_change_waits_is_withdrawn(
    layer: Layer, person: User, settings: Any
) -> None:
    client = client_of(layer)
    pending = approved(layer, person)
    settings.STRATA_FOUR_EYES = True
    actions.change_answer(pending, actor=person, question=QUESTION, answer="Yes.")
    delete_source(pending.source, actor=None)
    assert follow_up() == 1
    assert follow_up() == 0

    pending.refresh_from_db()
    assert (pending.is_awaiting_approval, pending.first_approved_at) == (True, None)
    assert told(client) == [("withdrawn", "")]
    # The change still waits, and is an answer of its own once it is approved.
    actions.approve(pending, actor=approver_of(layer.knowledge_base))
    ingested()
    assert told(client, 2) == [("answer", "Yes.")]


@pytest.mark.req("R17", "REL-W8")
def test_what_a_client_passed_unseen_is_told_once_it_may_see_it(
    layer: Layer, person: User
) -> None:
    client = client_of(layer)
    hidden, gone = (
        approved(layer, person, question=f"Question {number}?", answer=f"No {number}.")
        for number in range(2)
    )
    switch_source(hidden.source, enabled=False, actor=None)
    switch_source(gone.source, enabled=False, actor=None)
    last = approved(layer, person)
    ids = [str(each.delivery_id) for each in client.deliveries.order_by("sequence")]
    assert told(client) == [("answer", ANSWER)]
    acknowledge(client, 3)
    assert told(client, 3) == told(client, None) == []

    actions.withdraw(gone, actor=person, because="It was wrong.")
    switch_source(hidden.source, enabled=True, actor=None)
    # Under a number behind its cursor, and under no other, wherever it asks from.
    for after in (3, None):
        page = deliveries_after(client, reader_of_client(client), after, 100)
        assert [(each.sequence, each.kind) for each in page.told] == [
            (4, "withdrawn"),
            (5, "answer"),
        ]
    assert (page.told[1].answer, str(page.told[1].delivery_id)) == ("No 0.", ids[0])
    assert [answer for _kind, answer in told(client)] == [ANSWER, "", "No 0."]
    acknowledge(client, 5)
    assert told(client, 5) == told(client, None) == []
    assert last.revision == 1


def test_clients_hear_of_an_answer_that_moves_out_of_their_sight(
    layer: Layer, person: User
) -> None:
    other = LayerFactory()
    grant(other.knowledge_base, BOTH, to=person, actor=None)
    client, elsewhere = client_of(layer), client_of(other)
    pending = approved(layer, person)
    actions.change_answer(
        pending, actor=person, question=QUESTION, answer=ANSWER, layer=other
    )
    ingested()

    assert told(client) == [("withdrawn", "")]
    assert told(elsewhere) == [("answer", ANSWER)]


def test_a_source_that_was_moved_past_the_gate_is_handed_out_in_its_new_place_only(
    layer: Layer, person: User
) -> None:
    client = client_of(layer)
    pending = approved(layer, person)
    move_source(pending.source, layer=LayerFactory(), actor=None)
    assert told(client) == []


def test_numbers_are_dense_for_each_client_and_held_by_the_database(
    layer: Layer, person: User
) -> None:
    clients = [client_of(layer) for _ in range(2)]
    for number in range(3):
        approved(layer, person, question=f"Question {number}?", answer=f"Yes {number}.")

    for client in clients:
        assert [each.sequence for each in client.deliveries.all()] == [1, 2, 3]
        assert Subscriber.objects.get(client=client).last_sequence == 3
    double = Delivery.objects.first()
    double.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        double.save()
