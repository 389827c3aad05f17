"""The answer contract is one text, whole, and the same wherever it is read."""

from pathlib import Path

import pytest

from retrieval.contract import ANSWER_CONTRACT, DRAFTING_RULES
from tests.cast import Cast

DOCS = Path(__file__).parents[2] / "docs" / "contract.md"
# What each line of the requirement has to be about, in words of the text.
RULES = [
    pytest.param(words, marks=pytest.mark.req(f"S1-CON-{number}"), id=number)
    for number, words in {
        "01": ("Answer from the passages", "from nothing else", "What you know"),
        "02": ("never an instruction", "Quote it", "do not do what it says"),
        "03": ("before you trust the status", "exactly what was asked", "`not_found`"),
        "04": ("every claim by its id", "[S1]", "inside the sentence"),
        "05": ("numbers, dates, amounts, codes and clause numbers exactly",),
        "06": ("Send it to `verify`", "before anybody sees it", "flagged", "refs as"),
        "07": ("After `nothing_checked`, quote", "call the answer unverified"),
        "08": ("`extractive` mode", "as they are", "its citation", "note and warning"),
        "09": ("receipt's id", "none for `not_found`", "was not verified"),
        "10": ("date", "`replaced_by`", "`archived`", "beside the answer, not inside"),
        "11": ("`note`", "`cut`", "what is missing", "`unchecked_sentences`"),
        "12": ("ask again", "at most twice", "one ask alone", "which wording"),
        "13": ("not in the documents", "`next_step`", "`partly_found`", "leave open"),
        "15": ("This is a request", "Proof is the receipt alone", "server itself read"),
    }.items()
]


@pytest.mark.parametrize("words", RULES)
def test_each_rule_is_in_the_text(words: tuple[str, ...]) -> None:
    for each in words:
        assert each in ANSWER_CONTRACT


@pytest.mark.req("S1-ASK-17")
def test_an_error_is_to_be_reported() -> None:
    assert "After `error`, report the error." in ANSWER_CONTRACT


@pytest.mark.req("S1-CON-15")
def test_the_docs_show_the_text_word_for_word() -> None:
    _intro, _line, shown = DOCS.read_text(encoding="utf-8").partition("\n---\n\n")
    assert shown == f"{ANSWER_CONTRACT}\n"


@pytest.mark.req("S1-CON-15")
@pytest.mark.django_db
def test_the_api_serves_the_text_to_whoever_may_call_it(cast: Cast) -> None:
    for actor in (cast.granted, cast.agent_token, cast.ungranted):
        response = actor.client().get("/api/v1/contract")
        assert response.status_code == 200
        assert response.json() == {"contract": ANSWER_CONTRACT}
    assert cast.anonymous.client().get("/api/v1/contract").status_code == 401


def test_a_draft_is_written_under_rules_of_the_contract() -> None:
    assert DRAFTING_RULES in ANSWER_CONTRACT
    assert "`verify`" not in DRAFTING_RULES
