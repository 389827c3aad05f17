"""What an answer's status comes to, and what is said of what is missing."""

import pytest
from pytest_django.fixtures import Settings

from retrieval.answers import Answer, NoteCode
from retrieval.ask import ask
from retrieval.confidence import Status
from retrieval.results import Match
from tests.retrieval.shelf import layer_of, put, reader_of
from tests.retrieval.test_sections import CHARTER, STATUTE, write

pytestmark = pytest.mark.django_db

BODY = "word " * 400


def asked(question: str, **options: object) -> Answer:
    """Ask a reader's own question; there is no model, so only words are compared."""
    return ask(reader_of("law"), question, **options)  # type: ignore[arg-type]


def firsts(answer: Answer) -> list[str]:
    """Return the files of the named clauses that came back."""
    return [
        passage.citation.file
        for passage in answer.passages
        if passage.hit.match is Match.EXACT
    ]


@pytest.mark.req("S1-ASK-14", "S1-ASK-13")
@pytest.mark.parametrize(
    "question",
    [
        "What does Article 5 say?",
        "Co stanowi art. 5?",
        "Ce spune articolul 5?",
        "Что говорит статья 5?",
        "Điều 5 nói gì?",
    ],
)
def test_a_named_clause_comes_first_verbatim_and_is_found(question: str) -> None:
    write(layer_of("law"), CHARTER, "charter.md")
    put(layer_of("law"), "Article five is about pay, says the commentary on Article 5.")
    answer = asked(question)
    assert answer.status is Status.FOUND
    assert answer.passages[0].text == "### Article 5 – Pay\n\nPay is due monthly."
    assert answer.passages[0].citation.clause_path.endswith("Article 5 – Pay")
    assert answer.note == ""


@pytest.mark.req("S1-ASK-15")
def test_the_same_number_in_several_documents_comes_from_each() -> None:
    write(layer_of("law"), CHARTER, "a/charter.md")
    write(layer_of("law"), STATUTE, "b/statute.md")
    answer = asked("Article 4")
    assert firsts(answer) == ["a/charter.md", "b/statute.md"]
    assert answer.status is Status.FOUND


@pytest.mark.req("S1-ASK-16")
@pytest.mark.parametrize("number", ["77.2", "release 4.9", "14.5 million"])
def test_a_number_that_is_no_section_changes_nothing(number: str) -> None:
    write(layer_of("law"), CHARTER, "charter.md")
    answer = asked(f"hours of work in {number}")
    assert len(answer.passages) == 1
    assert firsts(answer) == []
    assert (answer.note, answer.notes) == ("", ())


@pytest.mark.req("S1-MIS-01", "S1-MIS-02", "S1-MIS-09")
def test_a_cut_clause_is_partly_found_and_named(settings: Settings) -> None:
    """The note stands beside the budget, not within."""
    settings.ANSWER_TOKEN_BUDGET = 200
    text = f"# Book\n\n### Article 4\n\n{BODY}\n\n### Article 5\n\nPay is due monthly."
    write(layer_of("law"), text, "book.md")
    answer = asked("Article 4")
    assert answer.status is Status.PARTLY_FOUND
    assert answer.passages[0].cut
    assert answer.passages[0].text.endswith("word")
    assert answer.notes == (NoteCode.CLAUSE_CUT,)
    assert "the beginning of Article 4 (book.md)" in answer.note
    assert len(answer.passages[0].text) > 400
    short = asked("Article 5")
    assert not short.passages[0].cut
    assert short.status is Status.FOUND


@pytest.mark.req("S1-MIS-03", "S1-MIS-04")
def test_clauses_that_do_not_fit_are_left_out_and_named(settings: Settings) -> None:
    settings.ANSWER_TOKEN_BUDGET = 100
    text = "# Book\n\n" + "".join(
        f"### Article {number}\n\n{'word ' * 30}.\n\n" for number in (4, 5, 6)
    )
    write(layer_of("law"), text, "book.md")
    answer = asked("Articles 4, 5 and 6")
    assert answer.status is Status.PARTLY_FOUND
    assert firsts(answer) == ["book.md"]
    assert "2 sections no longer fit: Article 5 (book.md), Article 6 (book.md)." in (
        answer.note
    )


