"""Asking: the order of the steps, what comes back, and what it says is missing."""

import re
from datetime import date

import pytest

from retrieval.answers import Answer, Mode, Step
from retrieval.ask import ask
from retrieval.confidence import Status
from retrieval.results import Level, Occasion
from tests.cast import Cast
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

API = Occasion("api")
OVERDRAFT = "For how long may an arranged overdraft be used?"
NOWHERE = "Which moons of Saturn have an atmosphere?"


def files(answer: Answer) -> list[str]:
    """Return the files of the passages that are handed back."""
    return [passage.citation.file for passage in answer.passages]


@pytest.mark.req("S1-ASK-01", "S1-HYB-01", "S1-HYB-06")
def test_the_steps_come_in_their_order(corpus: Corpus, cast: Cast) -> None:
    steps: list[Step] = []
    ask(cast.granted.reader, OVERDRAFT, progress=steps.append, occasion=API)
    assert steps == [step for step in Step if step is not Step.RECEIPT]
    steps.clear()
    ask(
        cast.granted.reader,
        OVERDRAFT,
        mode="extractive",
        progress=steps.append,
        occasion=API,
    )
    assert steps == list(Step)


@pytest.mark.req("S1-ASK-07", "S1-ASK-09", "S1-ASK-11")
def test_a_question_that_the_documents_answer_is_found(
    corpus: Corpus, cast: Cast
) -> None:
    answer = ask(cast.granted.reader, OVERDRAFT)
    assert answer.status is Status.FOUND
    assert answer.mode is Mode.GROUNDED
    assert [passage.id for passage in answer.passages] == [
        f"S{number}" for number in range(1, len(answer.passages) + 1)
    ]
    first = answer.passages[0]
    assert "ninety days in a row" in first.text
    assert first.citation.file == "account-terms.md"
    assert re.fullmatch(r"d\d+:\d+-\d+", first.ref)
    assert first.citation.date == date(2026, 2, 3)
    assert first.citation.date_source == "front_matter"
    assert answer.next_step == answer.note == ""


@pytest.mark.req("S1-ASK-09", "S1-ASK-10", "S1-CNF-07")
def test_what_no_document_covers_is_not_found(corpus: Corpus, cast: Cast) -> None:
    answer = ask(cast.granted.reader, NOWHERE)
    assert answer.status is Status.NOT_FOUND
    assert answer.passages
    assert "add a document or folder" in answer.next_step
    assert answer.confidence is not None
    assert answer.confidence.level is Level.LOW
