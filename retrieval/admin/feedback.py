"""What people say of answers: by passage, by source, and in their own words."""

from collections.abc import Collection
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, Max, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.admin.records import RecordAdmin
from knowledge.models import Document, KnowledgeBase, Source, User
from knowledge.permissions import Reader
from knowledge.scoping import actor_of, administered_ids
from retrieval.citations import parse_ref
from retrieval.models import Feedback, PassageFeedback, SearchLog
from retrieval.models.feedback import Reason, Worth

PER_PAGE = 50
VIEWS = {
    "": gettext_lazy("By passage"),
    "sources": gettext_lazy("By source"),
    "answers": gettext_lazy("Answers"),
}


@admin.register(Feedback)
class FeedbackAdmin(RecordAdmin[Feedback]):
    """One page with three views; nobody edits what others said."""

    def get_urls(self) -> list[URLPattern]:
        """Have the one page."""
        view = self.admin_site.admin_view
        return [
            path("", view(self.page_view), name="retrieval_feedback_changelist"),
        ]

    def page_view(self, request: HttpRequest) -> HttpResponse:
        """Show what was said within what the person works on."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        wanted = request.GET.get("by", "")
        if wanted not in VIEWS:
            raise Http404(_("Not found."))
        answers = self.get_queryset(request)
        passages = PassageFeedback.objects.administered_by(actor_of(request))
        rows: QuerySet[Any, Any]
        if wanted == "answers":
            rows = answers.select_related("correct_layer__knowledge_base")
        elif wanted == "sources":
            rows = counted(passages, "source")
        else:
            rows = counted(passages, "ref", "source", "revision")
        page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page", ""))
        listed: list[Any] = list(page.object_list)
        return TemplateResponse(
            request,
            "admin/retrieval/feedback/feedback.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Feedback"),
                "opts": self.opts,
                "views": [
                    {"value": value, "label": label, "current": value == wanted}
                    for value, label in VIEWS.items()
                ],
                "wanted": wanted,
                "rows": said(listed, administered_ids(request))
                if wanted == "answers"
                else with_places(listed, actor_of(request)),
                "page": page,
                "page_numbers": list(page.paginator.get_elided_page_range(page.number)),
                "totals": answers.aggregate(
                    helpful=Count("pk", filter=Q(is_helpful=True)),
                    unhelpful=Count("pk", filter=Q(is_helpful=False)),
                ),
                "rated": passages.count(),
            },
        )


def counted(
    passages: QuerySet[PassageFeedback], *by: str
) -> QuerySet[PassageFeedback, dict[str, Any]]:
    """Return how often passages were rated which way, what went wrong most first."""
    rows: QuerySet[PassageFeedback, dict[str, Any]] = (
        passages.order_by()
        .values(*by)
        .annotate(
            useful=Count("pk", filter=Q(worth=Worth.USEFUL)),
            wrong=Count("pk", filter=Q(worth=Worth.WRONG)),
            outdated=Count("pk", filter=Q(worth=Worth.OUTDATED)),
            last_at=Max("given_at"),
        )
        .order_by("-wrong", "-outdated", "-useful", *by)
    )
    return rows


def with_places(rows: list[dict[str, Any]], person: User) -> list[dict[str, Any]]:
    """Return counts with what they are of: the source, and the passage's words.

    Who administers a knowledge base reads it only where the portal lets them (D27).
    """
    own = Source.objects.filter(
        knowledge_base__in=KnowledgeBase.objects.administered_by(person)
    )
    sources = own.select_related("layer__knowledge_base").in_bulk(
        {row["source"] for row in rows}
    )
    # One may have moved since it was counted.
    rows = [row for row in rows if row["source"] in sources]
    numbers = {row["revision"] for row in rows if "revision" in row}
    readable = Document.objects.visible_to(Reader.for_user(person)).filter(
        number__in=numbers
    )
    texts = {row.number: row for row in readable.only("number", "text", "is_current")}
    for row in rows:
        row["about"] = sources[row["source"]]
        document = texts.get(row.get("revision", 0))
        place = parse_ref(row.get("ref", ""))
        if document is not None and place is not None:
            row["words"] = document.text[place[1] : place[2]]
            row["is_current"] = document.is_current
            row["url"] = reverse("portal:read", args=[row["ref"]]) + "#cited"
    return rows


def said(rows: list[Feedback], own: Collection[int]) -> list[dict[str, Any]]:
    """Return ratings with the question that was asked, as long as the log holds it.

    An answer may rest on less than was searched for it: a question that was asked over
    more than a person's own knowledge bases is not theirs to read.
    """
    questions = dict(
        SearchLog.objects.filter(
            interaction_id__in=[row.interaction_id for row in rows],
            knowledge_bases__contained_by=list(own),
        ).values_list("interaction_id", "query")
    )
    labels = dict(Reason.choices)
    return [
        {
            "row": row,
            "question": questions.get(row.interaction_id, ""),
            "reasons": [labels.get(reason, reason) for reason in row.reasons],
        }
        for row in rows
    ]
