"""From asks that found nothing to pending questions."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from approvals import actions
from approvals.models import PendingQuestion, SettlingMark, Subscriber, Wording
from approvals.models.question import Channel, Gap, State
from approvals.rounds import settling_is_due
from approvals.settling import settle
from knowledge.models import AgentClient, KnowledgeBase, User
from knowledge.permissions import Reader, grant
from retrieval.models import Interaction
from tests.approvals.gaps import BOTH, QUESTION, asked
from tests.factories import KnowledgeBaseFactory, UserFactory

pytestmark = pytest.mark.django_db


def ago(minutes: float) -> Any:
    """Return a time so many minutes before now."""
    return timezone.now() - timedelta(minutes=minutes)


@pytest.fixture
def base() -> KnowledgeBase:
    """A knowledge base that is asked."""
    found: KnowledgeBase = KnowledgeBaseFactory()
    return found


@pytest.fixture
def reader(base: KnowledgeBase) -> User:
    """Somebody who may search it."""
    found: User = UserFactory()
    grant(base, BOTH, to=found, actor=None)
    return found


@pytest.mark.req("S2-APR-01", "R19")
def test_rewordings_of_one_conversation_are_one_question(
    base: KnowledgeBase, reader: User
) -> None:
    texts = ["Bicycle inside?", "May bikes come in?", "Where do bikes go?"]
    for minutes, text in zip((4, 3, 2), texts, strict=True):
        asked(reader, text, base, at=ago(minutes))

    assert settle() == 1
    assert settle() == 0
    pending = PendingQuestion.objects.get()
    assert (pending.question, pending.state) == (texts[0], State.PENDING)
    assert (pending.asked_count, pending.asker_count) == (3, 1)
    assert [each.text for each in pending.wordings.all()] == texts
    assert pending.channel == Channel.PORTAL
    assert pending.knowledge_base_ids == [base.pk]


@pytest.mark.req("R19")
def test_nothing_is_filed_while_the_reader_may_still_reword(
    base: KnowledgeBase, reader: User
) -> None:
    asked(reader, QUESTION, base, at=ago(5))
    assert settle() == 0
    assert settle(timezone.now() + timedelta(minutes=6)) == 1


def test_a_found_rewording_leaves_no_question(
    base: KnowledgeBase, reader: User
) -> None:
    asked(reader, QUESTION, base, at=ago(30))
    asked(reader, "Bikes?", base, at=ago(29), status="found")

    assert settle() == 0
    assert not PendingQuestion.objects.exists()
    # It is looked at once, and not again and again.
    assert Wording.objects.get().pending is None


def test_what_was_found_makes_no_question(base: KnowledgeBase, reader: User) -> None:
    asked(reader, QUESTION, base, at=ago(30), status="found")
    asked(reader, QUESTION, base, at=ago(29), status="partly_found")
    assert settle() == 0


def test_people_and_lists_are_kept_apart(base: KnowledgeBase, reader: User) -> None:
    other, another_base = UserFactory(), KnowledgeBaseFactory()
    asked(reader, QUESTION, base, at=ago(30))
    asked(other, "Lamps?", base, at=ago(30))
    asked(reader, QUESTION, base, another_base, at=ago(30))

    assert settle() == 3


def test_the_same_words_of_two_people_are_one_question(
    base: KnowledgeBase, reader: User
) -> None:
    asked(reader, QUESTION, base, at=ago(30))
    asked(UserFactory(), QUESTION.upper().replace("?", " ?"), base, at=ago(20))

    assert settle() == 1
    pending = PendingQuestion.objects.get()
    assert (pending.asked_count, pending.asker_count) == (2, 2)


def test_what_was_answered_meanwhile_is_not_asked_of_anybody_again(
    base: KnowledgeBase, reader: User
) -> None:
    asked(reader, QUESTION, base, at=ago(30))
    assert settle() == 1
    pending = PendingQuestion.objects.get()
    pending.state, pending.answer, pending.gap = State.APPROVED, "No.", Gap.CLOSED
    pending.approved_at, pending.gap_checked_at = ago(13), ago(12)
    pending.save()
    # Asked before it was found, and settled after.
    asked(UserFactory(), QUESTION, base, at=ago(14))

    assert settle() == 0
    pending.refresh_from_db()
    assert (pending.state, pending.asked_count) == (State.APPROVED, 2)
    # Asked after, and not found all the same.
    asked(UserFactory(), QUESTION, base, at=ago(11))
    assert settle() == 1


def test_what_cannot_be_filed_is_tried_for_a_day_and_not_every_few_seconds(
    base: KnowledgeBase, reader: User
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'broken'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON approvals_wording FOR EACH ROW "
            "WHEN (NEW.text LIKE 'Broken%') EXECUTE FUNCTION refuse()"
        )
    asked(reader, "Broken?", base, at=ago(60 * 23))
    asked(UserFactory(), QUESTION, base, at=ago(30))

    assert settle() == 1
    assert SettlingMark.objects.get().settled_before < ago(60 * 22)
    assert not settling_is_due()
    assert settle(timezone.now() + timedelta(hours=2)) == 0
    assert SettlingMark.objects.get().settled_before > ago(60)


@pytest.mark.req("S2-APR-01")
def test_the_channel_is_that_of_the_agents_client(
    base: KnowledgeBase, reader: User
) -> None:
    client = AgentClient.objects.create(owner=reader, name="telephone")
    Subscriber.objects.create(client=client, channel=Channel.VOICE)
    for _call in range(2):
        asked(
            reader,
            QUESTION,
            base,
            at=ago(30),
            door="turn",
            client=client,
            conversation_id=uuid4(),
        )
    settle()

    pending = PendingQuestion.objects.get()
    assert pending.channel == Channel.VOICE
    # Two calls are two people who ask, though one client asks for both.
    assert (pending.asked_count, pending.asker_count) == (2, 2)


def test_who_sees_the_portal_as_another_asks_nobody(
    base: KnowledgeBase, reader: User
) -> None:
    asked(reader, QUESTION, base, at=ago(30), acting=UserFactory())
    assert settle() == 0
    assert not Wording.objects.exists()


def test_what_was_sent_at_once_takes_later_wordings_along(
    base: KnowledgeBase, reader: User
) -> None:
    first = asked(reader, QUESTION, base, at=ago(30))
    sent = actions.send_to_person(
        Reader.for_user(reader),
        interaction_id=first.public_id,
        channel=Channel.PORTAL,
    )
    asked(reader, "Bikes inside?", base, at=ago(29))

    assert settle() == 0
    sent.refresh_from_db()
    assert sent.asked_count == 2


def test_an_answered_wording_can_still_be_sent(
    base: KnowledgeBase, reader: User
) -> None:
    first = asked(reader, QUESTION, base, at=ago(30))
    asked(reader, "Bikes?", base, at=ago(29), status="found")
    settle()
    sent = actions.send_to_person(
        Reader.for_user(reader),
        interaction_id=first.public_id,
        channel=Channel.PORTAL,
    )

    assert sent.wordings.get().interaction == first
    assert sent.asked_count == 1


def test_what_is_older_than_the_gate_and_what_was_erased_stays(
    base: KnowledgeBase, reader: User
) -> None:
    asked(reader, QUESTION, base, at=ago(60 * 30))
    asked(reader, "", base, at=ago(30))
    assert settle() == 0


def test_a_late_commit_is_not_overlooked(base: KnowledgeBase, reader: User) -> None:
    settle()
    asked(reader, QUESTION, base, at=ago(40))
    assert settle() == 1
    assert Interaction.objects.count() == 1


def test_by_the_model_only_wordings_of_one_question_belong_together(
    model: str, corpus: Any
) -> None:
    reader = UserFactory()
    grant(corpus.handbook, BOTH, to=reader, actor=None)
    texts = [
        "May I bring my bicycle into the reading room?",
        "Can bikes be taken inside the reading room?",
        "How many days of parental leave does a father get?",
    ]
    for minutes, text in zip((30, 29, 28), texts, strict=True):
        asked(reader, text, corpus.handbook, at=ago(minutes))

    assert settle() == 2
    bicycle, leave = PendingQuestion.objects.order_by("pk")
    assert [each.text for each in bicycle.wordings.all()] == texts[:2]
    assert [each.text for each in leave.wordings.all()] == texts[2:]
