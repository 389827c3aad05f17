"""What an older version left, brought in from a real file of version v0."""

import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from approvals.models import PendingQuestion
from approvals.settling import settle
from knowledge.actions import ActionError, Upload, reindex_source, upload_source
from knowledge.ingest import run_ingest
from knowledge.models import KnowledgeBase, Layer, Passage, PassageVector, Source
from knowledge.models.ingest import RunState
from knowledge.models.source import SourceState
from knowledge.permissions import Access, Reader, grant
from knowledge.purging import purge_source
from knowledge.reindexing import rewrite_terms
from retrieval.answers import NoteCode
from retrieval.ask import ask
from retrieval.confidence import Status
from retrieval.legacy_lines import MOST_LINE
from retrieval.models import Interaction, LearnedItem, Receipt, Snapshot
from retrieval.models.interaction import IMPORTED, OLD_SCALE
from retrieval.opening import check_chain, find_receipt, open_receipt
from retrieval.passages import find_span
from retrieval.promoter import promote
from retrieval.receipt_content import as_text
from retrieval.results import Occasion
from retrieval.search import search
from retrieval.snapshots import Standing, stands_of
from retrieval.verify import verify
from tests.factories import UserFactory
from tests.retrieval.shelf import layer_of

EXPORT = Path(__file__).parents[1] / "legacy" / "export-v0.jsonl"
LENDING = (
    "---\nupdated: 2024-03-01\n---\n# Lending rules\n\n## 1 Keeping\n\n"
    "A book may be kept for four weeks. It may be prolonged twice.\n\n## 2 Fines\n\n"
    "Whoever keeps a book too long pays 20 cents a day.\n"
)


@pytest.fixture(autouse=True)
def words_alone(settings: Settings) -> None:
    """Find by words, so that no model is needed."""
    settings.PORTAL_EMBEDS = False


@pytest.fixture
def base(db: None) -> KnowledgeBase:
    """A knowledge base that the export was brought into."""
    layer: Layer = layer_of("old")
    told(layer.knowledge_base)
    return layer.knowledge_base


@pytest.fixture
def reader(base: KnowledgeBase) -> Reader:
    """Somebody who may search it."""
    person = UserFactory()
    grant(base, [Access.SEARCH], to=person, actor=None)
    return Reader(person.pk)


def told(base: KnowledgeBase, path: Path = EXPORT) -> str:
    """Bring a file in, and return what the command says."""
    out = io.StringIO()
    call_command("import_v0", str(path), "--knowledge-base", base.slug, stdout=out)
    return out.getvalue()


def complete(base: KnowledgeBase) -> Source:
    """Ingest the file of the old passages in their place."""
    upload = Upload(io.BytesIO(LENDING.encode()), "rules/lending.md")
    layer = base.layers.get()
    source = upload_source(upload, layer=layer, actor=None, replace=True)
    assert run_ingest(source.runs.get().pk) == RunState.DONE
    source.refresh_from_db()
    return source


@pytest.mark.req("D26", "S1-ING-08", "S1-DAT-02")
def test_old_passages_are_found_without_date_line_or_section(
    base: KnowledgeBase, reader: Reader
) -> None:
    source = Source.objects.get(path="rules/lending.md")
    assert (source.state, source.passage_count) == (SourceState.READY, 2)
    assert "Upload its file" in source.state_reason
    (hit,) = search(reader, "prolonged").hits
    citation = hit.citation
    assert (citation.file, citation.title) == ("rules/lending.md", "Lending rules")
    assert (citation.date, citation.date_source) == (None, None)
    assert (citation.lines, citation.clause_path, citation.page) == ("", "", 1)
    assert Source.objects.get(path="rules/garden.md").title == "garden"


@pytest.mark.req("S1-ING-08", "S1-EXT-15")
def test_old_passages_cannot_be_quoted(reader: Reader) -> None:
    (hit,) = search(reader, "prolonged").hits
    assert find_span(reader, hit.ref) is None
    answer = ask(
        reader, "May a book be prolonged?", mode="extractive", occasion=Occasion("api")
    )
    assert answer.status is Status.NOT_FOUND
    assert answer.sentences == ()
    assert "Re-ingest this layer to enable extractive answers." in answer.note
    assert NoteCode.REINGEST in answer.notes
    result = verify(reader, "“It may be prolonged twice.” [S1]", [hit.ref])
    assert result.receipt_id == ""


