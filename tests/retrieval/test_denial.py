"""Questions about what is not so: only a sentence that denies something answers them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.answers import NoteCode
from retrieval.ask import ask
from retrieval.confidence import Status
from retrieval.denial import asks_for_what_is_not, denies
from tests.cast import Cast
from tests.stored_corpus import Corpus, bring_in


@pytest.mark.parametrize(
    "question",
    [
        "Which fees are not refunded?",
        "Who isn't bound by the decision?",
        "Jakie opłaty nie podlegają zwrotowi?",
        "Ce taxe nu se restituie?",
        "Какие сборы не возвращаются?",
        "Những khoản phí nào không được hoàn lại?",
    ],
)
def test_an_open_question_may_ask_for_what_is_not_so(question: str) -> None:
    assert asks_for_what_is_not(question)


@pytest.mark.parametrize(
    "question",
    [
        "Which fees are refunded?",
        # A plain sentence answers these.
        "Is it not allowed to pay in cash?",
        "Czy opłata nie podlega zwrotowi?",
        "Phí này có được hoàn lại không?",
        # What they ask about is mostly put in other words.
        "What happens if I do not pay?",
        "Why was the loan not granted?",
        "Dlaczego pożyczka nie została udzielona?",
        "Ce se întâmplă dacă nu plătesc?",
        "Почему заём не выдан?",
        "Tại sao khoản vay không được duyệt?",
        "Сколько стоил билет, когда касса не работала?",
        "Ce formular se depune pentru a nu plăti taxa?",
        # No denials at all.
        "Who pays not only the fee?",
        "Không gian nào được thuê?",
        "",
    ],
)
def test_other_questions_do_not(question: str) -> None:
    assert not asks_for_what_is_not(question)


@pytest.mark.parametrize(
    "sentence",
    [
        "The entrance fee isn't refunded.",
        "Refunds exclude the entrance fee.",
        "Unsigned forms are sent back.",
        "Opłata wstępna jest wyłączona ze zwrotu.",
        "Taxa de intrare este neplătită.",
        "Взнос возврату не подлежит.",
        "Phí gia nhập được miễn.",
        # Nobody knows what a sentence in another language says.
        "Die Gebühr wird nie erstattet.",
    ],
)
def test_a_sentence_may_deny_in_many_words(sentence: str) -> None:
    assert denies(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The fees are refunded within a week.",
        "Under the rules the union is refunded until May.",
        "Opłaty są zwracane w ciągu tygodnia.",
        "Taxele se restituie într-o săptămână.",
        "Сборы возвращаются в течение года.",
        "Các khoản phí được hoàn lại trong một tuần.",
    ],
)
def test_a_sentence_that_only_says_what_is_denies_nothing(sentence: str) -> None:
    assert not denies(sentence)


@settings(max_examples=50)
@given(st.text(max_size=200))
def test_any_text_is_judged(text: str) -> None:
    assert asks_for_what_is_not(text) in {True, False}
    assert denies(text) in {True, False}


@pytest.mark.django_db
@pytest.mark.req("S1-ASK-09", "S1-MIS-15", "D12")
@pytest.mark.parametrize("mode", ["grounded", "extractive"])
def test_what_is_said_to_be_so_is_no_answer(
    corpus: Corpus, cast: Cast, mode: str
) -> None:
    reader = cast.granted.reader
    asked = ask(reader, "For how long may an arranged overdraft be used?", mode=mode)
    assert asked.status is Status.FOUND
    asked = ask(
        reader, "For how long may an arranged overdraft not be used?", mode=mode
    )
    assert asked.status is Status.NOT_FOUND
    assert asked.notes == (NoteCode.DENIAL_MISSING,)
    assert asked.passages
    assert not asked.sentences
    assert ("related text, not the answer" in asked.note) == (mode == "grounded")


@pytest.mark.django_db
@pytest.mark.req("S1-ASK-09", "D12")
def test_a_sentence_that_denies_answers(corpus: Corpus, cast: Cast) -> None:
    bring_in(
        corpus.handbook.layers.get(name="main"),
        "refunds.md",
        "# Refunds\n\nThe entrance fee and the key deposit are not refunded.\n\n"
        "The fee for a course is refunded within a week.\n",
    )
    asked = ask(cast.granted.reader, "Which fees are not refunded?")
    assert asked.status is not Status.NOT_FOUND
    assert asked.notes == ()
