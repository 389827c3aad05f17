"""Runs of question sets: their progress, their figures, and two beside each other."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import number_format
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.admin.parts import is_key
from knowledge.models import User
from knowledge.scoping import ScopedAdmin
from retrieval.admin.words import FIGURES, shown_changes
from retrieval.evaluation import Judgement, change, compare, lowered
from retrieval.measuring import figures_of, judgements, resume
from retrieval.models import QuestionOutcome, SetRun, TuningProposal
from retrieval.models.question_set import SetRunState
from retrieval.tuning import Value, from_environment, values_of

MOST_ROWS = 200
MOST_CHANGED = 200
# The run's states as progress.js and the styles know them.
STATES = {
    SetRunState.QUEUED: "pending",
    SetRunState.RUNNING: "processing",
    SetRunState.DONE: "ready",
    SetRunState.FAILED: "failed",
}
ENDED = (SetRunState.DONE, SetRunState.FAILED)
SHOWN_FIRST = 10


def figure(value: float | None) -> str:
    """Return a figure as it is shown; a dash where nothing was judged."""
    return "–" if value is None else number_format(value, decimal_pos=3)


def difference(before: float | None, after: float | None) -> dict[str, str]:
    """Return what became of a figure: a word for its shape, and the difference."""
    if before is None or after is None:
        return {"way": "", "by": ""}
    gained = round(after - before, 4)
    way = "up" if gained > 0 else "down" if gained < 0 else "same"
    sign = "+" if gained > 0 else "−" if gained < 0 else "±"
    return {"way": way, "by": f"{sign}{number_format(abs(gained), decimal_pos=3)}"}


def figure_rows(before: SetRun | None, after: SetRun) -> list[dict[str, Any]]:
    """Return the guarded figures of a run, beside those of another."""
    return [
        {
            "label": label,
            "before": figure(getattr(before, name)) if before is not None else "",
            "after": figure(getattr(after, name)),
            **difference(
                getattr(before, name) if before is not None else None,
                getattr(after, name),
            ),
        }
        for name, label in FIGURES.items()
    ]


def state_of(run: SetRun) -> dict[str, Any]:
    """Return how a run stands, in the form that progress.js reads."""
    is_done = run.state in ENDED
    return {
        "state": STATES[SetRunState(run.state)],
        "label": capfirst(run.get_state_display()),
        "stage": ""
        if is_done
        else _("%(done)s of %(total)s questions")
        % {"done": run.done, "total": run.total},
        "percent": None if is_done else run.percent,
        "message": run.reason,
        "done": is_done,
    }


def check_rows(proposal: TuningProposal, user: User) -> list[dict[str, Any]]:
    """Return what a proposal does to each set that the person works on."""
    visible = SetRun.objects.administered_by(user)
    checks = list(
        proposal.checks.filter(before__in=visible, after__in=visible).select_related(
            "before__question_set", "after__question_set"
        )
    )
    resume([run for check in checks for run in (check.before, check.after)])
    return [check_row(check.before, check.after) for check in checks]


def check_row(before: SetRun, after: SetRun) -> dict[str, Any]:
    """Return one set before and after a change of the settings."""
    is_done = before.state == after.state == SetRunState.DONE
    moving = [run for run in (before, after) if run.state not in ENDED]
    row: dict[str, Any] = {
        "name": after.question_set.name,
        "before": before,
        "after": after,
        "is_done": is_done,
        "moves": bool(moving),
        "waits_for": [{"run": run, "now": state_of(run)} for run in moving],
        "failed": [run for run in (before, after) if run.state == SetRunState.FAILED],
        "lowered": (),
        "url": compare_url(before, after),
    }
    if is_done:
        told = compare(judgements(before), judgements(after))
        row |= {
            "figures": figure_rows(before, after),
            "lowered": lowered(figures_of(before), figures_of(after)),
            "better": len(told.better),
            "worse": len(told.worse),
            "same": told.same,
        }
    return row


def compare_url(before: SetRun, after: SetRun) -> str:
    """Return the address of two runs beside each other."""
    page = reverse("admin:retrieval_setrun_compare")
    return f"{page}?before={before.pk}&after={after.pk}"


def values_between(
    before: Mapping[str, Value], after: Mapping[str, Value]
) -> list[dict[str, str]]:
    """Return the settings that differ, in words."""
    return shown_changes(
        {
            name: [before[name], value]
            for name, value in after.items()
            if name in before and before[name] != value
        }
    )


@admin.register(SetRun)
class SetRunAdmin(ScopedAdmin[SetRun]):
    """What runs found; nothing is changed here."""

    list_display = (
        "when",
        "question_set",
        "state_now",
        "shown_ndcg",
        "shown_recall",
        "shown_refusals",
        "tuning_version",
        "asked_as_label",
    )
    list_display_links = ("when",)
    list_filter = ("state", "is_trial")
    list_select_related = ("question_set",)
    list_per_page = 50

    def get_urls(self) -> list[URLPattern]:
        """Have the list, a run's page, the comparison, and the progress."""
        view = self.admin_site.admin_view
        return [
            path("", view(self.changelist_view), name="retrieval_setrun_changelist"),
            path("compare/", view(self.compare_view), name="retrieval_setrun_compare"),
            path(
                "progress/", view(self.progress_view), name="retrieval_setrun_progress"
            ),
            path(
                "<int:run_id>/change/",
                view(self.run_view),
                name="retrieval_setrun_change",
            ),
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Runs are asked for on the page of their set."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: SetRun | None = None
    ) -> bool:
        """What was measured stays as it was."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: SetRun | None = None
    ) -> bool:
        """Runs go with their set."""
        return False

    @admin.display(description=gettext_lazy("requested"), ordering="created_at")
    def when(self, obj: SetRun) -> Any:
        """When it was asked for."""
        return obj.created_at

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def state_now(self, obj: SetRun) -> str:
        """How it stands."""
        return capfirst(obj.get_state_display())

    @admin.display(description=gettext_lazy("nDCG@10"), ordering="ndcg")
    def shown_ndcg(self, obj: SetRun) -> str:
        """How high the expected passages stood."""
        return figure(obj.ndcg)

    @admin.display(description=gettext_lazy("recall@5"), ordering="recall")
    def shown_recall(self, obj: SetRun) -> str:
        """How often they were among the first five."""
        return figure(obj.recall)

    @admin.display(
        description=gettext_lazy("right refusals"), ordering="refusal_accuracy"
    )
    def shown_refusals(self, obj: SetRun) -> str:
        """How often it decided rightly to answer or to refuse."""
        return figure(obj.refusal_accuracy)

    def run_or_404(self, request: HttpRequest, key: str) -> SetRun:
        """Return a run in scope; missing, forbidden and malformed answer alike."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        run = None
        if is_key(key):
            rows = self.get_queryset(request).select_related(
                "question_set", "asked_as", "requested_by"
            )
            run = rows.filter(pk=int(key)).first()
        if run is None:
            raise Http404(_("Not found."))
        return run

    def progress_view(self, request: HttpRequest) -> HttpResponse:
        """Answer how the runs asked for stand; what is out of scope is absent."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        keys = [key for key in request.GET.getlist("id")[:MOST_ROWS] if is_key(key)]
        runs = list(self.get_queryset(request).filter(pk__in=keys))
        resume(run for run in runs if run.state not in ENDED)
        return JsonResponse({"rows": {str(run.pk): state_of(run) for run in runs}})

    def run_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Show what one run found, question by question."""
        run = self.run_or_404(request, str(run_id))
        rows = [outcome_row(each) for each in outcomes_of(run)]
        kinds = kinds_of(rows)
        chosen = request.GET.get("only", "")
        if chosen in kinds:
            rows = [row for row in rows if chosen in row["kinds"]]
        return TemplateResponse(
            request,
            "admin/retrieval/sets/run.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Run of %(name)s") % {"name": run.question_set},
                "opts": self.opts,
                "run": run,
                "now": state_of(run),
                "figures": figure_rows(None, run),
                "more": [
                    (
                        _("Of what the documents lack, refused"),
                        figure(run.refusal_recall),
                    ),
                    (_("Of what they answer, refused"), figure(run.false_refusal_rate)),
                ],
                "differs": values_between(values_of(from_environment()), run.values),
                "rows": rows[:MOST_ROWS],
                "hidden": max(len(rows) - MOST_ROWS, 0),
                "kinds": kinds,
                "chosen": chosen,
            },
        )

    def compare_view(self, request: HttpRequest) -> HttpResponse:
        """Show two runs of one set beside each other: what got better, what worse."""
        before = self.run_or_404(request, request.GET.get("before", ""))
        after = self.run_or_404(request, request.GET.get("after", ""))
        if before.question_set_id != after.question_set_id:
            raise Http404(_("Not found."))
        was, now = judgements(before), judgements(after)
        told = compare(was, now)
        found = {
            side: {
                each.question_id: each
                for each in outcomes_of(run).filter(
                    question__in=(*told.worse, *told.better)
                )
            }
            for side, run in (("before", before), ("after", after))
        }
        return TemplateResponse(
            request,
            "admin/retrieval/sets/compare.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Two runs of %(name)s") % {"name": after.question_set},
                "opts": self.opts,
                "before": before,
                "after": after,
                "figures": figure_rows(before, after),
                "lowered": lowered(figures_of(before), figures_of(after)),
                "changes": values_between(before.values, after.values),
                "worse": changed_rows(told.worse, found, was, now),
                "better": changed_rows(told.better, found, was, now),
                "count_worse": len(told.worse),
                "count_better": len(told.better),
                "same": told.same,
                "other_questions": before.set_version != after.set_version,
            },
        )


