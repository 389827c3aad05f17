"""The clauses that a question names, in five languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.structure.numbers import Unit
from retrieval.clauses.finding import find_references
from retrieval.clauses.forms import forms_of


def named(query: str) -> list[tuple[str, str]]:
    return [(one.kind, one.number) for one in find_references(query)]


@pytest.mark.req("S1-ASK-13", "S1-HYB-09")
@pytest.mark.parametrize(
    ("query", "kind", "number"),
    [
        ("What does clause 7.2 say?", "clause", "7.2"),
        ("Article 12", "article", "12"),
        ("ARTICLE IV of the charter", "article", "4"),
        ("§ 4", "sign", "4"),
        ("Annex II", "annex", "2"),
        ("appendix C", "annex", "c"),
        ("chapter iv", "chapter", "4"),
        ("4.3.2", "bare", "4.3.2"),
        ("7(2)(b)", "bare", "7(2)(b)"),
        ("requirement V6.2.1", "requirement", "v6.2.1"),
        ("control A.5.1", "requirement", "a5.1"),
        ("recital 85", "recital", "85"),
        ("art. 5^1", "article", "5^1"),
    ],
)
def test_references_are_recognised(query: str, kind: str, number: str) -> None:
    assert named(query) == [(kind, number)]


@pytest.mark.req("S1-ASK-13", "S2-LNG-01", "S3-LNG-01")
@pytest.mark.parametrize(
    ("query", "kind", "number"),
    [
        ("Article 5(1)(b)", "article", "5(1)(b)"),
        ("point (b) of Article 5(1)", "article", "5(1)(b)"),
        ("Article 5, paragraph 1, point (b)", "article", "5(1)(b)"),
        ("§ 4 ust. 2 pkt 3", "sign", "4(2)(3)"),
        ("w artykule 31 ustępie 3", "article", "31(3)"),
        ("art 31 ust 3", "article", "31(3)"),
        ("art. 5 alin. (2) lit. b)", "article", "5(2)(b)"),
        ("articolului 27 alineatul (4)", "article", "27(4)"),
        ("пункт 2 статьи 5", "article", "5(2)"),
        ("в части 2 статьи 5", "article", "5(2)"),
        ("ст. 5 п. 2 пп. а", "article", "5(2)(а)"),
        ("khoản 2 Điều 5", "article", "5(2)"),
        ("điểm đ khoản 2 Điều 4", "article", "4(2)(đ)"),
        ("dieu 13 khoan 6", "article", "13(6)"),
        ("phu luc I", "annex", "1"),
        ("zalacznik nr 3", "annex", "3"),
        ("Art. 6.1.a", "article", "6(1)(a)"),
    ],
)
def test_nested_references_are_one_in_either_order(
    query: str, kind: str, number: str
) -> None:
    assert named(query) == [(kind, number)]


@pytest.mark.req("S1-ASK-13")
@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("Articles 5 and 6", ["5", "6"]),
        ("Articles 12 to 14", ["12", "13", "14"]),
        ("art. 15–17", ["15", "16", "17"]),
        ("art. 5, 6 i 7", ["5", "6", "7"]),
        ("articolele 5 și 6", ["5", "6"]),
        ("статьи 5 и 6", ["5", "6"]),
        ("Điều 5 và Điều 6", ["5", "6"]),
        ("khoản 1, 2 Điều 13", ["13(1)", "13(2)"]),
        ("art. 5 ust. 1 i ust. 3", ["5(1)", "5(3)"]),
        ("ust. 1 i ust. 3 art. 5", ["5(1)", "5(3)"]),
        ("sections 4.1, 4.2 and 4.5", ["4.1", "4.2", "4.5"]),
        ("Article 5 and again Article 5", ["5"]),
    ],
)
def test_lists_and_ranges_are_several_references(
    query: str, numbers: list[str]
) -> None:
    assert [number for _kind, number in named(query)] == numbers


@pytest.mark.req("S1-ASK-16")
@pytest.mark.parametrize(
    "query",
    [
        "How do I fill in form QT-07?",
        "7.2 million people",
        "a fee of $7.2",
        "version 7.2 of the handbook",
        "1.500.000 lei",
        "on 12.05.2024",
        "at 10.0.0.1:8080",
        "CWE 1275 and RFC 2119",
        "Which articles are about fees?",
        "a section of the road",
        "99.9% of the time",
        "tòa nhà cấp 1",
        "Câte puncte a marcat echipa?",
    ],
)
def test_versions_amounts_dates_and_codes_are_no_references(query: str) -> None:
    assert [one for one in find_references(query) if not one.attached] == []


@pytest.mark.req("D34", "S1-ASK-16")
def test_only_what_can_be_nothing_but_a_clause_counts_as_labelled() -> None:
    labelled = {
        query: find_references(query)[0].labelled
        for query in (
            "Article 112",
            "requirement 19.4.7",
            "v5.0.0-6.2.19",
            "khoản 2 Điều 5",
            "7.2",
            "part 2",
            "point 3",
        )
    }
    assert [query for query, is_sure in labelled.items() if not is_sure] == [
        "7.2",
        "part 2",
        "point 3",
    ]


@pytest.mark.req("D34")
def test_the_words_beside_a_reference_may_name_its_document() -> None:
    (one,) = find_references("What does Article 12 of the Works Charter say?")
    assert (one.before, one.after, one.connected) == (
        "What does",
        "Works Charter",
        True,
    )
    (one,) = find_references("Works Charter, § 4: how much?")
    assert (one.before, one.after) == ("Works Charter", "")
    (one,) = find_references("In the Charter, what says Article 4?")
    assert one.lead == "the Charter"
    (one,) = find_references("v5.0.0-6.2.19")
    assert (one.version, one.number) == ("5.0.0", "6.2.19")
    (one,) = find_references("since Python 3.13")
    assert one.attached


def test_what_contains_a_clause_is_a_condition_of_it() -> None:
    (one,) = find_references("Phụ lục I mục II.7 điểm b")
    assert (one.kind, one.number) == ("section", "2(7)(b)")
    assert one.within == ((Unit.ANNEX, "1"),)


def test_a_reference_has_firm_forms_before_doubtful_ones() -> None:
    (clause,) = find_references("clause 7(2)")
    tiers = [form.tier for form in forms_of(clause)]
    assert tiers == sorted(tiers)
    assert any(form.inline == "2" and form.key == "7" for form in forms_of(clause))


@pytest.mark.req("REL-P8")
@given(
    st.text(alphabet=st.sampled_from("aA1 .,()§-–v/артdieuủ59IVX\n?ust"), max_size=120)
)
def test_any_text_is_read(text: str) -> None:
    for one in find_references(text):
        assert one.number
        assert one.written
        assert forms_of(one)
