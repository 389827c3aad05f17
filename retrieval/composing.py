"""What an ask knows on its way, and how an answer is made of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.utils.translation import gettext as _

from knowledge.models.passage import TextOrigin
from knowledge.permissions import Reader
from knowledge.terms import question_language
from retrieval.answers import (
    Answer,
    Mode,
    Note,
    Passage,
    Progress,
    Sentence,
    SourceCited,
)
from retrieval.calibration import calibrated
from retrieval.confidence import Status, status
from retrieval.denial import asks_for_what_is_not, denies
from retrieval.embedding import QueryVector
from retrieval.engine import Found
from retrieval.extractive import Quoted
from retrieval.journal import Journal
from retrieval.judging import basis_of, calibrated_scores
from retrieval.models import Turn
from retrieval.names import find_names, missing_names
from retrieval.notes import Named, next_step, settle
from retrieval.queries import Searched
from retrieval.reach import Reach, Sql, rows_of
from retrieval.results import (
    Branch,
    Confidence,
    Hit,
    Occasion,
    RoutingFallback,
)
from retrieval.rewriting import Rewrite
from retrieval.search import Asked, SearchInputError
from retrieval.sections import SectionsFound
from retrieval.weighing import nearest_sentences

CONTEXTS = "SELECT context, text FROM knowledge_passage WHERE id = ANY(%s)"
# Of a question's words, by their rarity, where there are no scores to go by.
MOST_WORDS = 0.75


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks what, where, and to whom it is told how far it is."""

    reader: Reader
    asked: Asked
    turn: Turn | None
    occasion: Occasion | None
    journal: Journal
    begin: Progress
    conversation_id: UUID | None = None

    @property
    def leaves_trace(self) -> bool:
        """Whether anything of it is kept."""
        return self.occasion is not None and self.occasion.leaves_trace


@dataclass(frozen=True, slots=True)
class Looked:
    """What one reach has for a question.

    `hits` are the named sections and the ranked passages, best first. `read_as` is the
    question that they were ranked and judged by: as written, or with the marks that it
    was typed without.
    """

    reach: Reach
    read_as: str
    queries: tuple[str, ...]
    rewrite: Rewrite
    searched: Sequence[Searched]
    found: Found
    sections: SectionsFound
    hits: tuple[Hit, ...]
    confidence: Confidence | None
    fallback: RoutingFallback | None = None


def checked_mode(mode: str | None) -> Mode | None:
    """Return the mode that is asked for; raises SearchInputError for another word."""
    if mode is None:
        return None
    try:
        return Mode(mode)
    except ValueError as error:
        raise SearchInputError(
            "mode", _("The mode is extractive or grounded, or left out.")
        ) from error


