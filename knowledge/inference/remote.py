"""The gateway over HTTP: what web and worker processes use. No torch in here.

The server is ours (``server.py``) or any that speaks the OpenAI form of
``/v1/embeddings``. Which of the two is found out once, by asking for our description.
Of the second kind a probe tells the dimension, the prefixes and the window are
configured, there are no token vectors, and token counts are estimated, never too low
for common tokenizers, so that passages come out shorter and none is cut.

After a failure the *query* calls fail at once for a few seconds, then one of them tries
again (``http.Breaker``): a dead server costs search nothing. Calls for passages always
try, since ingest waits by itself.
"""

import base64
import binascii
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn

import numpy as np

from knowledge.inference.gateway import (
    InputType,
    ModelInfo,
    ModelInputError,
    ModelMismatchError,
    ModelUnavailableError,
    PassageEmbedding,
    QueryEmbedding,
)
from knowledge.inference.http import Breaker, Deadline, Http, bearer
from knowledge.inference.tokens import TOKEN_FORMAT, unpack

# One request's worth of passages: seconds of work, so that a lost one costs little.
PASSAGES_PER_REQUEST = 64
TEXTS_PER_COUNT = 512

_LETTERS = re.compile(r"[^\W\d_]+")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Described:
    """A described server: whether it is ours, and how it names its model."""

    info: ModelInfo
    is_ours: bool
    answered_model: str


