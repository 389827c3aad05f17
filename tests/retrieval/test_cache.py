"""Kept results: the same search is not run twice, and nothing old is ever shown."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from knowledge.actions import switch_source
from knowledge.models import KnowledgeBase, Layer, Source, User
from knowledge.permissions import Access, Reader, deny, grant
from retrieval.results import SearchResult
from retrieval.search import search
from retrieval.tuning import Tuning
from tests.retrieval.shelf import (
    MODEL,
    layer_of,
    open_space,
    put,
    reader_of,
    reads_passages,
)

pytestmark = pytest.mark.django_db(transaction=True)

EAST = (1.0, 0.0, 0.0, 0.0)


def ask(reader: Reader, **arguments: object) -> SearchResult:
    """Search as a request does: with a reader of its own."""
    fresh = Reader(user_id=reader.user_id, limit=reader.limit)
    return search(
        fresh,
        "heron",
        query_vector=EAST,
        query_model=MODEL,
        **arguments,  # type: ignore[arg-type]
    )


def texts(result: SearchResult) -> list[str]:
    """Return the texts of a result."""
    return [hit.text for hit in result.hits]


def searched_again(reader: Reader, **arguments: object) -> bool:
    """Tell whether passages are read for a search."""
    with CaptureQueriesContext(
        connection,
    ) as queries:
        ask(reader, **arguments)
    return any(reads_passages(each["sql"]) for each in queries)


@pytest.fixture
def reader() -> Reader:
    """Somebody who may search a knowledge base with two passages."""
    open_space()
    layer = layer_of("birds")
    put(layer, "The heron stands.", EAST, path="one.txt")
    put(layer, "The heron flies.", EAST, path="two.txt")
    return reader_of("birds")


@pytest.mark.req("S1-IDX-02")
def test_same_search_is_not_run_twice(reader: Reader) -> None:
    """Not for another person with the same list either; for other settings it is."""
    first = ask(reader)
    assert len(first.hits) == 2
    assert not searched_again(reader)
    assert ask(reader).hits == first.hits
    assert not searched_again(reader_of("birds"))
    assert searched_again(reader, top_k=1)
    assert searched_again(reader, tuning=Tuning(keyword_slots=0, version=7))


@pytest.mark.req("S1-IDX-02", "REL-K3")
def test_every_change_holds_at_the_next_request(reader: Reader) -> None:
    """A switch, an expiry, a rename, a new text, a deny: none shows the old result."""
    assert len(ask(reader).hits) == 2
    switch_source(Source.objects.get(path="one.txt"), enabled=False, actor=None)
    assert texts(ask(reader)) == ["The heron flies."]
    switch_source(Source.objects.get(path="one.txt"), enabled=True, actor=None)
    assert len(ask(reader).hits) == 2
    Layer.objects.update(archived_patterns=["two.*"])
    assert {hit.citation.archived for hit in ask(reader).hits} == {True, False}
    KnowledgeBase.objects.update(slug="fowl")
    assert {hit.citation.knowledge_base for hit in ask(reader).hits} == {"fowl"}
    Source.objects.filter(path="one.txt").update(path="first.txt")
    assert "first.txt" in {hit.citation.file for hit in ask(reader).hits}
    Source.objects.filter(path="first.txt").update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    assert texts(ask(reader)) == ["The heron flies."]
    base = KnowledgeBase.objects.get()
    person = User.objects.get(pk=reader.user_id)
    deny(base, to=person, actor=None)
    assert ask(reader).hits == ()


@pytest.mark.req("S1-IDX-02")
def test_result_does_not_outlive_a_source_that_expires(reader: Reader) -> None:
    """It ends with the first source in reach that does."""
    soon = timezone.now() + timedelta(seconds=1)
    Source.objects.filter(path="one.txt").update(expires_at=soon)
    assert len(ask(reader).hits) == 2
    while timezone.now() <= soon:
        ask(reader)
    assert texts(ask(reader)) == ["The heron flies."]


def test_result_of_a_transaction_is_nobody_elses(reader: Reader) -> None:
    """What was seen before a change is rolled back is not kept."""
    base = KnowledgeBase.objects.get()
    with transaction.atomic():
        Source.objects.filter(path="one.txt").update(path="draft.txt")
        assert "draft.txt" in {hit.citation.file for hit in ask(reader).hits}
        transaction.set_rollback(True)
    Source.objects.filter(path="one.txt").update(path="final.txt")
    base.refresh_from_db()
    assert "final.txt" in {hit.citation.file for hit in ask(reader).hits}


def test_degraded_result_is_not_kept(reader: Reader) -> None:
    """Without a vector the next search tries again."""
    fresh = Reader(user_id=reader.user_id)
    assert search(fresh, "heron").labels
    with CaptureQueriesContext(connection) as queries:
        search(Reader(user_id=reader.user_id), "heron")
    assert any(reads_passages(each["sql"]) for each in queries)


@pytest.mark.req("S2-ING-10")
def test_grant_of_another_knowledge_base_is_seen_at_once(reader: Reader) -> None:
    """The list is part of the key."""
    layer = layer_of("fish")
    put(layer, "The heron fishes.", EAST, path="three.txt")
    assert len(ask(reader).hits) == 2
    person = User.objects.get(pk=reader.user_id)
    fish = KnowledgeBase.objects.get(slug="fish")
    grant(fish, [Access.SEARCH], to=person, actor=None)
    assert len(ask(reader).hits) == 3
