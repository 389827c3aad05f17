"""The model server: one model behind HTTP, for web and worker processes (R7, D10).

``python -m knowledge.inference.server --model bundled --models-dir var/models``

It listens at once and loads meanwhile; until then all but ``/health`` answer 503.
With ``STRATA_MODEL_KEY`` in the environment, all but ``/health`` want that bearer key.

- ``GET /health``: ``{"status": starting|ready|failed, "progress", "message"}``
- ``GET /v1/models`` and ``POST /v1/embeddings``: the OpenAI form, plus an optional
  ``input_type`` of ``query`` or ``passage`` (default: passage, for a text as for a
  list), which decides the prefix and who goes first
- ``GET /strata/v1/info``: the fields of ``gateway.ModelInfo`` and its fingerprint
- ``POST /strata/v1/encode``: ``{"input": text or list, "input_type"}``; vectors (32-bit
  little-endian floats) and packed token vectors in base64, with token counts
- ``POST /strata/v1/tokenize``: ``{"input"}``; counts without prefix and special tokens
- ``POST /v1/rerank``, with ``--reranking-model``: ``{"model", "query", "documents",
  "top_n"}``; ``{"results": [{"index", "relevance_score"}]}``, best first, 0 to 1

Errors are ``{"error": {"message", "type"}}`` with a sentence.
"""

import argparse
import asyncio
import base64
import hmac
import json
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from knowledge.inference import bundled
from knowledge.inference.gateway import InputType, ModelUnavailableError
from knowledge.inference.identity import BUNDLED_MODEL_ID
from knowledge.inference.prepared import Embedded, Prepared
from knowledge.inference.scheduling import Backend, QueueFullError, Report, Scheduler

logger = logging.getLogger(__name__)

