"""Which agent clients are told of answers, and how."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import Delivery, Subscriber
from approvals.pushing import secret_for
from approvals.webhooks import refusal_of
from knowledge.models.audit import record
from knowledge.scoping import ScopedAdmin, actor_of


class SubscriberForm(forms.ModelForm[Subscriber]):
    """Where the people are whose questions a client asks, and where answers are sent."""

    push_url = forms.URLField(
        label=gettext_lazy("Send answers to"),
        help_text=gettext_lazy(
            "An address that takes signed messages. Empty: it asks by itself."
        ),
        max_length=500,
        required=False,
        assume_scheme="https",
    )
    renew = forms.BooleanField(
        label=gettext_lazy("Sign with a new secret from now on"), required=False
    )

    class Meta:
        """What can be changed."""

        model = Subscriber
        fields = ("channel", "push_url")

    def clean_push_url(self) -> str:
        """Refuse an address that nothing may be sent to."""
        url: str = self.cleaned_data["push_url"]
        refusal = refusal_of(url) if url else ""
        if refusal:
            raise forms.ValidationError(refusal)
        return url


@admin.register(Subscriber)
class SubscriberAdmin(ScopedAdmin[Subscriber]):
    """Agent clients with what they were told; its channel and address can be changed."""

    form = SubscriberForm
    list_display = ("client", "channel", "way", "last_sequence", "waiting", "problem")
    list_filter = ("channel",)
    list_select_related = ("client",)
    fields = (
        "channel",
        "push_url",
        "secret",
        "renew",
        "last_sequence",
        "waiting",
        "problem",
    )
    readonly_fields = ("secret", "last_sequence", "waiting", "problem")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: a client is here from its first ask on."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Subscriber | None = None
    ) -> bool:
        """Nobody: it goes with its client."""
        return False

    @admin.display(description=gettext_lazy("told by"))
    def way(self, obj: Subscriber) -> str:
        """How it hears of answers."""
        return _("signed messages") if obj.push_url else _("asking by itself")

    @admin.display(description=gettext_lazy("not acknowledged"))
    def waiting(self, obj: Subscriber) -> int:
        """How much it has not confirmed yet."""
        return Delivery.objects.filter(
            client=obj.client_id, acknowledged_at=None
        ).count()

    @admin.display(description=gettext_lazy("last problem"))
    def problem(self, obj: Subscriber) -> str:
        """What went wrong with the last message."""
        return obj.push_problem or "–"

    @admin.display(description=gettext_lazy("signed with"))
    def secret(self, obj: Subscriber) -> str:
        """The secret that its receiver checks messages with."""
        if not obj.push_url:
            return _("It is shown here once there is an address.")
        return format_html("<code>{}</code>", secret_for(obj))

    def save_model(
        self,
        request: HttpRequest,
        obj: Subscriber,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry; what failed before is tried anew."""
        if form.cleaned_data.get("renew"):
            obj.secret_number += 1
        obj.push_attempts, obj.push_after, obj.push_problem = 0, None, ""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record(actor_of(request), "changed", obj, fields=sorted(form.changed_data))
