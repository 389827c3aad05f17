"""Headings and numbered clauses with their offsets and paths."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.extraction.blocks import Block, BlockKind
from knowledge.extraction.plaintext import read_blocks
from knowledge.structure.labels import plain_heading
from knowledge.structure.numbers import Unit, number_key
from knowledge.structure.sections import Section, build_sections, path_at


def sections_of(text: str, *, markdown: bool = True) -> tuple[Section, ...]:
    return build_sections(text, list(read_blocks(text, markdown=markdown)))


CONTRACT = """# 7. Termination

7.1 Term. It lasts for a year.

7.2 Notice. Either party may end it:

(a) in writing; or

(b) by courier:

(i) within a week;

(ii) or two.

7.3 Effect. All ends.

# 8. Law

The law of the seat.
"""


@pytest.mark.req("S1-ING-03")
def test_the_chain_of_headings_is_the_clause_path() -> None:
    sections = sections_of(CONTRACT)
    notice = next(one for one in sections if one.number == "7.2")
    assert notice.path == ("7 Termination", "7.2 Notice")
    assert CONTRACT[notice.start : notice.end].startswith("7.2 Notice.")
    assert CONTRACT[notice.start : notice.end].endswith("(ii) or two.")
    assert [(one.kind, one.number, one.level) for one in sections] == [
        ("heading", "7", 1),
        ("clause", "7.1", 2),
        ("clause", "7.2", 2),
        ("clause", "7.2(a)", 3),
        ("clause", "7.2(b)", 3),
        ("clause", "7.2(b)(i)", 4),
        ("clause", "7.2(b)(ii)", 4),
        ("clause", "7.3", 2),
        ("heading", "8", 1),
    ]


def test_the_deepest_section_holds_an_offset() -> None:
    sections = sections_of(CONTRACT)
    assert path_at(sections, CONTRACT.index("courier"))[-1] == "(b)"
    assert path_at(sections, CONTRACT.index("All ends")) == (
        "7 Termination",
        "7.3 Effect",
    )
    assert path_at(sections, CONTRACT.index("seat")) == ("8 Law",)
    assert path_at(sections, len(CONTRACT) + 5) == ()
    assert path_at((), 3) == ()


@pytest.mark.req("S1-ING-03")
@pytest.mark.parametrize(
    ("line", "label", "number", "title"),
    [
        ("Article 12", "Article 12", "12", ""),
        ("Article 12 – Right to object", "Article 12", "12", "Right to object"),
        ("ARTICLE IV. FEES", "ARTICLE IV", "IV", "FEES"),
        ("§ 4", "§ 4", "4", ""),
        ("§ 4 ust. 2", "§ 4 ust. 2", "4(2)", ""),
        ("Art. 5.", "Art. 5", "5", ""),
        ("Art. 5a. Kary umowne", "Art. 5a", "5a", "Kary umowne"),
        ("Articolul 27 – Domiciliul", "Articolul 27", "27", "Domiciliul"),
        ("Статья 5. Право", "Статья 5", "5", "Право"),
        ("Điều 5. Phạm vi điều chỉnh", "Điều 5", "5", "Phạm vi điều chỉnh"),
        ("Khoản 2", "Khoản 2", "2", ""),
        ("Phụ lục I", "Phụ lục I", "I", ""),
        ("Annex II", "Annex II", "II", ""),
        ("Appendix C: Forms", "Appendix C", "C", "Forms"),
        ("Załącznik nr 3", "Załącznik nr 3", "3", ""),
        ("Глава 2. Общие положения", "Глава 2", "2", "Общие положения"),
        ("Rozdział II – Wolności", "Rozdział II", "II", "Wolności"),
        ("3.1.4 Backups", "3.1.4", "3.1.4", "Backups"),
    ],
)
def test_clauses_of_five_languages(
    line: str, label: str, number: str, title: str
) -> None:
    text = f"{line}\n\nThe text of it follows here."
    (section,) = sections_of(text, markdown=False)
    assert (section.label, section.number, section.title) == (label, number, title)
    assert section.start == 0
    assert section.end == len(text)


@pytest.mark.parametrize(
    "text",
    [
        "Article 5 applies to all contracts.",
        "Section 3 of the Act says otherwise, and so does this.",
        "2.5 million people live there.",
        "1990 was a good year.",
        "Điều 5 của Luật này quy định về việc đó.",
        "статья 5 закона не применяется.",
    ],
)
def test_a_line_that_only_cites_a_clause_is_none(text: str) -> None:
    assert sections_of(text) == ()


def test_paragraphs_of_an_article_carry_its_number() -> None:
    text = "### Điều 13. Ký văn bản\n\n1. Một.\n\n2. Hai:\n\na) có;\n\nđ) không.\n"
    assert [one.number for one in sections_of(text)] == [
        "13",
        "13(1)",
        "13(2)",
        "13(2)(a)",
        "13(2)(đ)",
    ]


def test_a_part_holds_the_articles_that_follow_it() -> None:
    text = "Part II\n\nArticle 3\n\nText.\n\nArticle 4\n\nText.\n\nPart III\n\nText."
    assert [one.path for one in sections_of(text)] == [
        ("Part II",),
        ("Part II", "Article 3"),
        ("Part II", "Article 4"),
        ("Part III",),
    ]


@pytest.mark.req("S1-ING-03", "S2-LNG-01")
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (
            "Art. 5. 1. Ustawa określa zasady.\n2. Drugi ustęp:\n1) raz;\n2) dwa.",
            ["5", "5(1)", "5(2)", "5(2)(1)", "5(2)(2)"],
        ),
        (
            "§ 4. 1. Najemca płaci.\n2. Wynajmujący kwituje.",
            ["4", "4(1)", "4(2)"],
        ),
        (
            "Art. 5. - (1) Prezenta lege se aplică.\n(2) Altfel, nu:\na) unu;\nb) doi.",
            ["5", "5(1)", "5(2)", "5(2)(a)", "5(2)(b)"],
        ),
        (
            "Статья 5. Право\n1. Каждый вправе:\nа) знать;\nб) молчать.\n2. Никто.",
            ["5", "5(1)", "5(1)(а)", "5(1)(б)", "5(2)"],
        ),
        ("Art. 5^1. - Adăugat.\n\nArt. 6¹. Dodany.", ["5^1", "6¹"]),
    ],
)
def test_the_first_paragraph_may_stand_on_the_line_of_its_article(
    text: str, numbers: list[str]
) -> None:
    sections = sections_of(text, markdown=False)
    assert [one.number for one in sections] == numbers
    assert {one.unit for one in sections} <= {Unit.ARTICLE, Unit.SIGN}


def test_a_number_is_of_the_unit_that_its_outermost_part_counts() -> None:
    text = "## Section 2\n\n### Article 7\n\n1. One.\n\n(4) Two.\n\n## 3. Law\n\nText."
    assert [(one.number, one.unit) for one in sections_of(text)] == [
        ("2", Unit.SECTION),
        ("7", Unit.ARTICLE),
        ("7(1)", Unit.ARTICLE),
        ("7(4)", Unit.ARTICLE),
        ("3", None),
    ]


def test_names_order_headings_that_the_outline_puts_side_by_side() -> None:
    text = (
        "## Titlul II: Drepturi\n\n### Capitolul I: Comune\n\n### Articolul 15\n\nA.\n\n"
        "### Capitolul II: Libertăți\n\n### Articolul 22\n\nB.\n\n## Part I\n\n"
        "## I. Scope\n\n## II. Terms\n"
    )
    title = "Titlul II: Drepturi"
    assert [one.path for one in sections_of(text)] == [
        (title,),
        (title, "Capitolul I: Comune"),
        (title, "Capitolul I: Comune", "Articolul 15"),
        (title, "Capitolul II: Libertăți"),
        (title, "Capitolul II: Libertăți", "Articolul 22"),
        ("Part I",),
        ("Part I", "I. Scope"),
        ("Part I", "II. Terms"),
    ]


@pytest.mark.req("S1-ING-03", "S3-LNG-01")
@pytest.mark.parametrize(
    "text",
    [
        "## Chương I\n\n## QUY ĐỊNH CHUNG\n\n### Điều 1. Phạm vi\n\nVăn bản.",
        "**Chương I**\n## QUY ĐỊNH CHUNG\n\n### Điều 1. Phạm vi\n\nVăn bản.",
        "Chương I\n\nQUY ĐỊNH CHUNG\n\nĐiều 1. Phạm vi\n\nVăn bản.",
    ],
)
def test_a_chapter_has_the_title_below_its_name(text: str) -> None:
    chapter, article = sections_of(text)
    assert (chapter.number, chapter.title) == ("I", "QUY ĐỊNH CHUNG")
    assert article.path[0] == "Chương I QUY ĐỊNH CHUNG"
    assert chapter.end == article.end == len(text)


def test_a_name_that_stands_again_below_its_heading_is_no_other_section() -> None:
    text = "# Phụ lục I — MẪU VĂN BẢN\n\n**Phụ lục I**\n\n1. Một."
    assert [one.number for one in sections_of(text)] == ["I", "I(1)"]


def test_a_document_may_begin_with_its_name_before_the_chapter() -> None:
    text = "# GDPR Chapter IV – Controllers\n\n## Notes of Part II – other\n"
    chapter, other = sections_of(text)
    assert (chapter.unit, chapter.number) == (Unit.CHAPTER, "IV")
    assert other.number == ""


def test_the_deepest_number_of_a_row_is_its_own() -> None:
    text = (
        "id | area | no | name | req | text\n"
        "V1 | Design | V1.1 | Lifecycle | V1.1.2 | Verify that threats are modelled.\n"
        "2.1.4 | [DELETED]\n"
    )
    assert [one.number for one in sections_of(text, markdown=False)] == [
        "V1.1.2",
        "2.1.4",
    ]


def test_an_abbreviation_ends_no_title() -> None:
    text = "### Art. 52\n\n3.  Wolności, o których mowa w ust. 1 i 2, są granicą.\n"
    assert [one.title for one in sections_of(text)] == ["", ""]


@pytest.mark.req("S1-ASK-13")
@pytest.mark.parametrize(
    ("number", "key"),
    [
        ("IV", "4"),
        ("XL", "40"),
        ("V6.2", "v6.2"),
        ("A.5.1", "a5.1"),
        ("5(1)(B)", "5(1)(b)"),
        ("II(7)(b)", "2(7)(b)"),
        ("C", "c"),
        ("5¹", "5^1"),
        ("7.2.", "7.2"),
        ("4(2)(Đ)", "4(2)(đ)"),
        ("", ""),
    ],
)
def test_numbers_are_looked_up_in_one_form(number: str, key: str) -> None:
    assert number_key(number) == key


def test_an_i_after_h_is_a_letter() -> None:
    text = "\n\n".join(f"({letter}) text {letter};" for letter in "ghij")
    assert [one.number for one in sections_of(text)] == ["g", "h", "i", "j"]


def test_rows_that_begin_with_a_requirement_number_are_clauses() -> None:
    text = (
        "## V2.1 Passwords\n\n| # | Description |\n| --- | --- |\n"
        "| **2.1.7** | Verify that passwords are checked against breaches. |\n"
        "| 2.50 | 3.10 |\n"
    )
    assert [(one.kind, one.number) for one in sections_of(text)] == [
        ("heading", "V2.1"),
        ("clause", "2.1.7"),
    ]


def test_marks_of_a_heading_are_not_its_title() -> None:
    assert plain_heading("## **[Fees](a.md)** and `costs` ##") == "Fees and costs"
    assert plain_heading("Title\n=====") == "Title"


@given(
    st.lists(
        st.sampled_from(
            ["# A", "## B", "### 2. C", "1. x", "2. y", "(a) z", "(i) w", "1.1 D. e",
             "Article 4", "Part I", "Plain text.", "§ 3"]
        ),
        max_size=30,
    )
)  # fmt: skip
def test_sections_nest(lines: list[str]) -> None:
    text = "\n\n".join(lines)
    sections = sections_of(text)
    for one in sections:
        assert 0 <= one.start < one.end <= len(text)
        assert one.path
    for first, second in pairwise(sections):
        assert first.start <= second.start
        assert second.start >= first.end or second.end <= first.end


def test_lines_of_a_log_are_no_clauses() -> None:
    text = "1. one\n2. two"
    blocks = [Block(BlockKind.LINE, 0, 6), Block(BlockKind.LINE, 7, 13)]
    assert build_sections(text, blocks) == ()
