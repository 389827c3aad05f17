"""Personal details in a question and its answer, before they become knowledge. Pure.

The corpus holds no personal data; a customer's own words could bring it in. So names,
phone numbers, addresses of e-mail, bank details, and order and identity numbers are
marked, and whoever answers removes each or says that it stays (S2-APR-08, S2-PRV-01,
S2-PRV-02). Marks are offers to a person: a mark too many costs a tick, one too few can
publish somebody. Bank details are found as the log's scrubbing finds them, phone
numbers by phonenumbers, identity numbers by python-stdnum, names by
`approvals.names`.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import phonenumbers
from phonenumbers import Leniency, PhoneNumberMatcher, PhoneNumberType
from stdnum.pl import pesel
from stdnum.ro import cnp
from stdnum.ru import inn

from approvals.names import placed_names
from knowledge.scrubbing import (
    ACCOUNT,
    BIC,
    CARD,
    IBAN,
    bank_details,
    is_amount,
    with_plain_digits,
)

# What each kind of mark is, for whoever reads it.
WHY: Final = {
    "name": "This looks like a person's name.",
    "phone": "This looks like a phone number.",
    "email": "This is an e-mail address.",
    "account": "This looks like an account number.",
    "card": "This is a payment card's number.",
    "iban": "This is the number of a bank account (IBAN).",
    "bic": "This looks like a bank's code (BIC).",
    "order": "This looks like the number of an order, a parcel or a customer.",
    "identity": "This looks like the number of an identity document or a person.",
}
_BANK: Final = {IBAN: "iban", BIC: "bic", CARD: "card", ACCOUNT: "account"}
_HIDDEN: Final = {kind: mark for mark, kind in _BANK.items()}

# Where numbers without a country's code may be from. A text's language is a guess, and
# who writes in one language may have the number of another country.
_REGIONS: Final = ("GB", "US", "PL", "RO", "RU", "VN")
# Numbers that belong to no person.
_PUBLIC: Final = frozenset(
    {
        PhoneNumberType.TOLL_FREE,
        PhoneNumberType.SHARED_COST,
        PhoneNumberType.PREMIUM_RATE,
        PhoneNumberType.UAN,
    }
)
# Digits of a number that reaches a person from elsewhere.
_LEAST_PHONE: Final = 9

_EMAIL = re.compile(
    r"[\w.+'-]+@[\w-]+(?:\.[\w-]+)+"
    r"|[\w.+-]+\s?[(\[{]\s?(?:at|małpa|a rond|собака)\s?[)\]}]\s?[\w-]+"
    r"(?:\s?(?:\.|[(\[{]\s?(?:dot|kropka|punct|точка)\s?[)\]}])\s?[\w-]+)+",
    re.IGNORECASE,
)

_DIGITS = re.compile(r"(?<![\w.,])[0-9]+(?:[ \u00a0-][0-9]+)*(?!\w)(?![.,][0-9])")
# The provinces of Vietnam in an identity number; they count on in steps.
_VIETNAMESE = re.compile(r"0(?:0[1-9]|[1-8][0-9]|9[0-6])[0-3][0-9]{8}")
_RUSSIAN_PASSPORT = re.compile(r"[0-9]{2} ?[0-9]{2}[ \u00a0]+(?:№ ?)?[0-9]{6}")
_SNILS = re.compile(r"[0-9]{3}-[0-9]{3}-[0-9]{3}[ -][0-9]{2}")
_SSN = re.compile(r"(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}")
_NINO = re.compile(
    r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]"
)
_SHAPES: Final = tuple(
    re.compile(rf"(?<![\w-])(?:{each.pattern})(?![\w-])")
    for each in (_RUSSIAN_PASSPORT, _SNILS, _SSN, _NINO)
)
# The little words between a label and its number, in the five languages.
_FILLER: Final = (
    r"(?:[\s:.#№\"'(]|(?:no|nr|num|number|numer|numerem|numeru|numărul|număr|numar|nomer"
    r"|номер|номером|номера|số|mã|id|is|was|to|este|e|là|это|series|seria|serii|серия"
    r"|серии|của|my|our|tôi|mój|moje|meu|mea|мой|моего|моей)(?!\w)){0,12}+"
)
_IDENTITY = re.compile(
    r"(?<!\w)(?:passports?|paszport\w*|dow[oó]d\w*(?: osobist\w+)?|pașaport\w*|pasaport\w*"
    r"|carte\w* de identitate|buletin\w*|c\.?i\.? seria|паспорт\w*|hộ chiếu|"
    r"(?:national |personal )?(?:id|identity)(?: card| document)?|pesel\w*|cnp|инн|снилс"
    r"|cccd|cmnd|căn cước(?: công dân)?|chứng minh(?: nhân dân| thư)?)"
    rf"{_FILLER}"
    r"(?P<number>[A-Za-z]{0,3}[ \u00a0-]?(?:nr\.? ?|№ ?)?[0-9][0-9 \u00a0-]{4,16}[0-9])(?!\w)",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?<!\w)(?:orders?|bookings?|reservations?|parcels?|tracking|shipments?|invoices?"
    r"|tickets?|customers?|clients?|zam[oó]wieni\w+|przesy[lł]\w+|pacz\w+|faktur\w+"
    r"|zg[lł]oszeni\w+|rezerwacj\w+|klient\w*|comand\w+|colet\w*|factur\w+|rezerv\w+"
    r"|awb|заказ\w*|посылк\w+|накладн\w+|заявк\w+|брон\w+|трек(?:-номер\w*)?|клиент\w*"
    r"|đơn(?: hàng| đặt hàng| đặt phòng)?|vận đơn|hóa đơn|hoá đơn|khách hàng|bưu kiện)"
    rf"{_FILLER}"
    r"(?P<number>[A-Za-z]{0,5}[-/]?[0-9][A-Za-z0-9]*(?:[-/][A-Za-z0-9]+)*)(?!\w)",
    re.IGNORECASE,
)
_LEAST_ORDER: Final = 4
# A year alone, or behind a number: `5/2019` is the order of a minister.
_YEAR = re.compile(r"(?:^|[-/])(?:19|20)[0-9]{2}$")


@dataclass(frozen=True, slots=True)
class Mark:
    """A detail that may be personal: `text` is what stands at `start` to `end`.

    `kind` is one of those in WHY, `why` says so in words. `place` is the name of the text
    where several were looked at.
    """

    kind: str
    start: int
    end: int
    text: str
    why: str
    place: str = ""


# A kind and where it stands.
Found = tuple[str, int, int]


def marks_in(text: str) -> tuple[Mark, ...]:
    """Return the marks of a text, in order and without overlap.

    Raises ScrubbingError where it takes too long.
    """
    plain = with_plain_digits(text)
    readings: tuple[Callable[[str], Iterator[Found]], ...] = (
        _emails,
        _surer_bank_details,
        _international_phones,
        _identities,
        _orders,
        _phones,
        _accounts,
        _names,
    )
    taken: list[Found] = []
    for reading in readings:
        for found in list(reading(plain)):
            if all(found[2] <= start or end <= found[1] for _, start, end in taken):
                taken.append(found)
    return tuple(
        Mark(kind, start, end, text[start:end], WHY[kind])
        for kind, start, end in sorted(taken, key=lambda each: each[1])
    )


def check_answer(
    texts: Mapping[str, str], kept: Sequence[str] = ()
) -> tuple[Mark, ...]:
    """Return the marks that are still to be removed, or to be kept on purpose.

    `texts` are what is to be published, by the names of their places. `kept` are the
    texts of marks that a person has looked at and keeps; nothing is left where all are.
    """
    allowed = {_folded(each) for each in kept}
    return tuple(
        replace(mark, place=place)
        for place, text in texts.items()
        for mark in marks_in(text)
        if _folded(mark.text) not in allowed
    )


def is_kept(text: str, kept: Sequence[str]) -> bool:
    """Tell whether a mark's text is among those that a person keeps on purpose."""
    return _folded(text) in {_folded(each) for each in kept}


