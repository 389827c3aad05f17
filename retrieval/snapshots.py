"""Saving what citations of turns and asks point to, and how it stands today."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from django.conf import settings
from django.db import Error, IntegrityError, connection, models, transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from knowledge.models import Document
from knowledge.permissions import Reader
from knowledge.purging import Erasure
from retrieval.citations import parse_ref
from retrieval.differences import find_words
from retrieval.models import Interaction, Snapshot, Turn, TurnStep
from retrieval.results import Hit

logger = logging.getLogger(__name__)

# A search does not wait longer than this for the numbers of its citations.
LOCK_WAIT = "5s"


@dataclass(frozen=True, slots=True)
class Gathered:
    """A hit with the knowledge base that it was found in."""

    knowledge_base_id: int
    hit: Hit


def save_citations(step: TurnStep, found: Sequence[Gathered]) -> dict[str, int] | None:
    """Number the hits of a step and keep what they say; return the numbers by ref.

    Numbers go on where the turn left off, without a gap; a place that the turn has
    cited before keeps its number (D24). None where the write failed for whatever
    reason: the search goes on without numbers (D33).
    """
    return saved(partial(write_citations, step, found))


def saved(write: Callable[[], dict[str, int]]) -> dict[str, int] | None:
    """Write citations in a transaction of their own; None where that fails for good."""
    for _attempt in range(2):
        try:
            with transaction.atomic():
                return write()
        except IntegrityError:
            # A document was deleted while its citation was written; it is known now.
            logger.info("a cited document went while its citation was saved")
        except Error:
            logger.exception("citations could not be saved")
            return None
    logger.error("citations could not be saved, twice")
    return None


def write_citations(step: TurnStep, found: Sequence[Gathered]) -> dict[str, int]:
    """Do it, within the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")
    # Whoever searches in the same turn at this moment waits here.
    Turn.objects.select_for_update(no_key=True).get(pk=step.turn_id)
    refs = [each.hit.ref for each in found]
    earlier = Snapshot.objects.filter(turn=step.turn_id)
    numbers = dict(earlier.filter(ref__in=refs).values_list("ref", "number"))
    last = earlier.aggregate(last=Max("number", default=0))["last"]
    documents = documents_of(found)
    rows = []
    for each in found:
        if each.hit.ref in numbers:
            continue
        last += 1
        numbers[each.hit.ref] = last
        rows.append(snapshot_of(last, each, documents, turn_id=step.turn_id))
    Snapshot.objects.bulk_create(rows)
    TurnStep.objects.filter(pk=step.pk).update(citations_saved=True)
    return numbers


def save_asked(
    interaction: Interaction, given: Sequence[Gathered]
) -> dict[str, int] | None:
    """Number what an ask hands back and keep what it says; the numbers by ref.

    A place that is given twice, as a passage and as a sentence, has one number. None
    where the write failed for whatever reason: the answer goes on without (D33).
    """
    return saved(partial(write_asked, interaction, given))


def write_asked(interaction: Interaction, given: Sequence[Gathered]) -> dict[str, int]:
    """Do it, within the caller's transaction."""
    documents = documents_of(given)
    places: dict[str, Gathered] = {}
    for each in given:
        places.setdefault(each.hit.ref, each)
    numbers = {ref: number for number, ref in enumerate(places, 1)}
    Snapshot.objects.bulk_create(
        snapshot_of(numbers[ref], each, documents, interaction_id=interaction.pk)
        for ref, each in places.items()
    )
    return numbers


def documents_of(found: Sequence[Gathered]) -> dict[str, Document]:
    """Return the cited revisions by their names, such as d42."""
    numbers = {int(each.hit.citation.revision[1:]) for each in found}
    rows = Document.objects.filter(number__in=numbers).only("pk", "number", "source")
    return {f"d{row.number}": row for row in rows}


def snapshot_of(
    number: int,
    each: Gathered,
    documents: Mapping[str, Document],
    *,
    turn_id: int | None = None,
    interaction_id: int | None = None,
) -> Snapshot:
    """Return the row of one citation; of a document that just went it says so."""
    hit, citation = each.hit, each.hit.citation
    parsed = parse_ref(hit.ref)
    if parsed is None:
        raise ValueError(hit.ref)
    revision, start, end = parsed
    document = documents.get(citation.revision)
    place = {
        "ref": f"{citation.revision}:{start}-{start + len(hit.text)}",
        "page": citation.page,
        "lines": citation.lines,
    }
    return Snapshot(
        turn_id=turn_id,
        interaction_id=interaction_id,
        number=number,
        knowledge_base_id=each.knowledge_base_id,
        source_id=document.source_id if document is not None else None,
        document=document,
        revision=revision,
        start=start,
        end=end,
        ref=hit.ref,
        text=hit.text,
        text_sha256=hashlib.sha256(hit.text.encode()).hexdigest(),
        cut=hit.cut,
        title=citation.title,
        clause_path=citation.clause_path,
        layer=citation.layer,
        file=citation.file,
        page=citation.page,
        lines=citation.lines,
        date=citation.date,
        date_source=citation.date_source or "",
        text_origin=citation.text_origin,
        places=[place],
        score=hit.score,
        indexed_at=citation.indexed_at,
        removed_at=None if document is not None else timezone.now(),
    )


