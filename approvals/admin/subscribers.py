"""Which agent clients are told of answers, and how."""

import secrets
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import Delivery, Subscriber
from approvals.webhooks import refusal_of
from knowledge.models.audit import record
from knowledge.scoping import ScopedAdmin, actor_of

SECRET_BYTES: Final = 32


class SubscriberForm(forms.ModelForm[Subscriber]):
    """Where the people are whose questions a client asks, and where answers are sent."""

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
    fields = ("channel", "push_url", "last_sequence", "waiting", "problem")
    readonly_fields = ("last_sequence", "waiting", "problem")

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

    def save_model(
        self,
        request: HttpRequest,
        obj: Subscriber,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry; a first address gets its secret, shown once."""
        is_first = bool(obj.push_url) and not obj.push_secret
        if is_first:
            obj.push_secret = f"whsec_{secrets.token_urlsafe(SECRET_BYTES)}"
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record(actor_of(request), "changed", obj, fields=sorted(form.changed_data))
        if is_first:
            said = _("Its messages are signed with this secret. Copy it now:")
            messages.success(
                request, format_html("{} <code>{}</code>", said, obj.push_secret)
            )
