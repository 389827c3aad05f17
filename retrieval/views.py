"""The portal's pages for readers: search, what there is, and one's own tokens."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import models
from django.db.models.functions import RowNumber
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from knowledge.codes import code_keys, find_codes, normalise_code
from knowledge.language import language_of
from knowledge.memory import forget
from knowledge.models import (
    AgentClient,
    ApiToken,
    KnowledgeBase,
    Layer,
    Source,
    Statement,
    User,
)
from knowledge.models.knowledge_base import Language
from knowledge.permissions import Reader
from knowledge.terms import content_words, read_query
from knowledge.tokens import create_token, revoke_token
from retrieval.dataflow import DECIDING, flows
from retrieval.forms import NewTokenForm
from retrieval.highlighting import Piece, mark_words
from retrieval.results import Branch, Citation, Hit, Match, Occasion, SearchResult
from retrieval.search import MOST_RESULTS, SearchInputError, search

RESULTS = 10
# Of a larger knowledge base the newest are listed; the rest is found by searching.
MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit as the page shows it: its words marked, and why it was found.

    `language` is the code of its text's language, "" where that is not known.
    """

    hit: Hit
    knowledge_base: str
    pieces: Sequence[Piece]
    path: Sequence[str]
    reasons: Sequence[str]
    language: str


def reader_of(request: HttpRequest) -> Reader:
    """Return whoever the request runs for."""
    reader: Reader = request.reader  # type: ignore[attr-defined]
    return reader


def person_of(request: HttpRequest) -> User:
    """Return the person who is signed in; the caller has made sure of that."""
    return cast(User, request.user)


@login_required
@require_safe
@never_cache
def search_page(request: HttpRequest) -> HttpResponse:
    """Search by meaning, words and codes; the first page of the portal."""
    reader = reader_of(request)
    query = request.GET.get("q", "").strip()
    chosen = request.GET.getlist("layer")
    top_k = MOST_RESULTS if "more" in request.GET else RESULTS
    layers = layers_to_search(reader)
    result, error = None, ""
    if query:
        try:
            result = search(
                reader,
                query,
                layers=chosen or None,
                top_k=top_k,
                occasion=Occasion("portal"),
            )
        except SearchInputError as refused:
            error = refused.message
    hits = shown_hits(result, layers)
    return render(
        request,
        "retrieval/search.html",
        {
            "query": query,
            "chips": layer_chips(layers, chosen),
            "result": result,
            "hits": hits,
            "more": more_address(request) if len(hits) == RESULTS else "",
            "ask": ask_address(query, chosen),
            "meant": other_query(request, result.did_you_mean) if result else "",
            "warning": result.confidence.warning
            if hits and result is not None and result.confidence is not None
            else "",
            "summary": summary_of(result),
            "rated_id": rated_id(reader, result),
            "error": error,
        },
        status=400 if error else 200,
    )


def rated_id(reader: Reader, result: SearchResult | None) -> str:
    """Return the id by which a search is rated; "" where nothing is.

    Who sees the portal as another person rates nothing.
    """
    if result is None or reader.acting_user_id is not None:
        return ""
    return result.interaction_id


def more_address(request: HttpRequest) -> str:
    """Return the address of the same search with as many results as there can be."""
    asked = request.GET.copy()
    asked["more"] = "1"
    return f"?{asked.urlencode()}"


def ask_address(query: str, chosen: Sequence[str]) -> str:
    """Return the address that asks the documents the same, in the same layers."""
    asked = urlencode({"q": query, "layer": list(chosen)}, doseq=True)
    return f"{reverse('portal:ask')}?{asked}"


def other_query(request: HttpRequest, query: str) -> str:
    """Return the address of another query with the same choices."""
    asked = request.GET.copy()
    asked["q"] = query
    return f"?{asked.urlencode()}"


def layers_to_search(reader: Reader) -> list[Layer]:
    """Return the layers that hold something to find, with `found` sources each."""
    return list(
        Layer.objects.visible_to(reader)
        .select_related("knowledge_base")
        .annotate(
            found=models.Count(
                "sources",
                filter=models.Q(
                    sources__in=Source.objects.visible_to(reader),
                    sources__passage_count__gt=0,
                ),
            )
        )
        .filter(found__gt=0)
        .order_by("knowledge_base__name", "name")
    )


