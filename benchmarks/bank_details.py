"""Bank details of all kinds in sentences of five languages, for what scrubs them.

All are made here: IBANs of every country with right check digits, in every way in which
people and programs write them, and with slips; BICs, account and card numbers.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from string import ascii_uppercase, digits
from typing import Final
from urllib.parse import quote

from stdnum import iban, luhn, numdb

from knowledge.scrubbing import IBAN_LENGTHS, with_plain_digits

SENTENCES: Final = (
    "Please send it to {} before noon.",
    "My number is {} and nothing has come.",
    "Proszę o przelew na {} do piątku.",
    "Nie mogę zapłacić na {}, co robić?",
    "Vă rog să plătiți în {} până mâine.",
    "De ce nu pot trimite bani în {} ?",
    "Переведите деньги на {} до пятницы.",
    "Почему не проходит платёж на {}?",
    "Xin chuyển tiền vào {} trước thứ sáu.",
    "Tại sao tôi không chuyển được vào {}?",
)
# Sentences that speak of an account, as somebody who writes its number does.
ACCOUNTS: Final = (
    "Why is my account {} blocked?",
    "The account number is {}.",
    "acct no. {}, please check",
    "{} is my account with you",
    "Dlaczego moje konto {} jest zablokowane?",
    "Numer rachunku: {}.",
    "Wpłata na rachunek nr {} nie doszła",
    "De ce este blocat contul {}?",
    "Numărul contului meu este {}.",
    "Почему заблокирован счёт {}?",
    "Номер счета № {}, помогите",
    "р/с {} в вашем банке",
    "Tại sao tài khoản {} bị khóa?",
    "Số tài khoản của tôi là {}.",
    "STK: {} tại ngân hàng",
    "Mein Konto {} ist gesperrt.",
)
BICS: Final = (
    "The BIC is {}.",
    "SWIFT: {}",
    "Send it to the bank {} today",
    "swift code {} of the branch",
    "Kod BIC banku to {}, proszę",
    "Bank {} nie odpowiada",
    "Codul SWIFT este {}.",
    "Banca {} a respins plata",
    "БИК SWIFT {} нашего банка",
    "Код SWIFT: {}",
    "Mã SWIFT của ngân hàng là {}",
    "ngân hàng {} từ chối",
)
CARDS: Final = (
    "My card {} is lost",
    "karta {}",
    "cardul {}",
    "карта {}",
    "thẻ {} bị mất",
)

_FULL_WIDTH: Final = {
    ord(each): ord(each) + 0xFEE0 for each in ascii_uppercase + digits
}


def grouped(number: str, gap: str) -> str:
    """Return a number in groups of four."""
    return gap.join(number[at : at + 4] for at in range(0, len(number), 4))


# How an IBAN is written.
FORMS: Final[dict[str, Callable[[str], str]]] = {
    "plain": str,
    "grouped": lambda number: grouped(number, " "),
    "no-break space": lambda number: grouped(number, "\u00a0"),
    "thin space": lambda number: grouped(number, "\u2009"),
    "dash": lambda number: grouped(number, "-"),
    "dot": lambda number: grouped(number, "."),
    "full width": lambda number: number.translate(_FULL_WIDTH),
    "lower case": str.lower,
    "lower case, grouped": lambda number: grouped(number.lower(), " "),
    "over lines": lambda number: f"{number[:12]}\n{number[12:]}",
    "over quoted lines": lambda number: (
        grouped(number, " ")[:14] + "\n> " + grouped(number, " ")[14:].strip()
    ),
    "in an address": lambda number: f"https://pay.example/to?iban={number}&sum=5",
    "in an address, encoded": lambda number: (
        "https://pay.example/to?iban=" + quote(grouped(number, " "), safe="")
    ),
    "in an address, with plus": lambda number: (
        "https://pay.example/?to=" + grouped(number, "+")
    ),
    "in a path": lambda number: f"https://pay.example/iban/{number}/history",
    "in JSON": lambda number: json.dumps({"iban": grouped(number, "\u00a0")}),
    "before capitals": lambda number: f"{number} EUR",
    "before capitals, joined": lambda number: f"{number}EUR",
    "behind a word, joined": lambda number: f"IBAN{number}",
    "behind a colon": lambda number: f"IBAN:{number}",
    "in pieces": lambda number: (
        f"{number[:2]} {number[2:4]} {number[4:10]} {number[10:]}"
    ),
    "wrong check digits": lambda number: grouped(
        number[:2] + f"{(int(number[2:4]) + 7) % 97:02}" + number[4:], " "
    ),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line with one detail: which kind, how it is written, and the bare number."""

    kind: str
    text: str
    number: str

    def left_in(self, scrubbed: str) -> str:
        """Return the longest part of the number that can still be read, or "".

        Up to five signs in a row give nothing away.
        """
        bare = bare_signs(scrubbed)
        for size in range(len(self.number), 5, -1):
            for at in range(len(self.number) - size + 1):
                if self.number[at : at + size] in bare:
                    return self.number[at : at + size]
        return ""