def quoted_marks(marks: Sequence[Mark], *, hides_bank_details: bool = False) -> str:
    """Return the texts of marks in quotation marks, each once where it is repeated.

    What is kept until it can be said hides bank details: away from the words around
    it, an account number is one that no scrubbing would know.
    """
    hidden = _HIDDEN if hides_bank_details else {}
    texts = (hidden.get(mark.kind, mark.text) for mark in marks)
    return ", ".join(f"“{text}”" for text, _ in groupby(texts))


def _folded(text: str) -> str:
    """Return a text as marks are compared by it."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _emails(text: str) -> Iterator[Found]:
    """Yield the addresses of e-mail."""
    for found in _EMAIL.finditer(text):
        yield "email", found.start(), found.end()


def _surer_bank_details(text: str) -> Iterator[Found]:
    """Yield the bank details that are surely that, by checksum, form or word."""
    for detail in bank_details(text):
        if detail.mark != ACCOUNT:
            yield _BANK[detail.mark], detail.start, detail.end


def _accounts(text: str) -> Iterator[Found]:
    """Yield the account numbers."""
    for detail in bank_details(text):
        if detail.mark == ACCOUNT:
            yield "account", detail.start, detail.end


def _identities(text: str) -> Iterator[Found]:
    """Yield the numbers of people and of their documents."""
    for found in _IDENTITY.finditer(text):
        yield "identity", found.start("number"), found.end("number")
    for shape in _SHAPES:
        for found in shape.finditer(text):
            yield "identity", found.start(), found.end()
    for found in _DIGITS.finditer(text):
        digits = re.sub(r"[^0-9]", "", found[0])
        if _is_person(digits):
            yield "identity", found.start(), found.end()


def _is_person(digits: str) -> bool:
    """Tell whether digits are a person's number: PESEL, CNP, INN, CCCD."""
    match len(digits):
        case 11:
            return pesel.is_valid(digits)
        case 12:
            return bool(_VIETNAMESE.fullmatch(digits)) or inn.is_valid(digits)
        case 13:
            return cnp.is_valid(digits)
    return False


