"""What approved answers quote of the documents, for the reports of what a change does.

An answer quotes its own source, which it is; what it names by a ref; and whole
sentences that stand in it word for word, with or without quotation marks.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final
from uuid import UUID

from django.db.models import (
    Case,
    F,
    OuterRef,
    Q,
    Subquery,
    TextField,
    When,
)
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import PendingQuestion
from approvals.models.question import State
from knowledge.models import Document, Source, User
from knowledge.permissions import Reader
from knowledge.sentences import split_sentences
from retrieval.fates import Words
from retrieval.quoting import QuotedSpan, Quoter, Shown
from retrieval.verification.quotes import find_quotes

KIND: Final = "answer"
REF: Final = re.compile(
    r"(?<!\w)d([1-9][0-9]{0,15}):([0-9]{1,9})-([1-9][0-9]{0,8})(?!\d)"
)
# Fewer characters stand in many texts by chance.
LEAST: Final = 30
MOST_LABEL: Final = 120


def answer_spans(source: Source) -> Iterator[QuotedSpan]:
    """Yield what approved answers quote of a source.

    While a change waits for its approval, the answer is the one that serves.
    """
    revisions = dict(source.documents.values_list("number", "pk"))
    text = source.documents.filter(is_current=True).values_list("text", flat=True)
    current = Words(text.first() or "")
    for pk, own, answer in answers_near(source):
        key = str(pk)
        if own == source.pk:
            yield QuotedSpan(KIND, key, answer, 0, 0, len(answer))
            continue
        for number, start, end in named_by(answer):
            if number in revisions:
                words = words_at(number, start, end)
                yield QuotedSpan(KIND, key, words, number, start, end)
        for words in sentences_of(answer):
            place = current.find(words)
            if place is not None:
                yield QuotedSpan(KIND, key, words, 0, *place)


def answers_near(source: Source) -> Iterator[tuple[UUID, int | None, str]]:
    """Yield the answers that may quote a source, as (public id, own source, text)."""
    in_place = Document.objects.filter(source=OuterRef("source"), is_current=True)
    serving = Case(
        When(state=State.APPROVED, then=F("answer")),
        default=Subquery(in_place.values("text")[:1]),
        output_field=TextField(),
    )
    served = Q(state=State.APPROVED) | Q(state=State.PENDING, source__isnull=False)
    is_near = Q(source__knowledge_base=source.knowledge_base_id)
    rows = PendingQuestion.objects.filter(served).annotate(serving=serving)
    near = rows.filter(is_near | Q(serving__regex=r"d\d+:\d")).order_by()
    for pk, own, answer in near.values_list("public_id", "source_id", "serving"):
        if answer:
            yield pk, own, answer


def named_by(answer: str) -> Iterator[tuple[int, int, int]]:
    """Yield the refs that an answer names, as (revision, start, end)."""
    for found in REF.finditer(answer):
        number, start, end = (int(group) for group in found.groups())
        if start < end:
            yield number, start, end


def words_at(number: int, start: int, end: int) -> str:
    """Return the words of a revision at a place."""
    text = Document.objects.filter(number=number).values_list("text", flat=True).first()
    return (text or "")[start:end]


def sentences_of(answer: str) -> Iterator[str]:
    """Yield the sentences of an answer and what it puts in quotation marks, each once."""
    spans = [(each.inner_start, each.inner_end) for each in find_quotes(answer)]
    spans += split_sentences(answer, 0, len(answer))
    known = dict.fromkeys(answer[first:last].strip() for first, last in spans)
    yield from (words for words in known if len(words) >= LEAST)


def shown_answers(reader: Reader, keys: Collection[str]) -> dict[str, Shown]:
    """Return the answers that a member of staff works on."""
    if reader.user_id is None:
        return {}
    user = User.objects.filter(pk=reader.user_id, is_active=True).first()
    if user is None or not user.has_perm("approvals.view_pendingquestion"):
        return {}
    rows = PendingQuestion.objects.administered_by(user).filter(public_id__in=keys)
    return {
        str(row.public_id): Shown(
            _("Answer to “%(question)s”")
            % {"question": row.question_as_answered[:MOST_LABEL]},
            reverse("admin:approvals_pendingquestion_change", args=[row.pk]),
            row.answered_at,
        )
        for row in rows
    }


QUOTER: Final = Quoter(
    KIND, gettext_lazy("Approved answers"), answer_spans, shown_answers
)
