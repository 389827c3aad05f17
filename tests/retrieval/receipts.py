"""Receipts for tests, of passages that stand in the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from knowledge.models import Document, Passage, Source
from knowledge.permissions import Reader
from retrieval.models import Receipt
from retrieval.receipts import ReadSpan, issue_receipt
from tests.factories import DocumentFactory, PassageFactory


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


def replace_text(source: Source, text: str) -> Document:
    """Give a source another text, as publishing does."""
    source.passages.all().delete()
    source.documents.filter(is_current=True).update(
        is_current=False, superseded_at=timezone.now() - timedelta(days=60)
    )
    document: Document = DocumentFactory(source=source, text=text)
    PassageFactory(document=document)
    return document


@contextmanager
def unguarded() -> Iterator[None]:
    """Take the database's guards away, as whoever owns the database can."""
    tables = ("retrieval_receipt", "retrieval_receiptwords", "retrieval_receiptread")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
