"""How members of staff are told of pending questions: each looks after their own."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.mailing import is_address
from approvals.models import Contact, Notification
from approvals.models.notification import ContactKind
from approvals.notifying import rotate_secret, secrets_of
from approvals.webhooks import refusal_of
from knowledge.models import KnowledgeBase, Layer, User
from knowledge.models.audit import record
from knowledge.scoping import ScopedAdmin, actor_of


class ContactForm(forms.ModelForm[Contact]):
    """One way to a person."""

    class Meta:
        """All but what the portal keeps by itself."""

        model = Contact
        fields = (
            "user",
            "kind",
            "address",
            "pace",
            "takes_escalations",
            "layer",
            "is_active",
        )

    def clean(self) -> dict[str, Any]:
        """Refuse an address that the way does not fit, or that nothing may go to."""
        found: dict[str, Any] = super().clean() or {}
        address = found.get("address", "").strip()
        found["address"] = address
        if found.get("kind") == ContactKind.EMAIL:
            problem = "" if is_address(address) else _("This is no address of e-mail.")
        else:
            problem = refusal_of(address)
        if problem:
            self.add_error("address", problem)
        return found


@admin.register(Contact)
class ContactAdmin(ScopedAdmin[Contact]):
    """One's own contacts; a superuser looks after everybody's.

    The secret of a webhook is shown when it is made, and when a new one is.
    """

    form = ContactForm
    list_display = ("user", "kind", "pace", "takes_escalations", "is_active", "state")
    list_filter = ("kind", "pace", "is_active")
    list_select_related = ("user",)
    search_fields = ("user__username",)
    actions = ("give_new_secret",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Contact]:
        """Add what became of the newest message, for all of a list at once."""
        newest = Notification.objects.filter(contact=models.OuterRef("pk")).order_by(
            "-created_at", "-pk"
        )
        return (
            super()
            .get_queryset(request)
            .annotate(
                told_at=models.Subquery(newest.values("created_at")[:1]),
                told_sent_at=models.Subquery(newest.values("sent_at")[:1]),
                told_dropped_at=models.Subquery(newest.values("dropped_at")[:1]),
                told_problem=models.Subquery(newest.values("problem")[:1]),
            )
        )

    @admin.display(description=gettext_lazy("last message"))
    def state(self, obj: Any) -> str:
        """What became of the newest message."""
        if obj.told_at is None:
            return "–"
        if obj.told_sent_at is not None:
            return _("sent")
        if obj.told_dropped_at is not None and not obj.told_problem:
            return _("not needed any more")
        return obj.told_problem or _("waits")

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer oneself, and the layers of what one works on."""
        person = actor_of(request)
        if db_field.name == "user":
            staff = User.objects.filter(is_active=True, is_staff=True)
            kwargs["queryset"] = (
                staff if person.is_superuser else staff.filter(pk=person.pk)
            )
            kwargs["initial"] = person.pk
        else:
            own = KnowledgeBase.objects.administered_by(person)
            kwargs["queryset"] = Layer.objects.filter(
                knowledge_base__in=own
            ).select_related("knowledge_base")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(
        self,
        request: HttpRequest,
        obj: Contact,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry; a new webhook's secret is shown once.

        Of a contact that is there already only what was changed is written, so that a
        new secret or a summary of that moment is not undone.
        """
        with transaction.atomic():
            held = Contact.objects.select_for_update(of=("self",)).filter(pk=obj.pk)
            if not change:
                obj.save()
            elif not held.exists():
                raise Http404(_("Not found."))
            else:
                obj.save(update_fields=form.changed_data)
            record(
                actor_of(request),
                "changed" if change else "created",
                obj,
                fields=sorted(form.changed_data),
            )
        is_new = not change or "kind" in form.changed_data
        if obj.kind == ContactKind.WEBHOOK and is_new:
            self.show_secret(request, obj, secrets_of(obj)[0])

    @admin.action(
        description=gettext_lazy("Give a new secret (the old holds a day)"),
        permissions=["change"],
    )
    def give_new_secret(
        self, request: HttpRequest, queryset: models.QuerySet[Contact]
    ) -> HttpResponse:
        """Give the chosen webhooks new secrets, and show them."""
        for contact in queryset.filter(kind=ContactKind.WEBHOOK):
            secret = rotate_secret(contact, actor=actor_of(request))
            self.show_secret(request, contact, secret)
        return HttpResponseRedirect(reverse("admin:approvals_contact_changelist"))

    def show_secret(self, request: HttpRequest, contact: Contact, secret: str) -> None:
        """Show a secret; it is kept nowhere."""
        said = _("Messages of %(contact)s are signed with this secret. Copy it now:")
        messages.success(
            request,
            format_html("{} <code>{}</code>", said % {"contact": contact}, secret),
        )
