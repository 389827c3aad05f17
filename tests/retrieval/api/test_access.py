"""Who gets in at the API, and what nobody is told."""

import logging
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from knowledge.models import User
from knowledge.permissions import deny, withdraw
from knowledge.tokens import PREFIX_LENGTH, revoke_token
from tests.cast import BOTH, Actor, Cast
from tests.factories import PASSWORD, ready_source
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db


def me(authorization: str | None = None) -> Any:
    """Ask who one is, with a header."""
    headers = {"Authorization": authorization} if authorization is not None else {}
    return Client().get("/api/v1/me", headers=headers)


class TestTokens:
    """Tokens in the header."""

    def test_a_token_acts_for_its_owner(self, cast: Cast) -> None:
        body = cast.token_in_scope.client().get("/api/v1/me").json()
        row = cast.token_in_scope.token_row
        assert row is not None
        assert body["username"] == "granted"
        assert body["knowledge_bases"] == [
            {"slug": "handbook", "name": "Member handbook"}
        ]
        assert body["token"]["prefix"] == row.prefix
        assert body["token"]["covers_all"] is False
        assert cast.token_in_scope.token not in str(body)
        assert row.digest not in str(body)

    @pytest.mark.req("REL-T2")
    def test_every_wrong_token_gets_the_same_answer(
        self, cast: Cast, caplog: pytest.LogCaptureFixture
    ) -> None:
        good = cast.token_in_scope.token
        wrong = {
            "wrong": good[:-4] + "AAAA",
            "truncated": good[:-1],
            "other case": good.swapcase(),
            "expired": cast.expired_token.token,
            "revoked": cast.revoked_token.token,
            "empty": "",
            "not ours": "eyJhbGciOiJIUzI1NiJ9.e30.x",
        }
        with caplog.at_level(logging.WARNING):
            answers = [me(f"Bearer {token}") for token in wrong.values()]
        assert {response.status_code for response in answers} == {401}
        assert len({response.content for response in answers}) == 1
        assert len({tuple(response.headers.items()) for response in answers}) == 1
        assert answers[0].headers["WWW-Authenticate"].startswith("Bearer ")
        log = caplog.text
        assert cast.revoked_token.token[:PREFIX_LENGTH] in log
        for token in wrong.values():
            assert not token or token not in log

    def test_the_scheme_is_not_case_sensitive(self, cast: Cast) -> None:
        assert me(f"bearer {cast.token_in_scope.token}").status_code == 200

    @pytest.mark.parametrize("header", [None, "Basic YTpi", "Token x", "Bearer"])
    def test_no_token_is_401_with_a_challenge(self, header: str | None) -> None:
        response = me(header)
        assert response.status_code == 401
        assert "WWW-Authenticate" in response.headers

    @pytest.mark.req("REL-T5")
    @pytest.mark.parametrize("name", ["token", "access_token", "api_key", "anything"])
    def test_a_token_in_the_address_is_refused(self, cast: Cast, name: str) -> None:
        client = cast.token_in_scope.client()
        response = client.get("/api/v1/me", {name: cast.token_in_scope.token})
        assert response.status_code == 400
        assert response.json()["error"]["code"] == "token_in_address"
        assert cast.token_in_scope.token not in response.content.decode()

    def test_the_token_counts_and_not_the_session(self, cast: Cast) -> None:
        client = cast.insider.client()
        client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {cast.token_in_scope.token}"
        assert client.get("/api/v1/me").json()["username"] == "granted"
        assert [
            each["slug"] for each in client.get("/api/v1/me").json()["knowledge_bases"]
        ] == ["handbook"]

    def test_a_wrong_token_is_not_saved_by_a_session(self, cast: Cast) -> None:
        client = cast.granted.client()
        client.defaults["HTTP_AUTHORIZATION"] = "Bearer strata_nothing"
        assert client.get("/api/v1/me").status_code == 401


