"""Issuing receipts: signed, numbered without a gap, and chained.

A receipt is written in the transaction of the act that it is about, so that neither
is there without the other (REL-R7).
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import Any, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from knowledge.embedding import active_space
from knowledge.permissions import Reader
from knowledge.sanitizing import clean_document_text
from retrieval.anchor import advance
from retrieval.log import as_kept
from retrieval.models import Receipt, ReceiptRead, ReceiptWords
from retrieval.proof import (
    BEGINNING,
    RECEIPT_FORMAT,
    SALT_BYTES,
    canonical,
    commitment,
    digest,
)
from retrieval.signing import Signer, signer
from retrieval.tuning import current, values_of

PREFIX: Final = "rcpt_"
# Of the id: 160 bits, 32 letters and digits that nobody mistakes for others.
ID_BYTES: Final = 20
ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
# The reranker where no other is named: the embedding model's own token vectors.
TOKENS: Final = "token-vectors"
# No bank detail is longer, spaces included (characters).
LONGEST_DETAIL: Final = 60


class ReadGoneError(Exception):
    """Of what was read, a source or revision was deleted before the receipt was written.

    Its words may have been purged, so that no receipt may hold them. `ref` names it.
    """

    def __init__(self, ref: str) -> None:
        super().__init__("A passage was deleted in the meantime. Please ask again.")
        self.ref = ref


@dataclass(frozen=True, slots=True)
class ReadSpan:
    """One passage as the server itself read it.

    `text` is the revision's text from `start` to `end`, in code points; `ref` is how
    the client knows it. `source_id` is None only for what an import brings along
    without its source. `quotes` are (start, end) within `text`: what the draft quotes,
    or the sentences of an extractive answer; empty there means all of it.
    """

    ref: str
    revision: int
    start: int
    end: int
    text: str
    knowledge_base_id: int
    source_id: int | None
    title: str
    file: str
    quotes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What an older version said of a receipt that it issued and nobody signed."""

    former_id: str
    issued_at: datetime | None


@transaction.atomic
def issue_receipt(
    reader: Reader,
    *,
    kind: Literal["draft", "extractive"],
    read: Sequence[ReadSpan],
    draft: str = "",
    unchecked: Sequence[str] = (),
    question: str = "",
    interaction: UUID | None = None,
    nothing_checked: bool = False,
    imported: Imported | None = None,
) -> str:
    """Write a receipt within the caller's transaction and return its id, `rcpt_…`.

    `reader` is whoever the passages were read for, and must be able to read all of
    them now. What people or models wrote is scrubbed here (S1-PRV-01). Only an import
    of old receipts sets `nothing_checked` (S1-RCP-04) and `imported`, which is signed
    too, so that nobody takes this signature for one of then.

    It takes the lock of the chain, which is held until the transaction ends: call it
    last, after every other lock. Raises ReadGoneError where what was read has gone
    meanwhile, ValueError for what no receipt can say, KeyFileError where there is
    nothing to sign with, and the database's errors; in each case the act has no
    receipt, and must not be answered as if it had one.
    """
    refuse_nonsense(reader, read)
    words = dict(words_of(read, draft=draft, unchecked=unchecked, question=question))
    salts = {part: secrets.token_hex(SALT_BYTES) for part in words}
    made_with = fingerprints()
    key = signer()
    standing = hold(read)
    number, previous = next_link()
    issued_at = timezone.now()
    signed = {
        "format": RECEIPT_FORMAT,
        "id": new_id(),
        "number": number,
        "previous": previous,
        "issued_at": as_written(issued_at),
        "key": key.key_id,
        "kind": kind,
        "verdict": "verified" if kind == "draft" else "verbatim",
        "nothing_checked": nothing_checked,
        "interaction": str(interaction) if interaction is not None else None,
        "read": [
            read_of(span, standing.hashes, whole=kind == "extractive") for span in read
        ],
        "words": {part: commitment(salts[part], text) for part, text in words.items()},
        "made_with": made_with,
    }
    if imported is not None:
        then = imported.issued_at
        signed["imported"] = {
            "id": imported.former_id,
            "issued_at": as_written(then) if then is not None else None,
        }
    receipt = write(signed, key, issued_at, interaction)
    ReceiptWords.objects.bulk_create(
        ReceiptWords(receipt=receipt, part=part, salt=salts[part], text=text)
        for part, text in words.items()
    )
    ReceiptRead.objects.bulk_create(
        stand_of(receipt, *each, standing) for each in enumerate(read)
    )
    return receipt.public_id


def refuse_nonsense(reader: Reader, read: Sequence[ReadSpan]) -> None:
    """Raise ValueError for passages that were not read, or not for this reader."""
    if not read:
        raise ValueError("A receipt without a passage says nothing.")
    for span in read:
        if len(span.text) != span.end - span.start:
            raise ValueError(f"The text of {span.ref} is not as long as its span.")
        if any(not 0 <= start < end <= len(span.text) for start, end in span.quotes):
            raise ValueError(f"A quote lies outside {span.ref}.")
    if not {span.knowledge_base_id for span in read} <= reader.searchable:
        raise ValueError("A passage was read that its reader may not search.")


def words_of(
    read: Sequence[ReadSpan], *, draft: str, unchecked: Sequence[str], question: str
) -> Iterator[tuple[str, str]]:
    """Yield the words of a receipt by part; what is empty has none."""
    if question:
        yield "question", kept(question)
    if draft:
        yield "draft", kept(draft)
    for index, sentence in enumerate(unchecked):
        yield f"unchecked/{index}", kept_sentence(sentence, draft)
    for index, span in enumerate(read):
        yield f"read/{index}/text", span.text
        if span.title:
            yield f"read/{index}/title", span.title
        if span.file:
            yield f"read/{index}/file", span.file


