"""Who pays for what: units always, money only where there is a price."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError, Sum
from django.test.utils import CaptureQueriesContext

from knowledge.ledger import charge_person
from knowledge.models import Department, LedgerEntry
from knowledge.models.ledger import Kind
from knowledge.permissions import Reader
from retrieval.embedding import embed_now
from retrieval.engine import find
from retrieval.journal import Journal
from retrieval.ledger import charge_all, charge_search
from retrieval.reach import Reach
from retrieval.tuning import current
from tests.cast import Cast
from tests.factories import KnowledgeBaseFactory, UserFactory
from tests.stored_corpus import Corpus, bring_in

pytestmark = pytest.mark.django_db


@pytest.mark.req("S3-BIL-01", "R24")
def test_a_search_is_charged_to_the_searchers_department_of_that_moment() -> None:
    archive = Department.objects.create(name="Archive")
    KnowledgeBaseFactory(department=archive)
    clinic = Department.objects.create(name="Clinic")
    person = UserFactory(department=clinic)
    charge_all(Reader.for_user(person), {"search": 1})
    person.department = archive
    person.save()
    charge_all(Reader.for_user(person), {"search": 1})
    first, second = LedgerEntry.objects.order_by("pk")
    assert (first.department, second.department) == (clinic, archive)


@pytest.mark.req("R24")
def test_all_of_one_search_is_one_statement() -> None:
    reader = Reader.for_user(UserFactory())
    with CaptureQueriesContext(connection) as queries:
        charge_all(reader, {"search": 1, "embedding": 7, "rerank": 3100, "rewrite": 0})
    assert len(queries) == 1
    assert dict(LedgerEntry.objects.values_list("kind", "units")) == {
        "search": 1,
        "embedding": 7,
        "rerank": 3100,
    }


@pytest.mark.req("R24")
def test_money_stands_only_where_a_price_is_set() -> None:
    clinic = Department.objects.create(
        name="Clinic", token_price=Decimal("0.02"), currency="PLN"
    )
    person = UserFactory(department=clinic)
    charge_person(person.pk, {Kind.SEARCH: 1, Kind.RERANK: 3500})
    search = LedgerEntry.objects.get(kind=Kind.SEARCH)
    assert (search.amount, search.currency) == (None, "")
    rerank = LedgerEntry.objects.get(kind=Kind.RERANK)
    assert (rerank.amount, rerank.currency) == (Decimal("0.07"), "PLN")
    # A price that changes later changes nothing that was charged.
    Department.objects.update(token_price=Decimal(9), search_price=Decimal(1))
    charge_person(person.pk, {Kind.ASK: 1})
    assert LedgerEntry.objects.aggregate(sum=Sum("amount"))["sum"] == Decimal("1.07")


@pytest.mark.req("R24")
def test_who_has_no_department_is_counted_all_the_same() -> None:
    charge_all(Reader(user_id=None), {"search": 1})
    charge_all(Reader.for_user(UserFactory()), {"search": 1})
    assert list(LedgerEntry.objects.values_list("department", "amount")) == [
        (None, None),
        (None, None),
    ]


@pytest.mark.req("R24")
def test_ingest_is_charged_to_the_knowledge_bases_department(
    corpus: Corpus, cast: Cast
) -> None:
    payer = Department.objects.create(name="Branches", token_price=Decimal(1))
    corpus.branches.department = payer
    corpus.branches.save()
    text = "# Lift\n\nThe lift of this branch stands still on the last Tuesday.\n"
    before = LedgerEntry.objects.count()
    bring_in(corpus.branches.layers.get(name="main"), "lift.md", text)
    entry = LedgerEntry.objects.latest("pk")
    assert LedgerEntry.objects.count() == before + 1
    assert (entry.kind, entry.department) == (Kind.INGEST, payer)
    assert 10 < entry.units < 40
    assert entry.amount == Decimal(entry.units) / 1000
    # The same text again needs no vector, and costs nothing.
    bring_in(corpus.handbook.layers.get(name="main"), "lift.md", text)
    assert LedgerEntry.objects.count() == before + 1


@pytest.mark.req("R24")
def test_a_department_that_was_charged_stays() -> None:
    payer = Department.objects.create(name="Branches")
    person = UserFactory(department=payer)
    charge_person(person.pk, {Kind.SEARCH: 1})
    with pytest.raises(ProtectedError):
        payer.delete()
    LedgerEntry.objects.all().delete()
    payer.delete()
    person.refresh_from_db()
    assert person.department is None


@pytest.mark.req("R24")
def test_a_price_is_never_negative() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Department.objects.create(name="Branches", search_price=Decimal(-1))


@pytest.mark.req("R24")
def test_a_search_is_charged_with_the_tokens_it_used(
    corpus: Corpus, cast: Cast
) -> None:
    query = "What happens when a member loses the card?"
    reader = cast.granted.reader
    journal = Journal()
    found = find(
        Reach.of(reader),
        query,
        tuning=current(),
        count=5,
        journal=journal,
        vector=lambda: embed_now(query, journal),
        reranks=True,
    )
    charge_search(reader, query, found, embedded=True)
    used = dict(LedgerEntry.objects.exclude(kind="ingest").values_list("kind", "units"))
    assert used["search"] == 1
    assert 8 <= used["embedding"] <= 14
    assert used["rerank"] > 20 * len(found.reranked)
    LedgerEntry.objects.all().delete()
    # The sender's own vector and an answer from the cache cost the search alone.
    charge_search(reader, query, replace(found, reranked={}), embedded=False)
    charge_search(reader, query, None, embedded=True)
    assert list(LedgerEntry.objects.values_list("kind", "units")) == [("search", 1)] * 2
