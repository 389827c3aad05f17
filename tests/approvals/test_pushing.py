"""Deliveries to agent clients that take signed messages, against a real server."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import actions
from approvals.asking_again import follow_up
from approvals.models import Delivery, PendingQuestion, Subscriber
from approvals.pushing import due, looking_is_due, next_for, push_all, secret_for
from approvals.webhooks import verify
from knowledge.ingest import run_ingest
from knowledge.models import AgentClient, IngestRun, Layer, WorkerBeat
from knowledge.permissions import Access, deny, grant, withdraw
from tests.approvals.gaps import ANSWER, BOTH, QUESTION, approver_of, pending_question
from tests.factories import LayerFactory, UserFactory
from tests.servers import Handler, LocalServer

pytestmark = pytest.mark.django_db


class Receiver(LocalServer):
    """Takes messages, or refuses them with `status`; checks who signed them."""

    def __init__(self) -> None:
        super().__init__(self.take)
        self.status = 204
        self.secret = ""
        self.taken: list[tuple[str, dict[str, Any]]] = []

    def take(self, handler: Handler) -> None:
        """Keep a message with its id."""
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        event_id = verify(dict(handler.headers.items()), body, [self.secret])
        if self.status == 204:
            self.taken.append((event_id, json.loads(body)))
        handler.send_content(self.status, b"{}")


@pytest.fixture
def layer(settings: Any) -> Layer:
    """Where answers go; words are enough here."""
    settings.PORTAL_EMBEDS = False
    found: Layer = LayerFactory()
    return found


def subscribed(layer: Layer, receiver: Receiver, settings: Any) -> Subscriber:
    """Return a client that is sent what is approved in a layer."""
    settings.STRATA_WEBHOOK_HOSTS = [receiver.url.removeprefix("http://")]
    owner = UserFactory()
    grant(layer.knowledge_base, BOTH, to=owner, actor=None)
    client = AgentClient.objects.create(owner=owner, name="kiosk")
    client.knowledge_bases.add(layer.knowledge_base)
    subscriber = Subscriber.objects.create(
        client=client, push_url=f"{receiver.url}/in/secret-path"
    )
    receiver.secret = secret_for(subscriber)
    return subscriber


def approved(layer: Layer, number: int = 1) -> PendingQuestion:
    """Answer a question, as far as it is found."""
    question = f"{QUESTION[:-1]} {number}?"
    pending = pending_question(layer.knowledge_base, text=question)
    done = actions.propose_answer(
        pending,
        actor=approver_of(layer.knowledge_base),
        question=question,
        answer=f"{ANSWER} {number}",
    )
    for run in IngestRun.objects.filter(state="queued"):
        run_ingest(run.pk)
    follow_up()
    return done


@pytest.mark.req("S2-APR-05", "R17")
def test_each_delivery_is_sent_once_signed_and_in_order(
    layer: Layer, settings: Any
) -> None:
    with Receiver() as receiver:
        subscribed(layer, receiver, settings)
        entries = [approved(layer, number) for number in range(3)]
        assert push_all() == 3
        assert push_all() == 0

    messages = [body for _id, body in receiver.taken]
    assert [body["entry"] for body in messages] == [
        str(each.public_id) for each in entries
    ]
    assert messages[0]["type"] == "answer.answer"
    assert messages[0]["answer"] == f"{ANSWER} 0"
    ids = [event_id for event_id, _body in receiver.taken]
    assert ids == [str(each.delivery_id) for each in Delivery.objects.all()]
    assert not Delivery.objects.filter(acknowledged_at=None).exists()


def test_what_is_not_taken_is_sent_again_later_and_keeps_the_rest_waiting(
    layer: Layer, settings: Any
) -> None:
    with Receiver() as receiver:
        subscriber = subscribed(layer, receiver, settings)
        for number in range(2):
            approved(layer, number)
        receiver.status = 503
        assert push_all() == 0
        assert receiver.requests == 1
        assert not due().exists()

        subscriber.refresh_from_db()
        assert subscriber.push_attempts == 1
        assert subscriber.push_after > timezone.now() + timedelta(seconds=50)
        assert "status 503" in subscriber.push_problem
        assert "secret-path" not in subscriber.push_problem

        receiver.status = 204
        Subscriber.objects.update(push_after=timezone.now())
        assert push_all() == 2
        subscriber.refresh_from_db()
        assert (subscriber.push_attempts, subscriber.push_problem) == (0, "")
    assert len({event_id for event_id, _body in receiver.taken}) == 2


@pytest.mark.req("REL-W8")
def test_what_the_client_may_not_see_by_then_is_not_sent(
    layer: Layer, settings: Any
) -> None:
    with Receiver() as receiver:
        subscriber = subscribed(layer, receiver, settings)
        approved(layer)
        deny(layer.knowledge_base, to=subscriber.client.owner, actor=None)
        push_all()
        assert receiver.requests == 0
        assert not due().exists()

        # Once it may see it, it is sent it, once. It is looked now and then.
        assert (looking_is_due(), push_all(), looking_is_due()) == (True, 0, False)
        owner = subscriber.client.owner
        withdraw(layer.knowledge_base, [Access.DENY], holder=owner, actor=None)
        WorkerBeat.objects.update(at=timezone.now() - timedelta(minutes=2))
        assert looking_is_due()
        assert [push_all(), push_all()] == [1, 0]
        WorkerBeat.objects.update(at=timezone.now() - timedelta(minutes=2))
        assert not looking_is_due()
    (sent,) = receiver.taken
    delivery = Delivery.objects.get()
    assert sent[0] == str(delivery.delivery_id)
    assert sent[1]["sequence"] == delivery.sequence == 2


def test_what_was_pulled_already_is_not_sent(layer: Layer, settings: Any) -> None:
    with Receiver() as receiver:
        subscriber = subscribed(layer, receiver, settings)
        approved(layer)
        Delivery.objects.update(acknowledged_at=timezone.now())
        assert not due().exists()
        # Pulled by the client right after it was found to be due.
        assert next_for(subscriber) is None


def test_nothing_goes_to_a_host_that_is_not_allowed(
    layer: Layer, settings: Any
) -> None:
    with Receiver() as receiver:
        subscriber = subscribed(layer, receiver, settings)
        settings.STRATA_WEBHOOK_HOSTS = []
        approved(layer)
        assert push_all() == 0
        assert receiver.requests == 0
    subscriber.refresh_from_db()
    assert "STRATA_WEBHOOK_HOSTS" in subscriber.push_problem
