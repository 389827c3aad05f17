"""What was learned: why, and how it is switched off, removed, pinned or reset."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from knowledge.models import Layer
from knowledge.scoping import ScopedAdmin, actor_of
from retrieval.learning import (
    LearningError,
    last_active,
    learning_state,
    pin_item,
    remove_item,
    reset_learning,
    restore_item,
    switch_item,
)
from retrieval.models import LearnedItem, LearningSignal, SearchLog
from retrieval.models.learning import RULE, ItemState
from retrieval.promoting import Lesson, strength

PER_PAGE = 50
MOST_EVIDENCE = 50
CHANGELIST = "admin:retrieval_learneditem_changelist"
# How a state is drawn, by the states of the style sheet.
STATES = {
    ItemState.ON: ("ready", gettext_lazy("in use")),
    ItemState.OFF: ("off", gettext_lazy("switched off")),
    ItemState.REMOVED: ("failed", gettext_lazy("removed for good")),
}
VIEWS = {
    "": gettext_lazy("All in use or switched off"),
    Lesson.SYNONYM: gettext_lazy("Synonyms"),
    Lesson.REWRITE: gettext_lazy("Rewrites"),
    Lesson.AFFINITY: gettext_lazy("Layer affinities"),
    ItemState.REMOVED: gettext_lazy("Removed for good"),
}


@admin.register(LearnedItem)
class LearnedItemAdmin(ScopedAdmin[LearnedItem]):
    """The page of learned items, the page of each, and the resets."""

    def get_urls(self) -> list[URLPattern]:
        """Have the list, an item with its evidence, and the resets."""
        view = self.admin_site.admin_view
        return [
            path("", view(self.list_view), name="retrieval_learneditem_changelist"),
            path("reset/", view(self.reset_view), name="retrieval_learneditem_reset"),
            path(
                "<int:item_id>/",
                view(self.item_view),
                name="retrieval_learneditem_change",
            ),
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """What is learned comes from people's searches."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: LearnedItem | None = None
    ) -> bool:
        """An item is removed on its page, where it says what that means."""
        return False

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Show what was learned within what the person works on."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        wanted = request.GET.get("show", "")
        if wanted not in VIEWS:
            raise Http404(_("Not found."))
        items = self.get_queryset(request).select_related("layer__knowledge_base")
        if wanted == ItemState.REMOVED:
            items = items.filter(state=ItemState.REMOVED)
        else:
            items = items.exclude(state=ItemState.REMOVED)
            if wanted:
                items = items.filter(kind=wanted)
        page = Paginator(items, PER_PAGE).get_page(request.GET.get("page", ""))
        state = learning_state()
        return TemplateResponse(
            request,
            "admin/retrieval/learning/items.html",
            {
                **self.admin_site.each_context(request),
                "title": _("What was learned"),
                "opts": self.opts,
                "views": [
                    {"value": value, "label": label, "current": value == wanted}
                    for value, label in VIEWS.items()
                ],
                "rows": [shown(item) for item in page.object_list],
                "page": page,
                "page_numbers": list(page.paginator.get_elided_page_range(page.number)),
                "wanted": wanted,
                "state": state,
                "outcome": outcome_of(state.outcome),
                "is_on": settings.LEARNING_ENABLED,
                "may_change": super().has_change_permission(request),
                "layers": self.resettable(request),
                "resets_all": request.user.is_superuser,
            },
        )

    def resettable(self, request: HttpRequest) -> list[Layer]:
        """Return the layers that the person may reset."""
        if not request.user.has_perm("retrieval.reset_learning"):
            return []
        layers = Layer.objects.administered_by(actor_of(request))
        return list(
            layers.select_related("knowledge_base").order_by(
                "knowledge_base__slug", "name"
            )
        )

    def item_view(self, request: HttpRequest, item_id: int) -> HttpResponse:
        """Show an item with its evidence, and do what the person decides about it."""
        items = self.get_queryset(request).select_related(
            "layer__knowledge_base", "decided_by"
        )
        item = items.filter(pk=item_id).first()
        if not self.has_view_permission(request):
            raise PermissionDenied
        if item is None:
            raise Http404(_("Not found."))
        may_change = self.has_change_permission(request, item)
        if request.method == "POST":
            if not may_change:
                raise PermissionDenied
            self.act(request, item)
            back = request.POST.get("back") == "list"
            where = (
                reverse(CHANGELIST)
                if back
                else reverse("admin:retrieval_learneditem_change", args=[item.pk])
            )
            return HttpResponseRedirect(where)
        return TemplateResponse(
            request,
            "admin/retrieval/learning/item.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Learned item"),
                "opts": self.opts,
                "row": shown(item),
                "item": item,
                "evidence": evidence_of(request, item),
                "evidence_count": item.evidence.count(),
                "may_change": may_change,
            },
        )

    def act(self, request: HttpRequest, item: LearnedItem) -> None:
        """Do one thing with an item and say so."""
        actor = actor_of(request)
        acts = {
            "on": lambda: switch_item(item, actor=actor, on=True),
            "off": lambda: switch_item(item, actor=actor, on=False),
            "pin": lambda: pin_item(item, actor=actor, pinned=True),
            "unpin": lambda: pin_item(item, actor=actor, pinned=False),
            "remove": lambda: remove_item(item, actor=actor),
            "restore": lambda: restore_item(item, actor=actor),
        }
        said = {
            "on": _("It is applied again."),
            "off": _("It is no longer applied."),
            "pin": _("Pinned: it stays, whatever the promoter finds."),
            "unpin": _("No longer pinned."),
            "remove": _("Removed. It will not be learned again."),
            "restore": _("Taken back. It is switched off."),
        }
        verb = request.POST.get("act", "")
        if verb not in acts:
            raise Http404(_("Not found."))
        try:
            acts[verb]()
        except LearningError as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(request, said[verb])

    def reset_view(self, request: HttpRequest) -> HttpResponse:
        """Clear what was learned of one layer, or all of it."""
        if not request.user.has_perm("retrieval.reset_learning"):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseRedirect(reverse(CHANGELIST) + "#reset")
        wanted = request.POST.get("layer", "")
        actor = actor_of(request)
        if wanted == "all":
            if not request.user.is_superuser:
                raise PermissionDenied
            if request.POST.get("sure") != "yes":
                self.message_user(
                    request,
                    _("Tick the box to say that all of it is to go."),
                    messages.ERROR,
                )
                return HttpResponseRedirect(reverse(CHANGELIST) + "#reset")
            count = reset_learning(actor=actor)
        else:
            layer = next(
                (each for each in self.resettable(request) if str(each.pk) == wanted),
                None,
            )
            if layer is None:
                raise Http404(_("Not found."))
            count = reset_learning(actor=actor, layer=layer)
        self.message_user(
            request,
            ngettext(
                "%(count)s learned item is gone.",
                "%(count)s learned items are gone.",
                count,
            )
            % {"count": count},
        )
        return HttpResponseRedirect(reverse(CHANGELIST))


