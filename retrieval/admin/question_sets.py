"""Question sets: their questions, files, runs and figures over time."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import InlineModelAdmin
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.actions import ActionError
from knowledge.admin.parts import deletion_of
from knowledge.models.audit import record
from knowledge.scoping import ScopedAdmin, ScopedRelatedFilter, actor_of, within_scope
from retrieval.admin.forms import ImportForm, QuestionForm, QuestionSetForm, RunForm
from retrieval.admin.set_runs import ENDED, figure, figure_rows, state_of
from retrieval.admin.words import FIGURES
from retrieval.curves import line_chart
from retrieval.exchange import ExchangeError, read_lines, write_csv, write_jsonl
from retrieval.measuring import (
    import_lines,
    line_of,
    over_time,
    questions_changed,
    request_run,
    resume,
)
from retrieval.models import Question, QuestionSet, SetRun
from retrieval.models.question_set import SetRunState
from retrieval.tuning import current

VIEW_AS = "knowledge.view_as"
# More questions than this are edited on pages of their own.
MOST_INLINE = 60
MOST_POINTS = 40
MOST_RUNS = 100
WRITERS = {
    "jsonl": (write_jsonl, "application/jsonl; charset=utf-8"),
    "csv": (write_csv, "text/csv; charset=utf-8"),
}


class QuestionInline(admin.TabularInline[Question, QuestionSet]):
    """The questions of a small set, on its own page."""

    model = Question
    form = QuestionForm
    fields = ("text", "language", "is_answerable", "places", "notes")
    extra = 3
    verbose_name_plural = gettext_lazy("questions")
    formfield_overrides = {
        models.CharField: {
            "widget": admin.widgets.AdminTextareaWidget(attrs={"rows": 2, "cols": 30})
        },
        models.TextField: {
            "widget": admin.widgets.AdminTextareaWidget(attrs={"rows": 2, "cols": 20})
        },
    }


@admin.register(QuestionSet)
class QuestionSetAdmin(ScopedAdmin[QuestionSet]):
    """Sets with what they measure; whoever works on all of their knowledge bases."""

    form = QuestionSetForm
    inlines = (QuestionInline,)
    list_display = ("name", "question_count", "bases", "newest_figures", "runs_link")
    search_fields = ("name", "description")
    change_form_template = "admin/retrieval/questionset/change_form.html"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[QuestionSet]:
        """Add what the list shows."""
        return (
            super()
            .get_queryset(request)
            .prefetch_related("knowledge_bases")
            .annotate(questions_in_it=models.Count("questions"))
        )

    @admin.display(description=gettext_lazy("questions"), ordering="questions_in_it")
    def question_count(self, obj: Any) -> int:
        """How many questions it has."""
        return int(obj.questions_in_it)

    @admin.display(description=gettext_lazy("knowledge bases"))
    def bases(self, obj: QuestionSet) -> str:
        """Which knowledge bases are asked."""
        return ", ".join(base.name for base in obj.knowledge_bases.all())

    @admin.display(description=gettext_lazy("newest figures"))
    def newest_figures(self, obj: QuestionSet) -> str:
        """What the newest finished run measured."""
        run = obj.runs.filter(state=SetRunState.DONE, is_trial=False).first()
        if run is None:
            return _("not run yet")
        return ", ".join(
            f"{label} {figure(getattr(run, name))}" for name, label in FIGURES.items()
        )

    @admin.display(description=gettext_lazy("runs"))
    def runs_link(self, obj: QuestionSet) -> str:
        """Link to its runs."""
        url = reverse("admin:retrieval_questionset_runs", args=[obj.pk])
        return format_html('<a href="{}">{}</a>', url, _("Figures over time"))

    def get_urls(self) -> list[URLPattern]:
        """Add the pages of runs and files."""
        view = self.admin_site.admin_view
        return [
            path(
                "<int:question_set_id>/runs/",
                view(self.runs_view),
                name="retrieval_questionset_runs",
            ),
            path(
                "<int:question_set_id>/import/",
                view(self.import_view),
                name="retrieval_questionset_import",
            ),
            path(
                "<int:question_set_id>/export/<slug:form>/",
                view(self.export_view),
                name="retrieval_questionset_export",
            ),
            *super().get_urls(),
        ]

    def get_inlines(
        self, request: HttpRequest, obj: QuestionSet | None
    ) -> "tuple[type[InlineModelAdmin[Any, Any]], ...]":
        """Leave the questions of a large set to their own pages."""
        if obj is not None and obj.questions.count() > MOST_INLINE:
            return ()
        return (QuestionInline,)

    def get_fields(
        self, request: HttpRequest, obj: QuestionSet | None = None
    ) -> tuple[str, ...]:
        """Offer another person's view only to who may see as others do."""
        fields: tuple[str, ...] = ("name", "description", "knowledge_bases")
        if request.user.has_perm(VIEW_AS):
            fields = (*fields, "asked_as")
        return (*fields, "checks_settings")

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Say how many questions stand on their own pages."""
        found = self.get_object(request, object_id)
        count = found.questions.count() if found is not None else 0
        context = {
            "question_count": count,
            "is_large": count > MOST_INLINE,
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def save_related(
        self,
        request: HttpRequest,
        form: Any,
        formsets: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save set and questions with the audit entry, in one transaction."""
        with transaction.atomic():
            super().save_related(request, form, formsets, change)
            touched = [each for each in formsets if each.has_changed()]
            if touched or "knowledge_bases" in form.changed_data:
                questions_changed(form.instance)
            record(
                actor_of(request),
                "changed" if change else "created",
                form.instance,
                fields=form.changed_data if change else [],
                questions=sum(
                    len(each.new_objects)
                    + len(each.changed_objects)
                    + len(each.deleted_objects)
                    for each in formsets
                ),
            )

    def save_formset(
        self,
        request: HttpRequest,
        form: Any,
        formset: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Let new questions come after those that are there."""
        last = form.instance.questions.aggregate(last=models.Max("position"))["last"]
        for number, each in enumerate(formset.extra_forms, (last or 0) + 1):
            each.instance.position = number
        super().save_formset(request, form, formset, change)

    def details_of(self, obj: QuestionSet) -> dict[str, object]:
        """Return how many questions go with a set."""
        return {"questions": obj.questions.count()}

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Say in figures what goes along."""
        lines: list[Any] = [
            _("%(name)s with its %(questions)s questions and %(runs)s runs")
            % {
                "name": obj,
                "questions": obj.questions.count(),
                "runs": obj.runs.count(),
            }
            for obj in objs
        ]
        return lines, *deletion_of(self, request, objs)

    def set_or_404(self, request: HttpRequest, key: int) -> QuestionSet:
        """Return a set in scope; missing and forbidden answer alike."""
        found = self.get_object(request, str(key))
        if found is None:
            raise Http404(_("Not found."))
        if not self.has_view_permission(request, found):
            raise PermissionDenied
        return found

    def runs_view(self, request: HttpRequest, question_set_id: int) -> HttpResponse:
        """Show the figures over time and the runs; ask for a new one."""
        question_set = self.set_or_404(request, question_set_id)
        may_run = request.user.has_perm("retrieval.run_questionset")
        form = RunForm(
            request.POST if request.method == "POST" else None,
            may_view_as=request.user.has_perm(VIEW_AS),
        )
        if request.method == "POST":
            if not may_run:
                raise PermissionDenied
            if form.is_valid():
                return self.ask(request, question_set, form.cleaned_data)
        visible = SetRun.objects.administered_by(actor_of(request)).filter(
            question_set=question_set
        )
        runs = list(visible[:MOST_RUNS])
        resume(run for run in runs if run.state not in ENDED)
        points = over_time(visible, MOST_POINTS)
        return TemplateResponse(
            request,
            "admin/retrieval/questionset/runs.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Figures of %(name)s") % {"name": question_set},
                "opts": self.opts,
                "original": question_set,
                "form": form,
                "may_run": may_run,
                "question_count": question_set.questions.count(),
                "rows": [
                    {
                        "run": run,
                        "now": state_of(run),
                        "figures": figure_rows(None, run),
                    }
                    for run in runs
                ],
                "labels": list(FIGURES.values()),
                "newest": points[-1] if points else None,
                "newest_figures": figure_rows(
                    points[-2] if len(points) > 1 else None, points[-1]
                )
                if points
                else [],
                "chart": chart_of(points) if len(points) > 1 else None,
            },
        )

    def ask(
        self, request: HttpRequest, question_set: QuestionSet, data: dict[str, Any]
    ) -> HttpResponse:
        """Queue a run under the settings that hold."""
        try:
            request_run(
                question_set,
                current(),
                actor=actor_of(request),
                asked_as=data.get("asked_as"),
                label=data["label"],
            )
        except ActionError as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(request, _("The run is queued."))
        return HttpResponseRedirect(request.path)

    def import_view(self, request: HttpRequest, question_set_id: int) -> HttpResponse:
        """Give the questions as files, and take one."""
        question_set = self.set_or_404(request, question_set_id)
        may_change = self.has_change_permission(request, question_set)
        posted = request.method == "POST"
        if posted and not may_change:
            raise PermissionDenied
        form = ImportForm(
            request.POST if posted else None,
            request.FILES if posted else None,
            label_suffix="",
        )
        if posted and form.is_valid():
            try:
                added, changed = import_lines(
                    question_set,
                    read_lines(form.cleaned_data["file"], form.name),
                    actor=actor_of(request),
                )
            except ExchangeError as error:
                form.add_error("file", str(error))
            else:
                self.message_user(
                    request,
                    _("%(added)s questions are new, %(changed)s were changed.")
                    % {"added": added, "changed": changed},
                )
                return HttpResponseRedirect(
                    reverse(
                        "admin:retrieval_questionset_change", args=[question_set.pk]
                    )
                )
        return TemplateResponse(
            request,
            "admin/retrieval/questionset/import.html",
            {
                **self.admin_site.each_context(request),
                "title": _("%(name)s as files") % {"name": question_set},
                "opts": self.opts,
                "original": question_set,
                "form": form,
                "may_change": may_change,
            },
        )

    def export_view(
        self, request: HttpRequest, question_set_id: int, form: str
    ) -> HttpResponse:
        """Send the questions as a file."""
        question_set = self.set_or_404(request, question_set_id)
        if form not in WRITERS:
            raise Http404(_("Not found."))
        write, kind = WRITERS[form]
        text = write(line_of(question) for question in question_set.questions.all())
        name = slugify(question_set.name) or "questions"
        return HttpResponse(
            text,
            content_type=kind,
            headers={"Content-Disposition": f'attachment; filename="{name}.{form}"'},
        )


