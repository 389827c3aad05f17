"""Knowledge bases, who may list and search them, and their layers."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from knowledge.actions import delete_knowledge_base, open_knowledge_base
from knowledge.admin.parts import deletion_of
from knowledge.admin.visibility import (
    HISTORY,
    asked_about,
    bulk_page,
    finders_page,
    history_of,
    numbers_of,
    page_of,
    shown_history,
)
from knowledge.forms import AccessForm, LayerForm
from knowledge.models import (
    KnowledgeBase,
    KnowledgeBaseGroupAccess,
    KnowledgeBaseUserAccess,
    Layer,
    User,
)
from knowledge.models.audit import record
from knowledge.permissions import EVERYONE, Access, grant, withdraw
from knowledge.reindexing import TERMS_DEPEND_ON, ask_for_terms
from knowledge.scoping import ScopedAdmin, ScopedRelatedFilter, actor_of


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(ScopedAdmin[KnowledgeBase]):
    """Knowledge bases; their access page says who sees them, and why."""

    ordering = ("name",)
    list_display = ("name", "slug", "source_count", "passage_count", "access_link")
    search_fields = ("name", "slug", "description")
    fields = ("name", "slug", "description", "department")
    prepopulated_fields = {"slug": ("name",)}
    change_form_template = "admin/knowledge/knowledgebase/change_form.html"
    change_list_template = "admin/knowledge/knowledgebase/change_list.html"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[KnowledgeBase]:
        """Add what the list shows."""
        return (
            super()
            .get_queryset(request)
            .annotate(
                sources_in_it=models.Count("sources"),
                passages_in_it=models.Sum("sources__passage_count", default=0),
            )
        )

    @admin.display(description=gettext_lazy("sources"), ordering="sources_in_it")
    def source_count(self, obj: Any) -> int:
        """How many sources it has."""
        return int(obj.sources_in_it)

    @admin.display(description=gettext_lazy("passages"), ordering="passages_in_it")
    def passage_count(self, obj: Any) -> int:
        """How many passages it has."""
        return int(obj.passages_in_it)

    @admin.display(description=gettext_lazy("access"))
    def access_link(self, obj: KnowledgeBase) -> str:
        """Link to who sees it."""
        url = reverse("admin:knowledge_knowledgebase_access", args=[obj.pk])
        return format_html('<a href="{}">{}</a>', url, _("Who sees it"))

    def get_urls(self) -> list[URLPattern]:
        """Add the pages of access: of one, of many, and who finds it."""
        return [
            path(
                "bulk-access/",
                self.admin_site.admin_view(self.bulk_view),
                name="knowledge_knowledgebase_bulk",
            ),
            path(
                "<int:knowledge_base_id>/finders/",
                self.admin_site.admin_view(self.finders_view),
                name="knowledge_knowledgebase_finders",
            ),
            path(
                "<int:knowledge_base_id>/access/",
                self.admin_site.admin_view(self.access_view),
                name="knowledge_knowledgebase_access",
            ),
            *super().get_urls(),
        ]

    def save_model(
        self,
        request: HttpRequest,
        obj: KnowledgeBase,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry; a new one is born with a layer and a reader."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            if change:
                record(actor_of(request), "changed", obj, fields=form.changed_data)
            else:
                record(actor_of(request), "created", obj)
                open_knowledge_base(obj, actor=actor_of(request))

    def delete_model(self, request: HttpRequest, obj: KnowledgeBase) -> None:
        """Delete with all that is in it."""
        delete_knowledge_base(obj, actor=actor_of(request))

    def delete_queryset(
        self, request: HttpRequest, queryset: models.QuerySet[KnowledgeBase]
    ) -> None:
        """Delete each with all that is in it."""
        for obj in queryset:
            delete_knowledge_base(obj, actor=actor_of(request))

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Say in figures what goes along; a tree of passages would help nobody."""
        lines: list[Any] = [
            _("%(name)s with its %(sources)s sources and %(passages)s passages")
            % {
                "name": obj,
                "sources": obj.sources.count(),
                "passages": obj.passages.count(),
            }
            for obj in objs
        ]
        return lines, *deletion_of(self, request, objs)

    def access_view(self, request: HttpRequest, knowledge_base_id: int) -> HttpResponse:
        """Show and change who may list and search one knowledge base."""
        obj = self.get_object(request, str(knowledge_base_id))
        if obj is None:
            raise Http404(_("Not found."))
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        may_change = request.user.has_perm("knowledge.grant_knowledgebase")
        form = AccessForm(request.POST or None)
        text = request.GET.get("q", "").strip()[:150]
        rows = page_of(access_rows_of(obj, text), request.GET.get("page", ""))
        history = page_of(history_of(obj), request.GET.get("history", ""), HISTORY)
        if request.method == "POST":
            if not may_change:
                raise PermissionDenied
            if "withdraw" in request.POST:
                return self.withdraw_access(request, obj)
            if form.is_valid():
                grant(
                    obj,
                    form.cleaned_data["accesses"],
                    to=form.cleaned_data["holder"],
                    actor=actor_of(request),
                )
                self.message_user(request, _("Saved. It holds from now on."))
                return self.after_access_change(request, obj)
        return TemplateResponse(
            request,
            "admin/knowledge/knowledgebase/access.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Who sees %(name)s") % {"name": obj},
                "opts": self.opts,
                "original": obj,
                "rows": [access_row(*row) for row in rows.object_list],
                "page": rows,
                "page_numbers": numbers_of(rows),
                "query": text,
                "history": shown_history(history.object_list),
                "history_page": history,
                "history_numbers": numbers_of(history),
                "form": form,
                "may_change": may_change,
                "asked": asked_about(request, obj) if may_change else None,
                "asked_name": request.GET.get("person", ""),
            },
        )

    def finders_view(
        self, request: HttpRequest, knowledge_base_id: int
    ) -> HttpResponse:
        """Show who can find what is in one knowledge base."""
        obj = self.get_object(request, str(knowledge_base_id))
        if obj is None:
            raise Http404(_("Not found."))
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        return finders_page(request, self.admin_site, obj)

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        """Change access for many people or groups and knowledge bases at once."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return bulk_page(request, self.admin_site)

    def after_access_change(
        self, request: HttpRequest, obj: KnowledgeBase
    ) -> HttpResponse:
        """Go on where the person still may be: a deny may have hit themselves."""
        still_open = KnowledgeBase.objects.administered_by(actor_of(request))
        if still_open.filter(pk=obj.pk).exists():
            return HttpResponseRedirect(request.path)
        return HttpResponseRedirect(reverse("admin:knowledge_knowledgebase_changelist"))

    def withdraw_access(self, request: HttpRequest, obj: KnowledgeBase) -> HttpResponse:
        """Take one grant or deny away, named as `user:3:search_knowledgebase`."""
        named = request.POST["withdraw"]
        rows = (access_row(*row) for row in access_rows_of(obj))
        row = next((each for each in rows if each["name"] == named), None)
        if row is None:
            raise Http404(_("Not found."))
        holder: User | Group = (
            get_object_or_404(User, pk=row["key"])
            if row["kind"] == "user"
            else get_object_or_404(Group, pk=row["key"])
        )
        withdraw(obj, [row["access"]], holder=holder, actor=actor_of(request))
        self.message_user(request, _("Taken away. It holds from now on."))
        return self.after_access_change(request, obj)


def access_rows_of(
    knowledge_base: KnowledgeBase, text: str = ""
) -> list[tuple[str, int, str, str]]:
    """Return each grant and deny as (kind, key, holder, codename), denies first.

    With a text, only those of holders whose name holds it.
    """
    shown = {
        "permission__codename__in": Access.values,
        "content_object": knowledge_base,
    }
    people = KnowledgeBaseUserAccess.objects.filter(**shown)
    groups = KnowledgeBaseGroupAccess.objects.filter(**shown)
    for word in text.split():
        people = people.filter(
            models.Q(user__username__icontains=word)
            | models.Q(user__first_name__icontains=word)
            | models.Q(user__last_name__icontains=word)
        )
        groups = groups.filter(group__name__icontains=word)
    rows = [
        ("user", pk, f"{first} {last}".strip() or name, codename)
        for pk, name, first, last, codename in people.values_list(
            "user_id",
            "user__username",
            "user__first_name",
            "user__last_name",
            "permission__codename",
        )
    ] + [
        ("group", pk, name, codename)
        for pk, name, codename in groups.values_list(
            "group_id", "group__name", "permission__codename"
        )
    ]
    return sorted(
        rows,
        key=lambda row: (
            row[3] != Access.DENY,
            row[0] != "group",
            row[2] != EVERYONE,
            row[2],
            row[3],
        ),
    )


def access_row(kind: str, key: int, holder: str, codename: str) -> dict[str, Any]:
    """Return one grant or deny; `name` is what its button sends."""
    return {
        "kind": kind,
        "key": key,
        "holder": holder,
        "access": Access(codename),
        "name": f"{kind}:{key}:{codename}",
    }


@admin.register(Layer)
class LayerAdmin(ScopedAdmin[Layer]):
    """Layers: how a part of a knowledge base is cut and answered."""

    form = LayerForm
    ordering = ("knowledge_base__name", "name")
    list_display = ("__str__", "answer_mode", "chunk_preset", "source_count")
    list_filter = (("knowledge_base", ScopedRelatedFilter), "answer_mode")
    search_fields = ("name", "description", "knowledge_base__name")
    list_select_related = ("knowledge_base",)
    fields = (
        "knowledge_base",
        "name",
        "description",
        "answer_mode",
        "chunk_preset",
        "languages",
        "matches_without_accents",
        "archived_patterns",
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Layer]:
        """Add what the list shows."""
        return (
            super()
            .get_queryset(request)
            .annotate(sources_in_it=models.Count("sources"))
        )

    @admin.display(description=gettext_lazy("sources"), ordering="sources_in_it")
    def source_count(self, obj: Any) -> int:
        """How many sources it has."""
        return int(obj.sources_in_it)

    def save_model(
        self,
        request: HttpRequest,
        obj: Layer,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            if TERMS_DEPEND_ON.intersection(form.changed_data):
                ask_for_terms(obj)
            record(
                actor_of(request),
                "changed" if change else "created",
                obj,
                fields=form.changed_data if change else [],
            )
        if change and "chunk_preset" in form.changed_data:
            self.message_user(
                request,
                _(
                    "The new passage size holds for sources that are indexed from now "
                    "on. Index the layer's sources again to apply it to all."
                ),
                messages.WARNING,
            )

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Refuse, in a sentence, to delete a layer that still has sources."""
        counts, missing, _none = deletion_of(self, request, objs)
        in_the_way = [
            ngettext(
                "%(layer)s still has %(count)s source. Delete it or move it first.",
                "%(layer)s still has %(count)s sources. Delete or move them first.",
                count,
            )
            % {"layer": obj, "count": count}
            for obj in objs
            if (count := obj.sources.count())
        ]
        return [str(obj) for obj in objs], counts, missing, in_the_way