def test_the_page_of_an_old_passage_says_what_it_is(
    reader: Reader, base: KnowledgeBase, client: Any
) -> None:
    client.force_login(person_of(reader))
    (hit,) = search(reader, "prolonged").hits
    page = client.get(hit.citation.url).content.decode()
    assert "The text of this document was not kept" in page
    assert "<mark>A book may be kept for four weeks." in page
    source = Source.objects.get(path="rules/lending.md")
    page = client.get(source.get_absolute_url()).content.decode()
    assert "pays 20 cents a day" in page
    other = hit.ref.partition(":")[0]
    assert client.get(f"/read/{other}:0-99999/").status_code == 404


def person_of(reader: Reader) -> Any:
    """Return the person behind a reader."""
    from knowledge.models import User

    return User.objects.get(pk=reader.user_id)


@pytest.mark.req("S1-ING-08", "S1-DAT-02", "S1-EXT-15")
def test_the_file_completes_what_was_kept_of_it(
    base: KnowledgeBase, reader: Reader
) -> None:
    with pytest.raises(ActionError, match="no file"):
        reindex_source(Source.objects.get(path="rules/lending.md"), actor=None)
    ask(reader, "May a book be prolonged?", mode="grounded", occasion=Occasion("api"))
    snapshot = Snapshot.objects.filter(text__contains="prolonged").get()
    assert stands_of([snapshot])[snapshot.pk].standing is Standing.CURRENT

    source = complete(base)

    assert source.state_reason == ""
    fresh = Reader(reader.user_id)
    (hit,) = search(fresh, "prolonged").hits
    assert str(hit.citation.date) == "2024-03-01"
    assert hit.citation.lines
    assert hit.citation.clause_path == "Lending rules"
    assert source.documents.get(is_current=True).sections.count() == 3
    assert find_span(fresh, hit.ref) is not None
    assert stands_of([snapshot])[snapshot.pk].standing is Standing.UNCHANGED
    # A file that is there already is left alone.
    assert "passages: 0 brought in, 3 there already" in told(base)
    assert source.documents.get(is_current=True).keeps_text


@pytest.mark.req("S1-RCP-04")
def test_an_old_receipt_stays_verified_and_says_that_nothing_was_checked(
    reader: Reader,
) -> None:
    receipt = find_receipt(reader, "rcpt_old-17")
    assert receipt is not None
    content = open_receipt(receipt).content
    assert content["verification"] == "verified"
    assert content["verification_note"].startswith("Nothing was checked")
    assert content["imported"] == {
        "id": "rcpt_old-17",
        "issued_at": "2023-04-02T09:30:00.000000Z",
    }
    assert content["integrity"]["outcome"] == "intact"
    assert content["read"][0]["standing"] == "current"
    text = as_text(content)
    assert text.index("Nothing was checked") < text.index("Draft")
    assert "Brought in from an older version" in text
    assert not list(check_chain())


@pytest.mark.req("S1-RCP-04", "D25")
def test_an_old_receipt_opens_for_those_who_may_read_it_alone(
    base: KnowledgeBase, reader: Reader, client: Any
) -> None:
    assert find_receipt(Reader(UserFactory().pk), "rcpt_old-17") is None
    client.force_login(person_of(reader))
    page = client.get(reverse("portal:receipt", args=["rcpt_old-17"]))
    assert "Nothing was checked" in page.content.decode()
    # What had a source here is erased with it; its receipt still holds.
    purge_source(Source.objects.get(path="rules/lending.md"), actor=None)
    receipt = Receipt.objects.get(former__former_id="rcpt_old-17")
    content = open_receipt(receipt).content
    assert content["read"][0]["text"] is None
    assert content["integrity"]["outcome"] == "intact"


