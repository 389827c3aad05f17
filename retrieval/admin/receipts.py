"""Receipts as staff see them: that they are there and hold, but no word of them."""

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.admin.parts import Reading
from knowledge.admin.records import RecordAdmin
from knowledge.permissions import Reader
from knowledge.scoping import actor_of
from retrieval.models import Receipt
from retrieval.opening import check, find_receipt
from retrieval.proof import Outcome

# How an outcome is drawn, by the states of the style sheet.
STATES = {
    Outcome.INTACT: ("found", gettext_lazy("as it was issued")),
    Outcome.CHANGED: ("failed", gettext_lazy("changed after it was issued")),
    Outcome.UNKNOWN_KEY: ("failed", gettext_lazy("signed with an unknown key")),
}


@admin.register(Receipt)
class ReceiptAdmin(RecordAdmin[Receipt]):
    """Those that read nothing but what the person works on.

    Who administers a knowledge base has no right to read it by that (D27): the words
    are on the portal's page, for those who may open it.
    """

    list_display = ("public_id", "number", "kind", "issued_at", "passages", "removed")
    list_filter = ("kind",)
    search_fields = ("public_id",)
    date_hierarchy = "issued_at"
    list_per_page = 50
    fields = (
        "public_id",
        "number",
        "kind",
        "issued_at",
        "integrity",
        "knowledge_bases",
        "passages",
        "removed",
        "interaction",
        "key_id",
        "sha256",
    )
    readonly_fields = ("integrity", "knowledge_bases", "passages", "removed")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Receipt]:
        """Count the passages and find the purges in the same query."""
        rows = super().get_queryset(request).defer("signature")
        return rows.annotate(
            read_count=models.Count("reads", distinct=True),
            last_removed_at=models.Max("words__removed_at"),
        )

    @admin.display(description=gettext_lazy("passages"))
    def passages(self, obj: Any) -> int:
        """How many passages were read."""
        return int(obj.read_count)

    @admin.display(description=gettext_lazy("words removed"))
    def removed(self, obj: Any) -> str:
        """When words of it were erased for good."""
        when = obj.last_removed_at
        return date_format(when, "DATE_FORMAT") if when is not None else "–"

    @admin.display(description=gettext_lazy("checked now"))
    def integrity(self, obj: Receipt) -> str:
        """Whether it holds, as word and shape."""
        state, word = STATES[check(obj).outcome]
        return format_html(
            '<span class="state state-plain" data-state="{}">{}</span>', state, word
        )

    @admin.display(description=gettext_lazy("knowledge bases"))
    def knowledge_bases(self, obj: Receipt) -> str:
        """What it was read from, as far as that is still there."""
        names = {
            str(row.knowledge_base)
            for row in obj.reads.select_related("knowledge_base")
            if row.knowledge_base is not None
        }
        return ", ".join(sorted(names)) or _("gone")

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Say where it is read."""
        context = dict(extra_context or {})
        receipt = self.get_object(request, object_id)
        if receipt is not None:
            reader = Reader.for_user(actor_of(request))
            if find_receipt(reader, receipt.public_id) is not None:
                url = reverse("portal:receipt", args=[receipt.public_id])
                context["reading"] = Reading(url, "")
            else:
                why = _(
                    "The portal does not show it to you: you may not search all that was "
                    "read for it."
                )
                context["reading"] = Reading("", why)
        return super().change_view(request, object_id, form_url, context)