def layer_chips(layers: Sequence[Layer], chosen: Sequence[str]) -> list[dict[str, Any]]:
    """Return the layers as the page offers them."""
    inside = Counter(layer.knowledge_base_id for layer in layers)
    return [
        {
            "value": str(layer),
            # A knowledge base with one layer is all that a reader needs to know of it.
            "label": layer.knowledge_base.name
            if inside[layer.knowledge_base_id] == 1
            else f"{layer.knowledge_base.name} / {layer.name}",
            "count": layer.found,  # type: ignore[attr-defined]
            "chosen": str(layer) in chosen,
        }
        for layer in layers
    ]


def shown_hits(result: SearchResult | None, layers: Sequence[Layer]) -> list[ShownHit]:
    """Return the hits with the searched words marked and the reasons in words."""
    if result is None:
        return []
    codes = find_codes(result.query)
    wanted = [*content_words(result.query, list(Language.values)), *codes]
    stems = [stem for word in read_query(result.query).words for stem in word.stems]
    by_name = {str(layer): layer for layer in layers}
    shown = []
    for hit in result.hits:
        citation = hit.citation
        layer = by_name.get(f"{citation.knowledge_base}/{citation.layer}")
        shown.append(
            ShownHit(
                hit=hit,
                knowledge_base=layer.knowledge_base.name
                if layer is not None
                else citation.knowledge_base,
                pieces=list(mark_words(hit.text, wanted, stems=stems)),
                path=path_of(citation),
                reasons=reasons_of(hit, codes),
                language=language_of(
                    hit.text, layer.languages if layer is not None else Language.values
                ),
            )
        )
    return shown


def path_of(citation: Citation) -> list[str]:
    """Return the headings above a passage, without the document's title again."""
    return path_below(citation.title, citation.clause_path)


def path_below(title: str, clause_path: str) -> list[str]:
    """Return the headings of a path, without the document's title again."""
    path = [part for part in clause_path.split(" > ") if part]
    return path[1:] if path[:1] == [title] else path


def reasons_of(hit: Hit, codes: Sequence[str]) -> list[str]:
    """Return, branch by branch, why a hit was found. `codes` are the query's."""
    found = []
    if hit.match is Match.EXACT:
        found.append(_("the section that you named"))
    meaning = hit.branches.get(Branch.MEANING)
    if meaning is not None:
        found.append(_("meaning (no. %(rank)s)") % {"rank": meaning.rank})
    keywords = hit.branches.get(Branch.KEYWORDS)
    if keywords is not None:
        if keywords.without_accents:
            sentence = _("words with other accents (no. %(rank)s)")
        elif keywords.relaxed:
            sentence = _("some of the words (no. %(rank)s)")
        else:
            sentence = _("words (no. %(rank)s)")
        found.append(sentence % {"rank": keywords.rank})
    if Branch.CODES in hit.branches:
        here = set(code_keys(hit.text))
        named = [code for code in codes if normalise_code(code) in here]
        # A code may stand in the title or the clause alone.
        found.append(
            _("code %(codes)s") % {"codes": ", ".join(dict.fromkeys(named or codes))}
        )
    return found


def summary_of(result: SearchResult | None) -> str:
    """Say how much was found, in one sentence."""
    if result is None or not result.hits:
        return ""
    documents = len({hit.citation.revision for hit in result.hits})
    passages = ngettext("%(count)s passage", "%(count)s passages", len(result.hits)) % {
        "count": len(result.hits)
    }
    return ngettext(
        "%(passages)s in one document.",
        "%(passages)s in %(documents)s documents.",
        documents,
    ) % {"passages": passages, "documents": documents}


@login_required
@require_safe
@never_cache
def data_flow_page(request: HttpRequest) -> HttpResponse:
    """Show what leaves the machine as the portal is set now (S1-PRV-03)."""
    found = flows({name: getattr(settings, name) for name in DECIDING})
    return render(
        request,
        "retrieval/data_flow.html",
        {
            "flows": found,
            "leaving": [flow.name for flow in found if flow.leaves],
            "local_only": settings.STRATA_LOCAL_ONLY,
        },
    )


