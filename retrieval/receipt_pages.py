"""The page of a receipt, its file, and the public keys that it is checked with."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from knowledge.language import language_of
from knowledge.models.knowledge_base import Language
from retrieval.models import Receipt
from retrieval.opening import KEPT, export, find_receipt, open_receipt
from retrieval.proof import Problem, ProofError
from retrieval.receipt_content import pieces
from retrieval.signing import published_keys
from retrieval.snapshots import Standing
from retrieval.views import reader_of

KEYS_NAME = "receipt-keys.json"


@dataclass(frozen=True, slots=True)
class ShownRead:
    """A passage as the page shows it.

    `pieces` are (text, whether it is quoted); `before` and `after` stand around them in
    the document. `since` is when it came to stand as it does, None while it is current;
    `ref` opens it, and is empty where it is not kept.
    """

    number: int
    content: Mapping[str, Any]
    pieces: Sequence[tuple[str, bool]]
    since: datetime | None
    ref: str
    language: str


@login_required
@require_safe
@never_cache
def receipt_page(request: HttpRequest, receipt_id: str) -> HttpResponse:
    """Show a receipt to whoever may search all of its knowledge bases now.

    Everybody else gets the 404 of a receipt that never was.
    """
    opened = open_receipt(receipt_for(request, receipt_id))
    content = opened.content
    found = opened.check
    removed_at = content.get("words_removed_at")
    return render(
        request,
        "retrieval/receipt.html",
        {
            "receipt": opened.receipt,
            "content": content,
            "outcome": str(found.outcome),
            "problems": sorted(set(map(named, found.problems))),
            "removed_at": moment(removed_at),
            "imported_at": moment((content.get("imported") or {}).get("issued_at")),
            "reads": list(shown_reads(content.get("read", ()))),
            "unchecked": [
                sentence
                for sentence in content.get("unchecked_sentences", ())
                if sentence is not None
            ],
        },
    )


def receipt_for(request: HttpRequest, receipt_id: str) -> Receipt:
    """Return a receipt that the request's reader may open, or raise Http404."""
    receipt = find_receipt(reader_of(request), receipt_id)
    if receipt is None:
        raise Http404
    return receipt


def shown_reads(reads: Sequence[Mapping[str, Any]]) -> Iterator[ShownRead]:
    """Yield the passages for the page."""
    for number, read in enumerate(reads, 1):
        text = read["text"] or ""
        standing = Standing(read["standing"])
        yield ShownRead(
            number=number,
            content=read,
            pieces=list(pieces(text, read["quotes"])) if text else [],
            since=moment(read["since"]),
            ref=read["ref"] if standing in KEPT else "",
            language=language_of(text, Language.values),
        )


def moment(text: str | None) -> datetime | None:
    """Return a moment of a receipt."""
    return datetime.fromisoformat(text) if text else None


def named(problem: Problem) -> str:
    """Name the part of a receipt that does not hold, for people."""
    kind, _slash, rest = problem.part.partition("/")
    if kind == "read" and rest.partition("/")[0].isdecimal():
        number = int(rest.partition("/")[0]) + 1
        return _("the words of passage %(number)s") % {"number": number}
    return {
        "question": _("the question"),
        "draft": _("the draft"),
        "unchecked": _("the sentences that were not checked"),
        "signature": _("the signature"),
        "key": _("the key that it was signed with"),
        "record": _("the row in the database"),
        "chain": _("its place among the other receipts"),
    }.get(kind, _("what was signed: places, hashes and times"))


@login_required
@require_safe
@never_cache
def receipt_file(request: HttpRequest, receipt_id: str) -> HttpResponse:
    """Hand out the file of a receipt, which is checked without the portal."""
    receipt = receipt_for(request, receipt_id)
    try:
        data = export(receipt)
    except ProofError as error:
        raise Http404(_("This receipt is damaged and has no file.")) from error
    return download(data, f"{receipt.public_id}.json")


@require_safe
def keys_file(request: HttpRequest) -> HttpResponse:
    """Publish the public keys of all receipts ever issued here, to anybody."""
    return download(published_keys(), KEYS_NAME)


def download(data: bytes, name: str) -> HttpResponse:
    """Return bytes as a file of JSON."""
    response = HttpResponse(data, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
