"""Terms of stored passages, written anew."""

import pytest
from django.core.management import call_command

from knowledge.models import KnowledgeBase, Passage, Source
from knowledge.reindexing import ask_for_terms, rewrite_terms
from knowledge.tasks import tune
from knowledge.terms import TERMS_VERSION, read_query
from retrieval.branches import by_keywords
from retrieval.reach import Reach
from tests.retrieval.shelf import layer_of, put, reader_of

pytestmark = pytest.mark.django_db


@pytest.mark.req("S2-LNG-01")
def test_passages_of_an_older_version_are_brought_up_without_embedding() -> None:
    """Words alone were stored; afterwards other forms and parts of codes are found."""
    passage = put(layer_of("forms"), "Fees of the form pacs.008.001.08 are due.")
    Passage.objects.update(terms="fees of the form pacs 008 001 08 are due", codes=[])
    Source.objects.update(terms_version=0)
    version = KnowledgeBase.objects.get().version
    reach = Reach.of(reader_of("forms"), None, {})
    assert by_keywords(reach, read_query("fee"), count=5).candidates == []

    assert rewrite_terms() == 1
    found = by_keywords(reach, read_query("fee"), count=5).candidates
    assert [row.passage_id for row in found] == [passage.pk]
    passage.refresh_from_db()
    assert "~pacs008" in passage.codes
    assert Source.objects.get().terms_version == TERMS_VERSION
    # What was cached of it ends.
    assert KnowledgeBase.objects.get().version > version
    assert rewrite_terms() == 0


@pytest.mark.req("R14")
def test_a_layer_that_is_changed_has_its_terms_written_by_the_worker() -> None:
    layer = layer_of("forms")
    put(layer, "Każda pożyczka to umowa.")
    layer.languages, layer.matches_without_accents = ["pl"], True
    layer.save()
    reach = Reach.of(reader_of("forms"), None, {})
    assert by_keywords(reach, read_query("pozyczka"), count=5).candidates == []
    ask_for_terms(layer)
    tune()
    (found,) = by_keywords(
        Reach.of(reader_of("forms"), None, {}), read_query("pozyczka"), count=5
    ).candidates
    assert found.without_accents


def test_the_command_tells_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    put(layer_of("forms"), "A fee.")
    Source.objects.update(terms_version=0)
    call_command("rewrite_terms")
    assert "Passages with new terms: 1." in capsys.readouterr().out
