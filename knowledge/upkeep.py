"""What is done now and then: deleting what is past its time or belongs to nothing."""

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings
from django.core.files.storage import Storage, default_storage
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django_q.models import Failure

from knowledge.actions import discard_original
from knowledge.embedding import vectors_stored
from knowledge.memory import sweep_conversations
from knowledge.models import Document, Original, StagedVector
from knowledge.models.source import ORIGINALS

logger = logging.getLogger(__name__)

# A file or row so young may belong to an upload that is not committed yet.
UPLOAD_HOURS = 1
STAGED_DAYS = 1
FAILURE_DAYS = 30
# What the apps above this one have to clean up; each adds its own when it is loaded.
ALSO: list[Callable[[], object]] = []
# What the apps above look at every so many seconds. It runs in the worker's watchdog,
# and so only looks whether something is due, and queues it.
EVERY: list[tuple[float, Callable[[], object]]] = []


# Queries for the ids of revisions that are named elsewhere, and so are kept.
named_elsewhere: list[Callable[[], QuerySet[Any, Any]]] = []


def keep_revisions(named: Callable[[], QuerySet[Any, Any]]) -> None:
    """Keep the revisions whose ids a query gives, however old they are (D2)."""
    if named not in named_elsewhere:
        named_elsewhere.append(named)


def clean() -> None:
    """Delete all of it."""
    conversations = sweep_conversations()
    revisions = sweep_revisions()
    originals = sweep_originals()
    files = sweep_files(default_storage)
    if vectors_stored():
        old = Now() - timedelta(days=STAGED_DAYS)
        StagedVector.objects.filter(created_at__lt=old).delete()
    Failure.objects.filter(stopped__lt=Now() - timedelta(days=FAILURE_DAYS)).delete()
    logger.info(
        "Deleted %s conversations that have ended, %s replaced revisions past their "
        "time, %s originals without a source and %s files without a row.",
        conversations,
        revisions,
        originals,
        files,
    )
    for act in ALSO:
        act()


def sweep_revisions() -> int:
    """Delete replaced revisions past their keeping time; returns how many (D2)."""
    old = Document.objects.filter(
        is_current=False,
        superseded_at__lt=Now() - timedelta(days=settings.STRATA_KEEP_REVISION_DAYS),
    ).select_related("original")
    for named in named_elsewhere:
        old = old.exclude(pk__in=named())
    count = 0
    for document in old.defer("text", "blocks", "pages").iterator():
        with transaction.atomic():
            original = document.original
            document.delete()
            if original is not None:
                discard_original(original)
        count += 1
    return count


def sweep_originals() -> int:
    """Delete originals that neither a source nor a revision names; returns how many.

    An upload that was killed between storing its file and its source leaves one.
    """
    left = Original.objects.filter(
        sources=None,
        documents=None,
        created_at__lt=Now() - timedelta(hours=UPLOAD_HOURS),
    )
    count = 0
    for original in left.iterator():
        with transaction.atomic():
            discard_original(original)
        count += 1
    return count


def sweep_files(storage: Storage) -> int:
    """Delete stored files that no row names; returns how many.

    An upload that was killed between its file and its row leaves one.
    """
    before = timezone.now() - timedelta(hours=UPLOAD_HOURS)
    count = 0
    for names in stored_files(storage):
        rows = Original.objects.filter(file__in=names)
        for name in names.difference(rows.values_list("file", flat=True)):
            try:
                is_old = storage.get_modified_time(name) <= before
            except FileNotFoundError:
                # Deleted with its source since the folder was read.
                continue
            if is_old:
                storage.delete(name)
                count += 1
    return count


def stored_files(storage: Storage) -> Iterator[set[str]]:
    """Yield the names of all stored originals, folder by folder."""
    if not storage.exists(ORIGINALS):
        return
    for folder in storage.listdir(ORIGINALS)[0]:
        place = PurePosixPath(ORIGINALS, folder)
        yield {str(place / name) for name in storage.listdir(str(place))[1]}
