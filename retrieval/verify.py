"""Check a draft against the documents, and give a receipt where it holds (S1-VER).

The passages are read here, by their refs, through the reader's visibility; nothing that
the caller says about their text counts (S1-VER-02). The check itself is the pure package
`retrieval.verification`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from knowledge.models import Document
from knowledge.permissions import Reader
from knowledge.sanitizing import clean_document_text
from retrieval.budget import CHARACTERS_A_TOKEN
from retrieval.citations import parse_ref
from retrieval.models import Turn
from retrieval.receipts import ReadGoneError, ReadSpan, issue_receipt
from retrieval.results import Occasion
from retrieval.sharing import HEAD
from retrieval.turns import bound_reader, use_turn
from retrieval.verification import (
    Flag,
    FlagKind,
    Found,
    Outcome,
    Read,
    check_draft,
)
from retrieval.verification.quotes import words_of

MOST_CHARACTERS = 50_000
MOST_PASSAGES = 50
# How many chunks a ref may be as wide as (S1-VER-03).
MOST_CHUNKS = 2


class VerifyInputError(Exception):
    """Something of a call that the sender has to correct; `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check found, and the receipt's id where the draft is verified.

    `notices` are sentences about passages that stand, but in a revision that is not the
    current one any more (R21).
    """

    outcome: Outcome
    flags: tuple[Flag, ...]
    unchecked_sentences: tuple[str, ...]
    found: tuple[Found, ...]
    note: str
    notices: tuple[str, ...] = ()
    receipt_id: str = ""


@dataclass(frozen=True, slots=True)
class _Passage:
    """A ref with what was read by it: nothing, where `problem` says why."""

    read: Read
    span: ReadSpan | None = None
    notice: str = ""


def verify(
    reader: Reader,
    draft: str,
    refs: Sequence[str],
    *,
    occasion: Occasion | None = None,
    interaction: UUID | None = None,
) -> Verified:
    """Check a draft against the passages that refs name, the first of which is S1.

    A verified draft gets a receipt, written before this returns, unless the `occasion`
    leaves no trace. `interaction` is the ask whose answer the draft is. Raises
    VerifyInputError for what the sender has to correct.
    """
    text = checked_draft(draft)
    passages = read_passages(reader, checked_refs(refs))
    verdict = check_draft(text, [passage.read for passage in passages])
    receipt_id = ""
    leaves_trace = occasion is None or occasion.leaves_trace
    if verdict.outcome is Outcome.VERIFIED and leaves_trace:
        try:
            receipt_id = issue_receipt(
                reader,
                kind="draft",
                read=quoted_spans(passages, verdict.found),
                draft=text,
                unchecked=verdict.unchecked_sentences,
                interaction=interaction,
            )
        except ReadGoneError as error:
            passages = without(passages, error.ref)
            verdict = check_draft(text, [passage.read for passage in passages])
    return Verified(
        outcome=verdict.outcome,
        flags=verdict.flags,
        unchecked_sentences=verdict.unchecked_sentences,
        found=verdict.found,
        note=verdict.note,
        notices=tuple(passage.notice for passage in passages if passage.notice),
        receipt_id=receipt_id,
    )


def verify_in_turn(
    turn: Turn, reader: Reader, draft: str, refs: Sequence[str]
) -> Verified:
    """Check a draft of a turn against what the turn may search now.

    Raises TurnError where the turn takes no question, VerifyInputError as `verify`.
    """
    use_turn(turn)
    return verify(bound_reader(turn, reader), draft, refs)


# --- What the sender gives -----------------------------------------------------


def checked_draft(draft: str) -> str:
    """Return the draft without what nobody can read."""
    if len(draft) > MOST_CHARACTERS:
        raise VerifyInputError(
            "draft",
            _(
                "The draft has %(count)s characters; at most %(most)s are checked at once. "
                "Check it in parts."
            )
            % {"count": f"{len(draft):,}", "most": f"{MOST_CHARACTERS:,}"},
        )
    text, _dropped = clean_document_text(draft)
    if not text.strip():
        raise VerifyInputError("draft", _("The draft is empty. Send the answer."))
    return text


def checked_refs(refs: Sequence[str]) -> Sequence[str]:
    """Return the refs, if they are of a number that can be read."""
    if not 1 <= len(refs) <= MOST_PASSAGES:
        raise VerifyInputError(
            "passages",
            _(
                "Send the refs of 1 to %(most)s passages, in the order in which the draft "
                "cites them: the first is S1."
            )
            % {"most": MOST_PASSAGES},
        )
    return refs


# --- Reading -------------------------------------------------------------------


def read_passages(reader: Reader, refs: Sequence[str]) -> list[_Passage]:
    """Return what each ref names, in their order.

    A ref that is malformed, of no revision, of one that the reader may not see, or of a
    place that it does not have, is told in the same words (D25).
    """
    places: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for index, ref in enumerate(refs):
        if parsed := parse_ref(ref):
            number, start, end = parsed
            places.setdefault(number, []).append((index, (start, end)))
    found: dict[int, _Passage] = {}
    for document in documents_of(reader, places):
        current = current_text(reader, document)
        for index, (start, end) in places[document.number]:
            if end <= len(document.text):
                found[index] = passage_of(document, start, end, index + 1, current)
    return [
        found.get(index) or unknown(ref, index + 1) for index, ref in enumerate(refs)
    ]


def documents_of(reader: Reader, places: Mapping[int, object]) -> Iterator[Document]:
    """Yield the revisions that a reader may see, one text in memory at a time."""
    return (
        Document.objects.visible_to(reader)
        .filter(number__in=list(places))
        .select_related("source__layer")
        .defer("blocks", "pages")
        .order_by("pk")
        .iterator(chunk_size=1)
    )


def current_text(reader: Reader, document: Document) -> str | None:
    """Return the text that searches find now, where a revision is not that one itself."""
    if document.is_current:
        return document.text
    return (
        Document.objects.visible_to(reader)
        .filter(source_id=document.source_id, is_current=True)
        .values_list("text", flat=True)
        .first()
    )


def passage_of(
    document: Document, start: int, end: int, number: int, current: str | None
) -> _Passage:
    """Return one passage as it was read, or why it may not count."""
    ref = document.ref(start, end)
    text = document.text[start:end]
    widest = widest_span(document, start, end)
    if end - start > widest:
        problem = _(
            "S%(number)s is too wide: %(ref)s has %(count)s characters, and at most "
            "%(most)s are read. Send the refs exactly as they were returned."
        ) % {"number": number, "ref": ref, "count": end - start, "most": widest}
        return _Passage(Read(ref, None, problem))
    span = ReadSpan(
        ref=ref,
        revision=document.number,
        start=start,
        end=end,
        text=text,
        knowledge_base_id=document.knowledge_base_id,
        source_id=document.source_id,
        title=document.title,
        file=document.source.path,
    )
    if document.is_current:
        return _Passage(Read(ref, text), span)
    if current is not None and holds(current, text):
        notice = _(
            "S%(number)s: the document has changed since, and holds this passage word "
            "for word as before."
        ) % {"number": number}
        return _Passage(Read(ref, text), span, notice)
    problem = _(
        "S%(number)s has changed: the document does not hold %(ref)s any more as it "
        "was. Ask again and use the passages that come back."
    ) % {"number": number, "ref": ref}
    return _Passage(Read(ref, text, problem), span)


def widest_span(document: Document, start: int, end: int) -> int:
    """Return how many characters a ref may span (S1-VER-03).

    A span within one section, from its start, may be as long as a named clause can be.
    """
    preset = document.source.layer.preset
    a_unit = CHARACTERS_A_TOKEN if preset.unit == "tokens" else 1
    widest = MOST_CHUNKS * preset.size * a_unit
    clause = max(HEAD, settings.ANSWER_TOKEN_BUDGET * CHARACTERS_A_TOKEN)
    if (
        widest < end - start <= clause
        and document.sections.filter(start=start, end__gte=end).exists()
    ):
        return clause
    return widest


def holds(current: str, text: str) -> bool:
    """Tell whether a text still has the words of a passage, in the same order."""
    return text in current or words_of(text).joined in words_of(current).joined


def unknown(ref: str, number: int) -> _Passage:
    """Return what is said of a ref that names nothing this reader may see."""
    problem = _(
        "S%(number)s: there is no such passage, or none that you may see. Send the refs "
        "exactly as they were returned."
    ) % {"number": number}
    return _Passage(Read(ref[:100], None, problem))


# --- What the receipt says ------------------------------------------------------


def quoted_spans(
    passages: Sequence[_Passage], found: Sequence[Found]
) -> list[ReadSpan]:
    """Return what was read, with the places that the draft quotes."""
    places: dict[str, set[tuple[int, int]]] = {}
    for one in found:
        if one.kind == FlagKind.QUOTE:
            places.setdefault(one.passage, set()).add((one.start, one.end))
    return [
        replace(span, quotes=apart(sorted(places.get(f"S{number}", ()))))
        for number, passage in enumerate(passages, start=1)
        if (span := passage.span) is not None
    ]


def apart(places: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return places in order with those joined that overlap."""
    joined: list[tuple[int, int]] = []
    for start, end in places:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def without(passages: Sequence[_Passage], ref: str) -> list[_Passage]:
    """Return the passages, with one as unknown that has gone in the meantime."""
    return [
        unknown(ref, number) if passage.read.ref == ref else passage
        for number, passage in enumerate(passages, start=1)
    ]
