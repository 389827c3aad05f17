"""The search lab: one query under other settings, list beside list (item 13).

It is the engine of every door, for a reader of choice, and leaves no trace (R19).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import number_format
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.actions import ActionError
from knowledge.models import User
from knowledge.permissions import Reader
from knowledge.scoping import AuditedAdmin, actor_of, administered_ids
from retrieval.adjusting import propose_tuning
from retrieval.admin.forms import LabForm
from retrieval.admin.words import shown_changes
from retrieval.bumps import bump_chart
from retrieval.citations import CitedRow, cite, cited_rows
from retrieval.fusion import ranked
from retrieval.measuring import check_proposal
from retrieval.models import SearchLab
from retrieval.reach import Reach
from retrieval.results import Branch, Citation, Level, Match
from retrieval.search import SearchInputError
from retrieval.trying import Trial, try_search
from retrieval.tuning import Tuning, current, differing, values_of

# Rows of each list that are shown and drawn.
DEPTH = 10
NAME_LENGTH = 30
SNIPPET_WORDS = 30
VIEW_AS = "knowledge.view_as"
BRANCHES = {
    Branch.MEANING: gettext_lazy("Meaning"),
    Branch.KEYWORDS: gettext_lazy("Words"),
    Branch.CODES: gettext_lazy("Codes"),
}


@dataclass(frozen=True, slots=True)
class Lists:
    """The ids of each list of a trial, in order."""

    branches: Mapping[Branch, Sequence[int]]
    fused: Sequence[int]
    final: Sequence[int]


def lists_of(trial: Trial) -> Lists:
    """Return a trial's lists; the final one is what a reader gets."""
    return Lists(
        branches={
            branch: [row.passage_id for row, _rank in ranked(rows)]
            for branch in Branch
            if (rows := trial.found.rankings.get(branch))
        },
        fused=[row.passage_id for row in trial.found.fused],
        final=[
            hit.passage_id for hit in trial.result.hits if hit.passage_id is not None
        ],
    )


