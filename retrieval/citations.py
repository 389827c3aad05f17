"""Where a passage stands, and what its document declares about itself."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from django.urls import reverse

from knowledge.models import Document, Passage, Source
from knowledge.permissions import Reader
from retrieval.results import Citation

REF = re.compile(r"d([1-9][0-9]{0,15}):(0|[1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
# What a citation needs of each row; a document's text and pages are large.
CITED_FIELDS = (
    "start",
    "end",
    "text",
    "metadata",
    "clause_path",
    "page",
    "line_start",
    "line_end",
    "text_origin",
    "knowledge_base__slug",
    "layer__name",
    "layer__archived_patterns",
    "source__path",
    "source__knowledge_base",
    "document__number",
    "document__title",
    "document__date",
    "document__date_source",
    "document__created_at",
)


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
        .select_related("source", "knowledge_base", "original")
        .filter(number=number)
        .first()
    )
    if document is None or end > len(document.text):
        return None
    return document, start, end


def cite(passages: Sequence[Passage]) -> dict[int, Citation]:
    """Return the citation of each passage, by its id.

    Labels are worked out now, so that a changed pattern needs no new ingest
    (S1-DAT-05). The caller has read the passages through `visible_to`.
    """
    replaced = replacements(passage.source for passage in passages)
    return {
        passage.pk: citation_of(passage, replaced.get(passage.source_id))
        for passage in passages
    }


def citation_of(passage: Passage, replaced_by: str | None) -> Citation:
    """Return one passage's citation."""
    document, layer = passage.document, passage.layer
    ref = document.ref(passage.start, passage.end)
    path = passage.source.path
    first, last = passage.line_start, passage.line_end
    return Citation(
        ref=ref,
        title=document.title,
        knowledge_base=passage.knowledge_base.slug,
        layer=layer.name,
        file=path,
        page=passage.page,
        lines=str(first) if first == last else f"{first}-{last}",
        clause_path=passage.clause_path,
        date=document.date,
        date_source=document.date_source or None,
        archived=is_archived(path, layer.archived_patterns),
        replaced_by=replaced_by,
        text_origin=passage.text_origin,
        revision=f"d{document.number}",
        indexed_at=document.created_at,
        url=reverse("portal:read", args=[ref]),
    )


def is_archived(path: str, patterns: Collection[str]) -> bool:
    """Tell whether a path matches one of a layer's patterns, such as `archive/*`."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def replacements(sources: Iterable[Source]) -> dict[int, str]:
    """Return, by source id, the path of the document that says it replaces it.

    Declared by `supersedes` in front matter: a path from the top of the knowledge base
    or from the declaring document's own folder, or a bare file name. Only documents
    that a search of the same knowledge base could find count; of several the newest
    does.
    """
    targets = {source.pk: source for source in sources}
    names = {name for source in targets.values() for name in spellings(source.path)}
    if not names:
        return {}
    declared = (
        Document.objects.filter(
            knowledge_base__in={source.knowledge_base_id for source in targets.values()},
            source__in=Source.objects.live(),
            is_current=True,
            supersedes__in=names,
        )
        .order_by("created_at", "pk")
        .values_list("knowledge_base_id", "source__path", "supersedes")
    )
    by_knowledge_base = defaultdict(list)
    for knowledge_base_id, path, supersedes in declared:
        by_knowledge_base[knowledge_base_id].append((path, supersedes))
    return {
        source.pk: path
        for source in targets.values()
        for path, supersedes in by_knowledge_base[source.knowledge_base_id]
        if path != source.path and names_path(supersedes, source.path, seen_from=path)
    }


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
