"""The settings of the search in plain words, as all of the staff's pages say them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from retrieval.tuning import CHOICES, NUMBERS, Value

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    # A text, or one that is translated when it is shown.
    Text = str | _StrPromise


@dataclass(frozen=True, slots=True)
class Words:
    """What a setting is called, and what it does."""

    label: Text
    help: Text


WORDS: Final[Mapping[str, Words]] = {
    "search_type": Words(
        gettext_lazy("Type of search"),
        gettext_lazy(
            "By meaning and words, by meaning alone, or by words alone. Document codes "
            "count with the words."
        ),
    ),
    "fusion": Words(
        gettext_lazy("How the lists become one"),
        gettext_lazy(
            "By rank: each list adds weight ÷ (k + rank). By score: the cosine and the "
            "keyword score, each times its weight."
        ),
    ),
    "weight_meaning": Words(
        gettext_lazy("Weight of meaning"),
        gettext_lazy("Passages that say the same in other words."),
    ),
    "weight_keywords": Words(
        gettext_lazy("Weight of words"),
        gettext_lazy("Passages that hold every word of the query."),
    ),
    "weight_codes": Words(
        gettext_lazy("Weight of codes"),
        gettext_lazy("Passages that hold a code of the query, such as QT-07."),
    ),
    "weight_relaxed": Words(
        gettext_lazy("Weight of some of the words"),
        gettext_lazy("Where no passage holds them all: those that hold a part."),
    ),
    "rrf_k": Words(
        gettext_lazy("k of the ranks"),
        gettext_lazy("The larger, the less it matters to be first in a list."),
    ),
    "keyword_slots": Words(
        gettext_lazy("Places kept for words"),
        gettext_lazy(
            "So many of the best word matches always stay in the result; 0 keeps none."
        ),
    ),
    "candidates": Words(
        gettext_lazy("Candidates of each list"),
        gettext_lazy("How many passages each way of searching may propose."),
    ),
    "similarity_floor": Words(
        gettext_lazy("Least similarity"),
        gettext_lazy(
            "Passages less similar than this are not found by meaning; −1 keeps all. "
            "Nothing else is ever filtered by a score."
        ),
    ),
    "reranking": Words(
        gettext_lazy("Reread the best passages"),
        gettext_lazy(
            "A second look at the best passages for answers, word by word. It needs the "
            "query’s vector, so not a search by words alone."
        ),
    ),
    "rerank_depth": Words(
        gettext_lazy("How many are reread"),
        gettext_lazy("The deeper, the more can still rise, and the slower."),
    ),
    "search_count": Words(
        gettext_lazy("Passages of a search"), gettext_lazy("Unless the caller says.")
    ),
    "ask_count": Words(
        gettext_lazy("Passages for an answer"), gettext_lazy("What an answer may read.")
    ),
    "turn_count": Words(
        gettext_lazy("Passages of an agent’s turn"),
        gettext_lazy("For each bound knowledge base, before they are merged."),
    ),
    "memory_count": Words(
        gettext_lazy("Remembered statements"),
        gettext_lazy("Fewer than passages: memory is narrow, knowledge wide."),
    ),
    "turn_budget": Words(
        gettext_lazy("Room of a turn, in tokens"),
        gettext_lazy("What no longer fits is withheld, and that is said."),
    ),
    "turn_passage": Words(
        gettext_lazy("Longest passage in a turn, in characters"),
        gettext_lazy("Longer ones are cut, and marked so."),
    ),
}
CHOICE_WORDS: Final[Mapping[str, Text]] = {
    "hybrid": gettext_lazy("by meaning and words"),
    "semantic": gettext_lazy("by meaning alone"),
    "lexical": gettext_lazy("by words alone"),
    "rrf": gettext_lazy("by rank"),
    "weighted_sum": gettext_lazy("by score: a weighted sum"),
}
GROUPS: Final = (
    ("type", gettext_lazy("What is searched"), ("search_type",)),
    (
        "fusion",
        gettext_lazy("How the lists become one"),
        (
            "fusion",
            "weight_meaning",
            "weight_keywords",
            "weight_codes",
            "weight_relaxed",
            "rrf_k",
            "keyword_slots",
        ),
    ),
    (
        "depth",
        gettext_lazy("How deep it looks"),
        ("candidates", "similarity_floor", "reranking", "rerank_depth"),
    ),
    (
        "counts",
        gettext_lazy("How much comes back"),
        (
            "search_count",
            "ask_count",
            "turn_count",
            "memory_count",
            "turn_budget",
            "turn_passage",
        ),
    ),
)
FIGURES: Final[Mapping[str, Text]] = {
    "ndcg": gettext_lazy("nDCG@10"),
    "recall": gettext_lazy("Recall@5"),
    "refusal_accuracy": gettext_lazy("Right refusals"),
}


def label_of(name: str) -> str:
    """Return what a setting is called; a name of an earlier release is itself."""
    return str(WORDS[name].label) if name in WORDS else name


def shown(name: str, value: Value | None) -> str:
    """Return a setting's value in words and the person's own figures."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if name in CHOICES:
        return str(CHOICE_WORDS.get(str(value), value))
    if isinstance(value, float):
        return number_format(f"{value:.4f}".rstrip("0").rstrip("."))
    return number_format(value, force_grouping=True)


def bounds_of(name: str) -> str:
    """Return what a number may be, as a sentence's part; empty for what is none."""
    bounds = NUMBERS.get(name)
    if bounds is None:
        return ""
    return _("%(least)s to %(most)s") % {
        "least": shown(name, int(bounds.least)),
        "most": shown(name, int(bounds.most)),
    }


def shown_changes(changes: Mapping[str, list[Value]]) -> list[dict[str, str]]:
    """Return what changed from what to what, in words."""
    return [
        {
            "name": label_of(name),
            "before": shown(name, before),
            "after": shown(name, after),
        }
        for name, (before, after) in changes.items()
    ]
