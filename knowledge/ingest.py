"""From a stored file to searchable passages.

extract -> structure -> chunk -> reuse or embed -> publish in one transaction -> read
back. A worker may be killed at any point: the old revision goes on serving, the run's
lease ends, and the next attempt finds what was already embedded (D3, D20).
"""

import hashlib
import logging
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import F, Max, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from knowledge.actions import discard_original, touch
from knowledge.chunking import Chunk, chunk_document, embedded_text
from knowledge.codes import code_keys
from knowledge.embedding import gateway, space_for, vectors_stored
from knowledge.extraction import Extracted, ExtractionError, Limits, extract_in_child
from knowledge.inference.gateway import (
    Gateway,
    ModelInfo,
    ModelInputError,
    ModelMismatchError,
    ModelUnavailableError,
)
from knowledge.models import (
    Document,
    EmbeddingSpace,
    IngestRun,
    Passage,
    PassageVector,
    Section,
    Source,
    StagedVector,
)
from knowledge.models.document import DateSource
from knowledge.models.ingest import OPEN_STATES, RunState, Stage
from knowledge.models.passage import TextOrigin
from knowledge.models.source import SourceState
from knowledge.positions import LineMap, page_at
from knowledge.structure import Section as SectionSpan
from knowledge.structure import build_sections
from knowledge.terms import index_terms

logger = logging.getLogger(__name__)

# Texts for each call to the model server: enough to sort by length, few enough that
# progress moves and a killed worker loses seconds.
EMBED_BATCH = 64
# How long a run that waits for the model server pauses: a tenth of its age, within these
# bounds (seconds).
WAIT_LEAST, WAIT_MOST = 3, 60
# Where each stage stands in the whole, in percent.
SPAN = {
    Stage.EXTRACT: (0, 10),
    Stage.STRUCTURE: (10, 12),
    Stage.CHUNK: (12, 15),
    Stage.EMBED: (15, 90),
    Stage.PUBLISH: (90, 97),
    Stage.VERIFY: (97, 100),
}


class LeaseLostError(Exception):
    """The run is no longer this worker's: taken over, superseded or deleted."""


class VectorsGoneError(Exception):
    """Vectors that were to be reused have been deleted in the meantime."""


class RefusedError(Exception):
    """The content cannot be ingested; `code` names the cause, the message says it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document read and cut, before anything of it is stored."""

    extracted: Extracted
    sections: Sequence[SectionSpan]
    chunks: Sequence[Chunk]
    hashes: Sequence[str]


def worker_name() -> str:
    """Return who holds a lease: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"[:120]


def limits() -> Limits:
    """Return the parse limits of this deployment."""
    return Limits(
        file_bytes=settings.STRATA_MAX_UPLOAD_BYTES,
        unpacked_bytes=settings.STRATA_MAX_UNPACKED_BYTES,
        text_characters=settings.STRATA_MAX_TEXT_BYTES,
        pages=settings.STRATA_MAX_PAGES,
        wall_seconds=settings.STRATA_PARSE_SECONDS,
        cpu_seconds=settings.STRATA_PARSE_SECONDS,
        memory_bytes=settings.STRATA_PARSE_MEMORY_BYTES,
    )


def run_ingest(run_id: int) -> str:
    """Carry one run as far as it goes now and return the state it is left in.

    Safe to call twice, at once or after the end: whoever does not get the lease does
    nothing. Returns "" where there was nothing to do.
    """
    run = claim(run_id)
    if run is None:
        return ""
    try:
        with kept_lease(run):
            published = bring_in(run)
    except LeaseLostError:
        logger.info("run %s was taken over or superseded", run_id)
        return RunState.SUPERSEDED
    except (ExtractionError, RefusedError) as error:
        return fail(run, getattr(error, "code", "refused"), str(error))
    except ModelUnavailableError as error:
        return wait(run, str(error))
    except ModelMismatchError as error:
        return wait(run, str(error))
    except ModelInputError as error:
        return fail(run, "model", str(error))
    except Exception:
        # An error of ours: the next attempt may find better weather, and the last one
        # ends the run. What happened goes to the log, a sentence to the page.
        logger.exception("run %s failed in stage %s", run_id, run.stage)
        return try_again(run)
    return published


def claim(run_id: int) -> IngestRun | None:
    """Take a run's lease, counting the attempt before its work begins."""
    with transaction.atomic():
        run = (
            IngestRun.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("source__layer", "source__original")
            .filter(
                Q(lease_until__isnull=True) | Q(lease_until__lt=Now()),
                pk=run_id,
                state__in=OPEN_STATES,
                due_at__lte=Now(),
            )
            .first()
        )
        if run is None:
            return None
        if run.generation != run.source.generation:
            run.state = RunState.SUPERSEDED
            run.finished_at = Now()
            run.save(update_fields=["state", "finished_at"])
            return None
        if run.attempts >= settings.STRATA_INGEST_ATTEMPTS:
            end(run, RunState.FAILED, "dead-letter", given_up())
            return None
        run.attempts += 1
        run.state = RunState.RUNNING
        run.worker = worker_name()
        run.lease_until = Now() + timedelta(seconds=settings.STRATA_LEASE_SECONDS)
        run.started_at = Now()
        run.save(
            update_fields=["attempts", "state", "worker", "lease_until", "started_at"]
        )
        has_text = run.source.documents.filter(is_current=True).exists()
        Source.objects.filter(pk=run.source_id).update(
            state=SourceState.REPROCESSING if has_text else SourceState.PROCESSING,
            state_reason="",
        )
    return run


