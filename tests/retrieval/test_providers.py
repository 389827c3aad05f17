"""Both providers of language models, against real servers on this machine."""

import logging
from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from pytest_django.fixtures import Settings

from knowledge.inference.gateway import (
    ModelError,
    ModelInputError,
    ModelMismatchError,
    ModelUnavailableError,
)
from retrieval.providers import (
    ANTHROPIC_MODEL,
    MOST_BYTES,
    Anthropic,
    Completion,
    OpenAICompatible,
    Provider,
    drafting_model,
    rewording_model,
)
from tests import servers
from tests.servers import Answer, Handler, LanguageModel, LocalServer

KEY = "sk-a-key-that-nobody-may-meet"
PATIENT = 60.0
SHORT = 0.4


def ask(provider: Provider | None, *, seconds: float = PATIENT) -> Completion:
    assert provider is not None
    return provider.complete("Say hello.", "Hello?", most_tokens=10, seconds=seconds)


@pytest.fixture
def language_model() -> Iterator[LanguageModel]:
    with LanguageModel("Hello.") as server:
        yield server


@pytest.mark.req("S1-QRW-04")
def test_anthropic_needs_its_key_alone(
    settings: Settings, language_model: LanguageModel
) -> None:
    assert rewording_model() is None
    settings.ANTHROPIC_BASE_URL = language_model.url
    settings.ANTHROPIC_API_KEY = KEY
    assert ask(rewording_model()) == Completion("Hello.", 230)
    settings.QUERY_REWRITE_MODEL = "claude-another"
    ask(rewording_model())
    first, second = language_model.prompts
    assert first.path == "/v1/messages"
    assert first.headers["x-api-key"] == KEY
    assert first.headers["anthropic-version"] == "2023-06-01"
    assert (first.instructions, first.message) == ("Say hello.", "Hello?")
    assert first.body["max_tokens"] == 10
    assert [each.body["model"] for each in (first, second)] == [
        ANTHROPIC_MODEL,
        "claude-another",
    ]