def chart_of(runs: list[SetRun]) -> Any:
    """Return the figures of runs over time as a chart."""
    return line_chart(
        {
            str(label): [getattr(run, name) for run in runs]
            for name, label in FIGURES.items()
        },
        [
            date_format(run.finished_at or run.created_at, "SHORT_DATE_FORMAT")
            for run in runs
        ],
    )


class SetFilter(ScopedRelatedFilter):
    """A filter by question set."""


@admin.register(Question)
class QuestionAdmin(ScopedAdmin[Question]):
    """The questions of all sets in scope, one page each."""

    form = QuestionForm
    list_display = ("text", "language", "is_answerable", "question_set")
    list_filter = (("question_set", SetFilter), "language", "is_answerable")
    search_fields = ("text", "notes", "key")
    list_select_related = ("question_set",)
    list_per_page = 50
    fields = ("question_set", "text", "language", "is_answerable", "places", "notes")

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,  # noqa: FBT001, FBT002
        **kwargs: Any,
    ) -> Any:
        """Write the question in a field of several lines."""
        kwargs.setdefault("widgets", {})["text"] = admin.widgets.AdminTextareaWidget(
            attrs={"rows": 2}
        )
        return super().get_form(request, obj, change=change, **kwargs)

    def save_model(
        self,
        request: HttpRequest,
        obj: Question,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry of its set."""
        with transaction.atomic():
            if not change:
                last = obj.question_set.questions.aggregate(last=models.Max("position"))
                obj.position = (last["last"] or 0) + 1
            super().save_model(request, obj, form, change)
            questions_changed(obj.question_set)
            if change and "question_set" in form.changed_data:
                for each in QuestionSet.objects.filter(pk=form.initial["question_set"]):
                    questions_changed(each)
            record(actor_of(request), "changed", obj.question_set, questions=1)

    def delete_model(self, request: HttpRequest, obj: Question) -> None:
        """Delete with the audit entry of its set."""
        self.delete_queryset(request, Question.objects.filter(pk=obj.pk))

    def delete_queryset(
        self, request: HttpRequest, queryset: models.QuerySet[Question]
    ) -> None:
        """Delete with an audit entry for each set."""
        rows = within_scope(request, Question.objects.filter(pk__in=queryset))
        with transaction.atomic():
            sets = QuestionSet.objects.filter(questions__in=rows).distinct()
            for question_set in list(sets):
                gone, _kinds = rows.filter(question_set=question_set).delete()
                questions_changed(question_set)
                record(actor_of(request), "changed", question_set, deleted=gone)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Name what goes."""
        return [str(obj) for obj in objs], *deletion_of(self, request, objs)
