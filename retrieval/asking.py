"""The portal's page for asking: the question, live steps, and the answer with proof.

Under ASGI the page is sent as it comes: its head, each step as it begins, the answer.
That needs no script. Elsewhere, as in tests, the same page comes in one piece.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from knowledge.models import Layer
from knowledge.models.knowledge_base import AnswerMode
from knowledge.permissions import Reader
from retrieval.answers import Answer
from retrieval.ask import ask
from retrieval.calibration import calibrated
from retrieval.drafting import draft
from retrieval.embedding import space_in_use
from retrieval.judging import basis_of
from retrieval.receipts import ReadGoneError
from retrieval.results import Occasion
from retrieval.search import SearchInputError, checked_query
from retrieval.showing import shown_answer
from retrieval.views import layer_chips, layers_to_search, reader_of
from retrieval.weighing import ScoringError

logger = logging.getLogger(__name__)

# Where the template leaves room for the answer; no text of a page holds it, since "<"
# is always escaped.
HERE: Final = "<!-- answer -->"
# What is worth telling while one waits; other steps take no time.
STEPS: Final = {
    "rewrite": _("Preparing the searches"),
    "search": _("Searching the documents"),
    "rerank": _("Reading the best passages"),
    "answer": _("Choosing what answers your question"),
    "draft": _("Wording an answer"),
    "verify": _("Checking each quote and number against the documents"),
    "receipt": _("Writing the receipt"),
}

Progress = Callable[[str], None]
# From a request and its answer to what a page may offer next: a rendered template; "" for nothing.
Followup = Callable[[HttpRequest, Answer], str]

# What other parts offer below an answer; each registers itself when the apps are ready.
followups: list[Followup] = []


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One question of the page, on its way to an answer."""

    request: HttpRequest
    reader: Reader
    question: str
    chosen: list[str]
    mode: str | None
    layers: list[Layer]

    def answered(self, progress: Progress) -> str:
        """Return the answer as a part of the page; raises what `ask` does."""
        occasion = Occasion("portal")
        answer: Answer = ask(
            self.reader,
            self.question,
            layers=self.chosen or None,
            mode=self.mode,
            occasion=occasion,
            progress=progress,
        )
        drafted = draft(
            self.reader, self.question, answer, occasion=occasion, progress=progress
        )
        shown = shown_answer(
            answer,
            drafted,
            self.layers,
            least=least_relevance(answer),
            has_chosen=bool(self.chosen),
        )
        offers = [each(self.request, answer) for each in followups]
        return render_to_string(
            "retrieval/answer.html", {"shown": shown, "offers": offers}, self.request
        )

    def outcome(self, progress: Progress) -> str:
        """Return the answer or why there is none, on a page that has begun already."""
        try:
            return self.answered(progress)
        except SearchInputError as refused:
            problem = refused.message
        except (ReadGoneError, ScoringError) as failed:
            problem = str(failed)
        except Exception:
            logger.exception("a question could not be answered")
            problem = ""
        return self.failed(problem)

    def failed(self, problem: str) -> str:
        """Return why there is no answer as a part of the page, "" being our own fault."""
        return render_to_string(
            "retrieval/answer_failed.html", {"problem": problem}, self.request
        )


def least_relevance(answer: Answer) -> float:
    """Return what a document reaches that is likely to hold the answer (S1-ASK-09)."""
    if answer.confidence is None:
        return 0.0
    basis = basis_of([passage.hit for passage in answer.passages])
    return calibrated(space_in_use(), basis).marks.medium


@login_required
@require_safe
@never_cache
def ask_page(request: HttpRequest) -> HttpResponseBase:
    """Ask the documents a question; without one, show where to put it."""
    reader = reader_of(request)
    question = request.GET.get("q", "").strip()
    chosen = request.GET.getlist("layer")
    quotes_only = "quotes" in request.GET
    layers = layers_to_search(reader)
    context: dict[str, Any] = {
        "question": question,
        "chips": layer_chips(layers, chosen),
        "quotes_only": quotes_only,
        "error": "",
    }
    # A look at the head of the page is no question.
    if not question or request.method == "HEAD":
        return render(request, "retrieval/ask.html", context)
    inquiry = Inquiry(
        request,
        reader,
        question,
        chosen,
        AnswerMode.EXTRACTIVE if quotes_only else None,
        layers,
    )
    try:
        checked_query(question)
        if not isinstance(request, ASGIRequest):
            context["answer"] = inquiry.answered(lambda _step: None)
            return render(request, "retrieval/ask.html", context)
    except SearchInputError as refused:
        context["error"] = refused.message
        return render(request, "retrieval/ask.html", context, status=400)
    except (ReadGoneError, ScoringError) as failed:
        context["answer"] = inquiry.failed(str(failed))
        return render(request, "retrieval/ask.html", context, status=503)
    page = render_to_string("retrieval/ask.html", context, request)
    said = {step: str(text) for step, text in STEPS.items()}
    response = StreamingHttpResponse(streamed(page, inquiry, said))
    # A proxy that kept the parts together would keep the steps from being seen.
    response["X-Accel-Buffering"] = "no"
    return response


async def streamed(
    page: str, inquiry: Inquiry, said: Mapping[str, str]
) -> AsyncIterator[str]:
    """Yield the page's beginning, each step as it begins, the answer, and the end."""
    before, _here, after = page.partition(HERE)
    loop = asyncio.get_running_loop()
    steps: asyncio.Queue[str | None] = asyncio.Queue()

    def told(step: str) -> None:
        loop.call_soon_threadsafe(steps.put_nowait, step)

    yield before
    yield '<div class="asking" role="status"><ol class="steps">'
    # In the request's own thread, so in its language and with its database connection.
    work = asyncio.ensure_future(sync_to_async(inquiry.outcome)(told))
    work.add_done_callback(lambda _done: steps.put_nowait(None))
    try:
        while (step := await steps.get()) is not None:
            if step in said:
                yield format_html("<li>{}</li>", said[step])
        yield "</ol></div>"
        yield await work
        yield after
    finally:
        # Where the reader left, the thread goes on to its end; to leave it now would
        # make the whole server wait for it.
        if not work.done():
            await asyncio.wait([work])
