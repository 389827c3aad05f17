"""True drafts and mutants of them, to see what verification finds out.

Nothing here knows how verification reads a text: passages and drafts write each fact in
different forms, made by Babel, num2words and python-stdnum, and a mutant changes exactly
one thing that its passage does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from random import Random

from babel.dates import format_date
from babel.numbers import format_currency, format_decimal
from babel.units import format_unit
from num2words import num2words
from stdnum import iban

from benchmarks.prose import (
    DRAFTS,
    NEGATIONS,
    OTHER_WORDS,
    PASSAGES,
    QUOTATION_MARKS,
    QUOTED,
)

LANGUAGES = ("en", "vi", "pl", "ro", "ru")
UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
CURRENCIES = ("EUR", "USD", "PLN", "RON", "RUB", "GBP", "CHF")
PERCENT = {
    "en": ("percent", "per cent"),
    "pl": ("procent",),
    "ro": ("la sută",),
    "ru": ("процентов",),
    "vi": ("phần trăm",),
}
FIRST_DAY = date(2015, 1, 1)


@dataclass(frozen=True, slots=True)
class Fact:
    """What a sentence says: `key` is the same for all forms in which it is written."""

    kind: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence of a draft: a fact or a quote, and the number of its passage."""

    text: str
    said: str
    fact: Fact | None
    cites: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft and its passages. `change` names what was changed, "" in a true one."""

    language: str
    passages: tuple[str, ...]
    text: str
    change: str = ""
    was: str = ""
    now: str = ""


# --- Facts and their forms -----------------------------------------------------


def a_duration(random: Random) -> Fact:
    """Return a number of some unit of time."""
    number = random.choice([random.randint(2, 40), random.randint(41, 365)])
    return Fact("duration", (str(number), random.choice(UNITS)))


def forms_of_duration(fact: Fact, language: str) -> list[str]:
    """Return `30 days`, `thirty days`, `thirty (30) days`, `a 30-day …`."""
    number, unit = int(fact.key[0]), fact.key[1]
    digits = format_unit(number, f"duration-{unit}", "long", locale=language)
    unit_word = digits.removeprefix(str(number)).strip()
    words = num2words(number, lang=language)
    forms = [digits, f"{words} {unit_word}", f"{words} ({number}) {unit_word}"]
    forms.append(f"{number} ({words}) {unit_word}")
    return [*forms, f"a {number}-{unit} period"] if language == "en" else forms


def a_date(random: Random) -> Fact:
    """Return a day of the years from 2015 on."""
    day = FIRST_DAY + timedelta(days=random.randrange(6000))
    return Fact("date", (day.isoformat(),))


def forms_of_date(fact: Fact, language: str) -> list[str]:
    """Return the ISO form, what CLDR writes, and what people of a country do."""
    day = date.fromisoformat(fact.key[0])
    forms = [day.isoformat(), format_date(day, "long", locale=language)]
    if language == "en":
        return [*forms, format_date(day, "long", locale="en_GB")]
    if language == "vi":
        in_full = f"ngày {day.day} tháng {day.month} năm {day.year}"
        return [*forms, in_full, day.strftime("%d/%m/%Y")]
    return [*forms, day.strftime("%d.%m.%Y")]


def an_amount(random: Random) -> Fact:
    """Return a sum of money."""
    whole = random.choice([random.randint(2, 999), random.randint(1000, 5_000_000)])
    cents = random.choice(["", "", ".50", ".25"])
    return Fact("amount", (f"{whole}{cents}", random.choice(CURRENCIES)))


def forms_of_amount(fact: Fact, language: str) -> list[str]:
    """Return the forms of CLDR, and the code before or behind the number."""
    value, currency = float(fact.key[0]), fact.key[1]
    number = format_decimal(value, locale=language)
    return [
        format_currency(value, currency, locale=language),
        format_currency(value, currency, locale=language, format_type="name"),
        f"{currency} {value:,.2f}",
        f"{number} {currency}",
        f"{currency} {number}",
    ]


def a_percentage(random: Random) -> Fact:
    """Return a percentage."""
    value = random.choice([str(random.randint(2, 95)), f"{random.randint(0, 20)}.5"])
    return Fact("percent", (value, "%"))


def forms_of_percentage(fact: Fact, language: str) -> list[str]:
    """Return the sign with and without a space, and the word."""
    number = format_decimal(float(fact.key[0]), locale=language)
    if fact.key[1] != "%":
        return [f"{number} {fact.key[1]}"]
    words = [f"{number} {word}" for word in PERCENT[language]]
    return [f"{number}%", f"{number} %", *words]


def a_code(random: Random) -> Fact:
    """Return a code of one of the shapes that forms and messages have."""
    letters = "".join(random.choices("ABCDEFGHKLMNPQRSTUVWXZ", k=2))
    code = random.choice(
        [
            f"{letters}{random.randint(1, 99):02}",
            f"{letters}-{random.randint(1, 99):02}",
            f"{random.choice(['pacs', 'pain', 'camt'])}.{random.randint(1, 60):03}",
            f"{random.randint(10, 99)}/{random.randint(2010, 2025)}/NĐ-CP",
            f"ISO {random.randint(1000, 30_000)}",
        ]
    )
    return Fact("code", (code,))


def a_clause(random: Random) -> Fact:
    """Return an article, one with a paragraph, or a section."""
    article = str(random.randint(1, 120))
    inner = str(random.randint(1, 12))
    shape = random.choice(["article", "paragraph", "section"])
    key = {
        "article": ("article", article),
        "paragraph": ("paragraph", article, inner),
        "section": ("section", f"{random.randint(1, 30)}.{inner}"),
    }
    return Fact("clause", key[shape])


def forms_of_clause(fact: Fact, language: str) -> list[str]:
    """Return how a language names an article, its paragraph, or a section."""
    shape, *numbers = fact.key
    forms = {
        "article": {
            "en": ["Article {}"],
            "pl": ["art. {}", "artykuł {}"],
            "ro": ["art. {}", "articolul {}"],
            "ru": ["ст. {}", "статья {}"],
            "vi": ["Điều {}"],
        },
        "paragraph": {
            "en": ["Article {}({})", "Article {}, paragraph {}"],
            "pl": ["art. {} ust. {}"],
            "ro": ["art. {} alin. ({})", "articolul {} alineatul ({})"],
            "ru": ["п. {1} ст. {0}", "пункт {1} статьи {0}"],
            "vi": ["khoản {1} Điều {0}"],
        },
        "section": {
            "en": ["section {}", "Section {}"],
            "pl": ["sekcja {}"],
            "ro": ["secțiunea {}"],
            "ru": ["раздел {}"],
            "vi": ["mục {}"],
        },
    }
    return [form.format(*numbers) for form in forms[shape][language]]


def an_iban(random: Random) -> Fact:
    """Return a number with right check digits."""
    country, length = random.choice([("DE", 18), ("PL", 24)])
    account = "".join(random.choices("0123456789", k=length))
    checked = iban.calc_check_digits(f"{country}00{account}")
    return Fact("iban", (f"{country}{checked}{account}",))


MAKERS: dict[str, Callable[[Random], Fact]] = {
    "duration": a_duration,
    "date": a_date,
    "amount": an_amount,
    "percent": a_percentage,
    "code": a_code,
    "clause": a_clause,
    "iban": an_iban,
}


def forms_of(fact: Fact, language: str) -> list[str]:
    """Return the forms in which a language writes a fact."""
    makers = {
        "duration": forms_of_duration,
        "date": forms_of_date,
        "amount": forms_of_amount,
        "percent": forms_of_percentage,
        "clause": forms_of_clause,
    }
    if fact.kind in makers:
        return makers[fact.kind](fact, language)
    if fact.kind == "iban":
        return [fact.key[0], iban.format(fact.key[0])]
    return [fact.key[0]]


# --- Passages and true drafts --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage, with the facts and the sentence without one that it holds."""

    text: str
    facts: tuple[Fact, ...]
    quotable: str


