"""A receipt as it is opened: what it says, whether it holds, and how it stands today."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from knowledge.models import Document
from knowledge.permissions import Reader
from knowledge.purging import Erasure
from retrieval.anchor import AnchorError, known_head
from retrieval.citations import parse_ref
from retrieval.models import Receipt, ReceiptRead, ReceiptWords
from retrieval.proof import (
    BEGINNING,
    FILE_FORMAT,
    Check,
    Outcome,
    Problem,
    ProofError,
    canonical,
    check_file,
    read_json,
    removal_of,
)
from retrieval.receipt_content import content_of
from retrieval.receipts import ALPHABET, ID_BYTES, PREFIX, as_written
from retrieval.signing import KeyFileError, signer, trusted_keys
from retrieval.snapshots import Stand, Standing, replaced_stand

ID: Final = re.compile(rf"{PREFIX}[{ALPHABET}]{{{ID_BYTES * 8 // 5}}}")
# As an older version gave them out.
FORMER_ID: Final = re.compile(rf"{PREFIX}[\w-]{{1,75}}", re.ASCII)
# What is shown of the revision before and after a passage (characters).
CONTEXT: Final = 160
# Whose words a purge takes besides those of the passage itself: they may repeat it.
DERIVED: Final = ("question", "draft", "unchecked/")
REMOVED_FIELDS: Final = (
    "salt",
    "text",
    "removed_at",
    "removal_key",
    "removal_signature",
)
# The document still says so; the revision that was read is still kept.
STILL_SO: Final = frozenset({Standing.CURRENT, Standing.UNCHANGED})
KEPT: Final = frozenset({Standing.CURRENT, Standing.UNCHANGED, Standing.CHANGED})


def find_receipt(reader: Reader, receipt_id: str) -> Receipt | None:
    """Return a receipt that the reader may open now.

    By the id that it had before it was brought in, too. None alike for one that is
    missing, not for this reader, or malformed (D25).
    """
    visible = Receipt.objects.visible_to(reader)
    found = None
    if ID.fullmatch(receipt_id):
        found = visible.filter(public_id=receipt_id).first()
    # An older version's ids may look like ours.
    if found is None and FORMER_ID.fullmatch(receipt_id):
        found = visible.filter(former__former_id=receipt_id).first()
    return found


# --- Its file, and whether it holds ------------------------------------------------------


def export(receipt: Receipt) -> bytes:
    """Return the file of a receipt, which is checked without the database.

    Raises ProofError where the row is damaged beyond that.
    """
    words: dict[str, Any] = {}
    for row in receipt.words.all():
        if row.removed_at is None:
            words[row.part] = {"salt": row.salt, "text": row.text}
        else:
            words[row.part] = {
                "key": row.removal_key,
                "removed_at": as_written(row.removed_at),
                "signature": row.removal_signature,
            }
    return canonical(
        {
            "format": FILE_FORMAT,
            "sha256": receipt.sha256,
            "signature": receipt.signature,
            "signed": read_json(receipt.signed.encode(), "The signed part"),
            "words": words,
        }
    )


def check(receipt: Receipt) -> Check:
    """Check one receipt as the database holds it: itself, its columns and its link."""
    try:
        data = export(receipt)
        found = check_file(data, trusted_keys())
    except ProofError as error:
        return Check(Outcome.CHANGED, (Problem("signed", str(error)),), None, {})
    except KeyFileError:
        problem = Problem("key", "The installation's public keys cannot be read.")
        return Check(Outcome.UNKNOWN_KEY, (problem,), None, {})
    others = [*wrong_beside(receipt, found), *wrong_link(receipt, found)]
    if not others:
        return found
    return replace(found, outcome=Outcome.CHANGED, problems=(*found.problems, *others))


def is_as_signed(found: Check) -> bool:
    """Tell whether the signed part holds, so that it has the shape it was given."""
    parts = {each.part for each in found.problems}
    return found.file is not None and not parts & {"file", "signed", "signature", "key"}


def wrong_beside(receipt: Receipt, found: Check) -> Iterator[Problem]:
    """Yield where the row, or what is known outside the database, says otherwise."""
    if found.file is not None and is_as_signed(found):
        yield from wrong_columns(receipt, found.file["signed"])
    yield from wrong_head(receipt)


def wrong_columns(receipt: Receipt, signed: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield it where the row does not repeat what its signed part says."""
    repeated = {
        "number": receipt.number,
        "id": receipt.public_id,
        "kind": receipt.kind,
        "key": receipt.key_id,
        "issued_at": as_written(receipt.issued_at),
        "interaction": str(receipt.interaction) if receipt.interaction else None,
    }
    reads = [f"d{row.revision}" for row in receipt.reads.all()]
    if (
        any(signed.get(name) != value for name, value in repeated.items())
        or canonical(dict(signed)).decode() != receipt.signed
        or reads != [read["revision"] for read in signed["read"]]
    ):
        yield Problem("record", "The database's row says something else.")


