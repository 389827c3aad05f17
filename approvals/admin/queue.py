"""The queue of pending questions: where staff spend their day.

Each address does one domain call; what a person may do is decided there, at that
moment, and only foreshadowed by what a page offers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from approvals import actions, instruction
from approvals.admin.acting import BULK_VERBS, VERBS, colleagues_of, merge_all
from approvals.admin.forms import GUARDED, AnswerForm
from approvals.admin.marking import shown_marks
from approvals.admin.showing import (
    TABS,
    WORKED_ON,
    item_of,
    part_of,
    part_with,
    summary_of,
    tabs_of,
    writer_of,
)
from approvals.admin.story import Story, preview_of, story_of
from approvals.errors import ConflictError
from approvals.gaps import FATES, gaps
from approvals.models import PendingQuestion
from approvals.models.question import State
from approvals.rights import ANSWER
from knowledge.actions import ActionError
from knowledge.scoping import ScopedAdmin, actor_of
from knowledge.scrubbing import ScrubbingError

ON_A_PAGE: Final = 50
LONGEST_WORDS: Final = 200
WEEKS: Final = (13, 26, 52)
SPANS: Final = (
    (1, gettext_lazy("a day")),
    (7, gettext_lazy("a week")),
    (30, gettext_lazy("30 days")),
)
BULK_ACTS: Final = (
    ("assign", gettext_lazy("Assign them")),
    ("snooze", gettext_lazy("Snooze them")),
    ("merge", gettext_lazy("Merge them into one")),
    ("ignore", gettext_lazy("Ignore them")),
)
# After these a question has left the part of the queue that it was opened from.
LEAVING: Final = {"answer", "approve", "send_back", "ignore", "merge", "snooze"}


@admin.register(PendingQuestion)
class PendingQuestionAdmin(ScopedAdmin[PendingQuestion]):
    """The list, each question with its story, and what can be done from there."""

    def get_urls(self) -> list[URLPattern]:
        """Add the figures, the bulk acts, and what one question's page asks for."""
        view = self.admin_site.admin_view
        return [
            path("gaps/", view(self.gaps_view), name="approvals_pendingquestion_gaps"),
            path("bulk/", view(self.bulk_view), name="approvals_pendingquestion_bulk"),
            *(
                path(
                    f"<int:question_id>/{name}/",
                    view(getattr(self, f"{name}_view")),
                    name=f"approvals_pendingquestion_{name}",
                )
                for name in ("act", "marks", "preview", "lock")
            ),
            *super().get_urls(),
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: a question comes from whoever asked it."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: PendingQuestion | None = None
    ) -> bool:
        """Nobody: what is done to a question is done by the verbs."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: PendingQuestion | None = None
    ) -> bool:
        """Nobody: a question that is not to be answered is ignored."""
        return False

    # --- Pages ------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show a part of the queue, and how it stands."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self.page(request, extra_context or {})

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one question with its story, beside the list that it is in."""
        pending = self.question(request, object_id)
        return self.story_page(request, pending, None)

    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show what was done to a question under its own words."""
        pending = self.question(request, object_id)
        title = _("History of “%(question)s”") % {"question": pending.question}
        context = {"title": title, **(extra_context or {})}
        return super().history_view(request, object_id, context)

    def story_page(
        self,
        request: HttpRequest,
        pending: PendingQuestion,
        form: AnswerForm | None,
        *,
        with_preview: bool = False,
        status: int = 200,
    ) -> HttpResponse:
        """Show one question; `form` is what was sent, where it has to be seen again."""
        actor = actor_of(request)
        edits = form is not None or "edit" in request.GET
        story = story_of(pending, actor, words_of(request), edits=edits)
        form = form or AnswerForm(pending=pending, actor=actor)
        context = {
            "story": story,
            "form": form,
            **marks_of(
                {name: str(form[name].value() or "") for name in GUARDED}, request
            ),
            "with_preview": with_preview,
            "preview": preview_of(form) if with_preview else None,
            # What was sent for a question that takes no answer any more.
            "is_unsent": form.is_bound and not story.may_answer,
        }
        return self.page(request, context, story=story, status=status)

    def page(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *,
        story: Story | None = None,
        status: int = 200,
    ) -> HttpResponse:
        """Show the list with what stands beside it."""
        actor = actor_of(request)
        show, query = shown_part(request)
        if story is not None and "show" not in request.GET:
            # Come from a message, a question opens in the part that it stands in.
            show = part_with(story.item.pending)
        questions = self.get_queryset(request)
        pages = Paginator(part_of(questions, actor, show, query), ON_A_PAGE)
        page = pages.get_page(request.GET.get("page"))
        here = story.item.pending.pk if story is not None else None
        words = address_of(request, show)
        return TemplateResponse(
            request,
            "admin/approvals/queue.html",
            {
                **self.admin_site.each_context(request),
                "title": story.item.pending.title
                if story is not None
                else str(self.opts.verbose_name_plural).capitalize(),
                "opts": self.opts,
                "tabs": tabs_of(questions, actor, show),
                "current": show,
                "current_label": TABS[show][0],
                "query": query,
                "words": words,
                "items": [
                    item_of(each, actor, words, is_current=each.pk == here)
                    for each in page.object_list
                ],
                "page": page,
                "page_numbers": list(pages.get_elided_page_range(page.number)),
                "may_settle": show in WORKED_ON and actor.has_perm(ANSWER),
                "people": colleagues_of(actor) if actor.has_perm(ANSWER) else (),
                "is_wanted_first": not TABS[show][1],
                "spans": SPANS,
                "bulk_acts": BULK_ACTS,
                "summary": summary_of(questions, actor) if story is None else (),
                "instruction": instruction,
                "story": None,
                **context,
            },
            status=status,
        )

    def question(self, request: HttpRequest, key: object) -> PendingQuestion:
        """Return one question; raises PermissionDenied and Http404."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self.get_object(request, str(key))
        if found is None:
            raise Http404(_("Not found."))
        return found

    def sent_question(self, request: HttpRequest, key: int) -> PendingQuestion:
        """Return the question that a form was sent for."""
        pending = self.question(request, key)
        if request.method != "POST":
            raise Http404(_("Not found."))
        return pending

    # --- What is done -------------------------------------------------------------

    def act_view(self, request: HttpRequest, question_id: int) -> HttpResponse:
        """Do one thing to a question."""
        pending = self.sent_question(request, question_id)
        name = request.POST.get("act", "")
        if name in {"answer", "change", "preview"}:
            return self.answered(request, pending, name)
        if name not in VERBS:
            raise Http404(_("Not found."))
        after = self.after(request, pending, name)
        try:
            said = VERBS[name](pending, actor_of(request), request.POST)
        except ActionError as refused:
            messages.error(request, str(refused))
            after = page_of(pending, request)
        else:
            messages.success(request, said)
        return HttpResponseRedirect(after)

    def answered(
        self, request: HttpRequest, pending: PendingQuestion, name: str
    ) -> HttpResponse:
        """Take an answer, or show again what was written and what is in its way."""
        actor = actor_of(request)
        form = AnswerForm(request.POST, pending=pending, actor=actor)
        if not form.is_valid() or name == "preview":
            return self.story_page(
                request, pending, form, with_preview=name == "preview"
            )
        after = self.after(request, pending, name)
        write = actions.change_answer if name == "change" else actions.propose_answer
        try:
            row = write(
                pending,
                actor=actor,
                question=form.cleaned_data["question"],
                answer=form.cleaned_data["answer"],
                also_asked=form.other_wordings(),
                layer=form.chosen_layer(),
                expected_version=form.cleaned_data["version"],
                kept_marks=request.POST.getlist("kept"),
            )
        except ConflictError as late:
            # What was written is not lost: it stands in the form, under what is so now.
            fresh = self.question(request, pending.pk)
            sent = request.POST.copy()
            sent["version"] = str(fresh.version)
            form = AnswerForm(sent, pending=fresh, actor=actor)
            form.full_clean()
            form.add_error(None, str(late))
            return self.story_page(request, fresh, form, status=409)
        except ActionError as refused:
            form.add_error(None, str(refused))
            return self.story_page(request, pending, form)
        messages.success(
            request,
            _("Answered. It is being taken into the documents, then asked again.")
            if row.state == State.APPROVED
            else _("Written. It waits for somebody else to approve it."),
        )
        return HttpResponseRedirect(after)

    def after(self, request: HttpRequest, pending: PendingQuestion, name: str) -> str:
        """Return the page to go on with: the next question, or this one."""
        show, query = shown_part(request)
        if name not in LEAVING or show not in WORKED_ON:
            return page_of(pending, request)
        rows = part_of(self.get_queryset(request), actor_of(request), show, query)
        keys = list(rows.values_list("pk", flat=True))
        if pending.pk not in keys:
            return page_of(pending, request)
        place = keys.index(pending.pk)
        left = keys[place + 1 :] + keys[:place]
        listing = reverse("admin:approvals_pendingquestion_changelist")
        if not left:
            return f"{listing}{words_of(request)}"
        page = reverse("admin:approvals_pendingquestion_change", args=[left[0]])
        return f"{page}{words_of(request)}"

    def marks_view(self, request: HttpRequest, question_id: int) -> HttpResponse:
        """Return what may be personal in what is being written."""
        self.sent_question(request, question_id)
        texts = {name: request.POST.get(name, "") for name in GUARDED}
        return render(request, "admin/approvals/marks.html", marks_of(texts, request))

    def preview_view(self, request: HttpRequest, question_id: int) -> HttpResponse:
        """Return the answer as it will be found."""
        pending = self.sent_question(request, question_id)
        actor = actor_of(request)
        form = AnswerForm(request.POST, pending=pending, actor=actor)
        form.is_valid()
        return render(
            request, "admin/approvals/preview.html", {"preview": preview_of(form)}
        )

    def lock_view(self, request: HttpRequest, question_id: int) -> HttpResponse:
        """Take, renew or give back the right to be the one who writes."""
        pending = self.sent_question(request, question_id)
        actor = actor_of(request)
        writer = ""
        if "unlock" in request.POST:
            actions.unlock(pending, actor=actor)
        elif not actions.lock(pending, actor=actor):
            pending.refresh_from_db()
            writer = writer_of(pending, actor) or _("Somebody else")
        return render(request, "admin/approvals/lock.html", {"writer": writer})

    # --- Several, and all -----------------------------------------------------------

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        """Do one thing to several questions; what is refused is said, one by one."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        name = request.POST.get("act", "")
        if request.method != "POST" or name not in dict(BULK_ACTS):
            raise Http404(_("Not found."))
        chosen = self.chosen(request)
        listing = reverse("admin:approvals_pendingquestion_changelist")
        after = HttpResponseRedirect(f"{listing}{words_of(request)}")
        if not chosen:
            messages.error(request, _("Choose at least one question."))
            return after
        if name == "merge":
            done_at_once(request, chosen)
        else:
            done_one_by_one(request, name, chosen)
        return after

    def chosen(self, request: HttpRequest) -> list[PendingQuestion]:
        """Return the questions that were ticked, as far as they are the person's."""
        keys = []
        for text in request.POST.getlist("chosen")[:ON_A_PAGE]:
            try:
                keys.append(UUID(text))
            except ValueError:
                continue
        return list(self.get_queryset(request).filter(public_id__in=keys))

    def gaps_view(self, request: HttpRequest) -> HttpResponse:
        """Draw what was asked in vain and what became of it, by week and layer."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        named = request.GET.get("weeks", "")
        weeks = int(named) if named in map(str, WEEKS) else WEEKS[0]
        figures = gaps(weeks, actor_of(request))
        return TemplateResponse(
            request,
            "admin/approvals/gaps.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Gaps over time"),
                "opts": self.opts,
                "gaps": figures,
                "now_open": figures.weeks[-1].open,
                "fates": FATES.values(),
                "weeks": weeks,
                "choices": WEEKS,
            },
        )


def done_at_once(request: HttpRequest, chosen: Sequence[PendingQuestion]) -> None:
    """Merge questions, and say what came of it."""
    try:
        messages.success(request, merge_all(chosen, actor_of(request)))
    except ActionError as refused:
        messages.error(request, str(refused))


def done_one_by_one(
    request: HttpRequest, name: str, chosen: Sequence[PendingQuestion]
) -> None:
    """Do one thing to each of several questions, and say what came of it."""
    refusals: Counter[str] = Counter()
    for pending in chosen:
        try:
            BULK_VERBS[name](pending, actor_of(request), request.POST)
        except ActionError as refused:
            refusals[str(refused)] += 1
    done = len(chosen) - refusals.total()
    if done:
        said = ngettext("Done to one question.", "Done to %(number)s questions.", done)
        messages.success(request, said % {"number": done})
    for why, number in refusals.items():
        said = ngettext(
            "Not done to one: %(why)s", "Not done to %(number)s: %(why)s", number
        )
        messages.error(request, said % {"number": number, "why": why})


def marks_of(texts: Mapping[str, str], request: HttpRequest) -> dict[str, Any]:
    """Return what may be personal in texts, or why it could not be looked for."""
    try:
        marks = shown_marks(texts, request.POST.getlist("kept"))
    except ScrubbingError:
        problem = _("This text could not be looked through. Make it shorter.")
        return {"marks": [], "problem": problem}
    return {"marks": marks, "problem": ""}


def shown_part(request: HttpRequest) -> tuple[str, str]:
    """Return the part of the queue that an address names, and the words looked for."""
    show = request.GET.get("show", "")
    query = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_WORDS]
    return (show if show in TABS else "waiting"), query


def words_of(request: HttpRequest) -> str:
    """Return what an address ends in to stay in the same part of the queue."""
    return address_of(request, shown_part(request)[0])


def address_of(request: HttpRequest, show: str) -> str:
    """Return what an address ends in to stay in a part, with its words and page."""
    named = "show" in request.GET or show != "waiting"
    asked = {"show": show if named else "", "q": shown_part(request)[1]}
    page = request.GET.get("page", "")
    if page.isascii() and page.isdecimal():
        asked["page"] = page
    words = urlencode({name: value for name, value in asked.items() if value})
    return f"?{words}" if words else ""


def page_of(pending: PendingQuestion, request: HttpRequest) -> str:
    """Return the address of a question's page."""
    page = reverse("admin:approvals_pendingquestion_change", args=[pending.pk])
    return f"{page}{words_of(request)}"
