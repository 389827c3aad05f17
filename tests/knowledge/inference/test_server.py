"""The model server itself: its forms, its order of work, its refusals."""

import base64
import shutil
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from knowledge.inference.bundled import FOLDER_NAME, MANIFEST
from tests.model_server import (
    MODELS_DIR,
    free_port,
    start_model_server,
    stop,
    wait_until_ready,
)

PATIENT = 120.0
KEY = "a key for this test"


@pytest.fixture
def client(model_server_url: str) -> Iterator[httpx.Client]:
    """An HTTP client of the real model server."""
    with httpx.Client(
        base_url=model_server_url, timeout=PATIENT, trust_env=False
    ) as client:
        yield client


def test_it_says_that_it_is_ready_and_what_it_serves(client: httpx.Client) -> None:
    health = client.get("/health").json()
    assert (health["status"], health["progress"]) == ("ready", 1.0)
    (model,) = client.get("/v1/models").json()["data"]
    assert model["id"] == "intfloat/multilingual-e5-small"


@pytest.mark.req("R7", "S2-EMB-02")
def test_it_speaks_the_openai_form(client: httpx.Client) -> None:
    request = {
        "model": "intfloat/multilingual-e5-small",
        "input": ["first text", "second text"],
    }
    answer = client.post("/v1/embeddings", json=request).json()
    assert [item["index"] for item in answer["data"]] == [0, 1]
    assert answer["usage"]["total_tokens"] > 0
    vector = answer["data"][1]["embedding"]
    assert len(vector) == 384

    encoded = client.post(
        "/v1/embeddings", json={**request, "encoding_format": "base64"}
    ).json()
    raw = base64.b64decode(encoded["data"][1]["embedding"])
    assert struct.unpack("<384f", raw) == pytest.approx(vector, abs=1e-5)

    query = client.post(
        "/v1/embeddings", json={"input": "second text", "input_type": "query"}
    ).json()
    assert query["data"][0]["embedding"] != pytest.approx(vector, abs=1e-3)


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({}, 400, "'input' is a text or a list of texts"),
        ({"input": [1, 2]}, 400, "'input' is a text or a list of texts"),
        ({"input": []}, 400, "'input' is empty"),
        ({"input": ["x"] * 513}, 400, "send 512 at most"),
        ({"input": "x" * 100_001}, 400, "100,000 are the most"),
        ({"input": "x", "input_type": "document"}, 400, "'query' or 'passage'"),
        ({"input": "x", "encoding_format": "int8"}, 400, "'float' or 'base64'"),
        ({"input": "x", "dimensions": 64}, 400, "384 dimensions only"),
        ({"input": "x", "model": "another"}, 404, "ask for"),
        ([], 400, "JSON object"),
    ],
)
def test_a_bad_request_gets_a_sentence(
    client: httpx.Client, body: object, status: int, sentence: str
) -> None:
    response = client.post("/v1/embeddings", json=body)
    assert response.status_code == status
    assert sentence in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"input": "\\ud800"}', "application/json", 400),
        (b'{"input": "x"}', "text/plain", 415),
        (b" " * (33 * 1024 * 1024), "application/json", 413),
    ],
    ids=["cut", "nested", "surrogate", "type", "size"],
)
def test_a_broken_body_gets_a_sentence(
    client: httpx.Client, content: bytes, kind: str, status: int
) -> None:
    response = client.post(
        "/strata/v1/encode", content=content, headers={"Content-Type": kind}
    )
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_a_query_overtakes_a_long_request(client: httpx.Client) -> None:
    texts = [
        f"Rule {number}. " + "The committee decides. " * 40 for number in range(24)
    ]
    with ThreadPoolExecutor(1) as threads:
        long = threads.submit(client.post, "/strata/v1/encode", json={"input": texts})
        for number in range(2):
            query = client.post(
                "/strata/v1/encode",
                json={"input": f"question {number}", "input_type": "query"},
            )
            assert query.status_code == 200
        assert not long.done()
        assert len(long.result().json()["data"]) == 24


def test_two_long_requests_take_turns(client: httpx.Client) -> None:
    long = [f"Rule {number}. " + "The committee decides. " * 40 for number in range(24)]
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(client.post, "/strata/v1/encode", json={"input": long})
        second = threads.submit(
            client.post, "/strata/v1/encode", json={"input": long[:4]}
        )
        assert len(second.result().json()["data"]) == 4
        assert not first.done()
        assert len(first.result().json()["data"]) == 24


def test_work_for_a_client_that_left_is_dropped(client: httpx.Client) -> None:
    long = ["The committee decides about the fees. " * 60] * 512
    with pytest.raises(httpx.ReadTimeout):
        client.post("/strata/v1/encode", json={"input": long}, timeout=1.0)
    # Minutes of work were waiting; were they still done first, this would time out.
    answer = client.post("/strata/v1/encode", json={"input": ["short"]}, timeout=30.0)
    assert len(answer.json()["data"]) == 1


@pytest.fixture
def unstated_folder(tmp_path: Path) -> Path:
    """The bundled model as the hub has it: a folder without manifest and prompts."""
    folder = tmp_path / "multilingual-e5-small"
    bundled = MODELS_DIR / FOLDER_NAME
    shutil.copytree(
        bundled, folder, ignore=shutil.ignore_patterns("*.safetensors", MANIFEST)
    )
    (folder / "model.safetensors").symlink_to(bundled / "model.safetensors")
    (folder / "config_sentence_transformers.json").write_text("{}")
    return folder


@pytest.mark.req("D10")
def test_any_folder_is_served_and_a_key_guards_it(
    client: httpx.Client, unstated_folder: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = start_model_server(port, "--model", str(unstated_folder), key=KEY)
    try:
        wait_until_ready(url, process)
        with httpx.Client(base_url=url, timeout=PATIENT, trust_env=False) as other:
            assert other.get("/strata/v1/info").status_code == 401
            refused = other.post("/v1/embeddings", json={"input": "x"})
            assert "STRATA_MODEL_KEY" in refused.json()["error"]["message"]

            other.headers["Authorization"] = f"Bearer {KEY}"
            info = other.get("/strata/v1/info").json()
            ours = client.get("/strata/v1/info").json()
            # The prefixes come from the e5 name; the folder's place is not told.
            assert info["query_prefix"] == "query: "
            assert info["model_id"] == "multilingual-e5-small"
            assert info["token_format"] == ours["token_format"]
            assert info["weights"] != ours["weights"]

            request = {"input": ["The fee is due in May."]}
            theirs = other.post("/strata/v1/encode", json=request).json()["data"][0]
            same = client.post("/strata/v1/encode", json=request).json()["data"][0]
            vectors = [
                struct.unpack("<384f", base64.b64decode(each["vector"]))
                for each in (theirs, same)
            ]
            assert vectors[0] == pytest.approx(vectors[1], abs=1e-5)
    finally:
        stop(process)


def test_it_listens_before_it_is_ready_and_says_why_it_cannot_be(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.json").write_text("{}")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = start_model_server(port, "--model", str(tmp_path))
    try:
        with pytest.raises(RuntimeError, match="cannot be loaded"):
            wait_until_ready(url, process)
        answer = httpx.post(
            f"{url}/v1/embeddings", json={"input": "x"}, trust_env=False
        )
        assert answer.status_code == 503
        assert answer.headers["Retry-After"]
    finally:
        stop(process)