def wrong_link(receipt: Receipt, found: Check) -> Iterator[Problem]:
    """Yield it where a receipt does not follow on the one before it."""
    if found.file is None or not is_as_signed(found):
        return
    before: str | None = BEGINNING
    if receipt.number > 1:
        rows = Receipt.objects.filter(number=receipt.number - 1)
        before = rows.values_list("sha256", flat=True).first()
    if found.file["signed"]["previous"] != before:
        yield Problem("chain", "The receipt before it is missing or was changed.")


def wrong_head(receipt: Receipt) -> Iterator[Problem]:
    """Yield it where another receipt of this number was issued before."""
    try:
        head = known_head()
    except AnchorError:
        # Says nothing about this one; `check_chain` and the doctor tell.
        return
    if (
        head is not None
        and head.number == receipt.number
        and head.sha256 != receipt.sha256
    ):
        yield Problem("chain", "Another receipt of this number was issued here before.")


def check_chain() -> Iterator[tuple[str, Problem]]:
    """Yield what is wrong with any receipt, or with their order, as (id, problem).

    Reads and checks every one of them. What is missing is told under the id "". Raises
    KeyFileError.
    """
    keys = trusted_keys()
    number, before = 0, BEGINNING
    rows = Receipt.objects.order_by("number").prefetch_related("words", "reads")
    for receipt in rows.iterator(chunk_size=500):
        if receipt.number != number + 1:
            yield "", missing(number + 1, receipt.number - 1)
        for problem in wrong_in_chain(receipt, keys, number, before):
            yield receipt.public_id, problem
        number, before = receipt.number, receipt.sha256
    try:
        head = known_head()
    except AnchorError as error:
        yield "", Problem("chain", str(error))
        return
    if head is not None and head.number > number:
        yield "", missing(number + 1, head.number)


def wrong_in_chain(
    receipt: Receipt, keys: Mapping[str, Ed25519PublicKey], number: int, before: str
) -> Iterator[Problem]:
    """Yield what is wrong with one receipt that comes after another in the chain."""
    try:
        found = check_file(export(receipt), keys)
    except ProofError as error:
        yield Problem("signed", str(error))
        return
    yield from found.problems
    yield from wrong_beside(receipt, found)
    follows = receipt.number == number + 1 and is_as_signed(found)
    if found.file is None or not follows:
        return
    if found.file["signed"]["previous"] != before:
        yield Problem("chain", "The receipt before it was changed.")


def missing(first: int, last: int) -> Problem:
    """Return the problem of receipts that are not there."""
    which = (
        f"Receipt {first} is" if first == last else f"Receipts {first} to {last} are"
    )
    return Problem(
        "chain",
        f"{which} missing: deleted, or the database was restored from an older backup.",
    )


