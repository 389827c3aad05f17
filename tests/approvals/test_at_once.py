"""Acts at the same moment: one wins, and what is held is held in one order."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import OperationalError, connection, transaction

from approvals import acting, actions
from approvals.errors import ApprovalError, ConflictError
from approvals.models import PendingQuestion, Wording
from knowledge import dependents
from knowledge.actions import delete_source
from knowledge.models import Source, User
from tests.approvals.gaps import acts_on, answered, approver_of, pending_question
from tests.factories import KnowledgeBaseFactory, LayerFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.req("REL-W4")
def test_of_two_answers_at_once_one_wins() -> None:
    layer = LayerFactory()
    people = [approver_of(layer.knowledge_base) for _ in range(2)]
    pending = pending_question(layer.knowledge_base)
    begin = threading.Barrier(2)
    came: list[str] = []

    def answer(person: User) -> None:
        try:
            begin.wait()
            answered(pending, person, answer=f"{person} says no.")
            came.append("won")
        except ConflictError:
            came.append("late")
        finally:
            connection.close()

    threads = [threading.Thread(target=answer, args=[each]) for each in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(came) == ["late", "won"]
    assert Source.objects.count() == 1
    assert sorted(acts_on(pending)) == ["answered", "approved", "came too late for"]


@pytest.mark.req("REL-W4")
def test_an_act_that_ends_in_a_deadlock_is_done_once_more() -> None:
    base = KnowledgeBaseFactory()
    person = approver_of(base)
    first, second = (pending_question(base, text=text) for text in ("One?", "Two?"))
    held = threading.Event()

    def hold_the_wrong_way_round() -> None:
        try:
            with transaction.atomic():
                acting.lock_in_order([second.pk])
                held.set()
                until_somebody_waits()
                acting.lock_in_order([first.pk])
        finally:
            connection.close()

    thread = threading.Thread(target=hold_the_wrong_way_round)
    thread.start()
    held.wait()
    # Whoever waited first is the one whom the database ends.
    actions.merge([second], into=first, actor=person)
    thread.join()

    second.refresh_from_db()
    assert second.original == first
    assert acts_on(second) == ["merged"]


def until_somebody_waits() -> None:
    """Return once a transaction waits for a lock."""
    for _look in range(500):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted LIMIT 1")
            if cursor.fetchone():
                return
        time.sleep(0.02)


@pytest.mark.req("REL-W4", "REL-K4")
def test_whoever_deletes_an_answer_holds_its_question_before_its_source() -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = answered(pending_question(layer.knowledge_base), person)
    deleting, go_on = threading.Event(), threading.Event()

    def stop(source: Source, actor: User | None) -> None:
        deleting.set()
        go_on.wait()

    def delete() -> None:
        try:
            delete_source(pending.source, actor=None)
        finally:
            connection.close()

    dependents.removing.append(stop)
    thread = threading.Thread(target=delete)
    try:
        thread.start()
        deleting.wait()
        found = PendingQuestion.objects.select_for_update(nowait=True)
        with pytest.raises(OperationalError), transaction.atomic():
            found.get(pk=pending.pk)
    finally:
        dependents.removing.remove(stop)
        go_on.set()
        thread.join()
    with pytest.raises(ConflictError, match="no approved answer here"):
        actions.withdraw(pending, actor=person, because="It was wrong.")


@pytest.mark.req("REL-W4", "REL-K7", "S2-APR-04")
def test_filing_merging_and_taking_apart_at_once_lose_no_wording() -> None:
    """Whatever comes first: what is refused is a conflict, and all is counted after."""
    base = KnowledgeBaseFactory()
    person = approver_of(base)
    texts = ("Where is the lift?", "Is there a lift?", "How do I get upstairs?")
    rows = [pending_question(base, text=text) for text in texts]
    seed = random.randrange(10**9)
    begin = threading.Barrier(4)
    filed: list[str] = []

    def file(draw: random.Random) -> None:
        text = draw.choice(texts)
        pending_question(base, text=text)
        filed.append(text)

    def sort(draw: random.Random) -> None:
        one, other = draw.sample(rows, 2)
        if draw.random() < 0.6:
            actions.merge([one], into=other, actor=person)
        else:
            actions.unmerge(one, actor=person)

    def play(act: Callable[[random.Random], None], draw: random.Random) -> None:
        begin.wait()
        for _time in range(25):
            with suppress(ApprovalError):
                act(draw)
        connection.close()

    with ThreadPoolExecutor(max_workers=4) as pool:
        played = [
            pool.submit(play, act, random.Random(seed + number))
            for number, act in enumerate((file, file, sort, sort))
        ]
    for each in played:
        each.result()

    found = PendingQuestion.objects.order_by("pk")
    assert [row.pk for row in found] == [row.pk for row in rows], seed
    roots = [row for row in found if row.original is None]
    assert all(row.original in roots for row in found if row.original is not None), seed
    kept = {row.pk: Wording.objects.of(row).count() for row in roots}
    assert {row.pk: row.asked_count for row in roots} == kept, seed
    assert sum(kept.values()) == len(texts) + len(filed), seed