def given_up() -> str:
    """Return the sentence for a run that ended its workers again and again."""
    return _(
        "Reading this file stopped the worker %(count)s times, so it is not tried "
        "again. Save the file in another format and replace it here."
    ) % {"count": settings.STRATA_INGEST_ATTEMPTS}


@contextmanager
def kept_lease(run: IngestRun) -> Iterator[None]:
    """Extend a run's lease from a thread of its own for as long as the work lasts.

    The thread dies with the process, so a killed worker's lease ends by itself.
    """
    over = threading.Event()

    def extend() -> None:
        try:
            while not over.wait(settings.STRATA_LEASE_SECONDS / 4):
                held(run).update(
                    lease_until=Now()
                    + timedelta(seconds=settings.STRATA_LEASE_SECONDS)
                )
        finally:
            connection.close()

    thread = threading.Thread(target=extend, daemon=True, name=f"lease-{run.pk}")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def held(run: IngestRun) -> models.QuerySet[IngestRun]:
    """Return the run's row as long as this process still holds it."""
    return IngestRun.objects.filter(
        pk=run.pk,
        state=RunState.RUNNING,
        worker=run.worker,
        attempts=run.attempts,
        source__generation=run.generation,
    )


def report(run: IngestRun, stage: Stage, done: float = 0.0) -> None:
    """Tell stage and progress (0 to 1 within it); raises LeaseLostError."""
    low, high = SPAN[stage]
    run.stage = stage
    run.percent = int(low + (high - low) * min(max(done, 0.0), 1.0))
    if not held(run).update(stage=run.stage, percent=run.percent):
        raise LeaseLostError


def bring_in(run: IngestRun) -> str:
    """Do the work of one attempt and return the state it ends in."""
    source = run.source
    current = source.documents.filter(is_current=True).first()
    if current is None or current.generation != run.generation:
        model, info, space = model_and_space(run)
        prepared = prepare(run, model, info)
        if space is not None and model is not None:
            embed_missing(run, prepared, space, model)
        report(run, Stage.PUBLISH)
        publish(run, prepared, space)
    report(run, Stage.VERIFY)
    return read_back(run)


def model_and_space(
    run: IngestRun,
) -> tuple[Gateway | None, ModelInfo | None, EmbeddingSpace | None]:
    """Return the gateway with its model and space, or Nones where nothing embeds.

    Asked before the file is read, so that a run which has to wait costs nothing.
    """
    report(run, Stage.EXTRACT)
    if not settings.PORTAL_EMBEDS or not vectors_stored():
        return None, None, None
    model = gateway()
    info = model.describe()
    return model, info, space_for(info)


