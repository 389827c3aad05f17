"""Receipts: what is written, in which order, and that nobody changes it."""

import hashlib
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from pytest_django.fixtures import Settings

from knowledge.actions import delete_source, move_source
from knowledge.models import Document, Passage, Source
from knowledge.permissions import Reader
from knowledge.purging import purge_revision, purge_source
from retrieval.anchor import Head, known_head
from retrieval.models import Receipt, ReceiptRead, ReceiptWords
from retrieval.proof import BEGINNING
from retrieval.receipts import ReadGoneError, issue_receipt
from retrieval.tuning import current
from tests.retrieval.receipts import issued, span_of
from tests.retrieval.shelf import layer_of, open_space, put, reader_of

TEXT = "The harbour opens at six. A berth costs 5 euro."
IBAN = "DE89 3704 0044 0532 0130 00"


@pytest.fixture
def passage(db: None) -> Passage:
    """A passage in the knowledge base one."""
    return put(layer_of("one"), TEXT, title="Harbour rules", path="rules/harbour.md")


@pytest.fixture
def reader(passage: Passage) -> Reader:
    """A person who may search it."""
    return reader_of("one")


def words(receipt: Receipt) -> dict[str, str | None]:
    """Return a receipt's words by part."""
    return dict(receipt.words.values_list("part", "text"))


@pytest.mark.req("S1-RCP-01", "S1-RCP-02")
def test_a_receipt_holds_what_was_read_and_the_scrubbed_draft(
    passage: Passage, reader: Reader
) -> None:
    interaction = uuid4()
    receipt = issued(
        reader,
        read=[span_of(passage, quotes=((12, 24),))],
        question=f"May I pay to {IBAN}?",
        draft=f'It "opens at six" [S1]. Pay to {IBAN}. Ask {IBAN}.',
        unchecked=[f"Ask {IBAN}."],
        interaction=interaction,
    )
    assert re.fullmatch(r"rcpt_[0-9a-hjkmnp-tv-z]{32}", receipt.public_id)
    assert words(receipt) == {
        "question": "May I pay to [IBAN]?",
        "draft": 'It "opens at six" [S1]. Pay to [IBAN]. Ask [IBAN].',
        "unchecked/0": "Ask [IBAN].",
        "read/0/text": TEXT,
        "read/0/title": "Harbour rules",
        "read/0/file": "rules/harbour.md",
    }
    signed = json.loads(receipt.signed)
    assert signed["kind"] == "draft"
    assert signed["verdict"] == "verified"
    assert signed["interaction"] == str(interaction)
    assert signed["read"] == [
        {
            "ref": f"d{passage.document.number}:0-{len(TEXT)}",
            "revision": f"d{passage.document.number}",
            "revision_sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
            "start": 0,
            "end": len(TEXT),
            "quotes": [[12, 24]],
        }
    ]
    assert datetime.fromisoformat(signed["issued_at"]) == receipt.issued_at
    assert TEXT[:11] not in receipt.signed


@pytest.mark.req("S1-RCP-02")
def test_an_extractive_receipt_quotes_all_that_it_read(
    passage: Passage, reader: Reader
) -> None:
    signed = json.loads(issued(reader, passage, kind="extractive").signed)
    assert signed["verdict"] == "verbatim"
    assert signed["read"][0]["quotes"] == [[0, len(TEXT)]]
    assert "draft" not in signed["words"]


def test_it_names_model_and_settings(passage: Passage, reader: Reader) -> None:
    without = json.loads(issued(reader, passage).signed)["made_with"]
    assert without["embedding_model"] is None
    space = open_space()
    made_with = json.loads(issued(reader, passage).signed)["made_with"]
    assert made_with["embedding_model"] == space.model_id
    assert made_with["embedding_space"] == space.fingerprint
    assert made_with["settings_version"] == current().version
    assert made_with["settings_sha256"] == without["settings_sha256"]


