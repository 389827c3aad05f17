"""The verbs: each one transaction, with its audit entry and its queue row.

A view, an admin action, an API view, a task or a command makes one of these calls. The
caller has checked that the actor may do it; what is checked here holds for everybody.
"""

import hashlib
import os
import secrets
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from django.conf import settings
from django.core.files.base import File
from django.db import IntegrityError, models, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from knowledge.dependents import hold_before, tell_removing
from knowledge.extraction import ExtractionError, sniff
from knowledge.models import (
    Document,
    IngestRun,
    KnowledgeBase,
    Layer,
    Original,
    Passage,
    Source,
    User,
)
from knowledge.models.audit import record
from knowledge.models.ingest import OPEN_STATES, RunState
from knowledge.models.source import Purpose, SourceKind, SourceState
from knowledge.permissions import Access, grant
from knowledge.register import refusal_of, rules_for, texts_of
from knowledge.sanitizing import clean_document_text, strip_invisible

READ_BYTES = 1024 * 1024
SNIFF_BYTES = 64 * 1024
PATH_LENGTH = 500
TITLE_LENGTH = 300


class ActionError(Exception):
    """A refused act; the message is a sentence a person can act on."""


class UploadError(ActionError):
    """A file that is not taken."""


class DuplicateError(UploadError):
    """A file or path that is already there."""


@dataclass(frozen=True)
class Upload:
    """A file as it arrives.

    `name` is the caller's path or file name, `modified_at` the file's own time as the
    caller tells it (D31), never the time of the upload.
    """

    file: BinaryIO
    name: str
    modified_at: datetime | None = None

    def chunks(self) -> Iterator[bytes]:
        """Read the file from its start in pieces."""
        self.file.seek(0)
        while piece := self.file.read(READ_BYTES):
            yield piece


def clean_path(name: str) -> str:
    """Return a caller's path as citations show it: relative, readable, bounded.

    Nothing of it ever becomes a path on disk. NFC, so that a file which one system
    names in another form is the same file.
    """
    text = unicodedata.normalize("NFC", strip_invisible(clean_document_text(name)[0]))
    text = text.replace("\\", "/").replace("\n", " ").replace("\t", " ")
    parts = [part.strip() for part in PurePosixPath(text).parts]
    kept = [
        part for part in parts if part not in {"", "/", ".", ".."} and part[-1:] != ":"
    ]
    path = "/".join(kept)
    if len(path) > PATH_LENGTH:
        path = "…" + path[-(PATH_LENGTH - 1) :]
    return path or _("unnamed")


@transaction.atomic
def create_knowledge_base(
    *, name: str, slug: str = "", description: str = "", actor: User | None
) -> KnowledgeBase:
    """Create a knowledge base with its first layer, granted to whoever creates it.

    A name without Latin letters gives no short name; a drawn one stands in.
    """
    slug = slug or slugify(name)[:60] or f"kb-{secrets.token_hex(4)}"
    knowledge_base = KnowledgeBase.objects.create(
        name=name, slug=slug, description=description
    )
    record(actor, "created", knowledge_base)
    open_knowledge_base(knowledge_base, actor=actor)
    return knowledge_base


def open_knowledge_base(knowledge_base: KnowledgeBase, *, actor: User | None) -> None:
    """Give a new knowledge base what it is born with: a layer and a first reader."""
    Layer.objects.create(knowledge_base=knowledge_base, name="main")
    if actor is not None:
        grant(knowledge_base, [Access.LIST, Access.SEARCH], to=actor, actor=actor)


