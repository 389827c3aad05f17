"""The log of searches: read, explained, run again, drawn and exported."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from knowledge.admin.records import RecordAdmin
from knowledge.models import KnowledgeBase, Layer
from knowledge.models.audit import record
from knowledge.permissions import Reader
from knowledge.scoping import actor_of
from retrieval.charts import charts
from retrieval.export import COLUMNS, FORMATS, as_csv, as_jsonl, records, streamed
from retrieval.hidden import count_hidden
from retrieval.models import SearchLog
from retrieval.models.log import Status
from retrieval.replay import logged, moves, replay
from retrieval.search import MOST_RESULTS
from retrieval.tuning import (
    CHOICES,
    NUMBERS,
    Tuning,
    contradictions,
    current,
    values_of,
    with_values,
)
from retrieval.why import causes_of, expected

# What a replay may change, of all settings.
CHANGEABLE: Final = (
    "search_type",
    "fusion",
    "weight_meaning",
    "weight_keywords",
    "weight_codes",
    "weight_relaxed",
    "rrf_k",
    "keyword_slots",
    "candidates",
    "similarity_floor",
    "reranking",
    "rerank_depth",
)
LABELS: Final = {
    "search_type": gettext_lazy("Type of search"),
    "fusion": gettext_lazy("Fusion"),
    "weight_meaning": gettext_lazy("Weight of meaning"),
    "weight_keywords": gettext_lazy("Weight of words"),
    "weight_codes": gettext_lazy("Weight of codes"),
    "weight_relaxed": gettext_lazy("Weight of a part of the words"),
    "rrf_k": gettext_lazy("k of the fusion"),
    "keyword_slots": gettext_lazy("Places for words"),
    "candidates": gettext_lazy("Candidates of a branch"),
    "similarity_floor": gettext_lazy("Least similarity (-1: none)"),
    "reranking": gettext_lazy("Reranker"),
    "rerank_depth": gettext_lazy("Passages reranked"),
}
WEEKS: Final = (13, 26, 52)
# How an outcome is drawn, by the states of the style sheet.
STATES: Final = {
    Status.FOUND: "found",
    Status.PARTLY_FOUND: "partly",
    Status.NOT_FOUND: "not-found",
}


class ReplayForm(forms.Form):
    """The settings under which a search is run again."""

    count = forms.IntegerField(
        label=gettext_lazy("Passages"), min_value=1, max_value=MOST_RESULTS
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Add a field for each setting, within its bounds."""
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        for name in CHANGEABLE:
            self.fields[name] = field_of(name)

    def clean(self) -> dict[str, Any]:
        """Refuse settings that cannot hold together."""
        data: dict[str, Any] = super().clean() or {}
        if not self.errors:
            for sentence in contradictions(self.tuning(data)):
                self.add_error(None, sentence)
        return data

    def tuning(self, data: Mapping[str, Any]) -> Tuning:
        """Return the settings of now with those of the form."""
        changed = {name: data[name] for name in CHANGEABLE}
        count = min(data["count"], NUMBERS["search_count"].most)
        return replace(with_values(current(), changed), search_count=int(count))


