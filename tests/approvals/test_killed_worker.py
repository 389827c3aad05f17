"""What was approved is published once, wherever on its way the worker is killed."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from approvals import likeness
from approvals.models import Delivery, PendingQuestion
from approvals.models.question import Gap, State
from approvals.rounds import ENDED
from knowledge.models import AgentClient, Passage, User, WorkerBeat
from knowledge.models.ingest import RunState
from knowledge.models.source import SourceState
from knowledge.permissions import grant
from tests.approvals.gaps import (
    ANSWER,
    BOTH,
    acts_on,
    answered,
    approver_of,
    pending_question,
)
from tests.factories import LayerFactory, UserFactory
from tests.model_proxy import ModelProxy
from tests.worker_process import Worker, kill, until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.req("REL-W7", "S2-APR-05"),
]


@pytest.fixture
def person() -> User:
    """Somebody who answers for the only layer; an agent client waits for the answers."""
    layer = LayerFactory()
    owner = UserFactory()
    grant(layer.knowledge_base, BOTH, to=owner, actor=None)
    client = AgentClient.objects.create(owner=owner, name="kiosk")
    client.knowledge_bases.add(layer.knowledge_base)
    person = approver_of(layer.knowledge_base)
    pending_question(layer.knowledge_base)
    return person


@pytest.fixture
def proxy(
    model_server_url: str, settings: Settings, person: User
) -> Iterator[ModelProxy]:
    """What the worker asks for vectors; it can be kept waiting."""
    proxy = ModelProxy(model_server_url)
    with proxy:
        settings.STRATA_MODEL_URL = proxy.url
        yield proxy


def now_of() -> PendingQuestion:
    """Return the question as it stands."""
    return PendingQuestion.objects.get()


def is_published_once() -> None:
    """Check that the answer is there once: as text, for the agent, in the audit."""
    row = now_of()
    assert row.source is not None
    assert row.source.state == SourceState.READY
    assert row.source.documents.count() == 1
    assert [passage.text for passage in Passage.objects.all()] == [ANSWER]
    assert Delivery.objects.get().pending_id == row.pk
    acts = acts_on(row)
    assert acts.count("asked again") == 1, acts


def killed_while_it_waits(proxy: ModelProxy, worker: Worker) -> None:
    """Kill both of the worker's processes that take tasks, once one waits for vectors."""
    until(lambda: proxy.waiting == 1, "the request for vectors")
    for pid in worker.pool()[:2]:
        kill(pid)


def test_killed_before_it_has_begun(
    person: User, proxy: ModelProxy, tmp_path: Path
) -> None:
    with Worker(tmp_path / "worker.log") as worker:
        # Approved in one process, to be published by another one that dies with all
        # that it holds.
        proxy.open_gate.clear()
        answered(now_of(), person)
        assert now_of().state == State.APPROVED
        kill(worker.process.pid)
        worker.process.wait()
    assert not Passage.objects.exists()
    proxy.open_gate.set()
    with Worker(tmp_path / "worker.log"):
        until(lambda: now_of().gap == Gap.CLOSED, "the answer to be found")
    is_published_once()


def test_killed_while_it_takes_the_answer_in(
    person: User, proxy: ModelProxy, tmp_path: Path
) -> None:
    with Worker(tmp_path / "worker.log") as worker:
        proxy.open_gate.clear()
        row = answered(now_of(), person)
        assert row.source is not None
        killed_while_it_waits(proxy, worker)
        run = row.source.runs.get()
        assert run.state == RunState.RUNNING
        assert not Passage.objects.exists()
        proxy.open_gate.set()
        until(lambda: now_of().gap == Gap.CLOSED, "the answer to be found")
    run.refresh_from_db()
    assert (run.state, run.attempts) == (RunState.DONE, 2)
    is_published_once()


def test_killed_while_it_asks_again(
    person: User, proxy: ModelProxy, tmp_path: Path
) -> None:
    row = answered(now_of(), person)
    assert row.source is not None
    # Not its time yet.
    PendingQuestion.objects.update(follow_after=timezone.now() + timedelta(hours=1))
    with Worker(tmp_path / "worker.log") as worker:
        until(lambda: now_of().source.state == SourceState.READY, "the answer's vector")
        until(lambda: not likeness.is_due(), "the question's vector")
        proxy.open_gate.clear()
        PendingQuestion.objects.update(follow_after=timezone.now())
        killed_while_it_waits(proxy, worker)
        # It was announced, and not yet asked again.
        assert Delivery.objects.count() == 1
        assert now_of().gap == Gap.UNKNOWN
        # The next attempt has a pause before it, which a test need not wait for.
        PendingQuestion.objects.update(follow_after=timezone.now())
        proxy.open_gate.set()
        until(lambda: now_of().gap == Gap.CLOSED, "the answer to be found")
    assert WorkerBeat.objects.filter(name=ENDED).exists()
    is_published_once()
