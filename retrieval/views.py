"""The portal's pages for readers: search, what there is, and one's own tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from knowledge.codes import find_codes
from knowledge.models import ApiToken, KnowledgeBase, Layer, Source, User
from knowledge.models.knowledge_base import Language
from knowledge.permissions import Reader
from knowledge.terms import content_words
from knowledge.tokens import create_token, revoke_token
from retrieval.forms import NewTokenForm
from retrieval.highlighting import Piece, mark_words
from retrieval.results import Branch, Hit, SearchResult
from retrieval.search import SearchInputError, search

RESULTS = 10


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit as the page shows it: its words marked, and why it was found."""

    hit: Hit
    pieces: Sequence[Piece]
    path: Sequence[str]
    reasons: Sequence[str]


def reader_of(request: HttpRequest) -> Reader:
    """Return whoever the request runs for."""
    reader: Reader = request.reader  # type: ignore[attr-defined]
    return reader


@login_required
@require_safe
@never_cache
def search_page(request: HttpRequest) -> HttpResponse:
    """Search by meaning, words and codes; the first page of the portal."""
    reader = reader_of(request)
    query = request.GET.get("q", "").strip()
    chosen = request.GET.getlist("layer")
    result, error = None, ""
    if query:
        try:
            result = search(reader, query, layers=chosen or None, top_k=RESULTS)
        except SearchInputError as refused:
            error = refused.message
    return render(
        request,
        "retrieval/search.html",
        {
            "query": query,
            "layers": layer_chips(reader, chosen),
            "result": result,
            "hits": shown_hits(result),
            "summary": summary_of(result),
            "error": error,
        },
        status=400 if error else 200,
    )


def layer_chips(reader: Reader, chosen: Sequence[str]) -> list[dict[str, Any]]:
    """Return the layers that hold something to find, as the page offers them."""
    layers = (
        Layer.objects.visible_to(reader)
        .select_related("knowledge_base")
        .annotate(
            found=models.Count(
                "sources", filter=models.Q(sources__passage_count__gt=0)
            )
        )
        .filter(found__gt=0)
        .order_by("knowledge_base__name", "name")
    )
    rows = list(layers)
    once: dict[int, int] = {}
    for layer in rows:
        once[layer.knowledge_base_id] = once.get(layer.knowledge_base_id, 0) + 1
    return [
        {
            "value": str(layer),
            # A knowledge base with one layer is all that a reader needs to know of it.
            "label": layer.knowledge_base.name
            if once[layer.knowledge_base_id] == 1
            else f"{layer.knowledge_base.name} / {layer.name}",
            "count": layer.found,
            "chosen": str(layer) in chosen,
        }
        for layer in rows
    ]


def shown_hits(result: SearchResult | None) -> list[ShownHit]:
    """Return the hits with the searched words marked and the reasons in words."""
    if result is None:
        return []
    wanted = [
        *content_words(result.query, list(Language.values)),
        *find_codes(result.query),
    ]
    return [
        ShownHit(
            hit=hit,
            pieces=list(mark_words(hit.text, wanted)),
            path=[part for part in hit.citation.clause_path.split(" > ") if part],
            reasons=reasons_of(hit),
        )
        for hit in result.hits
    ]


def reasons_of(hit: Hit) -> list[str]:
    """Return, branch by branch, why a hit was found."""
    sentences = {
        Branch.MEANING: _("by meaning, no. %(rank)s"),
        Branch.KEYWORDS: _("by its words, no. %(rank)s"),
        Branch.CODES: _("by a code, no. %(rank)s"),
    }
    found = []
    for branch, sentence in sentences.items():
        rank = hit.branches.get(branch)
        if rank is None:
            continue
        text = sentence % {"rank": rank.rank}
        if rank.relaxed:
            text = _("%(reason)s (some of the words)") % {"reason": text}
        found.append(text)
    return found


def summary_of(result: SearchResult | None) -> str:
    """Say how much was found, in one sentence."""
    if result is None or not result.hits:
        return ""
    documents = len({hit.citation.revision for hit in result.hits})
    passages = ngettext(
        "%(count)s passage", "%(count)s passages", len(result.hits)
    ) % {"count": len(result.hits)}
    return ngettext(
        "%(passages)s in one document.",
        "%(passages)s in %(documents)s documents.",
        documents,
    ) % {"passages": passages, "documents": documents}


@login_required
@require_safe
@never_cache
def knowledge_bases_page(request: HttpRequest) -> HttpResponse:
    """Show the knowledge bases that the reader may know of, and what is in them."""
    reader = reader_of(request)
    rows = []
    for knowledge_base in KnowledgeBase.objects.listed_to(reader):
        open_to_reader = knowledge_base.pk in reader.searchable
        rows.append(
            {
                "knowledge_base": knowledge_base,
                "open": open_to_reader,
                "sources": list(
                    Source.objects.visible_to(reader)
                    .filter(knowledge_base=knowledge_base, passage_count__gt=0)
                    .select_related("layer")
                    .order_by("layer__name", "title")[:500]
                )
                if open_to_reader
                else [],
            }
        )
    return render(request, "retrieval/knowledge_bases.html", {"rows": rows})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_variables("token")
def tokens_page(request: HttpRequest) -> HttpResponse:
    """Show one's own API tokens, and make a new one, shown once."""
    reader = reader_of(request)
    assert isinstance(request.user, User)
    form = NewTokenForm(reader, request.POST or None)
    token = ""
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data["knowledge_bases"]
        _row, token = create_token(
            owner=request.user,
            name=form.cleaned_data["name"],
            knowledge_bases=chosen if chosen else None,
            lifetime=form.lifetime,
            actor=request.user,
        )
        form = NewTokenForm(reader)
    response = render(
        request,
        "retrieval/tokens.html",
        {
            "form": form,
            "token": token,
            "tokens": ApiToken.objects.filter(owner=request.user).prefetch_related(
                "knowledge_bases"
            ),
        },
    )
    response["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def revoke_token_view(request: HttpRequest, token_id: int) -> HttpResponse:
    """End one of one's own tokens now."""
    assert isinstance(request.user, User)
    row = get_object_or_404(ApiToken, pk=token_id, owner=request.user)
    revoke_token(row, actor=request.user)
    messages.success(request, _("Revoked. It opens nothing from now on."))
    return redirect("portal:tokens")
