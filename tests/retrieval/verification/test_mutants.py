"""Drafts that are true, and drafts in which one thing was changed.

`make bench-mutations` plays the same with ten times as many.
"""

from random import Random

import pytest

from benchmarks.mutants import Draft, mutants, true_drafts
from benchmarks.mutations import checked
from retrieval.verification import Outcome

SEED = 4


def told(draft: Draft) -> str:
    """Return what to look at where a draft is judged wrongly."""
    return f"{draft.language}: {draft.was} -> {draft.now}: {draft.text}"


@pytest.mark.req("S1-VER-04", "S1-VER-05", "S1-VER-06")
def test_true_drafts_in_five_languages_are_verified() -> None:
    wrong = [
        (told(draft), [flag.message for flag in verdict.flags])
        for draft in true_drafts(Random(SEED), 200)
        if (verdict := checked(draft)).outcome is not Outcome.VERIFIED
    ]
    assert wrong == []


@pytest.mark.req("S1-VER-04", "S1-VER-05", "S1-VER-07")
def test_mutants_in_five_languages_are_flagged() -> None:
    made = list(mutants(Random(SEED), 1000))
    changes = {draft.change for draft in made}
    assert changes == {
        "amount",
        "citation",
        "clause",
        "code",
        "date",
        "duration",
        "iban",
        "percent",
        "quote",
        "unit",
    }
    missed = [
        told(draft) for draft in made if checked(draft).outcome is not Outcome.FLAGGED
    ]
    assert len(missed) <= 5, missed
