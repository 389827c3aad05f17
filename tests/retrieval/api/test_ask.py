"""Asking over HTTP: fields, formats, refusals, and what a model may not say."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from knowledge.models import Layer
from knowledge.models.knowledge_base import AnswerMode
from knowledge.permissions import Access, grant
from retrieval.models import Interaction
from tests.cast import Actor, Cast
from tests.factories import ready_source
from tests.retrieval.api.test_turns import client_of, post, start
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

ASK = "/api/v1/ask"
OVERDRAFT = "For how long may an arranged overdraft be used?"


def ask(actor: Actor, **body: Any) -> dict[str, Any]:
    """Ask and return the answer."""
    response = post(actor.client(), ASK, {"question": OVERDRAFT, **body})
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def refused(actor: Actor, status: int = 400, **body: Any) -> dict[str, Any]:
    """Ask what is refused, and return why."""
    response = post(actor.client(), ASK, {"question": OVERDRAFT, **body})
    assert response.status_code == status, response.content
    found: dict[str, Any] = response.json()
    assert found["status"] == "error"
    error: dict[str, Any] = found["error"]
    return error


def put_everywhere(shelves: Corpus) -> None:
    """Put a document into two knowledge bases."""
    for base in (shelves.handbook, shelves.branches):
        ready_source(
            f"An arranged overdraft may be used at {base.slug}.",
            layer=base.layers.get(),
        )


@pytest.mark.req("S1-ASK-06", "S1-ASK-07", "S1-ASK-08")
def test_a_concise_answer_field_by_field(corpus: Corpus, cast: Cast) -> None:
    """What does not apply is left out."""
    answer = ask(cast.granted)
    assert set(answer) == {"status", "mode", "passages", "interaction_id"}
    assert (answer["status"], answer["mode"]) == ("found", "grounded")
    for number, passage in enumerate(answer["passages"], 1):
        assert set(passage) == {"id", "ref", "text", "citation"}
        assert passage["id"] == f"S{number}"
    first = answer["passages"][0]
    url = f"/asked/{answer['interaction_id']}/1/"
    assert first["citation"] == {
        "file": "account-terms.md",
        "page": None,
        "lines": first["citation"]["lines"],
        "clause_path": first["citation"]["clause_path"],
        "layer": "main",
        "date": "2026-02-03",
        "date_source": "front_matter",
        "url": url,
    }
    assert first["citation"]["clause_path"].startswith("Terms of current accounts")
    opened = cast.granted.client().get(url)
    assert opened.status_code == 302
    assert opened.url == f"/read/{first['ref']}/#cited"


@pytest.mark.req("D1")
def test_a_layers_name_is_told_apart_where_two_have_it(
    shelves: Corpus, cast: Cast
) -> None:
    """Among those of the caller's own list, so that it tells of no hidden one."""
    put_everywhere(shelves)
    (passage,) = ask(cast.granted)["passages"]
    assert passage["citation"]["layer"] == "main"
    grant(shelves.branches, [Access.SEARCH], to=cast.granted.user, actor=None)
    layers = {each["citation"]["layer"] for each in ask(cast.granted)["passages"]}
    assert layers == {"handbook/main", "branches/main"}


@pytest.mark.req("S1-ASK-12", "S1-CNF-01", "S1-HYB-04")
def test_a_detailed_answer_has_all_that_led_to_it(corpus: Corpus, cast: Cast) -> None:
    answer = ask(cast.granted, response_format="detailed")
    assert (answer["status"], answer["answer_status"]) == ("ok", "found")
    assert answer["confidence"]["basis"] == "rerank"
    assert answer["confidence"]["level"] in {"medium", "high"}
    assert answer["queries"] == [OVERDRAFT]
    chunks = answer["retrieved_chunks"]
    assert len(chunks) > len(answer["passages"]) > 0
    assert [each["id"] for each in chunks[:2]] == ["S1", "S2"]
    assert all(0 < each["similarity"] <= 1 for each in chunks)
    assert all(0 <= each["rerank_score"] <= 1 for each in chunks)
    assert max(each["score"] for each in chunks) == 1.0
    assert answer["citations"] == "saved"
    assert answer["routing_fallback"] is None


