"""Receipts as they are opened: by whom, whether they hold, and how they stand today."""

import json
import os
import random
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from knowledge.actions import delete_knowledge_base, delete_source, move_source
from knowledge.models import Document, Passage, Source
from knowledge.permissions import Access, Reader, deny, grant
from knowledge.purging import purge_revision, purge_source
from knowledge.upkeep import sweep_revisions
from retrieval import anchor
from retrieval.models import Receipt, ReceiptWords
from retrieval.opening import check, check_chain, export, find_receipt, open_receipt
from retrieval.proof import Check, Outcome
from retrieval.receipts import new_id
from retrieval.signing import (
    KeyFileError,
    private_path,
    public_path,
    rotate_key,
    signer,
    trusted_keys,
)
from tests.cast import Cast
from tests.factories import UserFactory
from tests.retrieval.receipts import issued, replace_text, span_of, unguarded
from tests.retrieval.shelf import layer_of, put, reader_of

pytestmark = pytest.mark.django_db

TEXT = "The harbour opens at six. A berth costs 5 euro. Boats wait outside."
DRAFT = 'It "opens at six" [S1].'


@pytest.fixture
def passage(db: None) -> Passage:
    """A passage in the knowledge base one."""
    return put(layer_of("one"), TEXT, title="Harbour rules", path="rules/harbour.md")


@pytest.fixture
def receipt(passage: Passage) -> Receipt:
    """A receipt of a draft that quotes its middle."""
    document = passage.document
    read = span_of(
        passage,
        ref=document.ref(12, 47),
        start=12,
        end=47,
        text=TEXT[12:47],
        quotes=((0, 12),),
    )
    return issued(reader_of("one"), read=[read], draft=DRAFT, question="When?")


# --- Who may open it --------------------------------------------------------------------


@pytest.mark.req("REL-R6", "D25")
def test_whoever_may_search_all_of_its_knowledge_bases_opens_it(
    passage: Passage,
) -> None:
    other = put(layer_of("two"), "The museum opens at ten.")
    receipt = issued(reader_of("one", "two"), passage, other)

    def opens(reader: Reader) -> bool:
        return find_receipt(reader, receipt.public_id) is not None

    assert opens(reader_of("one", "two"))
    assert not opens(reader_of("one"))
    assert not opens(reader_of("two"))
    assert not opens(reader_of())
    assert not opens(Reader(None))
    user = UserFactory()
    for base in (passage.knowledge_base, other.knowledge_base):
        grant(base, [Access.SEARCH], to=user, actor=None)
    assert opens(Reader(user.pk))
    assert not opens(Reader(user.pk, limit=frozenset([passage.knowledge_base_id])))
    deny(other.knowledge_base, to=user, actor=None)
    assert not opens(Reader(user.pk))


@pytest.mark.parametrize(
    "name", ["", "rcpt_", "rcpt_1", "x" * 500, "rcpt_" + "U" * 32, "rcpt_%00", "\x00"]
)
def test_an_id_that_is_none_opens_nothing(name: str) -> None:
    reader = reader_of("one")
    assert find_receipt(reader, name) is None
    assert find_receipt(reader, new_id()) is None


@pytest.mark.req("REL-R6")
def test_ids_are_random() -> None:
    ids = {new_id() for _ in range(20_000)}
    assert len(ids) == 20_000
    # Each place takes each letter, and none is fixed as a version's would be.
    for place in range(5, 37):
        assert len({name[place] for name in ids}) == 32


@pytest.mark.req("R22")
def test_a_source_that_no_search_reaches_closes_its_receipts(
    receipt: Receipt, passage: Passage
) -> None:
    reader = reader_of("one")
    for changes in (
        {"enabled": False},
        {"enabled": True, "expires_at": timezone.now() - timedelta(seconds=1)},
    ):
        Source.objects.filter(pk=passage.source_id).update(**changes)
        assert find_receipt(reader, receipt.public_id) is None