@pytest.mark.req("S1-LRN-06")
def test_old_pairs_are_told_and_never_applied(base: KnowledgeBase) -> None:
    pairs = LearnedItem.objects.order_by("-usage_count")
    assert [(pair.term, pair.value, pair.usage_count) for pair in pairs] == [
        ("borrow", ["lend"], 7),
        ("fine", ["fee"], 2),
    ]
    assert not LearnedItem.objects.applied().exists()
    # The next run of the promoter deletes those that nobody has pinned.
    LearnedItem.objects.filter(term="fine").update(is_pinned=True)
    promote()
    assert LearnedItem.objects.get().term == "fine"


@pytest.mark.req("S1-CNF-06", "D26")
def test_old_levels_are_on_the_old_scale(base: KnowledgeBase) -> None:
    found, missing = Interaction.objects.order_by("at")
    assert (found.level, found.basis, found.door) == ("high", OLD_SCALE, IMPORTED)
    assert (missing.status, missing.level) == ("not_found", "low")
    assert "PL61" not in found.question


@pytest.mark.req("D26")
def test_old_questions_wait_for_nobody(base: KnowledgeBase) -> None:
    Interaction.objects.update(at=timezone.now() - timedelta(hours=2))
    assert settle() == 0
    assert not PendingQuestion.objects.exists()


@pytest.mark.req("D26")
def test_an_import_that_is_run_again_brings_nothing_twice(base: KnowledgeBase) -> None:
    def counts() -> list[int]:
        tables = (Source, Passage, Receipt, LearnedItem, Interaction)
        return [table.objects.count() for table in tables]

    before = counts()
    assert "receipts: 0 brought in, 2 there already" in told(base)
    assert counts() == before == [2, 3, 2, 2, 2]


def test_terms_of_old_passages_can_be_written_anew(base: KnowledgeBase) -> None:
    Source.objects.update(terms_version=0)
    before = list(Passage.objects.order_by("pk").values_list("terms", flat=True))
    assert rewrite_terms() == 3
    after = list(Passage.objects.order_by("pk").values_list("terms", flat=True))
    assert after == before


HEAD = json.dumps({"format": "strata-export", "version": "v0"})
PASSAGE: dict[str, Any] = {
    "type": "passage",
    "layer": "main",
    "file": "a.md",
    "text": "A.",
}


@pytest.fixture
def refused(tmp_path: Path, db: None) -> Callable[..., str]:
    """Bring in lines that are refused, and return the sentence."""
    base = layer_of("refusing").knowledge_base

    def bring(*lines: object, head: str = HEAD) -> str:
        path = tmp_path / "export.jsonl"
        rows = [each if isinstance(each, str) else json.dumps(each) for each in lines]
        path.write_text("\n".join([head, *rows]) + "\n", "utf-8")
        with pytest.raises(CommandError) as error:
            told(base, path)
        assert not Source.objects.exists()
        return str(error.value)

    return bring


@pytest.mark.req("D26")
def test_a_broken_file_is_refused_whole_with_its_line(
    refused: Callable[..., str],
) -> None:
    assert "first line must be" in refused(head='{"format": "other"}')
    assert refused("{") == "Line 2 is not JSON."
    assert "“type” must be one of" in refused({"type": "chunk"})
    assert "Line 3: the knowledge base has no layer “x”" in refused(
        PASSAGE, {**PASSAGE, "layer": "x"}
    )
    assert "“text” must be a text" in refused({**PASSAGE, "text": ""})
    assert "“page” must be a whole number" in refused({**PASSAGE, "page": "3"})
    assert "must stand together" in refused(
        PASSAGE, {**PASSAGE, "file": "b.md"}, PASSAGE
    )
    assert "“id” must be rcpt_" in refused({"type": "receipt", "id": "17"})
    asked = {"type": "interaction", "question": "?", "at": "2023-04-01"}
    assert "“at” must be a moment with its offset" in refused(asked)
    for moment in ("0001-01-01T00:00:00+14:00", "2999-01-01T00:00:00Z"):
        assert "Line 2: “at” must be a moment from 1990" in refused(
            {**asked, "at": moment}
        )
    assert "“page” must be a whole number from 1 to 2147483647" in refused(
        {**PASSAGE, "page": 2**31}
    )
    pair = {"type": "pair", "word": "a", "synonym": "b", "usage_count": 10**12}
    assert "Line 2: “usage_count” must be a whole number" in refused(pair)
    assert refused('{"type": "pair", "usage_count": ' + "9" * 5000 + "}") == (
        "Line 2 is not JSON."
    )
    assert "“text” must be a text" in refused({**PASSAGE, "text": "\0\ud800"})
    assert "“type” must be one of" in refused({"type": ["passage"]})
    assert "Line 4: the passages of one file must stand" in refused(
        PASSAGE, {**PASSAGE, "file": "b.md"}, {**PASSAGE, "file": "./a.md"}
    )
    assert "Line 2 is too long." in refused('"' + "x" * MOST_LINE + '"')


