"""Rating answers over HTTP and in the portal; what was learned, told over HTTP."""

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from knowledge.permissions import deny
from retrieval.models import Feedback, LearnedItem, PassageFeedback
from tests.cast import Actor, Cast
from tests.factories import ready_source
from tests.retrieval.api.test_turns import post, start
from tests.retrieval.test_sections import CHARTER, write
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

TEXT = "# Rules of the quay\n\nA berth costs five euros a night.\n"
RATE, ASK = "/api/v1/feedback", "/api/v1/ask"


@pytest.fixture
def quay(shelves: Corpus) -> None:
    """A document that answers."""
    ready_source(TEXT, layer=shelves.handbook.layers.get(), path="quay.md")


def asked(actor: Actor, question: str = "What does a berth cost?") -> dict[str, Any]:
    """Ask and return the answer."""
    answer: dict[str, Any] = post(actor.client(), ASK, {"question": question}).json()
    return answer


def rate(actor: Actor, interaction_id: str, status: int = 200, **body: Any) -> Any:
    """Rate an answer and return what is said of that."""
    sent = {"interaction_id": interaction_id, "helpful": False, **body}
    response = post(actor.client(), RATE, sent)
    assert response.status_code == status, response.content
    return response.json()


@pytest.mark.req("S1-FBK-01", "S1-FBK-02", "S1-FBK-03")
def test_answer_is_rated_by_its_id(quay: None, cast: Cast) -> None:
    """With the right layer, a better question, and what each passage was worth."""
    answer = asked(cast.granted)
    first = answer["passages"][0]
    said = rate(
        cast.granted,
        answer["interaction_id"],
        correct_layer="handbook/main",
        better_query="price of a berth",
        chunk_feedback={"S1": "outdated"},
        reasons=["outdated"],
        comment="Since May it is six.",
    )
    assert said == {"status": "ok", "interaction_id": answer["interaction_id"]}
    row = Feedback.objects.get()
    assert (row.is_helpful, row.reasons) == (False, ["outdated"])
    assert (str(row.correct_layer), row.better_query) == (
        "handbook/main", "price of a berth",
    )  # fmt: skip
    passage = row.passages.get()
    assert (passage.ref, passage.worth) == (first["ref"], "outdated")
    assert passage.source.path == "quay.md"
    rate(
        cast.granted,
        answer["interaction_id"],
        helpful=True,
        chunk_feedback={first["ref"]: "useful"},
    )
    row.refresh_from_db()
    assert (row.is_helpful, row.reasons, row.comment) == (
        True, [], "Since May it is six.",
    )  # fmt: skip
    assert row.passages.get().worth == "useful"


@pytest.mark.req("S1-FBK-04")
def test_named_clause_is_rated_too(shelves: Corpus, cast: Cast) -> None:
    """It has no row of its own, and is named as any other passage of the answer."""
    write(shelves.handbook.layers.get(), CHARTER, "charter.md")
    answer = asked(cast.granted, "What does Article 5 say about pay?")
    rate(cast.granted, answer["interaction_id"], chunk_feedback={"S1": "wrong"})
    row = PassageFeedback.objects.get()
    assert row.passage_id is None
    assert row.ref == answer["passages"][0]["ref"]


@pytest.mark.req("S1-FBK-05")
def test_another_value_refuses_all_of_it(quay: None, cast: Cast) -> None:
    """Nothing is stored, and the allowed values are named."""
    key = asked(cast.granted)["interaction_id"]
    for extra, allowed in (
        (
            {"chunk_feedback": {"S1": "useful", "S2": "great"}},
            "useful, wrong, outdated",
        ),
        ({"reasons": ["boring"]}, "wrong, outdated, incomplete"),
        ({"chunk_feedback": {f"S{n}": "useful" for n in range(101)}}, "at most 100"),
    ):
        error = rate(cast.granted, key, 400, **extra)["error"]
        assert allowed in error["message"]
        assert set(error["fields"]) == set(extra)
    rate(cast.granted, key, 400, helpful="perhaps")
    assert not Feedback.objects.exists()


@pytest.mark.req("S1-FBK-06")
def test_extra_that_is_not_stored_is_named(quay: None, cast: Cast) -> None:
    """The rating is; a layer of another list looks like one that never was."""
    key = asked(cast.granted)["interaction_id"]
    said = rate(
        cast.granted,
        key,
        correct_layer="vault/main",
        better_query="x" * 5000,
        chunk_feedback={"S1": "useful", "S99": "wrong"},
        comment="\x01",
    )
    assert said["status"] == "ok"
    assert set(said["not_stored"]) == {
        "correct_layer", "better_query", "chunk_feedback.S99", "comment",
    }  # fmt: skip
    assert "you have no layer of this name" in said["warning"]
    assert "S99" in said["warning"]
    assert Feedback.objects.get().passages.get().worth == "useful"


@pytest.mark.req("S1-FBK-01", "S1-FBK-03")
def test_search_and_turn_are_rated_as_asks_are(quay: None, cast: Cast) -> None:
    """By refs, each by whoever was answered."""
    client = cast.token_in_scope.client()
    found = post(client, "/api/v1/search", {"query": "berth"}).json()
    ref = found["results"][0]["ref"]
    rate(
        cast.token_in_scope, found["interaction_id"], chunk_feedback={ref: "useful"}
    )  # fmt: skip
    agent = cast.agent_token
    turn = start(agent)
    path = f"/api/v1/turns/{turn}/search"
    found = post(agent.client(), path, {"query": "berth"}).json()
    rate(agent, found["interaction_id"], chunk_feedback={ref: "wrong"})
    rate(cast.other_agent, found["interaction_id"], 404)
    assert list(
        PassageFeedback.objects.order_by("pk").values_list("worth", flat=True)
    ) == ["useful", "wrong"]
    assert Feedback.objects.latest("pk").client == agent.token_row.client


