"""The staff's pages of agent clients."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from knowledge.models import AgentClient, ApiToken, AuditEntry
from knowledge.permissions import Access, deny, grant
from knowledge.tokens import find_token
from tests.cast import Cast
from tests.factories import StaffFactory
from tests.stored_corpus import CANARY, Corpus

pytestmark = pytest.mark.django_db

LIST = "admin:knowledge_agentclient_changelist"
ADD = "admin:knowledge_agentclient_add"
CHANGE = "admin:knowledge_agentclient_change"
TOKEN = "admin:knowledge_agentclient_token"


@pytest.fixture
def head(shelves: Corpus) -> Client:
    """An administrator of the handbook, signed in."""
    person = StaffFactory(username="head", groups=["Administrator"])
    grant(shelves.handbook, [Access.LIST, Access.SEARCH], to=person, actor=None)
    client = Client()
    client.force_login(person)
    return client


def fields(shelves: Corpus, **changes: object) -> dict[str, object]:
    """Return what the form sends."""
    owner = StaffFactory._meta.model.objects.get(username="head")
    return {
        "owner": owner.pk,
        "name": "Desk",
        "knowledge_bases": [shelves.handbook.pk],
        "search_enabled": "on",
        "most_results": "20",
        **changes,
    }


@pytest.mark.req("S3-VIS-04", "R3")
def test_a_client_is_made_and_given_a_token(head: Client, shelves: Corpus) -> None:
    page = head.get(reverse(ADD)).content.decode()
    assert CANARY not in page.lower()
    assert head.post(reverse(ADD), fields(shelves, count=3)).status_code == 302
    client = AgentClient.objects.get()
    assert (client.name, client.count, client.search_type) == ("Desk", 3, "")
    assert list(client.knowledge_bases.all()) == [shelves.handbook]
    answer = head.post(
        reverse(TOKEN, args=[client.pk]), {"name": "till", "lifetime": "30"}
    )
    assert "no-store" in answer["Cache-Control"]
    found = re.search(r'id="new-token">(strata_[\w-]+)<', answer.content.decode())
    assert found is not None
    row = find_token(found[1])
    assert row is not None
    assert (row.client, row.owner, row.kind) == (client, client.owner, "agent_client")
    page = head.get(reverse(CHANGE, args=[client.pk])).content.decode()
    assert row.prefix in page
    assert found[1] not in page
    history = head.get(
        reverse("admin:knowledge_agentclient_history", args=[client.pk])
    ).content.decode()
    assert "gave token to" in history
    assert AuditEntry.objects.filter(verb="created", target_id=client.pk).exists()
    assert "Desk" in head.get(reverse(LIST)).content.decode()


@pytest.mark.req("R4")
@pytest.mark.parametrize(
    "changes",
    [
        {"most_results": "0"},
        {"most_results": "21"},
        {"count": "21"},
        {"search_type": "magic"},
        {"similarity_floor": "2"},
        {"keyword_weight": "-1"},
    ],
)
def test_a_setting_out_of_bounds_is_refused(
    head: Client, shelves: Corpus, changes: dict[str, str]
) -> None:
    assert head.post(reverse(ADD), fields(shelves, **changes)).status_code == 200
    assert not AgentClient.objects.exists()


@pytest.mark.req("S1-VIS-01")
def test_nobody_makes_a_client_that_acts_for_another(
    head: Client, shelves: Corpus, cast: Cast
) -> None:
    assert cast.insider.user is not None
    before = AgentClient.objects.count()
    for changes in (
        {"owner": cast.insider.user.pk},
        {"knowledge_bases": [shelves.vault.pk]},
    ):
        response = head.post(reverse(ADD), fields(shelves, **changes))
        assert response.status_code == 200
    assert AgentClient.objects.count() == before
    other = cast.agent_token.token_row
    assert other is not None
    for name in (CHANGE, TOKEN):
        assert head.get(reverse(name, args=[other.client_id])).status_code == 404
    assert "agent_token" not in head.get(reverse(LIST)).content.decode()


def test_a_binding_out_of_sight_is_neither_named_nor_lost(
    head: Client, shelves: Corpus
) -> None:
    head.post(reverse(ADD), fields(shelves))
    client = AgentClient.objects.get()
    client.knowledge_bases.add(shelves.vault)
    page = head.get(reverse(CHANGE, args=[client.pk])).content.decode()
    assert CANARY not in page.lower()
    assert CANARY not in head.get(reverse(LIST)).content.decode().lower()
    data = fields(shelves, knowledge_bases=[], name="Desk 2")
    assert head.post(reverse(CHANGE, args=[client.pk]), data).status_code == 302
    client.refresh_from_db()
    assert client.name == "Desk 2"
    assert list(client.knowledge_bases.all()) == [shelves.vault]


def test_the_owner_sees_and_revokes_what_acts_for_them(
    shelves: Corpus, cast: Cast
) -> None:
    client = cast.granted.client()
    page = client.get("/account/tokens/").content.decode()
    assert "Agents that act for you" in page
    assert "agent_token" in page
    assert CANARY not in page.lower()
    row = cast.agent_token.token_row
    assert row is not None
    assert client.post(f"/account/tokens/{row.pk}/revoke/").status_code == 302
    assert not ApiToken.objects.live().filter(pk=row.pk).exists()
    assert cast.granted.user is not None
    deny(shelves.handbook, to=cast.granted.user, actor=None)
    assert "nothing that you may search" in " ".join(
        client.get("/account/tokens/").content.decode().split()
    )
    assert "Agents that act" not in (
        cast.insider.client().get("/account/tokens/").content.decode()
    )
