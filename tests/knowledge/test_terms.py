"""The words that the keyword branch stores and demands."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.terms import (
    MAX_WORD_LENGTH,
    content_words,
    index_terms,
    passage_language,
    question_language,
    read_query,
    without_marks,
    words,
)


@pytest.mark.req("S3-HYB-04", "REL-X2")
def test_tone_marks_are_kept_in_both_unicode_forms() -> None:
    text = "Đăng ký dang dở"
    assert words(text) == ["đăng", "ký", "dang", "dở"]
    assert words(unicodedata.normalize("NFD", text)) == words(text)


@pytest.mark.req("S3-HYB-03")
@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("Who takes care of the elderly?", ["takes", "care", "elderly"]),
        ("Care este termenul de plată?", ["termenul", "plată"]),
        ("Kto może odwołać prezesa i kiedy?", ["odwołać", "prezesa"]),
        ("Когда был принят закон о данных?", ["принят", "закон", "данных"]),
        ("Biểu mẫu QT-07 được dùng khi nào?", ["biểu", "mẫu", "qt", "07", "dùng"]),
        ("What is nghỉ phép năm for staff?", ["nghỉ", "phép", "năm", "staff"]),
    ],
)
def test_grammatical_words_of_the_query_are_dropped(
    query: str, kept: list[str]
) -> None:
    assert content_words(query, []) == kept


def test_a_query_of_grammatical_words_alone_demands_nothing() -> None:
    assert content_words("to be or not to be", ["en"]) == []


def test_each_word_is_demanded_once() -> None:
    assert content_words("fee fees fee", ["en"]) == ["fee", "fees"]


def test_the_layers_languages_break_a_tie() -> None:
    assert content_words("a fost", ["ro"]) == []


@pytest.mark.req("D12")
@pytest.mark.parametrize(
    ("question", "language"),
    [
        # Small words of the language, but none of its own letters.
        ("Ce meserie are Ana Pop?", "ro"),
        ("Care este numele primului client al Old Bank?", "ro"),
        ("Jakie dokumenty ma klient na koniec roku?", "pl"),
        # Letters that two languages have, and small words of one.
        ("Joseph Priestley mở tài khoản vào năm nào?", "vi"),
        ("How can one tell which libraries a script needs?", "en"),
        # As people type them on another keyboard.
        ("Cand se inchide contul si cine plateste taxa?", "ro"),
        ("Khi nao phai nop mau nay cho ngan hang?", "vi"),
        ("Когда закрывают счёт?", "ru"),
        # Letters alone.
        ("Rozwiązanie umowy", "pl"),
        # Nothing tells.
        ("GDPR Art. 28(2) – sub-processors", ""),
        ("QT-07", ""),
        ("", ""),
    ],
)
def test_a_question_tells_its_language(question: str, language: str) -> None:
    assert question_language(question) == language
    assert question_language(unicodedata.normalize("NFD", question)) == language


@pytest.mark.req("D8")
@pytest.mark.parametrize(
    ("text", "title", "language"),
    [
        ("Two.", "How many guests may a member bring?", "en"),
        ("25 EUR.", "Ile kosztuje duplikat identyfikatora?", "pl"),
        ("Được.", "May I bring my dog to the office?", "vi"),
        ("308", "", ""),
    ],
)
def test_a_short_answer_is_in_the_language_of_its_title(
    text: str, title: str, language: str
) -> None:
    assert passage_language(text, title) == language


def test_context_and_text_are_indexed_together() -> None:
    assert index_terms("Fees > QT-07", "asyncio.TaskPool 4,287.50") == (
        "fees qt 07 asyncio taskpool 4 287 50 ßfee ßasyncio ßtaskpool"
    )


def test_compatibility_forms_and_stress_marks_do_not_split_words() -> None:
    assert words("oﬃce ＡＢ12 до\u0301ма İstanbul pass\u00adword") == [
        "office",
        "ab12",
        "дома",
        "istanbul",
        "password",
    ]


@given(st.text(max_size=300))
def test_terms_are_what_their_own_words_say(text: str) -> None:
    terms = index_terms("", text, without_accents=True).split()
    own = [term for term in terms if not term.startswith("ß")]
    assert own == words(text) == terms[: len(own)]
    assert all(len(word) <= MAX_WORD_LENGTH for word in words(text))
    assert set(content_words(text, [])) <= set(words(text))


@pytest.mark.req("S2-LNG-01", "S3-LNG-01")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The members' deposits are insured.", "deposit"),
        ("Członek spłaca pożyczkę w ratach.", "pożyczki"),
        ("Contractele se încheie în scris.", "contractul"),
        ("Вкладчики закрывают договоры письменно.", "договора"),
    ],
)
def test_forms_of_a_word_share_a_stem_that_is_no_word(text: str, query: str) -> None:
    terms = index_terms("", text).split()
    (asked,) = read_query(query).words
    assert asked.word not in terms
    assert set(asked.stems) & set(terms)
    assert not set(asked.stems) & set(words(" ".join(asked.stems)))


def test_numbers_and_codes_have_no_other_forms() -> None:
    assert [w.stems for w in read_query("AC04 20022").words] == [(), ()]


@pytest.mark.req("S3-LNG-01")
def test_two_syllables_of_vietnamese_are_also_one_word() -> None:
    terms = index_terms("", "Thành viên nộp đơn đăng ký tại quầy.").split()
    assert set(read_query("đăng ký thế nào").compounds) & set(terms) == {"ßđăngßký"}
    assert read_query("how to register").compounds == ()


@pytest.mark.parametrize(
    ("word", "plain"),
    [("đăng", "dang"), ("pożyczka", "pozyczka"), ("școală", "scoala"), ("йод", "йод")],
)
def test_marks_come_off_but_letters_stay(word: str, plain: str) -> None:
    assert without_marks(word) == plain
