"""Extractive answers: the documents' own sentences, or none."""

import pytest
from pytest_django.fixtures import Settings

from knowledge.models import Document, Layer, Passage
from knowledge.models.knowledge_base import AnswerMode
from knowledge.models.passage import TextOrigin
from retrieval.answers import Answer, Mode, NoteCode
from retrieval.ask import ask
from retrieval.confidence import Status
from retrieval.extractive import cost_of
from retrieval.models import Receipt
from retrieval.quotable import LONGEST
from retrieval.results import Occasion
from retrieval.weighing import ScoringError
from tests.cast import Cast
from tests.model_proxy import ModelProxy
from tests.retrieval.shelf import layer_of, reader_of
from tests.stored_corpus import Corpus, bring_in

pytestmark = pytest.mark.django_db

API = Occasion("api")
OVERDRAFT = "For how long may an arranged overdraft be used?"
NOWHERE = "Which moons of Saturn have an atmosphere?"


def spelled(answer: Answer) -> str:
    """Return the sentences of an answer."""
    return "\n".join(sentence.text for sentence in answer.sentences)


def are_exact(answer: Answer) -> bool:
    """Tell whether each sentence is the span that its ref names."""
    for sentence in answer.sentences:
        revision, _, span = sentence.ref.partition(":")
        start, _, end = span.partition("-")
        text = Document.objects.get(number=int(revision[1:])).text
        if text[int(start) : int(end)] != sentence.text:
            return False
    return True


@pytest.fixture
def shelf(model: str, db: None) -> Layer:
    """An extractive layer, with the model at hand."""
    layer = layer_of("law", "rules")
    layer.answer_mode = AnswerMode.EXTRACTIVE
    layer.save()
    return layer


# --- Sentences -------------------------------------------------------------------


@pytest.mark.req("S1-EXT-01", "S1-EXT-08", "S2-EXT-01")
def test_the_sentence_that_answers_comes_word_for_word(
    corpus: Corpus, cast: Cast
) -> None:
    answer = ask(cast.granted.reader, OVERDRAFT, mode="extractive")
    assert answer.mode is Mode.EXTRACTIVE
    assert answer.status is Status.FOUND
    best = answer.sentences[0]
    assert best.text == (
        "3.1 An arranged overdraft may be used for ninety days in a row."
    )
    assert are_exact(answer)
    assert 1 <= len(answer.sentences) <= 5
    scores = [sentence.score for sentence in answer.sentences]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.5
    assert {each.passage for each in answer.sentences} <= {
        each.id for each in answer.passages
    }


@pytest.mark.req("S1-EXT-02", "S1-RCP-02")
def test_where_no_sentence_answers_there_is_no_guess(
    corpus: Corpus, cast: Cast
) -> None:
    answer = ask(cast.granted.reader, NOWHERE, mode="extractive", occasion=API)
    assert answer.status is Status.NOT_FOUND
    assert (answer.sentences, answer.receipt_id) == ((), "")
    assert answer.next_step
    assert not Receipt.objects.exists()


@pytest.mark.req("S1-EXT-13", "S1-DAT-07")
def test_the_best_sentences_that_fit_the_budget_come(
    corpus: Corpus, cast: Cast, settings: Settings
) -> None:
    """The first comes whatever it costs with its citation."""
    long = ask(cast.granted.reader, OVERDRAFT, mode="extractive")
    first = cost_of(long.sentences[0])
    settings.ANSWER_TOKEN_BUDGET = 120
    short = ask(cast.granted.reader, OVERDRAFT, mode="extractive")
    assert short.sentences[0].ref == long.sentences[0].ref
    assert sum(map(cost_of, short.sentences)) <= max(120, first)


@pytest.mark.req("S1-EXT-12", "S1-EXT-11")
def test_a_block_without_sentence_ends_is_never_quoted(shelf: Layer) -> None:
    lines = "\n".join(
        f"berth {number:03} fee for a sailing boat {number + 5} euro a night"
        for number in range(60)
    )
    bring_in(shelf, "fees.txt", f"{lines}\n")
    answer = ask(reader_of("law"), "What is the fee for a sailing boat a night?")
    assert len(lines) > LONGEST
    assert answer.passages
    assert answer.status is Status.NOT_FOUND
    assert answer.sentences == ()


