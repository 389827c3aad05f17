"""Who can find this, why or why not, and access for many at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.sites import AdminSite
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db import models
from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from knowledge.access import (
    answers_about,
    decisions,
    find_people,
    groups_with,
    hindrance,
    people_who_may,
    people_with,
)
from knowledge.admin.parts import is_key
from knowledge.granting import MOST_PAIRS, Act, Choice, apply, preview
from knowledge.models import AuditEntry, KnowledgeBase, Source, User
from knowledge.permissions import Access
from knowledge.scoping import actor_of

PAGE = 50
HISTORY = 20
# Verbs of the audit that speak of access.
VERBS = ("granted", "denied", "withdrew")


def refuse_unless_granting(request: HttpRequest) -> None:
    """Let only who may grant see by name who finds what."""
    if not request.user.has_perm("knowledge.grant_knowledgebase"):
        raise PermissionDenied


def page_of(rows: Any, number: str, size: int = PAGE) -> "Page[Any]":
    """Return one page of rows; a number that is none is the nearest one."""
    return Paginator(rows, size).get_page(number)


def numbers_of(page: "Page[Any]") -> list[int | str]:
    """Return the numbers of the pages that are offered, with gaps."""
    return list(page.paginator.get_elided_page_range(page.number, on_each_side=2))


def asked_about(
    request: HttpRequest, knowledge_base: KnowledgeBase, source: Source | None = None
) -> dict[str, Any] | None:
    """Answer "why can or can't this person?" for the person named in the address."""
    name = request.GET.get("person", "").strip()
    if not name:
        return None
    person = User.objects.filter(username=name).first()
    if person is None:
        return {"name": name, "unknown": True}
    return {
        "name": str(person),
        "person": person,
        "answers": answers_about(person, knowledge_base, source),
    }


def history_of(knowledge_base: KnowledgeBase) -> models.QuerySet[AuditEntry]:
    """Return each grant and deny that was ever written or taken away, newest first."""
    return AuditEntry.objects.filter(
        target_type="knowledgebase", target_id=knowledge_base.pk, verb__in=VERBS
    )


def shown_history(entries: Iterable[AuditEntry]) -> list[dict[str, Any]]:
    """Return acts as the page tells them."""
    labels = {str(access): access.label for access in Access}
    return [
        {
            "at": entry.at,
            "actor": entry.actor_label,
            "verb": entry.verb,
            "holder": entry.detail.get("holder", ""),
            "what": labels.get(str(entry.detail.get("access")), ""),
        }
        for entry in entries
    ]


def finders_page(
    request: HttpRequest,
    site: AdminSite,
    knowledge_base: KnowledgeBase,
    source: Source | None = None,
) -> HttpResponse:
    """Show who finds a knowledge base's texts, or one source, and by which rule."""
    refuse_unless_granting(request)
    can = people_who_may(knowledge_base)
    denied = people_with(knowledge_base, Access.DENY)
    shows_denied = request.GET.get("show") == "denied"
    text = request.GET.get("q", "").strip()[:150]
    found = find_people(denied if shows_denied else can, text)
    page = page_of(found, request.GET.get("page", ""))
    rule_of = decisions(knowledge_base, list(page.object_list))
    subject = source if source is not None else knowledge_base
    return TemplateResponse(
        request,
        "admin/knowledge/finders.html",
        {
            **site.each_context(request),
            "title": _("Who can find %(name)s?") % {"name": subject},
            "opts": subject._meta,
            "original": subject,
            "knowledge_base": knowledge_base,
            "source": source,
            "hindrance": hindrance(source) if source is not None else "",
            "can_count": can.count(),
            "denied_count": denied.count(),
            "groups": groups_with(knowledge_base),
            "shows_denied": shows_denied,
            "query": text,
            "page": page,
            "page_numbers": numbers_of(page),
            "people": [(person, rule_of[person.pk]) for person in page.object_list],
            "asked": asked_about(request, knowledge_base, source),
            "asked_name": request.GET.get("person", "").strip()[:150],
            "may_view_as": request.user.has_perm("knowledge.view_as"),
        },
    )


# --- Access for many at once ---------------------------------------------------


class ChoosingForm(forms.Form):
    """What is chosen so far; the lists of names are looked up, never sent whole."""

    kind = forms.ChoiceField(
        choices=[
            ("people", gettext_lazy("People")),
            ("groups", gettext_lazy("Groups")),
        ],
        required=False,
    )
    act = forms.ChoiceField(choices=Act.choices, required=False)