# --- What it says, and how that stands ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    """An opened receipt: the row, what its check found, and what it says.

    `content` is the API's response, whose members docs/api.md lists.
    """

    receipt: Receipt
    check: Check
    content: dict[str, Any]


def open_receipt(receipt: Receipt) -> Opened:
    """Check a receipt and return it with all that it says.

    Of a receipt that was changed nothing is handed on but its id and what is wrong.
    """
    found = check(receipt)
    integrity = {
        "outcome": str(found.outcome),
        "problems": [
            {"part": each.part, "message": each.sentence} for each in found.problems
        ],
    }
    if found.file is None or not found.is_intact:
        told = {"receipt_id": receipt.public_id, "integrity": integrity}
        return Opened(receipt, found, told)
    content = content_of(found.file)
    reads = content["read"]
    stands = stands_today(receipt, reads)
    for read, stand, around in zip(reads, stands, contexts(reads, stands), strict=True):
        since = as_written(stand.since) if stand.since is not None else None
        read["standing"] = str(stand.standing)
        read["since"] = read["words_removed_at"] or since
        read["place"] = stand.place
        read["before"], read["after"] = around
    content["is_current"] = all(stand.standing in STILL_SO for stand in stands)
    content["integrity"] = integrity
    return Opened(receipt, found, content)


def stands_today(receipt: Receipt, reads: Sequence[Mapping[str, Any]]) -> list[Stand]:
    """Return how each passage stands: another question than whether words were changed."""
    rows = list(receipt.reads.all())
    cited = Document.objects.filter(number__in=[row.revision for row in rows])
    documents = {
        row.number: row
        for row in cited.only("number", "source", "is_current", "superseded_at")
    }
    replaced = {row.source_id for row in documents.values() if not row.is_current}
    current = Document.objects.filter(source__in=replaced, is_current=True)
    texts = {row.source_id: row for row in current.only("number", "source", "text")}
    return [
        stand_of(row, read, documents.get(row.revision), texts)
        for row, read in zip(rows, reads, strict=True)
    ]


def stand_of(
    row: ReceiptRead,
    read: Mapping[str, Any],
    document: Document | None,
    current: Mapping[int, Document],
) -> Stand:
    """Return how one passage stands."""
    if read["text"] is None:
        return Stand(Standing.ERASED)
    if row.source_id is None:
        return Stand(Standing.REMOVED, row.removed_at)
    if document is None:
        return Stand(Standing.CHANGED)
    if document.is_current:
        return Stand(Standing.CURRENT, None, str(read["ref"]))
    return replaced_stand(document, read["text"], current.get(document.source_id))


AROUND: Final = """
SELECT substr(d.text, greatest(r.first - %(many)s, 0) + 1, least(r.first, %(many)s)),
       substr(d.text, r.last + 1, %(many)s)
FROM unnest(%(numbers)s::bigint[], %(firsts)s::int[], %(lasts)s::int[])
     WITH ORDINALITY AS r(number, first, last, position)
LEFT JOIN knowledge_document d ON d.number = r.number
ORDER BY r.position
"""


def contexts(
    reads: Sequence[Mapping[str, Any]], stands: Sequence[Stand]
) -> list[tuple[str, str]]:
    """Return what stands before and after each passage in its revision, "" if nothing.

    It was not read, and is not signed.
    """
    refs = [parse_ref(read["ref"]) for read in reads]
    shown = [
        ref if ref is not None and stand.standing in KEPT else (0, 0, 0)
        for ref, stand in zip(refs, stands, strict=True)
    ]
    given: dict[str, Any] = {
        "many": CONTEXT,
        "numbers": [number for number, _first, _last in shown],
        "firsts": [first for _number, first, _last in shown],
        "lasts": [last for _number, _first, last in shown],
    }
    with connection.cursor() as cursor:
        cursor.execute(AROUND, given)
        return [(before or "", after or "") for before, after in cursor.fetchall()]


# --- Purging ---------------------------------------------------------------------------------


def named_documents() -> QuerySet[Document, Any]:
    """Return the ids of the revisions that a receipt names, which are kept (D2)."""
    return Document.objects.filter(number__in=ReceiptRead.objects.values("revision"))


def erase(erasure: Erasure) -> None:
    """Take erased words out of receipts, with their salts, so that no hash tells them.

    Draft, question and unchecked sentences go too: they may repeat what was read. A
    signed note stays for each, so that the receipt still holds.
    """
    named = Q(revision__in=erasure.revisions)
    if erasure.source_id is not None:
        named |= Q(source=erasure.source_id)
    parts: dict[int, set[str]] = {}
    for read in ReceiptRead.objects.filter(named):
        parts.setdefault(read.receipt_id, set()).add(f"read/{read.position}/")
    if not parts:
        return
    key, now = signer(), timezone.now()
    for receipt in Receipt.objects.filter(pk__in=parts).prefetch_related("words"):
        beginnings = (*DERIVED, *parts[receipt.pk])
        rows = [
            row
            for row in receipt.words.all()
            if row.text is not None and row.part.startswith(beginnings)
        ]
        hashes = hashes_of(receipt)
        for row in rows:
            said = removal_of(
                receipt.public_id,
                row.part,
                hashes.get(row.part, ""),
                as_written(now),
                key.key_id,
            )
            row.salt = row.text = None
            row.removed_at = now
            row.removal_key = key.key_id
            row.removal_signature = key.sign(said)
        ReceiptWords.objects.bulk_update(rows, REMOVED_FIELDS)


def hashes_of(receipt: Receipt) -> Mapping[str, str]:
    """Return the hashes that stand for a receipt's words; of a damaged one none.

    What is damaged must not keep a purge from erasing its words.
    """
    try:
        words = read_json(receipt.signed.encode(), "The signed part").get("words")
    except ProofError:
        return {}
    return words if isinstance(words, dict) else {}
