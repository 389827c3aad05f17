"""Citations: where a hit stands, what its document declares, and refs that open."""

from datetime import date

import pytest

from knowledge.models import Document, Layer, Passage, Source
from knowledge.models.document import DateSource
from retrieval.citations import cite, cited_rows, parse_ref, resolve_ref
from retrieval.reach import Reach
from retrieval.results import Citation
from tests.retrieval.shelf import layer_of, put, reader_of

pytestmark = pytest.mark.django_db


def citation(passage: Passage) -> Citation:
    """Return the citation of one passage as it stands now."""
    reach = Reach.of(reader_of(passage.knowledge_base.slug))
    return cite(reach, cited_rows(reach, [passage.pk]))[passage.pk]


@pytest.mark.req("S1-ING-01", "S1-ING-05", "S3-CIT-01")
def test_says_where_a_passage_stands() -> None:
    """Path in the folder, page, lines, clause, title, revision and time of indexing."""
    passage = put(layer_of("rules"), "The fee.", path="2026/fees.pdf", title="Fees")
    Passage.objects.update(
        page=3, line_start=30, line_end=31, clause_path="7 Fees > 7.2 Cards"
    )
    Document.objects.update(date=date(2026, 3, 1), date_source=DateSource.FRONT_MATTER)
    document = Document.objects.get()
    found = citation(passage)
    assert found == Citation(
        ref=f"d{document.number}:0-8",
        title="Fees",
        knowledge_base="rules",
        layer="main",
        file="2026/fees.pdf",
        page=3,
        lines="30-31",
        clause_path="7 Fees > 7.2 Cards",
        date=date(2026, 3, 1),
        date_source="front_matter",
        archived=False,
        replaced_by=None,
        text_origin="text",
        revision=f"d{document.number}",
        indexed_at=document.created_at,
        url=f"/read/d{document.number}:0-8/",
    )


@pytest.mark.req("S1-DAT-02", "S1-ING-05")
def test_what_is_not_known_is_null() -> None:
    """No date, no page; one line is written as one."""
    found = citation(put(layer_of("rules"), "The fee."))
    assert (found.date, found.date_source, found.page) == (None, None, None)
    assert found.lines == "1"


@pytest.mark.req("S1-DAT-05", "S1-DAT-06", "D32")
def test_archived_follows_the_layers_patterns_now() -> None:
    """A changed pattern needs no new ingest."""
    layer = layer_of("rules")
    old = put(layer, "Old fee.", path="archive/2019/fees.md")
    new = put(layer, "New fee.", path="fees.md")
    assert not citation(old).archived
    Layer.objects.filter(pk=layer.pk).update(archived_patterns=["archive/*"])
    assert citation(old).archived
    assert not citation(new).archived


@pytest.mark.req("S1-DAT-04", "S1-ING-07")
@pytest.mark.parametrize(
    ("written", "by"),
    [
        ("rules/2019/fees.md", "rules/fees-2026.md"),
        ("./rules/2019/fees.md", "rules/fees-2026.md"),
        ("2019/fees.md", "rules/fees-2026.md"),
        ("fees.md", "rules/fees-2026.md"),
        ("other.md\n2019/fees.md", "rules/fees-2026.md"),
        ("2018/fees.md", None),
        ("other-fees.md", None),
    ],
)
def test_replaced_by_names_the_document_that_says_so(
    written: str, by: str | None
) -> None:
    """A path from the top, from the declaring document's folder, or a bare name."""
    layer = layer_of("rules")
    old = put(layer, "Old fee.", path="rules/2019/fees.md")
    new = put(layer, "New fee.", path="rules/fees-2026.md")
    Document.objects.filter(pk=new.document_id).update(supersedes=written)
    assert citation(old).replaced_by == by
    assert citation(new).replaced_by is None


@pytest.mark.req("S1-DAT-04", "REL-A3")
def test_replaced_by_names_nothing_that_cannot_be_found() -> None:
    """Not a document of another knowledge base, nor one that is off or replaced."""
    old = put(layer_of("rules"), "Old fee.", path="fees.md")
    other = put(layer_of("secret"), "Secret fee.", path="secret.md")
    Document.objects.filter(pk=other.document_id).update(supersedes="fees.md")
    assert citation(old).replaced_by is None
    new = put(layer_of("rules"), "New fee.", path="new.md")
    Document.objects.filter(pk=new.document_id).update(supersedes="fees.md")
    assert citation(old).replaced_by == "new.md"
    Source.objects.filter(pk=new.source_id).update(enabled=False)
    assert citation(old).replaced_by is None


@pytest.mark.parametrize(
    "ref",
    ["", "d1", "d1:5", "d1:5-5", "d1:9-3", "d0:0-1", "d01:0-1", "D1:0-1", "d1:0-1 ",
     "d1:00-1", "d1:-1-2", "1:0-1", "d1:0-1000000000", "d١:0-1", "d99999999999999999:0-1"],
)  # fmt: skip
def test_malformed_refs_are_none(ref: str) -> None:
    """Anything but `d<number>:<start>-<end>`."""
    assert parse_ref(ref) is None


@pytest.mark.req("D25", "S1-ING-02")
def test_ref_opens_for_whoever_may_see_it_and_for_nobody_else() -> None:
    """Missing, forbidden, malformed, switched off and out of bounds are all None."""
    passage = put(layer_of("rules"), "The fee.")
    ref = passage.document.ref(0, 7)
    reader = reader_of("rules")
    found = resolve_ref(reader, ref)
    assert found is not None
    document, start, end = found
    assert document.text[start:end] == "The fee"
    assert resolve_ref(reader_of(), ref) is None
    assert resolve_ref(reader, passage.document.ref(0, 9)) is None
    assert resolve_ref(reader, "d5:0-1") is None
    assert resolve_ref(reader, "nonsense") is None
    Source.objects.update(enabled=False)
    assert resolve_ref(reader, ref) is None
