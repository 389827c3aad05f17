"""The keys by which a question calls a document."""

import pytest

from knowledge.naming import calls_in, fold, name_keys


def called(question: str, title: str, path: str = "a.md", **head: str) -> int:
    """Return how many words of a question call a document."""
    keys = set(name_keys(title, path, head))
    return sum(call.words for call in calls_in(question) if call.keys & keys)


@pytest.mark.req("D34", "S2-LNG-01", "S3-LNG-01")
@pytest.mark.parametrize(
    ("question", "title"),
    [
        (
            "Konstytucji Rzeczypospolitej Polskiej",
            "Konstytucja Rzeczypospolitej Polskiej",
        ),
        ("konstytucji RP", "Konstytucja Rzeczypospolitej Polskiej"),
        ("Constituției României", "Constituția României – Titlul II"),
        (
            "Nghị định về công tác văn thư",
            "Nghị định 30/2020/NĐ-CP — Về công tác văn thư",
        ),
        ("nghi dinh 30/2020", "Nghị định 30/2020/NĐ-CP — Về công tác văn thư"),
        ("Положения о закупках", "Положение о закупках"),
        ("the Quarry Works CSA", "Quarry Works Cloud Service Agreement"),
        ("GDPR", "GDPR Chapter IV: Controllers"),
    ],
)
def test_a_title_is_called_in_whatever_case_form_and_by_initials(
    question: str, title: str
) -> None:
    simple = [call for call in calls_in(question) if call.words == 1]
    assert called(question, title) >= len(simple)
    assert not called(question, "Zeitschrift für Käse")


@pytest.mark.req("D34")
def test_path_version_and_code_call_a_document() -> None:
    assert called("ASVS 4.0", "Sessions", "asvs/4.0.3-en/sessions.md") == 2
    assert called("ASVS 4.0", "Sessions", "asvs/5.0.0-en/sessions.md") == 1
    assert called("v5.0.0", "Sessions", version="5.0.0", standard="OWASP ASVS") == 1
    assert called("PEP 8", "Style guide", "peps/pep-0008.md") >= 2
    assert called("AWB", "Style guide", replaces="AWB 3") == 0


def test_the_initials_of_a_long_name_call_its_short_one() -> None:
    assert called("General Data Protection Regulation", "GDPR recitals") == 4


def test_folding_keeps_every_character_in_its_place() -> None:
    text = "Điều 5 — Łódź, Ștefan, Ёлка"
    assert fold(text) == "dieu 5 — lodz, stefan, елка"
    assert len(fold(text)) == len(text)
