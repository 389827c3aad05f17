"""Agent clients: what each is bound to, how little it may ask, and its tokens."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.admin.people import LIFETIMES
from knowledge.models import AgentClient, KnowledgeBase, User
from knowledge.models.audit import record
from knowledge.scoping import ScopedAdmin, actor_of
from knowledge.tokens import create_agent_token


class AgentTokenForm(forms.Form):
    """A new token of an agent client."""

    name = forms.CharField(
        label=gettext_lazy("What the token is for"),
        max_length=120,
        help_text=gettext_lazy("Such as the machine that the agent runs on."),
    )
    lifetime = forms.TypedChoiceField(
        label=gettext_lazy("Valid for"), coerce=int, initial=90, choices=LIFETIMES
    )


@admin.register(AgentClient)
class AgentClientAdmin(ScopedAdmin[AgentClient]):
    """Agent clients, each the business of whoever it acts for.

    A client is never deleted, so that what it did stays explained: it is switched off,
    or its tokens are revoked.
    """

    list_display = (
        "name",
        "owner",
        "bound_to",
        "search_enabled",
        "most_results",
        "live_tokens",
    )
    list_filter = ("search_enabled",)
    search_fields = ("name", "owner__username")
    list_select_related = ("owner",)
    change_form_template = "admin/knowledge/agentclient/change_form.html"
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "owner",
                    "name",
                    "knowledge_bases",
                    "search_enabled",
                    "most_results",
                    "recalls_memory",
                )
            },
        ),
        (
            gettext_lazy("Narrower than everywhere"),
            {
                "description": gettext_lazy(
                    "Empty: as the settings of all searches say. Nothing here can "
                    "widen them."
                ),
                "fields": (
                    "search_type",
                    "count",
                    "similarity_floor",
                    "keyword_weight",
                ),
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[AgentClient]:
        """Return one's own clients, all of them for a superuser, and what is listed."""
        live = models.Q(tokens__revoked_at__isnull=True) & models.Q(
            tokens__expires_at__gt=models.functions.Now()
        )
        return (
            AgentClient.objects.administered_by(actor_of(request))
            .order_by("name", "pk")
            .annotate(tokens_alive=models.Count("tokens", filter=live, distinct=True))
            .prefetch_related(
                models.Prefetch(
                    "knowledge_bases",
                    KnowledgeBase.objects.administered_by(actor_of(request)),
                    to_attr="bindings_in_scope",
                )
            )
        )

    @admin.display(description=gettext_lazy("bound to"))
    def bound_to(self, obj: Any) -> str:
        """Name the bindings that the person works on."""
        return ", ".join(str(each) for each in obj.bindings_in_scope) or "–"

    @admin.display(description=gettext_lazy("live tokens"))
    def live_tokens(self, obj: Any) -> int:
        """How many tokens open something."""
        return int(obj.tokens_alive)

    def get_readonly_fields(
        self, request: HttpRequest, obj: AgentClient | None = None
    ) -> tuple[str, ...]:
        """Keep a client with whom it acts for: their tokens are out there."""
        return ("owner",) if obj is not None else ()

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer as owner oneself; a superuser may choose anybody who is active.

        Whoever makes a client's token reads what its owner may read.
        """
        owners = User.objects.filter(is_active=True)
        if not request.user.is_superuser:
            owners = owners.filter(pk=actor_of(request).pk)
        kwargs["queryset"] = owners
        kwargs["initial"] = request.user.pk
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer the knowledge bases as a list to tick."""
        kwargs["widget"] = forms.CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def has_delete_permission(
        self, request: HttpRequest, obj: AgentClient | None = None
    ) -> bool:
        """Clients stay, so that their turns stay explained."""
        return False

    def save_model(
        self,
        request: HttpRequest,
        obj: AgentClient,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record(
                actor_of(request),
                "changed" if change else "created",
                obj,
                fields=form.changed_data if change else [],
            )

    def save_related(
        self,
        request: HttpRequest,
        form: Any,
        formsets: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Leave bindings alone that the person was not shown."""
        bindings = form.instance.knowledge_bases
        shown = KnowledgeBase.objects.administered_by(actor_of(request))
        kept = list(bindings.exclude(pk__in=shown.values("pk")))
        super().save_related(request, form, formsets, change)
        bindings.add(*kept)

    def get_urls(self) -> list[URLPattern]:
        """Add the page that makes a token."""
        return [
            path(
                "<int:client_id>/token/",
                self.admin_site.admin_view(self.token_view),
                name="knowledge_agentclient_token",
            ),
            *super().get_urls(),
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the client's tokens beside its settings."""
        client = self.get_object(request, object_id)
        context = {
            "tokens": client.tokens.all() if client is not None else (),
            "may_make_token": request.user.has_perm("knowledge.add_apitoken"),
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def token_view(self, request: HttpRequest, client_id: int) -> HttpResponse:
        """Make a token of one client and show it, once."""
        client = self.get_object(request, str(client_id))
        if client is None:
            raise Http404(_("Not found."))
        if not request.user.has_perm("knowledge.add_apitoken"):
            raise PermissionDenied
        form = AgentTokenForm(request.POST or None, label_suffix="")
        token = ""
        if request.method == "POST" and form.is_valid():
            _row, token = create_agent_token(
                client,
                name=form.cleaned_data["name"],
                lifetime=timedelta(days=form.cleaned_data["lifetime"]),
                actor=actor_of(request),
            )
        response = TemplateResponse(
            request,
            "admin/knowledge/agentclient/token.html",
            {
                **self.admin_site.each_context(request),
                "title": _("New token of %(name)s") % {"name": client},
                "opts": self.opts,
                "original": client,
                "form": form,
                "token": token,
            },
        )
        response["Cache-Control"] = "no-store"
        return response
