"""How many requests a reader may make."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from retrieval.models import RequestAllowance
from tests.cast import Actor, Cast


def statuses(actor: Actor, count: int) -> list[int]:
    """Return the statuses of requests one after the other."""
    client = actor.client()
    return [client.get("/api/v1/me").status_code for _ in range(count)]


@pytest.mark.django_db
class TestLimit:
    """The limit of each reader."""

    def test_beyond_it_is_429_with_the_time_to_wait(
        self, cast: Cast, settings: Settings
    ) -> None:
        settings.STRATA_API_RATE = 3
        assert statuses(cast.token_in_scope, 4) == [200, 200, 200, 429]
        response = cast.token_in_scope.client().get("/api/v1/me")
        error = response.json()["error"]
        assert error["code"] == "throttled"
        assert 1 <= int(response.headers["Retry-After"]) <= 20

    def test_each_token_and_person_has_their_own(
        self, cast: Cast, settings: Settings
    ) -> None:
        settings.STRATA_API_RATE = 1
        assert statuses(cast.token_in_scope, 2) == [200, 429]
        assert statuses(cast.agent_token, 1) == [200]
        assert statuses(cast.granted, 2) == [200, 429]
        assert statuses(cast.editor, 1) == [200]

    def test_time_earns_requests_back(self, cast: Cast, settings: Settings) -> None:
        settings.STRATA_API_RATE = 2
        assert statuses(cast.token_in_scope, 3) == [200, 200, 429]
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE retrieval_requestallowance "
                "SET ready_at = ready_at - interval '30 seconds'"
            )
        assert statuses(cast.token_in_scope, 2) == [200, 429]

    def test_zero_is_no_limit(self, cast: Cast, settings: Settings) -> None:
        settings.STRATA_API_RATE = 0
        assert statuses(cast.token_in_scope, 3) == [200, 200, 200]
        assert not RequestAllowance.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.req("REL-T9")
def test_the_limit_is_one_for_all_connections(cast: Cast, settings: Settings) -> None:
    settings.STRATA_API_RATE = 10

    def ask(_number: int) -> list[int]:
        try:
            return statuses(cast.token_in_scope, 5)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        found = [status for part in pool.map(ask, range(4)) for status in part]
    assert sorted(found) == [200] * 10 + [429] * 10
