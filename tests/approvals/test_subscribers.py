"""The page of deliveries to agent clients: who is sent what, and with which secret."""

import re
from uuid import uuid4

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from approvals.admin.subscribers import SubscriberAdmin
from approvals.models import Delivery, Subscriber
from approvals.pushing import secret_for
from knowledge.models import AgentClient, User
from tests.approvals.shown import waiting
from tests.factories import KnowledgeBaseFactory, StaffFactory

pytestmark = pytest.mark.django_db
PAGE = "/admin/approvals/subscriber/"
URL = "https://kiosk.example/in"


@pytest.fixture
def boss(settings: Settings) -> User:
    """Who looks after all clients."""
    settings.STRATA_WEBHOOK_HOSTS = ["kiosk.example"]
    person: User = StaffFactory(is_superuser=True)
    return person


def subscriber(owner: User, name: str = "kiosk") -> Subscriber:
    """Return an agent client at the outbox, with one delivery that waits."""
    client = AgentClient.objects.create(owner=owner, name=name)
    made = Subscriber.objects.create(client=client, last_sequence=1)
    Delivery.objects.create(
        client=client,
        pending=waiting(f"Where is {uuid4()}?", KnowledgeBaseFactory()),
        revision=1,
        kind="answer",
        sequence=1,
    )
    return made


def secrets_after(client: Client, pk: int, **form: str) -> list[str]:
    """Send the form, and return the secrets on the page that follows."""
    sent = {"channel": "voice", "push_url": URL, **form}
    page = client.post(f"{PAGE}{pk}/change/", sent, follow=True)
    return re.findall(r"whsec_[\w+/=]+", page.content.decode())


@pytest.mark.req("R17")
def test_the_secret_is_shown_once_when_messages_begin_and_when_it_is_new(
    client: Client, boss: User
) -> None:
    client.force_login(boss)
    made = subscriber(boss)
    first = secret_for(made)
    assert secrets_after(client, made.pk, push_url="") == []
    assert secrets_after(client, made.pk) == [first]
    assert secrets_after(client, made.pk) == []
    assert "whsec_" not in client.get(f"{PAGE}{made.pk}/change/").content.decode()
    (second,) = secrets_after(client, made.pk, renew="on")
    made.refresh_from_db()
    assert second == secret_for(made) != first


@pytest.mark.req("R17")
def test_what_is_numbered_while_a_form_is_open_stays_numbered(boss: User) -> None:
    made = subscriber(boss)
    request = RequestFactory().post("/")
    request.user = boss
    site = SubscriberAdmin(Subscriber, admin.site)
    form = site.get_form(request, made, change=True)(
        {"channel": "voice", "push_url": ""},
        instance=Subscriber.objects.get(pk=made.pk),
    )
    assert form.is_valid(), form.errors
    Subscriber.objects.filter(pk=made.pk).update(last_sequence=7, secret_number=3)
    site.save_model(request, form.save(commit=False), form, change=True)
    made.refresh_from_db()
    assert (made.channel, made.last_sequence, made.secret_number) == ("voice", 7, 3)


def test_a_longer_list_costs_no_more_queries(client: Client, boss: User) -> None:
    client.force_login(boss)
    subscriber(boss)
    with CaptureQueriesContext(connection) as few:
        page = client.get(PAGE).content.decode()
    assert '<td class="field-waiting">1</td>' in page
    for number in range(5):
        subscriber(boss, f"kiosk {number}")
    with CaptureQueriesContext(connection) as many:
        client.get(PAGE)
    assert len(many) == len(few)