def bare_signs(text: str) -> str:
    """Return the letters and digits of a text, as a number is compared with them."""
    plain = re.sub(r"%[0-9a-fA-F]{2}|\\u[0-9a-f]{4}", "", with_plain_digits(text))
    return re.sub(r"[^A-Z0-9]", "", plain.upper())


def lines_with_ibans(random: Random, count: int) -> Iterator[Line]:
    """Yield lines with IBANs, of each country and in each form in turn."""
    countries, forms = sorted(IBAN_LENGTHS), list(FORMS)
    for index in range(count):
        form = forms[index % len(forms)]
        number = an_iban(random, countries[(index // len(forms)) % len(countries)])
        sentence = SENTENCES[random.randrange(len(SENTENCES))]
        yield Line(f"IBAN, {form}", sentence.format(FORMS[form](number)), number)


def an_iban(random: Random, country: str) -> str:
    """Return an IBAN of a country with right check digits."""
    ((_, facts), *_rest) = numdb.get("iban").info(country)
    signs = {"n": digits, "a": ascii_uppercase, "c": ascii_uppercase + digits * 4}
    account = "".join(
        random.choice(signs[kind])
        for times, kind in re.findall(r"(\d+)!([nac])", facts["bban"])
        for _ in range(int(times))
    )
    return f"{country}{iban.calc_check_digits(f'{country}00{account}')}{account}"


def lines_with_others(random: Random, count: int) -> Iterator[Line]:
    """Yield lines with BICs, account numbers and card numbers, in turn."""
    for index in range(count):
        kind = ("BIC", "account", "card")[index % 3]
        if kind == "BIC":
            number = a_bic(random)
            written, sentences = number, BICS
        elif kind == "account":
            number = "".join(random.choices(digits, k=random.randint(8, 20)))
            written = written_account(random, number)
            sentences = ACCOUNTS
        else:
            number = a_card(random)
            written = grouped(number, random.choice(("", " ", "-", "\u00a0")))
            sentences = CARDS
        yield Line(kind, random.choice(sentences).format(written), number)


def a_bic(random: Random) -> str:
    """Return a BIC of 8 or 11 signs."""
    letters = "".join(random.choices(ascii_uppercase, k=4))
    country = random.choice(
        ("DE", "PL", "RO", "VN", "GB", "FR", "US", "RU", "AT", "CH")
    )
    place = "".join(random.choices(ascii_uppercase + digits, k=2))
    branch = random.choice(("", "", "XXX", "".join(random.choices(digits, k=3))))
    return f"{letters}{country}{place}{branch}"


def written_account(random: Random, number: str) -> str:
    """Return an account number as one of its forms writes it."""
    form = random.randrange(4)
    if form == 1:
        return grouped(number, " ")
    if form == 2:
        return grouped(number, "-")
    if form == 3:
        return f"{number[:4]}.{number[4:]}"
    return number


def a_card(random: Random) -> str:
    """Return a payment card's number with its check digit."""
    start = random.choice(("4", "51", "55", "2221", "34", "6011"))
    length = 15 if start == "34" else 16
    body = start + "".join(random.choices(digits, k=length - 1 - len(start)))
    return body + luhn.calc_check_digit(body)
