"""Bank details out of what people typed, before it is kept (S1-PRV-01, R16). Pure.

IBANs by their country's form and checksum, BICs, card numbers by their check digit, and
account numbers are replaced by a mark that says what stood there, however they are
written: in groups, over lines, in addresses, in full-width letters. An IBAN with a slip
in it is as private as a right one. Codes (`QT-07`, `AC04`, `pacs.008`), clause numbers,
dates and amounts stay as they are.

A text that cannot be scrubbed, or not in its time, is dropped rather than kept raw.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from stdnum import bic, ean, luhn, numdb
from stdnum.iso7064 import mod_97_10

IBAN: Final = "[IBAN]"
BIC: Final = "[BIC]"
CARD: Final = "[card number]"
ACCOUNT: Final = "[account number]"
DROPPED: Final = "[text not kept: it could not be scrubbed]"

# How long scrubbing may compute (s), and for how many characters.
PATIENCE: Final = 0.05
PATIENCE_CHARACTERS: Final = 10_000


class ScrubbingError(Exception):
    """A text took too long to scrub."""


@dataclass(frozen=True, slots=True)
class Detail:
    """A bank detail in a text: the mark that says what it is, and its span."""

    mark: str
    start: int
    end: int


class _Plain(dict[int, int]):
    """Turns digits of all scripts and full-width letters into ASCII, one for one."""

    def __missing__(self, code: int) -> int:
        digit = unicodedata.decimal(chr(code), None)
        if digit is not None:
            plain = ord(str(digit))
        elif 0xFF21 <= code <= 0xFF5A:
            plain = code - 0xFEE0
        else:
            plain = code
        self[code] = plain
        return plain


_PLAIN = _Plain()


def _shape(country: str) -> str:
    """Return what an IBAN holds behind its check digits: n, a or c for each sign."""
    ((_, facts), *_rest) = numdb.get("iban").info(country)
    return "".join(
        kind * int(count) for count, kind in re.findall(r"(\d+)!([nac])", facts["bban"])
    )


# By country, from the registry of the standard (ISO 13616) that python-stdnum carries.
_SHAPES: Final = {
    country: shape
    for country in (
        first + second
        for first in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        for second in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    )
    if numdb.get("iban").info(country)[0][1] and (shape := _shape(country))
}
# Characters of an IBAN by country.
IBAN_LENGTHS: Final = {country: 4 + len(shape) for country, shape in _SHAPES.items()}

# What may stand between two signs of an IBAN: signs that are written for a space in
# addresses, in HTML and in JSON, and a few of any others. Behind a line's end also what
# a quoting mail puts there.
_GAP: Final = (
    r"(?>%[0-9a-fA-F]{2}|&(?:[a-z]{2,8}|#[0-9]{2,4});|\\u[0-9a-fA-F]{4}|\\x[0-9a-f]{2}"
    r"|\\[nrt]"
    r"|[ \t\r]{0,8}+\n[ \t>|]{0,12}+|[\W_]){0,6}+"
)
_IBAN_START = re.compile(rf"[A-Za-z]{{2}}{_GAP}[0-9]{_GAP}[0-9]")
_NEXT = re.compile(rf"{_GAP}([A-Za-z0-9])")
_IS: Final = {"n": str.isdigit, "a": str.isalpha, "c": str.isalnum}
# Characters of an IBAN that lacks some, and how many of them are digits; of a whole one.
_LEAST_READ, _LEAST_DIGITS, _FEWEST_DIGITS = 15, 10, 6

_WORD_LIKE_BIC = re.compile(
    r"(?<![^\W_])[A-Za-z]{6}[A-Za-z0-9]{2}(?:[A-Za-z0-9]{3})?(?![^\W_])"
)
_NAMED_BIC = re.compile(
    # Bounded, and nothing is given back: from each of many such words no more is read
    # than this, whatever follows.
    r"(?<![^\W_])(?:bic|swift)(?:[\s/-]{0,8}+(?:bic|swift|codul|code|cod|kod|код|mã|"
    r"number|numer|număr)){0,4}+(?:\s{0,40}+(?:[:=]|%3a)"
    r"|\s{1,40}+(?:is|to|este|e|là|это)\s)\s{0,40}+[\"']?"
    r"([a-z]{6}[a-z0-9]{2}(?:[a-z0-9]{3})?)(?![^\W_])",
    re.IGNORECASE,
)
_BIC_WORD = re.compile(r"(?<![^\W_])(?:bic|swift)(?![^\W_])", re.IGNORECASE)
# Words that have the form of a BIC and are written in capitals in a bank's papers.
_ORDINARY: Final = frozenset(
    re.findall(
        r"\w+",
        "ABSOLUTE ACTIVITY AGENCIES APPROVED ARTICLES ATTACHED BENEFITS BRANCHES BUSINESS "
        "CONSUMER CONTRACT CRITERIA CUSTOMER DECISION DECLARED DELIVERY DISTINCT DOCUMENT "
        "DOMESTIC ECONOMIC EUROPEAN FEBRUARY HANDBOOK IDENTITY INTEREST INTERNET KWIETNIA "
        "LANGUAGE MANAGERS MERCHANT MESSAGES MINISTER NOTIFIED OFFICIAL OPERATOR ORIGINAL "
        "OVERVIEW PACKAGES PASSAGES PLATFORM POLICIES POLSKIEJ PORTIONS PROPERTY PROVIDED "
        "PROVIDER PURSUANT RECOVERY REGISTER RELEVANT REQUESTS REQUIRED REQUIRES RESEARCH "
        "RESOLVED REVISION SECTIONS SETTINGS SIERPNIA SUBJECTS TERMINAL THURSDAY TOGETHER "
        "TRANSFER VERIFIED VERSIONS WARNINGS WARRANTY "
        "ASSOCIATION COMPETITION COMPLICATED COOPERATION DECLARATION DEFINITIONS DESTINATION "
        "ESTABLISHED EXAMINATION FUNDAMENTAL INDEPENDENT INDIVIDUALS INSTRUCTION LEGISLATION "
        "LEGISLATIVE OBLIGATIONS ORGANIZACJI PERMISSIONS PROCEEDINGS RECOMMENDED REGULATIONS "
        "REQUIREMENT TERMINATION TRANSACTION TRANSLATION",
    )
)
# A bank's word right before one in capitals, itself in small letters.
_BANK_BEFORE = re.compile(
    r"(?<![^\W_])(?:[Bb]an[kc]|[Nn]gân hàng|[Бб]анк)[a-zăâîșțаеиоуы]{0,4}[ :,\u00a0\"'(]{1,3}$"
)
_SHOUTED_AFTER = re.compile(r"[\W_]+[^\W\d_a-z]{3,}(?![^\W\d_])")
_DIGIT_GAP: Final = r"(?:%20|%C2%A0|%2D|&nbsp;|\\u00a0|[+ \t\u00a0\u2000-\u200d\u202f\u2060\u3000_\u2010-\u2015-])"
_DIGITS = re.compile(
    rf"(?<![^\W_])(?<![0-9][.,:/])[0-9]+(?:{_DIGIT_GAP}[0-9]+)*(?![^\W_])(?![.,:/][0-9])",
    re.IGNORECASE,
)
# As some banks write account numbers; of account numbers alone.
_DOTTED = re.compile(
    r"(?<![^\W_])(?<![0-9][.,:/])[0-9]{2,}(?:[./][0-9]{2,})+(?![^\W_])(?![.,:/][0-9])"
)
_GAPS = re.compile(_DIGIT_GAP, re.IGNORECASE)
# Words that make a number an account's and a word in capitals a bank's, in the five
# languages and in German.
_BANKING = re.compile(
    r"(?<![^\W_])(?:account|acct?(?![^\W_])|a/c|iban|bic|swift|bank|banc|konto|kont[aoue]"
    r"|rachun|nrb(?![^\W_])|sort code"
    r"|cont(?:ul|uri|urile|ului|urilor)?(?![^\W_])|tài khoản|số tk|stk(?![^\W_])|ngân hàng"
    r"|сч[её]т|р/с|банк)",
    re.IGNORECASE,
)
# Those of an account alone, which may also follow the number.
_ACCOUNT = re.compile(
    r"(?<![^\W_])(?:account|acct|iban|konto|kont[aoue]|rachun|cont(?:ul|ului)?(?![^\W_])"
    r"|tài khoản|số tk|stk(?![^\W_])|сч[её]т|р/с)",
    re.IGNORECASE,
)
_MONEY = re.compile(
    r"\s?(?:[€$£₫₽%]|(?:EUR|USD|GBP|CHF|VND|PLN|RON|RUB|euros?|dollars?|đ|đồng|zł\w*|lei"
    r"|руб\w*|млн|million|triệu)(?![^\W_]))",
    re.IGNORECASE,
)
_SIGNS: Final = ("€", "$", "£", "₫", "₽")
# Digits of an account number: beside a word of banking, written in one, in groups.
_NAMED, _NAMED_AFTER, _DOTTED_DIGITS, _WHOLE, _GROUPED = 6, 8, 8, 9, 14
_MOST_DIGITS: Final = 34
# Stands where a detail was already read.
_TAKEN: Final = "\x01"
_MARK = re.compile("|".join(re.escape(mark) for mark in (IBAN, BIC, CARD, ACCOUNT)))
_LONGEST_ADDRESS: Final = 300
# How far before a number the word may stand, and how far after (characters).
_NEAR, _AFTER = 40, 25


def scrub(text: str) -> str:
    """Return the text with a mark in the place of each bank detail.

    DROPPED where that takes too long, or fails: it is never returned as it came.
    """
    try:
        details = bank_details(text)
    except Exception:  # noqa: BLE001 - whatever it is, the raw text is not kept
        return DROPPED
    return replaced(text, details, lambda detail: detail.mark)


def bank_details(text: str) -> tuple[Detail, ...]:
    """Return the bank details in a text, in their order.

    Raises ScrubbingError where that takes longer than 50 ms for 10,000 characters.
    """
    until = time.thread_time() + PATIENCE * (1 + len(text) // PATIENCE_CHARACTERS)
    plain = _MARK.sub(_blanked, with_plain_digits(text))
    found: list[Detail] = []
    for reading in (_ibans, _bics, _dotted, _numbers):
        details = []
        for detail in reading(plain):
            details.append(detail)
            refuse_late(until)
        # Also where it looked for long and found nothing.
        refuse_late(until)
        # What is read is not read again as something else; the places stay.
        plain = replaced(plain, details, lambda each: _TAKEN * (each.end - each.start))
        found += details
    return tuple(sorted(found, key=lambda detail: detail.start))


def refuse_late(until: float) -> None:
    """Raise ScrubbingError where this thread has computed longer than it may."""
    if time.thread_time() > until:
        raise ScrubbingError


def with_plain_digits(text: str) -> str:
    """Return the text with digits and full-width letters in ASCII, places unchanged."""
    return text.translate(_PLAIN)


def is_amount(text: str, start: int, end: int) -> bool:
    """Tell whether the number at a place is an amount of money, or a share."""
    before = text[max(0, start - 2) : start].rstrip()
    return _MONEY.match(text, end) is not None or before.endswith(_SIGNS)


def replaced(text: str, details: Iterable[Detail], by: Callable[[Detail], str]) -> str:
    """Return the text with something in the place of each detail, given in order."""
    kept, after = [], 0
    for detail in details:
        kept += [text[after : detail.start], by(detail)]
        after = detail.end
    return "".join([*kept, text[after:]])


def _blanked(found: re.Match[str]) -> str:
    """Return as much of what stands for a detail already."""
    return _TAKEN * len(found[0])


def _ibans(text: str) -> Iterator[Detail]:
    """Yield the IBANs, right ones and those with a slip."""
    after = 0
    for start in _IBAN_START.finditer(text):
        if start.start() >= after:
            after = _iban_end(text, start.start())
            if after:
                yield Detail(IBAN, start.start(), after)


def _iban_end(text: str, start: int) -> int:
    """Return where the IBAN that begins at `start` ends, or 0 where none does."""
    shape = _SHAPES.get(text[start : start + 2].upper(), "")
    read, place = "", start
    for kind in f"aann{shape}" if shape else "":
        found = _NEXT.match(text, place)
        if found is None or not _IS[kind](found[1]):
            break
        read += found[1].upper()
        place = found.end()
    is_whole = bool(shape) and len(read) == 4 + len(shape)
    # Within a word, an IBAN is one only in one piece.
    is_joined = text[start - 1 : start].isalnum() and not text[start:place].isalnum()
    if is_whole and not is_joined and mod_97_10.is_valid(read[4:] + read[:4]):
        return _end_of_digits(text, place)
    least = _FEWEST_DIGITS if is_whole else _LEAST_DIGITS
    if len(read) < _LEAST_READ or sum(map(str.isdigit, read)) < least:
        return 0
    # One with a slip: a sign too few, too many or another, and written as IBANs are.
    place = _end_of_digits(text, place)
    is_alone = not (
        text[start - 1 : start].isalnum() or text[place : place + 1].isalnum()
    )
    groups = _GAPS.split(text[start:place])
    is_grouped = all(len(group) == 4 for group in groups[:-1])
    return place if is_alone and is_grouped else 0


def _end_of_digits(text: str, place: int) -> int:
    """Return where the digits end that go on at a place."""
    while text[place : place + 1].isdigit():
        place += 1
    return place


def _bics(text: str) -> Iterator[Detail]:
    """Yield the BICs.

    A word in capitals has their form too (`DOCUMENT`). One without a digit counts where
    it ends as the head offices' do, near the words BIC or SWIFT, beside an IBAN, and
    alone in capitals right behind the word bank.
    """
    named = {
        found.start(1)
        for found in _NAMED_BIC.finditer(text)
        if bic.is_valid(found[1].upper())
    }
    for found in _WORD_LIKE_BIC.finditer(text):
        written = found[0]
        if found.start() in named or (
            written.isupper()
            and bic.is_valid(written)
            and (
                not written.isalpha()
                or (len(written) == 11 and written.endswith("XXX"))
                or (written not in _ORDINARY and _speaks_of_bank(text, found))
            )
        ):
            yield Detail(BIC, found.start(), found.end())


def _speaks_of_bank(text: str, found: re.Match[str]) -> bool:
    """Tell whether what stands around a word in capitals makes it a bank's."""
    before = text[max(0, found.start() - _NEAR) : found.start()]
    after = text[found.end() : found.end() + _NEAR]
    if _BIC_WORD.search(before) or _BIC_WORD.search(after):
        return True
    # Beside an IBAN, which is read already.
    if _TAKEN in before or _TAKEN in after:
        return True
    return bool(_BANK_BEFORE.search(before) and not _SHOUTED_AFTER.match(after))


