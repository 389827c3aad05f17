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
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class BranchRank:
    """Where one branch put a passage.

    `rank` counts from 1. `score` is the branch's own raw score: the cosine, the keyword
    score, or the number of the query's codes in the passage. `relaxed` marks keyword
    hits that do not hold every word of the query (R15).
    """

    rank: int
    score: float
    relaxed: bool = False


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
    """A passage with its ranks and scores.

    `score` is the fused one, `similarity` the raw cosine between the query and the
    passage, 0.0 where the search had no vector to compare.
    """

    passage_id: int
    ref: str
    text: str
    score: float
    similarity: float
    branches: Mapping[Branch, BranchRank]
    citation: Citation
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of one search, best first, and what is to be known about them.

    `query` is the cleaned query. `notices` are sentences for people. `layers_ignored`
    counts the named layers that are unknown or forbidden, alike (R5). `model` is the
    model whose vectors were compared, None without a vector. `stage_ms` holds
    milliseconds by stage.
    """

    query: str
    hits: tuple[Hit, ...]
    labels: tuple[Label, ...] = ()
    notices: tuple[str, ...] = ()
    layers_ignored: int = 0
    model: str | None = None
    stage_ms: Mapping[str, float] = field(default_factory=dict)
