"""Named clauses looked up in the structure map, within the reader's reach."""

import pytest
from django.utils import timezone

from knowledge.extraction import Extracted
from knowledge.extraction.plaintext import read_blocks
from knowledge.models import Document, Layer, Section, Source
from knowledge.naming import name_keys
from knowledge.publishing import Prepared, sections_of
from knowledge.structure.sections import build_sections
from retrieval.reach import Reach
from retrieval.results import Match
from retrieval.sections import SectionsFound, find_sections
from tests.retrieval.shelf import layer_of, put, reader_of

pytestmark = pytest.mark.django_db

CHARTER = """# Works Charter

## Chapter I – Work

### Article 4 – Hours

1. Eight hours are a day's work.

2. Rest is due:

(a) at noon;

(b) at night.

### Article 5 – Pay

Pay is due monthly.
"""
STATUTE = "# Quarry Statute\n\n### Article 4 – Dust\n\n1. Masks are worn.\n"
NGHI_DINH = (
    "# Nghị định về mỏ đá\n\n### Điều 5. An toàn\n\n1. Đội mũ.\n\n2. Đeo găng.\n"
)
KODEKS = (
    "# Kodeks pracy\n\nArt. 31. 1. Praca jest jawna.\n2. Urlop:\n1) płatny;\n2) inny.\n"
)
CONTRACT = "# Supply Contract\n\n## 7. Term\n\n7.1 Start. At once.\n\n7.2 End. In May (a) or June.\n"


def write(layer: Layer, text: str, path: str, **fields: object) -> Document:
    """Put a text with its structure map, in one passage."""
    source: Source = put(layer, text, path=path, **fields).source
    document = source.documents.get()
    blocks = tuple(read_blocks(text, markdown=True))
    document.title = text.split("\n", 1)[0].lstrip("# ")
    document.names = name_keys(document.title, path, {})
    document.save()
    extracted = Extracted(
        text=text, kind="markdown", title=document.title, blocks=blocks
    )
    prepared = Prepared(extracted, build_sections(text, blocks), (), ())
    Section.objects.bulk_create(sections_of(document, prepared))
    return document


def look(query: str, *slugs: str, **options: object) -> SectionsFound:
    reader = reader_of(*(slugs or ("law",)))
    return find_sections(Reach.of(reader), query, **options)  # type: ignore[arg-type]


def found(result: SectionsFound) -> list[tuple[str, str]]:
    return [(hit.citation.file, hit.text.split("\n")[0]) for hit in result.hits]


@pytest.mark.req("S1-HYB-09", "S1-ASK-14")
def test_a_named_clause_comes_verbatim_with_its_citation() -> None:
    document = write(layer_of("law"), CHARTER, "charter.md")
    (hit,) = look("What does Article 4(2) say?").hits
    start = CHARTER.index("2. Rest")
    assert hit.match is Match.EXACT
    assert hit.passage_id is None
    assert hit.text == CHARTER[start : CHARTER.index("(b) at night.") + 13]
    assert hit.ref == document.ref(start, start + len(hit.text))
    assert hit.citation.lines == "9-13"
    assert hit.citation.clause_path.endswith("Article 4 – Hours > 2")
    assert not hit.cut


@pytest.mark.req("S1-ASK-13", "S2-LNG-01", "S3-LNG-01")
@pytest.mark.parametrize(
    ("query", "begins"),
    [
        ("khoản 2 Điều 5", "2. Đeo găng."),
        ("dieu 5 khoan 2", "2. Đeo găng."),
        ("art. 31 ust. 2 pkt 1", "1) płatny;"),
        ("art. 31 ust. 1", "1. Praca"),
        ("clause 7.2", "7.2 End."),
        ("7.2", "7.2 End."),
        ("section 7", "## 7. Term"),
        ("clause 7.2(a)", "7.2 End."),
        ("point (b) of Article 4(2)", "(b) at night."),
        ("Chapter I Article 5", "### Article 5"),
    ],
)
def test_clauses_are_found_as_people_write_them(query: str, begins: str) -> None:
    layer = layer_of("law")
    for text in (CHARTER, NGHI_DINH, KODEKS, CONTRACT):
        write(layer, text, f"{text[2:6].strip()}.md")
    (hit,) = look(query).hits
    assert hit.text.startswith(begins)


@pytest.mark.req("S1-ASK-15", "S1-MIS-05")
def test_each_document_with_the_number_comes_in_the_order_of_the_paths() -> None:
    layer = layer_of("law")
    write(layer, STATUTE, "b/statute.md")
    write(layer, CHARTER, "a/charter.md")
    assert found(look("Articles 4 and 5")) == [
        ("a/charter.md", "### Article 4 – Hours"),
        ("b/statute.md", "### Article 4 – Dust"),
        ("a/charter.md", "### Article 5 – Pay"),
    ]


