"""The settings of the search: the page, its history, and the check before a save."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from knowledge.actions import ActionError
from knowledge.models import Source
from knowledge.scoping import AuditedAdmin, actor_of
from retrieval.adjusting import propose_return, propose_tuning, save_tuning
from retrieval.admin.forms import SavingForm, TuningForm
from retrieval.admin.set_runs import check_rows
from retrieval.admin.words import GROUPS, shown_changes
from retrieval.measuring import check_proposal
from retrieval.models import TuningProposal, TuningRecord
from retrieval.tuning import (
    current,
    from_environment,
    suits_lexical,
    values_of,
    with_values,
)

MOST_HISTORY = 100


@admin.register(TuningRecord)
class TuningRecordAdmin(AuditedAdmin[TuningRecord]):
    """One page instead of a list: there is one record, and its history."""

    def get_urls(self) -> list[URLPattern]:
        """Have the page, the way back to a version, and the check of a proposal."""
        view = self.admin_site.admin_view
        return [
            path(
                "",
                view(self.settings_view),
                name="retrieval_tuningrecord_changelist",
            ),
            path(
                "return/<int:version>/",
                view(self.return_view),
                name="retrieval_tuningrecord_return",
            ),
            path(
                "proposal/<int:proposal_id>/",
                view(self.proposal_view),
                name="retrieval_tuningrecord_proposal",
            ),
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nothing is added: the record is changed."""
        return False

    def settings_view(self, request: HttpRequest) -> HttpResponse:
        """Show the settings, and take a change to its check."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        may_change = self.has_change_permission(request)
        if request.method == "POST" and not may_change:
            raise PermissionDenied
        tuning = current()
        form = TuningForm(
            request.POST if request.method == "POST" else None, tuning=tuning
        )
        if not may_change:
            for field in form.fields.values():
                field.disabled = True
        elif form.is_bound and form.is_valid():
            try:
                proposal = propose_tuning(
                    values_of(form.tuned()),
                    actor=actor_of(request),
                    note=form.cleaned_data["note"],
                )
            except ActionError as error:
                form.add_error(None, str(error))
            else:
                return self.to_check(request, proposal)
        passages = Source.objects.aggregate(count=Sum("passage_count", default=0))
        return TemplateResponse(
            request,
            "admin/retrieval/tuning/settings.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Search settings"),
                "opts": self.opts,
                "form": form,
                "groups": groups_of(form),
                "may_change": may_change,
                "tuning": tuning,
                "newest": TuningRecord.objects.newest(),
                "suggests_lexical": suits_lexical(tuning, passages["count"]),
                "history": [
                    {"row": row, "changes": shown_changes(row.changes)}
                    for row in TuningRecord.objects.select_related("saved_by")[
                        :MOST_HISTORY
                    ]
                ],
                "differs": values_of(tuning) != values_of(from_environment()),
            },
        )

    def return_view(self, request: HttpRequest, version: int) -> HttpResponse:
        """Propose the settings of an earlier version."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            raise Http404(_("Not found."))
        try:
            proposal = propose_return(version, actor=actor_of(request))
        except ActionError as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(
                reverse("admin:retrieval_tuningrecord_changelist")
            )
        return self.to_check(request, proposal)

    def to_check(self, request: HttpRequest, proposal: TuningProposal) -> HttpResponse:
        """Try a proposal against the question sets and show how that goes."""
        check_proposal(proposal, actor=actor_of(request))
        return HttpResponseRedirect(
            reverse("admin:retrieval_tuningrecord_proposal", args=[proposal.pk])
        )

    def proposal_view(self, request: HttpRequest, proposal_id: int) -> HttpResponse:
        """Show what a proposal changes and what it does to the sets; save it."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        proposal = TuningProposal.objects.filter(
            pk=proposal_id, created_by=actor_of(request)
        ).first()
        if proposal is None:
            raise Http404(_("Not found."))
        rows = check_rows(proposal, actor_of(request))
        form = SavingForm(
            request.POST if request.method == "POST" else None, warning=warning_of(rows)
        )
        if form.is_bound and form.is_valid():
            lowers = tuple(str(row["name"]) for row in rows if row["lowered"])
            try:
                saved = save_tuning(proposal, actor=actor_of(request), lowers=lowers)
            except ActionError as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                self.message_user(
                    request,
                    _("Saved as version %(version)s. It holds from the next search on.")
                    % {"version": saved.version},
                )
            return HttpResponseRedirect(
                reverse("admin:retrieval_tuningrecord_changelist")
            )
        now = current()
        after = values_of(with_values(now, proposal.values))
        changes = {
            name: [value, after[name]]
            for name, value in values_of(now).items()
            if value != after[name]
        }
        return TemplateResponse(
            request,
            "admin/retrieval/tuning/proposal.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Check the new settings"),
                "opts": self.opts,
                "proposal": proposal,
                "changes": shown_changes(changes),
                "rows": rows,
                "form": form,
                "moves": any(row["moves"] for row in rows),
                "is_stale": now.version != proposal.based_on,
            },
        )


def groups_of(form: TuningForm) -> list[dict[str, Any]]:
    """Return the form's fields in their groups, each with what the environment says."""
    return [
        {
            "name": name,
            "label": label,
            "rows": [
                {
                    "field": form[field],
                    "default": form.default_words(field),
                    "is_own": form.is_own(field),
                }
                for field in fields
            ],
        }
        for name, label, fields in GROUPS
    ]


def warning_of(rows: list[dict[str, Any]]) -> str:
    """Return why a save has to be confirmed; empty where nothing speaks against it."""
    lowered = sum(1 for row in rows if row["lowered"])
    if lowered:
        return ngettext(
            "These settings lower the figures of %(count)s question set.",
            "These settings lower the figures of %(count)s question sets.",
            lowered,
        ) % {"count": lowered}
    open_rows = sum(1 for row in rows if not row["is_done"])
    if open_rows:
        return ngettext(
            "%(count)s question set has not been asked to its end.",
            "%(count)s question sets have not been asked to their end.",
            open_rows,
        ) % {"count": open_rows}
    return ""
