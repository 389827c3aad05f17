"""What a person who settles questions looks at: the queue, and what stands beside one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from django.db.models import Case, Count, IntegerField, Min, QuerySet, Value, When
from django.db.models.functions import Now

from approvals.likeness import ALIKE, Floats, unpack
from approvals.models import PendingQuestion, Wording
from approvals.models.question import State
from approvals.publishing import path_of
from knowledge.chunking.cutting import chunk_document
from knowledge.extraction.plaintext import read_blocks
from knowledge.ingest import USUAL_RESERVED, USUAL_WINDOW, estimated_tokens
from knowledge.models import Layer, User
from knowledge.permissions import Reader
from knowledge.structure.sections import build_sections
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


def similar_questions(pending: PendingQuestion, user: User) -> list[Similar]:
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
        .values_list("pending_id", "language", "vector")[:MOST_COMPARED]
    )
    if not rows:
        return []
    entries, languages, vectors = zip(*rows, strict=True)
    cosines = stacked(vectors) @ stacked([each.vector for each in own]).T
    marks = ALIKE.between(languages, [each.language for each in own])
    likenesses = np.where(cosines >= marks, cosines, -np.inf).max(axis=1)
    keys, places = np.unique(np.array(entries), return_inverse=True)
    best = np.full(len(keys), -np.inf)
    np.maximum.at(best, places, likenesses)
    ranked = {
        int(keys[place]): float(best[place])
        for place in np.argsort(-best)[:MOST_SIMILAR]
        if best[place] > -np.inf
    }
    found = PendingQuestion.objects.in_bulk(list(ranked))
    return [Similar(found[pk], best) for pk, best in ranked.items() if pk in found]


def stacked(vectors: Sequence[bytes | memoryview | None]) -> Floats:
    """Return stored vectors of one space, one in each row."""
    packed = b"".join(vector or b"" for vector in vectors)
    return unpack(packed).reshape(len(vectors), -1)


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