@pytest.mark.req("S1-PRV-01", "REL-L3")
def test_a_bank_detail_that_was_cut_with_its_sentence_leaves_no_tail(
    passage: Passage, reader: Reader
) -> None:
    draft = f"Whoever pays late pays more. Pay everything to {IBAN} and wait."
    start = draft.index("Pay ")
    for end in range(start + 5, len(draft)):
        for mark in ("", "…"):
            receipt = issued(
                reader, passage, draft=draft, unchecked=[draft[start:end] + mark]
            )
            sentence = words(receipt)["unchecked/0"]
            assert sentence is not None
            assert not re.search(r"\d", sentence), (draft[start:end], sentence)
            assert sentence.startswith(draft[start : min(end, start + 18)].rstrip("D"))


def test_raw_words_are_kept_where_the_operator_wants_them(
    passage: Passage, reader: Reader, settings: Settings
) -> None:
    settings.LEARNING_STORE_RAW_QUERIES = True
    assert words(issued(reader, passage, draft=IBAN))["draft"] == IBAN


def test_what_no_database_can_hold_is_left_out(
    passage: Passage, reader: Reader
) -> None:
    receipt = issued(reader, passage, draft="It \x00opens\ud800.")
    assert words(receipt)["draft"] == "It opens."


def test_what_no_receipt_can_say_is_refused(passage: Passage, reader: Reader) -> None:
    stranger = reader_of()
    for who, read in (
        (reader, []),
        (reader, [span_of(passage, text="Other words.")]),
        (reader, [span_of(passage, quotes=((40, 48),))]),
        (reader, [span_of(passage, quotes=((4, 4),))]),
        (stranger, [span_of(passage)]),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            issue_receipt(who, kind="draft", read=read)
    assert not Receipt.objects.exists()


# --- The chain ------------------------------------------------------------------------


def test_each_receipt_names_the_one_before_it(passage: Passage, reader: Reader) -> None:
    rows = [issued(reader, passage) for _ in range(3)]
    signed = [json.loads(row.signed) for row in rows]
    assert [each["number"] for each in signed] == [1, 2, 3]
    assert [each["previous"] for each in signed] == [
        BEGINNING,
        *(hashlib.sha256(row.signed.encode()).hexdigest() for row in rows[:2]),
    ]


@pytest.mark.req("REL-K3", "REL-R4", "D24")
@pytest.mark.django_db(transaction=True)
def test_many_at_once_make_one_chain_without_a_gap() -> None:
    passage = put(layer_of("one"), TEXT)
    reader = reader_of("one")
    wanted = reader.searchable

    def issue(number: int) -> None:
        try:
            with transaction.atomic():
                assert reader.searchable == wanted
                issue_receipt(reader, kind="draft", read=[span_of(passage)])
                if number % 4 == 0:
                    transaction.set_rollback(True)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(issue, range(48)))
    rows = list(Receipt.objects.order_by("number"))
    assert [row.number for row in rows] == list(range(1, 37))
    before = BEGINNING
    for row in rows:
        assert json.loads(row.signed)["previous"] == before
        before = row.sha256
    # Outside the database the newest one is known, whichever process was the last.
    assert known_head() == Head(36, before)


@pytest.mark.req("REL-R7")
@pytest.mark.django_db(transaction=True)
def test_a_receipt_comes_and_goes_with_its_act() -> None:
    passage = put(layer_of("one"), TEXT)
    reader = reader_of("one")
    with transaction.atomic():
        issued(reader, passage)
        transaction.set_rollback(True)
    assert not Receipt.objects.exists()
    assert known_head() is None
    issued(reader, passage)
    assert Receipt.objects.get().number == 1


# --- Nobody changes it ------------------------------------------------------------------


