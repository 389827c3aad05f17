"""The settings of a search, as one value."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from django.conf import settings
from django.utils.translation import gettext as _

from retrieval.budget import CHARACTERS_A_TOKEN
from retrieval.fusion import Fusion, Weights
from retrieval.models import TuningRecord
from retrieval.standing import standing


class SearchType(StrEnum):
    """Which branches run (S2-HYB-02); literal codes count with the words."""

    SEMANTIC = "semantic"
    LEXICAL = "lexical"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class Tuning:
    """How every knowledge base is searched (R3).

    `candidates` is how many rows a branch gives, `similarity_floor` the least cosine
    that counts in the meaning branch (-1: none), `rerank_depth` how many of the fused
    passages the reranker reads. The counts are of passages; `turn_budget` is in tokens,
    `turn_passage` in characters. `version` 0 is the environment's own settings.
    """

    search_type: SearchType = SearchType.HYBRID
    fusion: Fusion = Fusion.RRF
    weights: Weights = field(default_factory=Weights)
    keyword_slots: int = 1
    candidates: int = 50
    similarity_floor: float = -1.0
    reranking: bool = True
    rerank_depth: int = 20
    search_count: int = 5
    ask_count: int = 10
    turn_count: int = 10
    turn_budget: int = 6000
    turn_passage: int = 1600
    memory_count: int = 3
    version: int = 0


def from_environment() -> Tuning:
    """Return what the environment sets."""
    return Tuning(
        search_type=SearchType(settings.STRATA_SEARCH_TYPE),
        fusion=Fusion(settings.STRATA_FUSION),
        weights=Weights(
            meaning=settings.STRATA_WEIGHT_MEANING,
            keywords=settings.STRATA_WEIGHT_KEYWORDS,
            codes=settings.STRATA_WEIGHT_CODES,
            relaxed=settings.STRATA_WEIGHT_RELAXED,
            k=settings.STRATA_RRF_K,
        ),
        keyword_slots=settings.HYBRID_KEYWORD_SLOTS,
        candidates=settings.STRATA_CANDIDATES,
        similarity_floor=settings.STRATA_SIMILARITY_FLOOR,
        reranking=settings.RERANKING_ENABLED,
        rerank_depth=settings.STRATA_RERANK_DEPTH,
        turn_budget=settings.STRATA_TURN_BUDGET,
        turn_passage=settings.STRATA_TURN_PASSAGE,
    )


def current() -> Tuning:
    """Return the settings that hold now: the record over the environment."""
    newest = standing().record
    return from_environment() if newest is None else with_record(record_of(newest))


@lru_cache(maxsize=8)
def record_of(pk: int) -> TuningRecord:
    """Return a record; none ever changes, so a search need not ask for it again."""
    return TuningRecord.objects.get(pk=pk)


def with_record(record: TuningRecord) -> Tuning:
    """Return the settings that hold under a record."""
    tuning = with_values(from_environment(), record.values)
    return replace(tuning, version=record.version)


# --- One value by its name ----------------------------------------------------

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a number may be; `step` is that of a slider, 1 or more for whole numbers."""

    least: float
    most: float
    step: float

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number."""
        return self.step >= 1


WEIGHT: Final = Bounds(0, 10, 0.05)
COUNT: Final = Bounds(1, 50, 1)
NUMBERS: Final[Mapping[str, Bounds]] = {
    "weight_meaning": WEIGHT,
    "weight_keywords": WEIGHT,
    "weight_codes": WEIGHT,
    "weight_relaxed": WEIGHT,
    "rrf_k": Bounds(1, 1000, 1),
    "keyword_slots": Bounds(0, 10, 1),
    "candidates": Bounds(5, 500, 5),
    "similarity_floor": Bounds(-1, 1, 0.01),
    "rerank_depth": Bounds(1, 200, 1),
    "search_count": COUNT,
    "ask_count": COUNT,
    "turn_count": COUNT,
    "memory_count": COUNT,
    "turn_budget": Bounds(200, 1_000_000, 100),
    "turn_passage": Bounds(200, 100_000, 100),
}
# Fields of `Weights`, by the names that they have here.
WEIGHTS: Final[Mapping[str, str]] = {
    "weight_meaning": "meaning",
    "weight_keywords": "keywords",
    "weight_codes": "codes",
    "weight_relaxed": "relaxed",
    "rrf_k": "k",
}
CHOICES: Final[Mapping[str, type[StrEnum]]] = {
    "search_type": SearchType,
    "fusion": Fusion,
}
NAMES: Final = (*CHOICES, *NUMBERS, "reranking")
# With so few passages word overlap is often the better search (S2-HYB-05).
SMALL_CORPUS: Final = 300


def values_of(tuning: Tuning) -> dict[str, Value]:
    """Return all settings by name, as JSON keeps them."""
    values: dict[str, Value] = {}
    for name in NAMES:
        if name in WEIGHTS:
            values[name] = getattr(tuning.weights, WEIGHTS[name])
        else:
            values[name] = getattr(tuning, name)
    return values


def with_values(tuning: Tuning, values: Mapping[str, object]) -> Tuning:
    """Return the settings with these values instead.

    A value that is none of a setting's own, and a name that is none, are passed over:
    what an earlier release saved must not stop a search.
    """
    legal = {
        name: value
        for name in NAMES
        if name in values and (value := legal_value(name, values[name])) is not None
    }
    weights = {
        field: legal.pop(name) for name, field in WEIGHTS.items() if name in legal
    }
    return replace(
        tuning,
        weights=replace(tuning.weights, **weights),  # type: ignore[arg-type]
        **legal,  # type: ignore[arg-type]
    )


def legal_value(name: str, value: object) -> Value | None:
    """Return a value as its setting keeps it, None where it is none of its own."""
    if name in CHOICES:
        choice = CHOICES[name]
        return choice(str(value)) if value in list(choice) else None
    if name == "reranking":
        return value if isinstance(value, bool) else None
    bounds = NUMBERS[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not bounds.least <= value <= bounds.most:
        return None
    return int(value) if bounds.is_whole else float(value)


def differing(tuning: Tuning, base: Tuning) -> dict[str, Value]:
    """Return the values of `tuning` that are not those of `base`."""
    others = values_of(base)
    return {
        name: value
        for name, value in values_of(tuning).items()
        if value != others[name]
    }


def contradictions(tuning: Tuning) -> tuple[str, ...]:
    """Return a sentence for each pair of settings that cannot hold together."""
    return (*type_contradictions(tuning), *count_contradictions(tuning))


def type_contradictions(tuning: Tuning) -> Iterator[str]:
    """Yield what is wrong with the weights under the type of search."""
    weights = tuning.weights
    words = weights.keywords + weights.codes
    if weights.meaning + words == 0:
        yield _(
            "All three branches weigh nothing, so nothing could be ranked. Give meaning, "
            "keywords or codes a weight above 0."
        )
    elif tuning.search_type is SearchType.SEMANTIC and weights.meaning == 0:
        yield _(
            "A search by meaning alone needs a weight of meaning above 0; or choose "
            "another type of search."
        )
    elif tuning.search_type is SearchType.LEXICAL and words == 0:
        yield _(
            "A search by words alone needs a weight of keywords or codes above 0; or "
            "choose another type of search."
        )


def count_contradictions(tuning: Tuning) -> Iterator[str]:
    """Yield which counts do not go together."""
    counts = (tuning.search_count, tuning.ask_count, tuning.turn_count)
    if tuning.candidates < max(counts):
        yield _(
            "Each branch gives %(candidates)s candidates, and a result asks for "
            "%(count)s passages. Raise the candidates or lower the count."
        ) % {"candidates": tuning.candidates, "count": max(counts)}
    if tuning.keyword_slots > min(counts):
        yield _(
            "%(slots)s places are kept for keyword hits in a result of %(count)s. Lower "
            "the places or raise the count."
        ) % {"slots": tuning.keyword_slots, "count": min(counts)}
    if tuning.turn_passage > tuning.turn_budget * CHARACTERS_A_TOKEN:
        yield _(
            "One passage of %(passage)s characters is longer than a whole turn may be "
            "(%(budget)s tokens, about %(characters)s characters). Lower the one or "
            "raise the other."
        ) % {
            "passage": tuning.turn_passage,
            "budget": tuning.turn_budget,
            "characters": tuning.turn_budget * CHARACTERS_A_TOKEN,
        }


def suits_lexical(tuning: Tuning, passages: int) -> bool:
    """Tell whether a search by words alone is to be suggested for so many passages.

    For a small, stable corpus word overlap is often better, and needs no model
    (S2-HYB-05).
    """
    return 0 < passages <= SMALL_CORPUS and tuning.search_type is not SearchType.LEXICAL
