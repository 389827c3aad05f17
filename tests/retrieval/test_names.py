"""The names that questions ask about, in five languages."""

import pytest

from retrieval.names import find_names, missing_names


def written(question: str) -> list[str]:
    """Return the names of a question."""
    return [name.written for name in find_names(question)]


def holds(name: str, text: str) -> bool:
    """Tell whether a text holds the one name of a question."""
    (found,) = find_names(f"what is {name} about")
    return not missing_names([found], [text])


@pytest.mark.req("S1-MIS-11")
@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What does asyncio.TaskPool do?", ["asyncio.TaskPool"]),
        ("Is max_retry_count read by __init__?", ["max_retry_count", "__init__"]),
        ('Where is config["timeout"] set?', ['config["timeout"]']),
        ("AC04, AT-44 and pacs.008?", ["AC04", "AT-44", "pacs.008"]),
        ("Does PYTHONHASHSEED change HEALTHCHECK?", ["PYTHONHASHSEED", "HEALTHCHECK"]),
        ("What do PEP 8 and RFC 2119 say?", ["PEP 8", "RFC 2119"]),
        ("When does a TaskGroup end?", ["TaskGroup"]),
        ("Co zawiera formularz KR-11 i klasa TaskGroup?", ["KR-11", "TaskGroup"]),
        ("Ce prevede norma SR 8591 despre HEALTHCHECK?", ["SR 8591", "HEALTHCHECK"]),
        ("Что говорит ГОСТ 12345 о СНИП-7?", ["ГОСТ 12345", "СНИП-7"]),
        ("Nghị định 30/2020/NĐ-CP quy định gì?", ["30/2020/NĐ-CP"]),
    ],
)
def test_names_are_known_by_their_form(question: str, names: list[str]) -> None:
    assert written(question) == names


@pytest.mark.req("S1-MIS-11")
def test_ten_names_are_looked_for() -> None:
    question = " ".join(f"AC{number:02}" for number in range(15))
    assert written(f"which of {question}") == [f"AC{number:02}" for number in range(10)]


@pytest.mark.req("S1-MIS-12")
@pytest.mark.parametrize(
    "question",
    [
        "Do HTTP, JSON and SEPA matter?",
        "WHAT DOES THE AUTHENTICATION OF MEMBERS NEED IN 30 DAYS?",
        "КАКИЕ СРОКИ РАССМОТРЕНИЯ ОБРАЩЕНИЙ?",
        "What do clause 2.2, 7.2.1, § 4 and Annex II say?",
        "Co mówi art. 5 ust. 1 pkt 2 m.in. o karach?",
        "Ce spune art. 12 alin. (2), lit. a)?",
        "Что сказано в ст. 5, т.е. о сроках?",
        "Khoản 2 Điều 5 nói gì?",
        "Did DE89 3704 0044 0532 0130 00 or DEUTDEFF pay to account 12345678?",
        "How do the bylaws treat a member's bicycle on 4 November 2026 at 30km?",
        "Ask me@some_where.org or https://example.com/some_page about it",
    ],
)
def test_ordinary_words_references_and_accounts_are_no_names(question: str) -> None:
    assert written(question) == []


def test_codes_stay_names_in_a_question_in_capitals() -> None:
    assert written("WHAT IS THE MEANING OF AC04 AND ITEM 30?") == ["AC04"]


def test_two_words_in_capitals_are_written_as_a_name() -> None:
    assert written("RFC 2119") == ["RFC 2119"]


@pytest.mark.req("S1-MIS-13")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PEP 8", "as PEP8 says"),
        ("PEP 8", "peps/pep-0008.md"),
        ("AT-44", "the field at 44"),
        ("pacs.008", "PACS.008.001.08"),
        ("TaskGroup", "a task group: taskgroup"),
        ("max_retry_count", "Max retry count"),
        ('config["timeout"]', "read config['timeout'] first"),
        ("30/2020/NĐ-CP", "Nghị định số 30/2020/NĐ-CP"),
        ("ГОСТ 12345", "гост-12345"),
        ("CWE 1275", "# | Rule | CWE\n| 3.4.3 | Set SameSite | **1275** |"),
        ("CWE 79", "| CWE | rule |\n|---|---|\n| 079 | escape |"),
    ],
)
def test_a_name_matches_without_case_and_spacing(name: str, text: str) -> None:
    assert holds(name, text)


@pytest.mark.req("S1-MIS-13")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PEP 8", "PEP 80 and PEP 18"),
        ("AC04", "AC044"),
        ("AC-1.12", "AC-11.2"),
        ("TaskGroup", "TaskGroups"),
        ("__init__", "init"),
        ("TaskGroup", "MultiTaskGroup"),
        ("CWE 1275", "CWE was read 1275 times"),
        ("CWE 1275", "| CWE | rule |\n| 12750 | no |"),
    ],
)
def test_a_longer_or_another_word_is_not_the_name(name: str, text: str) -> None:
    assert not holds(name, text)


@pytest.mark.req("REL-P8")
@pytest.mark.parametrize("piece", ["a_", "a.b", "AC04 ", "x[", "A", "__", "'é", "0"])
def test_a_hostile_text_is_read_to_its_end(piece: str) -> None:
    """As long as a question may be, and 100 kB as a passage; pytest's limit holds."""
    text = piece * (100_000 // len(piece))
    find_names(text[:1_000])
    missing_names(find_names("PEP 8, a_b_c, config['x'], asyncio.x, AC04?"), [text])
