"""The text of a ref, which any part of a revision may have."""

from dataclasses import dataclass

from django.urls import reverse

from knowledge.models import Document
from knowledge.models.passage import TextOrigin
from knowledge.permissions import Reader
from knowledge.positions import LineMap, page_at
from retrieval.citations import is_archived, replacement, resolve_ref
from retrieval.results import Citation
from retrieval.sizes import declared_in

# Wider than any ref that a search or an answer gives out (characters).
MOST_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a revision, in its own words.

    `current` tells whether the revision is the one that searches find.
    """

    ref: str
    text: str
    current: bool
    citation: Citation


def find_span(reader: Reader, ref: str) -> Span | None:
    """Return what a ref names, or None where the reader has no such thing."""
    found = resolve_ref(reader, ref)
    if found is None:
        return None
    document, start, end = found
    if end - start > MOST_CHARACTERS:
        return None
    return Span(
        ref=document.ref(start, end),
        text=document.text[start:end],
        current=document.is_current,
        citation=cite_span(document, start, end),
    )


def cite_span(document: Document, start: int, end: int) -> Citation:
    """Return where a span of a revision stands."""
    source, layer = document.source, document.source.layer
    base = source.knowledge_base_id
    ref = document.ref(start, end)
    first, last = LineMap(document.text).lines_of(start, end)
    section = (
        document.sections.filter(start__lte=start, end__gt=start)
        .order_by("-level", "-ordinal")
        .first()
    )
    is_ocr = any(left < end and start < right for left, right in document.ocr_spans)
    return Citation(
        ref=ref,
        title=document.title,
        knowledge_base=document.knowledge_base.slug,
        layer=layer.name,
        file=source.path,
        page=page_at(document.pages, start),
        lines=str(first) if first == last else f"{first}-{last}",
        clause_path=" > ".join(section.path) if section is not None else "",
        date=document.date,
        date_source=document.date_source or None,
        archived=is_archived(source.path, layer.archived_patterns),
        replaced_by=replacement(source.path, declared_in([base]).get(base, {})),
        text_origin=TextOrigin.OCR if is_ocr else TextOrigin.TEXT,
        revision=f"d{document.number}",
        indexed_at=document.created_at,
        url=reverse("portal:read", args=[ref]),
    )