def at_best_one(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return ranked hits with their fused scores, the best at 1.0 (S1-HYB-07)."""
    best = max((hit.score for hit in hits), default=0.0)
    return tuple(
        replace(hit, score=hit.score / best if best > 0 else 0.0) for hit in hits
    )


def compose(
    asking: Asking,
    looked: Looked,
    passages: Sequence[Passage],
    quoted: Quoted | None,
    *,
    said: Sequence[Note],
) -> Answer:
    """Return the answer that passages, or sentences quoted from them, come to.

    `said` are notes that come before all others.
    """
    asked, journal = asking.asked, asking.journal
    given = [passage.hit for passage in passages]
    scores = scores_of(asked, looked.read_as, given)
    named = what_is_named(asked.text, looked.sections, passages, quoted)
    lacks = lacks_denial(looked.read_as, passages, looked.found.vector)
    mode = Mode.GROUNDED if quoted is None else Mode.EXTRACTIVE
    verdict = settle(
        status_of(asked, looked, given, scores) if quoted is None else quoted.status,
        mode=mode,
        sections=looked.sections,
        given=given,
        named=replace(named, lacks_denial=lacks),
        said=() if quoted is None else quoted.notes,
    )
    is_refused = verdict.status is Status.NOT_FOUND
    sentences = () if quoted is None or is_refused else quoted.sentences
    notes = (*said, *verdict.notes)
    return Answer(
        question=asked.text,
        status=verdict.status,
        mode=mode,
        passages=tuple(passages),
        sentences=sentences,
        note=" ".join(note.text for note in notes),
        notes=tuple(dict.fromkeys(note.code for note in notes)),
        next_step=next_step(
            verdict.status,
            has_layers=not asked.reach.is_empty,
            named_layers=not asked.routes,
        ),
        warnings=warnings_about(passages if quoted is None else sentences),
        queries=looked.queries,
        confidence=looked.confidence,
        hits=looked.hits,
        sources=sources_of(passages, scores),
        labels=tuple(journal.labels),
        notices=tuple(journal.notices),
        model=None
        if looked.found.vector is None
        else looked.found.vector.space.model_id,
        layers_ignored=asked.layers_ignored,
        routing_fallback=looked.fallback,
    )


def scores_of(asked: Asked, text: str, given: Sequence[Hit]) -> list[float]:
    """Return each passage's score on the scale that confidence is judged on."""
    scale = calibrated(asked.space, basis_of(given))
    return calibrated_scores(scale, text, given)


def status_of(
    asked: Asked, looked: Looked, given: Sequence[Hit], scores: Sequence[float]
) -> Status:
    """Return what the best passage comes to (S1-ASK-09).

    Without a vector nothing has a score: then a passage that holds most of the
    question's words, or its code, is a part of an answer and never a whole one.
    """
    if looked.confidence is not None:
        return status(scores, calibrated(asked.space, basis_of(given)).marks)
    is_held = any(holds_the_words(hit) for hit in given)
    return Status.PARTLY_FOUND if is_held else Status.NOT_FOUND


def holds_the_words(hit: Hit) -> bool:
    """Tell whether a passage holds most of a question's words, or a code of it."""
    words = hit.branches.get(Branch.KEYWORDS)
    return Branch.CODES in hit.branches or (
        words is not None and words.share >= MOST_WORDS
    )


def what_is_named(
    text: str,
    sections: SectionsFound,
    passages: Sequence[Passage],
    quoted: Quoted | None,
) -> Named:
    """Return what a question asks about by name, and what of it is not there.

    A name may stand in the text of a passage, of a chosen sentence (S1-MIS-16), or in
    where a passage is said to stand: its file, title and headings, and the head of the
    table that it goes on with.
    """
    names = find_names(text)
    texts = [where_and_what(passage) for passage in passages]
    if quoted is not None:
        texts += [sentence.text for sentence in quoted.sentences]
    missing = missing_names(names, texts)
    if missing:
        missing = missing_names(missing, with_contexts(passages))
    return Named(
        names=names,
        missing_names=missing,
        references=[one for one in sections.references if one.labelled],
        missing_references=sections.missing,
    )


def lacks_denial(
    text: str, passages: Sequence[Passage], compared: QueryVector | None
) -> bool:
    """Tell whether a question asks for what is not so, where none says it.

    Without token vectors nobody can tell which sentences lie nearest.
    """
    if compared is None or not compared.tokens or not asks_for_what_is_not(text):
        return False
    nearest = nearest_sentences(text, passages, compared)
    asked_in = question_language(text)
    return bool(nearest) and not any(denies(one, asked_in=asked_in) for one in nearest)


def where_and_what(passage: Passage) -> str:
    """Return a passage's text with where it stands."""
    citation = passage.citation
    return "\n".join(
        (passage.text, citation.file, citation.title, citation.clause_path)
    )


def with_contexts(passages: Sequence[Passage]) -> list[str]:
    """Return the passages' texts below what was indexed with them (D8).

    The ids are of passages that the reader was shown.
    """
    ids = [passage.hit.passage_id for passage in passages]
    rows = rows_of(Sql(CONTEXTS, ([pk for pk in ids if pk is not None],)))
    return [f"{context}\n{text}" for context, text in rows]


def warnings_about(given: Sequence[Passage] | Sequence[Sentence]) -> tuple[str, ...]:
    """Return what is to be shown beside an answer from scanned text (S1-EXT-10)."""
    if any(each.text_origin == TextOrigin.OCR for each in given):
        return (
            _(
                "A part of this was read from a scan by character recognition. Check "
                "the original page."
            ),
        )
    return ()


def sources_of(
    passages: Sequence[Passage], scores: Sequence[float]
) -> tuple[SourceCited, ...]:
    """Return the documents that passages come from, in the order of their best ones."""
    found: dict[str, SourceCited] = {}
    for passage, score in zip(passages, scores, strict=True):
        name = passage.citation.revision
        known = found.get(name, SourceCited(passage.citation, (), 0.0))
        found[name] = replace(
            known,
            passages=(*known.passages, passage.id),
            relevance_score=max(known.relevance_score, score),
        )
    return tuple(found.values())
