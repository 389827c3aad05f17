"""The rules by which a draft is held against its passages."""

import ast
import sys
from pathlib import Path

import pytest

from retrieval import verification
from retrieval.verification import (
    Flag,
    FlagKind,
    Outcome,
    Read,
    Verdict,
    check_draft,
    sentences_of,
)

NOTICE = "7.2 Either party may end this agreement\nwith ninety days' written notice."
FEES = (
    "The fee is EUR 1.000,00 a year, due within thirty (30) days. Returns bear the code "
    "AC01; messages follow pacs.008. The rate was 4.5 % on 4 November 2026."
)
CARE = "The tenant keeps the garden. Repairs of more than 200 euros are the owner's."
PASSAGES = (Read("d1:0-70", NOTICE), Read("d2:0-170", FEES), Read("d3:5-80", CARE))


def check(draft: str) -> Verdict:
    return check_draft(draft, PASSAGES)


def messages(verdict: Verdict) -> list[str]:
    return [flag.message for flag in verdict.flags]


# --- Quotes --------------------------------------------------------------------


@pytest.mark.req("S1-VER-04")
@pytest.mark.parametrize(
    "quote",
    [
        '"Either party may end this agreement"',
        "“Either party may end this agreement”",
        "„Either party may end this agreement”",
        "„Either party may end this agreement“",
        "«Either party may end this agreement»",
        "‘Either party may end this agreement’",
        "‹Either party may end this agreement›",
        '"agreement with ninety days’ written notice."',
        '"[E]ither party may end"',
        '"either party may end"',
        '"Either party may end this agreement\nwith ninety days\' written notice"',
    ],
)
def test_a_quote_stands_in_its_passage(quote: str) -> None:
    assert check(f"It says {quote} [S1].").outcome is Outcome.VERIFIED


@pytest.mark.req("S1-VER-04")
@pytest.mark.parametrize(
    "quote",
    [
        '"Either party may not end this agreement"',
        "“Neither party may end this agreement”",
        "„Either party must end this agreement”",
        "«Either party may end the agreement»",
        "‘Either party may end his agreement’",
        '"her party may end"',
        '"Either part"',
        '"this agreement Either party"',
    ],
)
def test_other_words_and_parts_of_words_are_no_quote(quote: str) -> None:
    verdict = check(f"It says {quote} [S1].")
    assert messages(verdict) == [f"{quote} not found in S1"]


@pytest.mark.req("S1-VER-04")
def test_a_quote_stands_in_the_passage_cited_behind_it() -> None:
    quote = '"The tenant keeps the garden"'
    assert check(f"{quote} [S3].").outcome is Outcome.VERIFIED
    assert messages(check(f"{quote} [S1].")) == [f"{quote} not found in S1"]
    swapped = f'{quote} [S1], and "either party may end this agreement" [S3].'
    assert len(check(swapped).flags) == 2


@pytest.mark.req("S1-VER-04")
@pytest.mark.parametrize("mark", ["...", "…", " [...] ", "(…)", " . . . "])
def test_an_omission_leaves_two_words_on_each_side(mark: str) -> None:
    assert check(f'"Either party{mark}written notice" [S1].').outcome == "verified"
    assert check(f'"{mark.strip()}written notice" [S1].').outcome is Outcome.VERIFIED
    short = check(f'"Either{mark}written notice" [S1].')
    assert "two words on each side" in short.flags[0].message
    turned = check(f'"written notice{mark}Either party" [S1].')
    assert turned.outcome is Outcome.FLAGGED


def test_dots_of_the_document_itself_are_no_omission() -> None:
    passages = [Read("d1:0-9", "Call print(...) once, and wait.")]
    assert check_draft('Use "print(...)" [S1].', passages).outcome == "verified"
    assert check_draft('Use "print(...) once" [S1].', passages).outcome == "verified"
    assert check_draft('It says "once ... wait" [S1].', passages).outcome == "flagged"


