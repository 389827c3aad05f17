"""Memory and conversations at the API, and the page where a person sees them."""

import uuid
from typing import Any

import pytest

from knowledge.memory import remember, start_conversation
from knowledge.models import Conversation, Statement
from tests.cast import Actor, Cast

pytestmark = pytest.mark.django_db

JSON = "application/json"


def said(actor: Actor, **body: object) -> Any:
    """Ask to remember something."""
    return actor.client().post("/api/v1/memory", body, content_type=JSON)


def listed(actor: Actor, conversation: object = None) -> list[str]:
    """Return what is listed to somebody."""
    query = f"?conversation={conversation}" if conversation else ""
    body = actor.client().get(f"/api/v1/memory{query}").json()
    return [each["text"] for each in body["statements"]]


@pytest.mark.req("S3-VIS-06", "S3-VIS-07")
def test_a_conversation_from_its_start_to_its_end(cast: Cast) -> None:
    agent = cast.agent_token
    started = agent.client().post("/api/v1/conversations", content_type=JSON)
    assert started.status_code == 201
    talk = started.json()["id"]
    answer = said(agent, text="The parcel is for Minh.", conversation=talk)
    assert answer.status_code == 201
    assert answer.json()["conversation"] == talk
    assert answer.json()["state"] == "pending"
    assert said(agent, text="Likes short answers.").json()["conversation"] is None
    assert listed(agent) == ["Likes short answers."]
    assert listed(agent, talk) == ["Likes short answers.", "The parcel is for Minh."]
    assert listed(cast.insider, talk) == []
    ended = agent.client().post(f"/api/v1/conversations/{talk}/end", content_type=JSON)
    assert ended.status_code == 204
    assert listed(agent, talk) == ["Likes short answers."]


@pytest.mark.req("S3-VIS-06", "D25")
def test_a_conversation_that_is_not_ones_own_never_was(cast: Cast) -> None:
    talk = start_conversation(cast.insider.reader).public_id
    remember(cast.insider.reader, "The merger is in May.", conversation_id=talk)
    agent = cast.agent_token
    answers = [
        said(agent, text="Mine.", conversation=str(each))
        for each in (talk, uuid.uuid4())
    ]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert answers[0].content == answers[1].content
    ends = [
        agent.client().post(f"/api/v1/conversations/{each}/end", content_type=JSON)
        for each in (talk, uuid.uuid4(), "nonsense")
    ]
    assert [answer.status_code for answer in ends] == [404, 404, 404]
    assert len({answer.content for answer in ends}) == 1
    for named in (talk, "nonsense", uuid.uuid4()):
        assert listed(agent, named) == []
    assert Conversation.objects.get().ends_at


def test_statements_are_deleted_by_whom_they_are_about(cast: Cast) -> None:
    statement = remember(cast.granted.reader, "Likes short answers.")
    address = f"/api/v1/memory/{statement.public_id}"
    for actor in (cast.insider, cast.superuser, cast.token_in_scope):
        assert actor.client().delete(address).status_code == 404
    assert cast.agent_token.client().delete(address).status_code == 204
    assert not Statement.objects.exists()
    assert cast.agent_token.client().delete(address).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": " "}, "text"),
        ({"text": "x" * 2001}, "text"),
        ({"text": "a", "conversation": "nonsense"}, "conversation"),
        ({"text": "a", "owner": 3}, "owner"),
    ],
)
def test_what_cannot_be_read_is_named(
    cast: Cast, body: dict[str, object], field: str
) -> None:
    answer = said(cast.agent_token, **body)
    assert answer.status_code == 400
    assert field in answer.json()["error"]["fields"]


def test_a_token_with_a_scope_has_no_memory(cast: Cast) -> None:
    remember(cast.granted.reader, "Likes short answers.")
    answer = said(cast.token_in_scope, text="Likes tea.")
    assert answer.status_code == 403
    assert "has no memory" in answer.json()["error"]["message"]
    assert listed(cast.token_in_scope) == []


class TestThePage:
    """A person sees and deletes what is remembered about them."""

    def test_all_of_it_is_there_and_nothing_of_others(self, cast: Cast) -> None:
        talk = start_conversation(cast.granted.reader).public_id
        remember(cast.granted.reader, "The parcel is here.", conversation_id=talk)
        remember(cast.granted.reader, "Likes short answers.")
        remember(cast.insider.reader, "The merger is in May.")
        page = cast.granted.client().get("/account/memory/").content.decode()
        assert "The parcel is here." in page
        assert "Likes short answers." in page
        assert "merger" not in page
        own = cast.insider.client().get("/account/memory/").content.decode()
        assert "merger" in own

    def test_one_click_forgets(self, cast: Cast) -> None:
        statement = remember(cast.granted.reader, "Likes short answers.")
        address = f"/account/memory/{statement.public_id}/forget/"
        assert cast.insider.client().post(address).status_code == 404
        page = cast.granted.client().post(address, follow=True).content.decode()
        assert "Forgotten." in page
        assert not Statement.objects.exists()
