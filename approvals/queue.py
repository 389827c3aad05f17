"""What a person who settles questions looks at: the queue, and what stands beside one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from django.db.models import Case, Count, IntegerField, Min, QuerySet, Value, When
from django.db.models.functions import Now

from approvals.likeness import ALIKE, Floats, Mark, unpack
from approvals.models import PendingQuestion, Wording
from approvals.models.question import State
from approvals.publishing import path_of
from knowledge.chunking import chunk_document
from knowledge.extraction.plaintext import read_blocks
from knowledge.ingest import USUAL_RESERVED, USUAL_WINDOW, estimated_tokens
from knowledge.models import Layer, User
from knowledge.permissions import Reader
from knowledge.structure import build_sections
from retrieval.results import SearchResult
from retrieval.search import SearchInputError, search

# Wordings that are compared, the latest ones: a thousand take a few milliseconds.
MOST_COMPARED: Final = 20_000
MOST_SIMILAR: Final = 10


def wanted_first(user: User) -> QuerySet[PendingQuestion]:
    """Return the pending questions that a person works on, the most wanted first.

    By how many people asked, then how often, then since when; what is put off comes
    last until its time.
    """
    put_off = Case(
        When(snoozed_until__gt=Now(), then=Value(1)),
        default=Value(0),
        output_field=IntegerField(),
    )
    return (
        PendingQuestion.objects.administered_by(user)
        .open()
        .order_by(put_off, "-asker_count", "-asked_count", "first_asked_at", "pk")
    )


def waiting_for(user: User) -> QuerySet[PendingQuestion]:
    """Return those that wait for an answer and are not put off, the most wanted first."""
    return wanted_first(user).filter(answer="").exclude(snoozed_until__gt=Now())


def awaiting_for(user: User) -> QuerySet[PendingQuestion]:
    """Return those of a person's questions whose answer waits for approval."""
    return PendingQuestion.objects.administered_by(user).open().exclude(answer="")


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many questions wait for an answer, and since when the oldest of them."""

    count: int
    oldest_at: datetime | None


def backlog_of(user: User) -> Backlog:
    """Return what waits for a member of staff, but for what is put off (S2-APR-09)."""
    found = (
        waiting_for(user)
        .order_by()
        .aggregate(count=Count("pk"), oldest=Min("first_asked_at"))
    )
    return Backlog(found["count"], found["oldest"])


def nearest_passages(
    pending: PendingQuestion, reader: Reader, count: int = 5
) -> SearchResult | None:
    """Return what is nearest to a question among what the reader may see.

    Maybe the answer is in the documents, and was missed. It leaves no trace. None where
    it cannot be searched for as it was asked.
    """
    try:
        return search(reader, pending.question, top_k=count)
    except SearchInputError:
        return None


@dataclass(frozen=True, slots=True)
class Similar:
    """Another question that may ask the same; `likeness` is a cosine, at most 1."""

    pending: PendingQuestion
    likeness: float


def similar_questions(
    pending: PendingQuestion, user: User, *, mark: Mark = ALIKE
) -> list[Similar]:
    """Return questions that may be the same, in any language, the most alike first.

    Of those that the person works on, pending or answered; a person decides what is
    merged. The likeness of two questions is that of their most alike wordings.
    """
    own = list(pending.wordings.exclude(vector=None))
    if not own:
        return []
    space = own[-1].space
    own = [each for each in own if each.space == space]
    others = PendingQuestion.objects.administered_by(user).filter(
        state__in=[State.PENDING, State.APPROVED]
    )
    rows = list(
        Wording.objects.filter(
            pending__in=others.exclude(pk=pending.pk).order_by(), space=space
        )
        .exclude(vector=None)
        .order_by("-at")
        .only("pending_id", "language", "vector")[:MOST_COMPARED]
    )
    if not rows:
        return []
    cosines = stacked(rows) @ stacked(own).T
    best: dict[int, float] = {}
    for row, likenesses in zip(rows, cosines.tolist(), strict=True):
        for each, likeness in zip(own, likenesses, strict=True):
            if row.pending_id is not None and mark.holds(
                likeness, each.language, row.language
            ):
                best[row.pending_id] = max(likeness, best.get(row.pending_id, -1.0))
    keys = sorted(best, key=lambda pk: -best[pk])[:MOST_SIMILAR]
    found = PendingQuestion.objects.in_bulk(keys)
    return [Similar(found[pk], best[pk]) for pk in keys if pk in found]


def stacked(wordings: Sequence[Wording]) -> Floats:
    """Return wordings' vectors, one in each row."""
    return np.stack([unpack(bytes(each.vector or b"")) for each in wordings])


@dataclass(frozen=True, slots=True)
class Preview:
    """An answer as it will be found: its title, its file, and its passages' texts."""

    title: str
    file: str
    passages: tuple[str, ...]


def preview(
    pending: PendingQuestion, *, question: str, answer: str, layer: Layer
) -> Preview:
    """Return how an answer will be cut and cited in a layer."""
    blocks = list(read_blocks(answer, markdown=True))
    chunks = chunk_document(
        answer,
        question,
        blocks,
        build_sections(answer, blocks),
        layer.preset,
        estimated_tokens,
        window=USUAL_WINDOW,
        reserved=USUAL_RESERVED,
    )
    return Preview(
        title=question,
        file=path_of(pending),
        passages=tuple(answer[chunk.start : chunk.end] for chunk in chunks),
    )
