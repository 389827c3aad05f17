"""Extraction: each format's text with its locators, and a sentence for each refusal."""

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import docx
import pytest
from docx.document import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.extraction import (
    BlockKind,
    Extracted,
    ExtractionError,
    Limits,
    extract,
    extract_in_child,
    sniff,
)
from knowledge.extraction.decoding import decode
from tests.knowledge.pdf_files import PdfFile, line, lines

T = TypeVar("T")

LIMITS = Limits()


def extracted(
    path: Path, name: str | None = None, limits: Limits = LIMITS
) -> Extracted:
    """Extract a file and check what holds for each: blocks in order, inside the text."""
    result = extract(path, name or path.name, limits)
    end = 0
    for block in result.blocks:
        assert end <= block.start < block.end <= len(result.text)
        assert result.text[block.start : block.end].strip()
        end = block.end
    for page in result.pages:
        assert 0 <= page.start <= page.end <= len(result.text)
    return result


def written(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def texts_of(result: Extracted, kind: BlockKind) -> list[str]:
    return [result.text[b.start : b.end] for b in result.blocks if b.kind is kind]


def refusal(
    path: Path, name: str | None = None, limits: Limits = LIMITS
) -> ExtractionError:
    with pytest.raises(ExtractionError) as caught:
        extract(path, name or path.name, limits)
    assert caught.value.message.endswith(".")
    return caught.value


# --- Text, Markdown, logs -------------------------------------------------------------


@pytest.mark.req("S1-ING-07", "S2-ING-01")
def test_markdown_keeps_its_own_source_without_the_head(tmp_path: Path) -> None:
    source = (
        "---\ntitle: The Rules\nupdated: 2025-03-04\nsupersedes: old.md\n---\n\n"
        "# Rules **one**\n\nA paragraph\nof two lines.\n\nUnder\n-----\n\n* item\n"
        "* [ ] item\n\n| a | b |\n|---|---|\n| c | d |\n\n"
        "```yaml\n---\ntitle: Not this\n---\n```\n"
    )
    result = extracted(written(tmp_path, "rules.md", source))
    assert result.text == source.split("---\n\n", 1)[1].rstrip("\n")
    assert result.title == "The Rules"
    assert result.front_matter == {
        "title": "The Rules", "updated": "2025-03-04", "supersedes": "old.md",
    }  # fmt: skip
    headings = [
        (result.text[b.start : b.end], b.level) for b in result.blocks if b.level
    ]
    assert headings == [("# Rules **one**", 1), ("Under\n-----", 2)]
    assert texts_of(result, BlockKind.LIST_ITEM) == ["* item", "* [ ] item"]
    assert texts_of(result, BlockKind.TABLE_ROW) == [
        "| a | b |",
        "|---|---|",
        "| c | d |",
    ]
    assert texts_of(result, BlockKind.CODE)[0].startswith(
        "```yaml\n---\ntitle: Not this"
    )


def test_a_head_that_cannot_be_read_stays_text_and_is_reported(tmp_path: Path) -> None:
    result = extracted(written(tmp_path, "a.md", "---\na: [b\n---\n# Title\n"))
    assert result.text.startswith("---\na: [b")
    assert result.title == "Title"
    assert "front matter" in result.report[0]


def test_plain_text_has_headings_in_capitals_and_items(tmp_path: Path) -> None:
    result = extracted(
        written(
            tmp_path,
            "a.txt",
            "GENERAL RULES\n\nText is\nwrapped.\n\n1. one.\n2. two.\n",
        )
    )
    assert result.title == "GENERAL RULES"
    assert texts_of(result, BlockKind.LIST_ITEM) == ["1. one.", "2. two."]
    assert texts_of(result, BlockKind.PARAGRAPH) == ["Text is\nwrapped."]


def test_log_loses_terminal_codes_and_keeps_broken_bytes_readable(
    tmp_path: Path,
) -> None:
    data = b"\x1b[31mERR\x1b[0mOR one\r\n" + "zażółć gęślą\n".encode() + b"\xff two\n"
    result = extracted(written(tmp_path, "app.log.1", data))
    assert result.kind == "log"
    assert texts_of(result, BlockKind.LINE) == [
        "ERROR one",
        "zażółć gęślą",
        "\ufffd two",
    ]
    assert "1 byte was not readable" in result.report[0]


@pytest.mark.req("REL-X1")
def test_control_characters_are_removed_and_counted(tmp_path: Path) -> None:
    result = extracted(
        written(tmp_path, "a.txt", "One\x07 two of the words\x0c three\x01.")
    )
    assert result.text == "One two of the words\n three."
    assert "2 unreadable control characters" in result.report[0]


POLISH = "Zażółć gęślą jaźń. Wniosek o urlop należy złożyć do przełożonego."
RUSSIAN = "Заявление подаётся руководителю отдела не позднее пяти дней."
VIETNAMESE = "Chữ Quốc ngữ là hệ chữ viết thống nhất của tiếng Việt hiện nay"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (POLISH, "utf-8-sig"),
        (POLISH, "utf-16"),
        (POLISH, "utf-16-be"),
        (RUSSIAN, "utf-16-le"),
        (POLISH, "cp1250"),
        (POLISH, "iso8859_2"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (RUSSIAN, "cp866"),
        ("Cererea se depune în scris, fără întârziere, şi se aşteaptă.", "cp1250"),
        ("Das Büro ist geöffnet – für alle.", "cp1252"),
    ],
)
def test_encodings_are_told_apart(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


def test_vietnamese_code_page_is_composed() -> None:
    marks = {"ữ": "ư\u0303", "ố": "ô\u0301", "ệ": "ê\u0323", "ế": "ê\u0301", "ấ": "â\u0301",
             "ủ": "u\u0309", "ệt": "ê\u0323t", "ốn": "ô\u0301n", "ệ n": "ê\u0323 n"}  # fmt: skip
    data = "".join(marks.get(c, c) for c in VIETNAMESE).encode("cp1258")
    assert decode(data).text == VIETNAMESE


# --- Tables and JSON ------------------------------------------------------------------


@pytest.mark.req("S2-ING-01")
def test_csv_rows_are_blocks_with_their_own_cells(tmp_path: Path) -> None:
    data = 'Item;Price;Note;\nDesk;143,1;"two\nlines"\nTV 27";5;\n'
    result = extracted(written(tmp_path, "prices.csv", data))
    assert texts_of(result, BlockKind.TABLE_ROW) == [
        "Item | Price | Note",
        "Desk | 143,1 | two lines",
        'TV 27" | 5',
    ]
    assert result.properties == {"rows": "3", "columns": "3"}


def test_csv_with_a_quote_that_nobody_closed_keeps_its_rows(tmp_path: Path) -> None:
    data = 'a,b\n"open,1\n' + "x,2\n" * 400
    result = extracted(written(tmp_path, "a.csv", data))
    assert len(result.blocks) == 402
    assert "line 2" in result.report[0]


def test_json_is_laid_out_with_its_own_numbers_and_letters(tmp_path: Path) -> None:
    data = '[{"name":"\\u0416uk","price":1.10,"tags":[]},{"name":"b","ok":true}]'
    result = extracted(written(tmp_path, "a.json", data))
    assert '"name": "Жuk"' in result.text
    assert '"price": 1.10' in result.text
    assert len(result.blocks) == 3
    assert json.loads(result.text)[0]["name"] == "Жuk"


def test_json_lines_are_read(tmp_path: Path) -> None:
    result = extracted(written(tmp_path, "a.jsonl", '{"a": 1}\n{"a": 2}\n'))
    assert result.text.count('"a"') == 2


@pytest.mark.req("REL-P5")
@pytest.mark.parametrize(
    ("data", "why"),
    [
        ('{"a": 1, "a": 2}', "twice"),
        ("[NaN]", "malformed"),
        ("[1 2]", "comma"),
        ("[1,]", "wrong place"),
        ('{"a" 1}', "comma or colon"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1} x', "follows its end"),
        ("[1", "malformed"),
    ],
)
def test_what_is_not_json_is_refused_with_the_reason(
    tmp_path: Path, data: str, why: str
) -> None:
    error = refusal(written(tmp_path, "a.json", data))
    assert (error.code, why in error.message) == ("corrupt", True)


@pytest.mark.req("S2-ING-06", "REL-P9")
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.log", "a.json"])
def test_a_document_without_a_word_is_refused(tmp_path: Path, name: str) -> None:
    data = "[]" if name == "a.json" else " \n - - \n"
    assert refusal(written(tmp_path, name, data)).code == "empty"


# --- What a file is -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b"junk %PDF-1.4", "a.pdf", "pdf"),
        (b"PK\x03\x04", "a.docx", "docx"),
        (b"text", "A.MARKDOWN", "markdown"),
        (b"a,b", "a.tsv", "csv"),
        (b"{}", "a.ndjson", "json"),
        (b"line", "server.log.3", "log"),
        (b"text", "README", "text"),
        (b"print(1)", "a.py", "text"),
        ("Ж".encode("utf-16-le") * 50, "a.txt", "text"),
    ],
)
def test_kinds_are_told_by_content_and_text_kinds_by_name(
    head: bytes, name: str, kind: str
) -> None:
    assert sniff(head, name) == kind


