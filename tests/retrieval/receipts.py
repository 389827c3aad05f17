"""Receipts for tests, of passages that stand in the database."""

from typing import Any

from knowledge.models import Passage
from knowledge.permissions import Reader
from retrieval.models import Receipt
from retrieval.receipts import ReadSpan, issue_receipt


def span_of(passage: Passage, **changes: Any) -> ReadSpan:
    """Return a passage as the server reads it."""
    fields: dict[str, Any] = {
        "ref": passage.document.ref(passage.start, passage.end),
        "revision": passage.document.number,
        "start": passage.start,
        "end": passage.end,
        "text": passage.text,
        "knowledge_base_id": passage.knowledge_base_id,
        "source_id": passage.source_id,
        "title": passage.document.title,
        "file": passage.source.path,
    }
    return ReadSpan(**{**fields, **changes})


def issued(reader: Reader, *passages: Passage, **said: Any) -> Receipt:
    """Return a new receipt of some passages, of a checked draft if not told otherwise."""
    said.setdefault("kind", "draft")
    read = said.pop("read", None) or [span_of(passage) for passage in passages]
    return Receipt.objects.get(public_id=issue_receipt(reader, read=read, **said))