@pytest.mark.req("REL-K4")
def test_a_receipt_moves_with_its_source_and_stays_when_it_goes(
    receipt: Receipt, passage: Passage
) -> None:
    move_source(passage.source, layer=layer_of("two"), actor=None)
    for _ in range(2):
        assert find_receipt(reader_of("one"), receipt.public_id) is None
        assert find_receipt(reader_of("two"), receipt.public_id) == receipt
        Source.objects.filter(pk=passage.source_id).delete()
    delete_knowledge_base(layer_of("two").knowledge_base, actor=None)
    assert find_receipt(reader_of("one", "two"), receipt.public_id) is None
    assert check(receipt).is_intact


# --- How it stands ------------------------------------------------------------------------


def standing(receipt: Receipt) -> tuple[str, bool]:
    """Return how the only passage stands, and whether all is still so."""
    content = open_receipt(receipt).content
    assert content["integrity"] == {"outcome": "intact", "problems": []}
    return content["read"][0]["standing"], content["is_current"]


@pytest.mark.req("REL-R5", "R21")
def test_a_replaced_revision_is_told_apart_from_a_changed_receipt(
    receipt: Receipt, passage: Passage
) -> None:
    assert standing(receipt) == ("current", True)
    document = replace_text(passage.source, f"New since May.\n{TEXT}")
    read = open_receipt(receipt).content["read"][0]
    assert standing(receipt) == ("unchanged", True)
    assert read["place"] == document.ref(27, 62)
    replace_text(passage.source, TEXT.replace("six", "seven"))
    assert standing(receipt) == ("changed", False)
    read = open_receipt(receipt).content["read"][0]
    assert read["text"] == TEXT[12:47]
    assert read["since"] is not None
    delete_source(passage.source, actor=None)
    assert standing(receipt) == ("removed", False)
    assert open_receipt(receipt).content["read"][0]["since"] is not None


@pytest.mark.req("D2")
def test_a_revision_is_kept_while_a_receipt_names_it(
    receipt: Receipt, passage: Passage
) -> None:
    replace_text(passage.source, "Nothing of it is left.")
    other = put(layer_of("one"), "Something else.")
    replace_text(other.source, "Something newer.")
    assert sweep_revisions() == 1
    assert Document.objects.filter(number=passage.document.number).exists()


@pytest.mark.req("REL-K4")
@pytest.mark.django_db(transaction=True)
def test_opening_while_the_source_is_deleted_or_purged() -> None:
    layer_of("one")
    reader = reader_of("one")
    draw = random.Random(4)

    def run(act: Callable[[], object]) -> object:
        try:
            time.sleep(draw.random() / 50)
            return act()
        finally:
            connection.close()

    for remove in (delete_source, purge_source) * 8:
        receipt = issued(
            Reader(reader.user_id), put(layer_of("one"), TEXT), draft=DRAFT
        )
        source = receipt.reads.get().source
        assert source is not None
        acts: list[Callable[[], object]] = [
            partial(remove, source, actor=None),
            partial(open_receipt, receipt),
            partial(find_receipt, Reader(reader.user_id), receipt.public_id),
            partial(check, receipt),
        ]
        with ThreadPoolExecutor(4) as pool:
            _none, opened, found, checked = pool.map(run, acts)
        assert found == receipt
        for each in (checked, getattr(opened, "check", None), check(receipt)):
            assert isinstance(each, Check)
            assert each.is_intact, each.problems
        assert standing(receipt)[0] == (
            "removed" if remove is delete_source else "erased"
        )


def test_what_stands_around_a_passage_is_shown_with_it(
    receipt: Receipt, passage: Passage
) -> None:
    read = open_receipt(receipt).content["read"][0]
    assert (read["before"], read["after"]) == (TEXT[:12], TEXT[47:])
    replace_text(passage.source, "Other words.")
    read = open_receipt(receipt).content["read"][0]
    assert (read["before"], read["after"]) == (TEXT[:12], TEXT[47:])
    delete_source(passage.source, actor=None)
    read = open_receipt(receipt).content["read"][0]
    assert (read["before"], read["after"]) == ("", "")


