"""Turns over HTTP: who starts them, what cannot be named, what comes back."""

import json
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client

from knowledge.models import AgentClient, ApiToken
from knowledge.permissions import deny
from knowledge.tokens import create_agent_token, revoke_token
from retrieval.models import Turn, TurnStep
from tests.cast import Actor, Cast
from tests.factories import ready_source
from tests.retrieval.api.test_requests import refusal
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

TURNS = "/api/v1/turns"


def post(client: Client, path: str, body: Any) -> Any:
    """Send a value as JSON."""
    return client.post(path, json.dumps(body), content_type="application/json")


def start(actor: Actor) -> str:
    """Start a turn and return its id."""
    response = post(actor.client(), TURNS, {})
    assert response.status_code == 201, response.content
    found: str = response.json()["turn"]
    return found


def client_of(actor: Actor) -> AgentClient:
    """Return the agent client of a token."""
    assert actor.token_row is not None
    assert actor.token_row.client is not None
    return actor.token_row.client


@pytest.fixture
def stocked(shelves: Corpus) -> Corpus:
    """The knowledge bases with something to find."""
    for base in (shelves.handbook, shelves.branches):
        for number in range(3):
            ready_source(
                f"The harbour of {base.slug} has berth {number}.",
                layer=base.layers.get(),
            )
    return shelves


@pytest.mark.req("D25")
def test_a_turns_id_is_random(cast: Cast) -> None:
    ids = {start(cast.agent_token) for _ in range(3)}
    assert len(ids) == 3
    assert {UUID(each).version for each in ids} == {4}


@pytest.mark.req("S3-CIT-01", "S3-VIS-05")
def test_a_search_gives_numbered_citations(stocked: Corpus, cast: Cast) -> None:
    turn = start(cast.agent_token)
    body = post(
        cast.agent_token.client(), f"{TURNS}/{turn}/search", {"query": "harbour"}
    ).json()
    assert body["turn"] == turn
    assert body["citations"] == "saved"
    assert body["withheld"] == 0
    assert [each["number"] for each in body["results"]] == [1, 2, 3]
    for each in body["results"]:
        citation = each["citation"]
        assert citation["knowledge_base"] == "handbook"
        assert citation["title"]
        assert citation["revision"].startswith("d")
        assert citation["indexed_at"]
        assert citation["url"] == f"/cited/{turn}/{each['number']}/"
        assert each["score"] > 0
    listed = cast.agent_token.client().get(f"{TURNS}/{turn}/citations").json()
    assert [each["text"] for each in listed["citations"]] == [
        each["text"] for each in body["results"]
    ]
    assert {each["standing"] for each in listed["citations"]} == {"current"}
    assert listed["citations"][0]["places"][0]["ref"] == body["results"][0]["ref"]


@pytest.mark.req("S3-VIS-04", "R5")
@pytest.mark.parametrize(
    "name",
    ["layers", "knowledge_bases", "knowledge_base", "metadata_filter", "bindings"],
)
def test_nothing_can_be_named(stocked: Corpus, cast: Cast, name: str) -> None:
    turn = start(cast.agent_token)
    client = cast.agent_token.client()
    for path, body in (
        (TURNS, {}),
        (f"{TURNS}/{turn}/search", {"query": "harbour"}),
        (f"{TURNS}/{turn}/end", {}),
    ):
        error = refusal(post(client, path, {**body, name: ["handbook/main"]}), 400)
        assert list(error["fields"]) == [name]
        assert "out." in error["message"]
    assert not TurnStep.objects.exists()
    error = refusal(post(client, f"{TURNS}/{turn}/search", {"query": "a", "x": 1}), 400)
    assert "query, query_vector, model, count" in error["message"]


@pytest.mark.req("R5")
@pytest.mark.parametrize(
    "path", ["layers", "me", "passages/d1:0-1", "turns/x/citations"]
)
def test_an_agent_names_layers_at_no_address(cast: Cast, path: str) -> None:
    client = cast.agent_token.client()
    error = refusal(client.get(f"/api/v1/{path}?layers=handbook/main"), 400)
    assert list(error["fields"]) == ["layers"]


def test_only_an_agent_client_starts_turns(cast: Cast) -> None:
    for actor in (cast.granted, cast.token_in_scope, cast.superuser):
        error = refusal(post(actor.client(), TURNS, {}), 403)
        assert error["code"] == "agent_client_required"
    assert not Turn.objects.exists()


