"""Levels, statuses, and the scales that they are judged on."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.confidence import MARKS, Marks, Status, judge, status
from retrieval.results import Basis, Level
from retrieval.scales import (
    MISSED_ANSWERABLE,
    FitError,
    Observation,
    fit,
    held_out,
    refusals,
    unfitted,
)

RERANK = MARKS[Basis.RERANK]
Shares = st.lists(st.floats(0, 1), max_size=10)


@pytest.mark.req("S1-CNF-03")
def test_the_marks_of_each_basis() -> None:
    assert MARKS[Basis.RERANK] == Marks(high=0.8, medium=0.5)
    assert MARKS[Basis.SIMILARITY] == Marks(high=0.6, medium=0.45)


@pytest.mark.req("S1-CNF-04")
@pytest.mark.parametrize(
    ("scores", "level"),
    [
        ([0.8, 0.5, 0.5], Level.HIGH),
        ([0.5, 0.5, 0.8], Level.HIGH),
        ([0.95, 0.5, 0.49], Level.MEDIUM),
        ([0.79, 0.79, 0.79], Level.MEDIUM),
        ([0.5], Level.MEDIUM),
        ([0.49, 0.49, 0.49], Level.LOW),
        ([], Level.LOW),
    ],
)
def test_levels(scores: list[float], level: Level) -> None:
    assert judge(scores, Basis.RERANK, RERANK).level is level


@pytest.mark.req("S1-CNF-04", "S1-CNF-07")
@given(scores=Shares)
def test_only_a_low_level_warns(scores: list[float]) -> None:
    confidence = judge(scores, Basis.RERANK, RERANK)
    assert bool(confidence.warning) == (confidence.level is Level.LOW)
    assert confidence.score == max(scores, default=0.0)
    if confidence.warning:
        assert "another layer" in confidence.warning


@pytest.mark.req("R18", "S1-ASK-09")
@pytest.mark.parametrize(
    ("scores", "wanted"),
    [
        ([0.8], Status.FOUND),
        ([0.79, 0.5, 0.5], Status.PARTLY_FOUND),
        ([0.49], Status.NOT_FOUND),
        ([], Status.NOT_FOUND),
    ],
)
def test_a_status_asks_the_best_alone(scores: list[float], wanted: Status) -> None:
    assert status(scores, RERANK) is wanted


@pytest.mark.req("R18")
def test_found_is_not_high() -> None:
    scores = [0.9]
    assert status(scores, RERANK) is Status.FOUND
    assert judge(scores, Basis.RERANK, RERANK).level is Level.MEDIUM


# --- Scales --------------------------------------------------------------------


def drawn(
    middle: float, count: int, language: str = "en", *, crosses: bool = False
) -> list[Observation]:
    """Draw scores around a middle, the same at each run."""
    generator = random.Random(f"{middle} {language}")
    return [
        Observation(generator.gauss(middle, 0.05), language, crosses)
        for _number in range(count)
    ]


@pytest.mark.req("D12", "S1-CNF-06")
@pytest.mark.parametrize("basis", list(Basis))
def test_marks_lie_where_the_questions_put_them(basis: Basis) -> None:
    """Where they overlap, few answerable are missed; where not, in the middle."""
    answerable = drawn(0.7, 1000) + drawn(0.6, 1000, "vi")
    unanswerable = drawn(0.65, 500) + drawn(0.35, 500, "vi")
    scale = fit(basis, answerable, unanswerable)
    marks = MARKS[basis]
    assert scale.probability(scale.medium) == pytest.approx(marks.medium)
    assert scale.probability(scale.high) == pytest.approx(marks.high)
    near = refusals(scale, drawn(0.7, 1000), drawn(0.65, 500))
    assert near.false_refusal_rate == pytest.approx(MISSED_ANSWERABLE, abs=0.002)
    assert near.recall < 0.5
    far = refusals(scale, drawn(0.6, 1000, "vi"), drawn(0.35, 500, "vi"))
    assert far.false_refusal_rate == pytest.approx(2 * (1 - far.recall), abs=0.003)
    assert far.recall > 0.98
    point = scale.medium - scale.offsets["vi"]
    assert point == pytest.approx(0.48, abs=0.02)


@pytest.mark.req("D12")
def test_a_fit_on_one_half_holds_on_the_other() -> None:
    shares = held_out(Basis.RERANK, drawn(0.7, 1000), drawn(0.45, 1000))
    assert shares.false_refusal_rate < 0.07
    assert shares.recall > 0.95


@pytest.mark.req("D12")
def test_between_languages_errors_are_balanced() -> None:
    answerable = drawn(0.7, 500) + drawn(0.5, 500, "vi", crosses=True)
    unanswerable = drawn(0.45, 500) + drawn(0.4, 500, "vi", crosses=True)
    scale = fit(Basis.RERANK, answerable, unanswerable)
    shares = refusals(scale, answerable[500:], unanswerable[500:])
    assert shares.false_refusal_rate == pytest.approx(1 - shares.recall, abs=0.03)
    assert scale.probability(0.45, "vi", crosses=True) > scale.probability(0.45, "vi")


@given(
    raws=st.lists(st.floats(-1, 1), min_size=2, max_size=2),
    language=st.sampled_from(["", "en", "vi"]),
)
def test_a_higher_score_is_never_less_probable(
    raws: list[float], language: str
) -> None:
    scale = fit(Basis.RERANK, drawn(0.7, 100), drawn(0.45, 100))
    low, high = sorted(raws)
    before = scale.probability(low, language)
    assert 0 <= before <= scale.probability(high, language) <= 1


@pytest.mark.req("D12")
def test_too_few_questions_fit_nothing() -> None:
    with pytest.raises(FitError, match="there are 100 and 49"):
        fit(Basis.RERANK, drawn(0.7, 100), drawn(0.45, 49))


@pytest.mark.req("D12", "S1-CNF-06")
def test_what_nobody_fitted_is_provisional() -> None:
    scale = unfitted(Basis.SIMILARITY)
    assert scale.provisional
    assert scale.probability(0.6) == pytest.approx(0.6)
    assert scale.probability(0.45) == pytest.approx(0.45)
