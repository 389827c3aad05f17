"""What a reader is told of the questions that the documents did not answer them."""

from typing import Any

import pytest
from django.test import Client

from approvals.mine import count_news
from approvals.models import PendingQuestion
from approvals.models.question import State
from knowledge.models import Source, User
from knowledge.models.source import SourceState
from knowledge.permissions import Access, deny, grant
from retrieval.models import Interaction
from tests.approvals.gaps import asked
from tests.approvals.shown import approved, waiting
from tests.factories import LayerFactory, UserFactory, ready_source

pytestmark = pytest.mark.django_db

QUESTION = "Where do I get a permit for the roof terrace?"


@pytest.fixture
def terrace() -> Any:
    """A layer of a knowledge base."""
    return LayerFactory(knowledge_base__name="House rules", name="answers")


@pytest.fixture
def asker(terrace: Any) -> User:
    """A reader of it."""
    user: User = UserFactory()
    grant(terrace.knowledge_base, [Access.LIST, Access.SEARCH], to=user, actor=None)
    return user


@pytest.fixture
def client(client: Client, asker: User) -> Client:
    """A browser of theirs."""
    client.force_login(asker)
    return client


def answered(terrace: Any, asker: User) -> PendingQuestion:
    """Return their question, answered."""
    source = ready_source("From the caretaker.", layer=terrace, title=QUESTION)
    return approved(
        QUESTION,
        terrace.knowledge_base,
        by=asker,
        source=source,
        layer=terrace,
        answer="From the caretaker.",
    )


@pytest.mark.req("S2-APR-01")
def test_a_question_is_sent_once_and_stands_under_ones_own(
    client: Client, terrace: Any, asker: User
) -> None:
    interaction = asked(asker, QUESTION, terrace.knowledge_base)
    for _again in range(2):
        page = client.post(f"/ask/{interaction.public_id}/send/", follow=True)
    assert "Sent." in page.content.decode()
    assert QUESTION in page.content.decode()
    assert PendingQuestion.objects.get().channel == "portal"


def test_nobody_sends_a_question_of_somebody_else(client: Client, terrace: Any) -> None:
    other = asked(UserFactory(), QUESTION, terrace.knowledge_base)
    assert client.post(f"/ask/{other.public_id}/send/").status_code == 404
    assert Interaction.objects.count() == 1
    assert not PendingQuestion.objects.exists()


@pytest.mark.req("R17")
def test_the_asker_is_told_once_what_became_of_it(
    client: Client, terrace: Any, asker: User
) -> None:
    waiting("Does anybody mend bicycles?", terrace.knowledge_base, by=asker)
    assert 'class="nav-count"' not in client.get("/knowledge-bases/").content.decode()
    answered(terrace, asker)
    assert 'class="nav-count">1<' in client.get("/knowledge-bases/").content.decode()
    first = client.get("/questions/")
    assert [own.is_new for own in first.context["rows"]] == [True, False]
    assert "From the caretaker." in first.content.decode()
    again = client.get("/questions/")
    assert not any(own.is_new for own in again.context["rows"])
    assert count_news(asker.pk) == 0


@pytest.mark.req("REL-W8")
def test_an_answer_is_shown_as_far_as_its_asker_may_read_it(
    client: Client, terrace: Any, asker: User
) -> None:
    answered(terrace, asker)
    deny(terrace.knowledge_base, to=asker, actor=None)
    page = client.get("/questions/").content.decode()
    assert "A person settled it." in page
    assert "caretaker" not in page
    assert "House rules" not in page


def test_an_answer_that_could_not_be_taken_in_is_not_shown(
    client: Client, terrace: Any, asker: User
) -> None:
    pending = answered(terrace, asker)
    Source.objects.update(state=SourceState.FAILED, state_reason="It is broken.")
    assert count_news(asker.pk) == 0
    page = client.get("/questions/")
    (own,) = page.context["rows"]
    assert (own.label, own.answer, own.is_new) == ("Waits", "", False)
    assert "could not be taken into the documents" in page.content.decode()
    assert "caretaker" not in page.content.decode()
    # Once it is in the documents, it is news.
    Source.objects.update(state=SourceState.READY)
    assert count_news(asker.pk) == 1
    assert pending.state == State.APPROVED


def test_what_became_of_it_is_said_in_words(
    client: Client, terrace: Any, asker: User
) -> None:
    base = terrace.knowledge_base
    first = waiting("One?", base, by=asker)
    waiting(
        "Two?",
        base,
        by=asker,
        state=State.IGNORED,
        ignored_because="Our neighbour asks this every day.",
    )
    fresh = answered(terrace, asker)
    assert fresh.source is not None
    fresh.source.state = SourceState.PROCESSING
    fresh.source.save()
    waiting("Three?", base, by=asker, state=State.DUPLICATE, original=first)
    waiting("Of somebody else?", base, by=UserFactory())
    page = client.get("/questions/")
    labels = {own.question: own.label for own in page.context["rows"]}
    assert labels == {
        "One?": "Waits",
        "Two?": "No answer",
        "Three?": "Waits",
        QUESTION: "Answered",
    }
    assert "It is being taken into the documents now." in page.content.decode()
    # Why it is ignored is for staff alone.
    assert "neighbour" not in page.content.decode()
