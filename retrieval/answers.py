"""What an ask returns. Plain values; no Django."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from retrieval.confidence import Status
from retrieval.results import Citation, Confidence, Hit, Label, RoutingFallback


class Mode(StrEnum):
    """How a question is answered (S1-ASK-11).

    `grounded`: the client writes from the passages. `extractive`: the documents' own
    sentences, word for word.
    """

    GROUNDED = "grounded"
    EXTRACTIVE = "extractive"


class Step(StrEnum):
    """The steps of an ask, in their order (S1-ASK-01), for whoever shows them live."""

    ROUTE = "route"
    REWRITE = "rewrite"
    SEARCH = "search"
    RERANK = "rerank"
    CLAUSES = "clauses"
    PACK = "pack"
    ANSWER = "answer"
    CITE = "cite"
    RECEIPT = "receipt"


# Called with each step when it begins.
Progress = Callable[[Step], None]


class NoteCode(StrEnum):
    """What a note is about."""

    CLAUSE_CUT = "clause_cut"
    SECTIONS = "sections"
    NAMES_MISSING = "names_missing"
    DENIAL_MISSING = "denial_missing"
    SENTENCES_LEFT_OUT = "sentences_left_out"
    STAYS_EXTRACTIVE = "stays_extractive"
    REINGEST = "reingest"


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence or two about what is missing, and what it is about."""

    code: NoteCode
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that is handed back, S1 being the best.

    `hit` is what it was found as, with all scores.
    """

    id: str
    hit: Hit
    citation: Citation

    @property
    def ref(self) -> str:
        """Its span."""
        return self.hit.ref

    @property
    def text(self) -> str:
        """The document's own text of the span."""
        return self.hit.text

    @property
    def text_origin(self) -> str:
        """How its characters were read, `text` or `ocr`."""
        return self.hit.citation.text_origin

    @property
    def cut(self) -> bool:
        """Whether a named section goes on after it."""
        return self.hit.cut


def numbered(hits: Sequence[Hit]) -> tuple[Passage, ...]:
    """Return what is handed back, from S1 on."""
    return tuple(
        Passage(f"S{number}", hit, hit.citation) for number, hit in enumerate(hits, 1)
    )


@dataclass(frozen=True, slots=True)
class Sentence:
    """A whole sentence of a document, word for word (S1-EXT-03).

    `passage` is the id of the passage that touches it, `score` its probability; 1.0 for
    a sentence of a clause that the question names.
    """

    text: str
    ref: str
    passage: str
    citation: Citation
    text_origin: str
    score: float


@dataclass(frozen=True, slots=True)
class SourceCited:
    """A document among what is handed back.

    `relevance_score` is its best passage's score on the scale that confidence was
    judged on (S1-HYB-07).
    """

    citation: Citation
    passages: tuple[str, ...]
    relevance_score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What the documents in reach say about a question, or that they say nothing.

    `passages` are handed back best first, as many as fit the budget; `hits` are all
    that were found, `sentences` the answer of an extractive one. `note` tells what is
    missing, `notes` what about; `next_step` what to do after anything but `found`.
    `warnings` are sentences to be shown beside the answer. `citations` is "unsaved"
    where what is cited could not be saved. `interaction_id` and `receipt_id` are ""
    where none is left. `queries` begin with the question as written. `shared_layers` are
    names that layers of several of the reader's knowledge bases have. The rest is as in
    `SearchResult`.
    """

    question: str
    status: Status
    mode: Mode
    passages: tuple[Passage, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    note: str = ""
    notes: tuple[NoteCode, ...] = ()
    next_step: str = ""
    warnings: tuple[str, ...] = ()
    receipt_id: str = ""
    interaction_id: str = ""
    citations: str = "saved"
    queries: tuple[str, ...] = ()
    confidence: Confidence | None = None
    hits: tuple[Hit, ...] = ()
    sources: tuple[SourceCited, ...] = ()
    labels: tuple[Label, ...] = ()
    notices: tuple[str, ...] = ()
    model: str | None = None
    layers_ignored: int = 0
    shared_layers: frozenset[str] = frozenset()
    routing_fallback: RoutingFallback | None = None
    stage_ms: Mapping[str, float] = field(default_factory=dict)