def test_a_quote_that_is_never_closed_is_flagged() -> None:
    verdict = check("Either “party may stop this agreement [S1].\n\n30 days [S2].")
    assert "never closed" in verdict.flags[0].message


def test_apostrophes_and_inches_are_no_quotes() -> None:
    draft = 'The tenants’ 5" pipes and the ’90s: ninety days’ notice [S1].'
    assert [flag.text for flag in check(draft).flags] == ["5", "90s"]


def test_signs_are_a_part_of_a_quote() -> None:
    assert check('"rate was 4.5 %" [S2].').outcome is Outcome.VERIFIED
    assert check('"rate was 4.5 €" [S2].').outcome is Outcome.FLAGGED


# --- Facts ---------------------------------------------------------------------


@pytest.mark.req("S1-VER-05", "S1-VER-06")
@pytest.mark.parametrize(
    "fact",
    [
        "30 days",
        "thirty days",
        "thirty (30) days",
        "a 30-day term",
        "1000 EUR",
        "EUR 1,000.00",
        "€1 000",
        "2026-11-04",
        "4 November 2026",
        "November 4, 2026",
        "04.11.2026",
        "2026",
        "November 2026",
        "4.5%",
        "4,50 percent",
        "AC01",
        "ac01 or AC-01",
        "pacs.008",
        "30 dni",
        "tysiąc euro",
        "30 ngày",
        "тридцать дней",
        "4 listopada 2026 r.",
        "ngày 4 tháng 11 năm 2026",
    ],
)
def test_a_fact_stands_in_the_cited_passage_in_any_form(fact: str) -> None:
    verdict = check(f"The text speaks of {fact} [S2].")
    assert messages(verdict) == []


@pytest.mark.req("S1-VER-05")
@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("It takes 31 days", "31 days"),
        ("It takes 30 months", "30 months"),
        ("It takes 30 working days", "30 working days"),
        ("It costs USD 1,000", "USD 1,000"),
        ("It costs 1001 EUR", "1001 EUR"),
        ("It was on 5 November 2026", "5 November 2026"),
        ("It was in December 2026", "December 2026"),
        ("It bears AC02", "AC02"),
        ("It follows pacs.009", "pacs.009"),
        ("It rose by 4.6 %", "4.6 %"),
        ("It rose by 4.5 percentage points", "4.5 percentage points"),
        ("So says clause 7.3", "clause 7.3"),
        (
            "Pay to PL61 1090 1014 0000 0712 1981 2874",
            "PL61 1090 1014 0000 0712 1981 2874",
        ),
        ("There are eighty of them", "eighty"),
    ],
)
def test_another_fact_is_flagged(sentence: str, text: str) -> None:
    verdict = check(f"{sentence} [S2].")
    assert messages(verdict) == [f'"{text}" not found in S2']


@pytest.mark.req("S1-VER-05")
@pytest.mark.parametrize("clause", ["Clause 7.2", "clause 7.2", "Section 7.2", "7.2"])
def test_a_clause_is_found_by_its_number(clause: str) -> None:
    assert check(f"{clause} allows it [S1].").outcome is Outcome.VERIFIED


def test_a_nested_clause_is_found_by_the_lines_it_opens() -> None:
    article = (
        "Article 6\nLawfulness\n1. Processing is lawful if:\n(a) of\n(b) it is\n2. Not"
    )
    passages = [Read("d1:0-9", article)]
    assert check_draft("See Article 6(1)(b) [S1].", passages).outcome == "verified"
    assert check_draft("See Article 6(1)(c) [S1].", passages).outcome == "flagged"
    assert check_draft("See Article 6(2)(a) [S1].", passages).outcome == "flagged"


def test_a_columns_unit_counts_for_its_cells() -> None:
    table = [Read("d1:0-9", "| Step | Term (days) |\n|---|---|\n| Appeal | 14 |")]
    assert check_draft("The term is 14 days [S1].", table).outcome == "verified"
    assert check_draft("The term is 14 months [S1].", table).outcome == "flagged"


