"""What a search returns. Plain values; no Django."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum


class Branch(StrEnum):
    """The three ways a passage is found."""

    MEANING = "meaning"
    KEYWORDS = "keywords"
    CODES = "codes"


class Label(StrEnum):
    """What is to be known about a result as a whole."""

    KEYWORD_ONLY = "keyword-only"
    RELAXED = "relaxed"
    WITHOUT_ACCENTS = "without-accents"
    DEGRADED = "degraded"


class Match(StrEnum):
    """How a hit came into the result.

    `ranked` by the fused branches; `exact`, since the query names its section.
    """

    RANKED = "ranked"
    EXACT = "exact"


class Basis(StrEnum):
    """What confidence is judged on (S1-CNF-02).

    `sentences` is the reranker's probability of single sentences: the status of an
    extractive answer rests on it. Confidence is told of passages, on the other two.
    """

    SIMILARITY = "similarity"
    RERANK = "rerank"
    SENTENCES = "sentences"


class Level(StrEnum):
    """How surely the result covers the query (S1-CNF-04)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Confidence:
    """How surely a result covers the query, and what says so.

    `score` is the best calibrated score, 0 to 1, on the scale of the marks of `basis`.
    `provisional` tells that the model is not calibrated. `warning` is a sentence, or
    empty.
    """

    level: Level
    basis: Basis
    score: float
    provisional: bool = False
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Occasion:
    """Through which door a search comes, and whether it leaves a trace.

    `door` is api, portal, turn, mcp, lab, replay or set. Question sets, the lab and
    replays leave none: no log, no ledger row (R19).
    """

    door: str
    leaves_trace: bool = True


@dataclass(frozen=True, slots=True)
class RoutingFallback:
    """Why a routed search ran again over all layers (S1-RTE-03)."""

    reason: str
    searched_layers: str = "all"


@dataclass(frozen=True, slots=True)
class BranchRank:
    """Where one branch put a passage.

    `rank` counts from 1. `score` is the branch's own raw score: the cosine, the keyword
    score, or the number of the query's codes in the passage. `relaxed` marks keyword
    hits that do not hold every word of the query (R15); `share` is how much of it they
    hold, by the rarity of its words, 0 to 1. `without_accents` marks those that hold a
    word only in other accents (R14).
    """

    rank: int
    score: float
    relaxed: bool = False
    share: float = 1.0
    without_accents: bool = False


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a passage stands, as a person is told.

    `knowledge_base` is its short name, `layer` the layer's name, `file` the source's
    path, `lines` "30-31" or "30", `revision` "d42", `url` the portal page that opens
    the place. `replaced_by` is the path of the document that says it supersedes this
    one. Labels never rank (D32).
    """

    ref: str
    title: str
    knowledge_base: str
    layer: str
    file: str
    page: int | None
    lines: str
    clause_path: str
    date: date | None
    date_source: str | None
    archived: bool
    replaced_by: str | None
    text_origin: str
    revision: str
    indexed_at: datetime
    url: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage with its ranks and scores, or a section that the query names.

    `score` is the fused one, `similarity` the raw cosine between the query and the
    passage, 0.0 where the search had no vector to compare. `rerank_score` is the
    reranker's probability, None where it did not run. An exact match has no
    `passage_id`; `cut` tells that its text is only the section's beginning.
    """

    passage_id: int | None
    ref: str
    text: str
    score: float
    similarity: float
    branches: Mapping[Branch, BranchRank]
    citation: Citation
    metadata: Mapping[str, str] = field(default_factory=dict)
    match: Match = Match.RANKED
    cut: bool = False
    rerank_score: float | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of one search, best first, and what is to be known about them.

    `query` is the cleaned query. `notices` are sentences for people. `layers_ignored`
    counts the named layers that are unknown or forbidden, alike (R5). `model` is the
    model whose vectors were compared, None without a vector. `stage_ms` holds
    milliseconds by stage.

    `note` says what named sections were not returned (S1-MIS-10), or is empty.
    `did_you_mean` is the query as the corpus writes it, or empty. `knowledge_bases` is
    the resolved list that was searched, `layers` the layers it was routed or narrowed
    to (None: all), `tuning_version` the settings that held. `interaction_id` is what
    the search is rated by, "" where it left no trace or learning is off.
    """

    query: str
    hits: tuple[Hit, ...]
    labels: tuple[Label, ...] = ()
    notices: tuple[str, ...] = ()
    layers_ignored: int = 0
    model: str | None = None
    stage_ms: Mapping[str, float] = field(default_factory=dict)
    confidence: Confidence | None = None
    note: str = ""
    did_you_mean: str = ""
    routing_fallback: RoutingFallback | None = None
    knowledge_bases: frozenset[int] = frozenset()
    layers: frozenset[int] | None = None
    tuning_version: int = 0
    interaction_id: str = ""
