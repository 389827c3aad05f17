"""Language models by their providers, for rewording and for drafts (S1-QRW-04, 05).

Nothing is asked before an operator has set a provider up. What it is asked leaves this
machine unless its address is here; `retrieval.dataflow` tells what that is. No key, no
question and no answer is ever part of a message or of the log.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from django.conf import settings
from django.db import connection

from knowledge.inference.gateway import (
    ModelInputError,
    ModelMismatchError,
    ModelUnavailableError,
)
from knowledge.inference.http import Breaker, Deadline, Http, bearer
from retrieval.budget import tokens_of

# Where QUERY_REWRITE_MODEL names no other: quick, and good enough for a few words.
ANTHROPIC_MODEL: Final = "claude-haiku-4-5"
ANTHROPIC_VERSION: Final = "2023-06-01"
# How endpoints call the most tokens of an answer; newer models refuse the older name.
LIMITS: Final = ("max_tokens", "max_completion_tokens")
# Of an answer; the longest that is asked for stays far below.
MOST_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model wrote, and the tokens that this took in all.

    They are as the provider counts them, or estimated where it does not.
    """

    text: str
    tokens: int


class Provider(Protocol):
    """A language model that answers one message.

    Raises ModelError: ModelUnavailableError when there is no answer in time,
    ModelInputError when the request is refused, ModelMismatchError when the answer has
    no text.
    """

    def complete(
        self, instructions: str, message: str, *, most_tokens: int, seconds: float
    ) -> Completion:
        """Return what the model writes, of at most so many tokens, in so many seconds."""
        ...


class Anthropic:
    """A model of Anthropic's, by its messages API."""

    def __init__(self, url: str, key: str, model: str) -> None:
        headers = {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION}
        self._endpoint = Endpoint(url, headers)
        self._model = model

    def complete(
        self, instructions: str, message: str, *, most_tokens: int, seconds: float
    ) -> Completion:
        """Return what the model writes; see `Provider`."""
        request = {
            "model": self._model,
            "max_tokens": most_tokens,
            "system": instructions,
            "messages": [{"role": "user", "content": message}],
        }
        answer = self._endpoint.ask("/v1/messages", request, Deadline(seconds))
        blocks = answer.get("content")
        text = "".join(
            block["text"]
            for block in (blocks if isinstance(blocks, list) else [])
            if isinstance(block, dict) and isinstance(block.get("text"), str)
        )
        return completed(text, answer, ("input_tokens", "output_tokens"), request)


class OpenAICompatible:
    """A model behind any endpoint that speaks the OpenAI chat API.

    `url` ends in /v1; a key is sent only where there is one.
    """

    def __init__(self, url: str, key: str, model: str) -> None:
        self._endpoint = Endpoint(url, bearer(key))
        self._model = model
        self._limits: tuple[str, ...] = LIMITS

    def complete(
        self, instructions: str, message: str, *, most_tokens: int, seconds: float
    ) -> Completion:
        """Return what the model writes; see `Provider`."""
        request = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": instructions},
                {"role": "user", "content": message},
            ],
        }
        answer = self._ask(request, most_tokens, Deadline(seconds))
        choices = answer.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        said = first.get("message") if isinstance(first, dict) else None
        text = said.get("content") if isinstance(said, dict) else None
        return completed(
            text if isinstance(text, str) else "",
            answer,
            ("prompt_tokens", "completion_tokens"),
            request,
        )

    def _ask(
        self, request: dict[str, Any], most_tokens: int, deadline: Deadline
    ) -> dict[str, Any]:
        """Return the answer, with the first name of the limit that is not refused."""
        refused = ModelInputError()
        for limit in self._limits:
            try:
                answer = self._endpoint.ask(
                    "/chat/completions", {**request, limit: most_tokens}, deadline
                )
            except ModelInputError as error:
                refused = error
            else:
                self._limits = (limit,)
                return answer
        raise refused


class Endpoint:
    """Where a provider answers; after a failure it is left alone for some seconds."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._http = Http(
            url, headers, name="The language model", most_bytes=MOST_BYTES
        )
        self._url = url
        self._breaker = Breaker()

    def ask(
        self, path: str, request: dict[str, Any], deadline: Deadline
    ) -> dict[str, Any]:
        """Return the JSON object that answers a request; raises ModelError.

        What a refusal says is not repeated: some repeat the key. Outside a transaction
        the database's connection is given back meanwhile, since a model takes seconds.
        """
        if not connection.in_atomic_block:
            connection.close()
        with self._breaker.guard():
            status, content = self._http.call("POST", path, request, deadline)
            if status in {401, 403}:
                raise ModelUnavailableError(
                    f"The language model at {self._url} refuses the key."
                )
            if 400 <= status < 500 and status not in {408, 425, 429}:
                raise ModelInputError(
                    f"The language model at {self._url} refuses the request (status "
                    f"{status}). Check the address and that it serves this model."
                )
            if status != 200:
                raise ModelUnavailableError(
                    f"The language model at {self._url} fails (status {status})."
                )
            try:
                answer = json.loads(content)
            except (ValueError, RecursionError):
                answer = None
            if not isinstance(answer, dict):
                raise ModelMismatchError(
                    f"The answer of {self._url} is no JSON object."
                )
            return answer


def completed(
    text: str,
    answer: dict[str, Any],
    counters: tuple[str, str],
    request: dict[str, Any],
) -> Completion:
    """Return what an answer holds; raises ModelMismatchError where that is no text."""
    if not text.strip():
        raise ModelMismatchError("The language model's answer has no text.")
    usage = answer.get("usage")
    told = [usage.get(name) for name in counters] if isinstance(usage, dict) else []
    counts = [each for each in told if isinstance(each, int) and each >= 0]
    if len(counts) == len(counters):
        return Completion(text, sum(counts))
    asked = json.dumps(request, ensure_ascii=False)
    return Completion(text, tokens_of(asked) + tokens_of(text))


def rewording_model() -> Provider | None:
    """Return the model that rewords questions, None where no provider is set up."""
    return provider_of(settings.QUERY_REWRITE_MODEL)


def drafting_model() -> Provider | None:
    """Return the model that words answers, None where that is not wanted."""
    if not settings.STRATA_DRAFTING:
        return None
    return provider_of(settings.STRATA_DRAFTING_MODEL)


def provider_of(model: str) -> Provider | None:
    """Return one model of the provider that is set up, if any is."""
    if settings.QUERY_REWRITE_PROVIDER == "openai_compatible":
        url, key = settings.QUERY_REWRITE_BASE_URL, settings.QUERY_REWRITE_API_KEY
        return openai_compatible(url, key, model) if url and model else None
    if not settings.ANTHROPIC_API_KEY:
        return None
    return anthropic(
        settings.ANTHROPIC_BASE_URL,
        settings.ANTHROPIC_API_KEY,
        model or ANTHROPIC_MODEL,
    )


# One of each, since it keeps connections and remembers that its endpoint failed.
anthropic = lru_cache(maxsize=8)(Anthropic)
openai_compatible = lru_cache(maxsize=8)(OpenAICompatible)
