"""The page of contacts: each looks after their own."""

import re

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from approvals.models import Contact
from approvals.notifying import secrets_of
from knowledge.models import AuditEntry, User
from tests.approvals.channels import hook_contact, mail_contact
from tests.approvals.gaps import approver_of
from tests.factories import LayerFactory, StaffFactory

pytestmark = pytest.mark.django_db
PAGE = "/admin/approvals/contact/"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def add(client: Client, user: User, **fields: object) -> tuple[str, Contact | None]:
    """Fill the form in, and return the page that follows and what it made."""
    form = {
        "user": user.pk,
        "kind": "email",
        "address": "anna@bank.example",
        "pace": "each",
        "is_active": "on",
        **fields,
    }
    page = client.post(f"{PAGE}add/", form, follow=True).content.decode()
    return page, Contact.objects.order_by("-pk").first()


@pytest.mark.req("S2-APR-02", "S2-APR-10")
def test_an_approver_makes_a_contact_of_their_own() -> None:
    person = approver_of(LayerFactory().knowledge_base)
    _, made = add(signed_in(person), person)
    assert made is not None
    assert (made.user, made.address, made.kind) == (
        person,
        "anna@bank.example",
        "email",
    )
    entry = AuditEntry.objects.get(target_type="contact")
    assert (entry.verb, "anna" in entry.target_label) == ("created", False)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"address": "anna"}, "no address of e-mail"),
        ({"address": "a@b.example, c@d.example"}, "no address of e-mail"),
        (
            {"kind": "webhook", "address": "https://evil.example/"},
            "STRATA_WEBHOOK_HOSTS",
        ),
        (
            {"kind": "webhook", "address": "anna@bank.example"},
            "no address of a webhook",
        ),
    ],
)
def test_an_address_must_fit_its_way(
    settings: Settings, fields: dict[str, object], said: str
) -> None:
    settings.STRATA_WEBHOOK_HOSTS = ["chat.example"]
    person = approver_of(LayerFactory().knowledge_base)
    page, made = add(signed_in(person), person, **fields)
    assert said in page
    assert made is None


def test_nobody_makes_or_sees_a_contact_of_another() -> None:
    base = LayerFactory().knowledge_base
    person, other = approver_of(base), approver_of(base)
    own, foreign = mail_contact(person), mail_contact(other)
    client = signed_in(person)
    page = client.get(PAGE).content.decode()
    assert f"{PAGE}{own.pk}/change/" in page
    assert other.username not in page
    assert client.get(f"{PAGE}{foreign.pk}/change/").status_code in {302, 404}
    _, newest = add(client, other)
    assert newest == foreign
    everything = signed_in(StaffFactory(is_superuser=True)).get(PAGE)
    assert other.username in everything.content.decode()


@pytest.mark.req("REL-W1")
def test_a_webhooks_secret_is_shown_once_and_can_be_changed(settings: Settings) -> None:
    settings.STRATA_WEBHOOK_HOSTS = ["chat.example"]
    person = approver_of(LayerFactory().knowledge_base)
    client = signed_in(person)
    page, made = add(client, person, kind="webhook", address="https://chat.example/in")
    assert made is not None
    (first,) = re.findall(r"whsec_[\w+/=]+", page)
    assert secrets_of(made) == [first]
    assert "whsec_" not in client.get(f"{PAGE}{made.pk}/change/").content.decode()
    form = {"action": "give_new_secret", "_selected_action": [made.pk]}
    page = client.post(PAGE, form, follow=True).content.decode()
    made.refresh_from_db()
    (second,) = re.findall(r"whsec_[\w+/=]+", page)
    assert secrets_of(made) == [second, first]


def test_layers_of_others_are_not_offered() -> None:
    own, foreign = LayerFactory(name="Own shelf"), LayerFactory(name="Far shelf")
    person = approver_of(own.knowledge_base)
    approver_of(foreign.knowledge_base)
    page = signed_in(person).get(f"{PAGE}add/").content.decode()
    assert "Own shelf" in page
    assert "Far shelf" not in page
    assert hook_contact(person).layer is None
