"""An answer as the page shows it: its words with numbered marks, and their sources."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from knowledge.codes import find_codes
from knowledge.language import language_of
from knowledge.models import Layer
from knowledge.models.knowledge_base import Language
from knowledge.terms import content_words, read_query
from retrieval.answers import Answer, Mode, Passage
from retrieval.confidence import Status
from retrieval.drafting import Drafted, Outcome
from retrieval.excerpts import excerpt
from retrieval.highlighting import Piece, mark_words
from retrieval.views import path_of

# Marks of a draft, as it was verified: [S1], [S1, S3].
MARKS: Final = re.compile(r"[ \t]*\[(S\d{1,3}(?:[ \t]*[,;][ \t]*S\d{1,3})*)\]")

STATES: Final = {
    Status.FOUND: "found",
    Status.PARTLY_FOUND: "partly",
    Status.NOT_FOUND: "not-found",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A number that points to a source; `url` opens the place."""

    number: int
    url: str
    title: str


@dataclass(frozen=True, slots=True)
class Part:
    """Some words of an answer, and the marks behind them."""

    text: str
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Quoted:
    """A whole sentence of a document, with its mark and language."""

    text: str
    mark: Mark
    language: str


@dataclass(frozen=True, slots=True)
class ShownSource:
    """A passage among the sources, its searched words marked in `pieces`.

    `excerpt` is the part of it in which a worded answer's quotes and facts were found,
    these marked; empty where there are none. `language` is the code of its text's
    language, "" where that is not known.
    """

    mark: Mark
    passage: Passage
    knowledge_base: str
    path: Sequence[str]
    pieces: Sequence[Piece]
    excerpt: Sequence[Piece]
    language: str


@dataclass(frozen=True, slots=True)
class Shown:
    """All that the page shows of an answer.

    `paragraphs` are a verified draft's, in `language`; `quotes` an extractive answer's.
    `sources` are the passages that the answer rests on, `others` the rest of those that
    came back. `searches` are what was searched for besides the question. `proof` says
    what the receipt shows.
    """

    state: str
    status: str
    question: str
    paragraphs: Sequence[Sequence[Part]] = ()
    language: str = ""
    quotes: Sequence[Quoted] = ()
    sources: Sequence[ShownSource] = ()
    others: Sequence[ShownSource] = ()
    notes: Sequence[str] = ()
    searches: Sequence[str] = ()
    next_step: str = ""
    unchecked: Sequence[str] = ()
    receipt_id: str = ""
    proof: str = ""

    @property
    def has_words(self) -> bool:
        """Whether there is an answer in words, so that its sources can be brief."""
        return bool(self.paragraphs or self.quotes)


def shown_answer(
    answer: Answer,
    drafted: Drafted | None,
    layers: Sequence[Layer],
    *,
    least: float,
    has_chosen: bool,
) -> Shown:
    """Return an answer, worded or not, as the page shows it.

    `layers` are those that the reader may search, `has_chosen` tells that the question
    was put to some of them alone. Without words, documents whose relevance is under
    `least` stand behind the others.
    """
    marks = {each.id: mark_of(each) for each in answer.passages}
    worded = None
    if drafted is not None and drafted.outcome is Outcome.WORDED:
        worded = drafted
    cited = cited_by(answer, worded, least)
    sources = list(shown_sources(answer, marks, layers, worded))
    return Shown(
        state=state_of(answer, drafted),
        status=status_of(answer, drafted, cited),
        question=answer.question,
        paragraphs=[list(parts_of(line, marks)) for line in lines_of(worded)],
        language=language_of(worded.text, Language.values) if worded else "",
        quotes=[
            Quoted(
                each.text,
                Mark(number_of(each.passage), each.citation.url, each.citation.title),
                language_of(each.text, Language.values),
            )
            for each in answer.sentences
        ],
        sources=[each for each in sources if each.passage.id in cited],
        others=[each for each in sources if each.passage.id not in cited],
        notes=notes_of(answer, drafted),
        searches=answer.queries[1:],
        next_step=next_step_of(answer, has_chosen=has_chosen),
        unchecked=[MARKS.sub("", each) for each in worded.unchecked] if worded else (),
        receipt_id=worded.receipt_id if worded else answer.receipt_id,
        proof=proof_of(answer),
    )


def cited_by(answer: Answer, worded: Drafted | None, least: float) -> set[str]:
    """Return the ids of the passages that an answer rests on."""
    if answer.status is Status.NOT_FOUND:
        return set()
    if worded is not None:
        return ids_in(worded.text)
    if answer.mode is Mode.EXTRACTIVE:
        return {each.passage for each in answer.sentences}
    likely = [each for each in answer.sources if each.relevance_score >= least]
    return {passage for each in likely or answer.sources for passage in each.passages}


# --- Its words ------------------------------------------------------------------


def state_of(answer: Answer, drafted: Drafted | None) -> str:
    """Return the state whose shape stands before the sentence."""
    if answer.status is Status.FOUND and is_missed(drafted):
        return STATES[Status.PARTLY_FOUND]
    return STATES[answer.status]


def is_missed(drafted: Drafted | None) -> bool:
    """Tell whether a model that read the passages found none that answers (S1-CON-03)."""
    return drafted is not None and drafted.outcome is Outcome.NOT_THERE