@pytest.mark.req("S1-QRW-05")
def test_an_endpoint_gets_no_key_but_its_own(
    settings: Settings,
    language_model: LanguageModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings.ANTHROPIC_API_KEY = KEY
    settings.QUERY_REWRITE_PROVIDER = "openai_compatible"
    settings.QUERY_REWRITE_BASE_URL = f"{language_model.url}/v1"
    settings.QUERY_REWRITE_MODEL = "llama3.2"
    assert ask(rewording_model()) == Completion("Hello.", 120)
    settings.QUERY_REWRITE_API_KEY = "its-own"
    ask(rewording_model())
    first, second = language_model.prompts
    assert first.path == "/v1/chat/completions"
    assert first.body["model"] == "llama3.2"
    assert (first.instructions, first.message) == ("Say hello.", "Hello?")
    assert "Authorization" not in first.headers
    assert second.headers["Authorization"] == "Bearer its-own"
    assert KEY not in f"{language_model.prompts}"


@pytest.mark.req("S1-QRW-05")
def test_an_endpoint_may_call_the_limit_by_its_newer_name() -> None:
    asked = []

    def answer(handler: Handler) -> None:
        asked.append(handler.read_json())
        content = b'{"choices": [{"message": {"content": "Hello."}}]}'
        handler.send_content(400 if "max_tokens" in asked[-1] else 200, content)

    with LocalServer(answer) as server:
        provider = OpenAICompatible(f"{server.url}/v1", "", "newer")
        for _time in range(2):
            assert ask(provider).text == "Hello."
    assert [each.get("max_completion_tokens") for each in asked] == [None, 10, 10]


def test_answers_are_worded_only_where_that_is_wanted(
    settings: Settings, language_model: LanguageModel
) -> None:
    settings.ANTHROPIC_BASE_URL = language_model.url
    settings.ANTHROPIC_API_KEY = KEY
    assert rewording_model() is not None
    assert drafting_model() is None
    settings.STRATA_DRAFTING = True
    settings.STRATA_DRAFTING_MODEL = "claude-careful"
    ask(drafting_model())
    assert language_model.prompts[-1].body["model"] == "claude-careful"


def say(content: bytes, status: int = 200) -> Answer:
    """Answer every request with some bytes."""
    return lambda handler: handler.send_content(status, content)


TOO_MUCH = b'{"content": [{"text": "' + b"a" * MOST_BYTES + b'"}]}'
NO_TEXT = b'{"content": [{"type": "tool_use"}], "choices": [{"message": {}}]}'
STRANGE = b'{"content": {"text": 1}, "choices": "none"}'
ECHO = f'{{"error": {{"message": "Wrong key: {KEY}"}}}}'.encode()


def in_form(form: str, server: LocalServer) -> Provider:
    """Return a provider of one form at a server."""
    if form == "anthropic":
        return Anthropic(server.url, KEY, "claude")
    return OpenAICompatible(f"{server.url}/v1", KEY, "llama")


@pytest.mark.req("REL-Q7")
@pytest.mark.parametrize("form", ["anthropic", "openai_compatible"])
@pytest.mark.parametrize(
    "answer", [servers.never, servers.drip_headers, servers.drip_body]
)
def test_a_provider_that_takes_for_ever_is_not_waited_for(
    form: str, answer: Answer
) -> None:
    with (
        LocalServer(answer) as server,
        pytest.raises(ModelUnavailableError, match=r"does not answer in time\."),
    ):
        ask(in_form(form, server), seconds=SHORT)


@pytest.mark.req("REL-Q7")
@pytest.mark.parametrize("form", ["anthropic", "openai_compatible"])
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (servers.hang_up, ModelUnavailableError),
        (servers.no_http, ModelUnavailableError),
        (servers.cut_off, ModelUnavailableError),
        (servers.fail, ModelUnavailableError),
        (say(TOO_MUCH), ModelUnavailableError),
        (say(b"", 302), ModelUnavailableError),
        (say(ECHO, 401), ModelUnavailableError),
        (say(ECHO, 429), ModelUnavailableError),
        (say(ECHO, 404), ModelInputError),
        (servers.no_json, ModelMismatchError),
        (say(b"[" * 100_000), ModelMismatchError),
        (say(NO_TEXT), ModelMismatchError),
        (say(STRANGE), ModelMismatchError),
    ],
    ids=range(13),
)
def test_a_broken_provider_ends_in_a_sentence_without_its_key(
    form: str,
    answer: Answer,
    error: type[ModelError],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with LocalServer(answer) as server, pytest.raises(error) as raised:
        ask(in_form(form, server))
    assert str(raised.value).endswith(".")
    assert KEY not in f"{raised.value} {caplog.text}"


def test_a_dead_provider_is_left_alone_for_a_while() -> None:
    with LocalServer(servers.fail) as server:
        provider = Anthropic(server.url, KEY, "claude")
        for _attempt in range(3):
            with pytest.raises(ModelUnavailableError, match="status 500"):
                ask(provider)
        assert server.requests == 1


@pytest.mark.django_db(transaction=True)
def test_the_database_is_free_while_a_model_takes_its_time(
    language_model: LanguageModel,
) -> None:
    connection.ensure_connection()
    with transaction.atomic():
        ask(Anthropic(language_model.url, KEY, "claude"))
        assert connection.connection is not None
    ask(Anthropic(language_model.url, KEY, "claude"))
    assert connection.connection is None


def test_a_provider_that_counts_no_tokens_is_estimated() -> None:
    content = b'{"choices": [{"message": {"content": "Hello."}}], "usage": null}'
    with LocalServer(say(content)) as server:
        done = ask(OpenAICompatible(f"{server.url}/v1", "", "llama"))
    assert done.text == "Hello."
    assert done.tokens > 10
