"""The admin's one door: staff see and choose only what they administer.

Django's admin asks its querysets in many places, and offers related rows in more. A
`ScopedAdmin` answers all of them from `administered_by`, so that a new page is closed
before it is written.
"""

from typing import Any, TypeVar

from django.contrib import admin
from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from knowledge.models import AuditEntry, KnowledgeBase, User

Row = TypeVar("Row", bound=models.Model)

# How each model reaches the knowledge base that decides who administers its rows.
PATHS = {
    "knowledgebase": "pk",
    "layer": "knowledge_base",
    "source": "knowledge_base",
    "original": "knowledge_base",
    "document": "knowledge_base",
    "passage": "knowledge_base",
    "section": "document__knowledge_base",
    "ingestrun": "source__knowledge_base",
    "knowledgebaseuseraccess": "content_object",
    "knowledgebasegroupaccess": "content_object",
}


def administered_ids(request: HttpRequest) -> frozenset[int]:
    """Return the knowledge bases that the request's person works on; asked once."""
    found: frozenset[int] | None = getattr(request, "_administered_ids", None)
    if found is None:
        if not isinstance(request.user, User):
            found = frozenset()
        else:
            found = frozenset(
                KnowledgeBase.objects.administered_by(request.user).values_list(
                    "pk", flat=True
                )
            )
        request._administered_ids = found  # type: ignore[attr-defined]
    return found


def actor_of(request: HttpRequest) -> User:
    """Return the member of staff behind a request; the admin lets nobody else in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def within_scope(
    request: HttpRequest, queryset: models.QuerySet[Row]
) -> models.QuerySet[Row]:
    """Return the rows that belong to knowledge bases the person administers.

    Models that belong to no knowledge base are returned as they are.
    """
    path = PATHS.get(queryset.model._meta.model_name or "")
    if path is None:
        return queryset
    ids = administered_ids(request)
    return queryset.filter(**{f"{path}__in": ids}) if ids else queryset.none()


class ScopedRelatedFilter(admin.RelatedFieldListFilter):
    """A list filter that offers only rows in scope; Django's offers every row."""

    def field_choices(
        self, field: Any, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> list[tuple[Any, str]]:
        """Return (key, name) of the related rows in scope."""
        rows = within_scope(request, field.remote_field.model._default_manager.all())
        return [(row.pk, str(row)) for row in rows]


class ScopedAdmin(ModelAdmin[Row]):
    """A model's pages, for the knowledge bases that the person administers."""

    show_full_result_count = False
    view_on_site = False

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Row]:
        """Return the rows in scope: lists, searches, autocompletes and changes."""
        return within_scope(request, super().get_queryset(request))

    def in_scope(self, request: HttpRequest, obj: Row | None) -> bool:
        """Return whether a row, or the model's list as such, is open to the person."""
        if obj is None or obj.pk is None:
            return True
        return within_scope(
            request, self.model._default_manager.filter(pk=obj.pk)
        ).exists()

    def has_view_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        """Return whether the role may look, and the row is in scope."""
        return super().has_view_permission(request, obj) and self.in_scope(request, obj)

    def has_change_permission(
        self, request: HttpRequest, obj: Row | None = None
    ) -> bool:
        """Return whether the role may change, and the row is in scope."""
        return super().has_change_permission(request, obj) and self.in_scope(
            request, obj
        )

    def has_delete_permission(
        self, request: HttpRequest, obj: Row | None = None
    ) -> bool:
        """Return whether the role may delete, and the row is in scope."""
        return super().has_delete_permission(request, obj) and self.in_scope(
            request, obj
        )

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer only related rows in scope; others are refused as unknown choices."""
        queryset = kwargs.get("queryset")
        if queryset is None:
            queryset = db_field.remote_field.model._default_manager.all()
        kwargs["queryset"] = within_scope(request, queryset)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer only related rows in scope."""
        queryset = kwargs.get("queryset")
        if queryset is None:
            queryset = db_field.remote_field.model._default_manager.all()
        kwargs["queryset"] = within_scope(request, queryset)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        """Allow only what a list filter of this page asks.

        Django also allows lookups over plain fields, such as `title__startswith`, with
        which hidden columns can be guessed letter by letter.
        """
        names = {
            item if isinstance(item, str) else item[0]
            for item in self.get_list_filter(request)  # type: ignore[arg-type]
            if isinstance(item, (str, tuple, list))
        }
        parts = lookup.split("__")
        if parts[-1] in {"exact", "isnull", "in", "gte", "lt", "id"}:
            parts = parts[:-1]
        return "__".join(parts) in names

    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show what was done to a row: the audit entries, not the admin's own log."""
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404(_("Not found."))
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": _("History of %(name)s") % {"name": obj},
            "entries": AuditEntry.objects.filter(
                target_type=self.opts.model_name, target_id=obj.pk
            ).select_related("actor")[:500],
            "opts": self.opts,
            "object": obj,
            "preserved_filters": self.get_preserved_filters(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/history.html", context)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Leave Django's own log alone: the act's audit entry is the record."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Leave Django's own log alone: the act's audit entry is the record."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Leave Django's own log alone: the act's audit entry is the record."""