@login_required
@require_safe
@never_cache
def knowledge_bases_page(request: HttpRequest) -> HttpResponse:
    """Show the knowledge bases that the reader may know of, and what is in them."""
    reader = reader_of(request)
    inside = newest_sources(reader)
    rows = [
        {
            "knowledge_base": knowledge_base,
            "open": knowledge_base.pk in reader.searchable,
            "count": found[0].in_all if found else 0,  # type: ignore[attr-defined]
            "sources": found,
        }
        for knowledge_base in KnowledgeBase.objects.listed_to(reader)
        for found in [inside.get(knowledge_base.pk, [])]
    ]
    return render(request, "retrieval/knowledge_bases.html", {"rows": rows})


def newest_sources(reader: Reader) -> dict[int, list[Source]]:
    """Return the newest sources of each knowledge base, by layer and title.

    Each carries as `in_all` how many there are in its knowledge base.
    """
    each = models.F("knowledge_base_id")
    sources = (
        Source.objects.visible_to(reader)
        .filter(passage_count__gt=0)
        .annotate(
            place=models.Window(
                RowNumber(), partition_by=[each], order_by=["-created_at", "-pk"]
            ),
            in_all=models.Window(models.Count("pk"), partition_by=[each]),
        )
        .filter(place__lte=MOST_LISTED)
        .select_related("layer")
    )
    found: dict[int, list[Source]] = {}
    for source in sorted(
        sources, key=lambda source: (source.layer.name, source.title.casefold())
    ):
        found.setdefault(source.knowledge_base_id, []).append(source)
    return found


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_variables("token")
def tokens_page(request: HttpRequest) -> HttpResponse:
    """Show one's own API tokens, and make a new one, shown once."""
    reader = reader_of(request)
    owner = person_of(request)
    form = NewTokenForm(reader, request.POST or None)
    token = ""
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data["knowledge_bases"]
        _row, token = create_token(
            owner=owner,
            name=form.cleaned_data["name"],
            knowledge_bases=chosen or None,
            lifetime=form.lifetime,
            actor=owner,
        )
        form = NewTokenForm(reader)
    # Of a scope, what its owner may not search any more is not named.
    within_sight = models.Prefetch(
        "knowledge_bases", KnowledgeBase.objects.visible_to(reader)
    )
    return render(
        request,
        "retrieval/tokens.html",
        {
            "form": form,
            "token": token,
            "tokens": ApiToken.objects.filter(
                owner=owner, client=None
            ).prefetch_related(within_sight),
            "agent_clients": AgentClient.objects.filter(owner=owner).prefetch_related(
                "tokens", within_sight
            ),
        },
    )


@login_required
@require_POST
def revoke_token_view(request: HttpRequest, token_id: int) -> HttpResponse:
    """End one of one's own tokens now."""
    owner = person_of(request)
    row = get_object_or_404(ApiToken, pk=token_id, owner=owner)
    revoke_token(row, actor=owner)
    messages.success(request, _("Revoked. It opens nothing from now on."))
    return redirect("portal:tokens")


@login_required
@require_safe
@never_cache
def memory_page(request: HttpRequest) -> HttpResponse:
    """Show all that is remembered about oneself, whichever conversation it is from."""
    statements = (
        Statement.objects.filter(owner=person_of(request))
        .select_related("source", "conversation")
        .order_by("-created_at", "-pk")
    )
    page = Paginator(statements, RESULTS * 5).get_page(request.GET.get("page", ""))
    numbers = page.paginator.get_elided_page_range(page.number)
    return render(
        request,
        "retrieval/memory.html",
        {"page": page, "page_numbers": list(numbers), "now": timezone.now()},
    )


@login_required
@require_POST
def forget_view(request: HttpRequest, statement_id: UUID) -> HttpResponse:
    """Forget one statement about oneself now."""
    if not forget(reader_of(request), statement_id):
        raise Http404(_("Not found."))
    messages.success(request, _("Forgotten. It is recalled nowhere from now on."))
    return redirect("portal:memory")
