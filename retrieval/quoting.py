"""What quotes a source: citations and receipts, and what other apps add.

A quoter lists every span that its kind quotes, for figures that hold for all; what one
person may see of it is asked apart.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.models import Source
from knowledge.permissions import Reader
from retrieval.models import Receipt, Snapshot
from retrieval.proof import ProofError, read_json

# Rows that are read from the database at a time.
CHUNK: Final = 1000


@dataclass(frozen=True, slots=True)
class QuotedSpan:
    """Words of a source that something quotes.

    `key` is the quoting thing's own among those of its kind. `revision` is the number
    of the revision that has the words from `start` to `end`, 0 where nobody knows.
    """

    kind: str
    key: str
    words: str
    revision: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A quoting thing as a person may see it.

    `url` opens it, and is "" where nothing does. `words` are those that it keeps
    itself, "" where the revision has them.
    """

    label: str
    url: str
    at: datetime | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Quoter:
    """A kind of things that quote sources.

    `spans` yields all that they quote of one source. `shown` returns, by key, those of
    some that a reader may see.
    """

    kind: str
    name: Any
    spans: Callable[[Source], Iterator[QuotedSpan]]
    shown: Callable[[Reader, Collection[str]], Mapping[str, Shown]]


# --- Citations -------------------------------------------------------------------


def cited_spans(source: Source) -> Iterator[QuotedSpan]:
    """Yield what citations of turns and answers show of a source."""
    rows = Snapshot.objects.filter(source=source, purged_at__isnull=True)
    fields = ("pk", "text", "revision", "start")
    for pk, text, revision, start in (
        rows.exclude(text="").order_by("pk").values_list(*fields).iterator(CHUNK)
    ):
        yield QuotedSpan("citation", str(pk), text, revision, start, start + len(text))


def shown_citations(reader: Reader, keys: Collection[str]) -> dict[str, Shown]:
    """Return the citations that a reader may open."""
    rows = Snapshot.objects.visible_to(reader).filter(pk__in=keys)
    found = {}
    for row in rows.select_related("turn", "interaction").defer("places"):
        if row.turn is not None:
            url = reverse("portal:cited", args=[row.turn.public_id, row.number])
        elif row.interaction is not None:
            args = [row.interaction.public_id, row.number]
            url = reverse("portal:asked", args=args)
        else:
            continue
        label = _("Citation %(number)s of an answer") % {"number": row.number}
        found[str(row.pk)] = Shown(label, url, row.saved_at, row.text)
    return found


# --- Receipts ------------------------------------------------------------------------

READ: Final = """
SELECT r.public_id, r.signed, d.position, d.revision, w.text
FROM retrieval_receiptread d
JOIN retrieval_receipt r ON r.id = d.receipt_id
JOIN retrieval_receiptwords w
  ON w.receipt_id = d.receipt_id AND w.part = 'read/' || d.position || '/text'
WHERE d.source_id = %s AND w.text IS NOT NULL
ORDER BY r.number, d.position
"""


def receipt_spans(source: Source) -> Iterator[QuotedSpan]:
    """Yield what receipts quote of a source; where nothing is quoted, what they read.

    What a damaged receipt quotes is not known, so that all it read counts.
    """
    with connection.cursor() as cursor:
        cursor.execute(READ, [source.pk])
        while rows := cursor.fetchmany(CHUNK):
            for public_id, signed, position, revision, text in rows:
                start, quotes = quoted_in(signed, position)
                for first, last in quotes or [(0, len(text))]:
                    yield QuotedSpan(
                        "receipt",
                        public_id,
                        text[first:last],
                        revision if start is not None else 0,
                        (start or 0) + first,
                        (start or 0) + last,
                    )


def quoted_in(signed: str, position: int) -> tuple[int | None, list[tuple[int, int]]]:
    """Return where a passage of a receipt begins, and what is quoted of it."""
    try:
        read = read_json(signed.encode(), "The signed part")["read"][position]
        return int(read["start"]), [(first, last) for first, last in read["quotes"]]
    except (ProofError, LookupError, TypeError, ValueError):
        return None, []


def shown_receipts(reader: Reader, keys: Collection[str]) -> dict[str, Shown]:
    """Return the receipts that a reader may open."""
    rows = Receipt.objects.visible_to(reader).filter(public_id__in=keys)
    return {
        public_id: Shown(
            _("Receipt %(number)s") % {"number": number},
            reverse("portal:receipt", args=[public_id]),
            issued_at,
        )
        for public_id, number, issued_at in rows.values_list(
            "public_id", "number", "issued_at"
        )
    }


# By kind; the apps above this one add theirs when they are loaded.
QUOTERS: dict[str, Quoter] = {
    "citation": Quoter(
        "citation", gettext_lazy("Citations"), cited_spans, shown_citations
    ),
    "receipt": Quoter(
        "receipt", gettext_lazy("Receipts"), receipt_spans, shown_receipts
    ),
}


def quote_with(quoter: Quoter) -> None:
    """Have what one more kind of things quotes counted, once registered."""
    QUOTERS.setdefault(quoter.kind, quoter)


def quoted_spans(source: Source) -> Iterator[QuotedSpan]:
    """Yield all that is quoted of a source."""
    for quoter in QUOTERS.values():
        yield from quoter.spans(source)
