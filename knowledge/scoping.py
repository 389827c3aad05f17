"""The admin's one door: staff see and choose only what they administer.

Django's admin asks its querysets in many places, and offers related rows in more. A
`ScopedAdmin` answers all of them from `administered_by`, so that a new page is closed
before it is written.
"""

from functools import partialmethod
from typing import Any, TypeVar

from django.contrib import admin
from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AdminTextareaWidget, RelatedFieldWidgetWrapper
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from knowledge.models import AuditEntry, KnowledgeBase, User
from knowledge.models.audit import record

Row = TypeVar("Row", bound=models.Model)
MOST_HISTORY = 500

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
    "registerentry": "knowledge_base",
    "neverrule": "knowledge_base",
    "impactreport": "knowledge_base",
    "knowledgebaseuseraccess": "content_object",
    "knowledgebasegroupaccess": "content_object",
}

# Rows of these that name no knowledge base hold for all: whoever works on one sees them.
FOR_ALL = {"neverrule"}


def administered_ids(request: HttpRequest) -> frozenset[int]:
    """Return the knowledge bases that the request's person works on; asked once."""
    found: frozenset[int] | None = request.__dict__.get("_administered_ids")
    if found is None:
        if not isinstance(request.user, User):
            found = frozenset()
        else:
            found = frozenset(
                KnowledgeBase.objects.administered_by(request.user).values_list(
                    "pk", flat=True
                )
            )
        request.__dict__["_administered_ids"] = found
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

    Rows that may belong to several knowledge bases are asked by their own queryset's
    `administered_by`. Models that belong to none are returned as they are.
    """
    path = PATHS.get(queryset.model._meta.model_name or "")
    if path is None:
        administered_by = getattr(queryset, "administered_by", None)
        if administered_by is None:
            return queryset
        found: models.QuerySet[Row] = administered_by(actor_of(request))
        return found
    ids = administered_ids(request)
    if queryset.model._meta.model_name in FOR_ALL and (
        ids or request.user.is_superuser
    ):
        return queryset.filter(
            models.Q(**{f"{path}__in": ids}) | models.Q(**{f"{path}__isnull": True})
        )
    return queryset.filter(**{f"{path}__in": ids}) if ids else queryset.none()


class ScopedRelatedFilter(admin.RelatedFieldListFilter):
    """A list filter that offers only rows in scope; Django's offers every row."""

    def field_choices(
        self, field: Any, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> Any:
        """Return (key, name) of the related rows in scope."""
        rows = within_scope(request, field.remote_field.model._default_manager.all())
        return [(row.pk, str(row)) for row in self.with_names(rows)]

    def with_names(self, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Return the rows with what their names need."""
        return rows


class LayerFilter(ScopedRelatedFilter):
    """A filter by layer, each named with its knowledge base."""

    def with_names(self, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Read the knowledge bases in the same query."""
        return rows.select_related("knowledge_base")


class AuditedAdmin(ModelAdmin[Row]):
    """A model's pages whose history is the audit's, and whose filters tell no more.

    Django's own log of the admin is not written: it would name rows to people who have
    lost sight of them since, and acts outside the admin are not in it.
    """

    show_full_result_count = False
    view_on_site = False
    formfield_overrides = {
        models.TextField: {"widget": AdminTextareaWidget(attrs={"rows": 3})}
    }

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,  # noqa: FBT001, FBT002
        **kwargs: Any,
    ) -> Any:
        """Return the form, whose labels end without a colon as in the portal."""
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        init = partialmethod(form.__init__, label_suffix="")
        return type(form)(form.__name__, (form,), {"__init__": init})

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        """Allow only what this page's filters and its dates ask.

        Django also allows lookups over plain fields, such as `digest__startswith`, with
        which hidden columns can be guessed letter by letter.
        """
        names = {
            item if isinstance(item, str) else item[0]
            for item in self.get_list_filter(request)  # type: ignore[arg-type]
            if isinstance(item, (str, tuple, list))
        }
        name, _mark, rest = lookup.partition("__")
        if name == self.date_hierarchy and rest in {
            "year",
            "month",
            "day",
            "gte",
            "lt",
        }:
            return True
        return name in names and rest in {"", "exact", "isnull", "id__exact"}

    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show what was done to a row, as far as the person works on where it was."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404(_("Not found."))
        context = {
            **self.admin_site.each_context(request),
            "title": _("History of %(name)s") % {"name": obj},
            "entries": audit_within_scope(request).filter(
                target_type=self.opts.model_name, target_id=obj.pk
            )[:MOST_HISTORY],
            "opts": self.opts,
            "object": obj,
            "preserved_filters": self.get_preserved_filters(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/history.html", context)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> Any:
        """Answer what is out of scope and what never was alike (D25)."""
        raise Http404(_("Not found."))

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Leave Django's own log alone: the act's audit entry is the record."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Leave Django's own log alone: the act's audit entry is the record."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Leave Django's own log alone: the act's audit entry is the record."""


def audit_within_scope(request: HttpRequest) -> models.QuerySet[AuditEntry]:
    """Return the acts a person may read of: on what they work on, or on no base."""
    entries = AuditEntry.objects.all()
    if request.user.is_superuser:
        return entries
    return entries.filter(
        models.Q(knowledge_base_id__in=administered_ids(request))
        | models.Q(knowledge_base_id__isnull=True)
    )


class ScopedAdmin(AuditedAdmin[Row]):
    """A model's pages, for the knowledge bases that the person administers."""

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Row]:
        """Return the rows in scope: lists, searches, autocompletes and changes."""
        return within_scope(request, super().get_queryset(request))

    def delete_model(self, request: HttpRequest, obj: Row) -> None:
        """Delete with the audit entry."""
        self.delete_queryset(request, self.model._default_manager.filter(pk=obj.pk))

    def delete_queryset(
        self, request: HttpRequest, queryset: models.QuerySet[Row]
    ) -> None:
        """Delete each with its audit entry."""
        with transaction.atomic():
            for obj in queryset:
                record(actor_of(request), "deleted", obj, **self.details_of(obj))
                obj.delete()

    def details_of(self, obj: Any) -> dict[str, object]:
        """Return what the audit keeps of a row that is deleted, besides its name."""
        return {}

    def in_scope(self, request: HttpRequest, obj: Row | None) -> bool:
        """Return whether a row, or the model's list as such, is open to the person.

        The database is asked, once for each request, and not the row itself, which a
        form may have changed.
        """
        if obj is None or obj.pk is None:
            return True
        known: dict[tuple[str, Any], bool] = request.__dict__.setdefault(
            "_in_scope", {}
        )
        key = (self.opts.label, obj.pk)
        if key not in known:
            rows = self.model._default_manager.filter(pk=obj.pk)
            known[key] = within_scope(request, rows).exists()
        return known[key]

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

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Leave out the buttons beside a choice: one of them deletes what is chosen."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        widget = getattr(field, "widget", None)
        if field is not None and isinstance(widget, RelatedFieldWidgetWrapper):
            field.widget = widget.widget
        return field

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
