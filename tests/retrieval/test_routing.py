"""Routing: patterns choose layers first, never beyond the reader's own list."""

from collections.abc import Iterator, Mapping

import pytest

from knowledge.models import Layer
from knowledge.permissions import Reader
from retrieval import routing
from retrieval.reach import Reach
from retrieval.routing import matches, route, words_of
from retrieval.search import search
from retrieval.sizes import Size
from tests.retrieval.shelf import layer_of, open_space, put, reader_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("pattern", "query"),
    [
        ("invoice*", "Where do INVOICES go?"),
        ("qt-*", "What is QT-07?"),
        ("thẻ thành viên", "làm thẻ  thành viên ở đâu"),
        ("c++", "Is c++ allowed here"),
    ],
)
def test_pattern_matches_whole_words(pattern: str, query: str) -> None:
    """Case, spaces and the two Unicode forms do not matter."""
    assert matches(pattern, words_of(query))


@pytest.mark.parametrize(
    ("pattern", "query"),
    [
        ("invoice", "invoices"),
        ("art", "start an article"),
        ("dang", "đăng ký"),
        ("fee list", "list of fees"),
        ("[a-z]*", "anything"),
        ("", "anything"),
        ("*a" * 60, "a" * 59 + "b" * 900),
    ],
)
def test_pattern_is_not_a_part_of_a_word(pattern: str, query: str) -> None:
    """Without a star nothing may follow, and tone marks count."""
    assert not matches(pattern, words_of(query))


def route_for(reader: Reader, query: str) -> frozenset[int] | None:
    """Route a query within the reader's whole reach."""
    return route(query, Reach.of(reader).sizes)


@pytest.fixture
def reader() -> Reader:
    """Somebody who may search one of two knowledge bases, each with two layers."""
    open_space()
    for slug in ("open", "closed"):
        rules, prices = layer_of(slug, "rules"), layer_of(slug, "prices")
        Layer.objects.filter(pk=prices.pk).update(routing_patterns=["price*", "fee*"])
        put(rules, f"The fee is set in the {slug} rules.", path="rules.txt")
        put(prices, f"The fee is 4 crowns in {slug}.", path="prices.txt")
    return reader_of("open")


@pytest.mark.req("S1-RTE-01", "S3-VIS-01")
def test_pattern_leads_to_a_layer_of_ones_own(reader: Reader) -> None:
    """The same pattern in a hidden knowledge base leads nowhere."""
    assert route_for(reader, "What fees are there?") == {layer_of("open", "prices").pk}
    assert route_for(reader, "What rules are there?") is None
    assert route_for(reader_of(), "What fees are there?") is None
    result = search(reader, "fee", top_k=1)
    assert [hit.citation.layer for hit in result.hits] == ["prices"]
    assert result.layers == {layer_of("open", "prices").pk}
    assert result.routing_fallback is None


@pytest.mark.req("S1-RTE-02", "S1-RTE-03", "R6")
def test_too_few_results_search_all_layers_of_the_list(reader: Reader) -> None:
    """And the result says so; what is hidden stays hidden."""
    result = search(reader, "fee", top_k=5)
    assert {hit.citation.layer for hit in result.hits} == {"prices", "rules"}
    assert {hit.citation.knowledge_base for hit in result.hits} == {"open"}
    assert result.routing_fallback is not None
    assert result.routing_fallback.reason == "insufficient_results"
    assert result.routing_fallback.searched_layers == "all"


@pytest.mark.req("S1-RTE-04")
def test_named_layers_are_never_broadened(reader: Reader) -> None:
    """Not when they give too little, nor to where a pattern leads."""
    result = search(reader, "fee", layers=["rules"], top_k=5)
    assert {hit.citation.layer for hit in result.hits} == {"rules"}
    assert result.routing_fallback is None


@pytest.fixture
def learned() -> Iterator[dict[int, float]]:
    """An affinity that the test fills."""
    strengths: dict[int, float] = {}

    def affinity(sizes: Mapping[int, Size], text: str) -> Mapping[int, float]:
        return strengths

    routing.affinities.append(affinity)
    yield strengths
    routing.affinities.remove(affinity)


@pytest.mark.req("S1-RTE-01")
def test_learned_affinity_leads_within_ones_own_list(
    reader: Reader, learned: dict[int, float]
) -> None:
    """Strong enough it counts; a layer of another list never does."""
    rules, hidden = layer_of("open", "rules").pk, layer_of("closed", "rules").pk
    learned |= {rules: 0.8, hidden: 0.9}
    assert route_for(reader, "anything") == {rules}
    learned[rules] = 0.2
    assert route_for(reader, "anything") is None