def make_passages(random: Random, language: str, count: int) -> list[Passage]:
    """Return passages that share no fact and no sentence."""
    taken: set[tuple[str, ...]] = set()
    quotable = random.sample(QUOTED[language], count)
    passages = []
    for prose in quotable:
        facts, sentences = [], [prose]
        for kind in random.sample(sorted(MAKERS), 4):
            fact = MAKERS[kind](random)
            while clashes(fact, taken):
                fact = MAKERS[kind](random)
            taken.update(marks_of(fact))
            facts.append(fact)
            form = random.choice(forms_of(fact, language))
            sentences.append(random.choice(PASSAGES[language][kind]).format(form))
        random.shuffle(sentences)
        between = random.choice([" ", "\n", "\n\n"])
        passages.append(Passage(between.join(sentences), tuple(facts), prose))
    return passages


def marks_of(fact: Fact) -> set[tuple[str, ...]]:
    """Return by what a fact could be taken for another: all of it, and its numbers."""
    return {(fact.kind, *fact.key), *((part,) for part in fact.key)}


def clashes(fact: Fact, taken: set[tuple[str, ...]]) -> bool:
    """Tell whether a fact, or a number of it, stands in some passage already."""
    numbers = {(part,) for part in fact.key if part[:1].isdigit()}
    return (fact.kind, *fact.key) in taken or bool(numbers & taken)


def a_draft(random: Random, language: str) -> tuple[list[Passage], list[Part]]:
    """Return passages and the sentences of a true draft about them."""
    passages = make_passages(random, language, 2)
    parts = []
    for number, passage in enumerate(passages, start=1):
        facts = random.sample(passage.facts, random.randint(1, 2))
        parts += [said(random, language, fact, number) for fact in facts]
    number = random.randint(1, len(passages))
    if random.random() < 0.6:
        parts.append(quoted(random, language, passages[number - 1].quotable, number))
    random.shuffle(parts)
    return passages, parts


