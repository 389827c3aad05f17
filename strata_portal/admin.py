"""The admin site: its titles, its overview, and what must not be in it."""

import shutil
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, QuerySet, Sum
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from approvals.gaps import duration_words
from approvals.queue import backlog_of
from knowledge.embedding import active_space, gateway, is_model_of
from knowledge.inference.gateway import ModelError
from knowledge.models import IngestRun, Original, Source
from knowledge.models.ingest import RunState, Stage
from knowledge.models.source import SourceState
from knowledge.scoping import actor_of, audit_within_scope, within_scope
from knowledge.vitals import vital_signs
from strata_portal.sign_in import AdminSignInForm

MOST_ATTENTION = 10
MOST_RECENT = 8
# Room for one large upload, its copy while it is checked, and the database's own work.
LEAST_FREE_BYTES = 1024**3


class PortalAdminSite(admin.AdminSite):
    """Django's admin as the staff's room of the portal."""

    site_header = gettext_lazy("Strata Portal")
    site_title = gettext_lazy("Strata Portal")
    index_title = gettext_lazy("Overview")
    login_form = AdminSignInForm

    def register(
        self, model_or_iterable: Any, admin_class: Any = None, **options: Any
    ) -> None:
        """Leave out the queue's own pages: whoever may add a schedule has a shell."""
        models: Iterable[Any] = (
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
    runs = within_scope(request, IngestRun.objects.all())
    return {
        "attention": [*waiting_questions(request), *attention(sources)],
        "sources": by_state(sources),
        "stages": stages(runs),
        "waiting": waiting(runs),
        "health": [worker_health(), model_health(), disk_health(request)],
        "recent": audit_within_scope(request).filter(actor=request.user.pk)[
            :MOST_RECENT
        ],
    }


def waiting_questions(request: HttpRequest) -> list[dict[str, str]]:
    """Return the row of the questions that wait for an answer, where there are any."""
    if not request.user.has_perm("approvals.view_pendingquestion"):
        return []
    backlog = backlog_of(actor_of(request))
    if backlog.oldest_at is None:
        return []
    waited = timezone.now() - backlog.oldest_at
    said = ngettext(
        "%(count)s question waits for an answer.",
        "%(count)s questions wait for an answer.",
        backlog.count,
    )
    return [
        {
            "state": "pending",
            "label": _("Waiting"),
            "text": said % {"count": backlog.count},
            "url": reverse("admin:approvals_pendingquestion_changelist"),
            "detail": _("The oldest waits %(time)s.")
            % {"time": duration_words(waited.total_seconds())},
        }
    ]


def attention(sources: QuerySet[Source]) -> list[dict[str, str]]:
    """Return the sources that failed last, each with its sentence."""
    failed = sources.filter(state=SourceState.FAILED).order_by("-changed_at")
    return [
        {
            "state": "failed",
            "label": str(SourceState.FAILED.label),
            "text": source.title,
            "url": reverse("admin:knowledge_source_change", args=[source.pk]),
            "detail": source.state_reason,
        }
        for source in failed[:MOST_ATTENTION]
    ]


def by_state(sources: QuerySet[Source]) -> list[dict[str, Any]]:
    """Return how many sources are in which state."""
    listing = reverse("admin:knowledge_source_changelist")
    counts = dict(sources.order_by().values_list("state").annotate(number=Count("pk")))
    return [
        {
            "state": state,
            "label": label,
            "count": counts[state],
            "url": f"{listing}?state__exact={state}",
        }
        for state, label in SourceState.choices
        if counts.get(state)
    ]


def stages(runs: QuerySet[IngestRun]) -> list[dict[str, Any]]:
    """Return each stage of an ingest: what is in it now, and its last error.

    A stage fails by itself: a file that cannot be read says nothing about vectors
    (S2-ING-16).
    """
    now = dict(
        runs.filter(state=RunState.RUNNING)
        .order_by()
        .values_list("stage")
        .annotate(number=Count("pk"))
    )
    last = {
        run.stage: run
        for run in runs.filter(state=RunState.FAILED)
        .order_by("stage", "-finished_at")
        .distinct("stage")
        .select_related("source")
    }
    rows = []
    for stage, label in Stage.choices:
        error = last.get(stage)
        solved = error is not None and error.source.state == SourceState.READY
        rows.append(
            {
                "label": label,
                "now": now.get(stage, 0),
                "error": error,
                "state": "ready" if error is None or solved else "failed",
                "word": _("No error")
                if error is None
                else (_("Solved since") if solved else _("Failed")),
            }
        )
    return rows


def waiting(runs: QuerySet[IngestRun]) -> list[dict[str, Any]]:
    """Return what waits, and why: for its turn, or for the model server."""
    counts = dict(
        runs.filter(state__in=[RunState.QUEUED, RunState.WAITING])
        .order_by()
        .values_list("state")
        .annotate(number=Count("pk"))
    )
    found = []
    if count := counts.get(RunState.QUEUED):
        sentence = ngettext(
            "%(count)s source waits for its turn.",
            "%(count)s sources wait for their turn.",
            count,
        )
        found.append({"text": sentence % {"count": count}, "detail": ""})
    if count := counts.get(RunState.WAITING):
        sentence = ngettext(
            "%(count)s source waits for the model server.",
            "%(count)s sources wait for the model server.",
            count,
        )
        newest = runs.filter(state=RunState.WAITING).order_by("-due_at").first()
        detail = newest.reason if newest is not None else ""
        found.append({"text": sentence % {"count": count}, "detail": detail})
    return found


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


def model_health() -> dict[str, str]:
    """Return the model server's row: whether it serves the model of the corpus."""
    space = active_space()
    if not settings.PORTAL_EMBEDS:
        return {
            "state": "off",
            "label": _("Off"),
            "text": _("Callers bring their own vectors (PORTAL_EMBEDS is false)."),
            "detail": "",
        }
    try:
        # A description may be an old one; a vector is made now.
        gateway().embed_query(_("Is everything running?"))
        info = gateway().describe()
    except ModelError as error:
        return {
            "state": "failed",
            "label": _("Away"),
            "text": _("The model server gives no vectors: %(why)s") % {"why": error},
            "detail": _("Searches go by words and codes until it answers again."),
        }
    if space is not None and not is_model_of(info, space):
        return {
            "state": "failed",
            "label": _("Other model"),
            "text": _("The model server serves %(model)s, the corpus has %(space)s.")
            % {"model": info.model_id, "space": space},
            "detail": _("Searches go by words and codes until the two agree."),
        }
    return {
        "state": "ready",
        "label": _("Running"),
        "text": _("The model server serves %(model)s (%(dimension)s dimensions).")
        % {"model": info.model_id, "dimension": info.dimension},
        "detail": _("The corpus is indexed with it.")
        if space is not None
        else _("Nothing is indexed yet."),
    }


def disk_health(request: HttpRequest) -> dict[str, str]:
    """Return the row of the disk; of the files on it, those in scope are counted."""
    disk = shutil.disk_usage(settings.VAR_DIR)
    originals = within_scope(request, Original.objects.all())
    taken = originals.aggregate(size=Sum("size", default=0))["size"]
    scarce = disk.free < LEAST_FREE_BYTES
    return {
        "state": "failed" if scarce else "ready",
        "label": _("Nearly full") if scarce else _("Enough"),
        "text": _("Your files take %(taken)s; %(free)s of the disk are free.")
        % {"taken": filesizeformat(taken), "free": filesizeformat(disk.free)},
        "detail": _("Free some space before uploading more.") if scarce else "",
    }