@pytest.mark.req("S1-EXT-10", "R11")
def test_a_scanned_sentence_carries_a_warning(corpus: Corpus, cast: Cast) -> None:
    document = Document.objects.get(source__path="account-terms.md")
    document.ocr_spans = [[0, len(document.text)]]
    document.save()
    Passage.objects.filter(document=document).update(text_origin=TextOrigin.OCR)
    for mode in ("extractive", "grounded"):
        answer = ask(cast.granted.reader, OVERDRAFT, mode=mode)
        assert "Check the original page" in answer.warnings[0]
    sentence = ask(cast.granted.reader, OVERDRAFT, mode="extractive").sentences[0]
    assert sentence.text_origin == "ocr"
    assert sentence.citation.text_origin == "ocr"


@pytest.mark.req("S1-EXT-16", "S1-EXT-01")
def test_sentences_are_scored_also_where_reranking_is_off(
    corpus: Corpus, cast: Cast, settings: Settings
) -> None:
    settings.RERANKING_ENABLED = False
    answer = ask(cast.granted.reader, OVERDRAFT, mode="extractive")
    assert "ninety days" in spelled(answer)


@pytest.mark.req("S1-EXT-16")
def test_without_a_model_the_call_fails(
    corpus: Corpus, cast: Cast, settings: Settings
) -> None:
    settings.STRATA_MODEL_URL = "http://127.0.0.1:9"
    with pytest.raises(ScoringError):
        ask(cast.granted.reader, OVERDRAFT, mode="extractive")
    settings.RERANKING_MODEL = "a cross encoder"
    settings.STRATA_RERANKING_URL = "http://127.0.0.1:9"
    with pytest.raises(ScoringError, match="a cross encoder does not answer"):
        ask(cast.granted.reader, OVERDRAFT, mode="extractive")


@pytest.mark.req("S1-MIS-16", "S1-RCP-05", "S1-MIS-14")
def test_names_are_looked_for_before_a_receipt_is_issued(
    corpus: Corpus, cast: Cast
) -> None:
    question = "For how long may an arranged overdraft of type ZX-99 be used?"
    answer = ask(cast.granted.reader, question, mode="extractive", occasion=API)
    assert answer.status is Status.NOT_FOUND
    assert answer.note == "No passage holds ZX-99."
    assert (answer.sentences, answer.receipt_id) == ((), "")


# --- The mode --------------------------------------------------------------------


@pytest.mark.req("S1-EXT-04", "S1-EXT-05")
def test_passages_of_an_extractive_layer_decide(corpus: Corpus, cast: Cast) -> None:
    """Which layers were searched does not."""
    prices = corpus.handbook.layers.get(name="prices")
    prices.answer_mode = AnswerMode.EXTRACTIVE
    prices.save()
    only_main = ask(cast.granted.reader, OVERDRAFT, top_k=1)
    assert {each.citation.layer for each in only_main.passages} == {"main"}
    assert only_main.mode is Mode.GROUNDED
    priced = ask(
        cast.granted.reader, "What interest do savings get?", layers=["prices"]
    )
    assert priced.mode is Mode.EXTRACTIVE


@pytest.mark.req("S1-EXT-06", "S1-API-06")
def test_grounded_cannot_loosen_an_extractive_layer(corpus: Corpus, cast: Cast) -> None:
    corpus.handbook.layers.update(answer_mode=AnswerMode.EXTRACTIVE)
    answer = ask(cast.granted.reader, OVERDRAFT, mode="grounded")
    assert answer.mode is Mode.EXTRACTIVE
    assert answer.notes[0] is NoteCode.STAYS_EXTRACTIVE
    assert "stays in the documents' own sentences" in answer.note
    assert answer.status is Status.FOUND