def test_the_numbers_of_a_list_are_no_facts() -> None:
    draft = "1. Thirty days [S2].\n2) AC01 [S2].\n"
    assert check(draft).outcome is Outcome.VERIFIED


# --- Sentences and citations ---------------------------------------------------


@pytest.mark.req("S1-VER-07")
def test_a_sentence_may_use_any_passage_that_it_cites_or_all() -> None:
    assert check("Ninety days or 200 euros [S1], [S3].").outcome is Outcome.VERIFIED
    assert check("Ninety days. It is so [S2].").outcome is Outcome.VERIFIED
    assert messages(check("Ninety days [S2; S3].")) == [
        '"Ninety days" not found in S2–S3'
    ]


@pytest.mark.req("S1-VER-08")
@pytest.mark.parametrize(
    ("draft", "flagged"),
    [
        # A line break ends a sentence, and so do the marks.
        ("Within 90 days\nit ends [S2].", False),
        ("Within 90 days. It ends [S2].", False),
        ("Within 90 days! It ends [S2].", False),
        ("Within 90 days? It ends [S2].", False),
        # A lower-case letter goes on with it, and a digit does.
        ("Within 90 days, i.e. it ends [S2].", True),
        ("Within 90 days (cf. 4.5 %) it ends [S2].", True),
        ("It ends [S2]. 90 days pass.", False),
        ("No. 90 days, ever [S2].", True),
    ],
)
def test_where_a_sentence_ends(draft: str, *, flagged: bool) -> None:
    # What stands in the sentence that cites S2 is looked for there alone.
    assert (check(draft).outcome is Outcome.FLAGGED) is flagged


@pytest.mark.req("S1-VER-09")
@pytest.mark.parametrize(
    ("draft", "flagged"),
    [
        ("It takes 90 days. [S1] It is 30 days. [S2]", False),
        ("It takes 90 days. [S2] It is 90 days. [S1]", True),
        ("It takes 90 days or 30. [S1], [S2] It is so. [S3]", False),
        ("It takes 90 days or 30. [S1]; [S2]", False),
        ("It takes 90 days etc. [S1] and 30 days [S2].", False),
        ('"Either party may end this agreement." [S1] It is 30 days. [S2]', False),
    ],
)
def test_citations_behind_the_end_mark_belong_to_it(
    draft: str, *, flagged: bool
) -> None:
    assert (check(draft).outcome is Outcome.FLAGGED) is flagged


@pytest.mark.req("S1-VER-10")
def test_a_draft_without_a_citation_is_flagged() -> None:
    verdict = check('"Either party" has thirty days.')
    assert [flag.kind for flag in verdict.flags] == [FlagKind.NO_CITATION]
    assert verdict.flags[0].message.startswith("No citation")
    assert verdict.flags[0].searched == ("S1", "S2", "S3")


@pytest.mark.req("S1-VER-11")
def test_a_citation_in_a_quote_or_of_no_passage_does_not_count() -> None:
    inside = check('It says "Either party may end this agreement [S1]".')
    assert [flag.kind for flag in inside.flags] == [FlagKind.NO_CITATION]
    beyond = check("Thirty days [S4] and [S2, S12].")
    assert messages(beyond) == [
        "[S4] is cited, but 3 passages came with the draft.",
        "[S12] is cited, but 3 passages came with the draft.",
    ]
    assert messages(check("Thirty days [S0], [S2].")) == [
        "[S0] is cited, but 3 passages came with the draft."
    ]


@pytest.mark.req("S1-VER-12")
def test_a_passage_flag_concerns_the_ref_and_not_the_draft() -> None:
    passages = [PASSAGES[0], Read("d9:0-9", None, "d9:0-9 is too wide.")]
    verdict = check_draft("Ninety days [S1]. It takes 5 weeks [S2].", passages)
    assert verdict.outcome is Outcome.FLAGGED
    assert verdict.flags == (
        Flag(FlagKind.PASSAGE, "d9:0-9", "", ("S2",), "d9:0-9 is too wide."),
    )


