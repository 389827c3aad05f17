"""The portal's pages of the gate: sending a question on, and what became of one's own."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from approvals.actions import send_to_person
from approvals.errors import ApprovalError
from approvals.mine import mark_seen, own_questions, shown
from approvals.models.question import Channel
from retrieval.answers import Answer
from retrieval.confidence import Status
from retrieval.models import Interaction
from retrieval.views import reader_of

ON_A_PAGE = 25


def offer(request: HttpRequest, answer: Answer) -> str:
    """Offer to send a question to a person, where the documents did not answer it."""
    if (
        answer.status is not Status.NOT_FOUND
        or not answer.interaction_id
        # Who sees the portal as somebody else sends nothing in their name.
        or reader_of(request).acting_user_id is not None
    ):
        return ""
    return render_to_string(
        "approvals/offer.html", {"interaction_id": answer.interaction_id}, request
    )


@login_required
@require_POST
def send_view(request: HttpRequest, interaction_id: UUID) -> HttpResponse:
    """Send a question that was asked, and not answered, to a person."""
    reader = reader_of(request)
    own = Interaction.objects.filter(owner=reader.user_id, public_id=interaction_id)
    if not own.exists():
        raise Http404(_("Not found."))
    try:
        pending = send_to_person(
            reader, interaction_id=interaction_id, channel=Channel.PORTAL
        )
    except ApprovalError as refused:
        messages.error(request, str(refused))
        return redirect("approvals:questions")
    messages.success(request, _("Sent. What becomes of it will stand here."))
    return redirect(f"{reverse('approvals:questions')}#q-{pending.public_id}")


@login_required
@require_safe
@never_cache
def questions_page(request: HttpRequest) -> HttpResponse:
    """Show what one asked in vain and what became of it; then it is no news any more."""
    reader = reader_of(request)
    page = Paginator(own_questions(reader), ON_A_PAGE).get_page(request.GET.get("page"))
    questions = list(page.object_list)
    rows = shown(reader, questions)
    if request.method != "HEAD":
        mark_seen(reader, questions)
    return render(
        request,
        "approvals/questions.html",
        {
            "page": page,
            "rows": rows,
            "page_numbers": list(page.paginator.get_elided_page_range(page.number)),
        },
    )
