"""Searching over HTTP, with real vectors."""

from typing import Any
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from knowledge.embedding import gateway
from knowledge.models import EmbeddingSpace, Layer, Source
from knowledge.models.token import TokenKind
from tests.cast import Actor, Cast, with_token
from tests.stored_corpus import CANARY, Corpus

pytestmark = pytest.mark.django_db


def search(actor: Actor, query: str, **fields: Any) -> dict[str, Any]:
    """Return what a search gives, less the id that each answer has for itself."""
    response = actor.client().post(
        "/api/v1/search", {"query": query, **fields}, content_type="application/json"
    )
    assert response.status_code == 200, response.content
    body: dict[str, Any] = response.json()
    UUID(body.pop("interaction_id"))
    return body


def files(found: dict[str, Any]) -> list[str]:
    """Return the files of the results, best first."""
    return [hit["citation"]["file"] for hit in found["results"]]


class TestResults:
    """What comes back."""

    @pytest.mark.req("R20", "S1-HYB-04", "S1-HYB-08")
    def test_a_result_says_what_it_is_and_why_it_was_found(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        found = search(cast.token_in_scope, "QT-07", top_k=1)
        assert set(found) == {
            "status",
            "results",
            "labels",
            "notices",
            "layers_ignored",
            "model",
            "confidence",
            "note",
            "did_you_mean",
            "routing_fallback",
        }
        assert found["status"] == "ok"
        assert found["labels"] == []
        (hit,) = found["results"]
        source = Source.objects.get(path="quy-trinh-QT-07-mo-the.md")
        document = source.documents.get()
        assert hit["text"] in document.text
        assert hit["match"] == "hybrid"
        assert hit["branches"]["codes"]["rank"] == 1
        assert hit["similarity"] == pytest.approx(
            hit["branches"]["meaning"]["score"], abs=1e-6
        )
        assert hit["citation"] == {
            "ref": hit["ref"],
            "title": "Quy trình QT-07 mở thẻ thanh toán",
            "knowledge_base": "handbook",
            "layer": "main",
            "file": source.path,
            "page": None,
            "lines": hit["citation"]["lines"],
            "clause_path": "Quy trình QT-07 mở thẻ thanh toán",
            "date": "2025-11-20",
            "date_source": "front_matter",
            "archived": False,
            "replaced_by": None,
            "text_origin": "text",
            "revision": f"d{document.number}",
            "indexed_at": hit["citation"]["indexed_at"],
            "url": f"/read/{hit['ref']}/",
        }

    @pytest.mark.parametrize(
        ("query", "path"),
        [
            ("What must a member bring to open a current account?", "account-terms.md"),
            ("Tôi bị mất thẻ thì gọi đâu?", "quy-trinh-QT-07-mo-the.md"),
            ("Czy mogę oddać pożyczkę przed terminem?", "regulamin-pozyczek.md"),
            ("Что будет, если я потеряю ключ от ячейки?", "pravila-yacheek.md"),
            ("Câți lei pot scoate pe zi?", "regulament-carduri.md"),
        ],
    )
    def test_a_question_finds_its_passage(
        self, corpus: Corpus, cast: Cast, query: str, path: str
    ) -> None:
        assert path in files(search(cast.granted, query, top_k=3))

    @pytest.mark.req("S3-HYB-02", "S3-EMB-02")
    @pytest.mark.parametrize(
        ("query", "path"),
        [
            (
                "How old must a member be to get a payment card?",
                "quy-trinh-QT-07-mo-the.md",
            ),
            ("How is a card blocked after three wrong codes?", "regulament-carduri.md"),
        ],
    )
    def test_a_question_finds_its_passage_in_another_language(
        self, corpus: Corpus, cast: Cast, query: str, path: str
    ) -> None:
        assert path in files(search(cast.granted, query))

    @pytest.mark.req("R4")
    def test_five_results_unless_asked_otherwise(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        assert len(search(cast.granted, "card")["results"]) == 5
        assert len(search(cast.granted, "card", top_k=2)["results"]) == 2

    def test_a_token_and_a_browser_get_the_same(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        by_token = search(cast.token_in_scope, "lost card fee")
        assert by_token == search(cast.granted, "lost card fee")

    @pytest.mark.req("S1-ING-04")
    def test_metadata_is_matched_exactly(self, corpus: Corpus, cast: Cast) -> None:
        assert (
            search(cast.granted, "card", metadata_filter={"page": "3"})["results"] == []
        )


class TestLayers:
    """Narrowing to layers."""

    @pytest.mark.req("R5")
    def test_unknown_and_forbidden_layers_are_counted_alike(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        plain = search(cast.granted, "lost card fee", layers=["handbook/prices"])
        assert plain["layers_ignored"] == 0
        assert {hit["citation"]["layer"] for hit in plain["results"]} == {"prices"}
        mixed = search(
            cast.granted,
            "lost card fee",
            layers=["handbook/prices", "branches/main", "nowhere/main"],
        )
        assert mixed == {**plain, "layers_ignored": 2}

    def test_only_ignored_layers_find_nothing(self, corpus: Corpus, cast: Cast) -> None:
        for name in ("quillback-vault/main", "nowhere"):
            found = search(cast.granted, "merger plan", layers=[name])
            assert (found["results"], found["layers_ignored"]) == ([], 1)

    @pytest.mark.req("R5")
    def test_a_trusted_host_may_name_layers(self, corpus: Corpus, cast: Cast) -> None:
        host = with_token("host", cast.granted.user, kind=TokenKind.TRUSTED_HOST)
        found = search(host, "lost card fee", layers=["prices"])
        assert {hit["citation"]["layer"] for hit in found["results"]} == {"prices"}

    def test_an_agent_client_searches_all_of_its_layers(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        assert search(cast.agent_token, "savings") == search(cast.granted, "savings")

    def test_the_list_holds_what_may_be_searched(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        body = cast.token_in_scope.client().get("/api/v1/layers").json()
        assert [layer["name"] for layer in body["layers"]] == [
            "handbook/main",
            "handbook/prices",
        ]
        assert body["layers"][0] == {
            "name": "handbook/main",
            "knowledge_base": {"slug": "handbook", "name": "Member handbook"},
            "layer": "main",
            "description": "",
            "answer_mode": "grounded",
            "languages": ["en", "vi", "pl", "ro", "ru"],
        }
        assert cast.lister.client().get("/api/v1/layers").json() == {"layers": []}


class TestOwnVectors:
    """Callers who embed by themselves (R7)."""

    @pytest.mark.req("R7", "S3-EMB-01")
    def test_a_vector_takes_the_place_of_the_querys(
        self, corpus: Corpus, cast: Cast, settings: Settings
    ) -> None:
        embedded = gateway().embed_query("Tôi bị mất thẻ thì gọi đâu?")
        settings.PORTAL_EMBEDS = False
        own = search(
            cast.granted,
            "xyzzy",
            query_vector=list(embedded.vector),
            model=EmbeddingSpace.objects.get().model_id,
        )
        assert own["labels"] == []
        assert "quy-trinh-QT-07-mo-the.md" in files(own)[:3]

    @pytest.mark.req("R7", "S2-EMB-05")
    def test_without_any_vector_it_says_so(
        self, corpus: Corpus, cast: Cast, settings: Settings
    ) -> None:
        settings.PORTAL_EMBEDS = False
        found = search(cast.granted, "overdraft")
        assert "keyword-only" in found["labels"]
        assert found["model"] is None
        assert found["notices"]
        assert files(found) == ["account-terms.md"]

    @pytest.mark.req("D5")
    def test_another_models_vector_is_refused_by_name(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        for fields, named in (
            ({"query_vector": [1.0] * 384, "model": "another"}, "model"),
            (
                {
                    "query_vector": [1.0] * 3,
                    "model": EmbeddingSpace.objects.get().model_id,
                },
                "query_vector",
            ),
        ):
            response = cast.granted.client().post(
                "/api/v1/search",
                {"query": "a", **fields},
                content_type="application/json",
            )
            assert response.status_code == 400
            assert list(response.json()["error"]["fields"]) == [named]

    @pytest.mark.req("REL-Q7")
    def test_a_dead_model_server_costs_the_meaning_only(
        self, corpus: Corpus, cast: Cast, settings: Settings
    ) -> None:
        settings.STRATA_MODEL_URL = "http://127.0.0.1:9"
        found = search(cast.granted, "overdraft")
        assert "keyword-only" in found["labels"]
        assert files(found) == ["account-terms.md"]


class TestPassages:
    """The text of a ref."""

    @pytest.mark.req("S1-ING-02")
    def test_a_ref_gives_its_text(self, corpus: Corpus, cast: Cast) -> None:
        (hit,) = search(cast.granted, "overdraft", top_k=1)["results"]
        body = cast.token_in_scope.client().get(f"/api/v1/passages/{hit['ref']}").json()
        assert body["text"] == hit["text"]
        assert body["current"] is True
        assert body["citation"]["file"] == hit["citation"]["file"]
        assert body["citation"]["lines"] == hit["citation"]["lines"]

    def test_any_part_of_a_text_may_be_asked_for(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        document = Source.objects.get(path="account-terms.md").documents.get()
        start = document.text.index("7.2 Notice")
        body = (
            cast.granted.client()
            .get(f"/api/v1/passages/{document.ref(start, start + 6)}")
            .json()
        )
        assert body["text"] == "7.2 No"
        assert body["citation"]["clause_path"].split(" > ")[-1].startswith("7.2")

    @pytest.mark.req("D25", "REL-A10")
    def test_missing_forbidden_and_malformed_are_one_answer(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        own = Source.objects.get(path="account-terms.md").documents.get()
        hidden = Source.objects.get(path="opening-hours.txt").documents.get()
        asked = {
            "forbidden": hidden.ref(0, 10),
            "missing": "d123456789:0-10",
            "malformed": "d1:10-0",
            "no ref": "account-terms.md",
            "beyond the text": own.ref(0, len(own.text) + 1),
            "leading zero": f"d{own.number}:00-10",
            "overlong": f"d{'9' * 400}:0-10",
        }
        client = cast.token_in_scope.client()
        answers = {
            (
                response.status_code,
                response.content,
                tuple(sorted(response.headers.items())),
            )
            for ref in asked.values()
            for headers in ({}, {"If-None-Match": "*"}, {"Range": "bytes=0-5"})
            for response in [client.get(f"/api/v1/passages/{ref}", headers=headers)]
        }
        assert len(answers) == 1
        assert next(iter(answers))[0] == 404


@pytest.mark.req("REL-A4")
class TestHiddenThingsChangeNothing:
    """What cannot be seen cannot be noticed."""

    def test_naming_hidden_layers_changes_only_the_count(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        own = ["handbook/main", "handbook/prices"]
        plain = search(cast.granted, "time-lock safe", layers=own)
        for name in ("branches/main", "quillback-vault/main", "absent/main"):
            found = search(cast.granted, "time-lock safe", layers=[*own, name])
            assert found == {**plain, "layers_ignored": 1}

    def test_hidden_documents_change_no_row_rank_or_score(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        from tests.stored_corpus import bring_in

        queries = ("overdraft", "replacement of a lost card", "QT-07", CANARY)
        before = [search(cast.granted, query) for query in queries]
        layer = Layer.objects.get(knowledge_base=corpus.vault)
        bring_in(
            layer,
            "more.md",
            "# Overdraft\n\nThe overdraft, the replacement of a lost card and QT-07 "
            "are all dealt with in the plan.\n",
        )
        assert [search(cast.granted, query) for query in queries] == before
