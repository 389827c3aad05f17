"""The log of searches: what a row holds, and what it never does."""

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from knowledge.models import Passage
from knowledge.permissions import Access, Reader, grant
from retrieval.engine import Found
from retrieval.fusion import Candidate, Fused
from retrieval.log import record_search
from retrieval.models import SearchLog
from retrieval.results import (
    Basis,
    Branch,
    BranchRank,
    Citation,
    Confidence,
    Hit,
    Label,
    Level,
    Occasion,
    RoutingFallback,
    SearchResult,
)
from tests.factories import UserFactory, ready_source

pytestmark = pytest.mark.django_db


AT = Occasion("api")


@pytest.fixture
def reader() -> Reader:
    """A person who may search one knowledge base with one passage in it."""
    source = ready_source("The lift is out of order on Tuesdays.")
    user = UserFactory()
    grant(source.knowledge_base, [Access.SEARCH], to=user, actor=None)
    return Reader.for_user(user)


def found_by(reader: Reader) -> tuple[SearchResult, Found]:
    """Return a result with the reader's one passage, and the way to it."""
    passage = Passage.objects.visible_to(reader).get()
    ranks = {Branch.MEANING: BranchRank(1, 0.87654321)}
    hit = Hit(
        passage_id=passage.pk,
        ref=passage.document.ref(passage.start, passage.end),
        text=passage.text,
        score=0.0123456789,
        similarity=0.87654321,
        branches=ranks,
        citation=Citation(
            ref="",
            title="",
            knowledge_base=passage.knowledge_base.slug,
            layer=passage.layer.name,
            file="",
            page=None,
            lines="",
            clause_path="",
            date=None,
            date_source=None,
            archived=False,
            replaced_by=None,
            text_origin="text",
            revision="",
            indexed_at=datetime.now(UTC),
            url="",
        ),
        rerank_score=0.75,
    )
    result = SearchResult(
        query="lift",
        hits=(hit,),
        labels=(Label.RELAXED,),
        layers_ignored=2,
        model="a model",
        stage_ms={"embed": 3.5, "total": 12.25},
        confidence=Confidence(Level.MEDIUM, Basis.RERANK, 0.75),
        routing_fallback=RoutingFallback("nothing was found in the chosen layers"),
        knowledge_bases=reader.searchable,
        layers=frozenset({passage.layer_id}),
        tuning_version=3,
    )
    way = Found(
        rankings={
            Branch.MEANING: [Candidate(passage.pk, 0.87654321)],
            Branch.KEYWORDS: [Candidate(passage.pk, 0.5, relaxed=True)],
        },
        fused=[Fused(passage.pk, 0.0123, ranks)],
        reranked={passage.pk: 0.75},
    )
    return result, way


@pytest.mark.req("S2-LOG-01", "S1-CNF-05", "S3-LOG-01")
def test_a_row_tells_how_a_search_went_in_one_insert(reader: Reader) -> None:
    result, way = found_by(reader)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        row = record_search(
            reader,
            result,
            way,
            occasion=AT,
            query="lift",
            count=5,
            metadata_filter={"page": "3"},
            withheld=[7, 8],
        )
    statements = [each["sql"] for each in queries if "SAVEPOINT" not in each["sql"]]
    assert len(statements) == 1
    assert row is not None
    row = SearchLog.objects.get(pk=row.pk)
    hit = result.hits[0]
    assert row.person_id == reader.user_id
    assert (row.door, row.by_agent, row.query, row.count) == ("api", False, "lift", 5)
    assert row.knowledge_bases == sorted(reader.searchable)
    assert row.layers == [row.layer_id]
    assert row.rankings == {
        "meaning": [[hit.passage_id, 0.876543, 0]],
        "keywords": [[hit.passage_id, 0.5, 1]],
    }
    assert row.fused == [hit.passage_id]
    assert row.reranked == {str(hit.passage_id): 0.75}
    assert row.hits == [
        {
            "passage": hit.passage_id,
            "ref": hit.ref,
            "match": "ranked",
            "score": 0.012346,
            "similarity": 0.876543,
            "rerank_score": 0.75,
        }
    ]
    assert (row.status, row.level, row.basis) == ("partly_found", "medium", "rerank")
    assert row.labels == ["relaxed"]
    assert row.metadata_filter == {"page": "3"}
    assert row.withheld == [7, 8]
    assert (row.total_ms, row.stage_ms["embed"]) == (12.25, 3.5)
    assert row.fallback_reason == "nothing was found in the chosen layers"
    assert (row.tuning_version, row.model, row.layers_ignored) == (3, "a model", 2)
    assert row.hidden_rows is None


@pytest.mark.req("S2-LOG-01", "REL-A3")
def test_no_text_of_a_passage_is_logged(reader: Reader) -> None:
    result, way = found_by(reader)
    row = record_search(reader, result, way, occasion=AT, query="lift")
    assert row is not None
    assert "Tuesdays" not in str(SearchLog.objects.filter(pk=row.pk).values()[0])


@pytest.mark.req("S1-PRV-01", "R16")
def test_bank_details_are_scrubbed_unless_raw_questions_are_kept(
    reader: Reader, settings: Settings
) -> None:
    result, _way = found_by(reader)
    asked = "pay DE89 3704 0044 0532 0130 00"
    given = {"iban": "DE89370400440532013000"}
    row = record_search(
        reader, result, None, occasion=AT, query=asked, metadata_filter=given
    )
    assert row is not None
    assert (row.query, row.metadata_filter) == ("pay [IBAN]", {"iban": "[IBAN]"})
    settings.LEARNING_STORE_RAW_QUERIES = True
    row = record_search(reader, result, None, occasion=AT, query=asked)
    assert row is not None
    assert row.query == asked


@pytest.mark.req("R19")
def test_a_replay_leaves_no_trace(reader: Reader) -> None:
    result, way = found_by(reader)
    row = record_search(
        reader,
        result,
        way,
        occasion=Occasion("replay", leaves_trace=False),
        query="lift",
    )
    assert row is None
    assert not SearchLog.objects.exists()


@pytest.mark.req("REL-X7")
def test_a_log_that_cannot_be_written_costs_nobody_the_search(reader: Reader) -> None:
    result, way = found_by(reader)
    row = record_search(
        reader,
        result,
        way,
        occasion=Occasion("a door that does not exist"),
        query="lift",
    )
    assert row is None
    # The caller's transaction goes on.
    assert not SearchLog.objects.exists()
