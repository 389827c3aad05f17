"""Numbers, dates, amounts and units in five languages, against Babel and num2words."""

from datetime import date
from random import Random

import pytest
from babel.dates import format_date
from babel.numbers import format_currency, format_decimal
from babel.units import format_unit
from num2words import num2words
from stdnum import iban

from retrieval.verification import Fact, FactKind, facts_in

LANGUAGES = ("en", "vi", "pl", "ro", "ru")


def only(text: str, language: str = "") -> Fact:
    """Return the one fact of a text."""
    found = facts_in(text, language)
    assert len(found) == 1, (text, found)
    return found[0]


def normal(text: str) -> list[tuple[str, str, str]]:
    return [(str(each.kind), each.value, each.unit) for each in facts_in(text)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_are_read_as_num2words_writes_them(language: str) -> None:
    numbers = [*range(11, 1000), *Random(4).sample(range(1000, 3_000_000), 1000)]
    for number in numbers:
        words = num2words(number, lang=language).replace(" - ", " ").replace(",", "")
        fact = only(words, language)
        assert (fact.value, fact.text) == (str(number), words) or (
            # One is an article too, so "o sută" begins with the hundred.
            fact.value == str(number) and words.endswith(fact.text)
        )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", ["long", "full"])
def test_dates_are_read_as_cldr_writes_them(language: str, width: str) -> None:
    for day in range(0, 1500, 7):
        wanted = date.fromordinal(date(2024, 1, 1).toordinal() + day)
        written = format_date(wanted, width, locale=language)
        # Vietnamese names days of the week by numbers: "Thứ Hai".
        dates = [
            fact for fact in facts_in(written, language) if fact.kind is FactKind.DATE
        ]
        assert [fact.value for fact in dates] == [wanted.isoformat()], written


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("cldr", "unit"),
    [
        ("second", "second"),
        ("minute", "minute"),
        ("hour", "hour"),
        ("day", "day"),
        ("week", "week"),
        ("month", "month"),
        ("year", "year"),
        ("length-meter", "m"),
        ("length-kilometer", "km"),
        ("mass-kilogram", "kg"),
        ("mass-gram", "g"),
        ("volume-liter", "litre"),
        ("length-centimeter", "cm"),
        ("digital-byte", "byte"),
    ],
)
def test_units_are_read_as_cldr_writes_them(
    language: str, cldr: str, unit: str
) -> None:
    for number in (2, 3, 5, 12, 21, 22, 30, 100):
        written = format_unit(number, cldr, "long", locale=language)
        fact = only(written, language)
        assert (fact.value, fact.unit) == (str(number), unit), written


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("currency", ["EUR", "USD", "PLN", "RON", "RUB", "VND", "GBP"])
@pytest.mark.parametrize("style", ["standard", "name"])
def test_amounts_are_read_as_cldr_writes_them(
    language: str, currency: str, style: str
) -> None:
    for number in (3, 12.5, 1250, 30_000, 1_234_567):
        written = format_currency(
            number, currency, locale=language, format_type=style, currency_digits=False
        )
        fact = only(written, language)
        assert (fact.kind, fact.unit) == (FactKind.AMOUNT, currency), written
        assert float(fact.value) == number, written


@pytest.mark.parametrize("language", LANGUAGES)
def test_plain_numbers_are_read_as_cldr_writes_them(language: str) -> None:
    for number in (0.5, 12.25, 1000.5, 12_345, 1_234_567.75):
        assert float(only(format_decimal(number, locale=language)).value) == number


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("w terminie dziewięćdziesięciu dni", "90", "day"),
        ("по истечении девяноста дней", "90", "day"),
        ("в течение тридцати календарных дней", "30", "day"),
        ("în termen de 30 de zile calendaristice", "30", "day"),
        ("în termen de zece zile lucrătoare", "10", "working day"),
        ("trong thời hạn ba mươi ngày làm việc", "30", "working day"),
        ("within ten working days", "10", "working day"),
        ("w ciągu 5 dni roboczych", "5", "working day"),
        ("okres dwudziestu czterech miesięcy", "24", "month"),
        ("на двадцать пять лет", "25", "year"),
        ("trong năm năm", "5", "year"),
        ("30-дневный срок", "30", "day"),
        ("30-dniowy termin", "30", "day"),
        ("a thirty-day notice", "30", "day"),
        ("1.5 million tonnes", "1500000", "tonne"),
        ("the 1990s", "1990", "decade"),
        ("-5 °C", "-5", "°C"),
        ("5 тыс. рублей", "5000", "RUB"),
        ("10 triệu đồng", "10000000", "VND"),
        ("US$2.5bn", "2500000000", "USD"),
        ("5zł", "5", "PLN"),
        ("15 phần trăm", "15", "%"),
        ("cinci la sută", "5", "%"),
        ("2 puncte procentuale", "2", "pp"),
        ("at 2:30 p.m.", "14:30", ""),
        ("Nr 4.3.2", "4.3.2", ""),
    ],
)
def test_documents_write_more_than_libraries_do(
    text: str, value: str, unit: str
) -> None:
    fact = only(text)
    assert (fact.value, fact.unit) == (value, unit)


def test_numbers_share_the_unit_behind_the_last() -> None:
    assert normal("30, 60 or 90 days") == [
        ("number", "30", "day"),
        ("number", "60", "day"),
        ("number", "90", "day"),
    ]
    assert normal("between EUR 5 and 10")[1] == ("amount", "10", "EUR")
    assert normal("thirty (40) days") == [
        ("number", "30", "day"),
        ("number", "40", "day"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "one of the parties may",
        "ten termin mija",
        "trong năm nay hai bên",
        "ten rok i ten dzień",
        "o nouă lege",
        "You may march on",
        "cele mai mari",
        "https://example.org/2020/05/30 and a1@example.org",
    ],
)
def test_ordinary_words_are_no_facts(text: str) -> None:
    assert normal(text) == [] or "ten" in text
    assert facts_in(text, "pl" if "ten" in text else "") == ()


def test_codes_and_ibans() -> None:
    number = "PL61109010140000071219812874"
    assert iban.is_valid(number)
    assert normal(f"Pay {iban.format(number)}, not AC04 or QT-07/QT-08.") == [
        ("iban", number, ""),
        ("code", "ac04", ""),
        ("code", "qt07", ""),
        ("code", "qt08", ""),
    ]
    assert normal("x86_64, read_only") == [("code", "x86_64", "")]
    assert [each.value for each in facts_in(f"{number.lower()} {number} EUR")] == [
        number,
        number,
    ]
    # A wrong check digit in a draft is to be found out, not overlooked.
    assert only("PL62 1090 1014 0000 0712 1981 2874").kind is FactKind.IBAN


def test_clauses_of_five_languages() -> None:
    written = ["Article 5", "Điều 5", "art. 5", "Articolul 5", "статьи 5"]
    assert {(only(each).value, only(each).unit) for each in written} == {
        ("5", "article")
    }
    assert normal("point (b) of Article 6(1)") == normal("Article 6(1)(b)")
