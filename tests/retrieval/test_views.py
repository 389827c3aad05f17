"""The portal's search, overview and token pages, asked as a browser asks."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from knowledge.actions import switch_source
from knowledge.models import ApiToken, Source
from knowledge.permissions import grant
from knowledge.tokens import create_token, find_token
from tests.cast import BOTH, Cast
from tests.factories import ready_source
from tests.stored_corpus import CANARY, Corpus, bring_in

TAG = re.compile(r"<[^>]+>")


def page(client: Client, path: str, **query: object) -> str:
    """Return a page that is found."""
    response = client.get(path, query)
    assert response.status_code == 200
    return response.content.decode()


def words(html: str) -> str:
    """Return the text of a page, white space single."""
    return " ".join(unescape(TAG.sub(" ", html)).split())


def quotes(html: str) -> list[str]:
    """Return the passages of a page of results."""
    found = re.findall(r"<blockquote[^>]*>(.*?)</blockquote>", html, re.DOTALL)
    return [unescape(TAG.sub("", quote)) for quote in found]


@pytest.fixture
def member(cast: Cast) -> Client:
    """A person who may search the handbook and nothing else."""
    return cast.granted.client()


@pytest.mark.req("S1-HYB-08")
@pytest.mark.django_db
def test_a_question_in_another_language_finds_the_documents_own_words(
    corpus: Corpus, member: Client
) -> None:
    layer = corpus.handbook.layers.get(name="main")
    bring_in(layer, "uli.md", "# Пасека\n\nЗа ульями на крыше смотрит завхоз Ткачук.")
    html = page(member, "/", q="Who looks after the beehives on the roof?")
    passages = list(corpus.handbook.passages.values_list("text", flat=True))
    shown = quotes(html)
    assert "За ульями на крыше смотрит завхоз Ткачук." in shown[0]
    assert all(quote in passages for quote in shown)
    assert 'lang="ru"' in html
    assert "meaning (no. 1)" in words(html)


@pytest.mark.django_db
def test_a_hit_says_where_it_stands_and_why_it_was_found(
    corpus: Corpus, member: Client
) -> None:
    html = page(member, "/", q="BM-21 giấy tờ")
    text = words(html)
    assert "code BM-21" in text
    assert "<mark>BM-21</mark>" in html
    assert "Điều 2" in text
    assert "Nov. 20, 2025 (from the document)" in text
    assert re.search(r'href="/read/d\d+:\d+-\d+/#cited"', html)


@pytest.mark.django_db
def test_layers_narrow_a_search(corpus: Corpus, member: Client) -> None:
    everywhere = page(member, "/", q="fees")
    assert "handbook/main" in everywhere
    prices = page(member, "/", q="fees", layer="handbook/prices")
    assert 'value="handbook/prices" checked' in prices
    files = set(re.findall(r"<dt>File</dt><dd>(.*?)</dd>", prices))
    here = Source.objects.filter(layer__name="prices")
    assert files
    assert files <= set(here.values_list("path", flat=True))


@pytest.mark.req("R5")
@pytest.mark.django_db
def test_a_forbidden_layer_counts_like_one_that_never_was(
    corpus: Corpus, member: Client
) -> None:
    forbidden = page(member, "/", q="fees", layer=f"{CANARY}-vault/main")
    absent = page(member, "/", q="fees", layer="nothing/main")
    for html in (forbidden, absent):
        assert "1 of the chosen layers is not among those" in words(html)
    assert f"{CANARY.capitalize()} vault" not in forbidden


@pytest.mark.django_db
def test_more_passages_can_be_asked_for(corpus: Corpus, member: Client) -> None:
    html = page(member, "/", q="member account")
    assert len(quotes(html)) == 10
    address = unescape(re.findall(r'href="(\?[^"]*more=1)"', html)[0])
    more = page(member, f"/{address}")
    assert len(quotes(more)) > 10
    assert "more=1" not in more


@pytest.mark.req("S2-EMB-05")
@pytest.mark.django_db
def test_a_search_without_vectors_says_so(shelves: Corpus, cast: Cast) -> None:
    layer = shelves.handbook.layers.get()
    ready_source("The reading room opens at eight.", layer=layer)
    text = words(page(cast.granted.client(), "/", q="reading room"))
    assert "The reading room opens at eight." in text
    assert "only words and codes count" in text


@pytest.mark.django_db
def test_nothing_found_is_an_honest_answer(shelves: Corpus, cast: Cast) -> None:
    ready_source("The reading room.", layer=shelves.handbook.layers.get())
    text = words(page(cast.granted.client(), "/", q="helicopter"))
    assert "Not in the documents" in text


@pytest.mark.django_db
def test_a_refused_query_is_explained_beside_the_field(cast: Cast) -> None:
    response = cast.granted.client().get("/", {"q": "x" * 2_000})
    assert response.status_code == 400
    html = response.content.decode()
    assert 'aria-describedby="q-error"' in html
    assert "characters" in words(html)


@pytest.mark.django_db
def test_whoever_has_nothing_to_search_is_told_whom_to_ask(cast: Cast) -> None:
    assert "Nothing to search yet" in words(page(cast.ungranted.client(), "/"))
    assert "Add documents" not in words(page(cast.ungranted.client(), "/"))
    assert "Add documents" in words(page(cast.superuser.client(), "/"))


@pytest.mark.req("S2-REF-02")
@pytest.mark.django_db
def test_a_source_switched_off_is_gone_at_the_next_search(
    corpus: Corpus, member: Client
) -> None:
    layer = corpus.handbook.layers.get(name="main")
    source = bring_in(layer, "parking.md", "# Parking\n\nMopeds park behind gate ZQ-5.")
    assert "gate ZQ-5" in words(page(member, "/", q="ZQ-5"))
    switch_source(source, enabled=False, actor=None)
    assert "gate ZQ-5" not in words(page(member, "/", q="ZQ-5"))


@pytest.mark.django_db
def test_the_overview_asks_no_more_for_more_knowledge_bases(
    shelves: Corpus, cast: Cast
) -> None:
    person = cast.granted.user
    assert person is not None
    ready_source("The gate is shut at six.", layer=shelves.handbook.layers.get())
    member = cast.granted.client()
    with CaptureQueriesContext(connection) as one:
        assert "1 document" in words(page(member, "/knowledge-bases/"))
    grant(shelves.branches, BOTH, to=person, actor=None)
    for text in ("The north branch.", "The south branch."):
        ready_source(text, layer=shelves.branches.layers.get())
    with CaptureQueriesContext(connection) as two:
        html = page(member, "/knowledge-bases/")
    assert "1 document" in words(html)
    assert "2 documents" in words(html)
    assert len(two) == len(one)


@pytest.mark.django_db
def test_markup_in_a_document_is_text(shelves: Corpus, cast: Cast) -> None:
    evil = '<script>alert(1)</script> <img src=x onerror="alert(2)"> gate'
    ready_source(evil, layer=shelves.handbook.layers.get(), title="<b>gate</b>")
    html = page(cast.granted.client(), "/", q="gate")
    assert quotes(html) == [evil]
    assert "<script>alert" not in html
    assert "<img" not in html


@pytest.mark.req("S3-VIS-01")
@pytest.mark.django_db
def test_the_overview_shows_what_one_may_know_of(corpus: Corpus, cast: Cast) -> None:
    member = words(page(cast.granted.client(), "/knowledge-bases/"))
    assert "Member handbook" in member
    assert "Branch notes" not in member
    assert f"{corpus.handbook.sources.count()} documents" in member
    lister = words(page(cast.lister.client(), "/knowledge-bases/"))
    assert "Member handbook" in lister
    assert "Closed to you" in lister
    assert "documents" not in lister.partition("Closed to you")[0]
    nobody = words(page(cast.ungranted.client(), "/knowledge-bases/"))
    assert "No knowledge base yet" in nobody


@pytest.mark.django_db
def test_a_token_is_shown_once_and_searches(shelves: Corpus, cast: Cast) -> None:
    client = cast.granted.client()
    response = client.post("/account/tokens/", {"name": "Script", "days": "30"})
    assert "no-store" in response["Cache-Control"]
    token = re.findall(r'id="new-token">(.*?)<', response.content.decode())[0]
    found = find_token(token)
    assert found is not None
    assert found.owner == cast.granted.user
    assert found.covers_all
    assert timedelta(days=29) < found.expires_at - timezone.now() < timedelta(days=31)
    assert token not in page(client, "/account/tokens/")


@pytest.mark.django_db
def test_a_token_is_made_for_chosen_knowledge_bases_only_within_reach(
    shelves: Corpus, cast: Cast
) -> None:
    client = cast.granted.client()
    mine = {"name": "A", "days": "1", "knowledge_bases": [shelves.handbook.pk]}
    assert "Your new token" in client.post("/account/tokens/", mine).content.decode()
    row = ApiToken.objects.get(owner=cast.granted.user, name="A")
    assert list(row.knowledge_bases.all()) == [shelves.handbook]
    other = {"name": "B", "days": "1", "knowledge_bases": [shelves.vault.pk]}
    refused = client.post("/account/tokens/", other)
    assert "Your new token" not in refused.content.decode()
    assert not ApiToken.objects.filter(name="B").exists()


@pytest.mark.django_db
def test_only_ones_own_token_can_be_revoked(cast: Cast) -> None:
    assert cast.insider.user is not None
    row, token = create_token(owner=cast.insider.user, name="Own", actor=None)
    address = f"/account/tokens/{row.pk}/revoke/"
    assert cast.granted.client().post(address).status_code == 404
    assert find_token(token) is not None
    assert cast.insider.client().get(address).status_code == 405
    assert cast.insider.client().post(address).status_code == 302
    assert find_token(token) is None
    assert "revoked" in words(page(cast.insider.client(), "/account/tokens/"))


@pytest.mark.req("REL-A3")
@pytest.mark.django_db
def test_a_token_names_no_knowledge_base_that_was_taken_away(
    shelves: Corpus, cast: Cast
) -> None:
    owner = cast.granted.user
    assert owner is not None
    create_token(
        owner=owner,
        name="Old script",
        knowledge_bases=[shelves.vault],
        lifetime=timedelta(days=30),
        actor=owner,
    )
    html = page(cast.granted.client(), "/account/tokens/")
    assert CANARY not in html.lower()
    assert "nothing that you may search" in words(html)


@pytest.mark.parametrize("path", ["/", "/knowledge-bases/", "/account/tokens/"])
@pytest.mark.django_db
def test_pages_want_a_sign_in_and_are_not_kept(path: str, cast: Cast) -> None:
    response = Client().get(path)
    assert response.status_code == 302
    assert response["Location"].startswith("/login/")
    assert "no-store" in cast.granted.client().get(path)["Cache-Control"]