@pytest.mark.req("S1-RCP-04")
def test_a_receipt_for_which_nothing_was_checked_opens_with_a_note(
    passage: Passage,
) -> None:
    old = issued(reader_of("one"), passage, draft="Good.", nothing_checked=True)
    content = open_receipt(old).content
    assert content["verification"] == "verified"
    assert content["verification_note"].startswith("Nothing was checked:")
    assert (
        open_receipt(issued(reader_of("one"), passage)).content["verification_note"]
        is None
    )


# --- Purging -------------------------------------------------------------------------------


@pytest.mark.req("D2", "REL-R5")
@pytest.mark.parametrize("whole", [True, False])
def test_a_purge_takes_the_words_and_the_receipt_still_holds(
    receipt: Receipt, passage: Passage, *, whole: bool
) -> None:
    other = put(layer_of("two"), "The museum opens at ten.", title="Museum")
    reader = reader_of("one", "two")
    both = issued(reader, passage, other, draft=DRAFT, unchecked=["Good."])
    apart = issued(reader, other, draft=DRAFT)
    before = export(both)
    if whole:
        purge_source(passage.source, actor=None)
    else:
        replace_text(passage.source, "Other words.")
        assert purge_revision(passage.document.number, actor=None)
    for row in (receipt, both):
        found = check(row)
        assert found.is_intact, found.problems
        assert b"opens at six" not in export(row)
    assert dict(both.words.values_list("part", "text")) == {
        "draft": None,
        "unchecked/0": None,
        "read/0/text": None,
        "read/0/title": None,
        "read/0/file": None,
        "read/1/text": other.text,
        "read/1/title": "Museum",
        "read/1/file": other.source.path,
    }
    assert not ReceiptWords.objects.filter(text=None).exclude(salt=None).exists()
    content = open_receipt(both).content
    assert content["words_removed_at"] is not None
    assert content["read"][0]["standing"] == "erased"
    assert content["read"][0]["since"] == content["words_removed_at"]
    assert content["read"][1]["text"] == other.text
    assert check(apart).removed == {}
    # A file that was exported before holds as it did: what is given is given.
    assert before != export(both)


def test_a_damaged_receipt_does_not_keep_its_words_from_a_purge(
    receipt: Receipt, passage: Passage
) -> None:
    with unguarded():
        Receipt.objects.filter(pk=receipt.pk).update(signed="broken")
    purge_source(passage.source, actor=None)
    assert not receipt.words.exclude(text=None).exists()


# --- Whether it holds -----------------------------------------------------------------------


@pytest.mark.req("REL-R1")
@pytest.mark.parametrize(
    ("column", "value", "part"),
    [
        ("number", 7, "record"),
        ("public_id", "rcpt_" + "0" * 32, "record"),
        ("kind", "extractive", "record"),
        ("interaction", "00000000-0000-4000-8000-000000000000", "record"),
        ("signed", "broken", "signed"),
        ("signed", "{}", "file"),
        (
            "signed",
            '{"format":"strata-receipt/1","id":"","key":"","words":{}}',
            "signed",
        ),
        ("sha256", "0" * 64, "signed"),
        ("signature", "0" * 128, "signature"),
        ("key_id", "0" * 64, "record"),
        ("issued_at", timezone.now(), "record"),
    ],
)
def test_a_row_that_was_changed_is_found_out(
    receipt: Receipt, column: str, value: object, part: str
) -> None:
    with unguarded():
        Receipt.objects.filter(pk=receipt.pk).update(**{column: value})
    receipt.refresh_from_db()
    found = check(receipt)
    assert found.outcome is Outcome.CHANGED
    assert part in [each.part for each in found.problems]
    # Nothing of it is handed on.
    opened = open_receipt(receipt)
    assert set(opened.content) == {"receipt_id", "integrity"}
    assert [each for _name, each in check_chain()]


