"""Bank details out of what people typed, before it is kept (S1-PRV-01, R16). Pure.

IBANs by their country's length and checksum, BICs, card numbers by their check digit,
and account numbers are replaced by a mark that says what stood there. Codes (`QT-07`,
`AC04`, `pacs.008`), clause numbers, dates and amounts stay as they are.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

IBAN: Final = "[IBAN]"
BIC: Final = "[BIC]"
CARD: Final = "[card number]"
ACCOUNT: Final = "[account number]"

# Characters of an IBAN by country, from the registry of the standard (ISO 13616).
IBAN_LENGTHS: Final = {
    country: int(length)
    for length, countries in (
        ("15", "NO"),
        ("16", "BE"),
        ("18", "DK FI FK FO GL NL SD"),
        ("19", "MK SI"),
        ("20", "AT BA EE KZ LT LU MN XK"),
        ("21", "CH HR LI LV"),
        ("22", "BG BH CR DE GB GE IE ME RS VA"),
        ("23", "AE GI IL IQ OM SO TL"),
        ("24", "AD CZ ES MD PK RO SA SE SK TN VG"),
        ("25", "LY PT ST"),
        ("26", "IS TR"),
        ("27", "BI DJ FR GR IT MC MR SM"),
        ("28", "AL AZ BY CY DO GT HU LB NI PL SV"),
        ("29", "BR EG PS QA UA"),
        ("30", "JO KW MU YE"),
        ("31", "MT SC"),
        ("32", "LC"),
        ("33", "RU"),
    )
    for country in countries.split()
}
# The countries of the world as the standard names them (ISO 3166-1), and Kosovo.
COUNTRIES: Final = frozenset(
    [
        "AD",
        "AE",
        "AF",
        "AG",
        "AI",
        "AL",
        "AM",
        "AO",
        "AQ",
        "AR",
        "AS",
        "AT",
        "AU",
        "AW",
        "AX",
        "AZ",
        "BA",
        "BB",
        "BD",
        "BE",
        "BF",
        "BG",
        "BH",
        "BI",
        "BJ",
        "BL",
        "BM",
        "BN",
        "BO",
        "BQ",
        "BR",
        "BS",
        "BT",
        "BV",
        "BW",
        "BY",
        "BZ",
        "CA",
        "CC",
        "CD",
        "CF",
        "CG",
        "CH",
        "CI",
        "CK",
        "CL",
        "CM",
        "CN",
        "CO",
        "CR",
        "CU",
        "CV",
        "CW",
        "CX",
        "CY",
        "CZ",
        "DE",
        "DJ",
        "DK",
        "DM",
        "DO",
        "DZ",
        "EC",
        "EE",
        "EG",
        "EH",
        "ER",
        "ES",
        "ET",
        "FI",
        "FJ",
        "FK",
        "FM",
        "FO",
        "FR",
        "GA",
        "GB",
        "GD",
        "GE",
        "GF",
        "GG",
        "GH",
        "GI",
        "GL",
        "GM",
        "GN",
        "GP",
        "GQ",
        "GR",
        "GS",
        "GT",
        "GU",
        "GW",
        "GY",
        "HK",
        "HM",
        "HN",
        "HR",
        "HT",
        "HU",
        "ID",
        "IE",
        "IL",
        "IM",
        "IN",
        "IO",
        "IQ",
        "IR",
        "IS",
        "IT",
        "JE",
        "JM",
        "JO",
        "JP",
        "KE",
        "KG",
        "KH",
        "KI",
        "KM",
        "KN",
        "KP",
        "KR",
        "KW",
        "KY",
        "KZ",
        "LA",
        "LB",
        "LC",
        "LI",
        "LK",
        "LR",
        "LS",
        "LT",
        "LU",
        "LV",
        "LY",
        "MA",
        "MC",
        "MD",
        "ME",
        "MF",
        "MG",
        "MH",
        "MK",
        "ML",
        "MM",
        "MN",
        "MO",
        "MP",
        "MQ",
        "MR",
        "MS",
        "MT",
        "MU",
        "MV",
        "MW",
        "MX",
        "MY",
        "MZ",
        "NA",
        "NC",
        "NE",
        "NF",
        "NG",
        "NI",
        "NL",
        "NO",
        "NP",
        "NR",
        "NU",
        "NZ",
        "OM",
        "PA",
        "PE",
        "PF",
        "PG",
        "PH",
        "PK",
        "PL",
        "PM",
        "PN",
        "PR",
        "PS",
        "PT",
        "PW",
        "PY",
        "QA",
        "RE",
        "RO",
        "RS",
        "RU",
        "RW",
        "SA",
        "SB",
        "SC",
        "SD",
        "SE",
        "SG",
        "SH",
        "SI",
        "SJ",
        "SK",
        "SL",
        "SM",
        "SN",
        "SO",
        "SR",
        "SS",
        "ST",
        "SV",
        "SX",
        "SY",
        "SZ",
        "TC",
        "TD",
        "TF",
        "TG",
        "TH",
        "TJ",
        "TK",
        "TL",
        "TM",
        "TN",
        "TO",
        "TR",
        "TT",
        "TV",
        "TW",
        "TZ",
        "UA",
        "UG",
        "UM",
        "US",
        "UY",
        "UZ",
        "VA",
        "VC",
        "VE",
        "VG",
        "VI",
        "VN",
        "VU",
        "WF",
        "WS",
        "XK",
        "YE",
        "YT",
        "ZA",
        "ZM",
        "ZW",
    ]
)

_GAP: Final = "[ \u00a0\u2009\u202f-]"
_IBAN_START = re.compile(rf"(?<![^\W_])[A-Za-z]{{2}}{_GAP}?[0-9]{{2}}")
_NEXT = re.compile(rf"{_GAP}?([A-Za-z0-9])")
_BIC = re.compile(r"(?<![^\W_])[A-Z]{4}([A-Z]{2})[A-Z0-9]{2}(?:[A-Z0-9]{3})?(?![^\W_])")
_DIGITS = re.compile(
    rf"(?<![^\W_])(?<![0-9][.,:/])[0-9]+(?:{_GAP}[0-9]+)*(?![^\W_])(?![.,:/][0-9])"
)
_GAPS = re.compile(_GAP)
# Words that make a number an account's and a word in capitals a bank's, in the five
# languages.
_BANKING = re.compile(
    r"(?<![^\W_])(?:account|acct|a/c|iban|bic|swift|bank|banc|konto|kont[aoue]|rachun"
    r"|cont(?:ul|uri|urile|ului)?(?![^\W_])|tài khoản|số tk|stk(?![^\W_])|ngân hàng"
    r"|сч[её]т|р/с|банк)",
    re.IGNORECASE,
)
_MONEY = re.compile(
    r"\s?(?:[€$£₫₽%]|(?:EUR|USD|GBP|CHF|VND|PLN|RON|RUB|euros?|dollars?|đ|đồng|zł\w*|lei"
    r"|руб\w*|млн|million|triệu)(?![^\W_]))",
    re.IGNORECASE,
)
_SIGNS: Final = ("€", "$", "£", "₫", "₽")
# Digits of an account number: beside a word of banking, written in one, in groups.
_NAMED, _WHOLE, _GROUPED = 6, 9, 14
_MOST_DIGITS: Final = 34
# How far before a number the word may stand (characters).
_NEAR: Final = 40


def scrub(text: str) -> str:
    """Return the text with a mark in the place of each bank detail."""
    is_about_banking = _BANKING.search(text) is not None
    text = _without_ibans(text)
    is_about_banking = is_about_banking or IBAN in text
    text = _BIC.sub(lambda found: _bic(found, named=is_about_banking), text)
    return _DIGITS.sub(_number, text)


def _without_ibans(text: str) -> str:
    """Return the text with its IBANs marked."""
    kept, after = [], 0
    for start in _IBAN_START.finditer(text):
        if start.start() < after:
            continue
        end = _iban_end(text, start.start())
        if end:
            kept += [text[after : start.start()], IBAN]
            after = end
    return "".join([*kept, text[after:]])


def _iban_end(text: str, start: int) -> int:
    """Return where the IBAN that begins at `start` ends, or 0 where none does."""
    length = IBAN_LENGTHS.get(text[start : start + 2].upper(), 0)
    read, place = "", start
    while len(read) < length:
        found = _NEXT.match(text, place)
        if found is None:
            return 0
        read += found[1].upper()
        place = found.end()
    is_whole = bool(length) and not text[place : place + 1].isalnum()
    return place if is_whole and _is_checked(read) else 0


def _is_checked(iban: str) -> bool:
    """Tell whether an IBAN's two check digits are right (ISO 7064, mod 97-10)."""
    turned = iban[4:] + iban[:4]
    return int("".join(str(int(each, 36)) for each in turned)) % 97 == 1