def shown(item: LearnedItem) -> dict[str, Any]:
    """Return an item as the pages show it."""
    state, word = STATES[ItemState(item.state)]
    is_old = item.rule != RULE and not item.is_pinned
    return {
        "item": item,
        "state": "off" if is_old and item.state == ItemState.ON else state,
        "state_word": _("not applied: an older rule taught it") if is_old else word,
        "does": sentence_about(item),
        "strength": round(100 * strength(last_active(item), now=timezone.now()))
        if item.kind == Lesson.REWRITE and not item.is_pinned
        else None,
        "is_removed": item.state == ItemState.REMOVED,
        "is_on": item.state == ItemState.ON,
        "has_failed": item.state == ItemState.OFF and item.decided_at is None,
    }


def sentence_about(item: LearnedItem) -> str:
    """Return what an item does, in a sentence."""
    value = ", ".join(f"“{each}”" for each in item.value)
    if item.kind == Lesson.AFFINITY:
        return _("Questions with “%(term)s” go to %(layer)s first.") % {
            "term": item.term,
            "layer": item.layer,
        }
    if item.kind == Lesson.REWRITE:
        return _("“%(term)s” is also searched for as %(value)s.") % {
            "term": item.term,
            "value": value,
        }
    return _("Questions with “%(term)s” are also searched for with %(value)s.") % {
        "term": item.term,
        "value": value,
    }


def evidence_of(request: HttpRequest, item: LearnedItem) -> list[dict[str, Any]]:
    """Return the signals behind an item, newest first, with their words where allowed.

    Words that somebody asked over more than the person works on may come from the rest:
    of those only that and when it was is told.
    """
    signals = list(item.evidence.order_by("-at", "-pk")[:MOST_EVIDENCE])
    own = set(
        LearningSignal.objects.administered_by(actor_of(request))
        .filter(pk__in=[each.pk for each in signals])
        .values_list("pk", flat=True)
    )
    ids = {
        name
        for each in signals
        if each.pk in own
        for name in (each.first, each.second)
        if name is not None
    }
    texts = dict(
        SearchLog.objects.filter(interaction_id__in=ids).values_list(
            "interaction_id", "query"
        )
    )
    return [
        {
            "signal": each,
            "first": texts.get(each.first, ""),
            "second": texts.get(each.second, "") if each.second else "",
            "is_own": each.pk in own,
        }
        for each in signals
    ]


def outcome_of(outcome: dict[str, int]) -> list[tuple[str, int]]:
    """Return what the last run did, in words."""
    words = {
        "signals": _("new signals"),
        "synonym": _("new synonyms"),
        "rewrite": _("new rewrites"),
        "affinity": _("new layer affinities"),
        "failed": _("switched off, since they did not help"),
        "stale": _("forgotten, since nobody used them"),
        "older rule": _("deleted, since an older rule taught them"),
    }
    return [(words[name], count) for name, count in outcome.items() if name in words]
