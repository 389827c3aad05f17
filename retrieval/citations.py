"""Where a passage stands, and what its document declares about itself."""

import re
from collections.abc import Collection, Sequence
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple

from django.urls import reverse

from knowledge.models import Document
from knowledge.permissions import Reader
from retrieval.reach import Reach, Sql, rows_of
from retrieval.results import Citation
from retrieval.sizes import Replacing

REF = re.compile(r"d([1-9][0-9]{0,15}):(0|[1-9][0-9]{0,8})-([1-9][0-9]{0,8})")


# Stands for a ref in an address; looking addresses up is slow, so it is done once.
PLACE = "d1:0-1"


class CitedRow(NamedTuple):
    """What a hit and its citation say of a passage, as the database holds it.

    A document's text and pages are large, and none of it is read here.
    """

    passage_id: int
    text: str
    metadata: str
    start: int
    end: int
    clause_path: str
    page: int | None
    line_start: int
    line_end: int
    text_origin: str
    knowledge_base_id: int
    knowledge_base: str
    layer: str
    archived_patterns: Sequence[str]
    source_id: int
    path: str
    number: int
    title: str
    date: date | None
    date_source: str
    indexed_at: datetime


def parse_ref(ref: str) -> tuple[int, int, int] | None:
    """Return (document number, start, end) of `d42:1830-1905`, or None."""
    match = REF.fullmatch(ref)
    if match is None:
        return None
    number, start, end = (int(group) for group in match.groups())
    return (number, start, end) if start < end else None


def resolve_ref(reader: Reader, ref: str) -> tuple[Document, int, int] | None:
    """Return the revision and span that a ref names, if the reader may see it now.

    None alike for a malformed ref, a missing revision, a forbidden one and a span that
    the text does not have (D25).
    """
    parsed = parse_ref(ref)
    if parsed is None:
        return None
    number, start, end = parsed
    document = (
        Document.objects.visible_to(reader)
        .select_related("source__layer", "knowledge_base", "original")
        .defer("blocks")
        .filter(number=number)
        .first()
    )
    if document is None or end > len(document.text):
        return None
    return document, start, end


def cited_rows(reach: Reach, passage_ids: Sequence[int]) -> list[CitedRow]:
    """Return what is to be said of passages, as far as they are still within reach."""
    visible = reach.visible
    rows = rows_of(
        Sql(
            f"""
            SELECT p.id, p.text, p.metadata, p.start, p."end", p.clause_path, p.page,
                   p.line_start, p.line_end, p.text_origin, p.knowledge_base_id, b.slug,
                   l.name, l.archived_patterns, s.id, s.path, d.number, d.title, d.date,
                   d.date_source, d.created_at
            FROM (SELECT * FROM {visible.text} AND id = ANY(%s)) p
            JOIN knowledge_knowledgebase b ON b.id = p.knowledge_base_id
            JOIN knowledge_layer l ON l.id = p.layer_id
            JOIN knowledge_source s ON s.id = p.source_id
            JOIN knowledge_document d ON d.id = p.document_id
            """,  # noqa: S608
            (*visible.params, list(passage_ids)),
        )
    )
    return [CitedRow(*row) for row in rows]


def cite(reach: Reach, rows: Sequence[CitedRow]) -> dict[int, Citation]:
    """Return the citation of each passage within reach, by its id.

    Labels are worked out now, so that a changed pattern needs no new ingest
    (S1-DAT-05).
    """
    replaced = {
        source_id: replacement(path, reach.sizes[base_id].replacing)
        for base_id, source_id, path in {
            (row.knowledge_base_id, row.source_id, row.path)
            for row in rows
            if row.knowledge_base_id in reach.sizes
        }
    }
    page = address()
    return {
        row.passage_id: citation_of(row, replaced.get(row.source_id), page)
        for row in rows
    }


def address() -> str:
    """Return the address of the page that shows PLACE."""
    return reverse("portal:read", args=[PLACE])


def citation_of(row: CitedRow, replaced_by: str | None, page: str) -> Citation:
    """Return one passage's citation; `page` is the address that shows PLACE."""
    revision = f"d{row.number}"
    ref = f"{revision}:{row.start}-{row.end}"
    first, last = row.line_start, row.line_end
    return Citation(
        ref=ref,
        title=row.title,
        knowledge_base=row.knowledge_base,
        layer=row.layer,
        file=row.path,
        page=row.page,
        lines=lines_between(first, last),
        clause_path=row.clause_path,
        date=row.date,
        date_source=row.date_source or None,
        archived=is_archived(row.path, row.archived_patterns),
        replaced_by=replaced_by,
        text_origin=row.text_origin,
        revision=revision,
        indexed_at=row.indexed_at,
        url=page.replace(PLACE, ref),
    )


def lines_between(first: int, last: int) -> str:
    """Return lines as citations write them; "" where they are not known."""
    if not first:
        return ""
    return str(first) if first == last else f"{first}-{last}"


def is_archived(path: str, patterns: Collection[str]) -> bool:
    """Tell whether a path matches one of a layer's patterns, such as `archive/*`."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def replacement(path: str, declared: Replacing) -> str | None:
    """Return the path of the document that says it replaces the one at `path`.

    `declared` is what the documents of its knowledge base declare: a path from the top
    of the knowledge base or from the declaring document's own folder, or a bare file
    name. Of several the newest counts.
    """
    by = [
        (place, declaring)
        for name in spellings(path)
        for place, declaring in declared.get(name, ())
        if declaring != path and names_path(name, path, seen_from=declaring)
    ]
    return max(by)[1] if by else None


def spellings(path: str) -> list[str]:
    """Return the ways in which another document may write a path."""
    parts = PurePosixPath(path).parts
    tails = ["/".join(parts[start:]) for start in range(len(parts))]
    return [*tails, *(f"./{tail}" for tail in tails)]


def names_path(written: str, path: str, *, seen_from: str) -> bool:
    """Tell whether what a document at `seen_from` writes means `path`."""
    plain = written.removeprefix("./")
    beside = str(PurePosixPath(seen_from).parent / plain)
    is_bare = "/" not in written
    return path in {plain, beside} or (is_bare and PurePosixPath(path).name == plain)
