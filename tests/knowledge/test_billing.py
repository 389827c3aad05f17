"""The ledger's sums: by month, department and kind."""

import csv
import io
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.test import Client

from knowledge.billing import bills_of_department, bills_of_month, months
from knowledge.ledger import charge_person
from knowledge.models import AuditEntry, Department, LedgerEntry, User
from knowledge.models.ledger import Kind
from tests.factories import StaffFactory, UserFactory

pytestmark = pytest.mark.django_db

MAY = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def clinic() -> Department:
    """A department that was charged in May, beside somebody who belongs to none."""
    clinic = Department.objects.create(
        name="Clinic",
        search_price=Decimal("0.01"),
        token_price=Decimal("0.002"),
        currency="EUR",
    )
    person = UserFactory(department=clinic)
    charge_person(person.pk, {Kind.SEARCH: 1, Kind.EMBEDDING: 12, Kind.RERANK: 2500})
    charge_person(person.pk, {Kind.SEARCH: 1})
    charge_person(UserFactory().pk, {Kind.SEARCH: 1})
    LedgerEntry.objects.update(at=datetime(2026, 5, 31, 23, 59, tzinfo=UTC))
    return clinic


def page(role: str, query: str = "", path: str = "") -> tuple[int, str]:
    """Return what the ledger's page answers to a role."""
    client = Client()
    client.force_login(StaffFactory(groups=[role]))
    response = client.get(f"/admin/knowledge/ledgerentry/{path}{query}")
    return response.status_code, response.content.decode()


@pytest.mark.req("R24", "S3-BIL-01")
def test_a_month_adds_up_by_department_and_kind(clinic: Department) -> None:
    of_clinic, of_nobody = bills_of_month(MAY)
    assert of_clinic.department == clinic
    assert of_clinic.used["search"].units == of_clinic.used["search"].entries == 2
    assert of_clinic.used["rerank"].billed == Decimal("2.5")
    assert of_clinic.billed == Decimal("4.512")
    assert of_clinic.amounts == {"EUR": Decimal("0.025024")}
    assert of_nobody.department is None
    assert of_nobody.amounts == {}
    assert not bills_of_month(datetime(2026, 6, 1, tzinfo=UTC))
    assert months()[-1] == MAY


@pytest.mark.req("R24")
def test_a_department_adds_up_by_month(clinic: Department) -> None:
    assert clinic.people.count() == 1
    charge_person(clinic.people.get().pk, {Kind.ASK: 1})
    now, then = bills_of_department(clinic)
    assert set(now.used) == {"ask"}
    assert then.month == MAY


@pytest.mark.req("R24")
def test_the_page_shows_money_only_where_a_price_was_set(clinic: Department) -> None:
    status, told = page("Auditor", "?month=2026-05")
    assert status == 200
    assert "Clinic" in told
    assert "0.03 EUR" in told
    assert "No department" in told
    status, told = page("Administrator", f"?department={clinic.pk}")
    assert "May 2026" in told
    assert page("Editor")[0] == 403
    assert page("Editor", path="csv/")[0] == 403
    for nonsense in ("?month=nonsense", "?department=99", "?department=x"):
        assert page("Auditor", nonsense)[0] == 404


@pytest.mark.req("R24")
def test_the_table_has_a_line_for_each_kind(clinic: Department) -> None:
    clinic.name = "=Clinic"
    clinic.save()
    _status, told = page("Auditor", "?month=2026-05", "csv/")
    rows = list(csv.DictReader(io.StringIO(told)))
    assert [(row["department"], row["kind"]) for row in rows] == [
        ("'=Clinic", "search"),
        ("'=Clinic", "embedding"),
        ("'=Clinic", "rerank"),
        ("", "search"),
    ]
    assert rows[2]["billing_units"] == "2.5"
    assert Decimal(rows[0]["amount"].split()[0]) == Decimal("0.02")


@pytest.mark.req("R24")
def test_prices_are_audited_and_a_charged_department_stays(clinic: Department) -> None:
    client = Client()
    client.force_login(StaffFactory(groups=["Administrator"]))
    where = f"/admin/knowledge/department/{clinic.pk}"
    client.post(
        f"{where}/change/",
        {"name": "Clinic", "search_price": "0.05", "currency": "PLN"},
    )
    entry = AuditEntry.objects.get(verb="changed", target_type="department")
    assert entry.detail == {
        "search_price": "0.05",
        "token_price": "",
        "currency": "PLN",
    }
    told = client.post(f"{where}/delete/", {"post": "yes"}).content.decode()
    assert "was charged 4 times, and the ledger is kept." in told
    assert Department.objects.filter(pk=clinic.pk).exists()
    refused = client.post(f"{where}/change/", {"name": "Clinic", "currency": "euro"})
    assert "three letters" in refused.content.decode()


@pytest.mark.req("R24")
def test_people_and_knowledge_bases_are_put_into_a_department(
    clinic: Department,
) -> None:
    client = Client()
    boss = StaffFactory(is_superuser=True)
    client.force_login(boss)
    person = User.objects.get(department=clinic)
    told = client.get(f"/admin/knowledge/user/{person.pk}/change/").content.decode()
    assert 'name="department"' in told
    told = client.get("/admin/knowledge/knowledgebase/add/").content.decode()
    assert 'name="department"' in told