@pytest.mark.req("S1-HYB-07", "S1-API-07")
def test_sources_have_the_score_that_confidence_was_judged_on(
    corpus: Corpus, cast: Cast
) -> None:
    answer = ask(cast.granted, response_format="detailed")
    sources = answer["sources"]
    scores = {each["id"]: each["rerank_score"] for each in answer["retrieved_chunks"]}
    for source in sources:
        best = max(scores[name] for name in source["passages"])
        assert source["relevance_score"] == pytest.approx(best)
    given = [name for source in sources for name in source["passages"]]
    assert sorted(given) == sorted(each["id"] for each in answer["passages"])
    without = ask(cast.granted, response_format="detailed", include_sources=False)
    assert "sources" not in without
    assert without["passages"]


@pytest.mark.req("S1-API-01", "S1-API-04", "S1-API-06")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"question": " "}, "question"),
        ({"question": "x" * 1001}, "question"),
        ({"question": None}, "question"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": 51}, "top_k"),
        ({"mode": "poetic"}, "mode"),
        ({"response_format": "long"}, "response_format"),
        ({"include_sources": "perhaps"}, "include_sources"),
        ({"layers": []}, "layers"),
        ({"metadata_filter": {"page": "3"}}, "metadata_filter"),
        ({"query": "x"}, "query"),
    ],
)
def test_what_is_wrong_is_named(
    shelves: Corpus, cast: Cast, body: dict[str, Any], field: str
) -> None:
    assert field in refused(cast.granted, **body)["fields"]


@pytest.mark.req("S1-API-01", "S1-API-04")
def test_all_parameters_may_be_given(shelves: Corpus, cast: Cast) -> None:
    ready_source("Overdraft is arranged.", layer=shelves.handbook.layers.get())
    answer = ask(
        cast.granted,
        layers=["handbook/main", "nobody/knows"],
        include_sources=True,
        top_k=50,
        response_format="detailed",
        mode=None,
    )
    assert answer["layers_ignored"] == 1
    assert answer["labels"] == ["keyword-only"]


@pytest.mark.req("R5", "S3-VIS-04")
def test_an_agent_names_no_layers(shelves: Corpus, cast: Cast) -> None:
    assert "layers" in refused(cast.agent_token, layers=["main"])["fields"]


@pytest.mark.req("R4")
def test_an_agent_asks_up_to_its_cap(shelves: Corpus, cast: Cast) -> None:
    assert "top_k" in refused(cast.agent_token, top_k=21)["fields"]
    client = client_of(cast.agent_token)
    client.search_enabled = False
    client.save()
    assert refused(cast.agent_token, 403)["code"] == "search_off"


@pytest.mark.req("S1-ASK-17", "S1-EXT-16")
def test_an_answer_that_cannot_be_chosen_is_an_error(
    corpus: Corpus, cast: Cast, settings: Settings
) -> None:
    """No model, no guess: the client reports it."""
    settings.STRATA_MODEL_URL = "http://127.0.0.1:9"
    error = refused(cast.granted, 503, mode="extractive")
    assert error["code"] == "no_answer"
    assert "model server" in error["message"]
    worded = "an arranged overdraft may be used for ninety days"
    assert ask(cast.granted, question=worded)["status"] == "partly_found"
    assert not Interaction.objects.exclude(mode="grounded").exists()


@pytest.mark.req("S1-EXT-03", "S1-EXT-04")
def test_an_extractive_answer_field_by_field(corpus: Corpus, cast: Cast) -> None:
    Layer.objects.filter(knowledge_base=corpus.handbook).update(
        answer_mode=AnswerMode.EXTRACTIVE
    )
    answer = ask(cast.granted)
    assert set(answer) == {"status", "mode", "answer", "receipt_id", "interaction_id"}
    assert answer["mode"] == "extractive"
    first = answer["answer"][0]
    assert set(first) == {"text", "ref", "passage", "citation", "text_origin"}
    assert "ninety days in a row" in first["text"]
    assert first["passage"].startswith("S")
    assert first["text_origin"] == "text"
    assert answer["receipt_id"].startswith("rcpt_")


