"""From a stored file to searchable passages.

extract -> structure -> chunk -> reuse or embed -> publish in one transaction -> read
back. A worker may be killed at any point: the old revision goes on serving, the run's
lease ends, and the next attempt finds what was already embedded (D3, D20).
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from knowledge.chunking.chunks import Chunk, embedded_text
from knowledge.chunking.cutting import chunk_document
from knowledge.dependents import tell_published
from knowledge.embedding import gateway, space_for, vectors_stored
from knowledge.extraction import Extracted, ExtractionError, Limits, extract_in_child
from knowledge.frontmatter import other_wordings
from knowledge.inference.gateway import (
    Gateway,
    ModelInfo,
    ModelInputError,
    ModelMismatchError,
    ModelUnavailableError,
)
from knowledge.ledger import charge_knowledge_base
from knowledge.models import (
    EmbeddingSpace,
    IngestRun,
    PassageVector,
    Source,
    StagedVector,
)
from knowledge.models.ingest import RunState, Stage
from knowledge.models.ledger import Kind
from knowledge.models.source import SourceKind
from knowledge.publishing import (
    Prepared,
    RefusedError,
    publish,
    read_back,
    refuse_forbidden,
)
from knowledge.runs import (
    LeaseLostError,
    claim,
    fail,
    finish,
    held,
    is_weather,
    kept_lease,
    once_database_answers,
    report,
    try_again,
    wait,
    wait_for_database,
)
from knowledge.structure.sections import build_sections

logger = logging.getLogger(__name__)

# Texts for each call to the model server: enough to sort by length, few enough that
# progress moves and a killed worker loses seconds.
EMBED_BATCH = 64
# What cannot be counted by a model is cut as if by one of this window.
USUAL_WINDOW, USUAL_RESERVED = 512, 8


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
            return bring_in(run)
    except LeaseLostError:
        logger.info("run %s was taken over, superseded or deleted", run_id)
        return RunState.SUPERSEDED
    except Exception as error:  # noqa: BLE001 - each kind is told apart in settle()
        return once_database_answers(partial(settle, run, error))


def settle(run: IngestRun, error: Exception) -> str:
    """Write what an error means for its run, and return the state it is left in."""
    match error:
        case ModelUnavailableError() | ModelMismatchError():
            return wait(run, str(error))
        case ModelInputError():
            return fail(run, "model", str(error))
        case ExtractionError() if error.code == "crashed" and run.attempts == 1:
            # What ended the child may have been the machine's moment: once more.
            return try_again(run)
        case ExtractionError() | RefusedError():
            return fail(run, error.code, str(error))
        case DatabaseError() if is_weather(error):
            logger.warning("run %s waits for the database: %s", run.pk, error)
            return wait_for_database(run)
    # An error of ours: another attempt may fare better, and the last one ends the run.
    # What happened goes to the log, a sentence to the page.
    logger.error("run %s failed in stage %s", run.pk, run.stage, exc_info=error)
    return try_again(run)


def bring_in(run: IngestRun) -> str:
    """Do the work of one attempt and return the state it ends in."""
    documents = run.source.documents.only("generation")
    current = documents.filter(is_current=True).first()
    if current is None or current.generation != run.generation:
        model, info, space = model_and_space(run)
        prepared = prepare(run, model, info)
        if space is not None and model is not None:
            embed_missing(run, prepared, space, model)
        report(run, Stage.PUBLISH)
        publish(run, prepared, space)
    report(run, Stage.VERIFY)
    tell_published(run.source_id)
    return finish(run, read_back(run))


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
    # A description may be an old one, and is asked with a query's patience; this is
    # answered now, by whoever serves now.
    model.count_tokens(["?"])
    info = model.describe()
    space = space_for(info)
    if run.source.state_reason:
        # It waited, and waits no longer.
        Source.objects.filter(pk=run.source_id, generation=run.generation).update(
            state_reason=""
        )
    return model, info, space


def estimated_tokens(texts: Sequence[str]) -> list[int]:
    """Return four characters a token (S1-VER-03), where no model can count them."""
    return [-(-len(text) // 4) for text in texts]


def prepare(run: IngestRun, model: Gateway | None, info: ModelInfo | None) -> Prepared:
    """Read the file in a child process and cut its text into chunks."""
    source = run.source
    if source.original is None:
        raise RefusedError("no-file", _("This source has no file to read."))
    path = Path(source.original.file.path)
    if not path.exists():
        raise RefusedError(
            "file-missing",
            _("The original file is missing from the storage. Upload it again."),
        )
    extracted = extract_in_child(path, source.path, limits())
    # Before any of it goes to the model.
    refuse_forbidden(source, extracted)
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
        window=info.window if info is not None else USUAL_WINDOW,
        reserved=info.reserved if info is not None else USUAL_RESERVED,
        asked_as=wordings_of(source, extracted),
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


def wordings_of(source: Source, extracted: Extracted) -> tuple[str, ...]:
    """Return the other wordings by which an approved answer is found, of others none."""
    if source.kind != SourceKind.QA:
        return ()
    return other_wordings(extracted.front_matter)


def what_is_embedded(extracted: Extracted, chunk: Chunk) -> str:
    """Return context and text together (D8)."""
    return embedded_text(chunk.context, extracted.text[chunk.start : chunk.end])


def known(space: EmbeddingSpace, hashes: Sequence[str]) -> set[str]:
    """Return those of the hashes whose vector this space holds, published or staged."""
    found: set[str] = set()
    for table in (PassageVector, StagedVector):
        rows = table.objects.filter(space=space, embedded_sha256__in=hashes)
        found.update(rows.values_list("embedded_sha256", flat=True))
    return found


def embed_missing(
    run: IngestRun, prepared: Prepared, space: EmbeddingSpace, model: Gateway
) -> None:
    """Stage a vector for each text that this space does not hold yet (D4)."""
    report(run, Stage.EMBED)
    wanted = dict(zip(prepared.hashes, prepared.chunks, strict=True))
    present = known(space, list(wanted))
    missing = [(sha, chunk) for sha, chunk in wanted.items() if sha not in present]
    # Like lengths together waste no padding.
    missing.sort(key=lambda pair: pair[1].end - pair[1].start)
    held(run).update(
        passages=len(prepared.chunks),
        reused=len(prepared.chunks) - len(missing),
        embedded=0,
    )
    texts = (
        (sha, what_is_embedded(prepared.extracted, chunk)) for sha, chunk in missing
    )
    for done in stage_vectors(space, model, run.source.knowledge_base_id, texts):
        held(run).update(embedded=done)
        report(run, Stage.EMBED, done / len(missing))


def stage_vectors(
    space: EmbeddingSpace,
    model: Gateway,
    knowledge_base_id: int,
    missing: Iterable[tuple[str, str]],
) -> Iterator[int]:
    """Stage a vector for each (SHA-256, text), and yield after each batch how many.

    Each batch is committed by itself, and charged to the knowledge base.
    """
    done = 0
    pairs = iter(missing)
    while batch := list(islice(pairs, EMBED_BATCH)):
        embeddings = model.embed_passages([text for _sha, text in batch])
        vectors = [
            StagedVector(
                space=space,
                embedded_sha256=sha,
                embedding=list(embedding.vector),
                packed=embedding.tokens,
            )
            for (sha, _text), embedding in zip(batch, embeddings, strict=True)
        ]
        tokens = sum(embedding.token_count for embedding in embeddings)
        # Charged with what is kept of it, so that no killed run is charged twice (R24).
        with transaction.atomic():
            StagedVector.objects.bulk_create(vectors, ignore_conflicts=True)
            charge_knowledge_base(knowledge_base_id, {Kind.INGEST: tokens})
        done += len(batch)
        yield done
