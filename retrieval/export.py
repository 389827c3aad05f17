"""The log of searches as a file, a batch at a time, with what its reader may see."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse

from knowledge.models import KnowledgeBase, Layer, Passage, User
from knowledge.permissions import Reader
from retrieval.models import SearchLog

BATCH: Final = 500
# A table program takes a cell that begins so for a formula.
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
COLUMNS: Final = (
    "at",
    "person",
    "token",
    "by_agent",
    "door",
    "question",
    "knowledge_bases",
    "layers",
    "settings",
    "model",
    "asked_for",
    "returned",
    "outcome",
    "confidence",
    "judged_by",
    "score",
    "labels",
    "fallback",
    "withheld",
    "ms",
    "passages",
)
FORMATS: Final = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
}


def records(rows: QuerySet[SearchLog], viewer: User) -> Iterator[dict[str, Any]]:
    """Yield the rows newest first, each as plain values.

    A knowledge base that the viewer does not administer is "another"; refs are those of
    passages that the viewer may read.
    """
    reader = Reader.for_user(viewer)
    bases = dict(
        KnowledgeBase.objects.administered_by(viewer).values_list("pk", "slug")
    )
    layers = {
        layer.pk: str(layer)
        for layer in Layer.objects.administered_by(viewer).select_related(
            "knowledge_base"
        )
    }
    for batch in batches(rows):
        ids = [hit["passage"] for row in batch for hit in row.hits if hit["passage"]]
        readable = set(
            Passage.objects.visible_to(reader)
            .filter(pk__in=ids)
            .values_list("pk", flat=True)
        )
        for row in batch:
            yield record_of(row, bases, layers, readable)


def batches(rows: QuerySet[SearchLog]) -> Iterator[list[SearchLog]]:
    """Yield the rows newest first, in short statements of their own."""
    rows = rows.order_by("-pk").select_related("person", "token")
    last: int | None = None
    while True:
        part = rows if last is None else rows.filter(pk__lt=last)
        batch = list(part.defer("rankings", "fused", "reranked")[:BATCH])
        if not batch:
            return
        yield batch
        last = batch[-1].pk


def record_of(
    row: SearchLog,
    bases: Mapping[int, str],
    layers: Mapping[int, str],
    readable: set[int],
) -> dict[str, Any]:
    """Return one row as plain values."""
    return {
        "at": row.at.isoformat(),
        "person": row.person.get_username() if row.person is not None else "",
        "token": row.token.name if row.token is not None else "",
        "by_agent": row.by_agent,
        "door": row.door,
        "question": row.query,
        "knowledge_bases": [bases.get(pk, "another") for pk in row.knowledge_bases],
        "layers": None
        if row.layers is None
        else [layers.get(pk, "another") for pk in row.layers],
        "settings": row.tuning_version,
        "model": row.model,
        "asked_for": row.count,
        "returned": row.returned,
        "outcome": row.status,
        "confidence": row.level,
        "judged_by": row.basis,
        "score": row.confidence,
        "labels": row.labels,
        "fallback": row.fallback_reason,
        "withheld": len(row.withheld),
        "ms": row.total_ms,
        "passages": [
            {
                "ref": hit["ref"] if hit["passage"] in readable else None,
                "match": hit["match"],
                "score": hit["score"],
                "similarity": hit["similarity"],
                "rerank_score": hit["rerank_score"],
            }
            for hit in row.hits
        ],
    }


def as_jsonl(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield a line of JSON for each row."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False).encode() + b"\n"


def as_csv(
    rows: Iterable[Mapping[str, Any]], columns: Iterable[str]
) -> Iterator[bytes]:
    """Yield a line of CSV for each row, after the names of the columns."""
    names = list(columns)
    yield csv_line(names)
    for row in rows:
        yield csv_line([cell_of(row[name]) for name in names])


def csv_line(cells: Iterable[str]) -> bytes:
    """Return one line."""
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def cell_of(value: object) -> str:
    """Return a value as a cell that no table program takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, list):
        value = " ".join(
            each if isinstance(each, str) else str(each.get("ref") or "-")
            for each in value
        )
    text = str(value)
    is_number = isinstance(value, int | float)
    return f"'{text}" if text.startswith(FORMULA) and not is_number else text


def streamed(
    request: HttpRequest, parts: Iterator[bytes], *, content_type: str, name: str
) -> StreamingHttpResponse:
    """Return a file that is sent while it is made, whatever serves the request."""
    is_async = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _in_threads(parts) if is_async else parts, content_type=content_type
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


async def _in_threads(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield what an iterator gives that asks the database on its way."""
    following = sync_to_async(partial(next, parts, None))
    while (part := await following()) is not None:
        yield part