class RemoteGateway:
    """A model server by URL. Safe to share between threads, and across a fork.

    Args:
        url: of the server, without ``/v1``: ``http://127.0.0.1:8601``.
        key: bearer key, if the server wants one.
        model: name sent to a server that is not ours.
        query_timeout: seconds that a query, or a description, may take in all.
        passage_timeout: seconds that one request for passages may take in all.
        query_prefix: put before queries where the server is not ours.
        passage_prefix: put before passages where the server is not ours.
        window: tokens of one input where the server is not ours.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        model: str | None = None,
        query_timeout: float = 1.5,
        passage_timeout: float = 120.0,
        query_prefix: str = "",
        passage_prefix: str = "",
        window: int = 512,
    ) -> None:
        self._url = url.rstrip("/").removesuffix("/v1")
        self._model = model
        self._query_timeout = query_timeout
        self._passage_timeout = passage_timeout
        self._prefixes = {
            InputType.QUERY: query_prefix,
            InputType.PASSAGE: passage_prefix,
        }
        self._window = window
        self._http = Http(self._url, bearer(key))
        self._breaker = Breaker()
        self._described: Described | None = None

    def close(self) -> None:
        """Close the kept connections; a later call opens new ones."""
        self._http.close()

    def describe(self) -> ModelInfo:
        """Say which model answers; asked once, and again after a mismatch."""
        if self._described is not None:
            return self._described.info
        with self._breaker.guard():
            return self._describe(Deadline(self._query_timeout)).info

    def embed_query(self, text: str) -> QueryEmbedding:
        """Embed one query within the query's time limit."""
        deadline = Deadline(self._query_timeout)
        with self._breaker.guard():
            described = self._describe(deadline)
            (embedded,) = self._embed(described, [text], InputType.QUERY, deadline)
        return QueryEmbedding(embedded.vector, embedded.tokens)

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        """Embed passages, similar lengths together, in requests of their own limit."""
        with self._breaker.watch():
            described = self._describe(Deadline(self._passage_timeout))
            order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
            result: dict[int, PassageEmbedding] = {}
            for start in range(0, len(order), PASSAGES_PER_REQUEST):
                chosen = order[start : start + PASSAGES_PER_REQUEST]
                embedded = self._embed(
                    described,
                    [texts[i] for i in chosen],
                    InputType.PASSAGE,
                    Deadline(self._passage_timeout),
                )
                result.update(zip(chosen, embedded, strict=True))
        return [result[i] for i in range(len(texts))]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count tokens; estimated, and never too few, where the server is not ours."""
        with self._breaker.watch():
            described = self._describe(Deadline(self._passage_timeout))
            if not described.is_ours:
                return [estimate_tokens(text) for text in texts]
            counts: list[int] = []
            for start in range(0, len(texts), TEXTS_PER_COUNT):
                chosen = list(texts[start : start + TEXTS_PER_COUNT])
                counts += self._count(described, chosen)
            return counts

    def _describe(self, deadline: "Deadline") -> Described:
        described = self._described
        if described is None:
            described = self._describe_ours(deadline) or self._probe(deadline)
            self._described = described
        return described

    def _describe_ours(self, deadline: "Deadline") -> Described | None:
        status, answer = self._http.call("GET", "/strata/v1/info", None, deadline)
        if status in (404, 405):
            return None
        body = _read_object(status, answer)
        try:
            info = _read_info(body)
        except (KeyError, TypeError, ValueError) as error:
            self._mismatch(f"describes its model in a way unknown here ({error})")
        return Described(info, is_ours=True, answered_model=info.model_id)

    def _probe(self, deadline: "Deadline") -> Described:
        body = self._post_openai([self._prefixes[InputType.PASSAGE] + "a"], deadline)
        vectors = self._read_openai(body, 1, None)
        answered = body.get("model")
        answered_model = answered if isinstance(answered, str) else ""
        info = ModelInfo(
            model_id=self._model or answered_model or "unnamed",
            dimension=len(vectors[0]),
            window=self._window,
            # Two special tokens, and a prefix that may be cut into single marks.
            reserved=2 + estimate_tokens(self._prefixes[InputType.PASSAGE]),
            query_prefix=self._prefixes[InputType.QUERY],
            passage_prefix=self._prefixes[InputType.PASSAGE],
        )
        return Described(info, is_ours=False, answered_model=answered_model)

    def _embed(
        self,
        described: Described,
        texts: list[str],
        kind: InputType,
        deadline: "Deadline",
    ) -> list[PassageEmbedding]:
        if described.is_ours:
            return self._encode(described.info, texts, kind, deadline)
        prefixed = [self._prefixes[kind] + text for text in texts]
        body = self._post_openai(prefixed, deadline)
        answered = body.get("model")
        if isinstance(answered, str) and answered != described.answered_model:
            self._mismatch(
                f"answers with the model {answered!r}, no longer with "
                f"{described.answered_model!r}"
            )
        vectors = self._read_openai(body, len(texts), described.info.dimension)
        return [
            PassageEmbedding(vector, b"", estimate_tokens(text))
            for vector, text in zip(vectors, texts, strict=True)
        ]

    def _encode(
        self,
        info: ModelInfo,
        texts: list[str],
        kind: InputType,
        deadline: "Deadline",
    ) -> list[PassageEmbedding]:
        request = {"input": texts, "input_type": kind.value}
        status, answer = self._http.call("POST", "/strata/v1/encode", request, deadline)
        body = _read_object(status, answer)
        self._check_fingerprint(body, info)
        data = body.get("data")
        if not isinstance(data, list) or len(data) != len(texts):
            self._mismatch(f"did not give {len(texts)} vectors for as many texts")
        try:
            return [
                PassageEmbedding(
                    self._check_vector(
                        np.frombuffer(_from_base64(item["vector"]), "<f4").tolist(),
                        info.dimension,
                    ),
                    _check_tokens(_from_base64(item["tokens"]), info),
                    int(item["token_count"]),
                )
                for item in data
            ]
        except (KeyError, TypeError, ValueError) as error:
            self._mismatch(f"gave vectors that cannot be read ({error})")

    def _count(self, described: Described, texts: list[str]) -> list[int]:
        status, answer = self._http.call(
            "POST",
            "/strata/v1/tokenize",
            {"input": texts},
            Deadline(self._passage_timeout),
        )
        body = _read_object(status, answer)
        self._check_fingerprint(body, described.info)
        counts = body.get("counts")
        if (
            not isinstance(counts, list)
            or len(counts) != len(texts)
            or not all(type(count) is int and count >= 0 for count in counts)
        ):
            self._mismatch(f"did not give {len(texts)} token counts")
        return counts

    def _post_openai(self, texts: list[str], deadline: "Deadline") -> dict[str, Any]:
        request: dict[str, Any] = {"input": texts, "encoding_format": "float"}
        if self._model:
            request["model"] = self._model
        status, answer = self._http.call("POST", "/v1/embeddings", request, deadline)
        return _read_object(status, answer)

    def _read_openai(
        self, body: dict[str, Any], count: int, dimension: int | None
    ) -> list[tuple[float, ...]]:
        data = body.get("data")
        if not isinstance(data, list) or len(data) != count:
            self._mismatch(f"did not give {count} vectors for as many texts")
        try:
            by_index = {item.get("index", at): item for at, item in enumerate(data)}
            ordered = [by_index[index]["embedding"] for index in range(count)]
        except (AttributeError, KeyError, TypeError) as error:
            self._mismatch(f"gave vectors that cannot be read ({error})")
        return [self._check_vector(vector, dimension) for vector in ordered]

    def _check_vector(self, vector: object, dimension: int | None) -> tuple[float, ...]:
        """Return the vector at unit length if it can be this model's."""
        try:
            values = np.asarray(vector, dtype=np.float64)
        except (TypeError, ValueError):
            self._mismatch("gave a vector that is no list of numbers")
        if values.ndim != 1 or (dimension is not None and len(values) != dimension):
            wanted = "" if dimension is None else f" instead of {dimension}"
            self._mismatch(
                f"gave a vector of {'x'.join(map(str, values.shape))} numbers{wanted}"
            )
        length = float(np.linalg.norm(values))
        if not math.isfinite(length) or length < 1e-6:
            self._mismatch("gave a vector with no direction (NaN, infinite or zero)")
        return tuple((values / length).tolist())

    def _check_fingerprint(self, body: dict[str, Any], info: ModelInfo) -> None:
        if body.get("fingerprint") != info.fingerprint:
            self._mismatch("now serves another model than it described")

    def _mismatch(self, what: str) -> NoReturn:
        """Forget the description: the next call asks who answers now."""
        self._described = None
        raise ModelMismatchError(
            f"The model server at {self._url} {what}. Check STRATA_MODEL_URL and the "
            "server's model; nothing of this answer is kept."
        )