@pytest.mark.req("D26", "S1-PRV-01")
def test_what_no_database_holds_and_bank_details_stay_out(
    tmp_path: Path, db: None
) -> None:
    """A file may begin with a mark, and two spellings of one path are one file."""
    base = layer_of("old").knowledge_base
    iban = "PL61109010140000071219812874"
    lines = [
        {**PASSAGE, "file": "odd/a.md", "text": "A\0 quay.\ud800"},
        {**PASSAGE, "file": "odd//a.md", "text": "A berth."},
        {"type": "pair", "word": f"pay {iban}", "synonym": "p\0ay"},
        {
            "type": "interaction", "question": f"Is\0 {iban} mine?",
            "status": "found", "at": "2023-04-01T08:00:00Z",
        },
        {
            "type": "receipt", "id": "rcpt_" + "a2" * 13, "draft": f"To {iban}\0.",
            "read": [{"layer": "main", "file": "odd/a.md", "text": "A\0 quay."}],
        },
    ]  # fmt: skip
    path = tmp_path / "export.jsonl"
    rows = "\n".join([HEAD, *map(json.dumps, lines)])
    path.write_text(rows, "utf-8-sig")
    assert "passages: 2 brought in, 0 there already" in told(base, path)
    texts = Passage.objects.order_by("pk").values_list("text", flat=True)
    assert list(texts) == ["A quay.", "A berth."]
    assert Interaction.objects.get().question == "Is [IBAN] mine?"
    pair = LearnedItem.objects.get()
    assert (pair.term, pair.value) == ("pay [IBAN]", ["pay"])
    # Its former id has the form of ours.
    person = UserFactory()
    grant(base, [Access.SEARCH], to=person, actor=None)
    receipt = find_receipt(Reader(person.pk), "rcpt_" + "a2" * 13)
    assert receipt is not None
    assert receipt.reads.get().source is not None
    path.write_bytes(rows.encode() + b"\n\xff")
    with pytest.raises(CommandError, match="Line 7 is not written in UTF-8"):
        told(base, path)


@pytest.mark.req("D26", "S1-ING-08")
def test_old_passages_get_vectors_where_a_model_runs(
    db: None, model: str, settings: Settings, tmp_path: Path
) -> None:
    """They are found by meaning then; a passage longer than the model reads too."""
    settings.PORTAL_EMBEDS = True
    base = layer_of("old").knowledge_base
    told(base)
    assert PassageVector.objects.filter(passage__knowledge_base=base).count() == 3
    person = UserFactory()
    grant(base, [Access.SEARCH], to=person, actor=None)
    found = search(Reader(person.pk), "When does the park shut in the evening?")
    assert found.hits[0].citation.file == "rules/garden.md"
    assert found.labels == ()
    long = {**PASSAGE, "text": "The quay is open until dusk. " * 680}
    path = tmp_path / "export.jsonl"
    path.write_text(f"{HEAD}\n{json.dumps(long)}\n", "utf-8")
    assert "passages: 1 brought in" in told(base, path)
    assert PassageVector.objects.filter(passage__knowledge_base=base).count() == 4


@pytest.mark.req("S2-ING-12")
def test_what_the_register_keeps_out_stays_out(tmp_path: Path, db: None) -> None:
    from knowledge.models import NeverRule
    from knowledge.models.register import RuleKind

    base = layer_of("old").knowledge_base
    NeverRule.objects.create(
        knowledge_base=base,
        kind=RuleKind.NAME,
        pattern="lending*",
        reason="Lending is secret.",
    )
    assert "Not taken: Line 2: rules/lending.md may not enter" in told(base)
    assert Source.objects.get().path == "rules/garden.md"