def _numbers(text: str) -> Iterator[Detail]:
    """Yield the card and account numbers."""
    for found in _DIGITS.finditer(text):
        mark = _number(found)
        if mark:
            yield Detail(mark, found.start(), found.end())


def _dotted(text: str) -> Iterator[Detail]:
    """Yield the account numbers that are written with dots or a slash."""
    for found in _DOTTED.finditer(text):
        groups = re.split(r"[./]", found[0])
        is_quantity = all(len(group) == 3 for group in groups[1:])
        if (
            len("".join(groups)) >= _DOTTED_DIGITS
            and not is_quantity
            and not _is_written_date(groups)
            and (
                _ACCOUNT.search(text[max(0, found.start() - _NEAR) : found.start()])
                or _is_followed_by_account(found)
            )
        ):
            yield Detail(ACCOUNT, found.start(), found.end())


def _number(found: re.Match[str]) -> str:
    """Return the mark of a card or account number, or "" for what else digits are."""
    groups = _GAPS.split(found[0])
    digits = "".join(groups)
    if len(digits) > _MOST_DIGITS or _is_date(digits) or _is_book(digits):
        return ""
    before = found.string[max(0, found.start() - _NEAR) : found.start()]
    if is_amount(found.string, *found.span()):
        return ""
    if 13 <= len(digits) <= 19 and digits[0] in "23456" and luhn.is_valid(digits):
        return CARD
    if len(groups) > 1 and all(len(group) == 3 for group in groups[1:]):
        # 1 000 000 is a quantity.
        return ""
    return ACCOUNT if len(digits) >= _least_digits(found, groups, before) else ""


def _least_digits(found: re.Match[str], groups: list[str], before: str) -> int:
    """Return how many digits make an account number of digits where they stand."""
    if _is_written_date(groups):
        return _GROUPED
    if _BANKING.search(before):
        return _NAMED
    if _is_followed_by_account(found):
        return _NAMED_AFTER
    if _in_address(found):
        return _MOST_DIGITS + 1
    return _WHOLE if len(groups) == 1 else _GROUPED


def _in_address(found: re.Match[str]) -> bool:
    """Tell whether a number stands in an address of the web: pages have numbers too."""
    before = found.string[max(0, found.start() - _LONGEST_ADDRESS) : found.start()]
    return "://" in re.split(r"[\s<>\"']", before)[-1]


def _is_followed_by_account(found: re.Match[str]) -> bool:
    """Tell whether the sentence goes on to say that the number is an account's."""
    after = found.string[found.end() : found.end() + _AFTER]
    return _ACCOUNT.search(re.split(r"[.;!?\n]", after, maxsplit=1)[0]) is not None


def _is_book(digits: str) -> bool:
    """Tell whether the digits are a book's number (ISBN)."""
    return digits[:3] in {"978", "979"} and len(digits) == 13 and ean.is_valid(digits)


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
