"""Which tokens are codes, and which codes are the same."""

import unicodedata

import pytest

from knowledge.codes import code_keys, find_codes, normalise_code, stored_codes


@pytest.mark.req("S3-HYB-05")
def test_codes_are_found_as_written() -> None:
    text = "Fill in QT-07, then AC04 or pacs.008; see AT-44, ISO 20022 and PEP 8."
    assert find_codes(text) == [
        "QT-07",
        "AC04",
        "pacs.008",
        "AT-44",
        "ISO 20022",
        "PEP 8",
    ]


def test_letters_of_any_alphabet_make_codes() -> None:
    assert find_codes("Nghị định 30/2020/NĐ-CP, ГОСТ-12, форма Ф14") == [
        "30/2020/NĐ-CP",
        "ГОСТ-12",
        "Ф14",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "in the 20th century",
        "an 18-year-old and a 10-day delay",
        "30km in 5min at 10am",
        "в 1990-х годах",
        "Article 12 of 2016",
        "7.2.1 and 4,287.50",
        "THE 5 PEOPLE",
        "https://example.org/a1/b2 and a1@b2.org",
    ],
)
def test_ordinals_measures_and_addresses_are_no_codes(text: str) -> None:
    assert find_codes(text) == []


@pytest.mark.parametrize(
    "text", ["QT-07", "qt 07", "QT\u201107", "QT\u201307", "QT.07"]
)
def test_spellings_of_one_code_compare_equal(text: str) -> None:
    assert normalise_code(text) == "qt07"


def test_numbers_inside_a_code_stay_apart() -> None:
    assert normalise_code("AC-1.12") != normalise_code("AC-11.2")
    assert normalise_code("v5.0.0-6.2.19") == "v5.0.0.6.2.19"


def test_both_unicode_forms_give_the_same_keys() -> None:
    text = "Số 12/QĐ-CĐ1"
    assert code_keys(text) == code_keys(unicodedata.normalize("NFD", text))


def test_keys_are_sorted_and_unique_and_parts_count() -> None:
    assert code_keys("QT-08 QT-07/QT-08 qt08") == ["qt07", "qt07qt08", "qt08"]


def test_a_huge_token_is_no_code() -> None:
    assert find_codes("a1" * 1000) == []


@pytest.mark.req("S3-HYB-05")
def test_parts_of_a_code_that_are_codes_are_stored_as_parts() -> None:
    assert stored_codes("pacs.008.001.08") == [
        "pacs008.001.08",
        "~pacs008",
        "~pacs008.001",
    ]
    assert stored_codes("30/2020/NĐ-CP") == ["30.2020nđcp", "~2020nđcp", "~30.2020nđ"]
    assert stored_codes("QT-07 and QT-07-A") == ["qt07", "qt07a", "~07a"]
