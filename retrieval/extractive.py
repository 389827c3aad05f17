"""Extractive answers: the documents' own sentences, word for word, or none (S1-EXT).

The whole sentences that the passages touch are weighed against the question; those at
or above the medium mark are the answer, five at most. A clause that the question names
is quoted sentence by sentence, and nothing has to be weighed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.conf import settings
from django.utils.translation import gettext as _

from knowledge.models import Document, EmbeddingSpace
from knowledge.models.passage import TextOrigin
from knowledge.permissions import Reader
from knowledge.positions import LineMap, page_at
from retrieval.answers import Note, NoteCode, Passage, Sentence
from retrieval.budget import CHARACTERS_A_TOKEN, room_beside, tokens_of
from retrieval.citations import PLACE, address, parse_ref
from retrieval.confidence import MARKS, Status, status
from retrieval.embedding import QueryVector
from retrieval.interaction import Score
from retrieval.notes import clause_of
from retrieval.quotable import LONGEST, Span, sentences_touched
from retrieval.results import Basis, Match
from retrieval.weighing import answering, probabilities, weigh, weigh_texts

MOST_SENTENCES = 5

# A sentence with the passage that touches it, and its span in the document.
Touched = tuple[Passage, Span, Sentence]


@dataclass(frozen=True, slots=True)
class Quoted:
    """The sentences that answer, what they come to, and what was left out of a clause.

    `documents` are the revisions that they stand in, by name, such as d42.
    """

    sentences: tuple[Sentence, ...] = ()
    status: Status = Status.NOT_FOUND
    notes: tuple[Note, ...] = ()
    documents: Mapping[str, Document] = field(default_factory=dict)


def quote(
    reader: Reader,
    text: str,
    passages: Sequence[Passage],
    *,
    space: EmbeddingSpace | None,
    compared: QueryVector | None,
    budget: int,
) -> Quoted:
    """Return the sentences of some passages that answer a question; `budget` in tokens.

    Raises ScoringError where nothing can weigh them (S1-EXT-16).
    """
    documents = documents_of(reader, passages)
    clauses = [each for each in passages if each.hit.match is Match.EXACT]
    if clauses:
        return quote_clauses(clauses, documents, budget)
    found = list(sentences_of(passages, documents))
    if not found:
        return Quoted(notes=unkept_notes(passages, documents), documents=documents)
    scored = weighed(text, found, space, compared)
    marks = MARKS[Basis.SENTENCES]
    best = sorted(
        (each for each in scored if each.score >= marks.medium),
        key=lambda each: -each.score,
    )
    chosen = fitting(best, budget, most=MOST_SENTENCES)
    scores = [each.score for each in chosen]
    return Quoted(tuple(chosen), status(scores, marks), (), documents)


def documents_of(reader: Reader, passages: Sequence[Passage]) -> dict[str, Document]:
    """Return the revisions of some passages that the reader may see, by name."""
    numbers = {int(each.citation.revision[1:]) for each in passages}
    rows = (
        Document.objects.visible_to(reader)
        .filter(number__in=numbers)
        .only(
            "number",
            "text",
            "blocks",
            "pages",
            "ocr_spans",
            "title",
            "source",
            "knowledge_base",
        )
    )
    return {f"d{row.number}": row for row in rows}


def sentences_of(
    passages: Sequence[Passage], documents: Mapping[str, Document]
) -> Iterator[Touched]:
    """Yield the sentences that passages touch and that can be quoted whole."""
    address_of_place = address()
    lines = {name: LineMap(row.text) for name, row in documents.items()}
    for passage in passages:
        place = parse_ref(passage.ref)
        document = documents.get(passage.citation.revision)
        if place is None or document is None:
            continue
        headings = headings_of(passage)
        _number, start, end = place
        for span in sentences_touched(document.text, document.blocks, start, end):
            first, last = span
            words = document.text[first:last]
            if " ".join(words.split()) in headings:
                continue
            yield (
                passage,
                span,
                sentence_at(
                    passage,
                    document,
                    span,
                    lines[passage.citation.revision],
                    address_of_place,
                ),
            )


def headings_of(passage: Passage) -> frozenset[str]:
    """Return the headings that lead to a passage, which are no sentences (S1-EXT-09)."""
    path = passage.citation.clause_path.split(" > ")
    return frozenset(" ".join(part.split()) for part in (*path, passage.citation.title))


def sentence_at(
    passage: Passage, document: Document, span: Span, lines: LineMap, place: str
) -> Sentence:
    """Return one sentence with its own citation."""
    first, last = span
    ref = document.ref(first, last)
    begins, ends = lines.lines_of(first, last)
    is_ocr = any(left < last and first < right for left, right in document.ocr_spans)
    citation = replace(
        passage.citation,
        ref=ref,
        lines=str(begins) if begins == ends else f"{begins}-{ends}",
        page=page_at(document.pages, first),
        text_origin=TextOrigin.OCR if is_ocr else TextOrigin.TEXT,
        url=place.replace(PLACE, ref),
    )
    return Sentence(
        text=document.text[first:last],
        ref=ref,
        passage=passage.id,
        citation=citation,
        text_origin=citation.text_origin,
        score=1.0,
    )


def weighed(
    text: str,
    found: Sequence[Touched],
    space: EmbeddingSpace | None,
    compared: QueryVector | None,
) -> list[Sentence]:
    """Return the sentences that can be quoted, each once, with their probabilities.

    One that several passages touch has its best score, and the id of the first.
    """
    raw = raw_scores(text, found, compared)
    told = probabilities(space, text, [score for _sentence, score in raw])
    best: dict[str, Sentence] = {}
    for (sentence, _score), score in zip(raw, told, strict=True):
        known = best.setdefault(sentence.ref, replace(sentence, score=score))
        if score > known.score:
            best[sentence.ref] = replace(known, score=score)
    return list(best.values())


def raw_scores(
    text: str, found: Sequence[Touched], compared: QueryVector | None
) -> list[tuple[Sentence, Score]]:
    """Return the sentences that are short enough to be quoted, with raw scores.

    Raises ScoringError where nothing can weigh them.
    """
    short = [row for row in found if row[1][1] - row[1][0] <= LONGEST]
    sentences = [sentence for _passage, _span, sentence in short]
    if settings.RERANKING_MODEL:
        own = answering(text, [passage.hit.passage_id or 0 for passage, _, _ in short])
        read = [
            f"{text}\n{sentence.text}"
            if passage.hit.passage_id in own
            else sentence.text
            for passage, _span, sentence in short
        ]
        titles = [passage.hit.citation.title for passage, _span, _sentence in short]
        scores = weigh_texts(text, list(zip(read, titles, strict=True)))
        return list(zip(sentences, scores, strict=True))
    # Named sections, which have no passage of their own, are not weighed.
    keys = [(passage.hit.passage_id or 0, span) for passage, span, _sentence in short]
    spans: dict[int, list[Span]] = {}
    for pk, span in keys:
        spans.setdefault(pk, []).append(span)
    raw = weigh(text, spans, compared)
    return [
        (sentence, raw[key])
        for sentence, key in zip(sentences, keys, strict=True)
        if key in raw
    ]


def fitting(
    sentences: Sequence[Sentence], budget: int, *, most: int | None = None
) -> list[Sentence]:
    """Return the best sentences that fit the budget with their citations (S1-EXT-13).

    The first always comes (S1-DAT-07).
    """
    chosen: list[Sentence] = []
    left = budget
    for sentence in sentences:
        cost = cost_of(sentence)
        if chosen and (cost > left or len(chosen) == most):
            continue
        chosen.append(sentence)
        left -= cost
    return chosen


def cost_of(sentence: Sentence) -> int:
    """Return how many tokens a sentence takes with its citation."""
    beside = room_beside(sentence.citation) // CHARACTERS_A_TOKEN
    return tokens_of(sentence.text) + beside


# --- Named clauses ---------------------------------------------------------------


def quote_clauses(
    clauses: Sequence[Passage], documents: Mapping[str, Document], budget: int
) -> Quoted:
    """Return the sentences of named clauses in their order, up to the budget.

    What a clause has beyond them is said (S1-EXT-14): a sentence too long to be quoted,
    or the rest of it, which is over the budget.
    """
    chosen: dict[str, Sentence] = {}
    notes: list[Note] = []
    left = budget
    for clause in clauses:
        too_long, over = False, clause.cut
        for _passage, (first, last), sentence in sentences_of([clause], documents):
            if sentence.ref in chosen or not begins_within(clause, first):
                continue
            if last - first > LONGEST:
                too_long = True
                continue
            cost = cost_of(sentence)
            if chosen and cost > left:
                over = True
                break
            chosen[sentence.ref] = sentence
            left -= cost
        notes += clause_notes(clause, too_long=too_long, over=over)
    if not chosen:
        return Quoted(notes=tuple(notes), documents=documents)
    outcome = Status.PARTLY_FOUND if notes else Status.FOUND
    return Quoted(tuple(chosen.values()), outcome, tuple(notes), documents)


def begins_within(clause: Passage, first: int) -> bool:
    """Tell whether a sentence begins in the clause, and not in what stands before it."""
    place = parse_ref(clause.ref)
    return place is not None and place[1] <= first < place[2]


def clause_notes(clause: Passage, *, too_long: bool, over: bool) -> Iterator[Note]:
    """Yield what is said of a clause that is not quoted whole."""
    names = {"clause": clause_of(clause.hit), "file": clause.citation.file}
    if too_long:
        yield Note(
            NoteCode.SENTENCES_LEFT_OUT,
            _(
                "A part of %(clause)s (%(file)s) is left out: it has no sentence end for "
                "so long that it cannot be quoted."
            )
            % names,
        )
    if over:
        yield Note(
            NoteCode.SENTENCES_LEFT_OUT,
            _(
                "The rest of %(clause)s (%(file)s) is left out: it is over the budget of "
                "one answer. Read the whole clause in the file."
            )
            % names,
        )


def unkept_notes(
    passages: Sequence[Passage], documents: Mapping[str, Document]
) -> tuple[Note, ...]:
    """Return the note for passages whose documents' texts were not kept (S1-EXT-15)."""
    has_text = any(row.text for row in documents.values())
    if not passages or has_text:
        return ()
    return (
        Note(
            NoteCode.REINGEST, _("Re-ingest this layer to enable extractive answers.")
        ),
    )
