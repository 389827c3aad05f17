"""The admin site: its titles, its overview, and what must not be in it."""

from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.models import Source
from knowledge.models.source import SourceState
from knowledge.scoping import within_scope
from knowledge.vitals import vital_signs

MOST_ATTENTION = 10


class PortalAdminSite(admin.AdminSite):
    """Django's admin as the staff's room of the portal."""

    site_header = gettext_lazy("Strata Portal")
    site_title = gettext_lazy("Strata Portal")
    index_title = gettext_lazy("Overview")

    def register(
        self, model_or_iterable: Any, admin_class: Any = None, **options: Any
    ) -> None:
        """Leave out the queue's own pages: whoever may add a schedule has a shell."""
        models = (
            [model_or_iterable]
            if isinstance(model_or_iterable, type)
            else model_or_iterable
        )
        kept = [model for model in models if model._meta.app_label != "django_q"]
        super().register(kept, admin_class, **options)

    def get_urls(self) -> list[URLResolver | URLPattern]:
        """Leave out `r/`, which tells of rows that the person does not administer."""
        return [
            url
            for url in super().get_urls()
            if getattr(url, "name", None) != "view_on_site"
        ]

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show what needs attention, the sources by state, and the worker's health."""
        context = {"dashboard": dashboard_of(request), **(extra_context or {})}
        return super().index(request, context)


def dashboard_of(request: HttpRequest) -> dict[str, Any] | None:
    """Return what `admin/index.html` shows, within the person's scope."""
    if not request.user.has_perm("knowledge.view_source"):
        return None
    sources = within_scope(request, Source.objects.all())
    listing = reverse("admin:knowledge_source_changelist")
    counts = dict(
        sources.order_by().values_list("state").annotate(number=Count("pk"))
    )
    labels = dict(SourceState.choices)
    failed = sources.filter(state=SourceState.FAILED).order_by("-changed_at")
    return {
        "attention": [
            {
                "state": "failed",
                "label": capfirst(labels[SourceState.FAILED]),
                "text": source.title,
                "url": reverse("admin:knowledge_source_change", args=[source.pk]),
                "detail": source.state_reason,
            }
            for source in failed[:MOST_ATTENTION]
        ],
        "sources": [
            {
                "state": state,
                "label": capfirst(label),
                "count": counts[state],
                "url": f"{listing}?state__exact={state}",
            }
            for state, label in labels.items()
            if counts.get(state)
        ],
        "health": [worker_health()],
    }


def worker_health() -> dict[str, str]:
    """Return the worker's row of the overview."""
    trouble = vital_signs().trouble()
    if not trouble:
        return {
            "state": "ready",
            "label": _("Running"),
            "text": _("The worker takes in new files."),
            "detail": "",
        }
    return {
        "state": "failed",
        "label": _("Stuck"),
        "text": trouble,
        "detail": _("New files wait until it runs again. They are not lost."),
    }
