"""Headings and numbered clauses with their offsets and paths."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.extraction.blocks import Block, BlockKind
from knowledge.extraction.plaintext import read_blocks
from knowledge.structure import Section, build_sections, path_at, plain_heading


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