@pytest.mark.req("S1-EXT-07")
def test_without_passages_the_mode_is_the_one_asked_or_the_strictest() -> None:
    layer = layer_of("law", "rules")
    layer_of("law", "other")
    reader = reader_of("law")
    assert ask(reader, "why?").mode is Mode.GROUNDED
    layer.answer_mode = AnswerMode.EXTRACTIVE
    layer.save()
    assert ask(reader, "why?").mode is Mode.EXTRACTIVE
    assert ask(reader, "why?", layers=["other"]).mode is Mode.GROUNDED
    assert ask(reader, "why?", mode="grounded").mode is Mode.GROUNDED
    answer = ask(reader, "why?", layers=["other"], mode="extractive")
    assert answer.mode is Mode.EXTRACTIVE
    assert (answer.status, answer.sentences) == (Status.NOT_FOUND, ())


# --- Named clauses ---------------------------------------------------------------

CHARTER = """# Charter

## Article 4 – Hours

Eight hours are a day's work. Rest is due at noon.

## Article 5 – Pay

Pay is due monthly.
"""


@pytest.mark.req("S1-EXT-14", "S1-EXT-04")
def test_a_named_clause_is_quoted_sentence_by_sentence_without_the_model(
    shelf: Layer, settings: Settings
) -> None:
    bring_in(shelf, "charter.md", CHARTER)
    settings.STRATA_MODEL_URL = "http://127.0.0.1:9"
    answer = ask(reader_of("law"), "What does Article 4 say?", occasion=API)
    assert [sentence.text for sentence in answer.sentences] == [
        "Eight hours are a day's work.",
        "Rest is due at noon.",
    ]
    assert answer.status is Status.FOUND
    assert are_exact(answer)
    assert answer.receipt_id
    assert answer.note == ""


@pytest.mark.req("S1-EXT-14", "S1-MIS-01")
def test_the_rest_of_a_clause_over_the_budget_is_said(
    shelf: Layer, settings: Settings
) -> None:
    settings.ANSWER_TOKEN_BUDGET = 200
    body = " ".join(f"Rule {number} holds for all." for number in range(80))
    bring_in(shelf, "charter.md", f"# Charter\n\n## Article 4 – Rules\n\n{body}\n")
    answer = ask(reader_of("law"), "Article 4")
    assert answer.status is Status.PARTLY_FOUND
    assert answer.notes == (NoteCode.SENTENCES_LEFT_OUT,)
    assert answer.note.startswith("The rest of Article 4 – Rules (charter.md)")
    assert answer.sentences[0].text == "Rule 0 holds for all."


@pytest.mark.req("S1-EXT-14", "S1-EXT-12")
def test_a_sentence_of_a_clause_that_is_too_long_is_said(shelf: Layer) -> None:
    endless = "and the member waits " * 110
    bring_in(
        shelf,
        "charter.md",
        f"# Charter\n\n## Article 4 – Hours\n\nWork begins at six. Then {endless}.\n",
    )
    answer = ask(reader_of("law"), "Article 4")
    assert answer.status is Status.PARTLY_FOUND
    assert spelled(answer) == "Work begins at six."
    assert "has no sentence end for so long" in answer.note


# --- Receipts --------------------------------------------------------------------


@pytest.mark.req("S1-RCP-02", "S1-EXT-03", "REL-R7")
def test_an_extractive_answer_has_a_receipt_of_what_was_read(
    corpus: Corpus, cast: Cast
) -> None:
    answer = ask(cast.granted.reader, OVERDRAFT, mode="extractive", occasion=API)
    receipt = Receipt.objects.get()
    assert answer.receipt_id == receipt.public_id
    assert receipt.kind == "extractive"
    assert str(receipt.interaction) == answer.interaction_id
    words = dict(receipt.words.values_list("part", "text"))
    assert words["question"] == OVERDRAFT
    for sentence in answer.sentences:
        assert any(sentence.text in (text or "") for text in words.values())


@pytest.mark.req("S1-EXT-18")
def test_no_more_leaves_than_for_a_grounded_answer(
    corpus: Corpus, cast: Cast, settings: Settings
) -> None:
    """The question goes to the model server once, and nothing else anywhere."""
    with ModelProxy(settings.STRATA_MODEL_URL) as proxy:
        settings.STRATA_MODEL_URL = proxy.url
        ask(cast.granted.reader, OVERDRAFT)
        assert proxy.embedded == 1
        ask(cast.granted.reader, OVERDRAFT, mode="extractive", occasion=API)
        assert proxy.embedded == 2
