"""Sources: uploading, watching, replacing, switching, indexing again, deleting."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from knowledge.actions import (
    ActionError,
    Upload,
    delete_source,
    move_source,
    reindex_source,
    replace_source,
    switch_source,
    upload_source,
)
from knowledge.forms import SourceForm, UploadForm
from knowledge.models import IngestRun, Layer, Source
from knowledge.models.audit import record
from knowledge.models.ingest import RunState
from knowledge.models.source import SourceState
from knowledge.scoping import ScopedAdmin, ScopedRelatedFilter, actor_of, within_scope

WORKING = {SourceState.PENDING, SourceState.PROCESSING, SourceState.REPROCESSING}
MOST_ROWS = 200


def uploads_of(request: HttpRequest) -> list[Upload]:
    """Return the posted files as uploads.

    A file that comes alone brings its own path and time (D31), which a browser tells
    only to a script; several at once have just their names.
    """
    posted = request.FILES.getlist("file")
    if len(posted) != 1:
        return [Upload(file=file.file, name=file.name or "") for file in posted]
    modified = request.POST.get("modified", "")
    when = None
    if modified.isdecimal() and len(modified) <= 14:
        when = datetime.fromtimestamp(int(modified) / 1000, tz=UTC)
    name = request.POST.get("path", "") or posted[0].name or ""
    return [Upload(file=posted[0].file, name=name, modified_at=when)]


@admin.register(Source)
class SourceAdmin(ScopedAdmin[Source]):
    """Sources with what became of them."""

    form = SourceForm
    list_display = (
        "title_and_path",
        "state_now",
        "layer",
        "passage_count",
        "on_or_off",
        "indexed_at",
    )
    list_display_links = ("title_and_path",)
    list_filter = (
        "state",
        "enabled",
        ("knowledge_base", ScopedRelatedFilter),
        ("layer", ScopedRelatedFilter),
        "purpose",
    )
    search_fields = ("title", "path")
    list_select_related = ("layer__knowledge_base",)
    list_per_page = 50
    date_hierarchy = "created_at"
    actions = ("reindex", "switch_on", "switch_off")
    change_list_template = "admin/knowledge/source/change_list.html"
    change_form_template = "admin/knowledge/source/change_form.html"

    @admin.display(description=gettext_lazy("source"), ordering="title")
    def title_and_path(self, obj: Source) -> str:
        """Title over path."""
        return format_html(
            '<span class="source-title">{}</span> <span class="source-path">{}</span>',
            obj.title,
            obj.path,
        )

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def state_now(self, obj: Source) -> str:
        """State with stage and percentage, kept up to date while it moves."""
        if obj.state not in WORKING:
            return format_html(
                '<span class="state" data-state="{}">{}</span> '
                '<span class="state-reason">{}</span>',
                obj.state,
                capfirst(obj.get_state_display()),
                obj.state_reason,
            )
        return format_html(
            '<span class="progress-row" data-progress-url="{}" data-progress-id="{}">'
            '<span class="state" data-progress="state" data-state="{}">{}</span> '
            '<span data-progress="stage"></span> '
            '<progress data-progress="bar" max="100"></progress> '
            '<span data-progress="percent"></span> '
            '<span data-progress="message">{}</span></span>',
            reverse("admin:knowledge_source_progress"),
            str(obj.pk),
            obj.state,
            capfirst(obj.get_state_display()),
            obj.state_reason,
        )

    @admin.display(description=gettext_lazy("on"), boolean=True, ordering="enabled")
    def on_or_off(self, obj: Source) -> bool:
        """Whether searches find it."""
        return obj.enabled

    def get_urls(self) -> list[URLPattern]:
        """Add upload, progress and the verbs of the source's own page."""
        view = self.admin_site.admin_view
        return [
            path("progress/", view(self.progress_view), name="knowledge_source_progress"),
            path(
                "<int:source_id>/verb/<slug:verb>/",
                view(self.verb_view),
                name="knowledge_source_verb",
            ),
            *super().get_urls(),
        ]

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Upload one or several files: a page, and one request for each file.

        A script sends each file by itself and asks for JSON; without a script the form
        posts all files at once.
        """
        if not self.has_add_permission(request):
            raise PermissionDenied
        wants_json = request.headers.get("Accept", "") == "application/json"
        form = UploadForm(request.POST or None, request.FILES or None)
        layers = form.fields["layer"]
        layers.queryset = within_scope(  # type: ignore[attr-defined]
            request, Layer.objects.select_related("knowledge_base")
        )
        if request.method == "POST":
            if form.is_valid():
                return self.take_files(request, form, wants_json=wants_json)
            if wants_json:
                reasons = [error for errors in form.errors.values() for error in errors]
                return JsonResponse({"error": " ".join(map(str, reasons))}, status=400)
        return TemplateResponse(
            request,
            "admin/knowledge/source/upload.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Upload files"),
                "opts": self.opts,
                "form": form,
                "progress_url": reverse("admin:knowledge_source_progress"),
                **(extra_context or {}),
            },
        )

    def take_files(
        self, request: HttpRequest, form: UploadForm, *, wants_json: bool
    ) -> HttpResponse:
        """Take the posted files in and answer for each, or with the list of sources."""
        for upload in uploads_of(request):
            try:
                source = upload_source(
                    upload,
                    layer=form.cleaned_data["layer"],
                    actor=actor_of(request),
                    purpose=form.cleaned_data["purpose"],
                    replace=form.cleaned_data["replace"],
                )
            except ActionError as error:
                if wants_json:
                    return JsonResponse({"error": str(error)}, status=409)
                self.message_user(request, str(error), messages.ERROR)
                continue
            if wants_json:
                return JsonResponse(
                    {
                        "id": str(source.pk),
                        "title": source.title,
                        "url": reverse("admin:knowledge_source_change", args=[source.pk]),
                        "state": source.state,
                        "label": capfirst(source.get_state_display()),
                    },
                    status=201,
                )
            self.message_user(request, _("%(title)s is queued.") % {"title": source})
        return HttpResponseRedirect(reverse("admin:knowledge_source_changelist"))

    def progress_view(self, request: HttpRequest) -> HttpResponse:
        """Answer the state of the sources asked for; what is out of scope is absent."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        ids = [int(key) for key in request.GET.getlist("id")[:MOST_ROWS] if key.isdecimal()]
        sources = self.get_queryset(request).filter(pk__in=ids)
        newest = {
            run.source_id: run
            for run in IngestRun.objects.filter(
                source__in=sources, generation=models.F("source__generation")
            )
        }
        return JsonResponse(
            {
                "rows": {
                    str(source.pk): progress_of(source, newest.get(source.pk))
                    for source in sources
                }
            }
        )

    def verb_view(
        self, request: HttpRequest, source_id: int, verb: str
    ) -> HttpResponse:
        """Carry out one verb on one source: reindex, switch-on, switch-off, replace."""
        source = self.get_object(request, str(source_id))
        if source is None or request.method != "POST":
            raise Http404(_("Not found."))
        permission = {
            "reindex": "knowledge.reindex_source",
            "switch-on": "knowledge.switch_source",
            "switch-off": "knowledge.switch_source",
            "replace": "knowledge.change_source",
        }.get(verb)
        if permission is None:
            raise Http404(_("Not found."))
        if not request.user.has_perm(permission):
            raise PermissionDenied
        try:
            self.message_user(request, self.carry_out(request, source, verb))
        except ActionError as error:
            self.message_user(request, str(error), messages.ERROR)
        return HttpResponseRedirect(
            reverse("admin:knowledge_source_change", args=[source.pk])
        )

    def carry_out(self, request: HttpRequest, source: Source, verb: str) -> str:
        """Do what `verb_view` allowed and return the sentence that says so."""
        actor = actor_of(request)
        if verb == "reindex":
            reindex_source(source, actor=actor)
            return _("%(title)s is queued to be indexed again.") % {"title": source}
        if verb == "replace":
            uploads = uploads_of(request)
            if not uploads:
                raise ActionError(_("Choose the file that takes its place."))
            replace_source(source, uploads[0], actor=actor)
            return _(
                "The new file is queued. The old text is searched until it is ready."
            )
        switch_source(source, enabled=verb == "switch-on", actor=actor)
        if verb == "switch-on":
            return _("Switched on: searches find it again.")
        return _("Switched off: no search finds it from now on.")

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Add to the form what became of the source."""
        context = dict(extra_context or {})
        source = self.get_object(request, object_id)
        if source is not None:
            document = source.documents.filter(is_current=True).defer("text").first()
            context.update(
                document=document,
                runs=source.runs.select_related("requested_by")[:10],
                row=self.state_now(source),
                revisions=source.documents.defer("text", "blocks", "pages")[:20],
            )
        return super().change_view(request, object_id, form_url, context)

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Name layers with their knowledge base, in one query."""
        if db_field.name == "layer":
            kwargs["queryset"] = Layer.objects.select_related("knowledge_base")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(
        self, request: HttpRequest, obj: Source, form: Any, change: bool
    ) -> None:
        """Save by the verbs, so that each act has its own record and effect."""
        actor = actor_of(request)
        changed = set(form.changed_data)
        with transaction.atomic():
            stored = Source.objects.get(pk=obj.pk)
            if "layer" in changed:
                move_source(stored, layer=form.cleaned_data["layer"], actor=actor)
            if "enabled" in changed:
                switch_source(
                    stored, enabled=form.cleaned_data["enabled"], actor=actor
                )
            plain = sorted(changed & {"title", "purpose", "expires_at"})
            if plain:
                obj.save(update_fields=plain)
                record(actor, "changed", obj, fields=plain)

    def delete_model(self, request: HttpRequest, obj: Source) -> None:
        """Delete with revisions, passages and files."""
        delete_source(obj, actor=actor_of(request))

    def delete_queryset(
        self, request: HttpRequest, queryset: models.QuerySet[Source]
    ) -> None:
        """Delete each with revisions, passages and files."""
        for source in queryset:
            delete_source(source, actor=actor_of(request))

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Say in figures what goes along."""
        lines = [
            _("%(title)s with %(count)s passages, its files and earlier revisions")
            % {"title": source, "count": source.passage_count}
            for source in objs
        ]
        missing = set()
        if not self.has_delete_permission(request):
            missing.add(str(self.opts.verbose_name))
        return lines, {str(self.opts.verbose_name): len(lines)}, missing, []

    @admin.action(
        description=gettext_lazy("Index the chosen sources again"),
        permissions=["reindex"],
    )
    def reindex(self, request: HttpRequest, queryset: models.QuerySet[Source]) -> None:
        """Queue each chosen source."""
        count = 0
        for source in queryset:
            try:
                reindex_source(source, actor=actor_of(request))
                count += 1
            except ActionError as error:
                self.message_user(request, f"{source}: {error}", messages.ERROR)
        self.message_user(
            request,
            ngettext(
                "%(count)s source is queued.", "%(count)s sources are queued.", count
            )
            % {"count": count},
        )

    @admin.action(
        description=gettext_lazy("Switch the chosen sources on"), permissions=["switch"]
    )
    def switch_on(self, request: HttpRequest, queryset: models.QuerySet[Source]) -> None:
        """Let searches find the chosen sources again."""
        for source in queryset:
            switch_source(source, enabled=True, actor=actor_of(request))
        self.message_user(request, _("Switched on."))

    @admin.action(
        description=gettext_lazy("Switch the chosen sources off"),
        permissions=["switch"],
    )
    def switch_off(
        self, request: HttpRequest, queryset: models.QuerySet[Source]
    ) -> None:
        """Take the chosen sources out of every search."""
        for source in queryset:
            switch_source(source, enabled=False, actor=actor_of(request))
        self.message_user(request, _("Switched off."))

    def has_reindex_permission(self, request: HttpRequest) -> bool:
        """Return whether the role may index again."""
        return request.user.has_perm("knowledge.reindex_source")

    def has_switch_permission(self, request: HttpRequest) -> bool:
        """Return whether the role may switch sources."""
        return request.user.has_perm("knowledge.switch_source")


def progress_of(source: Source, run: IngestRun | None) -> dict[str, Any]:
    """Return one row of `progress_view`, in the form that progress.js reads."""
    working = source.state in WORKING
    waiting = run is not None and run.state == RunState.WAITING
    stage = ""
    if working and run is not None:
        stage = run.get_state_display() if waiting else run.get_stage_display()
    return {
        "state": source.state,
        "label": capfirst(source.get_state_display()),
        "stage": stage,
        "percent": run.percent if working and run is not None else None,
        "message": source.state_reason,
        "done": not working,
    }