def field_of(name: str) -> forms.Field:
    """Return the form field of one setting."""
    label = LABELS[name]
    if name in CHOICES:
        return forms.ChoiceField(
            label=label, choices=[(str(each), str(each)) for each in CHOICES[name]]
        )
    if name == "reranking":
        return forms.BooleanField(label=label, required=False)
    bounds = NUMBERS[name]
    if bounds.is_whole:
        return forms.IntegerField(
            label=label, min_value=int(bounds.least), max_value=int(bounds.most)
        )
    return forms.FloatField(
        label=label,
        min_value=bounds.least,
        max_value=bounds.most,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


@admin.register(SearchLog)
class SearchLogAdmin(RecordAdmin[SearchLog]):
    """Searches, for who has the right to read the log; it shows them no more text."""

    list_display = ("at", "question", "asker", "door", "outcome", "returned", "time")
    list_display_links = ("question",)
    list_filter = ("status", "door", "by_agent")
    search_fields = ("query", "person__username")
    list_select_related = ("person", "acting", "token__client")
    list_per_page = 50
    date_hierarchy = "at"
    change_list_template = "admin/retrieval/searchlog/change_list.html"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[SearchLog]:
        """Leave the long columns in the database."""
        return super().get_queryset(request).defer("rankings", "fused", "reranked")

    @admin.display(description=gettext_lazy("question"), ordering="query")
    def question(self, obj: SearchLog) -> str:
        """What was asked."""
        return Truncator(obj.query).chars(90)

    @admin.display(description=gettext_lazy("who"), ordering="person__username")
    def asker(self, obj: SearchLog) -> str:
        """Who asked."""
        return asker_of(obj)

    @admin.display(description=gettext_lazy("outcome"), ordering="status")
    def outcome(self, obj: SearchLog) -> str:
        """What it came to, as word and shape."""
        status = Status(obj.status)
        return format_html(
            '<span class="state state-plain" data-state="{}">{}</span>',
            STATES[status],
            status.label.capitalize(),
        )

    @admin.display(description=gettext_lazy("ms"), ordering="total_ms")
    def time(self, obj: SearchLog) -> int:
        """How long it took."""
        return round(obj.total_ms)

    def get_urls(self) -> list[URLPattern]:
        """Add the charts, the export and what one search's page offers."""
        view = self.admin_site.admin_view
        return [
            path("charts/", view(self.charts_view), name="retrieval_searchlog_charts"),
            path("export/", view(self.export_view), name="retrieval_searchlog_export"),
            path(
                "<int:log_id>/replay/",
                view(self.replay_view),
                name="retrieval_searchlog_replay",
            ),
            path(
                "<int:log_id>/hidden/",
                view(self.hidden_view),
                name="retrieval_searchlog_hidden",
            ),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Offer the export to who may take the log away."""
        context = {"may_export": self.may_export(request), **(extra_context or {})}
        return super().changelist_view(request, context)

    def may_export(self, request: HttpRequest) -> bool:
        """Return whether the person may export the log."""
        return self.has_view_permission(request) and request.user.has_perm(
            "retrieval.export_searchlog"
        )

    # --- One search -----------------------------------------------------------

    def logged_row(self, request: HttpRequest, key: object) -> SearchLog:
        """Return one row, whole; raises PermissionDenied and Http404."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, str(key))
        if row is None:
            raise Http404(_("Not found."))
        return row

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one search: what came back, and the four causes, checked."""
        row = self.logged_row(request, object_id)
        viewer = Reader.for_user(actor_of(request))
        seen = logged(row, viewer)
        asked = request.GET.get("expected", "").strip()
        return TemplateResponse(
            request,
            "admin/retrieval/searchlog/search.html",
            {
                **self.admin_site.each_context(request),
                "title": row.query,
                "opts": self.opts,
                "original": row,
                "seen": seen,
                "asker": asker_of(row),
                "outcome": Status(row.status).label,
                "state": STATES[Status(row.status)],
                "knowledge_bases": bases_of(request, row),
                "layers": layers_of(request, row),
                "stages": stages_of(row),
                "causes": causes_of(seen, viewer),
                "asked_ref": asked,
                "expected": expected(seen, asked, viewer) if asked else None,
                **(extra_context or {}),
            },
        )

    def replay_view(self, request: HttpRequest, log_id: int) -> HttpResponse:
        """Run it again under other settings, beside what it was; nothing is kept."""
        row = self.logged_row(request, log_id)
        viewer = Reader.for_user(actor_of(request))
        seen = logged(row, viewer)
        held = {**values_of(current()), "count": row.count or 1}
        form = ReplayForm(request.GET or None, initial=held)
        tuning, count = current(), row.count or 1
        if request.GET and form.is_valid():
            tuning, count = form.tuning(form.cleaned_data), form.cleaned_data["count"]
        again = None
        if not form.errors:
            again = replay(row, viewer, tuning, count=min(count, MOST_RESULTS))
        changed = [
            LABELS[name]
            for name, value in values_of(tuning).items()
            if name in LABELS and value != held[name]
        ]
        risen = moves(seen.hits, again.hits) if again is not None else {}
        return TemplateResponse(
            request,
            "admin/retrieval/searchlog/replay.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Run again: %(query)s") % {"query": row.query},
                "opts": self.opts,
                "original": row,
                "seen": seen,
                "form": form,
                "again": again,
                "changed": changed,
                "before": [(each, each.ref in risen) for each in seen.hits],
                "after": [
                    (each, each.ref in new_refs(risen), risen.get(each.ref))
                    for each in (again.hits if again is not None else ())
                ],
            },
        )

    def hidden_view(self, request: HttpRequest, log_id: int) -> HttpResponse:
        """Count the rows that visibility removed, once."""
        row = self.logged_row(request, log_id)
        if request.method != "POST":
            raise Http404(_("Not found."))
        if row.hidden_rows is None:
            count = count_hidden(row)
            with transaction.atomic():
                SearchLog.objects.filter(pk=row.pk).update(hidden_rows=count)
                record(actor_of(request), "counted hidden rows", row)
        return HttpResponseRedirect(
            reverse("admin:retrieval_searchlog_change", args=[row.pk])
        )

    # --- All of them ------------------------------------------------------------

    def charts_view(self, request: HttpRequest) -> HttpResponse:
        """Draw searches, latency and outcomes, by week and layer."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        named = request.GET.get("weeks", "")
        weeks = int(named) if named in map(str, WEEKS) else WEEKS[1]
        return TemplateResponse(
            request,
            "admin/retrieval/searchlog/charts.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Searches over time"),
                "opts": self.opts,
                "charts": charts(weeks, actor_of(request)),
                "weeks": weeks,
                "choices": WEEKS,
                "outcomes": Status.choices,
            },
        )

    def export_view(self, request: HttpRequest) -> StreamingHttpResponse:
        """Send the log as the list's filters leave it; audited."""
        if not self.may_export(request):
            raise PermissionDenied
        kind = request.POST.get("format", "")
        if request.method != "POST" or kind not in FORMATS:
            raise Http404(_("Not found."))
        actor = actor_of(request)
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters as error:
            raise Http404(_("Not found.")) from error
        record(
            actor,
            "exported the search log",
            actor,
            format=kind,
            rows=rows.count(),
            filters=request.GET.urlencode(),
        )
        plain = records(
            SearchLog.objects.filter(pk__in=rows.order_by().values("pk")), actor
        )
        parts = as_csv(plain, COLUMNS) if kind == "csv" else as_jsonl(plain)
        return streamed(
            request,
            parts,
            content_type=FORMATS[kind],
            name=f"searches.{kind}",
        )