def kept(text: str) -> str:
    """Return what a person or model wrote, as it may be stored."""
    return as_kept(clean_document_text(text)[0])


def kept_sentence(sentence: str, draft: str) -> str:
    """Return a sentence of a draft as it may be stored.

    Sentences come cut to a length. A bank detail that was cut with it is no longer
    seen as one, so that the sentence is scrubbed with what followed it in the draft.
    """
    plain = kept(sentence)
    start = draft.find(sentence.rstrip("…"))
    if start < 0:
        return plain
    longer = kept(draft[start : start + len(sentence) + LONGEST_DETAIL])
    same = len(list(takewhile(is_pair, zip(plain, longer, strict=False))))
    return plain if same >= len(plain.rstrip("…")) else f"{plain[:same]}…"


def is_pair(letters: tuple[str, str]) -> bool:
    """Tell whether two letters are the same."""
    return letters[0] == letters[1]


def read_of(
    span: ReadSpan, hashes: Mapping[int, str], *, whole: bool
) -> dict[str, Any]:
    """Return what the signed part says of one passage, besides its words."""
    quotes = span.quotes or (((0, len(span.text)),) if whole else ())
    return {
        "ref": span.ref,
        "revision": f"d{span.revision}",
        # Of a text that an older version did not keep there is none.
        "revision_sha256": hashes.get(span.revision) or None,
        "start": span.start,
        "end": span.end,
        "quotes": [list(quote) for quote in quotes],
    }


def fingerprints() -> dict[str, Any]:
    """Return what tells models and settings apart from others."""
    space = active_space()
    tuning = current()
    values = json.dumps(values_of(tuning), sort_keys=True)
    return {
        "version": settings.VERSION,
        "embedding_model": space.model_id if space is not None else None,
        "embedding_space": space.fingerprint if space is not None else None,
        "reranking_model": (settings.RERANKING_MODEL or TOKENS)
        if tuning.reranking
        else None,
        "settings_version": tuning.version,
        "settings_sha256": digest(values.encode()),
    }


def new_id() -> str:
    """Return an id of 160 random bits."""
    number = secrets.randbits(8 * ID_BYTES)
    letters = (number >> shift & 31 for shift in range(0, 8 * ID_BYTES, 5))
    return PREFIX + "".join(ALPHABET[letter] for letter in letters)


def as_written(moment: datetime) -> str:
    """Return a moment in UTC, to the microsecond, as receipts write it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def next_link() -> tuple[int, str]:
    """Return the number and the `previous` of a new receipt, under the chain's lock.

    Whoever issues another one waits until this transaction ends, so that a receipt
    that is rolled back leaves no gap.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('receipts'))")
    last = Receipt.objects.order_by("-number").values_list("number", "sha256").first()
    return (last[0] + 1, last[1]) if last is not None else (1, BEGINNING)


def write(
    signed: dict[str, Any], key: Signer, issued_at: datetime, interaction: UUID | None
) -> Receipt:
    """Sign and write the receipt itself; it is noted outside the database too."""
    data = canonical(signed)
    receipt: Receipt = Receipt.objects.create(
        number=signed["number"],
        public_id=signed["id"],
        kind=signed["kind"],
        interaction=interaction,
        signed=data.decode(),
        sha256=digest(data),
        signature=key.sign(signed),
        key_id=key.key_id,
        issued_at=issued_at,
    )
    transaction.on_commit(partial(advance, receipt.number, receipt.sha256), robust=True)
    return receipt


# --- Where it was read ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Standing:
    """What is still there of what was read, held as it is until the receipt is written.

    `bases` are knowledge bases, `base_of` has each source's, and `hashes` the SHA-256
    of each revision's whole text.
    """

    bases: frozenset[int]
    base_of: Mapping[int, int]
    hashes: Mapping[int, str]


# What was read may be moved, deleted or purged at this moment.
HOLD_SOURCES: Final = """
SELECT id, knowledge_base_id FROM knowledge_source WHERE id = ANY(%s)
ORDER BY id FOR KEY SHARE
"""
HOLD_DOCUMENTS: Final = """
SELECT number, text_sha256 FROM knowledge_document WHERE number = ANY(%s)
ORDER BY id FOR KEY SHARE
"""
HOLD_BASES: Final = """
SELECT id FROM knowledge_knowledgebase WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE
"""


def hold(read: Sequence[ReadSpan]) -> Standing:
    """Hold what was read, and return what there is of it; raises ReadGoneError."""
    sources = [span.source_id for span in read if span.source_id is not None]
    with connection.cursor() as cursor:
        cursor.execute(HOLD_SOURCES, [sources])
        base_of = dict(cursor.fetchall())
        cursor.execute(HOLD_DOCUMENTS, [[span.revision for span in read]])
        hashes = dict(cursor.fetchall())
        bases = {span.knowledge_base_id for span in read}
        cursor.execute(HOLD_BASES, [list(bases.union(base_of.values()))])
        there = frozenset(row[0] for row in cursor.fetchall())
    for span in read:
        is_there = span.source_id in base_of and span.revision in hashes
        if span.source_id is not None and not is_there:
            raise ReadGoneError(span.ref)
    return Standing(there, base_of, hashes)


def stand_of(
    receipt: Receipt, position: int, span: ReadSpan, standing: Standing
) -> ReceiptRead:
    """Return the row that follows one passage's source from now on."""
    base: int | None = span.knowledge_base_id
    if span.source_id is not None:
        base = standing.base_of[span.source_id]
    return ReceiptRead(
        receipt=receipt,
        position=position,
        revision=span.revision,
        knowledge_base_id=base if base in standing.bases else None,
        source_id=span.source_id,
    )