@pytest.mark.req("REL-R1")
def test_words_that_were_changed_are_found_out(receipt: Receipt) -> None:
    with unguarded():
        receipt.words.filter(part="draft").update(text="It opens at five.")
    assert [each.part for each in check(receipt).problems] == ["draft"]
    with unguarded():
        receipt.reads.update(revision=1)
    assert [each.part for each in check(receipt).problems] == ["draft", "record"]
    with unguarded():
        receipt.words.filter(part="draft").delete()
    assert "draft" in [each.part for each in check(receipt).problems]


def told() -> list[str]:
    """Return what is wrong with the chain, without the receipts' ids."""
    return [f"{each.part}: {each.sentence}" for _name, each in check_chain()]


@pytest.mark.req("REL-R4")
def test_receipts_that_are_missing_are_missed(passage: Passage) -> None:
    reader = reader_of("one")
    rows = [issued(reader, passage) for _ in range(6)]
    assert told() == []
    anchor.advance(rows[-1].number, rows[-1].sha256)
    assert told() == []

    missing = " Receipt{} missing: deleted, or the database was restored from an older backup."

    def drop(*numbers: int) -> None:
        with unguarded():
            gone = Receipt.objects.filter(number__in=numbers)
            ReceiptWords.objects.filter(receipt__in=gone).delete()
            for row in gone:
                row.reads.all().delete()
            gone.delete()

    drop(3)
    assert told() == ["chain:" + missing.format(" 3 is")]
    rows[3].refresh_from_db()
    assert [each.part for each in check(rows[3]).problems] == ["chain"]
    # The newest ones leave a chain that holds: only the head outside tells.
    drop(5, 6)
    assert told()[1:] == ["chain:" + missing.format("s 5 to 6 are")]
    # After an older backup other receipts get the numbers of those that are missing.
    anchor.path().write_text(
        json.dumps({"number": 5, "sha256": rows[4].sha256}), encoding="ascii"
    )
    again = issued(reader, passage)
    assert again.number == 5
    assert [each.part for each in check(again).problems] == ["chain"]
    assert "chain: Another receipt of this number was issued here before." in told()


@pytest.mark.parametrize("text", ["broken", "[]", "{}", '{"number":"x","sha256":1}'])
def test_a_damaged_head_is_told_where_all_are_checked(
    receipt: Receipt, text: str
) -> None:
    anchor.path().write_text(text)
    assert check(receipt).is_intact
    assert told() == [
        "chain: receipt-head.json is damaged: it does not name a receipt."
    ]
    with pytest.raises(anchor.AnchorError):
        anchor.advance(receipt.number, receipt.sha256)


def test_the_head_never_goes_back() -> None:
    assert anchor.known_head() is None
    anchor.advance(7, "a" * 64)
    anchor.advance(6, "b" * 64)
    assert anchor.known_head() == anchor.Head(7, "a" * 64)
    anchor.advance(12, "c" * 64)
    assert anchor.known_head() == anchor.Head(12, "c" * 64)


# --- Keys -----------------------------------------------------------------------------------


