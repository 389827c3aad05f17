"""The page of contacts: each looks after their own."""

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection
from django.http import Http404
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from approvals.admin.contacts import ContactAdmin
from approvals.models import Contact
from approvals.notifying import rotate_secret, secrets_of
from knowledge.models import AuditEntry, User
from tests.approvals.channels import hook_contact, mail_contact, told
from tests.approvals.gaps import approver_of
from tests.approvals.shown import waiting
from tests.factories import LayerFactory, StaffFactory

pytestmark = pytest.mark.django_db
PAGE = "/admin/approvals/contact/"
HOOK = "https://chat.example/in"


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


def change(client: Client, contact: Contact, **fields: object) -> str:
    """Change a contact by its form, and return the page that follows."""
    form = {
        "user": contact.user_id,
        "kind": contact.kind,
        "address": contact.address,
        "pace": contact.pace,
        "is_active": "on",
        **fields,
    }
    page = client.post(f"{PAGE}{contact.pk}/change/", form, follow=True)
    contact.refresh_from_db()
    return page.content.decode()


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
    assert "whsec_" not in client.get(PAGE).content.decode()
    # Who may only look gives none.
    looker = StaffFactory()
    looker.user_permissions.add(Permission.objects.get(codename="view_contact"))
    own = hook_contact(looker)
    form["_selected_action"] = [own.pk]
    page = signed_in(looker).post(PAGE, form, follow=True).content.decode()
    own.refresh_from_db()
    assert ("whsec_" in page, own.secret_number) == (False, 1)


def test_a_mail_contact_that_becomes_a_webhook_is_shown_its_secret(
    settings: Settings,
) -> None:
    settings.STRATA_WEBHOOK_HOSTS = ["chat.example"]
    person = approver_of(LayerFactory().knowledge_base)
    contact = mail_contact(person)
    page = change(signed_in(person), contact, kind="webhook", address=HOOK)
    assert secrets_of(contact)[0] in page


def test_what_happens_while_a_form_is_open_is_not_undone(settings: Settings) -> None:
    settings.STRATA_WEBHOOK_HOSTS = ["chat.example"]
    person = approver_of(LayerFactory().knowledge_base)
    contact = hook_contact(person)
    request = RequestFactory().post("/")
    request.user = person
    site = ContactAdmin(Contact, admin.site)
    form = site.get_form(request, contact, change=True)(
        {"user": person.pk, "kind": "webhook", "address": HOOK, "pace": "daily"},
        instance=Contact.objects.get(pk=contact.pk),
    )
    assert form.is_valid(), form.errors
    rotate_secret(contact, actor=person)
    site.save_model(request, form.save(commit=False), form, change=True)
    contact.refresh_from_db()
    assert (contact.pace, contact.secret_number) == ("daily", 2)
    contact.delete()
    with pytest.raises(Http404):
        site.save_model(request, form.instance, form, change=True)


def test_a_longer_list_costs_no_more_queries() -> None:
    base = LayerFactory().knowledge_base
    client = signed_in(StaffFactory(is_superuser=True))
    pending = waiting("Where is the lift?", base)
    sent = told(mail_contact(approver_of(base)), pending)
    sent.sent_at = timezone.now()
    sent.save()
    settled = told(mail_contact(approver_of(base)), pending)
    settled.dropped_at = timezone.now()
    settled.save()
    told(mail_contact(approver_of(base)), pending)
    with CaptureQueriesContext(connection) as few:
        page = client.get(PAGE).content.decode()
    for state in (">sent<", ">not needed any more<", ">waits<"):
        assert page.count(state) == 1
    for _number in range(5):
        refused = told(mail_contact(approver_of(base)), pending)
        refused.problem = "The server is full."
        refused.save()
    with CaptureQueriesContext(connection) as many:
        assert "The server is full." in client.get(PAGE).content.decode()
    assert len(many) == len(few)


def test_layers_of_others_are_not_offered() -> None:
    own, foreign = LayerFactory(name="Own shelf"), LayerFactory(name="Far shelf")
    person = approver_of(own.knowledge_base)
    approver_of(foreign.knowledge_base)
    page = signed_in(person).get(f"{PAGE}add/").content.decode()
    assert "Own shelf" in page
    assert "Far shelf" not in page
    assert hook_contact(person).layer is None
