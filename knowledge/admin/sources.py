"""Sources: uploading, watching, replacing, switching, indexing again, deleting."""

from datetime import UTC, datetime
from typing import Any, BinaryIO, cast

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
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
    touch,
    upload_source,
)
from knowledge.admin.parts import deletion_of, is_key, reading_of
from knowledge.admin.visibility import finders_page
from knowledge.dependents import warnings_about
from knowledge.forms import EraseForm, SourceForm, UploadForm
from knowledge.models import IngestRun, Layer, Source
from knowledge.models.audit import record
from knowledge.models.ingest import RunState, Stage
from knowledge.models.source import SourceState
from knowledge.purging import purge_source
from knowledge.scoping import (
    LayerFilter,
    ScopedAdmin,
    ScopedRelatedFilter,
    actor_of,
    within_scope,
)

WORKING = {SourceState.PENDING, SourceState.PROCESSING, SourceState.REPROCESSING}
MOST_ROWS = 200
MOST_RECORDS = 10
# Of how many sources that are deleted at once it is looked up what rests on them.
MOST_WARNED = 20
# A file's time in milliseconds, up to the year 5138.
MODIFIED_DIGITS = 14


def uploads_of(request: HttpRequest) -> list[Upload]:
    """Return the posted files as uploads.

    A file that comes alone brings its own path and time (D31), which a browser tells
    only to a script; several at once have just their names.
    """
    posted = request.FILES.getlist("file")
    if len(posted) != 1:
        return [Upload(file=content_of(file), name=file.name or "") for file in posted]
    modified = request.POST.get("modified", "")
    when = None
    if is_key(modified) and len(modified) <= MODIFIED_DIGITS:
        when = datetime.fromtimestamp(int(modified) / 1000, tz=UTC)
    name = request.POST.get("path", "") or posted[0].name or ""
    return [Upload(file=content_of(posted[0]), name=name, modified_at=when)]


