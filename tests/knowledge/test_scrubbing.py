"""What is taken out of people's words before they are kept, and what stays."""

from pathlib import Path
from random import Random

import pytest

from benchmarks.bank_details import lines_with_ibans, lines_with_others
from benchmarks.ordinary_lines import lines_of_folder, made_lines
from knowledge.scrubbing import DROPPED, scrub

ROOT = Path(__file__).parents[2]


@pytest.mark.req("S1-PRV-01", "R16")
@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("DE89 3704 0044 0532 0130 00 please", "[IBAN] please"),
        ("to gb82west12345698765432.", "to [IBAN]."),
        ("PL61-1090-1014-0000-0712-1981-2874?", "[IBAN]?"),
        ("RO49AAAA1B31007593840000 și GB82WEST12345698765432", "[IBAN] și [IBAN]"),
        ("BIC DEUTDEFF500", "BIC [BIC]"),
        ("swift/bic code:   deutdeffxxx", "swift/bic code:   [BIC]"),
        ("SWIFT code number is deutdeff500", "SWIFT code number is [BIC]"),
        ("mã swift của ngân hàng là BFTVVNVX", "mã swift của ngân hàng là [BIC]"),
        ("send it to COBADEFFXXX", "send it to [BIC]"),
        ("rachunek 61 1090 1014 0000 0712 1981 2874", "rachunek [account number]"),
        ("why is account 12345678 blocked", "why is account [account number] blocked"),
        ("tài khoản 0071001234567 bị khóa", "tài khoản [account number] bị khóa"),
        ("счёт 40817810099910004312 закрыт", "счёт [account number] закрыт"),
        ("who owns 123456789012", "who owns [account number]"),
        ("card 4111 1111 1111 1111 is lost", "card [card number] is lost"),
        # A mistyped check digit makes it no IBAN, and no less private.
        ("DE88 3704 0044 0532 0130 00", "[IBAN]"),
    ],
)
def test_marks_bank_details(written: str, kept: str) -> None:
    assert scrub(written) == kept


@pytest.mark.req("S1-PRV-01")
@pytest.mark.parametrize(
    "written",
    [
        "QT-07, AC04 and pacs.008.001.08",
        "ISO 20022, PEP 8, AT-44",
        "Article 112, § 4 ust. 2, 7.2(b), v5.0.0-6.2.19",
        "account opened on 2026-05-31 or 31.05.2026 or 20260531",
        "the DOCUMENT and the STANDARD",
        "bank fee 1 000 000 VND, tài khoản 50000000 đồng, € 123456789",
        "978-3-16-148410-0",
        "d1234567890123:10-20",
        "192.168.100.1 and +84 912 345 678",
        "in 2024 and 2025, 20,000 readers",
        "20260531142500",
        "số 15/2021/NĐ-CP của ngân hàng",
    ],
)
def test_leaves_everything_else(written: str) -> None:
    assert scrub(written) == written


@pytest.mark.req("S1-PRV-01")
def test_scrubbing_twice_changes_nothing_more() -> None:
    once = scrub("DE89 3704 0044 0532 0130 00 and account 12345678, DEUTDEFF500")
    assert scrub(once) == once


# --- The corpus of `make bench-scrubbing`, a part of it --------------------------------


@pytest.mark.req("REL-L1", "REL-L5", "S1-PRV-01")
def test_nothing_of_an_iban_is_left_in_any_form() -> None:
    left = [
        line.text
        for line in lines_with_ibans(Random(5), 1_000)
        if line.left_in(scrub(line.text))
    ]
    assert not left


@pytest.mark.req("REL-L2", "S1-PRV-01")
def test_nothing_of_other_bank_details_is_left() -> None:
    left = [
        line.text
        for line in lines_with_others(Random(6), 1_000)
        if line.left_in(scrub(line.text))
    ]
    assert not left


@pytest.mark.req("REL-L2")
def test_ordinary_lines_stay_as_they_are() -> None:
    lines = [*made_lines(Random(7), 1_000), *lines_of_folder(ROOT / "docs")]
    changed = [line for line in lines if scrub(line) != line]
    assert len(changed) <= len(lines) / 1_000, changed


@pytest.mark.req("REL-L4")
@pytest.mark.parametrize("patience", [0.0, -1.0])
def test_a_text_that_takes_too_long_is_dropped(
    monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr("knowledge.scrubbing.PATIENCE", patience)
    assert scrub("to DE89 3704 0044 0532 0130 00") == DROPPED
    # Also where it looked for long and found nothing.
    assert scrub("nothing of a bank") == DROPPED


@pytest.mark.req("REL-L4")
@pytest.mark.parametrize(
    "text",
    [
        "DE89" + " " * 20_000,
        "DE89\n \n \n" * 5_000,
        "1 " * 20_000,
        "%20" * 20_000,
        "ab12" * 10_000,
        "DEUTDEFF " * 4_000,
        "a" * 50_000,
        "\\u00a0" * 10_000,
        "bic " * 20_000,
        "swift/code " * 8_000,
        ("bic" + " " * 30) * 3_000,
        "bic: " * 20_000,
        ("BIC code" + "\n" * 9 + "is ") * 5_000,
    ],
)
def test_no_text_takes_more_than_its_time(text: str) -> None:
    """Nor where nothing is found in it, which is looked at just as closely."""
    assert scrub(text) != DROPPED
