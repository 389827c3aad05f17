"""The gateway over HTTP: against the real model server and against broken ones."""

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from knowledge.inference.gateway import (
    ModelInputError,
    ModelMismatchError,
    ModelUnavailableError,
)
from knowledge.inference.http import RETRY_SECONDS
from knowledge.inference.remote import RemoteGateway, estimate_tokens
from knowledge.inference.tokens import maxsim, unpack
from tests import servers
from tests.model_server import ROOT
from tests.servers import LocalServer, speak_openai

# Generous where the real model answers: the machine may be busy.
PATIENT = 60.0
SHORT = 0.4


@pytest.fixture
def gateway(model_server_url: str) -> Iterator[RemoteGateway]:
    """A gateway to the real model server."""
    gateway = RemoteGateway(
        model_server_url, query_timeout=PATIENT, passage_timeout=PATIENT
    )
    yield gateway
    gateway.close()


def product(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    """Cosine of two unit vectors."""
    return sum(a * b for a, b in zip(left, right, strict=True))


@pytest.mark.req("D10")
def test_describes_the_bundled_model(gateway: RemoteGateway) -> None:
    info = gateway.describe()
    assert (info.model_id, info.dimension) == ("intfloat/multilingual-e5-small", 384)
    assert (info.query_prefix, info.passage_prefix) == ("query: ", "passage: ")
    # Two special tokens, "passage" and its colon.
    assert (info.window, info.reserved) == (512, 4)
    assert (info.token_format, info.token_dimension) == ("c2/1", 384)
    assert len(info.fingerprint) == 64


@pytest.mark.req("S2-EMB-02", "R7")
def test_passages_come_back_in_order_with_counts(gateway: RemoteGateway) -> None:
    texts = [
        f"Room {number} " + "is open today. " * (number % 7) for number in range(70)
    ]

    together = gateway.embed_passages(texts)

    assert [each.token_count for each in together] == gateway.count_tokens(texts)
    for position in (0, 13, 69):
        (alone,) = gateway.embed_passages([texts[position]])
        assert product(alone.vector, together[position].vector) > 0.9999
        assert math.isclose(product(alone.vector, alone.vector), 1, abs_tol=1e-6)


def test_token_vectors_say_where_each_token_ends(gateway: RemoteGateway) -> None:
    text = "Điều 7. Lệ phí\nlà ½ triệu đồng."
    (passage,) = gateway.embed_passages([text])
    tokens = unpack(passage.tokens)
    assert tokens.vectors.shape == (passage.token_count, 384)
    assert tokens.ends[-1] == len(text)
    assert list(tokens.ends) == sorted(tokens.ends)
    # A token ends where the word does.
    assert len("Điều") in tokens.ends


def test_a_text_beyond_the_window_is_cut_and_counted_whole(
    gateway: RemoteGateway,
) -> None:
    (passage,) = gateway.embed_passages(["word " * 900])
    assert passage.token_count == 900
    assert len(unpack(passage.tokens).ends) == 512 - 4


def test_markup_of_the_tokenizer_is_plain_text(gateway: RemoteGateway) -> None:
    assert gateway.count_tokens(["</s>"])[0] > 1


@pytest.mark.req("S3-EMB-02")
def test_off_topic_questions_and_matches_in_vietnamese_are_told_apart(
    gateway: RemoteGateway,
) -> None:
    passages = gateway.embed_passages(
        [
            "Sinh viên nộp học phí trước ngày 15 tháng 9. Nộp muộn bị phạt 2%.",
            "Nhân viên được nghỉ phép mười hai ngày mỗi năm, báo trước ba ngày.",
            "Phòng khám mở cửa từ bảy giờ sáng đến năm giờ chiều, trừ chủ nhật.",
        ]
    )
    in_vietnamese = [
        ("Hạn nộp học phí là ngày nào?", 0),
        ("Mỗi năm được nghỉ phép bao nhiêu ngày?", 1),
        ("Phòng khám mở cửa lúc mấy giờ?", 2),
    ]
    in_other_languages = [
        ("By what date must tuition be paid?", 0),
        ("Ile dni urlopu ma pracownik?", 1),
        ("Когда открыта поликлиника?", 2),
    ]
    off_topic = [
        "Làm thế nào để nấu phở bò?",
        "Hành tinh nào có nhiều mặt trăng nhất?",
        "Ai là người viết bản giao hưởng số chín?",
    ]

    def best(question: str) -> tuple[int, float, float]:
        query = gateway.embed_query(question)
        cosines = [product(query.vector, each.vector) for each in passages]
        return (
            cosines.index(max(cosines)),
            max(cosines),
            max(maxsim(query.tokens, each.tokens) for each in passages),
        )

    missed = [best(question) for question in off_topic]
    for question, expected in in_vietnamese:
        position, cosine, similarity = best(question)
        assert position == expected
        assert cosine > max(each[1] for each in missed)
        assert similarity > max(each[2] for each in missed)
    for question, expected in in_other_languages:
        position, _cosine, similarity = best(question)
        assert position == expected
        assert similarity > max(each[2] for each in missed)


@pytest.mark.req("R7")
def test_nothing_in_the_gateway_imports_torch() -> None:
    code = (
        "import sys\n"
        "import knowledge.inference.gateway, knowledge.inference.remote\n"
        "import knowledge.inference.tokens\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'django'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.req("REL-Q7")
@pytest.mark.parametrize(
    "answer",
    [
        servers.never,
        servers.drip_headers,
        servers.drip_body,
        servers.hang_up,
        servers.no_http,
        servers.fail,
        servers.no_json,
        servers.cut_off,
    ],
)
def test_a_broken_server_is_unavailable_and_then_costs_nothing(
    answer: servers.Answer,
) -> None:
    with LocalServer(answer) as server:
        gateway = RemoteGateway(
            server.url, query_timeout=SHORT, passage_timeout=2 * SHORT
        )
        with pytest.raises(ModelUnavailableError, match="model server"):
            gateway.embed_query("a question")
        asked = server.requests
        with pytest.raises(ModelUnavailableError, match="model server"):
            gateway.embed_query("a question")
        with pytest.raises(ModelUnavailableError, match="model server"):
            gateway.describe()
        assert server.requests == asked
        # Ingest waits by itself, so it always asks.
        with pytest.raises(ModelUnavailableError, match="model server"):
            gateway.embed_passages(["a passage"])
        assert server.requests > asked
        gateway.close()


@pytest.mark.req("REL-Q7")
def test_no_server_is_unavailable() -> None:
    with LocalServer(servers.fail) as server:
        url = server.url
    gateway = RemoteGateway(url)
    with pytest.raises(ModelUnavailableError, match="cannot be reached"):
        gateway.embed_query("a question")
    gateway.close()


def test_a_server_that_comes_back_is_found_again(model_server_url: str) -> None:
    healthy = speak_openai(model_server_url)
    is_down = threading.Event()
    is_down.set()

    def answer(handler: servers.Handler) -> None:
        (servers.fail if is_down.is_set() else healthy)(handler)

    with LocalServer(answer) as server:
        gateway = RemoteGateway(server.url, query_timeout=PATIENT)
        with pytest.raises(ModelUnavailableError):
            gateway.embed_query("a question")
        is_down.clear()
        with pytest.raises(ModelUnavailableError):
            gateway.embed_query("a question")
        time.sleep(RETRY_SECONDS + 0.1)
        assert len(gateway.embed_query("a question").vector) == 384
        gateway.close()


def test_an_openai_server_gives_vectors_and_estimates(model_server_url: str) -> None:
    with LocalServer(speak_openai(model_server_url)) as server:
        gateway = RemoteGateway(
            server.url + "/v1/",
            model="theirs",
            query_timeout=PATIENT,
            passage_timeout=PATIENT,
            query_prefix="query: ",
            passage_prefix="passage: ",
            window=256,
        )
        info = gateway.describe()
        assert (info.model_id, info.dimension, info.window) == ("theirs", 384, 256)
        assert info.token_format == ""
        (passage,) = gateway.embed_passages(["Phòng khám mở cửa lúc bảy giờ."])
        assert passage.tokens == gateway.embed_query("giờ mở cửa").tokens == b""
        assert math.isclose(product(passage.vector, passage.vector), 1, abs_tol=1e-9)
        assert passage.token_count >= 9
        gateway.close()


def changed_first(value: Callable[[list[float]], Any]) -> servers.Change:
    """Change the first vector of an answer."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        item = answer["data"][0]
        item["embedding"] = value(item["embedding"])
        return answer

    return change


def without_last(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave the last vector out."""
    return {**answer, "data": answer["data"][:-1]}


def renamed(answer: dict[str, Any]) -> dict[str, Any]:
    """Answer in the name of another model."""
    return {**answer, "model": "another"}


@pytest.mark.req("REL-Q7")
@pytest.mark.parametrize(
    "change",
    [
        changed_first(lambda vector: vector[:100]),
        changed_first(lambda vector: [math.nan, *vector[1:]]),
        changed_first(lambda vector: [math.inf, *vector[1:]]),
        changed_first(lambda vector: [0.0 for _ in vector]),
        changed_first(lambda vector: [vector]),
        changed_first(lambda _vector: "text"),
        changed_first(lambda vector: [None, *vector[1:]]),
        without_last,
        renamed,
        lambda answer: {**answer, "data": [1, 2]},
        lambda answer: {**answer, "data": None},
    ],
)
def test_wrong_vectors_are_refused(
    change: servers.Change, model_server_url: str
) -> None:
    changing = threading.Event()

    def switch(answer: dict[str, Any]) -> dict[str, Any]:
        return change(answer) if changing.is_set() else answer

    with LocalServer(speak_openai(model_server_url, switch)) as server:
        gateway = RemoteGateway(
            server.url, query_timeout=PATIENT, passage_timeout=PATIENT
        )
        gateway.describe()
        changing.set()
        with pytest.raises(ModelMismatchError, match="nothing of this answer is kept"):
            gateway.embed_passages(["one", "two"])
        gateway.close()


@pytest.mark.req("REL-Q7")
def test_another_model_after_a_restart_is_noticed(model_server_url: str) -> None:
    with LocalServer(speak_openai(model_server_url)) as server:
        other = RemoteGateway(server.url, query_timeout=PATIENT)
        other.describe()
        # What was one server is now ours: another model as far as anyone can tell.
        ours = RemoteGateway(
            model_server_url, query_timeout=PATIENT, passage_timeout=PATIENT
        )
        assert ours.describe().fingerprint != other.describe().fingerprint
        ours.close()
        other.close()


def test_an_input_that_is_refused_is_no_failure_of_the_server(
    gateway: RemoteGateway,
) -> None:
    with pytest.raises(ModelInputError, match="100,000 are the most"):
        gateway.embed_passages(["x" * 100_001])
    assert gateway.embed_query("still here").tokens


def test_threads_share_a_gateway(gateway: RemoteGateway) -> None:
    questions = [f"What is rule {number}?" for number in range(12)]
    with ThreadPoolExecutor(6) as threads:
        together = list(threads.map(gateway.embed_query, questions))
    for question, embedded in zip(questions[:3], together, strict=False):
        alone = gateway.embed_query(question)
        assert product(alone.vector, embedded.vector) > 0.9999


def test_a_forked_child_uses_its_parents_gateway(gateway: RemoteGateway) -> None:
    gateway.embed_query("in the parent")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if gateway.embed_query("in the child").tokens else 2
        finally:
            os._exit(status)
    _pid, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert gateway.embed_query("in the parent again").tokens


def test_proxies_of_the_environment_are_not_asked_for_loopback(
    model_server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalServer(servers.fail) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        gateway = RemoteGateway(model_server_url, query_timeout=PATIENT)
        assert gateway.embed_query("a question").tokens
        assert proxy.requests == 0
        gateway.close()


def test_estimates_are_not_too_low(gateway: RemoteGateway) -> None:
    texts = [
        "The fee is 250.00 EUR (see § 7.2, form QT-07).",
        "Hội đồng họp vào thứ Hai đầu tiên của mỗi tháng.",
        "Komisja zbiera się w pierwszy poniedziałek każdego miesiąca.",
        "Comisia se întrunește în prima zi de luni a fiecărei luni.",
        "Комиссия собирается в первый понедельник каждого месяца.",
        "2024-01-31; 17:05; +40 21 312 34 56",
        "",
    ]
    for text, count in zip(texts, gateway.count_tokens(texts), strict=True):
        assert estimate_tokens(text) >= count
