"""Any CrossEncoder, served beside the embedding model and asked by URL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sentence_transformers import CrossEncoder

from knowledge.inference.gateway import (
    ModelInputError,
    ModelMismatchError,
    ModelUnavailableError,
)
from knowledge.inference.pairs import PairScorer
from knowledge.inference.remote import RemoteReranker
from tests.model_server import free_port, start_model_server, stop, wait_until_ready
from tests.servers import Answer, Handler, LocalServer, fail, never
from tests.tiny_models import save_cross_encoder, save_encoder

QUERY = "who pays the rent"
DOCUMENTS = [
    "rent is due on the first day of a month",
    "the lease ends after a month of notice",
    "notice of a month",
    "the rent",
    "who pays",
    "a lease",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a CrossEncoder."""
    return save_cross_encoder(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A model server with a reranking model."""
    port = free_port()
    encoder = save_encoder(tmp_path_factory.mktemp("encoder"))
    process = start_model_server(
        port, "--model", str(encoder), "--reranking-model", str(folder)
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_ready(url, process)
        yield url
    finally:
        stop(process)


@pytest.mark.req("D11", "S1-ASK-02")
def test_a_cross_encoder_scores_as_the_library_does(folder: Path, server: str) -> None:
    reranker = RemoteReranker(server, model=folder.name, timeout=120)
    scores = reranker.rerank(QUERY, DOCUMENTS)
    wanted = CrossEncoder(str(folder), device="cpu").predict(
        [(QUERY, document) for document in DOCUMENTS]
    )
    assert scores == pytest.approx([float(each) for each in wanted], abs=1e-4)
    assert len(set(scores)) > 1
    assert all(0 <= score <= 1 for score in scores)
    reranker.close()


def test_it_speaks_the_common_form(folder: Path, server: str) -> None:
    request = {
        "model": folder.name,
        "query": QUERY,
        "documents": [*DOCUMENTS[:2], {"text": DOCUMENTS[2]}],
        "top_n": 2,
    }
    answer = httpx.post(f"{server}/v1/rerank", json=request, timeout=120).json()
    scores = [each["relevance_score"] for each in answer["results"]]
    assert len(scores) == 2
    assert scores == sorted(scores, reverse=True)
    assert {each["index"] for each in answer["results"]} < {0, 1, 2}


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"query": ""}, 400, "'query' is a text"),
        ({"documents": []}, 400, "'documents' is a list"),
        ({"documents": [1]}, 400, "'input' is a text or a list"),
        ({"documents": ["a"] * 201}, 400, "send 200 at most"),
        ({"top_n": 0}, 400, "'top_n' is a whole number"),
        ({"model": "another"}, 404, "is not here"),
    ],
)
def test_a_bad_request_gets_a_sentence(
    server: str, changed: dict[str, Any], status: int, says: str
) -> None:
    request = {"query": QUERY, "documents": DOCUMENTS, **changed}
    answer = httpx.post(f"{server}/v1/rerank", json=request, timeout=120)
    assert answer.status_code == status
    assert says in answer.json()["error"]["message"]


def test_a_server_without_one_says_so(model_server_url: str) -> None:
    reranker = RemoteReranker(model_server_url, model="any", timeout=120)
    with pytest.raises(ModelUnavailableError, match="no reranking model"):
        reranker.rerank(QUERY, DOCUMENTS)
    reranker.close()


def test_a_model_of_several_numbers_is_refused(tmp_path: Path) -> None:
    save_cross_encoder(tmp_path, outputs=3)
    with pytest.raises(ModelUnavailableError, match="gives 3 numbers"):
        PairScorer(tmp_path)
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        PairScorer(tmp_path / "absent")


def answering(body: bytes, status: int = 200) -> Answer:
    """Return an answer that is always the same."""

    def answer(handler: Handler) -> None:
        handler.read_json()
        handler.send_content(status, body)

    return answer


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answering(b'{"results": [{"index": 0, "relevance_score": 0.5}]}'), "mismatch"),
        (
            answering(
                b'{"results": [{"index": 0, "relevance_score": 7.5},'
                b' {"index": 1, "relevance_score": 0.5}]}'
            ),
            "mismatch",
        ),
        (answering(b'{"results": "none"}'), "mismatch"),
        (answering(b'{"error": {"message": "Too long."}}', 413), "input"),
        (fail, "unavailable"),
        (never, "unavailable"),
    ],
)
def test_an_answer_that_cannot_be_is_refused(answer: Answer, error: str) -> None:
    errors = {
        "mismatch": ModelMismatchError,
        "input": ModelInputError,
        "unavailable": ModelUnavailableError,
    }
    with LocalServer(answer) as server:
        reranker = RemoteReranker(server.url, model="any", timeout=1.0)
        with pytest.raises(errors[error]):
            reranker.rerank(QUERY, DOCUMENTS[:2])
        reranker.close()