def outcomes_of(run: SetRun) -> models.QuerySet[QuestionOutcome]:
    """Return a run's outcomes with their questions, in the set's order."""
    return run.outcomes.select_related("question").order_by(
        "question__position", "question_id"
    )


def outcome_row(outcome: QuestionOutcome) -> dict[str, Any]:
    """Return one question of a run as the page shows it."""
    question = outcome.question
    kinds = set()
    if outcome.ndcg is not None and outcome.rank is None:
        kinds.add("missed")
    elif outcome.recall == 0:
        kinds.add("low")
    if outcome.refused is not None and outcome.refused is question.is_answerable:
        kinds.add("refused" if outcome.refused else "answered")
    return {
        "outcome": outcome,
        "question": question,
        "ndcg": figure(outcome.ndcg),
        "decision": decision_of(outcome.refused),
        "kinds": kinds,
    }


def kinds_of(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what can be looked at alone, with how many there are."""
    words = {
        "missed": _("Not among the first ten"),
        "low": _("Below the first five"),
        "refused": _("Refused, though in the documents"),
        "answered": _("Not refused, though not in the documents"),
    }
    every = list(rows)
    return {
        kind: {"label": label, "count": count}
        for kind, label in words.items()
        if (count := sum(1 for row in every if kind in row["kinds"]))
    }


def decision_of(refused: bool | None) -> str:  # noqa: FBT001
    """Return in words whether a search refused."""
    if refused is None:
        return _("not judged")
    return _("refused") if refused else _("answered")


def changed_rows(
    keys: Iterable[int],
    found: Mapping[str, Mapping[int, QuestionOutcome]],
    was: Mapping[int, Judgement],
    now: Mapping[int, Judgement],
) -> list[dict[str, Any]]:
    """Return the questions that changed, with where each expected passage stood."""
    rows = []
    for key in list(keys)[:MOST_CHANGED]:
        before, after = found["before"].get(key), found["after"].get(key)
        if before is None or after is None:
            continue
        rows.append(
            {
                "question": after.question,
                "before": before,
                "after": after,
                "decision_before": decision_of(before.refused),
                "decision_after": decision_of(after.refused),
                "by": difference(0.0, change(was[key], now[key])),
                "hits": side_by_side(before, after),
            }
        )
    return rows


def side_by_side(
    before: QuestionOutcome, after: QuestionOutcome
) -> list[dict[str, Any]]:
    """Return the hits of both runs by rank."""
    return [
        {
            "rank": rank + 1,
            "before": before.hits[rank] if rank < len(before.hits) else None,
            "after": after.hits[rank] if rank < len(after.hits) else None,
        }
        for rank in range(min(max(len(before.hits), len(after.hits)), SHOWN_FIRST))
    ]
