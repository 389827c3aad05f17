"""What the worker does now and then: looked at cheaply, queued once, done twice alike."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from approvals import tasks
from approvals.erasing import forget_wordings
from approvals.models import PendingQuestion, Wording
from approvals.models.question import State
from approvals.rounds import SECONDS, Rounds, is_due
from knowledge import upkeep
from knowledge.models import WorkerBeat
from knowledge.vitals import leave_sign
from tests.approvals.gaps import QUESTION, asked, pending_question
from tests.factories import KnowledgeBaseFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def reminded() -> None:
    """Reminders were looked at just now."""
    leave_sign("reminding")


def test_a_round_is_queued_when_something_is_due_and_none_waits() -> None:
    look = Rounds()
    look()
    assert not OrmQ.objects.exists()

    asked(
        UserFactory(),
        QUESTION,
        KnowledgeBaseFactory(),
        at=timezone.now() - timedelta(minutes=11),
    )
    for _time in range(3):
        look()
    assert OrmQ.objects.count() == 1

    for _time in range(2):
        tasks.go_round()
    assert PendingQuestion.objects.get().question == QUESTION
    assert WorkerBeat.objects.filter(name="gate").exists()
    assert not is_due()


def test_nothing_is_due_while_somebody_may_still_reword() -> None:
    asked(UserFactory(), QUESTION, KnowledgeBaseFactory())
    assert not is_due()


def test_a_round_that_was_lost_is_queued_again() -> None:
    look = Rounds()
    asked(
        UserFactory(),
        QUESTION,
        KnowledgeBaseFactory(),
        at=timezone.now() - timedelta(minutes=11),
    )
    look()
    OrmQ.objects.all().delete()
    look()
    assert not OrmQ.objects.exists()
    look.queued_at = timezone.now() - timedelta(minutes=11)
    look()
    assert OrmQ.objects.count() == 1


def test_the_worker_looks_every_few_seconds() -> None:
    looks = [act for seconds, act in upkeep.EVERY if seconds == SECONDS]
    assert any(isinstance(act, Rounds) for act in looks)


def test_old_wordings_of_settled_questions_lose_their_words() -> None:
    base = KnowledgeBaseFactory()
    old = timezone.now() - timedelta(days=181)
    waiting = pending_question(base, text="Waiting?", asker=UserFactory(), at=old)
    ignored = pending_question(base, text="Ignored?", asker=UserFactory(), at=old)
    fresh = pending_question(base, text="Fresh?", asker=UserFactory())
    PendingQuestion.objects.exclude(pk=waiting.pk).update(
        state=State.IGNORED, ignored_because="So it is."
    )

    assert forget_wordings() == 1
    assert forget_wordings() == 0
    wording = Wording.objects.get(pending=ignored)
    assert (wording.text, wording.asker) == ("", None)
    for kept in (waiting, fresh):
        assert Wording.objects.get(pending=kept).text
