"""What a search gives for a query that names a clause: the clause, then the rest."""

import pytest
from pytest_django.fixtures import Settings

from retrieval.results import Match
from retrieval.search import search
from tests.retrieval.shelf import layer_of, put, reader_of
from tests.retrieval.test_sections import CHARTER, write

pytestmark = pytest.mark.django_db


@pytest.mark.req("S1-HYB-09", "S1-ASK-14")
def test_named_section_comes_first_and_passages_after_it() -> None:
    """Its words are there once: a passage inside the section is not given again."""
    layer = layer_of("law")
    write(layer, CHARTER, "charter.md")
    put(layer, "Article 5 is often asked about: pay.", path="questions.txt")
    result = search(reader_of("law"), "Article 5 pay", top_k=5)
    first, *others = result.hits
    assert first.match is Match.EXACT
    assert first.text == "### Article 5 – Pay\n\nPay is due monthly."
    assert {hit.match for hit in others} == {Match.RANKED}
    assert "questions.txt" in {hit.citation.file for hit in others}


@pytest.mark.req("S1-MIS-01", "S1-MIS-02")
def test_long_section_is_cut_in_a_search_and_says_so(settings: Settings) -> None:
    """To the answer's budget, at a word; the status stays what it is."""
    settings.ANSWER_TOKEN_BUDGET = 100
    long = "### Article 9 – Rope\n\n" + "Ropes are looked at daily. " * 60
    write(layer_of("law"), f"# Rope Rules\n\n{long}\n", "rope.md")
    hit = search(reader_of("law"), "Article 9", top_k=1).hits[0]
    assert hit.cut
    assert 200 <= len(hit.text) <= 400
    assert long.startswith(hit.text)
    assert long[len(hit.text)].isspace()


@pytest.mark.req("S1-ASK-16")
def test_number_that_is_no_section_changes_nothing() -> None:
    """A bare version finds what it would find anyway."""
    write(layer_of("law"), CHARTER, "charter.md")
    result = search(reader_of("law"), "hours in release 77.2")
    assert {hit.match for hit in result.hits} <= {Match.RANKED}
    assert result.note == ""
