"""Putting a prepared document in the place of the one before, in one transaction."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from knowledge.actions import discard_original, touch
from knowledge.chunking.chunks import Chunk
from knowledge.codes import stored_codes
from knowledge.extraction import Extracted
from knowledge.frontmatter import declared_date, superseded_files
from knowledge.models import (
    Document,
    EmbeddingSpace,
    IngestRun,
    Passage,
    PassageVector,
    Section,
    Source,
)
from knowledge.models.document import DateSource
from knowledge.models.passage import TextOrigin
from knowledge.naming import name_keys
from knowledge.positions import LineMap, page_at
from knowledge.register import refusal_of, rules_for, texts_of
from knowledge.reindexing import terms_writer
from knowledge.runs import LeaseLostError, held
from knowledge.structure.numbers import number_key
from knowledge.structure.sections import Section as SectionSpan
from knowledge.terms import TERMS_VERSION


class VectorsGoneError(Exception):
    """Vectors that were to be reused have been deleted in the meantime."""


class RefusedError(Exception):
    """The content cannot be ingested; `code` names the cause, the message says it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document read and cut, before anything of it is stored.

    `hashes` are the SHA-256 (hex) of what is embedded for each chunk.
    """

    extracted: Extracted
    sections: Sequence[SectionSpan]
    chunks: Sequence[Chunk]
    hashes: Sequence[str]


def publish(run: IngestRun, prepared: Prepared, space: EmbeddingSpace | None) -> None:
    """Put the new passages in the place of the old ones, in one transaction.

    A search sees the old text or the new, never both, never neither. An unchanged text
    keeps its revision, so that its refs stay current; a changed one gets a new
    revision, and the old one stays as text. Raises LeaseLostError where the source was
    deleted or asked for again meanwhile, and RefusedError where the source register
    keeps it out of where it is by now.
    """
    with transaction.atomic():
        # Not its key: citations that name the source are saved meanwhile.
        source = (
            Source.objects.select_for_update(no_key=True)
            .filter(pk=run.source_id)
            .first()
        )
        if source is None or not held(run).exists():
            raise LeaseLostError
        refuse_forbidden(source, prepared.extracted)
        last = Passage.objects.filter(source=source).aggregate(last=Max("pk"))["last"]
        document = revision_for(source, prepared.extracted)
        replaced = document.original
        describe(document, source, prepared.extracted)
        document.generation = run.generation
        document.save()
        Section.objects.bulk_create(sections_of(document, prepared), batch_size=1000)
        Passage.objects.bulk_create(
            passages_of(document, source, prepared), batch_size=500
        )
        if space is not None:
            attached = PassageVector.objects.attach(document, space, after=last or 0)
            if attached != len(prepared.chunks):
                # A source of the same text was deleted since its vectors were counted
                # on; the next attempt embeds what is missing now.
                raise VectorsGoneError
        if last is not None:
            Passage.objects.delete_of(source, up_to=last)
        if replaced is not None:
            discard_original(replaced)
        Source.objects.filter(pk=source.pk).update(
            passage_count=len(prepared.chunks),
            indexed_at=Now(),
            terms_version=TERMS_VERSION,
        )
        touch(source.knowledge_base_id)


def refuse_forbidden(source: Source, extracted: Extracted) -> None:
    """Raise RefusedError where the source register keeps a text out (S2-ING-12)."""
    reason = rules_for(source.knowledge_base_id).against(
        path=source.path, file_format=extracted.kind, texts=texts_of(extracted)
    )
    if reason:
        raise RefusedError("register", refusal_of(source.path, reason))


def revision_for(source: Source, extracted: Extracted) -> Document:
    """Return the current revision where the text is the same, else a new current one."""
    text_sha256 = hashlib.sha256(extracted.text.encode()).hexdigest()
    old = source.documents.filter(is_current=True).first()
    if old is not None and old.text_sha256 == text_sha256:
        old.sections.all().delete()
        return old
    if old is not None:
        source.documents.filter(pk=old.pk).update(is_current=False, superseded_at=Now())
    return Document(
        source=source,
        knowledge_base_id=source.knowledge_base_id,
        text_sha256=text_sha256,
        is_current=True,
    )


def describe(document: Document, source: Source, extracted: Extracted) -> None:
    """Write onto a revision what extraction found out about it."""
    document.original = source.original
    document.title = (extracted.title or source.title)[:300]
    document.kind = extracted.kind
    document.text = extracted.text
    document.pages = [
        {
            "number": page.number,
            "start": page.start,
            "end": page.end,
            "width": page.width,
            "height": page.height,
            "extractor": page.extractor,
        }
        for page in extracted.pages
    ]
    document.blocks = [
        [str(block.kind), block.start, block.end, block.level]
        for block in extracted.blocks
    ]
    document.ocr_spans = [list(span) for span in extracted.ocr_spans]
    document.front_matter = dict(extracted.front_matter)
    document.properties = dict(extracted.properties)
    document.report = list(extracted.report)
    document.supersedes = "\n".join(superseded_files(extracted.front_matter))[:500]
    document.names = name_keys(document.title, source.path, extracted.front_matter)
    document.date, document.date_source = dated(extracted, source)


def dated(extracted: Extracted, source: Source) -> tuple[date | None, str]:
    """Return a document's date and where it was read: front matter, file, or nowhere."""
    declared = declared_date(extracted.front_matter)
    if declared is not None:
        return declared, DateSource.FRONT_MATTER
    if source.original is not None and source.original.modified_at is not None:
        return source.original.modified_at.astimezone(UTC).date(), DateSource.FILE
    return None, ""


