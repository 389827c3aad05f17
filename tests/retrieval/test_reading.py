"""Documents opened at a cited place, and their original files."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from knowledge.actions import switch_source
from knowledge.models import Document, KnowledgeBase, Section
from knowledge.permissions import deny
from tests.cast import Cast
from tests.factories import (
    DocumentFactory,
    OriginalFactory,
    SourceFactory,
    ready_source,
)
from tests.stored_corpus import Corpus

TAG = re.compile(r"<[^>]+>")
MARK = re.compile(r'<mark class="cited"[^>]*>(.*?)</mark>', re.DOTALL)
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')
LINE = re.compile(r'<(?:p|h2|div) class="line.*?</(?:p|h2|div)>', re.DOTALL)


@pytest.fixture
def member(cast: Cast) -> Client:
    """A person who may search the handbook and nothing else."""
    return cast.granted.client()


@pytest.fixture
def handbook(shelves: Corpus) -> KnowledgeBase:
    """The knowledge base that the member may search."""
    return shelves.handbook


def document_in(base: KnowledgeBase, text: str, **fields: object) -> Document:
    """Return a current revision of a new source."""
    source = SourceFactory(layer=base.layers.get())
    document: Document = DocumentFactory(source=source, text=text, **fields)
    return document


def opened(client: Client, document: Document, start: int, end: int) -> str:
    """Return the page of a ref."""
    response = client.get(f"/read/{document.ref(start, end)}/")
    assert response.status_code == 200
    return response.content.decode()


def marked(html: str) -> list[str]:
    """Return what a page highlights, line by line."""
    return [
        "".join(unescape(TAG.sub("", found)) for found in MARK.findall(line))
        for line in LINE.findall(html)
        if MARK.search(line)
    ]


@pytest.mark.req("S1-HYB-08")
@pytest.mark.django_db
def test_exactly_the_cited_span_is_highlighted(
    member: Client, handbook: KnowledgeBase
) -> None:
    text = (
        "# Fees <b>&\n\nA card costs 5 €.\nIt lasts “long”, nhé.\n\ncode()\n| a | b |"
    )
    document = document_in(
        handbook,
        text,
        blocks=[
            ["heading", 0, 11, 1],
            ["paragraph", 13, 52, 0],
            ["code", 54, 60, 0],
            ["table_row", 61, 70, 0],
        ],
    )
    for start, end in ((0, len(text)), (7, 20), (13, 30), (11, 14), (61, 70), (63, 64)):
        expected = [line for line in text[start:end].split("\n") if line]
        html = opened(member, document, start, end)
        assert marked(html) == expected
        assert html.count('id="cited"') == 1
    assert "<b>&" not in LINE.findall(opened(member, document, 0, 9))[0]


@pytest.mark.req("S1-ING-05")
@pytest.mark.django_db
def test_the_page_tells_line_page_and_clause(
    member: Client, handbook: KnowledgeBase
) -> None:
    text = "7 Ending\n7.2 Notice\nNotice takes a month.\nOr two."
    document = document_in(
        handbook,
        text,
        kind="pdf",
        pages=[
            {"number": 1, "start": 0, "end": 19},
            {"number": 2, "start": 20, "end": len(text)},
        ],
    )
    for ordinal, (start, path) in enumerate(
        [(0, ["7 Ending"]), (9, ["7 Ending", "7.2 Notice"])]
    ):
        Section.objects.create(
            document=document,
            knowledge_base=document.knowledge_base,
            ordinal=ordinal,
            kind="clause",
            title=path[-1],
            level=ordinal + 1,
            start=start,
            end=len(text),
            path=path,
        )
    html = opened(member, document, text.index("Notice takes"), len(text))
    words = " ".join(TAG.sub(" ", html).split())
    assert "Cited: page 2, lines 3-4." in words
    assert "7 Ending 7.2 Notice Cited" in words
    assert 'id="page-2"' in html
    assert html.index('id="page-2"') < html.index('id="L3"')
    assert re.search(r'href="#L2" aria-current="location">7.2 Notice<', html)


@pytest.mark.req("S2-REF-02")
@pytest.mark.django_db
def test_a_replaced_revision_says_so_and_leads_to_the_current_one(
    member: Client, handbook: KnowledgeBase
) -> None:
    current = document_in(handbook, "A card costs 6 €.")
    old = DocumentFactory(
        source=current.source,
        text="A card costs 5 €.",
        is_current=False,
        superseded_at=timezone.now(),
    )
    html = opened(member, old, 0, 17)
    assert marked(html) == ["A card costs 5 €."]
    assert "This is not the current text" in html
    address = f"/source/{current.source.public_id}/"
    assert f'href="{address}"' in html
    now = member.get(address).content.decode()
    assert "A card costs 6 €." in now
    assert "This is not the current text" not in now
    assert "Cited:" not in now


@pytest.mark.req("S3-VIS-02", "REL-A10")
@pytest.mark.django_db
def test_sight_is_decided_when_a_citation_is_opened(
    member: Client, cast: Cast, handbook: KnowledgeBase
) -> None:
    document = document_in(handbook, "A card costs 5 €.")
    old = DocumentFactory(source=document.source, is_current=False)
    addresses = [
        f"/read/{document.ref(0, 5)}/",
        f"/read/{old.ref(0, 5)}/",
        f"/source/{document.source.public_id}/",
    ]
    assert {member.get(each).status_code for each in addresses} == {200}
    switch_source(document.source, enabled=False, actor=None)
    assert {member.get(each).status_code for each in addresses} == {404}
    switch_source(document.source, enabled=True, actor=None)
    assert {member.get(each).status_code for each in addresses} == {200}
    assert cast.granted.user is not None
    deny(handbook, to=cast.granted.user, actor=None)
    assert {member.get(each).status_code for each in addresses} == {404}


@pytest.mark.parametrize(
    "ref",
    ["d1:0-5", "d0:0-5", "x", "d12", "d12:5-5", "d12:9-5", "d12:-1-5", "d9e9:0-5"],
)
@pytest.mark.django_db
def test_refs_that_name_nothing_get_one_answer(
    member: Client, ref: str, handbook: KnowledgeBase
) -> None:
    document = document_in(handbook, "A card costs 5 €.")
    answers = []
    for each in (document.ref(0, 18), ref):
        path = f"/read/{each}/"
        response = member.get(path)
        assert response.status_code == 404
        body = response.content.decode().replace(path, "")
        answers.append(CSRF.sub("", body))
    assert answers[0] == answers[1]


@pytest.mark.req("S2-ING-15")
@pytest.mark.django_db
def test_the_original_comes_back_byte_for_byte(
    member: Client, handbook: KnowledgeBase
) -> None:
    content = b"\xef\xbb\xbfL\xc3\xa0m vi\xe1\xbb\x87c\r\n\x00 odd"
    original = OriginalFactory(
        knowledge_base=handbook, content=content, name="ngày làm.txt"
    )
    document = document_in(handbook, "Làm việc", original=original)
    shown = member.get(f"/original/{document.number}/")
    assert b"".join(shown.streaming_content) == content
    assert shown["Content-Type"] == "text/plain; charset=utf-8"
    assert shown["Content-Disposition"].startswith("inline")
    assert "sandbox" in shown["Content-Security-Policy"]
    assert shown["X-Content-Type-Options"] == "nosniff"
    saved = member.get(f"/original/{document.number}/?download")
    assert b"".join(saved.streaming_content) == content
    assert saved["Content-Disposition"].startswith("attachment")
    assert "ng%C3%A0y%20l%C3%A0m.txt" in saved["Content-Disposition"]


@pytest.mark.parametrize(
    ("kind", "content", "content_type", "disposition"),
    [
        ("text", b"\xef\xee old letters", "text/plain", "inline"),
        ("markdown", b"<script>", "text/plain; charset=utf-8", "inline"),
        ("json", b"{}", "text/plain; charset=utf-8", "inline"),
        ("pdf", b"%PDF-1.7", "application/pdf", "inline"),
        ("docx", b"PK", "application/octet-stream", "attachment"),
    ],
)
@pytest.mark.django_db
def test_only_what_runs_nothing_is_shown_in_the_browser(
    member: Client,
    handbook: KnowledgeBase,
    kind: str,
    content: bytes,
    content_type: str,
    disposition: str,
) -> None:
    original = OriginalFactory(knowledge_base=handbook, content=content, kind=kind)
    document = document_in(handbook, "Text", original=original)
    response = member.get(f"/original/{document.number}/")
    assert response["Content-Type"] == content_type
    assert response["Content-Disposition"].startswith(disposition)
    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert "script-src" not in response["Content-Security-Policy"]
    response.close()


@pytest.mark.django_db
def test_a_lost_original_is_a_plain_404(
    member: Client, handbook: KnowledgeBase
) -> None:
    original = OriginalFactory(knowledge_base=handbook)
    document = document_in(handbook, "Text", original=original)
    original.file.storage.delete(original.file.name)
    assert member.get(f"/original/{document.number}/").status_code == 404


@pytest.mark.django_db
def test_the_original_can_stand_beside_the_text(
    member: Client, handbook: KnowledgeBase
) -> None:
    original = OriginalFactory(knowledge_base=handbook, kind="pdf", content=b"%PDF-1.7")
    document = document_in(
        handbook,
        "One.\nTwo.",
        original=original,
        pages=[
            {"number": 1, "start": 0, "end": 4},
            {"number": 2, "start": 5, "end": 9},
        ],
    )
    address = f"/read/{document.ref(5, 9)}/"
    assert "<iframe" not in member.get(address).content.decode()
    beside = member.get(f"{address}?view=original").content.decode()
    assert f'src="/original/{document.number}/#page=2&navpanes=0"' in unescape(beside)


@pytest.mark.django_db
def test_a_long_document_comes_in_parts(
    member: Client, handbook: KnowledgeBase
) -> None:
    text = "\n".join(f"Rule {number}." for number in range(20_000))
    document = document_in(handbook, text)
    Section.objects.create(
        document=document,
        knowledge_base=document.knowledge_base,
        ordinal=0,
        kind="heading",
        title="Rule 15000.",
        level=1,
        start=text.index("Rule 15000."),
        end=len(text),
        path=["Rule 15000."],
    )
    first = member.get(f"/source/{document.source.public_id}/").content.decode()
    assert "Lines 1 to 1500 of 20000." in " ".join(first.split())
    assert "Rule 1499." in first
    assert "Rule 1500." not in first
    address = unescape(re.findall(r'href="(\?from=\d+#L15001)"', first)[0])
    later = member.get(f"/source/{document.source.public_id}/{address}")
    assert "Rule 15000." in later.content.decode()
    strange = member.get(f"/source/{document.source.public_id}/?from=99999999999")
    assert strange.status_code == 200


@pytest.mark.django_db
def test_an_empty_text_opens(member: Client, handbook: KnowledgeBase) -> None:
    document = document_in(handbook, "")
    assert member.get(f"/source/{document.source.public_id}/").status_code == 200


@pytest.mark.django_db
def test_a_document_takes_few_queries_however_long_it_is(
    member: Client, handbook: KnowledgeBase
) -> None:
    layer = handbook.layers.get()
    counts = []
    for lines in (1, 5_000):
        source = ready_source("A rule.\n" * lines, layer=layer)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            member.get(f"/source/{source.public_id}/")
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[0] <= 10
