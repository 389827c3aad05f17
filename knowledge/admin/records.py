"""What the corpus holds and what was done, to be read and never edited here."""

from typing import Any, TypeVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.models import (
    AuditEntry,
    Document,
    EmbeddingSpace,
    IngestRun,
    Passage,
)
from knowledge.scoping import ScopedAdmin, ScopedRelatedFilter, administered_ids

Row = TypeVar("Row", bound=models.Model)


class RecordAdmin(ScopedAdmin[Row]):
    """Pages of rows that only the product writes."""

    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds a record by hand."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Row | None = None
    ) -> bool:
        """Nobody changes a record."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Row | None = None
    ) -> bool:
        """Nobody deletes a record."""
        return False


@admin.register(Document)
class DocumentAdmin(RecordAdmin[Document]):
    """Revisions: what was extracted, and what was not and why."""

    list_display = ("title", "source", "kind", "is_current", "created_at", "reports")
    list_filter = ("is_current", "kind", ("knowledge_base", ScopedRelatedFilter))
    search_fields = ("title", "source__path")
    list_select_related = ("source",)
    fields = (
        "title",
        "source",
        "kind",
        "is_current",
        "read_it",
        "report_list",
        "date",
        "date_source",
        "supersedes",
        "properties",
        "front_matter",
        "text_sha256",
        "created_at",
        "superseded_at",
    )
    readonly_fields = ("read_it", "report_list")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Document]:
        """Leave the long columns in the database."""
        return super().get_queryset(request).defer("text", "blocks", "pages")

    @admin.display(description=gettext_lazy("not extracted"))
    def reports(self, obj: Document) -> int:
        """How many things could not be extracted."""
        return len(obj.report)

    @admin.display(description=gettext_lazy("text"))
    def read_it(self, obj: Document) -> str:
        """Link to the text as readers see it."""
        url = reverse("portal:source", args=[obj.source.public_id])
        return format_html('<a href="{}">{}</a>', url, _("Read it in the portal"))

    @admin.display(description=gettext_lazy("what was not extracted, and why"))
    def report_list(self, obj: Document) -> str:
        """The extraction report, a sentence each."""
        return "\n".join(obj.report) or _("Everything was extracted.")


@admin.register(Passage)
class PassageAdmin(RecordAdmin[Passage]):
    """Passages, read at random after an import (S2-ING-13)."""

    list_display = ("opening", "source", "clause_path", "page", "cuts")
    list_filter = (
        ("knowledge_base", ScopedRelatedFilter),
        ("layer", ScopedRelatedFilter),
        "text_origin",
    )
    search_fields = ("text", "source__path")
    list_select_related = ("source",)
    list_per_page = 25
    show_full_result_count = False
    change_list_template = "admin/knowledge/passage/change_list.html"
    fields = (
        "source",
        "clause_path",
        "text",
        "context",
        "page",
        "line_start",
        "line_end",
        "cuts",
        "text_origin",
        "metadata",
        "codes",
        "terms",
        "embedded_sha256",
    )
    readonly_fields = ("cuts",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Passage]:
        """Leave the index's own column in the database."""
        return super().get_queryset(request).defer("search_vector")

    @admin.display(description=gettext_lazy("passage"))
    def opening(self, obj: Passage) -> str:
        """How it begins."""
        return Truncator(obj.text).chars(120)

    @admin.display(description=gettext_lazy("cut inside a sentence"))
    def cuts(self, obj: Passage) -> str:
        """Whether it begins or stops inside a sentence."""
        if obj.cut_start and obj.cut_end:
            return _("at both ends")
        if obj.cut_start:
            return _("at its start")
        return _("at its end") if obj.cut_end else "–"

    def get_urls(self) -> list[URLPattern]:
        """Add the random sample."""
        return [
            path(
                "random/",
                self.admin_site.admin_view(self.random_view),
                name="knowledge_passage_random",
            ),
            *super().get_urls(),
        ]

    def random_view(self, request: HttpRequest) -> HttpResponse:
        """Open a passage drawn at random from those in scope."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = self.get_queryset(request)
        source = request.GET.get("source", "")
        if source.isdecimal():
            rows = rows.filter(source_id=int(source))
        key = rows.order_by("?").values_list("pk", flat=True).first()
        if key is None:
            raise Http404(_("There is no passage to draw from yet."))
        return HttpResponseRedirect(
            reverse("admin:knowledge_passage_change", args=[key])
        )


@admin.register(IngestRun)
class IngestRunAdmin(RecordAdmin[IngestRun]):
    """Each time a source was brought in, with what came of it."""

    list_display = (
        "source",
        "state",
        "stage",
        "percent",
        "attempts",
        "passages",
        "embedded",
        "reused",
        "created_at",
        "finished_at",
    )
    list_filter = ("state", "stage")
    search_fields = ("source__title", "source__path", "reason")
    list_select_related = ("source",)
    date_hierarchy = "created_at"


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(RecordAdmin[EmbeddingSpace]):
    """Which model made which vectors."""

    list_display = ("model_id", "dimension", "state", "created_at")


@admin.register(AuditEntry)
class AuditEntryAdmin(RecordAdmin[AuditEntry]):
    """Who did what."""

    list_display = ("at", "actor_label", "verb", "target_type", "target_label")
    list_filter = ("verb", "target_type")
    search_fields = ("actor_label", "target_label")
    date_hierarchy = "at"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[AuditEntry]:
        """Entries about knowledge bases in scope; all of them for a superuser."""
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        return rows.filter(knowledge_base_id__in=administered_ids(request))

    def has_view_permission(
        self, request: HttpRequest, obj: AuditEntry | None = None
    ) -> bool:
        """Return whether the role may read the record, and the entry is in scope."""
        if not super().has_view_permission(request, obj):
            return False
        return obj is None or self.get_queryset(request).filter(pk=obj.pk).exists()

    def has_module_permission(self, request: HttpRequest) -> Any:
        """Show the section to whoever may read it."""
        return self.has_view_permission(request)