def sections_of(document: Document, prepared: Prepared) -> Iterator[Section]:
    """Yield the rows of the structure map."""
    for ordinal, section in enumerate(prepared.sections):
        yield Section(
            document=document,
            knowledge_base_id=document.knowledge_base_id,
            ordinal=ordinal,
            kind=section.kind,
            unit=section.unit or "",
            key=number_key(section.number)[:60],
            number=section.number[:60],
            label=section.label[:120],
            title=section.title[:500],
            level=section.level,
            start=section.start,
            end=section.end,
            path=list(section.path),
        )


def passages_of(
    document: Document, source: Source, prepared: Prepared
) -> Iterator[Passage]:
    """Yield the passage rows, with every position a citation shows."""
    extracted = prepared.extracted
    lines = LineMap(extracted.text)
    terms_of = terms_writer(source.layer, extracted.text)
    for chunk, sha in zip(prepared.chunks, prepared.hashes, strict=True):
        text = extracted.text[chunk.start : chunk.end]
        page = page_at(document.pages, chunk.start)
        metadata = dict(extracted.properties)
        if page is not None:
            metadata["page"] = str(page)
        first, last = lines.lines_of(chunk.start, chunk.end)
        yield Passage(
            knowledge_base_id=source.knowledge_base_id,
            layer_id=source.layer_id,
            source=source,
            document=document,
            ordinal=chunk.ordinal,
            start=chunk.start,
            end=chunk.end,
            text=text,
            context=chunk.context,
            clause_path=" > ".join(chunk.path),
            page=page,
            line_start=first,
            line_end=last,
            text_origin=origin_of(chunk, extracted),
            cut_start=chunk.cut_start,
            cut_end=chunk.cut_end,
            metadata=metadata,
            embedded_sha256=sha,
            terms=terms_of(chunk.context, text),
            codes=stored_codes(f"{chunk.context}\n{text}"),
        )


def origin_of(chunk: Chunk, extracted: Extracted) -> TextOrigin:
    """Return OCR for a chunk of which any character was read so (S1-ING-06)."""
    for start, end in extracted.ocr_spans:
        if start < chunk.end and chunk.start < end:
            return TextOrigin.OCR
    return TextOrigin.TEXT


def read_back(run: IngestRun) -> int:
    """Return how many passages a search can find of the source now.

    Raises RefusedError where that is not what was published: it is called ready only
    then.
    """
    source = Source.objects.filter(pk=run.source_id).first()
    if source is None:
        raise LeaseLostError
    found = Passage.objects.filter(source=source).count()
    if found == 0 or found != source.passage_count:
        raise RefusedError(
            "read-back",
            _(
                "After publishing, %(found)s of %(expected)s passages could be read "
                "back. Index the source again."
            )
            % {"found": found, "expected": source.passage_count},
        )
    return found
