"""Lines without a bank detail that look like ones with: for what scrubs by mistake."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

TEXTS: Final = {".md", ".txt", ".csv", ".html", ".log", ".jsonl"}
CAPITALS: Final = (
    (
        "CUSTOMER DOCUMENT SECURITY STANDARD BUSINESS PAYMENTS ACCOUNTS DIRECTOR ADDITION "
        "CONTRACT REQUIRED PROVIDED DATABASE ORIGINAL EUROPEAN TRANSFER MERCHANT COMPLETE "
        "ARTICLES BRANCHES SETTINGS INTEREST CURRENCY DEPOSITS MORTGAGE APPENDIX REGISTER "
        "OPERATOR TERMINAL POLSKIEJ SIERPNIA ROMANIEI CLIENTUL TRANSACTION DECLARATION "
        "REGULATIONS OBLIGATIONS COOPERATION REQUIREMENT"
    )
    .replace(" ", "\n")
    .splitlines()
)
MADE: Final = (
    "The rule came into force on {day} and ends on {other_day}.",
    "Regulation (EU) {year}/{small} as amended by {year}/{small}, Article {small}({tiny})",
    "Opłata wynosi {amount} zł, a limit {big} zł dziennie.",
    "Ustawa z dnia {day} (Dz. U. z {year} r. poz. {small})",
    "Comisionul este de {amount} lei, plafonul {big} lei.",
    "Legea nr. {small}/{year}, art. {tiny} alin. ({tiny}) lit. a)",
    "Комиссия {amount} ₽, лимит {big} руб. в сутки.",
    "Федеральный закон от {day} № {small}-ФЗ, ст. {tiny}",
    "Phí {big} VND, hạn mức {big} đồng mỗi ngày.",
    "Thông tư số {small}/{year}/TT-NHNN ngày {day}",
    "Version {tiny}.{tiny}.{small} of {year}-{month}-{date} at {clock}",
    "Error AC{tiny} in pacs.008.001.{tiny}, see QT-{small} and ISO 20022",
    "It cost {amount} EUR in {year} and € {big} in {other_year}.",
    "Page {small} of {small}, table {tiny}.{tiny}, lines {small}-{small}",
    "Over {big} customers in {tiny} branches used it between {year} and {other_year}.",
    "Call the hotline on weekdays from {clock} to {clock}, room {small}.",
    "The {word} shall inform the bank of any change within {tiny} days.",
    "{word} AND {word} OF THE BANK",
    "The account of a {word} is opened on {day}.",
    "{word}",
    "commit {hex} of {day}",
    "10.{small}.{tiny}.{tiny}:{small} answered in {amount} ms",
    "ISBN 978-3-16-148410-0, DOI 10.{small}/{tiny}.{year}.{small}",
    "| {small} | {amount} | {big} | {year} |",
    "d{big_plain}:{small}-{small}",
    "konto, cont, счёт, tài khoản: {tiny} of {small} in {year}",
)


def made_lines(random: Random, count: int) -> Iterator[str]:
    """Yield made lines, full of what numbers and capitals are mostly used for."""
    for index in range(count):
        yield MADE[index % len(MADE)].format(**values(random))


def values(random: Random) -> dict[str, str]:
    """Return what a made line is filled with."""
    year, month, date = (
        random.randint(1950, 2030),
        random.randint(1, 12),
        random.randint(1, 28),
    )
    day = random.choice(
        ("{d:02}.{m:02}.{y}", "{y}-{m:02}-{d:02}", "{d}/{m}/{y}", "{d} {m} {y}")
    )
    big = random.randint(10_000, 99_999_999)
    gap = random.choice((" ", ".", ",", "\u00a0", ""))
    return {
        "day": day.format(d=date, m=month, y=year),
        "other_day": day.format(d=28, m=2, y=year + 1),
        "year": str(year),
        "other_year": str(year + 3),
        "month": f"{month:02}",
        "date": f"{date:02}",
        "clock": f"{random.randint(0, 23)}:{random.randint(0, 59):02}",
        "tiny": str(random.randint(1, 99)),
        "small": str(random.randint(1, 9999)),
        "amount": f"{random.randint(1, 999_999) / 100:.2f}",
        "big": f"{big:,}".replace(",", gap),
        "big_plain": str(random.randint(10**12, 10**13)),
        "hex": f"{random.getrandbits(160):040x}",
        "word": random.choice(CAPITALS),
    }


def lines_of_folder(folder: Path) -> Iterator[str]:
    """Yield the lines of the texts in a folder that hold anything."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in TEXTS and path.is_file():
            text = path.read_text(encoding="utf-8", errors="ignore")
            yield from (line for line in text.splitlines() if line.strip())
