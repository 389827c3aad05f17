"""Pages of citations: at their place, and when that has changed, what it said."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from knowledge.actions import delete_source
from knowledge.models import Document
from knowledge.permissions import deny
from knowledge.purging import purge_source
from retrieval.models import Snapshot, Turn
from tests.cast import Cast
from tests.factories import DocumentFactory, PassageFactory, ready_source
from tests.retrieval.api.test_turns import TURNS, post, start
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

TEXT = "The harbour opens at six.\nA berth costs 5 euro.\nBoats wait outside.\n"
TAG = re.compile(r"<[^>]+>")


@pytest.fixture
def cited(shelves: Corpus, cast: Cast) -> Snapshot:
    """A citation of a document in the handbook, by the agent of a member."""
    ready_source(TEXT, layer=shelves.handbook.layers.get(), title="Harbour")
    turn = start(cast.agent_token)
    found = post(
        cast.agent_token.client(), f"{TURNS}/{turn}/search", {"query": "harbour"}
    )
    assert len(found.json()["results"]) == 1
    return Turn.objects.get(public_id=turn).snapshots.get()


def address(snapshot: Snapshot) -> str:
    """Return the citation's page."""
    return f"/cited/{snapshot.turn.public_id}/{snapshot.number}/"


def replace_text(snapshot: Snapshot, text: str) -> Document:
    """Give the cited source another text."""
    source = snapshot.source
    assert source is not None
    source.passages.all().delete()
    source.documents.filter(is_current=True).update(
        is_current=False, superseded_at=timezone.now()
    )
    document: Document = DocumentFactory(source=source, text=text)
    PassageFactory(document=document)
    return document


def page(client: Client, path: str) -> str:
    """Return a page."""
    response = client.get(path)
    assert response.status_code == 200, response
    return response.content.decode()


def words(html: str) -> str:
    """Return the words of a page."""
    return " ".join(unescape(TAG.sub(" ", html)).split())


def marked(html: str, tag: str) -> list[str]:
    """Return what a page marks as left out or put in."""
    return re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)


@pytest.mark.req("S3-CIT-03")
def test_a_current_citation_opens_at_its_place(cited: Snapshot, cast: Cast) -> None:
    response = cast.granted.client().get(address(cited))
    assert response["Location"] == f"/read/{cited.ref}/#cited"
    assert 'id="cited"' in page(cast.granted.client(), f"/read/{cited.ref}/")


@pytest.mark.req("S3-CIT-03", "D2")
def test_a_changed_document_shows_what_it_said_and_the_difference(
    cited: Snapshot, cast: Cast
) -> None:
    replace_text(cited, TEXT.replace("5 euro", "6 euro"))
    html = page(cast.granted.client(), address(cited))
    assert "Replaced on" in words(html)
    assert "A berth costs 5 euro." in words(html)
    assert marked(html, "del") == ["5"]
    assert marked(html, "ins") == ["6"]
    assert f"/read/{cited.ref}/#cited" in html
    whole = page(cast.granted.client(), f"/read/{cited.ref}/difference/")
    assert marked(whole, "ins") == ["6"]
    old = page(cast.granted.client(), f"/read/{cited.ref}/")
    assert f"/read/{cited.ref}/difference/" in old


def test_words_that_still_stand_lead_to_their_new_place(
    cited: Snapshot, cast: Cast
) -> None:
    current = replace_text(cited, f"# News\n\n{TEXT}\nAnd a crane.\n")
    html = page(cast.granted.client(), address(cited))
    assert "word for word" in words(html)
    found = re.search(r'href="/read/(d\d+:\d+-\d+)/#cited"', html)
    assert found is not None
    assert found[1].startswith(f"d{current.number}:8-")
    assert not marked(html, "del")


@pytest.mark.req("S3-CIT-03", "D2")
def test_a_removed_document_leaves_the_words_that_were_cited(
    cited: Snapshot, cast: Cast
) -> None:
    assert cited.source is not None
    delete_source(cited.source, actor=None)
    html = page(cast.granted.client(), address(cited))
    assert "Removed on" in words(html)
    assert "A berth costs 5 euro." in words(html)
    assert "/difference/" not in html
    assert cast.granted.client().get(f"/read/{cited.ref}/").status_code == 404


@pytest.mark.req("D2")
def test_an_erased_text_leaves_a_hash(cited: Snapshot, cast: Cast) -> None:
    assert cited.source is not None
    purge_source(cited.source, actor=None)
    html = page(cast.granted.client(), address(cited))
    assert "Erased on" in words(html)
    assert cited.text_sha256 in html
    assert "berth" not in html
    assert "Harbour" not in html


@pytest.mark.req("D25", "REL-A10")
def test_sight_is_decided_when_a_citation_is_opened(
    cited: Snapshot, shelves: Corpus, cast: Cast
) -> None:
    absent = cast.granted.client().get("/cited/no-id/1/")
    for change in (lambda: None, lambda: delete_source(cited.source, actor=None)):
        change()  # type: ignore[no-untyped-call]
        for actor in (cast.ungranted, cast.denied, cast.superuser, cast.insider):
            assert actor.client().get(address(cited)).status_code == 404
        assert cast.editor.client().get(address(cited)).status_code in {200, 302}
    assert cast.granted.user is not None
    deny(shelves.handbook, to=cast.granted.user, actor=None)
    hidden = cast.granted.client().get(address(cited))
    assert hidden.status_code == absent.status_code == 404
    same: list[Any] = [
        re.sub(r'value="\w{64}"', "", each.content.decode()).replace(path, "")
        for each, path in ((hidden, address(cited)), (absent, "/cited/no-id/1/"))
    ]
    assert same[0] == same[1]


def test_a_text_that_differs_in_spaces_alone_says_so(
    cited: Snapshot, cast: Cast
) -> None:
    replace_text(cited, TEXT.replace(" ", "  "))
    html = page(cast.granted.client(), f"/read/{cited.ref}/difference/")
    assert "Word for word, both say the same" in words(html)


def test_what_is_current_has_no_difference(cited: Snapshot, cast: Cast) -> None:
    response = cast.granted.client().get(f"/read/{cited.ref}/difference/")
    assert response["Location"] == f"/read/{cited.ref}/"