@pytest.mark.req("REL-R3")
def test_receipts_of_earlier_keys_hold(
    passage: Passage, settings: Settings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    reader = reader_of("one")
    rows = []
    for _ in range(3):
        rows.append(issued(reader, passage, draft=DRAFT))
        assert stat.S_IMODE(private_path().stat().st_mode) == 0o600
        rotate_key()
    names = [row.key_id for row in rows]
    assert len(set(names)) == 3
    assert all(check(row).is_intact for row in rows)
    assert told() == []
    published = json.loads(public_path().read_bytes())["keys"]
    assert [row["key"] for row in published] == [*names, signer().key_id]
    assert [row["retired_at"] is None for row in published] == [False] * 3 + [True]
    # Words are removed under the key of the day.
    purge_source(passage.source, actor=None)
    assert all(check(row).is_intact for row in rows)


@pytest.mark.req("REL-R3")
def test_without_its_key_nothing_can_be_said(
    receipt: Receipt, settings: Settings, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path
    assert check(receipt).outcome is Outcome.UNKNOWN_KEY
    assert set(open_receipt(receipt).content) == {"receipt_id", "integrity"}
    public_path().write_text("broken")
    assert check(receipt).outcome is Outcome.UNKNOWN_KEY
    with pytest.raises(KeyFileError, match="backup"):
        rotate_key()
    with pytest.raises(KeyFileError):
        trusted_keys()
    private_path().write_text("broken")
    with pytest.raises(KeyFileError, match="backup"):
        signer()


# --- The API, the command and the page --------------------------------------------------------


@pytest.fixture
def handbook(cast: Cast) -> Receipt:
    """A receipt of the handbook, which members may search."""
    base = cast.token_in_scope.token_row.knowledge_bases.get()  # type: ignore[union-attr]
    found = put(base.layers.get(), TEXT, title="Harbour rules")
    return issued(
        cast.granted.reader,
        read=[span_of(found, quotes=((12, 24),))],
        draft=DRAFT,
        unchecked=["Good morning."],
    )


def api(client: Client, receipt: Receipt) -> Any:
    return client.get(f"/api/v1/receipts/{receipt.public_id}")


def command(*arguments: str) -> str:
    """Return what the command prints."""
    out = StringIO()
    call_command("receipt", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.req("S1-RCP-03")
def test_the_terminal_shows_what_the_call_answers(
    cast: Cast, handbook: Receipt
) -> None:
    answer = api(cast.token_in_scope.client(), handbook)
    assert answer.status_code == 200
    content = answer.json()
    assert content["receipt_id"] == handbook.public_id
    assert content["draft"] == DRAFT
    assert content["unchecked_sentences"] == ["Good morning."]
    assert content["read"][0]["quotes"] == [
        {"start": 12, "end": 24, "text": "opens at six"}
    ]
    assert json.loads(command(handbook.public_id, "--json")) == content
    printed = command(handbook.public_id)
    assert "The harbour >>>opens at six<<<. A berth costs 5 euro." in printed
    assert "  - Good morning." in printed
    assert printed.startswith("Intact: ")
    assert command(handbook.public_id, "--verify") == printed.splitlines()[0] + "\n"


@pytest.mark.req("REL-D4")
def test_marks_and_ids_in_a_document_are_words_like_others(cast: Cast) -> None:
    base = cast.token_in_scope.token_row.knowledge_bases.get()  # type: ignore[union-attr]
    forged = "Receipt rcpt_0 says >>>it is free<<< [S1]. A berth costs 5 euro."
    passage = put(base.layers.get(), forged)
    start = forged.index("A berth")
    read = span_of(passage, quotes=((start, start + 7),))
    receipt = issued(cast.granted.reader, read=[read], draft='"A berth" [S1].')
    assert (
        "Receipt rcpt_0 says > > >it is free< < < [S1]. >>>A berth<<< costs 5 euro."
        in command(receipt.public_id)
    )
    answer = api(cast.granted.client(), receipt).json()
    assert answer["read"][0]["text"] == forged
    assert [quote["text"] for quote in answer["read"][0]["quotes"]] == ["A berth"]
    shown = page(cast.granted.client(), receipt)
    assert re.findall("<mark[^>]*>(.*?)</mark>", shown) == ["A berth"]


def test_the_terminal_says_what_was_changed(handbook: Receipt) -> None:
    with unguarded():
        handbook.words.filter(part="draft").update(text="It opens at five.")
    for options in ([], ["--verify"]):
        with pytest.raises(CommandError, match="draft: Its words or their salt"):
            command(handbook.public_id, *options)
    with pytest.raises(CommandError, match="draft: Its words"):
        command("--verify-all")


def test_the_terminal_checks_all(handbook: Receipt) -> None:
    assert command("--verify-all").startswith("All 1 receipts are as they were issued")


@pytest.mark.parametrize("arguments", [[], ["rcpt_none"]])
def test_the_terminal_says_what_is_not_there(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        command(*arguments)


def test_an_exported_receipt_is_checked_without_a_database(
    handbook: Receipt, tmp_path: Path
) -> None:
    file, keys = tmp_path / "receipt.json", tmp_path / "keys.json"
    command(handbook.public_id, "--export", str(file))
    with pytest.raises(CommandError, match="could not be written"):
        command(handbook.public_id, "--export", str(file))
    call_command("receipt_key", "--export", str(keys), stdout=StringIO())

    def run() -> subprocess.CompletedProcess[str]:
        # Nothing of the installation is given to it, no setting and no address.
        return subprocess.run(
            [sys.executable, "-m", "retrieval.check_receipt", file, keys],
            cwd=Path(__file__).resolve().parents[2],
            env={"PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
    assert done.returncode == 0, done.stderr
    assert "Intact: " in done.stdout
    assert ">>>opens at six<<<" in done.stdout
    file.write_bytes(file.read_bytes().replace(b"5 euro", b"6 euro"))
    done = run()
    assert done.returncode == 1
    assert "read/0/text" in done.stdout
    assert done.stderr == ""


def page(client: Client, receipt: Receipt) -> str:
    response = client.get(f"/receipts/{receipt.public_id}/")
    assert response.status_code == 200
    return response.content.decode()


def test_the_page_tells_no_longer_current_from_changed(
    cast: Cast, handbook: Receipt
) -> None:
    client = cast.granted.client()
    text = page(client, handbook)
    assert "As it was issued" in text
    assert '<mark class="cited">opens at six</mark>' in text
    assert "No longer current" not in text
    source = handbook.reads.get().source
    assert source is not None
    replace_text(source, "Other words.")
    text = page(client, handbook)
    assert "As it was issued" in text
    assert "No longer current" in text
    with unguarded():
        handbook.words.filter(part="read/0/text").update(text="Other words.")
    text = page(client, handbook)
    assert "Changed after it was issued" in text
    assert "the words of passage 1" in text
    assert "As it was issued" not in text
    assert DRAFT[:10] not in text


def test_the_page_says_when_words_were_removed(cast: Cast, handbook: Receipt) -> None:
    source = handbook.reads.get().source
    assert source is not None
    purge_source(source, actor=None)
    text = page(cast.granted.client(), handbook)
    assert "As it was issued" in text
    assert "Words removed on" in text
    assert "harbour" not in text.lower()


def test_the_file_of_the_page_is_the_exported_one(
    cast: Cast, handbook: Receipt
) -> None:
    response = cast.granted.client().get(f"/receipts/{handbook.public_id}/file/")
    assert response.content == export(handbook)
    assert response["Content-Disposition"].endswith(f'"{handbook.public_id}.json"')
    assert cast.insider.client().get(response.request["PATH_INFO"]).status_code == 404


@pytest.mark.req("REL-R3")
def test_public_keys_are_for_everybody(client: Client, receipt: Receipt) -> None:
    published = client.get("/receipts/keys.json")
    assert published.status_code == 200
    assert receipt.key_id in [row["key"] for row in published.json()["keys"]]
    assert b"PRIVATE" not in published.content


def test_a_turn_opens_only_what_it_is_bound_to(cast: Cast, handbook: Receipt) -> None:
    agent = cast.agent_token.client()

    def in_turn() -> int:
        turn = agent.post("/api/v1/turns", {}, content_type="application/json").json()
        address = f"/api/v1/turns/{turn['turn']}/receipts/{handbook.public_id}"
        return int(agent.get(address).status_code)

    assert in_turn() == 200
    assert cast.agent_token.token_row is not None
    assert cast.agent_token.token_row.client is not None
    cast.agent_token.token_row.client.knowledge_bases.clear()
    assert in_turn() == 404