def _bic(found: re.Match[str], *, named: bool) -> str:
    """Return the mark of a BIC, or the word itself.

    A word in capitals has its form too (`DOCUMENT`); one without a digit counts where
    the text speaks of banking, or where it ends as the head offices' do.
    """
    written = found[0]
    is_sure = not written.isalpha() or (len(written) == 11 and written[8:] == "XXX")
    return BIC if found[1] in COUNTRIES and (is_sure or named) else written


def _number(found: re.Match[str]) -> str:
    """Return the mark of a card or account number, or what else the digits are."""
    written = found[0]
    groups = _GAPS.split(written)
    digits = "".join(groups)
    if len(digits) > _MOST_DIGITS or _is_date(digits) or _is_book(digits):
        return written
    before = found.string[max(0, found.start() - _NEAR) : found.start()]
    if _MONEY.match(found.string, found.end()) or before.rstrip().endswith(_SIGNS):
        return written
    if _is_card(digits):
        return CARD
    if len(groups) > 1 and all(len(group) == 3 for group in groups[1:]):
        # 1 000 000 is a quantity.
        return written
    if _BANKING.search(before) and not _is_written_date(groups):
        least = _NAMED
    else:
        least = _WHOLE if len(groups) == 1 else _GROUPED
    return ACCOUNT if len(digits) >= least else written


def _is_card(digits: str) -> bool:
    """Tell whether 13 to 19 digits end in a payment card's check digit (Luhn)."""
    if not 13 <= len(digits) <= 19 or digits[0] not in "23456":
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_book(digits: str) -> bool:
    """Tell whether the digits are a book's number (ISBN)."""
    if len(digits) != 13 or digits[:3] not in {"978", "979"}:
        return False
    return (
        sum(int(each) * (1, 3)[place % 2] for place, each in enumerate(digits)) % (10)
        == 0
    )


def _is_date(digits: str) -> bool:
    """Tell whether digits are a day, or a moment, such as 20260531 or 20260531142500."""
    if len(digits) not in {8, 12, 14}:
        return False
    return _is_day(digits[:4], digits[4:6], digits[6:8]) or (
        len(digits) == 8 and _is_day(digits[4:], digits[2:4], digits[:2])
    )


def _is_written_date(groups: list[str]) -> bool:
    """Tell whether groups of digits are a day: 2026-05-31, 31-05-2026."""
    return len(groups) == 3 and (_is_day(*groups) or _is_day(*groups[::-1]))


def _is_day(year: str, month: str, day: str) -> bool:
    """Tell whether there is such a day, in the years that people write of."""
    if len(year) != 4 or not 1900 <= int(year) < 2200:
        return False
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True