def status_of(answer: Answer, drafted: Drafted | None, cited: set[str]) -> str:
    """Say in one sentence what came of the question."""
    if answer.status is Status.NOT_FOUND:
        return _("Not in the documents.")
    if is_missed(drafted):
        return _("Passages were found, but none answers exactly this.")
    documents = len(
        {each.citation.revision for each in answer.passages if each.id in cited}
    )
    if answer.status is Status.FOUND:
        return ngettext(
            "Found in one document.", "Found in %(count)s documents.", documents
        ) % {"count": documents}
    return ngettext(
        "Found in part, in one document.",
        "Found in part, in %(count)s documents.",
        documents,
    ) % {"count": documents}


def next_step_of(answer: Answer, *, has_chosen: bool) -> str:
    """Say what a reader can do next, in a reader's words, where nothing was found."""
    if answer.status is not Status.NOT_FOUND:
        return ""
    if not answer.passages and not answer.hits:
        return answer.next_step
    if has_chosen:
        return _(
            "Ask again in the documents' own words, or in all that you may search. If "
            "that finds nothing either, the documents do not cover it yet."
        )
    return _(
        "Ask again in the documents' own words, or in their language. If that finds "
        "nothing either, they do not cover it yet."
    )


def notes_of(answer: Answer, drafted: Drafted | None) -> list[str]:
    """Return what is to be known beside the answer, as sentences."""
    notes = [answer.note, *answer.warnings, *drafting_notes(drafted), *answer.notices]
    if answer.routing_fallback is not None:
        notes.append(
            _(
                "Too little was found in the parts that this question points to, so all "
                "that you may search was searched."
            )
        )
    if answer.layers_ignored:
        notes.append(
            ngettext(
                "%(count)s of the chosen layers is not among those you may search.",
                "%(count)s of the chosen layers are not among those you may search.",
                answer.layers_ignored,
            )
            % {"count": answer.layers_ignored}
        )
    return [note for note in dict.fromkeys(notes) if note]


def drafting_notes(drafted: Drafted | None) -> Iterator[str]:
    """Yield what is to be known of a worded answer, or why there is none."""
    if drafted is None:
        return
    if drafted.outcome is Outcome.FAILED:
        yield _("The language model does not answer, so you see the passages alone.")
    elif drafted.outcome is Outcome.UNPROVED:
        yield _(
            "A worded answer could not be proved by the passages, so you see the "
            "passages alone."
        )
    if drafted.left_out:
        yield ngettext(
            "One sentence was left out, since the passages do not say it.",
            "%(count)s sentences were left out, since the passages do not say them.",
            drafted.left_out,
        ) % {"count": drafted.left_out}


def proof_of(answer: Answer) -> str:
    """Say what the receipt shows."""
    if answer.mode is Mode.EXTRACTIVE:
        return _("Each sentence stands in its document, word for word.")
    return _("Each quote, number and date was looked up in the documents.")


def parts_of(line: str, marks: dict[str, Mark]) -> Iterator[Part]:
    """Yield a draft's words, each with the marks behind it."""
    at = 0
    for found in MARKS.finditer(line):
        yield Part(
            line[at : found.start()],
            tuple(marks[each] for each in ids_of(found) if each in marks),
        )
        at = found.end()
    if line[at:]:
        yield Part(line[at:])


def lines_of(worded: Drafted | None) -> list[str]:
    """Return the paragraphs of a worded answer."""
    return [] if worded is None else [each for each in worded.text.splitlines() if each]


def ids_in(text: str) -> set[str]:
    """Return the ids of the passages that a draft cites."""
    return {each for found in MARKS.finditer(text) for each in ids_of(found)}


def ids_of(mark: re.Match[str]) -> list[str]:
    """Return the ids that one mark names."""
    return [each.strip().upper() for each in re.split("[,;]", mark[1])]


# --- Its sources ----------------------------------------------------------------


def number_of(passage_id: str) -> int:
    """Return the number of a passage's id: 2 for S2."""
    return int(passage_id.removeprefix("S"))


def mark_of(passage: Passage) -> Mark:
    """Return what points to a passage."""
    citation = passage.citation
    return Mark(number_of(passage.id), citation.url, citation.title)


def shown_sources(
    answer: Answer,
    marks: dict[str, Mark],
    layers: Sequence[Layer],
    worded: Drafted | None,
) -> Iterator[ShownSource]:
    """Yield passages as sources, with the question's words and the proofs marked."""
    wanted = [
        *content_words(answer.question, list(Language.values)),
        *find_codes(answer.question),
    ]
    stems = [stem for word in read_query(answer.question).words for stem in word.stems]
    by_name = {str(layer): layer for layer in layers}
    for passage in answer.passages:
        citation = passage.citation
        layer = by_name.get(f"{citation.knowledge_base}/{citation.layer}")
        proofs = [
            (each.start, each.end)
            for each in (worded.found if worded is not None else ())
            if each.passage == passage.id
        ]
        yield ShownSource(
            mark=marks[passage.id],
            passage=passage,
            knowledge_base=layer.knowledge_base.name
            if layer is not None
            else citation.knowledge_base,
            path=path_of(citation),
            pieces=list(mark_words(passage.text, wanted, stems=stems)),
            excerpt=excerpt(passage.text, proofs),
            language=language_of(
                passage.text, layer.languages if layer is not None else Language.values
            ),
        )