def store_original(upload: Upload, knowledge_base: KnowledgeBase) -> Original:
    """Check a file and keep it as it is; raises UploadError.

    Size and type are judged by the content; the name only tells text formats apart.
    What the source register keeps out by name or format is not kept (S2-ING-12).
    """
    path = clean_path(upload.name)
    rules = rules_for(knowledge_base.pk)
    if reason := rules.against(path=path):
        raise UploadError(refusal_of(path, reason))
    digest = hashlib.sha256()
    size = 0
    head = b""
    for piece in upload.chunks():
        if len(head) < SNIFF_BYTES:
            head += piece[: SNIFF_BYTES - len(head)]
        digest.update(piece)
        size += len(piece)
        if size > settings.STRATA_MAX_UPLOAD_BYTES:
            raise UploadError(
                _("%(name)s is larger than the %(limit)s MB that are accepted.")
                % {
                    "name": path,
                    "limit": settings.STRATA_MAX_UPLOAD_BYTES // 1_000_000,
                }
            )
    try:
        kind = sniff(head, path)
    except ExtractionError as error:
        raise UploadError(f"{path}: {error}") from error
    if reason := rules.against(file_format=kind):
        raise UploadError(refusal_of(path, reason))
    original = Original(
        knowledge_base=knowledge_base,
        name=PurePosixPath(path).name[:255],
        kind=kind,
        size=size,
        sha256=digest.hexdigest(),
        modified_at=upload.modified_at,
    )
    upload.file.seek(0)
    original.file.save(original.name, File(upload.file), save=False)
    # The file before the row: what is killed in between leaves a file without a row,
    # which the daily sweep deletes, and never a row without its file.
    try:
        flush_to_disk(Path(original.file.path))
        with transaction.atomic():
            original.save()
    except Exception:
        original.file.delete(save=False)
        raise
    return original


