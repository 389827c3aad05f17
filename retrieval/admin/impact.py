"""What quotes a changed source: looked at before, and kept as it went live."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.actions import ActionError
from knowledge.admin.records import RecordAdmin
from knowledge.admin.sources import uploads_of
from knowledge.dependents import warnings
from knowledge.models import Source
from knowledge.scoping import ScopedRelatedFilter, actor_of, within_scope
from retrieval.impact import go_ahead, impact_of, look_before
from retrieval.impact_pages import (
    affected_by,
    page_context,
    removal_warning,
    rows_of_impact,
    rows_of_report,
)
from retrieval.models import ImpactReport
from retrieval.models.impact import Act, Moment


@admin.register(ImpactReport)
class ImpactReportAdmin(RecordAdmin[ImpactReport]):
    """The reports, and the two pages before: for a new file, and for a removal."""

    list_display = (
        "title_or_erased",
        "act",
        "moment",
        "affected",
        "made_at",
        "made_by",
    )
    list_display_links = ("title_or_erased",)
    list_filter = ("act", "moment", ("knowledge_base", ScopedRelatedFilter))
    search_fields = ("title", "path")
    list_select_related = ("made_by",)
    date_hierarchy = "made_at"
    list_per_page = 50

    @admin.display(description=gettext_lazy("source"), ordering="title")
    def title_or_erased(self, obj: ImpactReport) -> str:
        """The source's title as it was."""
        return str(obj)

    @admin.display(description=gettext_lazy("quotes that change or vanish"))
    def affected(self, obj: ImpactReport) -> int:
        """How many things quote words that change or vanish."""
        return affected_by(obj.figures)

    def get_urls(self) -> list[URLPattern]:
        """Add the pages that are looked at before."""
        view = self.admin_site.admin_view
        return [
            path(
                "look/<int:source_id>/",
                view(self.look_view),
                name="retrieval_impactreport_look",
            ),
            path(
                "removal/<int:source_id>/",
                view(self.removal_view),
                name="retrieval_impactreport_removal",
            ),
            path(
                "<int:report_id>/go-ahead/",
                view(self.go_ahead_view),
                name="retrieval_impactreport_go_ahead",
            ),
            *super().get_urls(),
        ]

    def source_for(self, request: HttpRequest, source_id: int) -> Source:
        """Return a source in the person's scope, or raise Http404."""
        sources = within_scope(request, Source.objects.select_related("knowledge_base"))
        source = sources.filter(pk=source_id).first()
        if source is None:
            raise Http404(_("Not found."))
        return source

    def look_view(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Read the posted file, and go to the report of what it would change."""
        if request.method != "POST":
            raise Http404(_("Not found."))
        source = self.source_for(request, source_id)
        if not request.user.has_perm("knowledge.change_source"):
            raise PermissionDenied
        uploads = uploads_of(request)
        if not uploads:
            sentence = _("Choose the file that takes its place.")
            self.message_user(request, sentence, messages.ERROR)
            return self.to_source(source)
        try:
            report = look_before(source, uploads[0], actor=actor_of(request))
        except ActionError as error:
            self.message_user(request, str(error), messages.ERROR)
            return self.to_source(source)
        url = reverse("admin:retrieval_impactreport_change", args=[report.pk])
        return HttpResponseRedirect(url)

    def to_source(self, source: Source) -> HttpResponse:
        """Return the way back to a source's page."""
        url = reverse("admin:knowledge_source_change", args=[source.pk])
        return HttpResponseRedirect(url)

    def removal_view(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Show what quotes a source, all of which would vanish with it."""
        source = self.source_for(request, source_id)
        if not self.has_view_permission(request):
            raise PermissionDenied
        impact = impact_of(source, None)
        rows = rows_of_impact(impact)
        context = page_context(
            request,
            impact.figures,
            rows,
            knowledge_base_id=source.knowledge_base_id,
            is_live=False,
        )
        return TemplateResponse(
            request,
            "admin/retrieval/impactreport/removal.html",
            {
                **self.admin_site.each_context(request),
                "title": _("What quotes %(title)s") % {"title": source},
                "opts": self.opts,
                "source": source,
                "may_delete": request.user.has_perm("knowledge.delete_source"),
                **context,
            },
        )

    def go_ahead_view(self, request: HttpRequest, report_id: int) -> HttpResponse:
        """Put the file that was looked at in its source's place."""
        report = self.get_queryset(request).filter(pk=report_id).first()
        if report is None or request.method != "POST":
            raise Http404(_("Not found."))
        if not request.user.has_perm("knowledge.change_source"):
            raise PermissionDenied
        try:
            source = go_ahead(report, actor=actor_of(request))
        except ActionError as error:
            self.message_user(request, str(error), messages.ERROR)
            url = reverse("admin:retrieval_impactreport_change", args=[report.pk])
            return HttpResponseRedirect(url)
        self.message_user(
            request,
            _("The new file is queued. The old text is searched until it is ready."),
        )
        return self.to_source(source)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one report."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        report = self.get_object(request, object_id)
        if report is None:
            raise Http404(_("Not found."))
        is_live = report.moment == Moment.AFTER
        rows = rows_of_report(report)
        context = page_context(
            request,
            report.figures,
            rows,
            knowledge_base_id=report.knowledge_base_id,
            is_live=is_live,
        )
        is_waiting = (
            not is_live and report.generation is None and report.source_id is not None
        )
        return TemplateResponse(
            request,
            "admin/retrieval/impactreport/report.html",
            {
                **self.admin_site.each_context(request),
                "title": str(report),
                "opts": self.opts,
                "original": report,
                "is_removal": report.act == Act.REMOVAL,
                "is_waiting": is_waiting,
                "may_replace": request.user.has_perm("knowledge.change_source"),
                "later": ImpactReport.objects.filter(earlier=report).first(),
                **context,
                **(extra_context or {}),
            },
        )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ImpactReport]:
        """Read along what the pages name."""
        rows = super().get_queryset(request)
        return rows.select_related("source", "earlier", "original", "knowledge_base")


# The pages that delete a source are below this app, and know nothing of quotes.
warnings.append(removal_warning)
