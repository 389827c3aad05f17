"""What is marked in a question and its answer before they become knowledge."""

import pytest

from approvals.instruction import as_text
from approvals.privacy import WHY, check_answer, marks_in, quoted_marks


def marked(text: str) -> list[tuple[str, str]]:
    found = marks_in(text)
    assert all(text[mark.start : mark.end] == mark.text for mark in found)
    return [(mark.kind, mark.text) for mark in found]


@pytest.mark.req("S2-PRV-01", "S2-PRV-02")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is john smith and I want a loan", "john smith"),
        ("Dear Mr Johnson, thank you", "Johnson"),
        ("why was kate wilson refused", "kate wilson"),
        ("Nazywam się Anna Kowalska i pytam o kredyt", "Anna Kowalska"),
        ("Pani Annie Nowak odmówiono kredytu", "Annie Nowak"),
        ("Co z wnioskiem Jana Kowalskiego z Krakowa?", "Jana Kowalskiego"),
        ("Mă numesc Ion Popescu și am o întrebare", "Ion Popescu"),
        ("Domnul Ionescu a sunat ieri", "Ionescu"),
        ("Меня зовут Иван Петров, хочу кредит", "Иван Петров"),
        ("Перевод от Марии Ивановой не дошёл", "Марии Ивановой"),
        ("Справка для Смирнова Олега Игоревича", "Смирнова Олега Игоревича"),
        ("Tôi tên là Nguyễn Văn An, muốn vay", "Nguyễn Văn An"),
        ("chị Trần Thị Mai hỏi về lãi suất", "Trần Thị Mai"),
        ("Khoản vay của Pham Minh Tuan", "Pham Minh Tuan"),
    ],
)
def test_marks_names_in_five_languages(text: str, name: str) -> None:
    assert marked(text) == [("name", name)]


@pytest.mark.req("S2-PRV-01", "S2-PRV-02")
@pytest.mark.parametrize(
    ("text", "kind", "detail"),
    [
        ("call +44 7911 123456 today", "phone", "+44 7911 123456"),
        ("tel. 512 345 678", "phone", "512 345 678"),
        ("sună la 0722 123 456", "phone", "0722 123 456"),
        ("звоните 8 (912) 345-67-89", "phone", "8 (912) 345-67-89"),
        ("gọi 0912 345 678 nhé", "phone", "0912 345 678"),
        ("write to a.b@example.com", "email", "a.b@example.com"),
        ("a.b (at) example (dot) com", "email", "a.b (at) example (dot) com"),
        ("why is account 12345678 blocked", "account", "12345678"),
        ("card 4111 1111 1111 1111", "card", "4111 1111 1111 1111"),
        ("to DE89 3704 0044 0532 0130 00", "iban", "DE89 3704 0044 0532 0130 00"),
        ("SWIFT: DEUTDEFF", "bic", "DEUTDEFF"),
        ("order no. A-2024-99812", "order", "A-2024-99812"),
        ("zamówienie nr 12345678", "order", "12345678"),
        ("la comanda 778812", "order", "778812"),
        ("заказ № 99-1234", "order", "99-1234"),
        ("đơn hàng số DH-123456", "order", "DH-123456"),
        ("PESEL 44051401359", "identity", "44051401359"),
        ("mój numer to 44051401359", "identity", "44051401359"),
        ("am cnp 1800101221144", "identity", "1800101221144"),
        ("seria buletin RX nr 123456", "identity", "RX nr 123456"),
        ("ИНН 500100732259", "identity", "500100732259"),
        ("паспорт 4508 123456", "identity", "4508 123456"),
        ("45 08 123456 выдан в мае", "identity", "45 08 123456"),
        ("số cccd 001099012345", "identity", "001099012345"),
        ("passport no. AB1234567", "identity", "AB1234567"),
        # A number of one country in a text of another one's language.
        ("Tôi có thể gọi 512 345 678 vào buổi sáng không", "phone", "512 345 678"),
        ("Can my mother be reached at 0722 123 456?", "phone", "0722 123 456"),
        ("СССР？ ７９１２？ account １２３４５６７８", "account", "１２３４５６７８"),
    ],
)
def test_marks_numbers_of_people(text: str, kind: str, detail: str) -> None:
    assert marked(text) == [(kind, detail)]


@pytest.mark.req("S2-PRV-01")
@pytest.mark.parametrize(
    "text",
    [
        "Article 112 of Regulation (EU) 2016/679, case C-362/14, ISO 20022",
        "Order No 5/2019 of the Minister, Ordinul nr. 12/2020",
        "đường Nguyễn Huệ, Thành phố Hồ Chí Minh",
        "The Roman Empire and Virginia in May 2024 will mark Grace",
        "The fee is 500 000 000 zł, 1 000 000 VND or € 123456789",
        "The hotline 0800 123 456 is free",
        "QT-07, AC04, pacs.008.001.08 on 2026-05-31 at 14:25",
        "Rzeczpospolita Polska, Dane Osobowe, Narodowy Bank Polski",
        "Центральный банк Российской Федерации",
        "Banca Națională a României, Codul Civil",
        "Ngân hàng Nhà nước Việt Nam quy định tại Thông tư 39/2016/TT-NHNN",
    ],
)
def test_leaves_ordinary_lines_alone(text: str) -> None:
    assert marked(text) == []


@pytest.mark.req("S2-APR-08", "S2-PRV-02")
def test_what_is_marked_must_go_or_be_kept_on_purpose() -> None:
    question = "Can Anna Kowalska raise her limit?"
    answer = "Yes: call +48 512 345 678 or write to help@example.com."
    left = check_answer({"question": question, "answer": answer})
    assert [(mark.place, mark.kind) for mark in left] == [
        ("question", "name"),
        ("answer", "phone"),
        ("answer", "email"),
    ]
    assert "“Anna Kowalska”, “+48 512 345 678”, “help@example.com”" in quoted_marks(
        left
    )
    kept = ["anna  kowalska", "+48 512 345 678", "Help@example.com"]
    assert check_answer({"question": question, "answer": answer}, kept) == ()
    assert check_answer({"question": "Can one raise a limit?", "answer": "Yes."}) == ()
    assert quoted_marks(()) == ""


@pytest.mark.req("S2-APR-08", "S2-PRV-02")
def test_the_instruction_names_what_is_not_copied() -> None:
    instruction = as_text()
    for word in ("names", "phone numbers", "orders", "PESEL", "IBANs", "e-mail"):
        assert word in instruction


def test_each_kind_says_why() -> None:
    assert set(WHY) == {
        "name", "phone", "email", "account", "card", "iban", "bic", "order", "identity"
    }  # fmt: skip