def refused(*words: str) -> None:
    """Make sure that the database refuses a statement."""
    with (
        pytest.raises(IntegrityError, match="never changed or deleted"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(" ".join(words))


TABLES = ("retrieval_receipt", "retrieval_receiptwords", "retrieval_receiptread")


@pytest.mark.req("REL-O6")
def test_the_database_refuses_every_change_and_deletion(
    passage: Passage, reader: Reader
) -> None:
    receipt = issued(reader, passage, draft="It opens at six.")
    other = put(layer_of("two"), TEXT)
    there = f"knowledge_base_id = {other.knowledge_base_id}"
    before = [list(model.objects.values()) for model in (Receipt, ReceiptWords)]
    for field in Receipt._meta.fields:
        refused("UPDATE", TABLES[0], "SET", field.column, "=", field.column)
    for change in (
        "text = 'It opens at seven.'",
        "salt = NULL",
        "part = 'question'",
        "text = NULL, salt = NULL, part = 'question'",
        "receipt_id = receipt_id + 1",
    ):
        refused("UPDATE", TABLES[1], "SET", change, "WHERE part = 'draft'")
    for change in (
        "revision = 1",
        "position = 7",
        f"source_id = {other.source_id}",
        f"source_id = {other.source_id}, {there}",
        "removed_at = now()",
    ):
        refused("UPDATE", TABLES[2], "SET", change)
    for table in TABLES:
        refused("DELETE FROM", table)
    with connection.cursor() as cursor:
        cursor.execute(
            "SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL strata.may_empty = off"
        )
    for table in TABLES:
        refused("TRUNCATE", table, "CASCADE")
    assert [list(model.objects.values()) for model in (Receipt, ReceiptWords)] == before
    assert Receipt.objects.get() == receipt


def test_where_a_source_was_last_is_kept(passage: Passage, reader: Reader) -> None:
    issued(reader, passage)
    first = passage.knowledge_base_id
    move_source(passage.source, layer=layer_of("two"), actor=None)
    assert ReceiptRead.objects.get().knowledge_base_id != first
    delete_source(Source.objects.get(), actor=None)
    row = ReceiptRead.objects.get()
    assert row.source is None
    assert row.removed_at is not None
    refused("UPDATE", TABLES[2], f"SET knowledge_base_id = {first}")


def purge_current(source: Source, *, actor: None) -> None:
    """Purge a source's revision after another has taken its place."""
    number = source.documents.get().number
    source.documents.update(is_current=False)
    assert purge_revision(number, actor=actor)


@pytest.mark.req("REL-K4", "D2")
@pytest.mark.django_db(transaction=True)
def test_a_purge_waits_for_receipts_of_its_words() -> None:
    passage = put(layer_of("one"), TEXT)
    reader = reader_of("one")
    Document.objects.update(is_current=False)

    def purge() -> None:
        try:
            purge_revision(passage.document.number, actor=None)
        finally:
            connection.close()

    with transaction.atomic():
        receipt = issued(reader, passage, draft="It opens at six.")
        other = threading.Thread(target=purge)
        other.start()
        other.join(0.3)
        assert other.is_alive()
    other.join()
    assert set(receipt.words.values_list("text", flat=True)) == {None}


@pytest.mark.req("REL-K4")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("remove", [delete_source, purge_source, purge_current])
def test_what_goes_while_a_receipt_is_written_is_in_none(remove: object) -> None:
    passage = put(layer_of("one"), TEXT)
    reader = reader_of("one")
    span = span_of(passage)
    assert callable(remove)
    outcome: list[str] = []

    def issue() -> None:
        try:
            issue_receipt(reader, kind="draft", read=[span])
        except ReadGoneError as error:
            outcome.append(error.ref)
        finally:
            connection.close()

    with transaction.atomic():
        source = Source.objects.get(pk=passage.source_id)
        remove(source, actor=None)
        other = threading.Thread(target=issue)
        other.start()
        # It waits for us: the source is locked, and nothing says yet that it goes.
        other.join(0.3)
        assert other.is_alive()
    other.join()
    assert outcome == [span.ref]
    assert not Receipt.objects.exists()


def test_issued_now(passage: Passage, reader: Reader) -> None:
    before = datetime.now(UTC)
    assert before <= issued(reader, passage).issued_at <= datetime.now(UTC)
