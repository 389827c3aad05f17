"""The source register: decided candidates, and rules of what may never enter."""

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.admin.parts import deletion_of
from knowledge.forms import NeverRuleForm, RegisterEntryForm
from knowledge.models import NeverRule, RegisterEntry
from knowledge.models.audit import record
from knowledge.scoping import Row, ScopedAdmin, ScopedRelatedFilter, actor_of


class RegisterAdmin(ScopedAdmin[Row]):
    """What both pages of the register do alike.

    `recorded` are the fields that the audit keeps of each act: a row may be deleted.
    """

    recorded: tuple[str, ...] = ()

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Name what goes; nothing else goes along."""
        return [str(obj) for obj in objs], *deletion_of(self, request, objs)

    def details_of(self, obj: Any) -> dict[str, object]:
        """Return what the audit keeps of a row."""
        return {name: getattr(obj, name) for name in self.recorded}


@admin.register(RegisterEntry)
class RegisterEntryAdmin(RegisterAdmin[RegisterEntry]):
    """Candidates of a knowledge base, accepted or rejected."""

    form = RegisterEntryForm
    recorded = ("location", "decision", "reason")
    list_display = (
        "title_and_location",
        "decision",
        "reason",
        "knowledge_base",
        "person",
        "decided_at",
    )
    list_display_links = ("title_and_location",)
    list_filter = ("decision", ("knowledge_base", ScopedRelatedFilter))
    search_fields = ("title", "location", "reason")
    list_select_related = ("knowledge_base", "decided_by")
    date_hierarchy = "decided_at"
    change_list_template = "admin/knowledge/registerentry/change_list.html"

    def get_fields(
        self, request: HttpRequest, obj: RegisterEntry | None = None
    ) -> tuple[str, ...]:
        """Add who decided and when, once that is so."""
        decided = () if obj is None else ("person", "decided_at")
        return (
            "knowledge_base",
            "title",
            "location",
            "decision",
            "reason",
            *decided,
        )

    def get_readonly_fields(
        self, request: HttpRequest, obj: RegisterEntry | None = None
    ) -> tuple[str, ...]:
        """Whoever saves a decision is who decided."""
        return ("person", "decided_at")

    @admin.display(description=gettext_lazy("what it is"), ordering="title")
    def title_and_location(self, obj: RegisterEntry) -> str:
        """What it is, over where it is."""
        return format_html(
            '<span class="source-title">{}</span> <span class="source-path">{}</span>',
            obj.title,
            obj.location,
        )

    @admin.display(description=gettext_lazy("decided by"))
    def person(self, obj: RegisterEntry) -> str:
        """Who decided."""
        return str(obj.decided_by) if obj.decided_by is not None else "–"

    def save_model(
        self,
        request: HttpRequest,
        obj: RegisterEntry,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry; a new decision or reason is this person's."""
        decided = not change or {"decision", "reason"} & set(form.changed_data)
        if decided:
            obj.decided_by = actor_of(request)
            obj.decided_at = timezone.now()
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record(
                actor_of(request),
                obj.decision if decided else "changed",
                obj,
                **self.details_of(obj),
            )


@admin.register(NeverRule)
class NeverRuleAdmin(RegisterAdmin[NeverRule]):
    """What may never enter: one knowledge base, or, set by a superuser, any."""

    form = NeverRuleForm
    recorded = ("kind", "pattern", "reason")
    list_display = ("pattern", "kind", "reason", "holds_for", "person", "created_at")
    list_filter = ("kind", ("knowledge_base", ScopedRelatedFilter))
    search_fields = ("pattern", "reason")
    list_select_related = ("knowledge_base", "created_by")
    change_list_template = "admin/knowledge/neverrule/change_list.html"

    def get_fields(
        self, request: HttpRequest, obj: NeverRule | None = None
    ) -> tuple[str, ...]:
        """Show the knowledge base in words to whoever only reads."""
        if obj is None:
            return ("knowledge_base", "kind", "pattern", "reason")
        where = (
            "knowledge_base"
            if self.has_change_permission(request, obj)
            else "holds_for"
        )
        return (where, "kind", "pattern", "reason", "person", "created_at")

    def get_readonly_fields(
        self, request: HttpRequest, obj: NeverRule | None = None
    ) -> tuple[str, ...]:
        """What the product writes itself."""
        return ("holds_for", "person", "created_at")

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Let only a superuser leave the knowledge base open: the rule holds for all."""
        if request.user.is_superuser:
            kwargs["empty_label"] = _("All knowledge bases")
        else:
            kwargs["required"] = True
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    @admin.display(
        description=gettext_lazy("knowledge base"), ordering="knowledge_base__name"
    )
    def holds_for(self, obj: NeverRule) -> str:
        """Where the rule holds."""
        if obj.knowledge_base is None:
            return _("All knowledge bases")
        return str(obj.knowledge_base)

    @admin.display(description=gettext_lazy("added by"))
    def person(self, obj: NeverRule) -> str:
        """Who added it."""
        return str(obj.created_by) if obj.created_by is not None else "–"

    def has_change_permission(
        self, request: HttpRequest, obj: NeverRule | None = None
    ) -> bool:
        """Keep a rule for all knowledge bases to superusers."""
        return super().has_change_permission(request, obj) and may_touch(request, obj)

    def has_delete_permission(
        self, request: HttpRequest, obj: NeverRule | None = None
    ) -> bool:
        """Keep a rule for all knowledge bases to superusers."""
        return super().has_delete_permission(request, obj) and may_touch(request, obj)

    def save_model(
        self,
        request: HttpRequest,
        obj: NeverRule,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry."""
        if not change:
            obj.created_by = actor_of(request)
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record(
                actor_of(request),
                "changed" if change else "created",
                obj,
                **self.details_of(obj),
            )


def may_touch(request: HttpRequest, rule: NeverRule | None) -> bool:
    """Return whether a person may change a rule that is theirs to see."""
    return (
        rule is None
        or rule.knowledge_base_id is not None
        or bool(request.user.is_superuser)
    )