@pytest.mark.req("S1-EXT-17")
def test_a_detailed_extractive_answer_has_scores_and_passages(
    corpus: Corpus, cast: Cast
) -> None:
    answer = ask(cast.granted, mode="extractive", response_format="detailed")
    assert all(0.5 <= each["score"] <= 1 for each in answer["answer"])
    given = {each["id"] for each in answer["passages"]}
    assert {each["passage"] for each in answer["answer"]} <= given


# --- Beside it, a search ---------------------------------------------------------


@pytest.mark.req("S1-API-02", "S1-API-05")
def test_a_search_filters_by_layers_and_exact_metadata(
    shelves: Corpus, cast: Cast
) -> None:
    """Five results by default; a value that only begins alike is another one."""
    for page in ("3", "30", "3", "3", "3", "3", "3"):
        source = ready_source(
            f"Overdraft on page {page}.", layer=shelves.handbook.layers.get()
        )
        source.passages.update(metadata={"page": page})
    body = {"query": "overdraft", "metadata_filter": {"page": "3"}}
    found = post(cast.granted.client(), "/api/v1/search", body).json()["results"]
    assert len(found) == 5
    assert {hit["metadata"]["page"] for hit in found} == {"3"}
    body = {"query": "overdraft", "layers": ["main"], "top_k": 50}
    found = post(cast.granted.client(), "/api/v1/search", body).json()["results"]
    assert len(found) == 7
    assert {hit["citation"]["layer"] for hit in found} == {"main"}


@pytest.mark.req("S1-DAT-08", "R20")
def test_a_searchs_results_have_dates_and_labels_too(
    shelves: Corpus, cast: Cast
) -> None:
    layer = shelves.handbook.layers.get()
    layer.archived_patterns = ["old/*"]
    layer.save()
    source = ready_source("Overdraft of old.", layer=layer, path="old/terms.md")
    source.documents.update(date="2020-01-31", date_source="file")
    body = {"query": "overdraft"}
    (hit,) = post(cast.granted.client(), "/api/v1/search", body).json()["results"]
    citation = hit["citation"]
    assert (citation["date"], citation["date_source"]) == ("2020-01-31", "file")
    assert citation["archived"] is True


@pytest.mark.req("S1-DAT-03")
def test_the_description_says_what_a_date_shows(cast: Cast) -> None:
    schema = cast.granted.client().get("/api/v1/schema").content.decode()
    assert "Shows which document is newer, not that two conflict." in schema


# --- In a turn -------------------------------------------------------------------


def ask_in_turn(actor: Actor, turn: str, **body: Any) -> Any:
    """Ask in a turn and return the response."""
    return post(
        actor.client(), f"/api/v1/turns/{turn}/ask", {"question": OVERDRAFT, **body}
    )


@pytest.mark.req("S3-VIS-05", "S3-RTE-01")
def test_a_turn_asks_within_what_it_is_bound_to(shelves: Corpus, cast: Cast) -> None:
    put_everywhere(shelves)
    turn = start(cast.agent_token)
    answer = ask_in_turn(cast.agent_token, turn).json()
    assert "handbook" in answer["passages"][0]["text"]
    assert len(answer["passages"]) == 1
    row = Interaction.objects.get()
    assert str(row.turn) == turn
    assert row.client == client_of(cast.agent_token)
    assert row.door == "turn"
    assert row.knowledge_base_ids == [shelves.handbook.pk]


@pytest.mark.req("S3-VIS-04")
@pytest.mark.parametrize("name", ["layers", "knowledge_base", "metadata_filter"])
def test_a_turns_ask_names_no_place(shelves: Corpus, cast: Cast, name: str) -> None:
    response = ask_in_turn(cast.agent_token, start(cast.agent_token), **{name: ["x"]})
    assert response.status_code == 400
    assert name in response.json()["error"]["fields"]


def test_a_turn_that_has_ended_takes_no_question(shelves: Corpus, cast: Cast) -> None:
    turn = start(cast.agent_token)
    post(cast.agent_token.client(), f"/api/v1/turns/{turn}/end", {})
    response = ask_in_turn(cast.agent_token, turn)
    assert response.status_code == 409
    assert response.json()["error"]["code"] == "turn_ended"