def _orders(text: str) -> Iterator[Found]:
    """Yield the numbers of orders, parcels, bills and customers, by their labels."""
    for found in _ORDER.finditer(text):
        number = found["number"]
        digits = sum(each.isdigit() for each in _YEAR.sub("", number))
        if digits >= _LEAST_ORDER and not is_amount(
            text, found.start("number"), found.end("number")
        ):
            yield "order", found.start("number"), found.end("number")


def _international_phones(text: str) -> Iterator[Found]:
    """Yield the phone numbers with a country's code."""
    for found in _phones(text, _REGIONS[:1]):
        if text[found[1]] == "+":
            yield found


def _phones(text: str, regions: Sequence[str] = _REGIONS) -> Iterator[Found]:
    """Yield the phone numbers that are a person's, in any of some regions."""
    seen = {
        (found.start, found.end)
        for region in regions
        for found in PhoneNumberMatcher(text, region, Leniency.VALID)
        if phonenumbers.number_type(found.number) not in _PUBLIC
        and sum(map(str.isdigit, found.raw_string)) >= _LEAST_PHONE
        and text[found.start - 1 : found.start] not in {"/", "#"}
        and not is_amount(text, found.start, found.end)
    }
    # One region may read a part of what is a whole number in another.
    for place in sorted(seen, key=lambda each: (each[0] - each[1], each[0])):
        yield "phone", *place


def _names(text: str) -> Iterator[Found]:
    """Yield the names of people."""
    for start, end in placed_names(text):
        yield "name", start, end
