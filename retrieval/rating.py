"""The portal's page for rating an answer: whether it helped, why not, which passages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from knowledge.models import Document
from knowledge.permissions import Reader
from retrieval.answers import Answer
from retrieval.citations import parse_ref
from retrieval.feedback import (
    Answered,
    Extras,
    FeedbackError,
    find_answered,
    give_feedback,
    is_taken,
)
from retrieval.models import Feedback, Interaction, Snapshot
from retrieval.models.feedback import Reason, Worth
from retrieval.views import path_below, reader_of

# Before the ref of a passage in the names of the form.
PASSAGE = "passage:"
# Asked for by the answer's own page, which shows it in place.
PART = "X-Part"


@dataclass(frozen=True, slots=True)
class RatedPassage:
    """A passage of the answer on the page: where it stands, and what was said of it."""

    ref: str
    title: str
    clause: str
    page: int | None
    url: str
    worth: str


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def rating_page(request: HttpRequest, interaction_id: str) -> HttpResponse:
    """Rate an answer of one's own; another's is as absent as one that never was."""
    reader = reader_of(request)
    answered = find_answered(reader, interaction_id) if is_taken() else None
    if answered is None:
        raise Http404(_("Not found."))
    problem = ""
    is_part = PART in request.headers
    if request.method == "POST":
        problem = store(reader, answered, request)
        if not problem and not is_part:
            return redirect(
                reverse("portal:rate", args=[answered.id]) + "?said#rating-title"
            )
    context = {
        **context_of(reader, answered),
        "problem": problem,
        "said": "said" in request.GET or (request.method == "POST" and not problem),
    }
    if is_part and "more" in request.POST and not problem:
        context["asks_more"] = False
    name = "retrieval/rating.html" if is_part else "retrieval/rating_page.html"
    return render(request, name, context, status=400 if problem else 200)


def store(reader: Reader, answered: Answered, request: HttpRequest) -> str:
    """Store what the form says; return what is wrong with it, or ""."""
    helpful = request.POST.get("helpful", "")
    if helpful not in {"yes", "no"}:
        return _("Say whether the answer helped: yes or no.")
    has_more = "more" in request.POST
    extras = Extras(
        reasons=request.POST.getlist("reason") if has_more else None,
        comment=request.POST.get("comment", "") if has_more else None,
        better_query=request.POST.get("better_query", ""),
        passages={
            name.removeprefix(PASSAGE): value
            for name, value in request.POST.items()
            if name.startswith(PASSAGE) and isinstance(value, str) and value
        },
    )
    try:
        stored = give_feedback(
            reader, answered, helpful=helpful == "yes", extras=extras
        )
    except FeedbackError as refused:
        return refused.message
    return stored.warning


def context_of(reader: Reader, answered: Answered) -> dict[str, object]:
    """Return what the form shows: what was said so far, and the passages."""
    feedback = (
        Feedback.objects.filter(interaction_id=answered.id)
        .prefetch_related("passages")
        .first()
    )
    reasons = set() if feedback is None else set(feedback.reasons)
    return {
        "answered": answered,
        # It may name what the person has lost sight of since.
        "question": answered.question if answered.bases <= reader.searchable else "",
        "feedback": feedback,
        # First whether it helped; what else there is to say follows from that.
        "asks_more": feedback is not None,
        "helpful": "" if feedback is None else "yes" if feedback.is_helpful else "no",
        "reasons": [
            {"value": value, "label": label, "chosen": value in reasons}
            for value, label in Reason.choices
        ],
        "worths": Worth.choices,
        "passages": passages_of(reader, answered, feedback),
    }


def passages_of(
    reader: Reader, answered: Answered, feedback: Feedback | None
) -> Sequence[RatedPassage]:
    """Return an answer's passages that the reader may open, in the answer's order.

    An ask keeps what it showed; of a search the passages are opened where they stand.
    """
    worths = {}
    if feedback is not None:
        worths = {row.ref: row.worth for row in feedback.passages.all()}
    refs = list(dict.fromkeys(place.ref for place in answered.places.values()))
    rows = Snapshot.objects.visible_to(reader).filter(
        interaction__public_id=answered.id, ref__in=refs, purged_at__isnull=True
    )
    if not Interaction.objects.filter(public_id=answered.id).exists():
        return found_passages(reader, refs, worths)
    return [
        RatedPassage(
            ref=row.ref,
            title=row.title,
            clause=" > ".join(path_below(row.title, row.clause_path)),
            page=row.page,
            url=reverse("portal:asked", args=[answered.id, row.number]),
            worth=worths.get(row.ref, ""),
        )
        for row in rows.order_by("number")
    ]


def found_passages(
    reader: Reader, refs: Collection[str], worths: Mapping[str, str]
) -> Sequence[RatedPassage]:
    """Return what a search found, as far as the reader may open it now."""
    places = {ref: parse_ref(ref) for ref in refs}
    documents = {
        row.number: row.title
        for row in Document.objects.visible_to(reader)
        .filter(number__in={place[0] for place in places.values() if place})
        .only("number", "title")
    }
    return [
        RatedPassage(
            ref=ref,
            title=documents[place[0]],
            clause="",
            page=None,
            url=reverse("portal:read", args=[ref]),
            worth=worths.get(ref, ""),
        )
        for ref, place in places.items()
        if place is not None and place[0] in documents
    ]


def rating_offer(request: HttpRequest, answer: Answer) -> str:
    """Return what an answer's page asks below the answer, or nothing.

    Who sees the portal as another person rates nothing.
    """
    reader = reader_of(request)
    if not is_taken() or not answer.interaction_id or reader.acting_user_id is not None:
        return ""
    context = {
        "rated_id": answer.interaction_id,
        "helpful": "",
        "said": False,
        "asks_more": False,
        "problem": "",
    }
    return render_to_string("retrieval/rating_offer.html", context, request)