@dataclass(slots=True)
class Column:
    """One list to choose from: what it is called, what is shown and what is chosen.

    `chosen` holds ids, those of other pages too; `total` counts all that the search
    finds.
    """

    name: str
    query: str
    page: "Page[Any]"
    chosen: set[int]

    @classmethod
    def of(
        cls, name: str, rows: models.QuerySet[Any], request: HttpRequest
    ) -> "Column":
        """Read one list's part of the request: ids shown, ticked, searched, turned."""
        sent = request.POST
        chosen = numbers(sent.get(f"{name}-chosen", ""))
        chosen -= numbers(sent.get(f"{name}-shown", ""))
        chosen |= {int(key) for key in sent.getlist(name) if is_key(key)}
        query = sent.get(f"{name}-q", "").strip()[:150]
        found = searched(rows, query)
        if sent.get("do") == f"{name}-all":
            chosen |= set(found.values_list("pk", flat=True))
        if sent.get("do") == f"{name}-none":
            chosen = set()
        turned = sent.get("do", "").partition(f"{name}-page-")[2]
        number = turned or (
            sent.get(f"{name}-page", "")
            if query == sent.get(f"{name}-searched", "")
            else "1"
        )
        return cls(name, query, page_of(found, number), chosen)

    @property
    def total(self) -> int:
        """How many rows the search finds."""
        return self.page.paginator.count

    @property
    def rows(self) -> list[tuple[Any, bool]]:
        """The rows of this page, each with whether it is chosen."""
        return [(row, row.pk in self.chosen) for row in self.page.object_list]

    @property
    def shown(self) -> str:
        """The ids of this page, as the form sends them back."""
        return ",".join(str(row.pk) for row in self.page.object_list)

    @property
    def kept(self) -> str:
        """The chosen ids, as the form sends them back."""
        return ",".join(map(str, sorted(self.chosen)))


def numbers(text: str) -> set[int]:
    """Return the ids in a text such as "3,14,15"."""
    return {int(each) for each in text.split(",") if is_key(each)}


def searched(rows: models.QuerySet[Any], text: str) -> models.QuerySet[Any]:
    """Return the people, groups or knowledge bases whose names hold each word."""
    if rows.model is User:
        return find_people(rows, text)
    for word in text.split():
        rows = rows.filter(name__icontains=word)
    return rows.order_by(Lower("name"), "pk")


def bulk_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Grant, deny or take away for many holders and knowledge bases at once.

    Every step is one form: search, turn a page, tick, preview, and do it. What is chosen
    travels along as ids, so that exactly what was previewed is done.
    """
    refuse_unless_granting(request)
    form = ChoosingForm(request.POST)
    form.is_valid()
    kind = form.cleaned_data.get("kind") or "people"
    act = Act(form.cleaned_data.get("act") or Act.SEARCH)
    all_bases = KnowledgeBase.objects.administered_by(actor_of(request))
    people: models.QuerySet[Any] = (
        User.objects.filter(is_active=True) if kind == "people" else Group.objects.all()
    )
    holders = Column.of(kind, people, request)
    bases = Column.of("bases", all_bases, request)
    context: dict[str, Any] = {
        **site.each_context(request),
        "title": _("Access for many at once"),
        "opts": KnowledgeBase._meta,
        "kind": kind,
        "act": act,
        "acts": Act,
        "columns": [holders, bases],
        "holders": holders,
        "bases": bases,
        "most_pairs": MOST_PAIRS,
    }
    step = request.POST.get("do", "")
    if request.method == "POST" and step in {"preview", "apply"}:
        choice = Choice(
            act=act,
            knowledge_bases=list(all_bases.filter(pk__in=bases.chosen)),
            people=chosen_rows(User, holders) if kind == "people" else (),
            groups=chosen_rows(Group, holders) if kind == "groups" else (),
        )
        if trouble := trouble_with(choice):
            context["trouble"] = trouble
        elif step == "apply":
            return applied(request, choice)
        else:
            context["choice"] = choice
            context["effect"] = preview(choice)
    return TemplateResponse(request, "admin/knowledge/knowledgebase/bulk.html", context)


def chosen_rows(model: Any, column: Column) -> Sequence[Any]:
    """Return the chosen people or groups that there are."""
    return list(model.objects.filter(pk__in=column.chosen).order_by("pk"))


def trouble_with(choice: Choice) -> str:
    """Return why a choice cannot be carried out, as a sentence, or ""."""
    if not choice.holders:
        return _("Choose at least one person or group.")
    if not choice.knowledge_bases:
        return _("Choose at least one knowledge base.")
    if choice.pairs > MOST_PAIRS:
        return _(
            "These are %(pairs)s pairs; %(most)s go at once. Choose fewer, or put the "
            "people into a group and grant it to the group."
        ) % {"pairs": choice.pairs, "most": MOST_PAIRS}
    return ""


def applied(request: HttpRequest, choice: Choice) -> HttpResponse:
    """Carry a choice out and say how many rows that were."""
    count = apply(choice, actor=actor_of(request))
    sentence = (
        ngettext(
            "%(count)s row was taken away. It holds from now on.",
            "%(count)s rows were taken away. It holds from now on.",
            count,
        )
        if choice.act.is_withdrawal
        else ngettext(
            "%(count)s row was written. It holds from now on.",
            "%(count)s rows were written. It holds from now on.",
            count,
        )
    )
    messages.success(request, sentence % {"count": count})
    return HttpResponseRedirect(request.path)
