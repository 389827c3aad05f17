"""What the corpus holds and what was done, to be read and never edited here."""

from typing import Any, TypeVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.admin.parts import Reading, is_key, reading_of
from knowledge.models import (
    AuditEntry,
    Document,
    EmbeddingSpace,
    IngestRun,
    Passage,
)
from knowledge.scoping import (
    LayerFilter,
    ScopedAdmin,
    ScopedRelatedFilter,
    audit_within_scope,
)

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
    readonly_fields = ("report_list",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Document]:
        """Leave the long columns in the database."""
        return super().get_queryset(request).defer("text", "blocks", "pages")

    @admin.display(description=gettext_lazy("not extracted"))
    def reports(self, obj: Document) -> int:
        """How many things could not be extracted."""
        return len(obj.report)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Say where it is read."""
        document = self.get_object(request, object_id)
        context = dict(extra_context or {})
        if document is not None and document.is_current:
            context["reading"] = reading_of(request, document.source)
        return super().change_view(request, object_id, form_url, context)

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
        ("layer", LayerFilter),
        "text_origin",
    )
    search_fields = ("text", "source__path")
    list_select_related = ("source",)
    list_per_page = 25
    change_list_template = "admin/knowledge/passage/change_list.html"
    change_form_template = "admin/knowledge/passage/change_form.html"
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
        if is_key(source):
            rows = rows.filter(source_id=int(source))
        key = rows.order_by("?").values_list("pk", flat=True).first()
        if key is None:
            self.message_user(
                request, _("There is no passage to draw from yet."), messages.WARNING
            )
            return HttpResponseRedirect(reverse("admin:knowledge_passage_changelist"))
        return HttpResponseRedirect(
            reverse("admin:knowledge_passage_change", args=[key])
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Say where it is read."""
        passage = self.get_object(request, object_id)
        context = dict(extra_context or {})
        if passage is not None:
            reading = reading_of(request, passage.source)
            if reading.url:
                ref = passage.document.ref(passage.start, passage.end)
                reading = Reading(f"{reverse('portal:read', args=[ref])}#cited", "")
            context["reading"] = reading
            context["heading"] = _("Passage %(number)s of %(source)s") % {
                "number": passage.ordinal + 1,
                "source": passage.source,
            }
        return super().change_view(request, object_id, form_url, context)


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
    fields = (
        "source",
        "state",
        "stage",
        "percent",
        "reason",
        "attempts",
        "passages",
        "embedded",
        "reused",
        "requested_by",
        "created_at",
        "started_at",
        "finished_at",
        "due_at",
        "worker",
    )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Name the run by its source."""
        run = self.get_object(request, object_id)
        context = dict(extra_context or {})
        if run is not None:
            context["heading"] = _("Ingest run of %(source)s") % {"source": run.source}
        return super().change_view(request, object_id, form_url, context)


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(RecordAdmin[EmbeddingSpace]):
    """Which model made which vectors."""

    list_display = ("model_id", "dimension", "state", "created_at")


@admin.register(AuditEntry)
class AuditEntryAdmin(RecordAdmin[AuditEntry]):
    """Who did what."""

    list_display = ("at", "actor_label", "verb", "target_type", "target_label")
    fields = ("at", "actor_label", "verb", "target_type", "target_label", "details")
    readonly_fields = ("details",)
    list_filter = ("verb", "target_type")
    search_fields = ("actor_label", "target_label")
    date_hierarchy = "at"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[AuditEntry]:
        """Entries about knowledge bases in scope; all of them for a superuser."""
        rows = audit_within_scope(request)
        if request.user.is_superuser:
            return rows
        return rows.filter(knowledge_base_id__isnull=False)

    @admin.display(description=gettext_lazy("detail"))
    def details(self, obj: AuditEntry) -> str:
        """What else was recorded, a line each."""
        return "\n".join(f"{name}: {value}" for name, value in obj.detail.items())
