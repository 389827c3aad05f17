"""People, roles and API tokens."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.models import ApiToken, KnowledgeBase, User
from knowledge.models.audit import record
from knowledge.models.token import TokenKind
from knowledge.permissions import EVERYONE
from knowledge.scoping import actor_of
from knowledge.tokens import create_token, revoke_token

admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    """People; what they may see is decided on the knowledge bases' access pages."""

    list_display = ("username", "get_full_name", "email", "is_staff", "is_active")

    def save_model(
        self, request: HttpRequest, obj: User, form: Any, change: bool
    ) -> None:
        """Save with the audit entry."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record(
                actor_of(request),
                "changed" if change else "created",
                obj,
                fields=[name for name in form.changed_data if "password" not in name],
            )

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Delete with the audit entry; tokens and grants go along."""
        with transaction.atomic():
            record(actor_of(request), "deleted", obj)
            super().delete_model(request, obj)


@admin.register(Group)
class RoleAdmin(GroupAdmin):
    """Roles and groups. The group of everyone has no members to edit."""

    def has_change_permission(
        self, request: HttpRequest, obj: Group | None = None
    ) -> bool:
        """Leave the group of everyone as it is."""
        if obj is not None and obj.name == EVERYONE:
            return False
        return super().has_change_permission(request, obj)

    def has_delete_permission(
        self, request: HttpRequest, obj: Group | None = None
    ) -> bool:
        """Leave the group of everyone where it is."""
        if obj is not None and obj.name == EVERYONE:
            return False
        return super().has_delete_permission(request, obj)


class TokenForm(forms.ModelForm[ApiToken]):
    """A new token: whose, what for, what it reaches and until when."""

    lifetime = forms.TypedChoiceField(
        label=gettext_lazy("Valid for"),
        coerce=int,
        initial=90,
        choices=[
            (1, gettext_lazy("1 day")),
            (30, gettext_lazy("30 days")),
            (90, gettext_lazy("90 days")),
            (365, gettext_lazy("1 year")),
        ],
    )

    class Meta:
        """The fields that the page shows."""

        model = ApiToken
        fields = ("owner", "name", "kind", "covers_all", "knowledge_bases")

    def clean(self) -> dict[str, Any]:
        """Refuse a token that would open nothing or more than was meant."""
        data: dict[str, Any] = super().clean() or {}
        chosen = data.get("knowledge_bases")
        if bool(data.get("covers_all")) == bool(chosen):
            raise forms.ValidationError(
                _("Choose either all of the owner's knowledge bases or some of them.")
            )
        return data


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin[ApiToken]):
    """API tokens. A token is shown once, when it is made."""

    list_display = (
        "name",
        "owner",
        "kind",
        "prefix",
        "expires_at",
        "revoked_at",
        "last_used_at",
    )
    list_filter = ("kind",)
    search_fields = ("name", "prefix", "owner__username")
    list_select_related = ("owner",)
    actions = ("revoke",)
    readonly_fields = (
        "owner",
        "name",
        "kind",
        "prefix",
        "covers_all",
        "knowledge_bases",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    )
    fields = readonly_fields

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ApiToken]:
        """Own tokens; all of them for a superuser."""
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        return rows.filter(owner_id=request.user.pk)

    def has_delete_permission(
        self, request: HttpRequest, obj: ApiToken | None = None
    ) -> bool:
        """Tokens are revoked, so that what they did stays explained."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: ApiToken | None = None
    ) -> bool:
        """Return whether the role may revoke; nothing else of a token changes."""
        allowed = super().has_change_permission(request, obj)
        if obj is None:
            return allowed
        return allowed and self.get_queryset(request).filter(pk=obj.pk).exists()

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Make a token and show it, once."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(request.POST or None, initial={"owner": request.user.pk})
        owners = User.objects.filter(is_active=True)
        if not request.user.is_superuser:
            # Whoever makes a token holds it: one for somebody else would read what
            # that person may read.
            owners = owners.filter(pk=request.user.pk)
        form.fields["owner"].queryset = owners  # type: ignore[attr-defined]
        form.fields["knowledge_bases"].queryset = (  # type: ignore[attr-defined]
            KnowledgeBase.objects.administered_by(actor_of(request))
        )
        token = ""
        if request.method == "POST" and form.is_valid():
            data = form.cleaned_data
            row, token = create_token(
                owner=data["owner"],
                name=data["name"],
                kind=data["kind"],
                knowledge_bases=None if data["covers_all"] else data["knowledge_bases"],
                lifetime=timedelta(days=data["lifetime"]),
                actor=actor_of(request),
            )
        response = TemplateResponse(
            request,
            "admin/knowledge/apitoken/add.html",
            {
                **self.admin_site.each_context(request),
                "title": _("New API token"),
                "opts": self.opts,
                "form": form,
                "token": token,
                "kinds": TokenKind,
                **(extra_context or {}),
            },
        )
        response["Cache-Control"] = "no-store"
        return response

    @admin.action(
        description=gettext_lazy("Revoke the chosen tokens"), permissions=["change"]
    )
    def revoke(self, request: HttpRequest, queryset: models.QuerySet[ApiToken]) -> None:
        """End the chosen tokens now."""
        for row in queryset.filter(
            revoked_at__isnull=True, expires_at__gt=timezone.now()
        ):
            revoke_token(row, actor=actor_of(request))
        self.message_user(request, _("Revoked. They open nothing from now on."))