KEY_VARIABLE = "STRATA_MODEL_KEY"
BUNDLED = "bundled"
MAX_INPUTS = 512
MAX_CHARACTERS = 100_000
MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_DOCUMENTS = 200
# Pairs that are scored in one go: queries to be embedded wait no longer than that.
PAIRS_PER_TASK = 4

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class RequestError(Exception):
    """A request that cannot be served: a status and a sentence for its sender."""

    def __init__(
        self, status: int, message: str, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ClientGoneError(Exception):
    """The client closed the connection; nobody waits for the answer."""


class PairScores(Protocol):
    """What the server needs of ``pairs.PairScorer``."""

    name: str

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return how well each document answers the query, 0 to 1."""
        ...


# The scorer once it is loaded, None where the server has no reranking model.
FindScorer = Callable[[], PairScores | None]


def no_scorer() -> None:
    """Return nothing: for a server without a reranking model."""
    return


def create_app(
    scheduler: Scheduler,
    *,
    key: str = "",
    name: str = "",
    find_scorer: FindScorer = no_scorer,
    reranking_name: str = "",
) -> Starlette:
    """Build the application.

    Args:
        scheduler: owns the model.
        key: bearer key that requests need, "" for none.
        name: a second name, besides the model's own, that requests may ask for.
        find_scorer: gives the reranking model.
        reranking_name: a second name of that model.
    """
    endpoints = Endpoints(scheduler, name)
    reranking = Reranking(scheduler, find_scorer, reranking_name)
    guard = partial(_guard, key=key)
    return Starlette(
        routes=[
            Route("/health", endpoints.health),
            Route("/v1/models", guard(endpoints.models)),
            Route("/v1/embeddings", guard(endpoints.embeddings), methods=["POST"]),
            Route("/strata/v1/info", guard(endpoints.info)),
            Route("/strata/v1/encode", guard(endpoints.encode), methods=["POST"]),
            Route("/strata/v1/tokenize", guard(endpoints.tokenize), methods=["POST"]),
            Route("/v1/rerank", guard(reranking.rerank), methods=["POST"]),
        ]
    )


def _guard(handler: Handler, key: str) -> Handler:
    """Check the key, and turn what a handler raises into an answer."""

    async def guarded(request: Request) -> Response:
        try:
            _check_key(request, key)
            return await handler(request)
        except RequestError as error:
            return _error(error.status, str(error), error.retry_after)
        except QueueFullError as error:
            return _error(503, str(error), error.retry_after)
        except ModelUnavailableError as error:
            return _error(503, str(error), 2)
        except ClientGoneError:
            return Response(status_code=499)
        except Exception:
            logger.exception("%s failed.", request.url.path)
            return _error(500, "The model server failed; its log says why.", None)

    return guarded


def _check_key(request: Request, key: str) -> None:
    given = request.headers.get("authorization", "")
    if key and not hmac.compare_digest(given.encode(), f"Bearer {key}".encode()):
        raise RequestError(
            401, f"Send the key of {KEY_VARIABLE} as 'Authorization: Bearer …'."
        )


def _error(status: int, message: str, retry_after: int | None) -> Response:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return JSONResponse(
        {"error": {"message": message, "type": kind}}, status, headers=headers
    )


class Endpoints:
    """The handlers of the routes above."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self._scheduler = scheduler
        self._name = name

    async def health(self, _request: Request) -> Response:
        """Tell how far the model is; 200 only when it is ready."""
        health = self._scheduler.health
        return JSONResponse(asdict(health), 200 if health.status == "ready" else 503)

    async def models(self, _request: Request) -> Response:
        """List the one model."""
        info = self._scheduler.backend.describe()
        model = {"id": info.model_id, "object": "model", "owned_by": "strata"}
        return JSONResponse({"object": "list", "data": [model]})

    async def info(self, _request: Request) -> Response:
        """Describe the model."""
        info = self._scheduler.backend.describe()
        return JSONResponse({**asdict(info), "fingerprint": info.fingerprint})

    async def embeddings(self, request: Request) -> Response:
        """Embed in the OpenAI form."""
        backend = self._scheduler.backend
        body = await _read_body(request)
        texts = _read_texts(body)
        info = backend.describe()
        _check_model(body, {info.model_id, self._name})
        if body.get("dimensions") not in (None, info.dimension):
            raise RequestError(400, f"This model has {info.dimension} dimensions only.")
        encoding = body.get("encoding_format", "float")
        if encoding not in ("float", "base64"):
            raise RequestError(400, "encoding_format is 'float' or 'base64'.")
        kind = _read_input_type(body)
        prepared, computed = await self._compute(request, backend, texts, kind)
        used = sum(item.length for item in prepared)
        return JSONResponse(
            {
                "object": "list",
                "model": info.model_id,
                "data": [
                    {
                        "object": "embedding",
                        "index": index,
                        "embedding": (
                            _in_base64(item.vector.astype("<f4").tobytes())
                            if encoding == "base64"
                            else item.vector.tolist()
                        ),
                    }
                    for index, item in enumerate(computed)
                ],
                "usage": {"prompt_tokens": used, "total_tokens": used},
            }
        )

    async def encode(self, request: Request) -> Response:
        """Embed with token vectors and counts."""
        backend = self._scheduler.backend
        body = await _read_body(request)
        texts = _read_texts(body)
        kind = _read_input_type(body)
        prepared, computed = await self._compute(request, backend, texts, kind)
        info = backend.describe()
        return JSONResponse(
            {
                "model_id": info.model_id,
                "fingerprint": info.fingerprint,
                "data": [
                    {
                        "vector": _in_base64(item.vector.astype("<f4").tobytes()),
                        "tokens": _in_base64(item.tokens),
                        "token_count": source.token_count,
                    }
                    for source, item in zip(prepared, computed, strict=True)
                ],
            }
        )

    async def tokenize(self, request: Request) -> Response:
        """Count tokens."""
        backend = self._scheduler.backend
        texts = _read_texts(await _read_body(request))
        counts = await asyncio.to_thread(backend.count_tokens, texts)
        fingerprint = backend.describe().fingerprint
        return JSONResponse({"counts": counts, "fingerprint": fingerprint})

    async def _compute(
        self, request: Request, backend: Backend, texts: list[str], kind: InputType
    ) -> tuple[list[Prepared], list[Embedded]]:
        """Tokenize and compute; drop what is left of the work if the client goes."""
        prepared = await asyncio.to_thread(backend.prepare, texts, kind)
        job = self._scheduler.submit(prepared, kind)
        computed = asyncio.wrap_future(job.future)
        gone = asyncio.create_task(_wait_until_gone(request))
        try:
            either: set[asyncio.Future[Any]] = {computed, gone}
            await asyncio.wait(either, return_when="FIRST_COMPLETED")
            if not computed.done():
                raise ClientGoneError
            return prepared, await computed
        finally:
            gone.cancel()
            computed.cancel()


class Reranking:
    """The handler of ``/v1/rerank``."""

    def __init__(
        self, scheduler: Scheduler, find_scorer: FindScorer, name: str
    ) -> None:
        self._scheduler = scheduler
        self._find_scorer = find_scorer
        self._name = name

    async def rerank(self, request: Request) -> Response:
        """Score documents against a query, a few at a time."""
        body = await _read_body(request)
        # Whether there is a model is known once everything is loaded.
        self._scheduler.backend.describe()
        scorer = self._find_scorer()
        if scorer is None:
            raise RequestError(
                404, "This server has no reranking model; start it with one."
            )
        _check_model(body, {scorer.name, self._name})
        query, documents = _read_pairs(body)
        most = _read_top_n(body, len(documents))
        scores: list[float] = []
        for start in range(0, len(documents), PAIRS_PER_TASK):
            some = documents[start : start + PAIRS_PER_TASK]
            task = self._scheduler.submit_task(partial(scorer.score, query, some))
            scored = await asyncio.wrap_future(task.future)
            scores.extend(scored)
            if await request.is_disconnected():
                raise ClientGoneError
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        results = [
            {"index": index, "relevance_score": scores[index]} for index in order[:most]
        ]
        return JSONResponse({"model": scorer.name, "results": results})


def _read_pairs(body: dict[str, Any]) -> tuple[str, list[str]]:
    query, documents = body.get("query"), body.get("documents")
    if not isinstance(query, str) or not query:
        raise RequestError(400, "'query' is a text.")
    if not isinstance(documents, list) or not documents:
        raise RequestError(400, "'documents' is a list of at least one text.")
    if len(documents) > MAX_DOCUMENTS:
        raise RequestError(
            400,
            f"'documents' has {len(documents)} texts; send {MAX_DOCUMENTS} at most.",
        )
    # The other form has {"text": …} for each document.
    texts = [each.get("text") if isinstance(each, dict) else each for each in documents]
    return _read_texts({"input": query})[0], _read_texts({"input": texts})


def _read_top_n(body: dict[str, Any], count: int) -> int:
    most = body.get("top_n", count)
    if type(most) is not int or most < 1:
        raise RequestError(400, "'top_n' is a whole number above 0.")
    return most


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read_body(request: Request) -> dict[str, Any]:
    """Read a JSON object, in full before anything waits in the queue."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind.lower() != "application/json":
        # Besides, no page in a browser can send this type here without being asked.
        raise RequestError(415, "Send JSON with 'Content-Type: application/json'.")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise RequestError(413, f"A body has {MAX_BODY_BYTES:,} bytes at most.")
        parts.append(part)
    try:
        body = json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"The body is not JSON: {error}.") from error
    if not isinstance(body, dict):
        raise RequestError(400, "The body is a JSON object with the key 'input'.")
    return body


def _read_texts(body: dict[str, Any]) -> list[str]:
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RequestError(400, "'input' is a text or a list of texts.")
    if not texts:
        raise RequestError(400, "'input' is empty; send at least one text.")
    if len(texts) > MAX_INPUTS:
        raise RequestError(
            400, f"'input' has {len(texts)} texts; send {MAX_INPUTS} at most at once."
        )
    for index, text in enumerate(texts):
        if len(text) > MAX_CHARACTERS:
            raise RequestError(
                400,
                f"Text {index} of 'input' has {len(text):,} characters; "
                f"{MAX_CHARACTERS:,} are the most.",
            )
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RequestError(
                400, f"Text {index} of 'input' has half a character (a surrogate)."
            ) from error
    return texts


def _read_input_type(body: dict[str, Any]) -> InputType:
    try:
        return InputType(body.get("input_type", InputType.PASSAGE))
    except ValueError as error:
        raise RequestError(400, "'input_type' is 'query' or 'passage'.") from error


def _check_model(body: dict[str, Any], names: set[str]) -> None:
    asked = body.get("model")
    if asked and asked not in names:
        known = min(names - {""})
        raise RequestError(404, f"The model {asked!r} is not here; ask for {known!r}.")


def _in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def load_backend(
    model: str, models_dir: Path, threads: int | None, report: Report
) -> Backend:
    """Load the model; ``report`` hears how far it is.

    Raises:
        ModelUnavailableError: it cannot be loaded; the message says why.
    """
    target: str | Path = model
    if model == BUNDLED:
        try:
            target = bundled.ensure_bundled_model(
                models_dir, lambda share, sentence: report(0.7 * share, sentence)
            )
        except bundled.BundledModelAbsentError as error:
            logger.warning("%s", error)
            target = BUNDLED_MODEL_ID
        except bundled.BundledModelError as error:
            raise ModelUnavailableError(str(error)) from error
    report(0.7, "Loading the model.")
    # Here and not above: torch takes seconds to import, and the server listens first.
    import torch

    from knowledge.inference.local import LocalBackend

    if threads is not None:
        torch.set_num_threads(threads)
    backend = LocalBackend(target)
    report(0.9, "Warming up the model.")
    backend.compute(
        backend.prepare(["a first query"], InputType.QUERY), InputType.QUERY
    )
    return backend


class LoadedPairs:
    """Keeps the reranking model from when it is loaded on."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._scorer: PairScores | None = None

    def find(self) -> PairScores | None:
        """Return the model; None before it is loaded, and where there is none."""
        return self._scorer

    def load_after(self, load: Callable[[Report], Backend], report: Report) -> Backend:
        """Load the embedding model, then this one.

        Raises:
            ModelUnavailableError: one of them cannot be loaded.
        """
        backend = load(report)
        if self._model:
            report(0.95, "Loading the reranking model.")
            from knowledge.inference.pairs import PairScorer

            self._scorer = PairScorer(self._model)
        return backend


def main() -> None:
    """Run the server until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m knowledge.inference.server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8601)
    parser.add_argument(
        "--model",
        default=BUNDLED,
        help="'bundled', a folder with a sentence-transformers model, or a hub name",
    )
    parser.add_argument(
        "--reranking-model",
        default="",
        help="a folder with a CrossEncoder of sentence-transformers, or a hub name",
    )
    parser.add_argument(
        "--models-dir",
        type=Path,
        default=Path("var/models"),
        help="where the bundled model is made, once",
    )
    parser.add_argument(
        "--threads", type=int, default=None, help="threads of torch (default: all)"
    )
    options = parser.parse_args()
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    # Nothing of a model is to be fetched or reported unless a hub name asks for it.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Threads that spin while they wait for each other make a query ten times slower
    # as soon as another process wants the same cores. Read when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    load = partial(load_backend, options.model, options.models_dir, options.threads)
    pairs = LoadedPairs(options.reranking_model)
    scheduler = Scheduler(partial(pairs.load_after, load))
    scheduler.start()
    uvicorn.run(
        create_app(
            scheduler,
            key=os.environ.get(KEY_VARIABLE, ""),
            name=options.model,
            find_scorer=pairs.find,
            reranking_name=options.reranking_model,
        ),
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
        server_header=False,
    )


if __name__ == "__main__":
    main()
