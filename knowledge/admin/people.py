"""People, roles and API tokens."""

from datetime import timedelta
from typing import Any, TypeVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge import viewing
from knowledge.admin.parts import deletion_of
from knowledge.models import ApiToken, KnowledgeBase, User
from knowledge.models.audit import record
from knowledge.models.token import TokenKind
from knowledge.permissions import EVERYONE
from knowledge.scoping import AuditedAdmin, actor_of
from knowledge.tokens import create_token, revoke_token

Row = TypeVar("Row", bound=models.Model)
# How long a token may be valid, in days.
LIFETIMES = [
    (1, gettext_lazy("1 day")),
    (30, gettext_lazy("30 days")),
    (90, gettext_lazy("90 days")),
    (365, gettext_lazy("1 year")),
]

admin.site.unregister(Group)


class ViewAsForm(forms.Form):
    """Why somebody else's view is looked at; the audit keeps it."""

    reason = forms.CharField(
        label=gettext_lazy("Why?"),
        max_length=viewing.LONGEST_REASON,
        help_text=gettext_lazy(
            "Such as: “asked why the travel rules are missing”. It stays in the audit."
        ),
    )


class AccountAdmin(AuditedAdmin[Row]):
    """Pages of people and groups; each act is recorded where Django logs it."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record that a row was made."""
        record(actor_of(request), "created", obj)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record which fields were changed, a password's too, without their values."""
        fields = [
            str(name)
            for part in message
            for name in part.get("changed", {}).get("fields", ())
        ]
        record(actor_of(request), "changed", obj, fields=fields)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Record each row before it goes."""
        for obj in queryset:
            record(actor_of(request), "deleted", obj)


@admin.register(User)
class PersonAdmin(AccountAdmin[User], UserAdmin):  # type: ignore[type-arg]
    """People; what they may see is decided on the knowledge bases' access pages.

    Who may edit people but is no superuser raises nobody, themselves included: rights,
    roles and the accounts of superusers are out of their reach.
    """

    list_display = ("username", "get_full_name", "email", "is_staff", "is_active")
    fieldsets = (
        *(UserAdmin.fieldsets or ()),
        (gettext_lazy("Department"), {"fields": ("department",)}),
    )

    change_form_template = "admin/knowledge/user/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the page that begins to see the portal as a person."""
        return [
            path(
                "<int:user_id>/view-as/",
                self.admin_site.admin_view(self.view_as_view),
                name="knowledge_user_view_as",
            ),
            *super().get_urls(),
        ]

    def view_as_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Ask for the reason, and begin to see the portal as a person sees it."""
        if not viewing.may_view_as(actor_of(request)):
            raise PermissionDenied
        person = get_object_or_404(User, pk=user_id)
        form = ViewAsForm(request.POST or None, label_suffix="")
        is_possible = person.is_active and person.pk != actor_of(request).pk
        if request.method == "POST" and is_possible and form.is_valid():
            viewing.begin(
                request,
                person,
                actor=actor_of(request),
                reason=form.cleaned_data["reason"],
            )
            return HttpResponseRedirect(reverse("portal:search"))
        return TemplateResponse(
            request,
            "admin/knowledge/user/view_as.html",
            {
                **self.admin_site.each_context(request),
                "title": _("View as %(name)s") % {"name": person},
                "opts": self.opts,
                "person": person,
                "form": form,
                "is_possible": is_possible,
                "minutes": settings.STRATA_VIEW_AS_MINUTES,
            },
        )

    def get_readonly_fields(
        self, request: HttpRequest, obj: User | None = None
    ) -> tuple[str, ...]:
        """Let only superusers give rights."""
        fixed = ("last_login", "date_joined")
        if request.user.is_superuser:
            return fixed
        return (*fixed, "is_staff", "is_superuser", "groups", "user_permissions")

    def has_change_permission(
        self, request: HttpRequest, obj: User | None = None
    ) -> bool:
        """Leave superusers to superusers: a new password would make one of anybody."""
        if obj is not None and obj.is_superuser and not request.user.is_superuser:
            return False
        return super().has_change_permission(request, obj)

    def has_delete_permission(
        self, request: HttpRequest, obj: User | None = None
    ) -> bool:
        """Leave superusers to superusers, and everybody their own account."""
        if obj is not None and obj.is_superuser and not request.user.is_superuser:
            return False
        return super().has_delete_permission(request, obj) and obj != request.user

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Leave out the group that everybody is in without being put there."""
        if db_field.name == "groups":
            kwargs["queryset"] = Group.objects.exclude(name=EVERYONE)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Say what goes along; what a person did stays in the record."""
        lines: list[Any] = [
            _("%(name)s with their grants and API tokens") % {"name": obj}
            for obj in objs
        ]
        return lines, *deletion_of(self, request, objs)


@admin.register(Group)
class RoleAdmin(AccountAdmin[Group], GroupAdmin):
    """Roles and groups, which give rights; the group of everyone stays as it is."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Let only superusers give rights."""
        return super().has_add_permission(request) and request.user.is_superuser

    def has_change_permission(
        self, request: HttpRequest, obj: Group | None = None
    ) -> bool:
        """Let only superusers give rights; the group of everyone stays as it is."""
        if not request.user.is_superuser or (obj is not None and obj.name == EVERYONE):
            return False
        return super().has_change_permission(request, obj)

    def has_delete_permission(
        self, request: HttpRequest, obj: Group | None = None
    ) -> bool:
        """Let only superusers take rights; the group of everyone stays."""
        if not request.user.is_superuser or (obj is not None and obj.name == EVERYONE):
            return False
        return super().has_delete_permission(request, obj)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Say what goes along."""
        lines: list[Any] = [
            _("%(name)s with what it was granted or denied") % {"name": obj}
            for obj in objs
        ]
        return lines, *deletion_of(self, request, objs)


class TokenForm(forms.ModelForm[ApiToken]):
    """A new token: whose, what for, what it reaches and until when."""

    lifetime = forms.TypedChoiceField(
        label=gettext_lazy("Valid for"),
        coerce=int,
        initial=90,
        choices=LIFETIMES,
    )

    class Meta:
        """The fields that the page shows."""

        model = ApiToken
        fields = ("owner", "name", "kind", "covers_all", "knowledge_bases")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # An agent client's token is made on the client's own page.
        self.fields["kind"].choices = [  # type: ignore[attr-defined]
            (kind.value, kind.label)
            for kind in TokenKind
            if kind is not TokenKind.AGENT_CLIENT
        ]

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
class ApiTokenAdmin(AuditedAdmin[ApiToken]):
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
    change_form_template = "admin/knowledge/apitoken/change_form.html"
    readonly_fields = (
        "owner",
        "name",
        "kind",
        "client",
        "prefix",
        "covers_all",
        "scope",
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

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> ApiToken | None:
        """Read of its scope what the person works on; the rest is not named."""
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            bases = KnowledgeBase.objects.administered_by(actor_of(request))
            models.prefetch_related_objects(
                [row], models.Prefetch("knowledge_bases", bases)
            )
        return row

    @admin.display(description=gettext_lazy("knowledge bases"))
    def scope(self, obj: ApiToken) -> str:
        """Name the knowledge bases that it is scoped to."""
        if obj.client_id is not None:
            return _("what the agent client is bound to")
        return ", ".join(str(each) for each in obj.knowledge_bases.all()) or "–"

    def has_delete_permission(
        self, request: HttpRequest, obj: ApiToken | None = None
    ) -> bool:
        """Tokens are revoked, so that what they did stays explained."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: ApiToken | None = None
    ) -> bool:
        """Nothing of a token changes but by revoking it."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Return whether the role may revoke the tokens that it finds here."""
        return request.user.has_perm("knowledge.change_apitoken")

    def get_urls(self) -> list[URLPattern]:
        """Add the button of a token's own page."""
        return [
            path(
                "<int:token_id>/revoke/",
                self.admin_site.admin_view(self.revoke_view),
                name="knowledge_apitoken_revoke",
            ),
            *super().get_urls(),
        ]

    def revoke_view(self, request: HttpRequest, token_id: int) -> HttpResponse:
        """End one token now."""
        row = self.get_object(request, str(token_id))
        if row is None or request.method != "POST":
            raise Http404(_("Not found."))
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        self.revoke(request, self.get_queryset(request).filter(pk=row.pk))
        return HttpResponseRedirect(
            reverse("admin:knowledge_apitoken_change", args=[row.pk])
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Offer to revoke where that would still change something."""
        row = self.get_object(request, object_id)
        context = {
            "may_revoke": row is not None
            and row.revoked_at is None
            and row.expires_at > timezone.now()
            and self.has_revoke_permission(request),
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Make a token and show it, once."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(
            request.POST or None, initial={"owner": request.user.pk}, label_suffix=""
        )
        owners = User.objects.filter(is_active=True)
        if not request.user.is_superuser:
            # Whoever makes a token holds it: one for somebody else would read what
            # that person may read.
            owners = owners.filter(pk=actor_of(request).pk)
        form.fields["owner"].queryset = owners  # type: ignore[attr-defined]
        form.fields["knowledge_bases"].queryset = (  # type: ignore[attr-defined]
            KnowledgeBase.objects.administered_by(actor_of(request))
        )
        token = ""
        if request.method == "POST" and form.is_valid():
            data = form.cleaned_data
            _row, token = create_token(
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
        description=gettext_lazy("Revoke the chosen tokens"), permissions=["revoke"]
    )
    def revoke(self, request: HttpRequest, queryset: models.QuerySet[ApiToken]) -> None:
        """End the chosen tokens now."""
        for row in queryset.filter(
            revoked_at__isnull=True, expires_at__gt=timezone.now()
        ):
            revoke_token(row, actor=actor_of(request))
        self.message_user(request, _("Revoked. They open nothing from now on."))