@admin.register(SearchLab)
class SearchLabAdmin(AuditedAdmin[SearchLab]):
    """One page instead of a list."""

    def get_urls(self) -> list[URLPattern]:
        """Have the page alone."""
        return [
            path(
                "",
                self.admin_site.admin_view(self.lab_view),
                name="retrieval_searchlab_changelist",
            )
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nothing is kept here."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: SearchLab | None = None
    ) -> bool:
        """Nothing is kept here."""
        return False

    def lab_view(self, request: HttpRequest) -> HttpResponse:
        """Show a query's lists under the settings of the sliders."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        tuning = current()
        may_save = request.user.has_perm("retrieval.change_tuningrecord")
        posted = request.method == "POST"
        form = LabForm(
            with_defaults(request.POST if posted else request.GET, tuning),
            tuning=tuning,
            may_view_as=request.user.has_perm(VIEW_AS),
        )
        is_valid = form.is_valid()
        if posted:
            if not may_save:
                raise PermissionDenied
            if is_valid and (answer := self.propose(request, form)):
                return answer
        result = result_of(request, form, tuning) if is_valid else {}
        context = {
            "form": form,
            "result": result,
            "may_save": may_save,
            "is_changed": is_valid and bool(differing(form.tuned(), tuning)),
        }
        if request.GET.get("part") == "result":
            return render(request, "admin/retrieval/lab/result.html", context)
        return TemplateResponse(
            request,
            "admin/retrieval/lab/lab.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Search lab"),
                "opts": self.opts,
                "version": tuning.version,
                **context,
            },
        )

    def propose(self, request: HttpRequest, form: LabForm) -> HttpResponse | None:
        """Take the sliders to the check of the settings page."""
        try:
            proposal = propose_tuning(
                values_of(form.tuned()),
                actor=actor_of(request),
                note=_("From the search lab."),
            )
        except ActionError as error:
            form.add_error(None, str(error))
            return None
        check_proposal(proposal, actor=actor_of(request))
        return HttpResponseRedirect(
            reverse("admin:retrieval_tuningrecord_proposal", args=[proposal.pk])
        )


def with_defaults(sent: Any, tuning: Tuning) -> dict[str, Any]:
    """Return what was sent over the settings that hold; a first visit sends nothing."""
    data = {name: sent.get(name) for name in sent}
    if "fusion" in data:
        return data
    values = values_of(tuning)
    return {
        **{name: value for name, value in values.items() if value is not False},
        **data,
    }


def reader_of(request: HttpRequest, person: User | None) -> Reader:
    """Return who searches: oneself, or another within what oneself works on."""
    if person is None:
        return Reader.for_user(actor_of(request))
    return Reader(
        user_id=person.pk,
        limit=administered_ids(request),
        acting_user_id=actor_of(request).pk,
    )


def result_of(request: HttpRequest, form: LabForm, saved: Tuning) -> dict[str, Any]:
    """Return what the page shows of a query; empty where there is none."""
    query = form.cleaned_data["q"]
    if not query:
        return {}
    person = form.cleaned_data.get("reader")
    reader = reader_of(request, person)
    tuning = form.tuned()
    try:
        trial = try_search(reader, query, tuning, count=DEPTH)
    except SearchInputError as error:
        form.add_error("q", error.message)
        return {}
    before = trial
    if differing(tuning, saved):
        before = try_search(
            reader, query, saved, count=DEPTH, vector=trial.found.vector
        )
    return shown_result(reader, trial, before, changes_of(tuning, saved))


def changes_of(tuning: Tuning, saved: Tuning) -> list[dict[str, str]]:
    """Return what the sliders change, in words."""
    before = values_of(saved)
    return shown_changes(
        {
            name: [before[name], value]
            for name, value in differing(tuning, saved).items()
        }
    )


def shown_result(
    reader: Reader, trial: Trial, before: Trial, changes: list[dict[str, str]]
) -> dict[str, Any]:
    """Return lists, picture and rows of a trial, beside the settings that hold."""
    lists, was = lists_of(trial), lists_of(before)
    columns, columns_before = columns_of(lists), columns_of(was)
    if not trial.found.reranked:
        del columns[_("Reread")]
    wanted = {pk for ids in columns.values() for pk in ids[:DEPTH]}
    wanted |= {pk for pk in was.final if pk not in lists.final}
    reach = Reach.of(reader)
    found = [] if reach.is_empty else cited_rows(reach, sorted(wanted))
    rows = {row.passage_id: row for row in found}
    citations = cite(reach, found)
    marks = {pk: str(number) for number, pk in enumerate(lists.final, 1)}
    return {
        "columns": [
            {
                "name": name,
                "count": len(ids),
                "items": items_of(
                    ids[:DEPTH], columns_before.get(name, ()), rows, citations, marks
                ),
            }
            for name, ids in columns.items()
        ],
        "bumps": bump_chart(
            columns,
            lists.final,
            {pk: Truncator(row.title).chars(NAME_LENGTH) for pk, row in rows.items()},
            depth=DEPTH,
        ),
        "exact": [
            hit.citation for hit in trial.result.hits if hit.match is Match.EXACT
        ],
        "hits": [
            hit_row(rank, hit, lists, was, rows)
            for rank, hit in enumerate(
                (hit for hit in trial.result.hits if hit.passage_id is not None), 1
            )
        ],
        "left": [
            {"title": rows[pk].title, "rank": rank}
            for rank, pk in enumerate(was.final, 1)
            if pk not in lists.final and pk in rows
        ],
        "changes": changes,
        "notices": trial.result.notices,
        "status": status_of(trial),
        "milliseconds": number_format(trial.result.stage_ms.get("total", 0.0), 0),
        "is_reread": bool(trial.found.reranked),
    }


def columns_of(lists: Lists) -> dict[str, Sequence[int]]:
    """Return the lists by the names that the page gives them, in its order."""
    columns: dict[str, Sequence[int]] = {
        str(label): lists.branches[branch]
        for branch, label in BRANCHES.items()
        if branch in lists.branches
    }
    return {**columns, _("Fused"): lists.fused, _("Reread"): lists.final}


def movement(rank: int, passage_id: int, before: Sequence[int]) -> dict[str, Any]:
    """Return how a passage moved against where it stood before."""
    if passage_id not in before:
        return {"is_new": True, "way": "up", "by": 0}
    by = before.index(passage_id) + 1 - rank
    way = "up" if by > 0 else "down" if by < 0 else "same"
    return {"is_new": False, "way": way, "by": abs(by)}


def items_of(
    ids: Iterable[int],
    before: Sequence[int],
    rows: Mapping[int, CitedRow],
    citations: Mapping[int, Citation],
    marks: Mapping[int, str],
) -> list[dict[str, Any]]:
    """Return the items of one list; `mark` is the place in the final one."""
    return [
        {
            "rank": rank,
            "passage_id": pk,
            "mark": marks.get(pk, ""),
            "title": rows[pk].title,
            "place": citations[pk].clause_path or rows[pk].path,
            "url": citations[pk].url,
            **movement(rank, pk, before),
        }
        for rank, pk in enumerate(ids, 1)
        if pk in rows
    ]


def hit_row(
    rank: int, hit: Any, lists: Lists, was: Lists, rows: Mapping[int, CitedRow]
) -> dict[str, Any]:
    """Return one row of the result with its ranks and how it moved."""
    pk = hit.passage_id
    return {
        "rank": rank,
        "passage_id": pk,
        "hit": hit,
        "text": Truncator(rows[pk].text if pk in rows else hit.text).words(
            SNIPPET_WORDS
        ),
        "fused_rank": lists.fused.index(pk) + 1 if pk in lists.fused else None,
        "branches": [
            {
                "label": label,
                "rank": hit.branches[branch].rank if branch in hit.branches else None,
                "score": number_format(hit.branches[branch].score, 3)
                if branch in hit.branches
                else "",
            }
            for branch, label in BRANCHES.items()
        ],
        "score": number_format(hit.score, 4),
        "similarity": number_format(hit.similarity, 3),
        "rerank_score": "–"
        if hit.rerank_score is None
        else number_format(hit.rerank_score, 3),
        **movement(rank, pk, was.final),
    }


def status_of(trial: Trial) -> dict[str, str] | None:
    """Return how sure the result is, in a word and a sentence."""
    sure = trial.result.confidence
    if sure is None:
        return None
    words = {
        Level.HIGH: ("found", _("Found")),
        Level.MEDIUM: ("partly", _("Partly")),
        Level.LOW: ("not-found", _("Not in the documents")),
    }
    state, word = words[sure.level]
    return {"state": state, "word": word, "score": number_format(sure.score, 3)}
