"""Verifying a draft over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from knowledge.models import Passage
from knowledge.permissions import deny
from retrieval.models import Receipt, Turn
from retrieval.signing import private_path
from tests.cast import Cast
from tests.factories import ready_source
from tests.retrieval.api.test_requests import refusal
from tests.retrieval.api.test_turns import client_of, start
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

DRAFT = "A berth costs 5 euros [S1]. Be kind."


def post(client: Client, path: str, body: Any) -> Any:
    """Send a value as JSON."""
    return client.post(path, json.dumps(body), content_type="application/json")


def stored(base: Any) -> str:
    """Store a passage in a knowledge base and return its ref."""
    source = ready_source("A berth costs five euros.", layer=base.layers.get())
    passage = Passage.objects.get(source=source)
    return passage.document.ref(passage.start, passage.end)


@pytest.mark.req("S1-API-03", "S1-VER-14")
def test_a_draft_is_verified(shelves: Corpus, cast: Cast) -> None:
    body = {"draft": DRAFT, "passages": [stored(shelves.handbook)]}
    response = post(cast.token_in_scope.client(), "/api/v1/verify", body)
    found = response.json()
    receipt_id = found.pop("receipt_id")
    assert found == {
        "status": "verified",
        "flags": [],
        "unchecked_sentences": ["Be kind."],
        "note": "",
        "notices": [],
    }
    assert Receipt.objects.get().public_id == receipt_id
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.req("REL-R7")
def test_a_key_that_is_lost_is_told_without_where_it_lies(
    shelves: Corpus, cast: Cast, settings: Settings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    private_path().write_text("no key")
    body = {"draft": DRAFT, "passages": [stored(shelves.handbook)]}
    response = post(cast.token_in_scope.client(), "/api/v1/verify", body)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "no_answer"
    assert str(tmp_path) not in response.content.decode()
    assert not Receipt.objects.exists()


@pytest.mark.req("S1-VER-14")
def test_a_flag_names_the_text_and_the_passages_searched(
    shelves: Corpus, cast: Cast
) -> None:
    ref = stored(shelves.handbook)
    body = {"draft": "It costs 13 euros [S1-S2].", "passages": [ref, ref]}
    found = post(cast.token_in_scope.client(), "/api/v1/verify", body).json()
    assert (found["status"], found["receipt_id"]) == ("flagged", None)
    assert found["flags"] == [
        {
            "kind": "fact",
            "text": "13 euros",
            "sentence": "It costs 13 euros [S1-S2].",
            "searched": ["S1", "S2"],
            "message": '"13 euros" not found in S1–S2',
        }
    ]


@pytest.mark.req("REL-A4", "D25")
def test_what_one_may_not_see_is_as_absent_as_what_is_not_there(
    shelves: Corpus, cast: Cast
) -> None:
    hidden = stored(shelves.vault)
    answers = []
    for ref in (hidden, "d123:0-25"):
        body = {"draft": DRAFT, "passages": [ref]}
        response = post(cast.token_in_scope.client(), "/api/v1/verify", body)
        answers.append(response.content.decode().replace(ref, "REF"))
    assert answers[0] == answers[1]
    assert '"kind":"passage"' in answers[0]
    assert not Receipt.objects.exists()


@pytest.mark.req("S1-VER-01")
@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"passages": ["d1:0-9"]}, "draft", "Send the draft"),
        ({"draft": "", "passages": ["d1:0-9"]}, "draft", "empty"),
        ({"draft": None, "passages": ["d1:0-9"]}, "draft", "empty"),
        ({"draft": "a" * 50_001, "passages": ["d1:0-9"]}, "draft", "in parts"),
        ({"draft": "So [S1]."}, "passages", "Send passages"),
        ({"draft": "So [S1].", "passages": "d1:0-9"}, "passages", "a list of refs"),
        ({"draft": "So [S1].", "passages": []}, "passages", "1 to 50"),
        ({"draft": "So [S1].", "passages": ["d1:0-9"] * 51}, "passages", "1 to 50"),
        ({"draft": "So [S1].", "passages": ["d" * 101]}, "passages.0", "looks like"),
        ({"draft": "So [S1].", "passages": ["d1:0-9"], "text": "x"}, "text", "Known"),
    ],
)
def test_what_is_wrong_is_named(
    cast: Cast, body: dict[str, Any], field: str, words: str
) -> None:
    error = refusal(post(cast.granted.client(), "/api/v1/verify", body), 400)
    assert list(error["fields"]) == [field]
    assert words in error["message"]


def test_it_is_throttled_like_the_others(cast: Cast, settings: Settings) -> None:
    settings.STRATA_API_RATE = 1
    body = {"draft": DRAFT, "passages": ["d1:0-9"]}
    client = cast.token_in_scope.client()
    statuses = [post(client, "/api/v1/verify", body).status_code for _ in range(2)]
    assert statuses == [200, 429]


class TestTurns:
    """Drafts of an agent."""

    def test_a_turn_verifies_what_it_is_bound_to(
        self, shelves: Corpus, cast: Cast
    ) -> None:
        ref = stored(shelves.handbook)
        turn = start(cast.agent_token)
        path = f"/api/v1/turns/{turn}/verify"
        body = {"draft": DRAFT, "passages": [ref]}
        found = post(cast.agent_token.client(), path, body).json()
        assert found["status"] == "verified"
        Turn.objects.update(knowledge_base_ids=[shelves.branches.pk])
        found = post(cast.agent_token.client(), path, body).json()
        assert [flag["kind"] for flag in found["flags"]] == ["passage"]
        refusal(post(cast.other_agent.client(), path, body), 404)
        refusal(post(cast.granted.client(), path, body), 404)

    @pytest.mark.req("S3-VIS-04", "R5")
    def test_a_deny_and_the_end_hold_at_once(self, shelves: Corpus, cast: Cast) -> None:
        body = {"draft": DRAFT, "passages": [stored(shelves.handbook)]}
        turn = start(cast.agent_token)
        client = cast.agent_token.client()
        path = f"/api/v1/turns/{turn}/verify"
        refusal(post(client, path, {**body, "layers": ["handbook/main"]}), 400)
        deny(shelves.handbook, to=client_of(cast.agent_token).owner, actor=None)
        found = post(client, path, body).json()
        assert [flag["kind"] for flag in found["flags"]] == ["passage"]
        post(client, f"/api/v1/turns/{turn}/end", {})
        assert refusal(post(client, path, body), 409)["code"] == "turn_ended"

    def test_a_client_that_may_not_search_verifies_nothing(
        self, shelves: Corpus, cast: Cast
    ) -> None:
        turn = start(cast.agent_token)
        row = client_of(cast.agent_token)
        row.search_enabled = False
        row.save()
        body = {"draft": DRAFT, "passages": [stored(shelves.handbook)]}
        for path in ("/api/v1/verify", f"/api/v1/turns/{turn}/verify"):
            error = refusal(post(cast.agent_token.client(), path, body), 403)
            assert error["code"] == "search_off"