@pytest.mark.req("S3-VIS-01")
def test_only_who_was_answered_rates_and_only_what_they_see(
    quay: None, shelves: Corpus, cast: Cast
) -> None:
    """Anybody else's answer is as absent as one that never was."""
    key = asked(cast.granted)["interaction_id"]
    for name in (key, str(uuid4()), "S1", key.upper()):
        rate(cast.editor, name, 404)
    deny(shelves.handbook, to=cast.granted.user, actor=None)
    said = rate(cast.granted, key, chunk_feedback={"S1": "useful"})
    assert said["not_stored"] == ["chunk_feedback.S1"]
    assert not PassageFeedback.objects.exists()


@pytest.mark.req("R19", "S1-FBK-01")
def test_nothing_has_an_id_while_learning_is_off(
    quay: None, cast: Cast, settings: Settings
) -> None:
    """And nothing is rated."""
    key = asked(cast.granted)["interaction_id"]
    settings.LEARNING_ENABLED = False
    assert "interaction_id" not in asked(cast.granted)
    client = cast.token_in_scope.client()
    found = post(client, "/api/v1/search", {"query": "berth"}).json()
    assert "interaction_id" not in found
    assert rate(cast.granted, key, 403)["error"]["code"] == "learning_off"
    page: Client = cast.granted.client()
    assert page.get(f"/asked/{key}/rate/").status_code == 404
    shown = page.get("/ask/", {"q": "What does a berth cost?"}).content.decode()
    assert "data-rating" not in shown


@pytest.mark.req("S1-LRN-07")
def test_what_was_learned_is_told_with_layer_and_use(
    shelves: Corpus, cast: Cast
) -> None:
    """Of one's own list only."""
    for base in (shelves.handbook, shelves.vault):
        LearnedItem.objects.create(
            kind="synonym", key=base.slug, term=base.slug, value=["other"],
            layer=base.layers.get(), knowledge_base_ids=[base.pk], origin="reworded",
            usage_count=3, digest=base.slug.ljust(64, "0"),
        )  # fmt: skip
    found = cast.granted.client().get("/api/v1/learning").json()
    assert found["learning"] is True
    assert found["counts"] == {"synonym": 1}
    (item,) = found["items"]
    assert (item["term"], item["layer"], item["usage_count"]) == (
        "handbook", "handbook/main", 3,
    )  # fmt: skip


# --- In the portal -----------------------------------------------------------------


@pytest.mark.req("S1-FBK-02")
def test_answer_asks_whether_it_helped_and_why_not(quay: None, cast: Cast) -> None:
    """First two buttons, then reasons and passages, on a page without any script."""
    client = cast.granted.client()
    shown = client.get("/ask/", {"q": "What does a berth cost?"}).content.decode()
    path = shown.partition('class="rating no-print" method="post" action="')[2]
    path = path.partition('"')[0]
    assert client.get(path).status_code == 200
    first = client.post(path, {"helpful": "no"})
    assert first.status_code == 302
    page = client.get(first["Location"]).content.decode()
    assert "What was wrong with it?" in page
    ref = page.partition('name="passage:')[2].partition('"')[0]
    client.post(
        path,
        {
            "helpful": "no",
            "more": "1",
            "reason": ["wrong", "unclear"],
            "comment": "My IBAN is DE89370400440532013000.",
            f"passage:{ref}": "wrong",
        },
    )
    row = Feedback.objects.get()
    assert row.reasons == ["wrong", "unclear"]
    assert row.comment == "My IBAN is [IBAN]."
    assert row.passages.get().ref == ref
    part = client.post(path, {"helpful": "yes"}, headers={"X-Part": "rating"})
    assert part.status_code == 200
    assert b"<html" not in part.content
    assert b"Thank you" in part.content
    assert client.post(path, {"helpful": "maybe"}).status_code == 400
    assert (
        client.post(path, {"helpful": "no", "reason": "x", "more": "1"}).status_code
        == 400
    )
    assert cast.editor.client().get(path).status_code == 404


@pytest.mark.req("S1-FBK-02")
def test_plain_search_is_rated_as_an_answer_is(quay: None, cast: Cast) -> None:
    """Whether it found anything or not, with the passages that it found."""
    client = cast.granted.client()
    for query in ("berth", "QX-99"):
        shown = client.get("/", {"q": query}).content.decode()
        path = shown.partition('class="rating no-print" method="post" action="')[2]
        path = path.partition('"')[0]
        page = client.post(path, {"helpful": "no"}, follow=True).content.decode()
        ref = page.partition('name="passage:')[2].partition('"')[0]
        rated = {f"passage:{ref}": "wrong"} if ref else {"comment": "Nothing there."}
        client.post(path, {"helpful": "no", "more": "1", **rated})
    found, nothing = Feedback.objects.order_by("pk")
    assert found.passages.get().source.path == "quay.md"
    assert nothing.comment == "Nothing there."
    assert nothing.knowledge_base_ids
    assert "data-rating" not in client.get("/").content.decode()
