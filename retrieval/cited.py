"""The pages of citations, and what a document says differently since it was cited."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from knowledge.language import language_of
from knowledge.models import Document
from knowledge.models.knowledge_base import Language
from retrieval.citations import resolve_ref
from retrieval.differences import Part, around, compare
from retrieval.lines import Span
from retrieval.models import Snapshot
from retrieval.snapshots import Standing, stands_of
from retrieval.turns import as_uuid
from retrieval.views import reader_of

# More parts than this are no page; the rest of such a document is all new.
MOST_PARTS = 400


@login_required
@require_safe
@never_cache
def cited_page(request: HttpRequest, turn_id: str, mark: int) -> HttpResponse:
    """Open a citation at its place, or say what it said and what became of it.

    Whoever may search the knowledge base at this moment may open it; everybody else
    gets the same 404 as for a citation that never was.
    """
    return snapshot_page(request, find_snapshot(request, mark, turn=turn_id))


@login_required
@require_safe
@never_cache
def asked_page(request: HttpRequest, interaction_id: str, mark: int) -> HttpResponse:
    """Open what an answer cites, as a turn's citations are opened."""
    found = find_snapshot(request, mark, interaction=interaction_id)
    return snapshot_page(request, found)


def snapshot_page(request: HttpRequest, snapshot: Snapshot) -> HttpResponse:
    """Show a citation at its place, or what it said and what became of it."""
    stand = stands_of([snapshot])[snapshot.pk]
    if stand.standing is Standing.CURRENT:
        return redirect(reverse("portal:read", args=[snapshot.ref]) + "#cited")
    cited, current = revisions_of(snapshot)
    parts: list[Part] = []
    if cited is not None and current is not None:
        span = (snapshot.start, snapshot.end)
        parts = around(compare(cited.text, current.text), span=span)
    return render(
        request,
        "retrieval/cited.html",
        {
            "snapshot": snapshot,
            "stand": stand,
            "path": path_within(snapshot),
            "cited": cited,
            "current": current,
            "parts": marked(parts[:MOST_PARTS], (snapshot.start, snapshot.end)),
            "language": language_of(
                snapshot.text,
                snapshot.source.layer.languages
                if snapshot.source is not None
                else Language.values,
            ),
        },
    )


def find_snapshot(request: HttpRequest, number: int, **of: str) -> Snapshot:
    """Return a citation that the request's reader may open, or raise Http404.

    `of` names its turn or interaction by the id that was given out.
    """
    keys = {f"{name}__public_id": as_uuid(text) for name, text in of.items()}
    snapshot = (
        Snapshot.objects.visible_to(reader_of(request))
        .select_related("knowledge_base", "source__layer")
        .filter(number=number, **keys)
        .first()
        if None not in keys.values()
        else None
    )
    if snapshot is None:
        raise Http404
    return snapshot


def path_within(snapshot: Snapshot) -> list[str]:
    """Return the headings above the cited words, without the document's title again."""
    path = [part for part in snapshot.clause_path.split(" > ") if part]
    return path[1:] if path[:1] == [snapshot.title] else path


def revisions_of(snapshot: Snapshot) -> tuple[Document | None, Document | None]:
    """Return the revision that was cited and the one that is current, if they are."""
    if snapshot.source_id is None:
        return None, None
    revisions = Document.objects.filter(source=snapshot.source_id).only(
        "number", "source", "text", "created_at", "superseded_at", "is_current"
    )
    # Of a text that an older version did not keep there is nothing to open or compare.
    kept = revisions.exclude(text_sha256="")
    cited = kept.filter(pk=snapshot.document_id or 0).first()
    return cited, revisions.filter(is_current=True).first()


@login_required
@require_safe
@never_cache
def difference_page(request: HttpRequest, ref: str) -> HttpResponse:
    """Show what the current text of a document says differently than a revision.

    Refs are answered as on the page that shows their text.
    """
    found = resolve_ref(reader_of(request), ref)
    if found is None:
        raise Http404
    document, start, end = found
    current = document.source.documents.filter(is_current=True).first()
    if document.is_current or current is None:
        return redirect("portal:read", ref)
    parts = around(compare(document.text, current.text))
    return render(
        request,
        "retrieval/difference.html",
        {
            "document": document,
            "source": document.source,
            "current": current,
            "ref": ref,
            "is_same": all(not part.is_change for part in parts),
            "parts": marked(parts[:MOST_PARTS], (start, end)),
            "is_cut": len(parts) > MOST_PARTS,
            "language": language_of(
                document.text[start:end], document.source.layer.languages
            ),
        },
    )


def marked(parts: list[Part], span: Span) -> list[dict[str, Any]]:
    """Return the parts, the first of those that touch the cited span told apart."""
    near = [part.start < span[1] and span[0] < part.end for part in parts]
    first = near.index(True) if True in near else -1
    return [
        {"part": part, "is_cited": index == first} for index, part in enumerate(parts)
    ]
