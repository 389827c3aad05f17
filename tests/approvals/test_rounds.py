"""What the worker does now and then: looked at cheaply, queued once, done twice alike."""

from copy import copy
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ

from approvals import actions, tasks
from approvals.erasing import forget_wordings
from approvals.errors import ApprovalError
from approvals.likeness import learn_wordings, unknown_wordings
from approvals.models import PendingQuestion, Wording
from approvals.models.question import State
from approvals.rounds import BEAT, ENDED, SECONDS, Rounds, is_due
from knowledge import upkeep
from knowledge.models import WorkerBeat
from knowledge.vitals import leave_sign
from tests.approvals.gaps import QUESTION, approver_of, asked, pending_question
from tests.factories import KnowledgeBaseFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def reminded() -> None:
    """Reminders were looked at just now."""
    leave_sign("reminding")


@pytest.mark.django_db(transaction=True)
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
    assert WorkerBeat.objects.filter(name__in=[BEAT, ENDED]).count() == 2
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
    # While it waits in the queue, another one would only wait behind it.
    look.queued_at = timezone.now() - timedelta(minutes=9)
    look()
    assert OrmQ.objects.count() == 1

    # It was taken, and whoever took it gave no sign.
    OrmQ.objects.all().delete()
    look.queued_at = timezone.now() - timedelta(seconds=25)
    look()
    assert not OrmQ.objects.exists()
    look.queued_at = timezone.now() - timedelta(seconds=35)
    look()
    assert OrmQ.objects.count() == 1


def test_no_round_is_queued_while_one_goes_on() -> None:
    now = timezone.now()
    asked(
        UserFactory(),
        QUESTION,
        KnowledgeBaseFactory(),
        at=now - timedelta(minutes=11),
    )
    look = Rounds()
    look.queued_at = now - timedelta(minutes=30)
    going_on = WorkerBeat.objects.create(name=BEAT, at=now - timedelta(seconds=25))
    WorkerBeat.objects.create(name=ENDED, at=now - timedelta(minutes=31))
    look()
    assert not OrmQ.objects.exists()

    WorkerBeat.objects.filter(name=ENDED).update(at=now - timedelta(minutes=1))
    look()
    assert OrmQ.objects.count() == 1
    # Its worker was killed.
    look.queued_at = now - timedelta(minutes=30)
    WorkerBeat.objects.filter(name=ENDED).delete()
    going_on.at = now - timedelta(seconds=35)
    going_on.save()
    look()
    assert OrmQ.objects.count() == 2


def test_the_worker_looks_every_few_seconds() -> None:
    looks = [act for seconds, act in upkeep.EVERY if seconds == SECONDS]
    assert any(isinstance(act, Rounds) for act in looks)


def test_old_wordings_of_settled_questions_lose_their_words() -> None:
    base = KnowledgeBaseFactory()
    old = timezone.now() - timedelta(days=181)
    person = approver_of(base)
    asker = UserFactory()
    waiting = pending_question(base, text="Waiting?", asker=UserFactory(), at=old)
    merged = pending_question(base, text="Waiting, too?", asker=UserFactory(), at=old)
    actions.merge([merged], into=waiting, actor=person)
    ignored = pending_question(base, text="Ignored?", asker=asker, at=old)
    actions.ignore(ignored, actor=person, because="So it is.")
    fresh = pending_question(base, text="Fresh?", asker=UserFactory())
    actions.ignore(fresh, actor=person, because="So it is.")

    assert forget_wordings() == 1
    assert forget_wordings() == 0
    wording = Wording.objects.get(pending=ignored)
    assert (wording.text, wording.asker) == ("", None)
    ignored.refresh_from_db()
    assert (ignored.question, ignored.title) == ("", "(words past their keeping time)")
    for kept in (waiting, merged, fresh):
        kept.refresh_from_db()
        assert Wording.objects.get(pending=kept).text == kept.question != ""
    with pytest.raises(ApprovalError, match="cannot wait again"):
        actions.reopen(ignored, actor=person)
    # Who asked is told apart all the same, and by no name.
    again = pending_question(base, text="Ignored?", asker=asker)
    assert (again, again.question) == (ignored, "Ignored?")
    assert (again.asked_count, again.asker_count) == (2, 1)
    assert actions.reopen(again, actor=person).state == State.PENDING


def test_callers_that_were_kept_by_name_are_hashed() -> None:
    base, asker = KnowledgeBaseFactory(), UserFactory()
    pending_question(base, asker=asker)
    caller = Wording.objects.get().caller
    Wording.objects.update(caller=f"person:{asker.pk}")
    migration = import_module("approvals.migrations.0005_hashed_callers")
    for _again in range(2):
        migration.hash_callers(apps, None)
    assert Wording.objects.get().caller == caller


def test_what_is_still_to_be_compared_is_found_by_an_index(corpus: Any) -> None:
    pending_question(corpus.handbook)
    wording = Wording.objects.get()
    assert learn_wordings() == 1
    wording.refresh_from_db()
    copies = [copy(wording) for _number in range(2000)]
    for each in copies:
        each.pk = None
    Wording.objects.bulk_create(copies)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE approvals_wording")
    plan = unknown_wordings().order_by()[:1].explain()
    assert "wording_to_compare" in plan
    assert "Index Cond" in plan
