"""The figures of a question set, against values worked out by hand."""

import math

import pytest

from retrieval.evaluation import (
    Comparison,
    Entry,
    Figures,
    Judgement,
    Place,
    answers,
    change,
    compare,
    figures,
    first_rank,
    judge_ranks,
    lowered,
    ndcg,
    recall,
)

RENT = Entry("leases/rent.md", "The rent is **due** on the\n third of May.", "3 Rent")
DEPOSIT = Entry("leases/rent.md", "A deposit of two rents.", "4 Deposit > 4.2 Return")
OTHER = Entry("leases/old.md", "The rent is due on the third of May.", "3 Rent")


@pytest.mark.req("S2-LOG-03")
@pytest.mark.parametrize(
    ("place", "hit"),
    [
        (Place("leases/rent.md", quote="the rent is due on THE third"), True),
        (Place("leases/old.md", quote="the rent is due on the third"), False),
        (Place("leases/rent.md", quote="due on the fourth"), False),
        (Place("leases/rent.md"), True),
        (Place("leases/rent.md", section="Contract > 3 Rent"), True),
        (Place("leases/rent.md", section="4.2"), False),
        (Place("leases/rent.md", section="nt"), False),
    ],
)
def test_a_passage_answers_at_its_place(place: Place, *, hit: bool) -> None:
    assert answers(RENT, place) is hit


def test_a_section_is_found_among_the_headings_above() -> None:
    assert answers(DEPOSIT, Place("leases/rent.md", section="4.2 Return"))
    assert answers(DEPOSIT, Place("leases/rent.md", section="4"))
    assert not answers(DEPOSIT, Place("leases/rent.md", section="2"))


def test_an_identifier_counts_like_the_quote() -> None:
    code = Entry("forms.md", "Use form QT-07 here.")
    assert answers(code, Place("forms.md", quote="another sentence"), "qt-07")
    assert not answers(code, Place("other.md", quote="another sentence"), "qt-07")


def test_one_place_is_enough_and_a_repeat_takes_no_rank() -> None:
    places = [Place("leases/rent.md", quote="third of May"), Place("nowhere.md")]
    assert first_rank([OTHER, OTHER, RENT], places) == 2
    assert first_rank([OTHER, DEPOSIT], places) is None


@pytest.mark.req("S2-LOG-03")
def test_ndcg_and_recall_are_the_textbooks() -> None:
    assert ndcg([1]) == 1
    assert ndcg([3]) == pytest.approx(1 / 2)
    assert ndcg([11]) == 0
    assert ndcg([]) == 0
    # Two relevant at ranks 2 and 5: (1/log2 3 + 1/log2 6) / (1 + 1/log2 3).
    both = (1 / math.log2(3) + 1 / math.log2(6)) / (1 + 1 / math.log2(3))
    assert ndcg([2, 5], relevant=2) == pytest.approx(both)
    assert recall([5]) == 1
    assert recall([6]) == 0
    assert recall([1, 7], relevant=2) == 0.5


@pytest.mark.req("S2-LOG-03")
def test_the_figures_of_a_set_by_hand() -> None:
    told = figures(
        [
            judge_ranks(1, is_answerable=True, has_places=True, refused=False),
            judge_ranks(3, is_answerable=True, has_places=True, refused=True),
            judge_ranks(7, is_answerable=True, has_places=True, refused=False),
            judge_ranks(None, is_answerable=True, has_places=True, refused=None),
            judge_ranks(None, is_answerable=True, has_places=False, refused=False),
            judge_ranks(None, is_answerable=False, has_places=False, refused=True),
            judge_ranks(None, is_answerable=False, has_places=False, refused=False),
        ]
    )
    assert told == Figures(
        ndcg=round((1 + 1 / 2 + 1 / 3 + 0) / 4, 4),
        recall=round(2 / 4, 4),
        # Right: the first, third and fifth answered, the sixth refused.
        refusal_accuracy=round(4 / 6, 4),
        refusal_recall=0.5,
        false_refusal_rate=0.25,
        ranked=4,
        judged=6,
    )


def test_nothing_to_divide_is_no_figure() -> None:
    assert figures([]) == Figures(None, None, None, None, None, 0, 0)
    assert figures([Judgement(is_answerable=True)]).refusal_accuracy is None


def test_two_configurations_are_compared_question_by_question() -> None:
    before = {
        1: Judgement(is_answerable=True, ndcg=1.0, recall=1.0, refused=False),
        2: Judgement(is_answerable=True, ndcg=0.5, recall=1.0, refused=False),
        3: Judgement(is_answerable=False, refused=False),
        4: Judgement(is_answerable=True, ndcg=0.5, recall=1.0),
        5: Judgement(is_answerable=True, ndcg=0.5, recall=1.0),
    }
    after = {
        1: Judgement(is_answerable=True, ndcg=0.6309, recall=1.0, refused=False),
        2: Judgement(is_answerable=True, ndcg=1.0, recall=1.0, refused=True),
        3: Judgement(is_answerable=False, refused=True),
        4: Judgement(is_answerable=True, ndcg=0.5, recall=1.0),
    }
    assert compare(before, after) == Comparison(better=(3,), worse=(2, 1), same=1)
    assert change(before[2], after[2]) == -0.5


def test_a_lowered_figure_is_named() -> None:
    before = Figures(0.6, 0.7, 0.9, 0.8, 0.05, 10, 12)
    assert lowered(before, before) == ()
    assert lowered(before, Figures(0.59, 0.8, None, 0.1, 0.5, 10, 12)) == ("ndcg",)
    assert lowered(before, Figures(0.7, 0.6, 0.8, 0.8, 0.05, 10, 12)) == (
        "recall",
        "refusal_accuracy",
    )