@pytest.mark.req("S1-MIS-05", "S1-MIS-06")
def test_sections_that_were_not_read_make_it_partly_found() -> None:
    for number in range(12):
        text = f"# Rule book {number:02}\n\n### Article 4\n\nText."
        write(layer_of("law"), text, f"{number:02}.md")
    answer = asked("Article 4")
    assert answer.status is Status.PARTLY_FOUND
    assert answer.note == (
        "2 more sections match and were not read. Name a layer to see the others."
    )
    named = asked("Article 4", layers=["main"])
    assert named.note == "2 more sections match and were not read."


@pytest.mark.req("S1-MIS-07")
def test_where_counting_stopped_more_may_match() -> None:
    """Ten items of the same six sections: all of them are read, the count stopped."""
    items = ", ".join(f"({letter}) {letter * 3}" for letter in "abcdefghij")
    text = "".join(
        f"## Chapter {number}\n\n### Section 4\n\nDue are {items}.\n\n"
        for number in range(1, 7)
    )
    write(layer_of("law"), f"# Book\n\n{text}", "book.md")
    question = ", ".join(f"section 4({letter})" for letter in "abcdefghij")
    answer = asked(question)
    assert len(firsts(answer)) == 6
    assert answer.note == "More sections may match."
    assert answer.status is Status.FOUND


@pytest.mark.req("S1-MIS-08")
def test_references_after_the_tenth_are_named_as_written() -> None:
    write(layer_of("law"), CHARTER, "charter.md")
    answer = asked("Articles 1 to 12")
    assert answer.notes[0] is NoteCode.SECTIONS
    assert "not Articles 11, Articles 12." in answer.note


# --- Names -----------------------------------------------------------------------


@pytest.mark.req("S1-MIS-14", "S1-MIS-15")
def test_a_name_that_no_passage_holds_is_not_found() -> None:
    put(layer_of("law"), "A task group ends when its last task ends.", path="tasks.md")
    answer = asked("When does asyncio.TaskPool end a task group?")
    assert answer.status is Status.NOT_FOUND
    assert answer.passages
    assert answer.note == (
        "No passage holds asyncio.TaskPool. The passages are related text, not the "
        "answer."
    )


@pytest.mark.req("S1-MIS-14")
def test_with_some_names_missing_it_is_partly_found() -> None:
    write(layer_of("law"), CHARTER, "charter.md")
    answer = asked("Does Article 5 hold for AC04?")
    assert answer.status is Status.PARTLY_FOUND
    assert answer.note == "No passage holds AC04."
    both = asked("AC04 and AT-44?")
    assert both.status is Status.NOT_FOUND
    assert both.note.startswith("No passage holds any of: AC04, AT-44.")


@pytest.mark.req("S1-MIS-13")
def test_a_name_may_stand_in_the_file_path_or_the_title() -> None:
    put(layer_of("law"), "Lines have 79 characters.", path="peps/pep-0008.md")
    assert asked("How long are lines in PEP 8?").note == ""
    put(layer_of("law"), "Rings are round.", path="r.md", title="Form QR-77")
    assert asked("Which rings does QR-77 have?").note == ""


@pytest.mark.req("D34", "S1-MIS-14")
@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("What says Article 5 of the Quarry Statute?", "Article 5"),
        ("What says Article 99?", "Article 99"),
        ("Ce spune articolul 99?", "articolul 99"),
        ("Điều 99 nói gì?", "Điều 99"),
    ],
)
def test_a_clause_that_nothing_bears_counts_as_a_missing_name(
    question: str, missing: str
) -> None:
    write(layer_of("law"), CHARTER, "charter.md")
    write(layer_of("law"), STATUTE, "statute.md")
    answer = asked(question)
    assert answer.status is Status.NOT_FOUND
    assert f"No passage holds {missing}." in answer.note


@pytest.mark.req("D34")
def test_one_clause_of_two_is_partly_found() -> None:
    write(layer_of("law"), CHARTER, "charter.md")
    answer = asked("What do Article 5 and Article 99 say?")
    assert answer.status is Status.PARTLY_FOUND
    assert answer.note == "No passage holds Article 99."


@pytest.mark.req("S1-ASK-10")
def test_what_is_not_found_says_what_to_do_next() -> None:
    put(layer_of("law"), "Masks are worn in the quarry.")
    assert "add a document or folder" in asked("Who feeds the ducks?").next_step
    assert "without naming layers" in asked("ducks?", layers=["main"]).next_step
    partly = asked("Are masks worn in the quarry?")
    assert partly.status is Status.PARTLY_FOUND
    assert "say what stays open" in partly.next_step
    nothing = ask(reader_of(), "Are masks worn?")
    assert nothing.status is Status.NOT_FOUND
    assert "Ask for access" in nothing.next_step