@pytest.mark.req("D34")
@pytest.mark.parametrize(
    "query",
    [
        "Article 4 of the Quarry Statute",
        "quarry statute art. 4",
        "In the Quarry Statute, what says Article 4?",
        "Article 4 QS",
    ],
)
def test_the_document_that_the_question_names_comes_first(query: str) -> None:
    layer = layer_of("law")
    write(layer, CHARTER, "a/charter.md")
    write(layer, STATUTE, "b/statute.md")
    assert [hit.citation.file for hit in look(query).hits] == [
        "b/statute.md",
        "a/charter.md",
    ]


@pytest.mark.req("D34", "S1-ASK-16")
def test_what_the_named_document_does_not_bear_is_missing() -> None:
    layer = layer_of("law")
    write(layer, CHARTER, "charter.md")
    write(layer, STATUTE, "statute.md")
    result = look("What says Article 5 of the Quarry Statute?")
    assert not result.hits
    assert [one.written for one in result.missing] == ["Article 5"]
    assert [one.written for one in look("Article 99").missing] == ["Article 99"]
    for query in ("99.1", "Python 4.1", "part 99"):
        result = look(query)
        assert (result.hits, result.missing, result.note) == ((), (), "")


@pytest.mark.req("S1-HYB-09", "S2-VIS-01", "S2-ING-10")
def test_only_sections_within_reach_are_found() -> None:
    write(layer_of("law"), CHARTER, "charter.md")
    hidden = write(layer_of("vault"), STATUTE, "statute.md")
    off = write(layer_of("law"), STATUTE + "\n", "off.md", enabled=False)
    past = timezone.now() - timezone.timedelta(days=1)
    write(layer_of("law"), STATUTE + "\n\n", "expired.md", expires_at=past)
    assert [hit.citation.file for hit in look("Article 4").hits] == ["charter.md"]
    both = look("Article 4", "law", "vault").hits
    assert [hit.citation.file for hit in both] == ["charter.md", "statute.md"]
    assert look("Article 4 of the Quarry Statute").missing == ()
    Source.objects.filter(pk=off.source_id).update(enabled=True)
    Document.objects.filter(pk=hidden.pk).update(is_current=False)
    names = [hit.citation.file for hit in look("Article 4", "law", "vault").hits]
    assert names == ["charter.md", "off.md"]


@pytest.mark.req("S1-HYB-05")
def test_layers_and_metadata_narrow_sections_as_passages() -> None:
    write(layer_of("law", "one"), CHARTER, "charter.md")
    write(layer_of("law", "two"), STATUTE, "statute.md")
    reader = reader_of("law")
    two = frozenset({layer_of("law", "two").pk})
    (hit,) = find_sections(Reach.of(reader, two), "Article 4").hits
    assert hit.citation.layer == "two"
    reach = Reach.of(reader, None, {"page": "3"})
    assert find_sections(reach, "Article 4").hits == ()


@pytest.mark.req("S1-MIS-05", "S1-MIS-06", "S1-MIS-10")
def test_ten_sections_come_and_the_note_counts_the_rest() -> None:
    layer = layer_of("law")
    for number in range(12):
        write(
            layer,
            f"# Rule book {number:02}\n\n### Article 4\n\nText.",
            f"{number:02}.md",
        )
    result = look("Article 4")
    assert [hit.citation.file for hit in result.hits] == [
        f"{n:02}.md" for n in range(10)
    ]
    assert result.note == (
        "2 more sections match and were not read. Name a layer to see the others."
    )
    note = look("Articles 4 and 9").note
    assert "Ask about fewer clauses, or name a layer." in note


@pytest.mark.req("S1-MIS-05")
def test_counting_stops_at_fifty() -> None:
    layer = layer_of("law")
    text = "".join(
        f"## Chapter {n}\n\n### Article 4\n\nText.\n\n" for n in range(1, 60)
    )
    write(layer, f"# Book\n\n{text}", "book.md")
    assert look("Article 4").note.startswith("At least 40 more sections match")


@pytest.mark.req("S1-MIS-08", "S1-MIS-10")
def test_only_the_first_ten_references_are_looked_up() -> None:
    write(layer_of("law"), CHARTER, "charter.md")
    result = look("Articles 1 to 12")
    assert len(result.references) == 10
    assert result.note == (
        "Only the first 10 references were looked up, not Articles 11, Articles 12."
    )


@pytest.mark.req("S1-MIS-01", "S1-MIS-04")
def test_a_section_over_its_share_is_cut_at_a_word() -> None:
    body = "word " * 400
    write(
        layer_of("law"),
        f"# Book\n\n### Article 4\n\n{body}\n\n### Article 5\n\n{body}",
        "b.md",
    )
    first, second = look("Articles 4 and 5", budget=1_000).hits
    for hit in (first, second):
        assert hit.cut
        assert hit.text.endswith("word")
        assert hit.ref.endswith(
            f"-{int(hit.ref.split(':')[1].split('-')[0]) + len(hit.text)}"
        )
    assert len(first.text) + len(second.text) <= 1_000
    result = look("Articles 4 and 5", budget=300)
    assert len(result.hits) == 1
    assert result.note == "1 section no longer fits: Article 5 (b.md)."