# --- The verdict ---------------------------------------------------------------


@pytest.mark.req("S1-VER-08", "S1-VER-09")
def test_a_draft_is_its_sentences() -> None:
    draft = 'It ends "soon. Or later" [S1]. Within 2.5 days? [S2]\nBe fair.'
    sentences = sentences_of(draft, PASSAGES)
    assert "".join(sentences) == draft
    assert [each.strip() for each in sentences if each.strip()] == [
        'It ends "soon. Or later" [S1].',
        "Within 2.5 days? [S2]",
        "Be fair.",
    ]


@pytest.mark.req("S1-VER-13")
def test_sentences_with_nothing_to_check_are_listed() -> None:
    long = "Word " * 60
    verdict = check(f"Thirty days [S2]. Be fair. {long}. [S1]\n[S3]\n")
    assert verdict.outcome is Outcome.VERIFIED
    assert verdict.unchecked_sentences == ("Be fair.", f"{long}. [S1]"[:200])
    many = check("Thirty days [S2]. " + "So it is. " * 60)
    assert len(many.unchecked_sentences) == 50
    assert check("Be fair [S1]. It is so.").unchecked_sentences == ()


@pytest.mark.req("S1-VER-14")
def test_the_three_verdicts() -> None:
    assert check("It takes ninety days [S1].").outcome is Outcome.VERIFIED
    flagged = check("It takes 13 days [S1], [S2]-[S3].")
    assert messages(flagged) == ['"13 days" not found in S1–S3']
    assert flagged.flags[0].searched == ("S1", "S2", "S3")
    nothing = check("It is allowed [S1].")
    assert nothing.outcome is Outcome.NOTHING_CHECKED
    assert nothing.note.startswith("Nothing was checked")
    many = check(" ".join(f"It takes {days} days [S1]." for days in range(100, 200)))
    assert len(many.flags) == 50


@pytest.mark.req("S1-VER-15")
def test_any_flag_wins_over_nothing_checked() -> None:
    assert check("It is allowed [S9].").outcome is Outcome.FLAGGED
    assert check("It is allowed.").outcome is Outcome.FLAGGED
    assert check("").outcome is Outcome.FLAGGED


@pytest.mark.req("S1-VER-17")
def test_a_paraphrase_that_changes_no_fact_is_not_caught() -> None:
    assert check("Nobody may ever end it with ninety days' notice [S1].").outcome == (
        Outcome.VERIFIED
    )


def test_what_was_found_says_where() -> None:
    verdict = check('"Either party … written notice" [S1] within thirty days [S2].')
    assert [(one.kind, one.passage) for one in verdict.found] == [
        ("quote", "S1"),
        ("quote", "S1"),
        ("number", "S2"),
    ]
    places = [(one.start, one.end) for one in verdict.found]
    assert [NOTICE[slice(*place)] for place in places[:2]] == [
        "Either party",
        "written notice",
    ]
    assert FEES[slice(*places[2])] == "thirty"


def test_composed_and_decomposed_letters_are_the_same() -> None:
    decomposed = "Tho\u031b\u0300i ha\u0323n la\u0300 ba mu\u031bo\u031bi nga\u0300y."
    verdict = check_draft('"Thời hạn" là 30 ngày [S1].', [Read("d1:0-30", decomposed)])
    assert verdict.outcome is Outcome.VERIFIED
    words, days = verdict.found
    assert decomposed[words.start : words.end] == "Tho\u031b\u0300i ha\u0323n"
    assert decomposed[days.start : days.end] == "ba mu\u031bo\u031bi nga\u0300y"


@pytest.mark.req("S1-VER-16")
def test_the_checks_import_no_model_and_no_network() -> None:
    allowed = {"__future__", "knowledge", "retrieval", *sys.stdlib_module_names}
    forbidden = {"asyncio", "http", "multiprocessing", "socket", "subprocess", "urllib"}
    for path in Path(str(verification.__file__)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            tops = {name.partition(".")[0] for name in names}
            assert tops <= allowed - forbidden, path