# --- How it stands ---------------------------------------------------------------


class Standing(StrEnum):
    """What became of cited words."""

    CURRENT = "current"
    # Another revision is current, and still says so, word for word (R21).
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    REMOVED = "removed"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Stand:
    """How cited words stand, since when, and where they are now.

    `since` is None while they are current. `place` is the ref of the same words in the
    current revision, or "".
    """

    standing: Standing
    since: datetime | None = None
    place: str = ""


def stands_of(snapshots: Iterable[Snapshot]) -> dict[int, Stand]:
    """Return how each snapshot stands, by its id.

    Texts are read only of documents that have changed since.
    """
    rows = list(snapshots)
    cited = Document.objects.in_bulk(
        [row.document_id for row in rows if row.document_id is not None]
    )
    replaced = {row.source_id for row in cited.values() if not row.is_current}
    current = {
        row.source_id: row
        for row in Document.objects.filter(source__in=replaced, is_current=True)
    }
    return {row.pk: stand_of(row, cited, current) for row in rows}


def stand_of(
    row: Snapshot, cited: Mapping[int, Document], current: Mapping[int, Document]
) -> Stand:
    """Return how one snapshot stands, given the revisions that are still there."""
    if row.purged_at is not None:
        return Stand(Standing.ERASED, row.purged_at)
    if row.source_id is None:
        return Stand(Standing.REMOVED, row.removed_at)
    document = cited.get(row.document_id or 0)
    if document is None:
        return Stand(Standing.CHANGED)
    if document.is_current:
        return Stand(Standing.CURRENT, None, row.ref)
    return replaced_stand(document, row.text, current.get(document.source_id))


def replaced_stand(document: Document, words: str, current: Document | None) -> Stand:
    """Return how words of a replaced revision stand in the current one."""
    found = find_words(current.text, words) if current is not None else None
    if current is None or found is None:
        return Stand(Standing.CHANGED, document.superseded_at)
    return Stand(Standing.UNCHANGED, document.superseded_at, current.ref(*found))


def stand_of_ref(reader: Reader, ref: str) -> Stand | None:
    """Return how a ref's words stand now, or None where the reader has no such ref."""
    parsed = parse_ref(ref)
    if parsed is None:
        return None
    number, start, end = parsed
    document = Document.objects.visible_to(reader).filter(number=number).first()
    if document is None or end > len(document.text):
        return None
    if document.is_current:
        return Stand(Standing.CURRENT, None, ref)
    current = Document.objects.filter(source=document.source_id, is_current=True)
    return replaced_stand(document, document.text[start:end], current.first())


def is_changed(reader: Reader, ref: str) -> bool:
    """Tell whether the current text no longer says what a ref names (S1-CIT-01).

    A ref that the reader has no more counts as changed: nothing can be verified by it.
    """
    stand = stand_of_ref(reader, ref)
    return stand is None or stand.standing not in {Standing.CURRENT, Standing.UNCHANGED}


# What somebody asked when the words came up may hold them.
FORGET_QUERIES = """
UPDATE retrieval_searchlog SET query = '', metadata_filter = '{}'
WHERE EXISTS (SELECT 1 FROM jsonb_array_elements(hits) AS hit
              WHERE hit ->> 'ref' LIKE ANY(%s))
"""

# --- Keeping and erasing -----------------------------------------------------------


def named_documents() -> QuerySet[Snapshot, Any]:
    """Return the ids of the revisions that a snapshot names, which are kept (D2)."""
    return Snapshot.objects.filter(document__isnull=False).values("document")


def erase(erasure: Erasure) -> None:
    """Take erased words out of snapshots, trace steps, asks and the log.

    What stays of a snapshot are its number, its place and the hash of its words; of a
    search that brought them up, the query goes.
    """
    named = models.Q(revision__in=erasure.revisions)
    if erasure.source_id is not None:
        named |= models.Q(source=erasure.source_id)
    Snapshot.objects.filter(named, purged_at__isnull=True).update(
        text="", title="", clause_path="", file="", purged_at=Now()
    )
    given, withheld = models.Q(), models.Q()
    for number in erasure.revisions:
        one = [{"revision": f"d{number}"}]
        given |= models.Q(hits__contains=one)
        withheld |= models.Q(withheld__contains=one)
    if given:
        TurnStep.objects.filter(given | withheld).update(query="")
        Interaction.objects.filter(given).update(question="", queries=[])
    with connection.cursor() as cursor:
        cursor.execute(
            FORGET_QUERIES, [[f"d{number}:%" for number in erasure.revisions]]
        )


def forget_queries() -> int:
    """Take the words off trace steps and asks as old as the log; returns how many.

    Citations, and which passages were given, are kept.
    """
    old = Now() - timedelta(days=settings.STRATA_KEEP_LOG_DAYS)
    steps = TurnStep.objects.filter(at__lt=old).exclude(query="").update(query="")
    asked = Interaction.objects.filter(at__lt=old).exclude(question="")
    return steps + asked.update(question="", queries=[])