class TestBrowsers:
    """A person who is signed in."""

    def test_reading_needs_no_csrf_token(self, cast: Cast) -> None:
        assert cast.granted.client().get("/api/v1/layers").status_code == 200

    def test_a_search_from_elsewhere_is_refused(self, cast: Cast) -> None:
        client = Client(enforce_csrf_checks=True)
        assert client.login(username="granted", password=PASSWORD)
        response = client.post(
            "/api/v1/search", {"query": "a"}, content_type="application/json"
        )
        assert response.status_code == 403
        assert "CSRF" in response.json()["error"]["message"]

    def test_a_search_from_our_own_page_is_taken(self, cast: Cast) -> None:
        client = Client(enforce_csrf_checks=True)
        assert client.login(username="granted", password=PASSWORD)
        page = client.get("/api/v1/docs", {"script": ""}).content.decode()
        token = page.split('"X-CSRFTOKEN"] = "')[1].split('"')[0]
        response = client.post(
            "/api/v1/search",
            {"query": "a"},
            content_type="application/json",
            headers={"X-CSRFToken": token},
        )
        assert response.status_code == 200


@pytest.mark.req("REL-A11", "REL-T3")
class TestTheNextRequest:
    """What is taken away is gone at once."""

    @pytest.fixture
    def sees(self, shelves: Corpus, cast: Cast) -> Any:
        """Tell what an actor's search finds."""
        layer = shelves.handbook.layers.get()
        ready_source("An overdraft lasts ninety days.", layer=layer)

        def look(actor: Actor) -> int | str:
            response = actor.client().post(
                "/api/v1/search",
                {"query": "overdraft"},
                content_type="application/json",
            )
            if response.status_code != 200:
                return str(response.status_code)
            return len(response.json()["results"])

        assert look(cast.token_in_scope) == look(cast.granted) == 1
        return look

    def test_after_a_grant_is_withdrawn(
        self, sees: Any, cast: Cast, shelves: Corpus
    ) -> None:
        withdraw(shelves.handbook, BOTH, holder=cast.members, actor=None)
        assert sees(cast.token_in_scope) == sees(cast.granted) == 0

    def test_after_a_deny(self, sees: Any, cast: Cast, shelves: Corpus) -> None:
        deny(shelves.handbook, to=cast.members, actor=None)
        assert sees(cast.token_in_scope) == sees(cast.granted) == 0

    def test_after_leaving_the_group(self, sees: Any, cast: Cast) -> None:
        cast.members.user_set.remove(cast.granted.user)
        assert sees(cast.token_in_scope) == sees(cast.granted) == 0

    @pytest.mark.req("REL-T4")
    def test_after_deactivation(self, sees: Any, cast: Cast) -> None:
        User.objects.filter(pk=cast.granted.user.pk).update(is_active=False)
        assert sees(cast.token_in_scope) == sees(cast.agent_token) == "401"
        assert sees(cast.granted) == "401"

    def test_after_revoking(self, sees: Any, cast: Cast) -> None:
        revoke_token(cast.token_in_scope.token_row, actor=None)
        assert sees(cast.token_in_scope) == "401"
        assert sees(cast.agent_token) == 1

    def test_toggles_are_never_stale(
        self, sees: Any, cast: Cast, shelves: Corpus
    ) -> None:
        for _ in range(10):
            cast.members.user_set.remove(cast.granted.user)
            assert sees(cast.token_in_scope) == 0
            cast.members.user_set.add(cast.granted.user)
            assert sees(cast.token_in_scope) == 1


@pytest.mark.req("REL-T6")
@pytest.mark.parametrize("path", ["me", "layers", "schema", "docs", "nothing"])
def test_no_cache_may_keep_an_answer(cast: Cast, path: str) -> None:
    for actor in (cast.granted, cast.token_in_scope, cast.anonymous):
        response = actor.client().get(f"/api/v1/{path}")
        cached = response.headers["Cache-Control"]
        assert "no-store" in cached or "private" in cached
        assert "no-cache" in cached or "no-store" in cached
        vary = response.headers["Vary"]
        assert "Cookie" in vary


@pytest.mark.req("REL-A15")
@pytest.mark.parametrize("name", ["ungranted", "lister", "denied", "superuser"])
def test_whoever_may_search_nothing_gets_an_empty_result_of_the_usual_shape(
    cast: Cast, shelves: Corpus, name: str
) -> None:
    ready_source("An overdraft lasts.", layer=shelves.handbook.layers.get())
    response = (
        cast[name]
        .client()
        .post("/api/v1/search", {"query": "overdraft"}, content_type="application/json")
    )
    body = response.json()
    assert UUID(body.pop("interaction_id"))
    assert body == {
        "status": "ok",
        "results": [],
        "labels": [],
        "notices": [],
        "layers_ignored": 0,
        "model": None,
        "confidence": None,
        "note": "",
        "did_you_mean": "",
        "routing_fallback": None,
    }