def flush_to_disk(path: Path) -> None:
    """Return once a new file would survive a power cut, as its row will."""
    for each in (path, path.parent):
        number = os.open(each, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def same_content(knowledge_base: KnowledgeBase, sha256: str) -> Source | None:
    """Return the source that already holds this content, within one knowledge base."""
    return Source.objects.filter(
        knowledge_base=knowledge_base, content_sha256=sha256
    ).first()


def upload_source(
    upload: Upload,
    *,
    layer: Layer,
    actor: User | None,
    title: str = "",
    purpose: str = Purpose.DOCUMENTATION,
    kind: str = SourceKind.DOCUMENT,
    replace: bool = False,
) -> Source:
    """Take a file in as a source and queue its ingest.

    With `replace`, a source of the same path in the layer gets the file as its new
    content. Raises UploadError, or DuplicateError where the content or the path is
    already there; then nothing is kept.
    """
    path = clean_path(upload.name)
    if replace:
        present = Source.objects.filter(layer=layer, path=path).first()
        if present is not None:
            return replace_source(present, upload, actor=actor)
    original = store_original(upload, layer.knowledge_base)
    try:
        with transaction.atomic():
            refuse_duplicate(layer.knowledge_base, original.sha256, path)
            source = Source.objects.create(
                knowledge_base=layer.knowledge_base,
                layer=layer,
                kind=kind,
                purpose=purpose,
                title=(title or PurePosixPath(path).stem or path)[:TITLE_LENGTH],
                path=path,
                original=original,
                content_sha256=original.sha256,
                created_by=actor,
                changed_at=Now(),
            )
            record(actor, "uploaded", source, size=original.size)
            queue_run(source, actor=actor)
    except IntegrityError as error:
        discard_original(original)
        # Of two uploads at once, the first may have brought the same content.
        refuse_duplicate(layer.knowledge_base, original.sha256, path)
        raise DuplicateError(
            _(
                "%(path)s is already a source of this layer. Replace it there, or "
                "choose to replace sources of the same name."
            )
            % {"path": path}
        ) from error
    except UploadError:
        discard_original(original)
        raise
    source.refresh_from_db()
    return source


def refuse_duplicate(knowledge_base: KnowledgeBase, sha256: str, path: str) -> None:
    """Raise DuplicateError where a knowledge base already holds this content."""
    twin = same_content(knowledge_base, sha256)
    if twin is not None:
        raise DuplicateError(
            _("%(path)s has the same content as “%(title)s”, which is already here.")
            % {"path": path, "title": twin.title}
        )


def discard_original(original: Original) -> None:
    """Delete a file that no source or revision names, and its row."""
    if original.sources.exists() or original.documents.exists():
        return
    name = original.file.name
    storage = original.file.storage
    original.delete()
    if name:
        transaction.on_commit(partial(storage.delete, name))


def replace_source(source: Source, upload: Upload, *, actor: User | None) -> Source:
    """Give a source a new file; the old text serves until the new one is published.

    Raises UploadError, or DuplicateError when the content is this source's own or
    another one's; then nothing has changed.
    """
    return put_in_place(source, hold_replacement(source, upload), actor=actor)


def hold_replacement(source: Source, upload: Upload) -> Original:
    """Keep a file that may take a source's place; raises UploadError.

    The daily sweep deletes it where nothing comes of it.
    """
    # The file may have another name than the source, which the register names.
    if reason := rules_for(source.knowledge_base_id).against(path=source.path):
        raise UploadError(refusal_of(source.path, reason))
    return store_original(upload, source.knowledge_base)


def put_in_place(source: Source, original: Original, *, actor: User | None) -> Source:
    """Make a file that is held the content of a source, and queue its ingest.

    Raises DuplicateError when its content is this source's own or another one's; then
    the file is discarded, and nothing else has changed.
    """
    try:
        with transaction.atomic():
            source = locked(source)
            if original.sha256 == source.content_sha256:
                raise DuplicateError(
                    _("%(path)s has not changed; there is nothing to replace.")
                    % {"path": source.path}
                )
            refuse_duplicate(source.knowledge_base, original.sha256, source.path)
            left = source.original
            source.original = original
            source.content_sha256 = original.sha256
            source.changed_at = Now()
            source.save(update_fields=["original", "content_sha256", "changed_at"])
            if left is not None:
                discard_original(left)
            record(actor, "replaced", source, size=original.size)
            queue_run(source, actor=actor)
    except IntegrityError as error:
        discard_original(original)
        raise DuplicateError(
            _("The content of %(path)s came in as another source at this moment.")
            % {"path": source.path}
        ) from error
    except ActionError:
        discard_original(original)
        raise
    source.refresh_from_db()
    return source


def locked(source: Source) -> Source:
    """Return a source as it is now, locked for this transaction."""
    found = Source.objects.select_for_update().filter(pk=source.pk).first()
    if found is None:
        raise ActionError(_("This source has been deleted in the meantime."))
    return found


@transaction.atomic
def reindex_source(source: Source, *, actor: User | None) -> IngestRun:
    """Queue a source to be read and indexed again from its original file."""
    source = locked(source)
    if source.original_id is None:
        raise ActionError(_("This source has no file to index again."))
    record(actor, "reindexed", source)
    return queue_run(source, actor=actor)


def queue_run(source: Source, *, actor: User | None) -> IngestRun:
    """Ask for a new generation of a source; the caller holds its transaction.

    Runs of older generations that are not done yet are superseded. The queue row
    commits or rolls back with all the rest (D20).
    """
    Source.objects.filter(pk=source.pk).update(
        generation=F("generation") + 1,
        state=(
            SourceState.REPROCESSING
            if source.documents.filter(is_current=True).exists()
            else SourceState.PENDING
        ),
        state_reason="",
    )
    source.refresh_from_db(fields=["generation", "state", "state_reason"])
    source.runs.filter(state__in=OPEN_STATES).update(
        state=RunState.SUPERSEDED, finished_at=Now()
    )
    run = IngestRun.objects.create(
        source=source,
        generation=source.generation,
        due_at=Now(),
        requested_by=actor,
    )
    async_task("knowledge.tasks.ingest_source", run.pk, save=False)
    return run


def touch(knowledge_base_id: int) -> None:
    """Say that what a search of this knowledge base could see has changed."""
    KnowledgeBase.objects.filter(pk=knowledge_base_id).update(version=F("version") + 1)


@transaction.atomic
def switch_source(source: Source, *, enabled: bool, actor: User | None) -> None:
    """Switch a source on or off; effective at the next search."""
    changed = Source.objects.filter(pk=source.pk).exclude(enabled=enabled)
    if changed.update(enabled=enabled):
        record(actor, "switched on" if enabled else "switched off", source)
        touch(source.knowledge_base_id)


@transaction.atomic
def move_source(source: Source, *, layer: Layer, actor: User | None) -> None:
    """Move a source to another layer, of this or another knowledge base.

    The database carries its revisions, passages and vectors along in the same
    statement, so that no reader of the old place sees them afterwards. Where the new
    layer cuts its passages in another way, it is indexed again. Raises DuplicateError
    where the new place already has the path or the content, and UploadError where the
    register of the other knowledge base keeps it out.
    """
    source = locked(source)
    left = source.layer
    if left.knowledge_base_id != layer.knowledge_base_id:
        refuse_forbidden(source, layer.knowledge_base)
    try:
        with transaction.atomic():
            Source.objects.filter(pk=source.pk).update(
                layer=layer,
                knowledge_base=layer.knowledge_base,
                # The new layer may be read in other languages.
                terms_version=0,
            )
    except IntegrityError as error:
        raise DuplicateError(
            _("%(layer)s already has a source with this path or content.")
            % {"layer": layer}
        ) from error
    source.refresh_from_db()
    Original.objects.filter(
        models.Q(sources=source) | models.Q(documents__source=source)
    ).update(knowledge_base=layer.knowledge_base)
    record(actor, "moved", source, to=str(layer))
    if source.original_id is not None and left.preset != layer.preset:
        queue_run(source, actor=actor)
    for knowledge_base_id in sorted({left.knowledge_base_id, layer.knowledge_base_id}):
        touch(knowledge_base_id)


def refuse_forbidden(source: Source, knowledge_base: KnowledgeBase) -> None:
    """Raise UploadError where another knowledge base keeps out what a source holds.

    Text that is still being read is checked when it is published.
    """
    rules = rules_for(knowledge_base.pk)
    kind = source.original.kind if source.original is not None else ""
    reason = rules.against(path=source.path, file_format=kind)
    if not reason and rules.phrases:
        # Earlier revisions stay readable, and move along.
        for document in source.documents.defer("blocks", "pages"):
            reason = reason or rules.against(texts=texts_of(document))
            if not document.keeps_text:
                texts = document.passages.values_list("text", flat=True)
                reason = reason or rules.against(texts=texts)
    if reason:
        raise UploadError(refusal_of(source.path, reason))


@transaction.atomic
def delete_source(source: Source, *, actor: User | None) -> None:
    """Delete a source with its revisions, passages and files; the audit entry stays."""
    hold_before([source.pk])
    source = locked(source)
    record(actor, "deleted", source, path=source.path)
    tell_removing(source, actor)
    remove_source(source)


def remove_source(source: Source) -> None:
    """Take a locked source and all that is its own out of the database and storage."""
    originals = list(
        Original.objects.filter(
            models.Q(sources=source) | models.Q(documents__source=source)
        ).distinct()
    )
    Passage.objects.delete_of(source)
    Document.objects.filter(source=source).delete()
    knowledge_base_id = source.knowledge_base_id
    source.delete()
    for original in originals:
        discard_original(original)
    touch(knowledge_base_id)


@transaction.atomic
def delete_knowledge_base(knowledge_base: KnowledgeBase, *, actor: User | None) -> None:
    """Delete a knowledge base with all it holds, grants included; audited."""
    record(actor, "deleted", knowledge_base)
    hold_before(list(knowledge_base.sources.values_list("pk", flat=True)))
    # All sources first: a run that publishes holds its source and then asks for the
    # knowledge base, which the first deletion below keeps.
    sources = knowledge_base.sources.select_for_update(of=("self",)).order_by("pk")
    for source in list(sources):
        record(actor, "deleted", source, path=source.path)
        # What rests on it goes with the knowledge base.
        remove_source(source)
    knowledge_base.delete()