def estimated_tokens(texts: Sequence[str]) -> list[int]:
    """Return four characters a token (S1-VER-03), where no model can count them."""
    return [-(-len(text) // 4) for text in texts]


def prepare(run: IngestRun, model: Gateway | None, info: ModelInfo | None) -> Prepared:
    """Read the file in a child process and cut its text into chunks."""
    source = run.source
    original = source.original
    if original is None:
        raise RefusedError("no-file", _("This source has no file to read."))
    try:
        extracted = extract_in_child(Path(original.file.path), source.path, limits())
    except FileNotFoundError as error:
        raise RefusedError(
            "file-missing",
            _("The original file is missing from the storage. Upload it again."),
        ) from error
    report(run, Stage.STRUCTURE)
    sections = build_sections(extracted.text, extracted.blocks)
    report(run, Stage.CHUNK)
    chunks = chunk_document(
        extracted.text,
        extracted.title,
        extracted.blocks,
        sections,
        source.layer.preset,
        model.count_tokens if model is not None else estimated_tokens,
        window=info.window if info is not None else 512,
        reserved=info.reserved if info is not None else 8,
    )
    if not chunks:
        raise RefusedError(
            "empty", _("No text was found in this file, so there is nothing to search.")
        )
    if len(chunks) > settings.STRATA_MAX_PASSAGES:
        raise RefusedError(
            "too-large",
            _(
                "This file gives %(count)s passages; %(limit)s are accepted. Split it "
                "into smaller files."
            )
            % {"count": len(chunks), "limit": settings.STRATA_MAX_PASSAGES},
        )
    hashes = [
        hashlib.sha256(what_is_embedded(extracted, chunk).encode()).hexdigest()
        for chunk in chunks
    ]
    return Prepared(extracted, sections, chunks, hashes)


def what_is_embedded(extracted: Extracted, chunk: Chunk) -> str:
    """Return context and text together (D8)."""
    return embedded_text(chunk.context, extracted.text[chunk.start : chunk.end])


def embed_missing(
    run: IngestRun, prepared: Prepared, space: EmbeddingSpace, model: Gateway
) -> None:
    """Stage a vector for each text that this space does not hold yet (D4)."""
    report(run, Stage.EMBED)
    wanted = dict(zip(prepared.hashes, prepared.chunks, strict=True))
    present: set[str] = set()
    for table in (PassageVector, StagedVector):
        present.update(
            table.objects.filter(
                space=space, embedded_sha256__in=list(wanted)
            ).values_list("embedded_sha256", flat=True)
        )
    missing = [(sha, chunk) for sha, chunk in wanted.items() if sha not in present]
    # Like lengths together waste no padding.
    missing.sort(key=lambda pair: pair[1].end - pair[1].start)
    run.reused = len(prepared.chunks) - len(missing)
    done = 0
    pairs = iter(missing)
    while batch := list(islice(pairs, EMBED_BATCH)):
        texts = [what_is_embedded(prepared.extracted, chunk) for _sha, chunk in batch]
        embeddings = model.embed_passages(texts)
        StagedVector.objects.bulk_create(
            [
                StagedVector(
                    space=space,
                    embedded_sha256=sha,
                    embedding=embedding.vector,
                    packed=embedding.tokens,
                )
                for (sha, _chunk), embedding in zip(batch, embeddings, strict=True)
            ],
            ignore_conflicts=True,
        )
        done += len(batch)
        report(run, Stage.EMBED, done / len(missing))
    held(run).update(
        passages=len(prepared.chunks), embedded=len(missing), reused=run.reused
    )


def publish(run: IngestRun, prepared: Prepared, space: EmbeddingSpace | None) -> None:
    """Put the new passages in the place of the old ones, in one transaction.

    A search sees the old text or the new, never both, never neither. An unchanged text
    keeps its revision, so that its refs stay current; a changed one gets a new
    revision, and the old one stays as text.
    """
    text_sha256 = hashlib.sha256(prepared.extracted.text.encode()).hexdigest()
    with transaction.atomic():
        source = Source.objects.select_for_update().get(pk=run.source_id)
        if not held(run).exists():
            raise LeaseLostError
        old = source.documents.filter(is_current=True).first()
        last = Passage.objects.filter(source=source).aggregate(last=Max("pk"))["last"]
        if old is not None and old.text_sha256 == text_sha256:
            document = old
            document.sections.all().delete()
        else:
            if old is not None:
                source.documents.filter(pk=old.pk).update(
                    is_current=False, superseded_at=Now()
                )
            document = Document(source=source, text_sha256=text_sha256)
        describe(document, source, prepared.extracted)
        document.knowledge_base_id = source.knowledge_base_id
        document.generation = run.generation
        document.is_current = True
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
        Source.objects.filter(pk=source.pk).update(
            passage_count=len(prepared.chunks), indexed_at=Now()
        )
        touch(source.knowledge_base_id)


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
    supersedes = extracted.front_matter.get("supersedes", "")
    document.supersedes = str(supersedes)[:500] if supersedes else ""
    document.date, document.date_source = dated(extracted, source)


def dated(extracted: Extracted, source: Source) -> tuple[date | None, str]:
    """Return a document's date and where it was read: front matter, file, or nowhere."""
    for key in ("updated", "date"):
        value = extracted.front_matter.get(key)
        if isinstance(value, str):
            try:
                return date.fromisoformat(value[:10]), DateSource.FRONT_MATTER
            except ValueError:
                continue
    if source.original is not None and source.original.modified_at is not None:
        return source.original.modified_at.astimezone(UTC).date(), DateSource.FILE
    return None, ""


def sections_of(document: Document, prepared: Prepared) -> Iterator[Section]:
    """Yield the rows of the structure map."""
    for ordinal, section in enumerate(prepared.sections):
        yield Section(
            document=document,
            ordinal=ordinal,
            kind=section.kind,
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
            text_origin=(
                TextOrigin.OCR
                if any(
                    start < chunk.end and chunk.start < end
                    for start, end in extracted.ocr_spans
                )
                else TextOrigin.TEXT
            ),
            cut_start=chunk.cut_start,
            cut_end=chunk.cut_end,
            metadata=metadata,
            embedded_sha256=sha,
            terms=index_terms(chunk.context, text),
            codes=[code[:80] for code in code_keys(f"{chunk.context}\n{text}")],
        )


def read_back(run: IngestRun) -> str:
    """Count what a search can find of the source, and call it ready only then."""
    source = Source.objects.get(pk=run.source_id)
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
    with transaction.atomic():
        if not held(run).update(
            state=RunState.DONE,
            percent=100,
            stage=Stage.VERIFY,
            lease_until=None,
            finished_at=Now(),
            passages=found,
        ):
            raise LeaseLostError
        Source.objects.filter(pk=run.source_id, generation=run.generation).update(
            state=SourceState.READY, state_reason=""
        )
    return RunState.DONE


def end(run: IngestRun, state: RunState, code: str, reason: str) -> None:
    """Close a run and tell its source why; the caller holds the run or its lock."""
    with transaction.atomic():
        IngestRun.objects.filter(pk=run.pk).update(
            state=state,
            code=code,
            reason=reason,
            lease_until=None,
            finished_at=Now(),
        )
        Source.objects.filter(pk=run.source_id, generation=run.generation).update(
            state=SourceState.FAILED, state_reason=reason
        )


def fail(run: IngestRun, code: str, reason: str) -> str:
    """End a run whose content cannot be taken; an older text goes on serving."""
    if run.source.documents.filter(is_current=True).exists():
        reason = _("%(reason)s The text from before is still searched.") % {
            "reason": reason
        }
    if held(run).exists():
        end(run, RunState.FAILED, code, reason)
    return RunState.FAILED


def wait(run: IngestRun, reason: str) -> str:
    """Put a run back until the model server answers; that is no attempt lost."""
    age = (timezone.now() - run.created_at).total_seconds()
    pause = min(max(age / 10, WAIT_LEAST), WAIT_MOST)
    with transaction.atomic():
        if held(run).update(
            state=RunState.WAITING,
            attempts=F("attempts") - 1,
            reason=reason,
            code="waiting",
            lease_until=None,
            due_at=Now() + timedelta(seconds=pause),
        ):
            Source.objects.filter(pk=run.source_id).update(state_reason=reason)
    return RunState.WAITING


def try_again(run: IngestRun) -> str:
    """Put a run back after an error of ours, or end it after the last attempt."""
    if run.attempts >= settings.STRATA_INGEST_ATTEMPTS:
        return fail(
            run,
            "error",
            _(
                "Something went wrong %(count)s times while this source was indexed. "
                "The server's log says what."
            )
            % {"count": run.attempts},
        )
    held(run).update(
        state=RunState.QUEUED,
        lease_until=None,
        due_at=Now() + timedelta(seconds=WAIT_LEAST),
    )
    return RunState.QUEUED


def sweep_runs() -> list[int]:
    """Return ids of runs that should be going but are not, oldest first.

    They are due, and either nobody holds them or whoever did let the lease end. Called
    at the worker's start and then periodically; each is queued again by the caller.
    """
    return list(
        IngestRun.objects.filter(
            Q(lease_until__isnull=True) | Q(lease_until__lt=Now()),
            state__in=OPEN_STATES,
            due_at__lte=Now(),
        )
        .order_by("due_at", "pk")
        .values_list("pk", flat=True)[:1000]
    )


def sweep_revisions() -> int:
    """Delete replaced revisions past their keeping time; returns how many (D2)."""
    old = Document.objects.filter(
        is_current=False,
        superseded_at__lt=Now() - timedelta(days=settings.STRATA_KEEP_REVISION_DAYS),
    ).select_related("original")
    count = 0
    for document in old.iterator():
        with transaction.atomic():
            original = document.original
            document.delete()
            if original is not None:
                discard_original(original)
        count += 1
    StagedVector.objects.filter(created_at__lt=Now() - timedelta(days=1)).delete()
    return count