def said(random: Random, language: str, fact: Fact, cites: int) -> Part:
    """Return a sentence that says a fact in one of its forms."""
    form = random.choice(forms_of(fact, language))
    template = random.choice(DRAFTS[language][fact.kind])
    return Part(template.format(form), form, fact, cites)


def quoted(random: Random, language: str, prose: str, cites: int) -> Part:
    """Return a sentence that quotes some words of another, perhaps with an omission."""
    words = prose.split()
    first = random.randint(0, len(words) - 5)
    last = random.randint(first + 5, len(words))
    chosen = words[first:last]
    if len(chosen) > 6 and random.random() < 0.3:
        chosen = [*chosen[:2], "...", *chosen[-3:]]
    return quote_of(random, language, chosen, cites)


def quote_of(random: Random, language: str, words: Sequence[str], cites: int) -> Part:
    """Return words between the quotation marks of a language."""
    text = " ".join(words)
    return Part(
        random.choice(QUOTATION_MARKS[language]).format(text), text, None, cites
    )


def written(random: Random, parts: Sequence[Part]) -> str:
    """Return the sentences with their citations, before or behind the full stop."""
    return "".join(
        random.choice([" [S{}]. ", ". [S{}] ", ". [S{}]\n", " [S{}].\n"])
        .format(part.cites)
        .join([part.text, ""])
        for part in parts
    )


def true_drafts(random: Random, count: int) -> Iterator[Draft]:
    """Yield drafts that their passages hold, in all languages in turn."""
    for index in range(count):
        language = LANGUAGES[index % len(LANGUAGES)]
        passages, parts = a_draft(random, language)
        texts = tuple(passage.text for passage in passages)
        yield Draft(language, texts, written(random, parts))


# --- Mutants -------------------------------------------------------------------


def mutants(random: Random, count: int) -> Iterator[Draft]:
    """Yield true drafts with one thing changed each, in all languages in turn."""
    made = 0
    while made < count:
        language = LANGUAGES[made % len(LANGUAGES)]
        passages, parts = a_draft(random, language)
        index = random.randrange(len(parts))
        change = random.choice(["value", "value", "unit", "citation"])
        changed = changed_part(random, language, parts[index], change, passages)
        if changed is None:
            continue
        name, part = changed
        was, now = parts[index].said, part.said
        if name == "citation":
            was, now = f"{was} [S{parts[index].cites}]", f"{now} [S{part.cites}]"
        text = written(random, [*parts[:index], part, *parts[index + 1 :]])
        texts = tuple(passage.text for passage in passages)
        yield Draft(language, texts, text, name, was, now)
        made += 1


def changed_part(
    random: Random,
    language: str,
    part: Part,
    change: str,
    passages: Sequence[Passage],
) -> tuple[str, Part] | None:
    """Return the name of a change and the sentence with it, or None if it has none."""
    if change == "citation":
        return "citation", replace(part, cites=3 - part.cites)
    if part.fact is None:
        words = changed_words(random, language, part.said.split())
        return "quote", quote_of(random, language, words, part.cites)
    fact = changed_fact(random, part.fact, change)
    taken = set().union(
        *(marks_of(each) for passage in passages for each in passage.facts)
    )
    if fact is None or (fact.kind, *fact.key) in taken:
        return None
    name = {"value": part.fact.kind, "unit": "unit"}[change]
    return name, said(random, language, fact, part.cites)


def changed_words(random: Random, language: str, words: Sequence[str]) -> list[str]:
    """Return words with a negation among them, or with another word for one."""
    place = random.randrange(1, len(words))
    if random.random() < 0.5:
        return [*words[:place], NEGATIONS[language], *words[place:]]
    if words[place] == "...":
        place -= 1
    other = random.choice(OTHER_WORDS[language])
    return [*words[:place], other, *words[place + 1 :]]


def changed_fact(random: Random, fact: Fact, change: str) -> Fact | None:
    """Return a fact with another value, or with another unit."""
    if change == "unit":
        units = {"duration": UNITS, "amount": CURRENCIES, "percent": ("%", "‰")}
        if fact.kind not in units:
            return None
        others = [unit for unit in units[fact.kind] if unit != fact.key[1]]
        return Fact(fact.kind, (fact.key[0], random.choice(others)))
    if fact.kind == "date":
        day = date.fromisoformat(fact.key[0])
        day += timedelta(days=random.choice([1, -1, 10, 31, 365, -366]))
        return Fact("date", (day.isoformat(),))
    place = random.choice([i for i, part in enumerate(fact.key) if has_digit(part)])
    part = other_digit(random, fact.key[place])
    return Fact(fact.kind, (*fact.key[:place], part, *fact.key[place + 1 :]))


def has_digit(part: str) -> bool:
    """Tell whether there is a digit to change."""
    return any(character.isdigit() for character in part)


def other_digit(random: Random, text: str) -> str:
    """Return a text with one digit changed, and none that leads changed to zero."""
    places = [i for i, character in enumerate(text) if character.isdigit()]
    place = random.choice(places)
    others = [digit for digit in "123456789" if digit != text[place]]
    return text[:place] + random.choice(others) + text[place + 1 :]
