"""Passages of an older version, which kept neither text, dates nor structure (D26).

They are searched like all others and are nobody's to quote: no document stands behind
them. The source waits for its file; ingesting that completes it (S1-ING-08).
"""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from knowledge.actions import ActionError, clean_path, touch
from knowledge.chunking.chunks import embedded_text
from knowledge.codes import stored_codes
from knowledge.embedding import gateway, space_for, vectors_stored
from knowledge.ingest import known, stage_vectors
from knowledge.models import (
    Document,
    EmbeddingSpace,
    Layer,
    Passage,
    PassageVector,
    Source,
    User,
)
from knowledge.models.audit import record
from knowledge.models.source import SourceState
from knowledge.naming import name_keys
from knowledge.register import refusal_of, rules_for
from knowledge.reindexing import terms_writer
from knowledge.sanitizing import clean_document_text
from knowledge.terms import TERMS_VERSION

logger = logging.getLogger(__name__)

# What the format of a document says that came in so.
KIND: Final = "v0"
TITLE_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class OldPassage:
    """A passage as the older version had it; `page` is None where it has none."""

    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class OldFile:
    """The passages of one file, in their order."""

    path: str
    title: str
    passages: Sequence[OldPassage]


def is_there(layer: Layer, path: str) -> bool:
    """Tell whether a layer has a source of this path already."""
    return Source.objects.filter(layer=layer, path=clean_path(path)).exists()


def bring_in_old(file: OldFile, *, layer: Layer, actor: User | None) -> Source:
    """Make a source of old passages, searchable at once.

    One transaction, after its vectors were staged. Raises ActionError where the source
    register keeps it out, the path is taken, or nothing of it is text, and the model
    server's errors.
    """
    path = clean_path(file.path)
    texts = [clean_document_text(each.text)[0].strip() for each in file.passages]
    kept = [
        (text, each.page)
        for text, each in zip(texts, file.passages, strict=True)
        if text
    ]
    if not kept:
        raise ActionError(_("%(path)s has no text.") % {"path": path})
    whole = "\n\n".join(text for text, _page in kept)
    title = (clean_document_text(file.title)[0].strip() or PurePosixPath(path).stem)[
        :TITLE_LENGTH
    ]
    reason = rules_for(layer.knowledge_base_id).against(path=path, texts=[title, whole])
    if reason:
        raise ActionError(refusal_of(path, reason))
    hashes = [
        hashlib.sha256(embedded_text(title, text).encode()).hexdigest()
        for text, _page in kept
    ]
    space = staged(layer, title, [text for text, _page in kept], hashes)
    with transaction.atomic():
        try:
            source = make_source(layer, path, title, count=len(kept), actor=actor)
        except IntegrityError as error:
            raise ActionError(
                _("%(path)s is already a source of this layer.") % {"path": path}
            ) from error
        document = Document.objects.create(
            source=source,
            knowledge_base_id=source.knowledge_base_id,
            title=title,
            kind=KIND,
            names=name_keys(title, path, {}),
            is_current=True,
            generation=source.generation,
        )
        Passage.objects.bulk_create(
            passages_of(document, source, kept, hashes), batch_size=500
        )
        if space is not None:
            PassageVector.objects.attach(document, space, after=0)
        record(actor, "imported", source, format=KIND, passages=len(kept))
        touch(source.knowledge_base_id)
    return source


def staged(
    layer: Layer, title: str, texts: Sequence[str], hashes: Sequence[str]
) -> EmbeddingSpace | None:
    """Stage the vectors of passages; None where this portal computes none."""
    if not settings.PORTAL_EMBEDS or not vectors_stored():
        return None
    model = gateway()
    space = space_for(model.describe())
    present = known(space, hashes)
    missing = {
        sha: embedded_text(title, text)
        for sha, text in zip(hashes, texts, strict=True)
        if sha not in present
    }
    for done in stage_vectors(space, model, layer.knowledge_base_id, missing.items()):
        logger.debug("%s of %s vectors are staged", done, len(missing))
    return space


def make_source(
    layer: Layer, path: str, title: str, *, count: int, actor: User | None
) -> Source:
    """Write the source, which says that it waits for its file."""
    with transaction.atomic():
        return Source.objects.create(
            knowledge_base_id=layer.knowledge_base_id,
            layer=layer,
            title=title,
            path=path,
            state=SourceState.READY,
            state_reason=_(
                "Its text was not kept by the older version, so it cannot be quoted. "
                "Upload its file in its place to complete it."
            ),
            passage_count=count,
            terms_version=TERMS_VERSION,
            indexed_at=Now(),
            created_by=actor,
        )


def passages_of(
    document: Document,
    source: Source,
    kept: Sequence[tuple[str, int | None]],
    hashes: Sequence[str],
) -> Iterator[Passage]:
    """Yield the rows. Their offsets only tell them apart; line 0 is none."""
    terms_of = terms_writer(source.layer, "\n\n".join(text for text, _page in kept))
    at = 0
    for ordinal, ((text, page), sha) in enumerate(zip(kept, hashes, strict=True)):
        yield Passage(
            knowledge_base_id=source.knowledge_base_id,
            layer_id=source.layer_id,
            source=source,
            document=document,
            ordinal=ordinal,
            start=at,
            end=at + len(text),
            text=text,
            context=document.title,
            page=page,
            line_start=0,
            line_end=0,
            metadata={"page": str(page)} if page is not None else {},
            embedded_sha256=sha,
            terms=terms_of(document.title, text),
            codes=stored_codes(f"{document.title}\n{text}"),
        )
        at += len(text)