@pytest.mark.req("REL-U1")
@pytest.mark.parametrize(
    ("head", "name", "code"),
    [
        (b"", "a.pdf", "empty"),
        (b"not a pdf", "a.pdf", "corrupt"),
        (b"not a zip", "a.docx", "corrupt"),
        (b"%PDF-1.7", "a.txt", "mismatch"),
        (b"PK\x03\x04", "a.md", "mismatch"),
        (b"PK\x03\x04", "a.xlsx", "unsupported"),
        (b"\x89PNG\r\n", "a.png", "unsupported"),
        (b"{\\rtf1", "a.rtf", "unsupported"),
        (b"<html>", "a.html", "unsupported"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.doc", "unsupported"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
         "a.docx", "encrypted"),
        (bytes(range(256)) * 8, "a.bin", "unsupported"),
    ],
)  # fmt: skip
def test_other_files_are_refused_with_what_to_do(
    head: bytes, name: str, code: str
) -> None:
    with pytest.raises(ExtractionError) as caught:
        sniff(head, name)
    assert caught.value.code == code
    assert "lease" in caught.value.message


# --- DOCX -----------------------------------------------------------------------------


def saved(document: Document, folder: Path) -> Path:
    path = folder / "file.docx"
    document.save(str(path))
    return path


@pytest.mark.req("S2-ING-01", "S1-ING-02")
def test_docx_gives_headings_lists_and_tables_in_order(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Leave rules", 0)
    document.add_heading("Annual leave", 1)
    document.add_paragraph("Each employee has 26 days.")
    document.add_paragraph("first", style="List Bullet")
    table = document.add_table(rows=2, cols=3)
    for cell, text in zip(
        [c for row in table.rows for c in row.cells], "abcdef", strict=True
    ):
        cell.text = text
    table.cell(1, 0).merge(table.cell(1, 1))
    document.add_paragraph("After the table.")
    result = extracted(saved(document, tmp_path))
    assert result.title == "Leave rules"
    assert result.text.split("\n") == [
        "Leave rules", "", "Annual leave", "", "Each employee has 26 days.", "",
        "- first", "", "a | b | c", "d e | f", "", "After the table.",
    ]  # fmt: skip
    assert [b.level for b in result.blocks if b.kind is BlockKind.HEADING] == [1, 1]


def test_docx_shows_the_numbers_that_word_counts(tmp_path: Path) -> None:
    document = docx.Document()
    numbering = document.part.numbering_part.element
    numbering.insert(0, parse_xml(
        f'<w:abstractNum {nsdecls("w")} w:abstractNumId="90">'
        '<w:lvl w:ilvl="0"><w:start w:val="7"/><w:numFmt w:val="decimal"/>'
        '<w:lvlText w:val="%1."/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/>'
        '<w:lvlText w:val="%1.%2"/></w:lvl>'
        '<w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/>'
        '<w:lvlText w:val="(%3)"/></w:lvl></w:abstractNum>'
    ))  # fmt: skip
    numbering.append(parse_xml(
        f'<w:num {nsdecls("w")} w:numId="91"><w:abstractNumId w:val="90"/></w:num>'
    ))  # fmt: skip
    for text, level in [("Term", 0), ("Start", 1), ("now", 2), ("End", 1), ("Law", 0)]:
        paragraph = document.add_paragraph(text)
        paragraph._p.get_or_add_pPr().append(parse_xml(
            f'<w:numPr {nsdecls("w")}><w:ilvl w:val="{level}"/>'
            '<w:numId w:val="91"/></w:numPr>'
        ))  # fmt: skip
    result = extracted(saved(document, tmp_path))
    assert texts_of(result, BlockKind.LIST_ITEM) == [
        "7. Term", "7.1 Start", "(a) now", "7.2 End", "8. Law",
    ]  # fmt: skip


def test_docx_keeps_insertions_and_drops_deletions(tmp_path: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Fee is ")
    for tag, name, text in [("del", "delText", "five"), ("ins", "t", "six")]:
        paragraph._p.append(parse_xml(
            f'<w:{tag} {nsdecls("w")}><w:r><w:{name}>{text}</w:{name}></w:r></w:{tag}>'
        ))  # fmt: skip
    assert extracted(saved(document, tmp_path)).text == "Fee is six"


def test_docx_reads_content_controls_and_text_boxes_once(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("Before")
    body = document.element.body
    body.insert(1, parse_xml(
        f'<w:sdt {nsdecls("w")}><w:sdtContent><w:p><w:r><w:t>Controlled</w:t></w:r></w:p>'
        "</w:sdtContent></w:sdt>"
    ))  # fmt: skip
    box = "<w:txbxContent><w:p><w:r><w:t>Boxed</w:t></w:r></w:p></w:txbxContent>"
    body.insert(2, parse_xml(
        f'<w:p {nsdecls("w")} xmlns:mc="http://schemas.openxmlformats.org/'
        'markup-compatibility/2006"><w:r><mc:AlternateContent>'
        f'<mc:Choice Requires="wps">{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>'
        "</mc:AlternateContent></w:r></w:p>"
    ))  # fmt: skip
    result = extracted(saved(document, tmp_path))
    assert result.text.split("\n\n") == ["Before", "Controlled", "Boxed"]


def test_docx_margins_are_read_once_and_contents_left_out(tmp_path: Path) -> None:
    document = docx.Document()
    document.styles.add_style("toc 1", WD_STYLE_TYPE.PARAGRAPH)
    document.add_paragraph("Scope ........ 2", style="toc 1")
    document.add_heading("Scope", 1)
    document.add_paragraph("Text.")
    document.sections[0].header.paragraphs[0].text = "QT-07 issue 3"
    document.sections[0].footer.paragraphs[0].text = "Scope"
    result = extracted(saved(document, tmp_path))
    assert result.text.split("\n\n") == ["Scope", "Text.", "QT-07 issue 3"]
    assert "table of contents" in result.report[0]


def test_docx_without_styles_has_its_bold_lines_as_headings(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph().add_run("Who pays").bold = True
    document.add_paragraph("The bank pays.")
    result = extracted(saved(document, tmp_path))
    assert texts_of(result, BlockKind.HEADING) == ["Who pays"]


@pytest.mark.req("S2-ING-02")
def test_docx_that_the_library_cannot_open_is_read_from_its_xml(tmp_path: Path) -> None:
    strict = "http://purl.oclc.org/ooxml"
    path = tmp_path / "strict.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "_rels/.rels",
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
            f'relationships"><Relationship Id="r1" Type="{strict}/officeDocument/'
            'relationships/officeDocument" Target="word/document.xml"/></Relationships>',
        )
        archive.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{strict}/wordprocessingml/main"><w:body><w:p><w:pPr>'
            '<w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>Heading</w:t></w:r></w:p>'
            "<w:p><w:r><w:t>Strict text</w:t></w:r></w:p></w:body></w:document>",
        )
    result = extracted(path)
    assert result.text == "Heading\n\nStrict text"
    assert result.blocks[0].level == 2


@pytest.mark.req("REL-P3")
def test_docx_with_entities_gives_no_file_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "entity.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "word/document.xml",
            '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
            '<w:document xmlns:w="urn:w"><w:body><w:p><w:r><w:t>a &x; b</w:t></w:r></w:p>'
            "</w:body></w:document>",
        )
    assert "root:" not in extracted(path).text


@pytest.mark.req("REL-P2")
def test_zip_bombs_are_refused_by_their_directory(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.docx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * 20_000_000)
    assert refusal(bomb).code == "too_large"
    crowd = tmp_path / "crowd.docx"
    with zipfile.ZipFile(crowd, "w") as archive:
        for index in range(30):
            archive.writestr(f"{index}.xml", "x")
    assert refusal(crowd, limits=Limits(zip_members=20)).code == "too_large"


def test_other_archives_and_cut_off_documents_are_refused(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("Text. " * 500)
    whole = saved(document, tmp_path).read_bytes()
    assert (
        refusal(written(tmp_path, "cut.docx", whole[: len(whole) // 2])).code
        == "corrupt"
    )
    archive_path = tmp_path / "files.docx"
    with zipfile.ZipFile(archive_path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert refusal(archive_path).code == "unsupported"


# --- PDF ------------------------------------------------------------------------------


@pytest.mark.req("S2-ING-03", "S1-ING-05")
def test_pdf_gives_pages_places_and_headings(tmp_path: Path) -> None:
    pdf = PdfFile()
    pdf.add(
        line("Leave rules", 72, 720, 20),
        lines(
            ["Each employee has a right to twenty-six days", "of leave in each year."],
            72,
            680,
        ),
    )
    pdf.add(lines(["The request is made in writing."], 72, 700))
    result = extracted(pdf.write(tmp_path))
    assert result.text == (
        "Leave rules\n\nEach employee has a right to twenty-six days of leave in each year."
        "\n\nThe request is made in writing."
    )
    assert [(p.number, p.extractor, p.width) for p in result.pages] == [
        (1, "pypdf", 612.0),
        (2, "pypdf", 612.0),
    ]
    second = result.pages[1]
    assert result.text[second.start : second.end] == "The request is made in writing."
    heading, paragraph, last = result.blocks
    assert (heading.kind, heading.level) == (BlockKind.HEADING, 1)
    assert (paragraph.page, last.page) == (1, 2)
    assert paragraph.bbox is not None
    left, bottom, right, top = paragraph.bbox
    assert (left, bottom, top) == (72.0, 666.0, 691.0)
    assert 250 < right < 350
    assert result.properties == {"total_pages": "2"}
    assert result.title == "Leave rules"


def test_two_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = [f"left line {i} runs over the width of it" for i in range(8)]
    right = [f"right line {i} runs over the width of it" for i in range(8)]
    pdf = PdfFile().add(
        line("A title over both columns of the page", 150, 740, 16),
        lines(left, 72, 700),
        lines(right, 320, 700),
    )
    text = extracted(pdf.write(tmp_path)).text
    assert text.index("left line 7") < text.index("right line 0")


def test_table_rows_stay_rows(tmp_path: Path) -> None:
    rows = [
        ("Code", "Name", "Fee"),
        ("QT-07", "Transfer", "5 EUR"),
        ("QT-08", "Card", "9 EUR"),
    ]
    pdf = PdfFile().add(
        *[
            line(cell, x, 700 - 16 * number)
            for number, row in enumerate(rows)
            for cell, x in zip(row, (72, 200, 350), strict=True)
        ]
    )
    result = extracted(pdf.write(tmp_path))
    assert texts_of(result, BlockKind.TABLE_ROW) == [
        "Code | Name | Fee",
        "QT-07 | Transfer | 5 EUR",
        "QT-08 | Card | 9 EUR",
    ]


def test_divided_words_ligatures_and_overprinting_are_resolved(tmp_path: Path) -> None:
    pdf = PdfFile().add(
        lines(
            ["the regulation on docu-", "ment storage and a soft\xad", "ened word"],
            72,
            700,
        ),
        line("\x02le v\x01 \x03", 72, 600, 11, "U1"),
        line("Bold", 72, 500),
        line("Bold", 72.3, 500),
    )
    text = extracted(pdf.write(tmp_path)).text
    assert "the regulation on document storage and a softened word" in text
    assert "file vế ABC" in text
    assert text.count("Bold") == 1


def test_repeated_headers_and_footers_are_left_out_and_reported(tmp_path: Path) -> None:
    pdf = PdfFile()
    for number in range(1, 5):
        pdf.add(
            line("Bank of Examples, QT-07", 72, 760),
            lines([f"Paragraph of page {number} stands here."], 72, 600),
            line(f"Page {number} of 4", 280, 30),
        )
    result = extracted(pdf.write(tmp_path))
    assert result.text.count("QT-07") == 1
    assert "Page 3" not in result.text
    assert "7 repeated headers" in result.report[0]


def test_two_pages_repeat_a_header_that_is_left_out(tmp_path: Path) -> None:
    pdf = PdfFile()
    for number, text in ((1, "The bank has rules of its own."), (2, "They hold.")):
        pdf.add(line(f"Rules of the bank {number} / 2", 72, 760), line(text, 72, 600))
    result = extracted(pdf.write(tmp_path))
    assert result.text == "The bank has rules of its own.\n\nThey hold."
    assert "2 repeated headers" in result.report[0]


FILES = Path(__file__).parent / "files"


@pytest.mark.req("S2-ING-01")
def test_a_page_printed_by_a_browser_has_its_words_and_table_rows() -> None:
    path = FILES / "printed-by-a-browser.pdf"
    assert extracted(path).text == path.with_suffix(".txt").read_text("utf-8").strip()


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("[(W)80(e)-20(ek)-250(one)] TJ", "Week one"),
        ("1.5 Tc (spread words) Tj", "spread words"),
        ("[(T)-300(I)-300(T)-300(L)-300(E)-900(O)-300(N)-300(E)] TJ", "TITLE ONE"),
    ],
)
def test_gaps_between_letters_are_no_spaces(
    tmp_path: Path, shown: str, text: str
) -> None:
    pdf = PdfFile().add(f"BT /F1 11 Tf 72 700 Td {shown} ET")
    assert extracted(pdf.write(tmp_path)).text == text


def test_a_sentence_over_a_page_end_stays_whole(tmp_path: Path) -> None:
    pdf = PdfFile().add(lines(["The sentence goes on after the"], 72, 700))
    pdf.add(lines(["end of the page."], 72, 700))
    result = extracted(pdf.write(tmp_path))
    assert result.text == "The sentence goes on after the end of the page."
    first, second = result.pages
    assert result.text[second.start : second.end] == "end of the page."
    assert first.end <= second.start


def test_bookmarks_make_headings(tmp_path: Path) -> None:
    pdf = PdfFile(outline=[("Scope", 0), ("2. Fees", 0)])
    pdf.add(
        line("Scope", 72, 700), lines(["All of it is here."], 72, 660),
        line("2. Fees", 72, 620), lines(["None of them is due."], 72, 580),
    )  # fmt: skip
    result = extracted(pdf.write(tmp_path))
    assert texts_of(result, BlockKind.HEADING) == ["Scope", "2. Fees"]


def test_form_values_and_shown_comments_are_read(tmp_path: Path) -> None:
    pdf = PdfFile(
        annotations={
            0: [
                "<< /Subtype /Widget /FT /Tx /T (n) /V (Anna) /Rect [150 695 300 712] >>",
                "<< /Subtype /Widget /FT /Btn /AS /Yes /Rect [72 650 84 662] >>",
                "<< /Subtype /Widget /FT /Tx /Ff 8192 /V (secret) /Rect [72 5 90 9] >>",
                "<< /Subtype /FreeText /Contents (a remark) /Rect [300 300 400 320] >>",
            ]
        }
    )
    pdf.add(line("Name:", 72, 698), line("Agreed", 100, 652))
    text = extracted(pdf.write(tmp_path)).text
    assert "Name: | Anna" in text or "Name: Anna" in text
    assert "☒ Agreed" in text.replace(" | ", " ")
    assert text.endswith("a remark")
    assert "secret" not in text


@pytest.mark.req("S2-ING-05", "R11", "REL-P9")
def test_a_scan_is_refused_with_three_ways_out(tmp_path: Path) -> None:
    error = refusal(PdfFile(images={0}).add("").write(tmp_path))
    assert error.code == "scanned"
    for way in ("DOCX", "text", "OCR"):
        assert way in error.message


def test_fonts_that_name_no_characters_are_refused_like_a_scan(tmp_path: Path) -> None:
    data = PdfFile().add(line("abcd", 72, 700, 11, "U1")).data()
    glyphs = data.replace(b"/Type1 /BaseFont /Mapped /ToUnicode 6 0 R", (
        b"/Type0 /BaseFont /X /Encoding /Identity-H".ljust(41)
    ))  # fmt: skip
    error = refusal(written(tmp_path, "glyphs.pdf", glyphs))
    assert (error.code, "OCR" in error.message) == ("scanned", True)


@pytest.mark.req("S1-ING-06", "R11")
def test_an_invisible_text_layer_over_a_scan_counts_as_ocr(tmp_path: Path) -> None:
    pdf = PdfFile(images={0}).add(
        "3 Tr", lines(["Recognised words of a scan."], 72, 700)
    )
    pdf.add(lines(["Words that were typed."], 72, 700))
    result = extracted(pdf.write(tmp_path))
    assert [result.text[s:e] for s, e in result.ocr_spans] == [
        "Recognised words of a scan."
    ]


def test_a_page_with_only_an_image_is_reported(tmp_path: Path) -> None:
    pdf = PdfFile(images={1}).add(lines(["Some words."], 72, 700)).add("")
    assert "No text on page 2" in extracted(pdf.write(tmp_path)).report[0]


@pytest.mark.req("S2-ING-04", "D30")
def test_a_pdf_that_pypdf_cannot_open_is_read_by_its_operators(tmp_path: Path) -> None:
    pdf = PdfFile().add(
        line("Saved \\(words\\) here", 72, 700), line("v\x01 \x03", 72, 650, 11, "U1")
    )
    pdf.add(line("Second page", 72, 700))
    data = pdf.data()
    broken = data[: data.index(b"xref\n")].replace(b"/Type /Catalog", b"/Type /Xatalog")
    result = extracted(written(tmp_path, "broken.pdf", b"junk\n" + broken))
    assert result.text == "Saved \\(words\\) here\n\nvế ABC\n\nSecond page"
    assert {page.extractor for page in result.pages} == {"operators"}
    assert "damaged" in result.report[0]


@pytest.mark.parametrize("password", ["", "open sesame"])
def test_encrypted_pdfs_open_without_a_password_or_not_at_all(
    tmp_path: Path, password: str
) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(
        PdfReader(PdfFile().add(lines(["Locked words."], 72, 700)).write(tmp_path))
    )
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    path = tmp_path / "locked.pdf"
    writer.write(path)
    if password:
        assert refusal(path).code == "encrypted"
    else:
        assert extracted(path).text == "Locked words."


def test_a_pdf_without_pages_or_structure_is_refused(tmp_path: Path) -> None:
    assert refusal(written(tmp_path, "a.pdf", b"%PDF-1.4 nothing")).code == "corrupt"
    assert refusal(PdfFile().add("").write(tmp_path)).code == "empty"
    too_long = PdfFile().add("").add("").write(tmp_path)
    assert refusal(too_long, limits=Limits(pages=1)).code == "too_large"


@pytest.mark.req("REL-P10")
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_mutated_pdfs_end_in_text_or_a_sentence(data: st.DataObject) -> None:
    whole = bytearray(PdfFile().add(line("Words to be found.", 72, 700)).data())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(8, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    del whole[data.draw(st.integers(len(whole) // 2, len(whole))) :]
    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(bytes(whole))
        file.flush()
        assert ends_well(Path(file.name))


def ends_well(path: Path) -> bool:
    """Tell whether a file gives text, or a refusal that is a sentence."""
    try:
        return bool(extract(path, "mutated.pdf", LIMITS).text)
    except ExtractionError as error:
        return error.message.endswith(".")


# --- The child process ----------------------------------------------------------------


@pytest.mark.req("REL-P1", "D22")
def test_the_child_gives_what_this_process_would(tmp_path: Path) -> None:
    pdf = PdfFile().add(line("Title", 72, 720, 20), lines(["Words."], 72, 680))
    path = pdf.write(tmp_path)
    assert extract_in_child(path, "a.pdf", LIMITS) == extract(path, "a.pdf", LIMITS)
    head = written(tmp_path, "a.md", "---\ntags: [a, b]\n---\n# T\n\nĐ text.")
    assert extract_in_child(head, "a.md", LIMITS) == extract(head, "a.md", LIMITS)


def test_the_child_hands_a_refusal_back(tmp_path: Path) -> None:
    with pytest.raises(ExtractionError) as caught:
        extract_in_child(written(tmp_path, "a.txt", b" "), "a.txt", LIMITS)
    assert caught.value.code == "empty"


@pytest.mark.req("REL-P1", "REL-P10")
@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(wall_seconds=0.05), "timeout"),
        (Limits(cpu_seconds=1, text_characters=10**9), "timeout"),
        (Limits(memory_bytes=120 * 1024 * 1024), "too_large"),
    ],
)
def test_the_child_is_stopped_at_its_limits(
    tmp_path: Path, limits: Limits, code: str
) -> None:
    path = written(tmp_path, "a.json", "[" + ",".join(["[1,2,3,4]"] * 1_500_000) + "]")
    with pytest.raises(ExtractionError) as caught:
        extract_in_child(path, "a.json", limits)
    assert caught.value.code in {code, "crashed"}
    assert "Traceback" not in caught.value.message


def run_probe(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.req("REL-P1")
def test_importing_the_package_loads_no_parser() -> None:
    probe = run_probe(
        "import sys, knowledge.extraction; "
        "print([m for m in ('pypdf', 'docx', 'lxml', 'django') if m in sys.modules])"
    )
    assert probe.stdout.strip() == "[]"


@pytest.mark.req("REL-P1", "D22")
def test_the_child_sees_no_secret_and_dies_with_its_parent(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", "[" + ",".join(["[1,2,3,4]"] * 1_500_000) + "]")
    start = (
        "import sys; from pathlib import Path; "
        "from knowledge.extraction import extract_in_child, Limits; "
        "extract_in_child(Path(sys.argv[1]), 'a.json', Limits())"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", start, str(path)],
        env={**os.environ, "DATABASE_URL": "postgres://secret"},
    )
    child = wait_for(lambda: child_of(parent.pid))
    environment = wait_for(lambda: Path(f"/proc/{child}/environ").read_bytes())
    assert b"secret" not in environment
    parent.kill()
    parent.wait()
    assert wait_for(
        lambda: not Path(f"/proc/{child}/stat").exists() or is_zombie(child)
    )


def child_of(pid: int) -> int | None:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else None


def is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def wait_for(probe: Callable[[], T | None]) -> T:
    for _ in range(600):
        found = probe()
        if found:
            return found
        time.sleep(0.05)
    pytest.fail("It did not happen within thirty seconds.")