@pytest.mark.req("D25")
def test_somebody_elses_turn_is_as_absent_as_none(stocked: Corpus, cast: Cast) -> None:
    turn = start(cast.agent_token)
    absent = "00000000-0000-4000-8000-000000000000"
    for actor in (cast.other_agent, cast.token_in_scope, cast.editor):
        for kind, body in (("search", {"query": "harbour"}), ("end", {})):
            answers = {
                post(actor.client(), f"{TURNS}/{each}/{kind}", body).content
                for each in (turn, absent, "no-id", turn.upper())
            }
            assert len(answers) == 1
            refusal(post(actor.client(), f"{TURNS}/{turn}/{kind}", body), 404)
    for actor in (cast.other_agent, cast.editor):
        refusal(actor.client().get(f"{TURNS}/{turn}/citations"), 404)


def test_another_token_of_the_client_goes_on_with_its_turn(
    stocked: Corpus, cast: Cast
) -> None:
    turn = start(cast.agent_token)
    row, token = create_agent_token(
        client_of(cast.agent_token), name="spare", actor=None
    )
    spare = Actor("spare", row.owner, token, row)
    path = f"{TURNS}/{turn}/search"
    assert post(spare.client(), path, {"query": "harbour"}).status_code == 200
    revoke_token(row, actor=None)
    refusal(post(spare.client(), path, {"query": "harbour"}), 401)
    assert ApiToken.objects.live().filter(client=client_of(cast.agent_token)).exists()


@pytest.mark.req("S3-VIS-05")
def test_a_deny_closes_searches_and_citations(stocked: Corpus, cast: Cast) -> None:
    turn = start(cast.agent_token)
    client = cast.agent_token.client()
    path = f"{TURNS}/{turn}/search"
    assert post(client, path, {"query": "harbour"}).json()["results"]
    owner = cast.granted
    assert owner.user is not None
    citations = f"{TURNS}/{turn}/citations"
    assert len(owner.client().get(citations).json()["citations"]) == 3
    deny(stocked.handbook, to=owner.user, actor=None)
    assert post(client, path, {"query": "harbour"}).json()["results"] == []
    assert client.get(citations).json()["citations"] == []
    assert owner.client().get(citations).json()["citations"] == []


@pytest.mark.req("R4")
@pytest.mark.parametrize("count", [0, 4, 21, "many", None])
def test_a_count_beyond_the_cap_is_refused(
    stocked: Corpus, cast: Cast, count: Any
) -> None:
    client = client_of(cast.agent_token)
    client.most_results = 3
    client.save()
    turn = start(cast.agent_token)
    body = {"query": "harbour", "count": count}
    response = post(cast.agent_token.client(), f"{TURNS}/{turn}/search", body)
    assert list(refusal(response, 400)["fields"]) == ["count"]
    body = {"query": "harbour", "top_k": 4}
    response = post(cast.agent_token.client(), "/api/v1/search", body)
    assert list(refusal(response, 400)["fields"]) == ["top_k"]


def test_an_ended_or_switched_off_turn_says_so(stocked: Corpus, cast: Cast) -> None:
    turn = start(cast.agent_token)
    client = cast.agent_token.client()
    assert post(client, f"{TURNS}/{turn}/end", {}).json()["ended_at"]
    path, body = f"{TURNS}/{turn}/search", {"query": "harbour"}
    assert refusal(post(client, path, body), 409)["code"] == "turn_ended"
    AgentClient.objects.update(search_enabled=False)
    assert refusal(post(client, path, body), 403)["code"] == "search_off"
    assert refusal(post(client, "/api/v1/search", body), 403)["code"] == "search_off"
    assert refusal(post(client, TURNS, {}), 403)["code"] == "search_off"
    assert client.get(f"{TURNS}/{turn}/citations").status_code == 200


@pytest.mark.req("D33", "S3-CIT-05")
def test_hits_come_back_without_numbers_when_they_cannot_be_saved(
    stocked: Corpus, cast: Cast
) -> None:
    turn = start(cast.agent_token)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE retrieval_snapshot ADD CHECK (number > 99)")
    body = post(
        cast.agent_token.client(), f"{TURNS}/{turn}/search", {"query": "harbour"}
    ).json()
    assert body["citations"] == "unsaved"
    assert [each["number"] for each in body["results"]] == [None] * 3
    assert all(each["text"] for each in body["results"])
