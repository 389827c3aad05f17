"""A person's own questions that the documents did not answer, and what became of them.

An answer is shown as far as its asker may read where it landed; nothing here tells of a
knowledge base that they may not know of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast
from urllib.parse import urlencode

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from approvals.models import PendingQuestion, Wording
from approvals.models.question import State
from knowledge.language import language_of
from knowledge.models import Source
from knowledge.models.knowledge_base import Language
from knowledge.models.source import SourceState
from knowledge.permissions import Reader

# What its asker is told of: it will not change by itself any more.
SETTLED: Final = (State.APPROVED, State.IGNORED)


@dataclass(frozen=True, slots=True)
class Own:
    """A person's question and what became of it.

    `question` is their last wording; `answer` is "" and `source_url` too where there is
    none that they may read.
    """

    pending: PendingQuestion
    question: str
    language: str
    asked_at: datetime
    state: str
    label: str
    sentence: str
    is_new: bool
    settled_at: datetime | None = None
    answer: str = ""
    answer_language: str = ""
    source_url: str = ""

    @property
    def ask_url(self) -> str:
        """The address that asks the documents the same again."""
        return f"{reverse('portal:ask')}?{urlencode({'q': self.question})}"


def own_wordings(user_id: int | None) -> QuerySet[Wording]:
    """Return what a person asked and the documents did not answer."""
    if user_id is None:
        return Wording.objects.none()
    return Wording.objects.filter(asker_id=user_id, pending__isnull=False).exclude(
        text=""
    )


def own_questions(reader: Reader) -> QuerySet[PendingQuestion]:
    """Return the questions that a person asked: news first, then the last asked."""
    news = unseen(reader.user_id).filter(pending=OuterRef("pk")).order_by()
    return (
        PendingQuestion.objects.filter(wordings__in=own_wordings(reader.user_id))
        .annotate(asked_by_them_at=Max("wordings__at"), is_news=Exists(news))
        .order_by("-is_news", "-asked_by_them_at", "-pk")
        .select_related("original")
    )


def unseen(user_id: int | None) -> QuerySet[Wording]:
    """Return those of a person's wordings whose outcome they have not seen.

    An answer that could not be taken into the documents is no outcome yet.
    """
    failed = PendingQuestion.objects.filter(
        state=State.APPROVED, source__state=SourceState.FAILED
    )
    settled = PendingQuestion.objects.filter(state__in=SETTLED).exclude(pk__in=failed)
    keys = settled.order_by().values("pk")
    return own_wordings(user_id).filter(
        Q(pending__in=keys) | Q(pending__original__in=keys), told_at__isnull=True
    )


def count_news(user_id: int | None) -> int:
    """Return how many of a person's questions were settled without their seeing it."""
    entries = unseen(user_id).order_by().values_list("pending_id")
    return entries.distinct().count()


def mark_seen(reader: Reader, questions: Sequence[PendingQuestion]) -> None:
    """Keep that a person has seen what became of these of their questions."""
    news = unseen(reader.user_id).filter(pending__in=questions)
    with transaction.atomic():
        # What a colleague settles at this moment is news still.
        held = news.select_for_update(of=("self",), skip_locked=True).order_by()
        keys = list(held.values_list("pk", flat=True))
        Wording.objects.filter(pk__in=keys).update(told_at=timezone.now())


def shown(reader: Reader, questions: Sequence[PendingQuestion]) -> list[Own]:
    """Return questions of a person as the page shows them to this reader."""
    mine = own_wordings(reader.user_id).filter(pending__in=questions).order_by("at")
    last = {cast("int", wording.pending_id): wording for wording in mine}
    news = unseen(reader.user_id).filter(pending__in=questions).order_by()
    new = set(news.values_list("pending", flat=True))
    fates = {each.pk: each.original or each for each in questions}
    sources = {
        source.pk: source
        for source in Source.objects.visible_to(reader).filter(
            pk__in=[fate.source_id for fate in fates.values()]
        )
    }
    return [
        own(each, fates[each.pk], last[each.pk], sources, is_new=each.pk in new)
        for each in questions
        if each.pk in last
    ]


def own(
    pending: PendingQuestion,
    fate: PendingQuestion,
    wording: Wording,
    sources: Mapping[int, Source],
    *,
    is_new: bool,
) -> Own:
    """Return one question; `fate` is the one that it was merged into, or itself."""
    source = sources.get(fate.source_id) if fate.source_id is not None else None
    is_answered = (
        fate.state == State.APPROVED
        and source is not None
        and source.state != SourceState.FAILED
    )
    state, label, sentence = words_of(fate, source)
    return Own(
        pending=pending,
        question=wording.text,
        language=wording.language,
        asked_at=wording.at,
        state=state,
        label=label,
        sentence=sentence,
        is_new=is_new,
        settled_at=fate.approved_at if is_answered else None,
        answer=fate.answer if is_answered else "",
        answer_language=language_of(fate.answer, Language.values)
        if is_answered
        else "",
        source_url=reverse("portal:source", args=[source.public_id])
        if is_answered and source is not None and source.state == SourceState.READY
        else "",
    )


def words_of(fate: PendingQuestion, source: Source | None) -> tuple[str, str, str]:
    """Return the state, its word, and a sentence on what became of a question."""
    if fate.state == State.IGNORED:
        return (
            "off",
            _("No answer"),
            _("A person read it and decided that it gets no answer here."),
        )
    if fate.state != State.APPROVED:
        return "pending", _("Waits"), _("It waits for a person to answer it.")
    if source is None:
        # Where the answer landed is not theirs to know.
        return (
            "off",
            _("Settled"),
            _("A person settled it. There is nothing new that you may read."),
        )
    if source.state == SourceState.FAILED:
        return (
            "pending",
            _("Waits"),
            _(
                "A person answered it, but the answer could not be taken into the "
                "documents. Somebody has to look at it."
            ),
        )
    if source.state != SourceState.READY:
        return (
            "processing",
            _("Answered"),
            _("A person answered it. It is being taken into the documents now."),
        )
    return (
        "found",
        _("Answered"),
        _("A person answered it. It is in the documents from now on."),
    )
