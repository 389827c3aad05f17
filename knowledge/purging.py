"""Erasing a text for good, wherever it is kept (D2); what stays are hashes.

Deleting a source leaves the words that were cited from it. Purging takes those too. The
other apps keep words of their own, and give a function that erases them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from knowledge.actions import discard_original, locked, remove_source
from knowledge.dependents import hold_before, tell_removing
from knowledge.embedding import vectors_stored
from knowledge.models import (
    AuditEntry,
    Document,
    IngestRun,
    Passage,
    Source,
    StagedVector,
    User,
)
from knowledge.models.audit import record
from knowledge.models.ingest import OPEN_STATES


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is erased: revisions by their numbers, and the source where all of it goes."""

    revisions: frozenset[int]
    source_id: int | None = None


erasers: list[Callable[[Erasure], None]] = []


def erase_with(eraser: Callable[[Erasure], None]) -> None:
    """Have a function called in the transaction of each purge, once registered."""
    if eraser not in erasers:
        erasers.append(eraser)


@transaction.atomic
def purge_source(source: Source, *, actor: User | None) -> None:
    """Erase a source: its files, revisions, passages, and every copy of its words.

    The audit keeps the acts on it and the hashes of its texts, but none of its names.
    """
    hold_before([source.pk])
    source = locked(source)
    tell_removing(source, actor)
    documents = list(source.documents.only("number", "text_sha256"))
    hashes = sorted({document.text_sha256 for document in documents})
    erase(
        Erasure(frozenset(document.number for document in documents), source.pk),
        Passage.objects.filter(source=source).values_list("embedded_sha256", flat=True),
        unknown=IngestRun.objects.filter(source=source, state__in=OPEN_STATES).exists(),
    )
    record(
        actor,
        "erased",
        source,
        file_sha256=source.content_sha256,
        text_sha256=hashes,
    )
    forget_names(source.pk)
    remove_source(source)


@transaction.atomic
def purge_revision(number: int, *, actor: User | None) -> bool:
    """Erase one revision by its number; returns whether anything knew of it.

    The current one goes with its source. Of one that is gone already, what was cited
    from it is erased.
    """
    document = Document.objects.filter(number=number).select_related("source").first()
    if document is None:
        erase(Erasure(frozenset({number})), ())
        return False
    if document.is_current:
        purge_source(document.source, actor=actor)
        return True
    # Whoever writes down its words at this moment is done before, or finds it gone.
    Document.objects.select_for_update().filter(pk=document.pk).first()
    erase(Erasure(frozenset({number})), ())
    record(actor, "erased", document, text_sha256=[document.text_sha256])
    AuditEntry.objects.filter(target_type="document", target_id=document.pk).update(
        target_label=_("an erased revision")
    )
    original = document.original
    document.delete()
    if original is not None:
        discard_original(original)
    return True


def erase(erasure: Erasure, embedded: Iterable[str], *, unknown: bool = False) -> None:
    """Erase what is kept beside the source itself.

    `embedded` are the hashes of what was embedded; where a run is under way, what it
    has staged is `unknown`, so that everything staged goes and is computed again.
    """
    for eraser in erasers:
        eraser(erasure)
    if vectors_stored():
        staged = StagedVector.objects.all()
        if not unknown:
            staged = staged.filter(embedded_sha256__in=list(embedded))
        staged.delete()


def forget_names(source_id: int) -> None:
    """Take a source's title and path out of the audit's entries about it."""
    entries = AuditEntry.objects.filter(target_type="source", target_id=source_id)
    entries.update(target_label=_("an erased source"))
    for entry in entries.filter(Q(detail__has_key="path")):
        del entry.detail["path"]
        entry.save(update_fields=["detail"])