def new_refs(risen: Mapping[str, int | None]) -> set[str]:
    """Return the refs of the hits that were not there before."""
    return {ref for ref, places in risen.items() if places is None}


def asker_of(row: SearchLog) -> str:
    """Name who asked."""
    name = str(row.person) if row.person is not None else _("somebody who is gone")
    if row.acting is not None:
        name = _("%(staff)s as %(name)s") % {"staff": row.acting, "name": name}
    if not row.by_agent:
        return name
    client = row.token.client if row.token is not None else None
    if client is None:
        return _("%(name)s, by an agent") % {"name": name}
    return _("%(name)s, by %(client)s") % {"name": name, "client": client.name}


def bases_of(request: HttpRequest, row: SearchLog) -> list[str]:
    """Name the knowledge bases of a search; those out of scope are only counted."""
    known = KnowledgeBase.objects.administered_by(actor_of(request)).filter(
        pk__in=row.knowledge_bases
    )
    names = sorted(str(each) for each in known)
    return with_others(names, len(row.knowledge_bases) - len(names))


def layers_of(request: HttpRequest, row: SearchLog) -> list[str] | None:
    """Name the layers that a search was about; None where it was about all."""
    if row.layers is None:
        return None
    known = Layer.objects.administered_by(actor_of(request)).filter(pk__in=row.layers)
    names = sorted(str(each) for each in known.select_related("knowledge_base"))
    others = len(row.layers) - len(names)
    if others > 0:
        names.append(
            ngettext(
                "a layer of another knowledge base",
                "%(count)s layers of other knowledge bases",
                others,
            )
            % {"count": others}
        )
    return names


def with_others(names: list[str], others: int) -> list[str]:
    """Return names, and how many there are beside them."""
    if others <= 0:
        return names
    rest = ngettext(
        "another knowledge base", "%(count)s other knowledge bases", others
    ) % {"count": others}
    return [*names, rest]


def stages_of(row: SearchLog) -> list[tuple[str, float]]:
    """Return each stage with its milliseconds, the longest first."""
    stages = [(name, ms) for name, ms in row.stage_ms.items() if name != "total"]
    return sorted(stages, key=lambda stage: -stage[1])
