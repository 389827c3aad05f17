"""The deployment's settings: the environment, what was saved over it, and the history."""

from dataclasses import replace

import pytest
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from knowledge.models import AuditEntry
from retrieval.adjusting import (
    TuningError,
    propose_return,
    propose_tuning,
    save_tuning,
)
from retrieval.fusion import Weights
from retrieval.models import TuningRecord
from retrieval.tuning import (
    NAMES,
    NUMBERS,
    Fusion,
    SearchType,
    Tuning,
    contradictions,
    current,
    differing,
    from_environment,
    suits_lexical,
    values_of,
    with_values,
)
from tests.factories import StaffFactory

# --- Values --------------------------------------------------------------------


def test_values_and_settings_turn_into_each_other() -> None:
    tuning = Tuning(
        search_type=SearchType.SEMANTIC,
        fusion=Fusion.WEIGHTED_SUM,
        weights=Weights(meaning=0.9, keywords=0.1, codes=2.0, relaxed=0.0, k=10),
        similarity_floor=0.35,
        reranking=False,
        turn_budget=2000,
    )
    values = values_of(tuning)
    assert set(values) == set(NAMES)
    assert with_values(Tuning(), values) == tuning


def test_a_value_that_is_none_of_a_settings_own_is_passed_over() -> None:
    odd = {
        "search_type": "psychic",
        "fusion": None,
        "weight_meaning": -1,
        "rrf_k": "60",
        "reranking": 1,
        "candidates": True,
        "turn_budget": float("nan"),
        "gone": 3,
        "search_count": 7,
    }
    assert with_values(Tuning(), odd) == Tuning(search_count=7)


def test_each_default_is_within_its_bounds() -> None:
    values = values_of(Tuning())
    for name, bounds in NUMBERS.items():
        assert bounds.least <= values[name] <= bounds.most, name
    assert not contradictions(Tuning())


@pytest.mark.parametrize(
    ("tuning", "says"),
    [
        (Tuning(weights=Weights(meaning=0, keywords=0, codes=0)), "weigh nothing"),
        (
            Tuning(search_type=SearchType.SEMANTIC, weights=Weights(meaning=0)),
            "weight of meaning",
        ),
        (
            Tuning(
                search_type=SearchType.LEXICAL, weights=Weights(keywords=0, codes=0)
            ),
            "weight of keywords or codes",
        ),
        (Tuning(candidates=5), "Raise the candidates"),
        (Tuning(keyword_slots=6), "places are kept for keyword hits"),
        (Tuning(turn_budget=200), "longer than a whole turn"),
    ],
)
def test_a_contradiction_is_told_in_a_sentence(tuning: Tuning, says: str) -> None:
    (sentence,) = contradictions(tuning)
    assert says in sentence


@pytest.mark.req("S2-HYB-05")
def test_a_small_corpus_suits_a_search_by_words() -> None:
    assert suits_lexical(Tuning(), 120)
    assert not suits_lexical(Tuning(), 120_000)
    assert not suits_lexical(Tuning(), 0)
    assert not suits_lexical(Tuning(search_type=SearchType.LEXICAL), 120)


# --- The record ----------------------------------------------------------------

pytestmark = pytest.mark.django_db


@pytest.mark.req("R1", "R3")
def test_the_environment_is_the_default(settings: Settings) -> None:
    settings.STRATA_WEIGHT_MEANING = 0.55
    settings.HYBRID_KEYWORD_SLOTS = 2
    settings.STRATA_FUSION = "weighted_sum"
    tuning = current()
    assert (tuning.weights.meaning, tuning.keyword_slots) == (0.55, 2)
    assert tuning.fusion is Fusion.WEIGHTED_SUM
    assert tuning.version == 0


@pytest.mark.req("R3", "R4", "S3-HYB-08")
def test_a_saved_change_holds_from_the_next_search_on(settings: Settings) -> None:
    alice = StaffFactory(username="alice")
    proposal = propose_tuning(
        {"weight_keywords": 0.6, "search_count": 8}, actor=alice, note="Codes first."
    )
    assert current() == from_environment(), "a proposal changes nothing yet"
    save_tuning(proposal, actor=alice)
    tuning = current()
    assert (tuning.weights.keywords, tuning.search_count) == (0.6, 8)
    assert tuning.version == 1
    row = TuningRecord.objects.get()
    assert row.values == {"weight_keywords": 0.6, "search_count": 8}
    # What was not changed goes on following the environment.
    settings.STRATA_CANDIDATES = 70
    assert current().candidates == 70
    # What was, does not.
    settings.STRATA_WEIGHT_KEYWORDS = 0.2
    assert current().weights.keywords == 0.6


@pytest.mark.req("R3", "S2-HYB-02")
def test_the_history_says_who_when_and_what_from_to() -> None:
    alice, bob = StaffFactory(username="alice"), StaffFactory(username="bob")
    save_tuning(propose_tuning({"rerank_depth": 30}, actor=alice), actor=alice)
    save_tuning(
        propose_tuning({"rerank_depth": 10, "reranking": False}, actor=bob), actor=bob
    )
    newest, first = TuningRecord.objects.all()
    assert first.changes == {"rerank_depth": [20, 30]}
    assert newest.changes == {"rerank_depth": [30, 10], "reranking": [True, False]}
    assert (first.saved_by, newest.saved_by) == (alice, bob)
    entry = AuditEntry.objects.filter(target_type="tuningrecord").latest("at")
    assert entry.actor == bob
    assert entry.detail["changes"]["rerank_depth"] == [30, 10]


def test_going_back_is_a_save_of_its_own_and_audited() -> None:
    alice = StaffFactory(username="alice")
    save_tuning(propose_tuning({"ask_count": 12}, actor=alice), actor=alice)
    save_tuning(propose_tuning({"ask_count": 14}, actor=alice), actor=alice)
    save_tuning(propose_return(1, actor=alice), actor=alice)
    assert (current().ask_count, current().version) == (12, 3)
    save_tuning(propose_return(0, actor=alice), actor=alice)
    assert replace(current(), version=0) == from_environment()
    assert TuningRecord.objects.newest().values == {}
    entry = AuditEntry.objects.filter(target_type="tuningrecord").latest("at")
    assert (entry.verb, entry.detail["restored"]) == ("reverted", 0)


def test_what_contradicts_changes_nothing_or_comes_too_late_is_refused() -> None:
    alice = StaffFactory(username="alice")
    with pytest.raises(TuningError, match="weigh nothing"):
        propose_tuning(
            {"weight_meaning": 0.0, "weight_keywords": 0.0, "weight_codes": 0.0},
            actor=alice,
        )
    with pytest.raises(TuningError, match="hold already"):
        propose_tuning({"ask_count": 10}, actor=alice)
    with pytest.raises(TuningError, match="no such version"):
        propose_return(7, actor=alice)
    late = propose_tuning({"ask_count": 11}, actor=alice)
    quick = propose_tuning({"ask_count": 12}, actor=alice)
    save_tuning(quick, actor=alice)
    with pytest.raises(TuningError, match="meanwhile"):
        save_tuning(late, actor=alice)
    with pytest.raises(TuningError, match="saved already"):
        save_tuning(quick, actor=alice)
    assert current().ask_count == 12


def test_the_settings_cost_a_search_one_small_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(1):
        current()
    assert differing(current(), from_environment()) == {}