def estimate_tokens(text: str) -> int:
    """Estimate tokens, rather too many than too few, without the model's tokenizer.

    Letters count one for two bytes of UTF-8 (real: one for four in English, one for
    two to four in other languages), every digit and mark one, white space none.
    """
    letter_bytes = 0
    letters = 0
    for word in _LETTERS.findall(text):
        letters += len(word)
        letter_bytes += len(word.encode("utf-8", "replace")) + 1
    spaces = sum(map(len, _SPACE.findall(text)))
    return letter_bytes // 2 + len(text) - letters - spaces


def _read_object(status: int, answer: bytes) -> dict[str, Any]:
    """Read a JSON object, or raise for what the status says.

    Raises:
        ModelInputError: the server refuses this input.
        ModelUnavailableError: it fails, is not ready, or answers no JSON object.
    """
    try:
        body = json.loads(answer)
    except (ValueError, RecursionError):
        body = None
    if status == 200 and isinstance(body, dict):
        return body
    message = ""
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        message = str(body["error"].get("message", ""))[:500]
    if status in (401, 403):
        raise ModelUnavailableError(
            f"The model server refuses the key. Check STRATA_MODEL_KEY. {message}"
        )
    if 400 <= status < 500 and status not in (404, 408, 425, 429):
        raise ModelInputError(
            f"The model server refuses the input (status {status}). {message}"
        )
    if status == 200:
        raise ModelUnavailableError("The model server's answer is no JSON object.")
    raise ModelUnavailableError(
        f"The model server does not embed now (status {status}). {message}"
    )


def _read_info(body: dict[str, Any]) -> ModelInfo:
    """Read our server's description.

    Raises:
        KeyError, TypeError, ValueError: it is not one that this version knows.
    """
    info = ModelInfo(**{field.name: body[field.name] for field in fields(ModelInfo)})
    if info.fingerprint != body["fingerprint"]:
        raise ValueError("its fingerprint is not that of its description")
    if info.token_format not in ("", TOKEN_FORMAT):
        raise ValueError(f"its token format {info.token_format} is unknown")
    return info


def _from_base64(text: object) -> bytes:
    if not isinstance(text, str):
        raise TypeError("not base64")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


def _check_tokens(packed: bytes, info: ModelInfo) -> bytes:
    """Return the packed token vectors if they are whole and of this model.

    Raises:
        ValueError: they are not.
    """
    if not info.token_format:
        return b""
    dimension = unpack(packed).vectors.shape[1]
    if dimension != info.token_dimension:
        raise ValueError(f"token vectors of {dimension} numbers")
    return packed


class RemoteReranker:
    """A reranking model by URL, in the form that our server, vLLM and others speak.

    ``/v1/rerank`` takes ``{"model", "query", "documents", "top_n"}`` and answers
    ``{"results": [{"index", "relevance_score"}]}``. Safe to share between threads.

    Args:
        url: of the server, without ``/v1``.
        key: bearer key, if the server wants one.
        model: name that is sent.
        timeout: seconds that one call may take in all.
    """

    def __init__(
        self, url: str, *, key: str | None = None, model: str, timeout: float = 10.0
    ) -> None:
        self._url = url.rstrip("/").removesuffix("/v1")
        self._model = model
        self._timeout = timeout
        self._http = Http(self._url, bearer(key))
        self._breaker = Breaker()

    def close(self) -> None:
        """Close the kept connections; a later call opens new ones."""
        self._http.close()

    def rerank(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return how well each document answers the query, in their order.

        Raises:
            ModelUnavailableError: there is no answer in time, or the server fails.
            ModelMismatchError: the answer is no score, 0 to 1, for each document.
            ModelInputError: the server refuses the input.
        """
        request = {
            "model": self._model,
            "query": query,
            "documents": list(documents),
            "top_n": len(documents),
        }
        with self._breaker.guard():
            status, answer = self._http.call(
                "POST", "/v1/rerank", request, Deadline(self._timeout)
            )
            return self._read(_read_object(status, answer), len(documents))

    def _read(self, body: dict[str, Any], count: int) -> list[float]:
        results = body.get("results")
        scores: dict[int, float] = {}
        if isinstance(results, list):
            for item in results:
                if isinstance(item, dict):
                    index, score = item.get("index"), item.get("relevance_score")
                    if type(index) is int and isinstance(score, int | float):
                        scores[index] = float(score)
        if sorted(scores) != list(range(count)) or not all(
            0 <= score <= 1 for score in scores.values()
        ):
            raise ModelMismatchError(
                f"The reranking model {self._model!r} at {self._url} did not give a "
                f"score from 0 to 1 for each of {count} passages. Check "
                "RERANKING_MODEL and the server that serves it."
            )
        return [scores[index] for index in range(count)]
