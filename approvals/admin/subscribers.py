"""Which agent clients are told of answers, and how."""

from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.db import models, transaction
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import Delivery, Subscriber
from approvals.pushing import secret_for
from approvals.webhooks import refusal_of
from knowledge.models.audit import record
from knowledge.scoping import ScopedAdmin, actor_of

# What a form may change of a client at the outbox.
WRITTEN: Final = (
    "channel",
    "push_url",
    "secret_number",
    "push_attempts",
    "push_after",
    "push_problem",
)


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
    list_display = ("client", "channel", "way", "so_far", "waiting", "problem")
    list_filter = ("channel",)
    list_select_related = ("client",)
    fields = (
        "channel",
        "push_url",
        "renew",
        "so_far",
        "waiting",
        "problem",
    )
    readonly_fields = ("so_far", "waiting", "problem")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Subscriber]:
        """Add how much is not confirmed yet, for all of a list at once."""
        unconfirmed = (
            Delivery.objects.filter(
                client=models.OuterRef("client"), acknowledged_at=None
            )
            .order_by()
            .values("client")
            .annotate(number=models.Count("pk"))
        )
        return (
            super()
            .get_queryset(request)
            .annotate(
                unconfirmed=Coalesce(models.Subquery(unconfirmed.values("number")), 0)
            )
        )

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

    @admin.display(
        description=gettext_lazy("deliveries so far"), ordering="last_sequence"
    )
    def so_far(self, obj: Subscriber) -> int:
        """How much it was told or is to be told: numbers have no gap."""
        return obj.last_sequence

    @admin.display(description=gettext_lazy("not acknowledged"))
    def waiting(self, obj: Any) -> int:
        """How much it has not confirmed yet."""
        return int(obj.unconfirmed)

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
        """Save with the audit entry; what failed before is tried anew.

        Only what the form decides is written: deliveries are numbered meanwhile. The
        secret is shown when messages begin, and when it is a new one.
        """
        renews = bool(form.cleaned_data.get("renew"))
        obj.push_attempts, obj.push_after, obj.push_problem = 0, None, ""
        with transaction.atomic():
            rows = Subscriber.objects.select_for_update(of=("self",))
            held = rows.filter(pk=obj.pk).first()
            if held is None:
                raise Http404(_("Not found."))
            obj.secret_number = held.secret_number + renews
            obj.save(update_fields=WRITTEN)
            record(actor_of(request), "changed", obj, fields=sorted(form.changed_data))
        if obj.push_url and (renews or not held.push_url):
            said = _("Answers to %(client)s are signed with this secret. Copy it now:")
            messages.success(
                request,
                format_html(
                    "{} <code>{}</code>", said % {"client": obj}, secret_for(obj)
                ),
            )