def content_of(posted: "UploadedFile[Any]") -> BinaryIO:
    """Return the bytes of a posted file, as the upload handler keeps them."""
    return cast("BinaryIO", posted.file)


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
        ("layer", LayerFilter),
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

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Source]:
        """Add how far the newest run of each source is."""
        newest = IngestRun.objects.filter(
            source=models.OuterRef("pk"), generation=models.OuterRef("generation")
        )
        return (
            super()
            .get_queryset(request)
            .annotate(
                run_state=models.Subquery(newest.values("state")),
                run_stage=models.Subquery(newest.values("stage")),
                run_percent=models.Subquery(newest.values("percent")),
            )
        )

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def state_now(self, obj: Source) -> str:
        """State with stage and percentage, kept up to date while it moves."""
        now = progress_of(obj)
        if now["done"]:
            return format_html(
                '<span class="state" data-state="{}">{}</span> '
                '<span class="state-reason">{}</span>',
                now["state"],
                now["label"],
                now["message"],
            )
        return format_html(
            '<span class="progress" data-progress-url="{}" data-progress-id="{}">'
            '<span class="state" data-progress="state" data-state="{}">{}</span> '
            '<span data-progress="stage">{}</span> '
            '<progress data-progress="bar" max="100" value="{}" aria-label="{}">'
            "</progress> "
            '<span data-progress="percent">{} %</span> '
            '<span class="state-reason" data-progress="message">{}</span></span>',
            reverse("admin:knowledge_source_progress"),
            str(obj.pk),
            now["state"],
            now["label"],
            now["stage"],
            str(now["percent"]),
            _("Progress of %(title)s") % {"title": obj},
            str(now["percent"]),
            now["message"],
        )

    @admin.display(description=gettext_lazy("on"), boolean=True, ordering="enabled")
    def on_or_off(self, obj: Source) -> bool:
        """Whether searches find it."""
        return obj.enabled

    def get_urls(self) -> list[URLPattern]:
        """Add upload, progress and the verbs of the source's own page."""
        view = self.admin_site.admin_view
        return [
            path(
                "progress/", view(self.progress_view), name="knowledge_source_progress"
            ),
            path(
                "<int:source_id>/erase/",
                view(self.erase_view),
                name="knowledge_source_erase",
            ),
            path(
                "<int:source_id>/verb/<slug:verb>/",
                view(self.verb_view),
                name="knowledge_source_verb",
            ),
            path(
                "<int:source_id>/finders/",
                view(self.finders_view),
                name="knowledge_source_finders",
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
        form = UploadForm(
            request.POST or None, layers=within_scope(request, Layer.objects.all())
        )
        if not self.has_change_permission(request):
            # A file in another one's place changes a source.
            del form.fields["replace"]
        if request.method == "POST":
            uploads = uploads_of(request)
            reasons = [str(each) for field in form.errors.values() for each in field]
            if not uploads:
                reasons.append(_("Choose at least one file."))
            if not reasons:
                return self.take_files(request, form, uploads, wants_json=wants_json)
            if wants_json:
                return JsonResponse({"error": " ".join(reasons)}, status=400)
            if not uploads:
                self.message_user(request, reasons[-1], messages.ERROR)
        return TemplateResponse(
            request,
            "admin/knowledge/source/upload.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Upload files"),
                "opts": self.opts,
                "form": form,
                "most_bytes": settings.STRATA_MAX_UPLOAD_BYTES,
                "progress_url": reverse("admin:knowledge_source_progress"),
                **(extra_context or {}),
            },
        )

    def take_files(
        self,
        request: HttpRequest,
        form: UploadForm,
        uploads: list[Upload],
        *,
        wants_json: bool,
    ) -> HttpResponse:
        """Take each file in, whatever becomes of the others, and say so for each."""
        for upload in uploads:
            try:
                source = upload_source(
                    upload,
                    layer=form.cleaned_data["layer"],
                    actor=actor_of(request),
                    purpose=form.cleaned_data["purpose"],
                    replace=form.cleaned_data.get("replace", False),
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
                        "url": reverse(
                            "admin:knowledge_source_change", args=[source.pk]
                        ),
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
        keys = request.GET.getlist("id")[:MOST_ROWS]
        ids = [int(key) for key in keys if is_key(key)]
        sources = self.get_queryset(request).filter(pk__in=ids)
        rows = {str(source.pk): progress_of(source) for source in sources}
        return JsonResponse({"rows": rows})

    def finders_view(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Show who can find one source."""
        source = self.get_object(request, str(source_id))
        if source is None:
            raise Http404(_("Not found."))
        if not self.has_view_permission(request, source):
            raise PermissionDenied
        return finders_page(request, self.admin_site, source.knowledge_base, source)

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

    def erase_view(self, request: HttpRequest, source_id: int) -> HttpResponse:
        """Ask whether a source is to be erased for good, and do it."""
        source = self.get_object(request, str(source_id))
        if source is None:
            raise Http404(_("Not found."))
        if not request.user.has_perm("knowledge.purge_source"):
            raise PermissionDenied
        posted = request.POST if request.method == "POST" else None
        form = EraseForm(posted, label_suffix="")
        if request.method == "POST" and form.is_valid():
            purge_source(source, actor=actor_of(request))
            # Not by its name, which is erased.
            self.message_user(request, _("Erased. Nothing of its words is left here."))
            return HttpResponseRedirect(reverse("admin:knowledge_source_changelist"))
        return TemplateResponse(
            request,
            "admin/knowledge/source/erase.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Erase %(title)s for good") % {"title": source},
                "opts": self.opts,
                "original": source,
                "form": form,
                "revisions": source.documents.count(),
                "warnings": warnings_about(request, source),
            },
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
        source = self.get_object(request, object_id)
        if source is None:
            raise Http404(_("Not found."))
        documents = source.documents.defer("text", "blocks", "pages")
        context = {
            "document": documents.filter(is_current=True).first(),
            "runs": source.runs.select_related("requested_by")[:MOST_RECORDS],
            "revisions": documents[:MOST_RECORDS],
            "row": self.state_now(source),
            "reading": reading_of(request, source),
            "most_bytes": settings.STRATA_MAX_UPLOAD_BYTES,
            # Sources are added by uploading files.
            "show_save_and_add_another": False,
            **(extra_context or {}),
        }
        try:
            return super().change_view(request, object_id, form_url, context)
        except ActionError as error:
            # Somebody was quicker; the transaction of the whole form is undone.
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(request.path)

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Name layers with their knowledge base, in one query."""
        if db_field.name == "layer":
            kwargs["queryset"] = Layer.objects.select_related("knowledge_base")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Source | None = None
    ) -> tuple[str, ...]:
        """Move a source only for whoever may add one where it goes (REL-A7)."""
        return () if self.has_add_permission(request) else ("layer",)

    def save_model(
        self,
        request: HttpRequest,
        obj: Source,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save by the verbs, so that each act has its own record and effect."""
        actor = actor_of(request)
        changed = set(form.changed_data)
        plain = sorted(changed & {"title", "purpose", "expires_at"})
        with transaction.atomic():
            if plain:
                obj.save(update_fields=plain)
                record(actor, "changed", obj, fields=plain)
                touch(obj.knowledge_base_id)
            if "layer" in changed:
                stored = Source.objects.get(pk=obj.pk)
                move_source(stored, layer=form.cleaned_data["layer"], actor=actor)

    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Say before what rests on the source."""
        source = self.get_object(request, object_id)
        context = dict(extra_context or {})
        if source is not None and request.method != "POST":
            context["warnings"] = warnings_about(request, source)
        return super().delete_view(request, object_id, context)

    def delete_model(self, request: HttpRequest, obj: Source) -> None:
        """Delete with revisions, passages and files."""
        delete_source(obj, actor=actor_of(request))

    def delete_queryset(
        self, request: HttpRequest, queryset: models.QuerySet[Source]
    ) -> None:
        """Delete each with revisions, passages and files."""
        for source in queryset:
            try:
                delete_source(source, actor=actor_of(request))
            except ActionError as error:
                self.message_user(request, f"{source}: {error}", messages.ERROR)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Say in figures what goes along, and below each of several what rests on it."""
        asks = request.POST.get("action") == "delete_selected"
        warns = asks and "post" not in request.POST
        lines: list[Any] = []
        for number, source in enumerate(objs):
            lines.append(
                ngettext(
                    "%(title)s with %(count)s passage, its file and earlier revisions",
                    "%(title)s with %(count)s passages, its file and earlier revisions",
                    source.passage_count,
                )
                % {"title": source, "count": source.passage_count}
            )
            if warns and number < MOST_WARNED:
                lines.append(warnings_about(request, source))
        unread = len(objs) - MOST_WARNED
        if warns and unread > 0:
            lines.append(
                ngettext(
                    "What quotes %(count)s more source was not looked up: its own "
                    "page says it.",
                    "What quotes %(count)s more sources was not looked up: their own "
                    "pages say it.",
                    unread,
                )
                % {"count": unread}
            )
        return lines, *deletion_of(self, request, objs)

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
        if count:
            sentence = ngettext(
                "%(count)s source is queued.", "%(count)s sources are queued.", count
            )
            self.message_user(request, sentence % {"count": count})

    @admin.action(
        description=gettext_lazy("Switch the chosen sources on"), permissions=["switch"]
    )
    def switch_on(
        self, request: HttpRequest, queryset: models.QuerySet[Source]
    ) -> None:
        """Let searches find the chosen sources again."""
        for source in queryset:
            switch_source(source, enabled=True, actor=actor_of(request))
        self.message_user(request, _("Switched on: searches find them again."))

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
        self.message_user(request, _("Switched off: no search finds them from now on."))

    def has_reindex_permission(self, request: HttpRequest) -> bool:
        """Return whether the role may index again."""
        return request.user.has_perm("knowledge.reindex_source")

    def has_switch_permission(self, request: HttpRequest) -> bool:
        """Return whether the role may switch sources."""
        return request.user.has_perm("knowledge.switch_source")


def progress_of(source: Any) -> dict[str, Any]:
    """Return one row of `progress_view`, in the form that progress.js reads.

    `source` carries what `SourceAdmin.get_queryset` adds.
    """
    working = source.state in WORKING
    stage = ""
    if working and source.run_state in {RunState.WAITING, RunState.QUEUED}:
        stage = capfirst(str(RunState(source.run_state).label))
    elif working and source.run_stage:
        stage = capfirst(str(Stage(source.run_stage).label))
    return {
        "state": source.state,
        "label": capfirst(source.get_state_display()),
        "stage": stage,
        "percent": (source.run_percent or 0) if working else None,
        "message": source.state_reason,
        "done": not working,
    }
