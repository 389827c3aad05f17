"""Which searches are logged and charged: those that come through a door (R19)."""

import pytest

from knowledge.models import LedgerEntry
from knowledge.models.department import Department
from knowledge.models.person import User
from knowledge.permissions import Reader
from retrieval.models import SearchLog
from retrieval.results import Occasion
from retrieval.search import search
from tests.cast import Cast
from tests.retrieval.shelf import MODEL, layer_of, open_space, put, reader_of

pytestmark = pytest.mark.django_db


@pytest.mark.req("S2-LOG-01", "S3-BIL-01")
def test_search_of_the_api_and_of_the_portal_leaves_a_row_each(cast: Cast) -> None:
    """With the door it came through, and the department of whoever asked."""
    department = Department.objects.create(name="Front desk")
    User.objects.update(department=department)
    asked = cast.granted.client().get("/", {"q": "heron"})
    assert asked.status_code == 200
    posted = cast.token_in_scope.client().post(
        "/api/v1/search", {"query": "heron"}, content_type="application/json"
    )
    assert posted.status_code == 200
    rows = SearchLog.objects.order_by("pk").values_list("door", "query")
    assert list(rows) == [("portal", "heron"), ("api", "heron")]
    charged = LedgerEntry.objects.values_list("kind", "units", "department__name")
    assert list(charged) == [("search", 1, "Front desk")] * 2


@pytest.mark.req("R19")
def test_trial_leaves_no_trace(cast: Cast) -> None:
    """Neither one without a door nor one that says that it leaves none."""
    reader: Reader = cast.granted.reader
    search(reader, "heron")
    search(reader, "heron", occasion=Occasion("lab", leaves_trace=False))
    assert not SearchLog.objects.exists()
    assert not LedgerEntry.objects.exists()


@pytest.mark.req("S2-LOG-01", "S1-CNF-05")
def test_row_holds_the_way_to_the_result() -> None:
    """Each branch's ranks and scores, the fused order, what came back."""
    open_space()
    passage = put(layer_of("birds"), "The heron stands.", (1.0, 0.0, 0.0, 0.0))
    result = search(
        reader_of("birds"),
        "heron",
        query_vector=(1.0, 0.0, 0.0, 0.0),
        query_model=MODEL,
        occasion=Occasion("api"),
    )
    row = SearchLog.objects.get()
    assert set(row.rankings) == {"meaning", "keywords", "codes"}
    assert row.rankings["meaning"] == [[passage.pk, 1.0, 0]]
    assert row.fused == [passage.pk]
    assert row.hits[0]["ref"] == result.hits[0].ref
    assert row.total_ms > 0
    assert row.knowledge_bases == [passage.knowledge_base_id]
