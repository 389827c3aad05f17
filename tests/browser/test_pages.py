"""Every page of the portal, as people of different eyes, hands and devices meet it."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from knowledge.memory import remember, start_conversation
from knowledge.models import AgentClient, Document, User
from knowledge.permissions import Reader
from retrieval.models import Snapshot, Turn
from tests.browser.conftest import Visit
from tests.browser.looking import WIDTHS, look_at, overflow
from tests.cast import Cast
from tests.factories import (
    DocumentFactory,
    OriginalFactory,
    SourceFactory,
    UserFactory,
    ready_source,
)
from tests.stored_corpus import Corpus

QUERY = "What happens when a member loses the payment card?"
EVIL = """<script>alert(1)</script>
<img src="https://elsewhere.invalid/a.png" onerror="alert(2)">
<svg xmlns="http://www.w3.org/2000/svg" onload="alert(3)"><script>alert(4)</script></svg>
[click](javascript:alert(5)) ![picture][p] <https://elsewhere.invalid/b>
<style>@import url(https://elsewhere.invalid/c.css);</style>
<iframe src="https://elsewhere.invalid/d"></iframe>
<meta http-equiv="refresh" content="0;url=https://elsewhere.invalid/e">

[p]: https://elsewhere.invalid/f.png
"""


def addresses(corpus: Corpus) -> dict[str, str]:
    """Return the portal's pages by name."""
    sources = corpus.handbook.sources
    document = sources.get(path="quy-trinh-QT-07-mo-the.md").documents.get()
    passage = document.passages.order_by("-start").first()
    assert passage is not None
    reader = Reader(User.objects.get(username="granted").pk)
    talk = start_conversation(reader).public_id
    remember(reader, "Likes short answers, in Vietnamese where there is a choice.")
    remember(reader, "The parcel on desk 4 is hers.", conversation_id=talk)
    table = sources.get(path="fees-2026.csv")
    earlier = DocumentFactory(
        source=table, is_current=False, superseded_at=document.created_at
    )
    ref = document.ref(passage.start, passage.end)
    turn = cited_turn(document)
    return {
        "start": "/",
        "results": f"/?{urlencode({'q': QUERY})}",
        "nothing": f"/?{urlencode({'q': 'QX-99', 'layer': 'handbook/nothing'})}",
        "cited": f"/read/{ref}/",
        "original": f"/read/{ref}/?view=original",
        "table": f"/source/{table.public_id}/",
        "earlier": f"/read/{earlier.ref(0, 8)}/",
        "difference": f"/read/{turn.snapshots.get(number=1).ref}/difference/",
        "cited-changed": f"/cited/{turn.public_id}/1/",
        "cited-removed": f"/cited/{turn.public_id}/2/",
        "cited-erased": f"/cited/{turn.public_id}/3/",
        "knowledge-bases": "/knowledge-bases/",
        "data-flow": "/data-flow/",
        "tokens": "/account/tokens/",
        "memory": "/account/memory/",
    }


def cited_turn(document: Document) -> Turn:
    """Return a turn whose citations are of a changed, a removed and an erased text."""
    owner = UserFactory()
    client = AgentClient.objects.create(owner=owner, name="Clerk")
    turn = Turn.objects.create(client=client, owner=owner)
    lines = document.text.splitlines(keepends=True)
    text = "".join(line.replace("ngày", "buổi") for line in lines if len(line) > 3)
    text = text.replace(lines[0], f"{lines[0]}This line is not there any more.\n")
    old = DocumentFactory(
        source=document.source,
        text=text,
        is_current=False,
        superseded_at=document.created_at,
    )
    for number, fields in enumerate(
        (
            {"source": document.source, "document": old},
            {"removed_at": document.created_at},
            {"purged_at": document.created_at, "text": "", "title": "", "file": ""},
        ),
        start=1,
    ):
        shown = {
            "text": text[:300],
            "title": document.title,
            "file": document.source.path,
            **fields,
        }
        Snapshot.objects.create(
            turn=turn,
            number=number,
            knowledge_base=document.knowledge_base,
            revision=old.number,
            start=0,
            end=300,
            ref=f"d{old.number}:0-{300 - number}",
            text_sha256="0123456789abcdef" * 4,
            layer=document.source.layer.name,
            lines="1-8",
            text_origin="text",
            score=1.0,
            indexed_at=document.created_at,
            **shown,
        )
    return turn


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_read_well_and_keep_the_policy(
    visit: Visit, corpus: Corpus, cast: Cast, width: int
) -> None:
    page = visit.window(width)
    visit.sign_in(page, cast.granted.user)
    wrong = [
        flaw
        for name, address in addresses(corpus).items()
        for flaw in look_at(page, address, f"portal-{name}")
    ]
    assert not wrong, "\n".join(wrong)


def test_text_at_twice_its_size_fits(visit: Visit, corpus: Corpus, cast: Cast) -> None:
    # At 200 % a window of 1280 px shows what one of 640 px does.
    page = visit.window(640)
    visit.sign_in(page, cast.granted.user)
    for name, address in addresses(corpus).items():
        page.goto(address)
        assert overflow(page) <= 0, name


def test_the_keyboard_alone_leads_to_a_passage(
    visit: Visit, corpus: Corpus, cast: Cast
) -> None:
    page = visit.window()
    visit.sign_in(page, cast.granted.user, "/knowledge-bases/")
    page.keyboard.press("/")
    page.wait_for_url(f"{visit.url}/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type(QUERY)
    page.keyboard.press("Enter")
    links = page.locator("[data-item-link]")
    expect(links.first).to_be_visible()
    # The keys work once the page's scripts have run, which is after it is seen.
    page.wait_for_load_state()
    page.keyboard.press("j")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("mark#cited")).to_be_in_viewport()
    page.wait_for_load_state()
    page.keyboard.press("o")
    expect(page.locator("iframe")).to_be_visible()
    expect(page.locator("mark#cited")).to_be_in_viewport()
    page.keyboard.press("o")
    expect(page.locator("iframe")).to_have_count(0)


def test_the_cited_place_rests_in_the_upper_third(
    visit: Visit, cast: Cast, shelves: Corpus
) -> None:
    text = "\n".join(f"Line {number} of a long rule book." for number in range(6_000))
    source = ready_source(text, layer=shelves.handbook.layers.get(), path="rules.txt")
    document = source.documents.get()
    start = text.index("Line 4321 ")
    end = text.index("Line 4324 ")
    for width in (1280, 390):
        page = visit.window(width)
        visit.sign_in(page, cast.granted.user)
        page.goto(f"/read/{document.ref(start, end)}/")
        cited = page.locator("mark#cited")
        size = page.viewport_size
        assert size is not None
        # Fonts that come late may move the lines once more.
        page.wait_for_function(
            "([least, most]) => {"
            " const top = document.getElementById('cited').getBoundingClientRect().top;"
            " return least < top && top < most; }",
            arg=[size["height"] / 5, size["height"] / 2],
        )
        expect(cited).to_be_in_viewport()
        assert page.locator("mark.cited").all_inner_texts() == [
            f"Line {number} of a long rule book." for number in (4321, 4322, 4323)
        ]
        page.get_by_role("link", name="Later part").click()
        expect(page.locator(".doc")).to_contain_text("Line 5999 of")


def stored(corpus: Corpus, content: str, kind: str, name: str) -> Document:
    """Return a current revision whose file and text are `content`."""
    source = SourceFactory(layer=corpus.handbook.layers.get(), path=name)
    original = OriginalFactory(
        knowledge_base=corpus.handbook, content=content.encode(), kind=kind, name=name
    )
    document: Document = DocumentFactory(
        source=source, text=content, original=original, title=f"<b>{name}</b>"
    )
    return document


@pytest.mark.req("REL-U7", "REL-X9")
@pytest.mark.parametrize(
    ("kind", "name"),
    [("markdown", "evil.md"), ("text", "evil.html"), ("text", "evil.svg")],
)
def test_what_comes_from_outside_stays_inert(
    visit: Visit, shelves: Corpus, cast: Cast, kind: str, name: str
) -> None:
    document = stored(shelves, EVIL, kind, name)
    page = visit.window()
    visit.sign_in(page, cast.granted.user)
    page.goto(f"/read/{document.ref(0, len(EVIL))}/")
    expect(page.locator(".doc")).to_contain_text("<script>alert(1)</script>")
    expect(page.locator("h1")).to_have_text(f"<b>{name}</b>")
    inside = ".doc :is(script, img, svg, iframe, style, meta, a[href^='javascript'])"
    assert page.locator(inside).count() == 0
    response = page.goto(f"/original/{document.number}/")
    assert response is not None
    assert response.headers["content-type"].startswith("text/plain")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"].startswith("sandbox")
    assert page.locator("pre").inner_text().startswith("<script>alert(1)</script>")
    page.wait_for_timeout(300)


@pytest.mark.req("REL-U7")
def test_a_file_that_a_browser_could_run_is_a_download(
    visit: Visit, shelves: Corpus, cast: Cast
) -> None:
    document = stored(shelves, EVIL, "docx", "evil.docx")
    page = visit.window(accept_downloads=True)
    visit.sign_in(page, cast.granted.user)
    page.goto(f"/read/{document.ref(0, 5)}/")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "evil.docx"
    answer = page.request.get(f"/original/{document.number}/")
    assert answer.headers["content-disposition"].startswith("attachment")
