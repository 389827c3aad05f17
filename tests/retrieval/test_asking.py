"""The portal's page for asking, with and without a language model."""

import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import AsyncClient, Client
from pytest_django.fixtures import Settings

from knowledge.models import Layer
from knowledge.models.knowledge_base import AnswerMode
from retrieval.drafting import NOT_THERE
from retrieval.models import Interaction, Receipt
from tests import servers
from tests.asynchronous import play
from tests.cast import Cast
from tests.servers import LanguageModel, LocalServer
from tests.stored_corpus import CANARY, Corpus
from tests.test_viewing import begin

pytestmark = pytest.mark.django_db

# The handbook answers it.
QUESTION = "How soon do we confirm a complaint?"
FACT = 'Complaints are confirmed "within five working days" [S1].'
KEY = "sk-a-key-that-nobody-may-meet"


def page_of(client: Client, question: str = QUESTION, **fields: str) -> str:
    response = client.get(f"/ask/?{urlencode({'q': question, **fields})}")
    assert response.status_code == 200
    return response.content.decode()


def places_in(page: str) -> list[str]:
    """Return the addresses that titles and marks of an answer lead to."""
    return re.findall(r'href="(/(?:read|asked)/[^"#]+)#cited"', page)


def point_to(server: LocalServer, settings: Settings) -> None:
    """Set a provider up that rewords questions and words answers."""
    settings.ANTHROPIC_BASE_URL = server.url
    settings.ANTHROPIC_API_KEY = KEY
    settings.STRATA_DRAFTING = True


@pytest.fixture
def language_model(settings: Settings) -> Iterator[LanguageModel]:
    with LanguageModel('["confirming complaints"]', FACT) as server:
        point_to(server, settings)
        yield server


class TestWithoutALanguageModel:
    """Passages and the documents' own sentences work by themselves."""

    def test_the_page_waits_for_a_question(self, corpus: Corpus, cast: Cast) -> None:
        page = cast.granted.client().get("/ask/").content.decode()
        assert "Ask the documents" in page
        assert 'class="answer"' not in page
        assert not Interaction.objects.exists()

    def test_who_may_search_nothing_is_told(self, cast: Cast) -> None:
        assert (
            "Nothing to ask yet"
            in cast.ungranted.client().get("/ask/").content.decode()
        )

    @pytest.mark.req("S1-ASK-07", "S1-ASK-08")
    def test_passages_come_with_numbers_that_open_their_places(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        client = cast.granted.client()
        page = page_of(client)
        assert "Found in" in page
        assert 'id="source-1"' in page
        places = places_in(page)
        assert places
        for place in places:
            opened = client.get(place, follow=True)
            assert opened.status_code == 200
            assert 'id="cited"' in opened.content.decode()
        (row,) = Interaction.objects.all()
        assert row.owner == cast.granted.user

    def test_documents_that_hardly_answer_stand_behind_the_others(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        page = page_of(cast.granted.client())
        first, _summary, others = page.partition("Other passages that were found")
        assert "Found in one document." in first
        assert "How we answer complaints" in first
        assert 'id="source-1"' in first
        assert 'id="source-2"' in others

    @pytest.mark.req("S1-CON-08", "S1-CON-09")
    def test_the_documents_own_sentences_come_with_a_receipt(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        page = page_of(cast.granted.client(), quotes="1")
        assert 'class="quote"' in page
        assert "five working days" in page
        receipt = Receipt.objects.get()
        opened = cast.granted.client().get(f"/receipts/{receipt.public_id}/")
        assert opened.status_code == 200
        assert f'<code id="receipt-id">{receipt.public_id}</code>' in page
        assert "word for word" in page

    @pytest.mark.req("S1-CON-08")
    def test_an_extractive_layer_is_quoted_unasked(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        Layer.objects.update(answer_mode=AnswerMode.EXTRACTIVE)
        assert 'class="quote"' in page_of(cast.granted.client())

    @pytest.mark.req("S1-CON-13", "S1-ASK-10")
    def test_what_is_not_there_is_said_with_what_to_do(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        page = page_of(cast.granted.client(), "Who won the regatta on the moon?")
        assert "Not in the documents." in page
        assert "What to do next" in page
        assert 'href="/?q=Who%20won' in page
        assert "Receipt" not in page

    @pytest.mark.req("S1-CON-11", "S1-MIS-15")
    def test_a_name_that_nothing_holds_is_noted(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        page = page_of(cast.granted.client(), f"{QUESTION} And what of form ZZ-999?")
        assert "ZZ-999" in page.partition('class="answer"')[2]

    @pytest.mark.req("REL-A1")
    def test_nobody_meets_what_they_may_not_search(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        for actor in (cast.granted, cast.ungranted, cast.superuser):
            assert CANARY not in page_of(actor.client(), "When is the merger?").lower()
        assert CANARY in page_of(cast.insider.client(), "When is the merger?").lower()

    @pytest.mark.parametrize(
        ("question", "sentence"),
        [("\x01", "control characters"), ("a" * 1001, "at most 1,000")],
    )
    def test_a_question_that_cannot_be_asked_is_refused_with_a_sentence(
        self, cast: Cast, question: str, sentence: str
    ) -> None:
        response = cast.granted.client().get(f"/ask/?{urlencode({'q': question})}")
        assert response.status_code == 400
        assert sentence in response.content.decode()

    def test_asking_for_the_head_alone_asks_nothing(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        response = cast.granted.client().head(f"/ask/?{urlencode({'q': QUESTION})}")
        assert response.status_code == 200
        assert not Interaction.objects.exists()

    def test_search_and_ask_lead_to_each_other(
        self, corpus: Corpus, cast: Cast
    ) -> None:
        client = cast.granted.client()
        fields = urlencode({"q": QUESTION, "layer": "handbook/main"})
        found = client.get(f"/?{fields}").content.decode()
        assert f'href="/ask/?{fields}"'.replace("&", "&amp;") in found
        assert 'href="/"' in client.get("/ask/").content.decode()


class TestWithALanguageModel:
    """An answer is worded, checked, and shown as words."""

    @pytest.mark.req("S1-CON-06", "S1-CON-09")
    def test_a_worded_answer_is_shown_with_its_receipt(
        self, corpus: Corpus, cast: Cast, language_model: LanguageModel
    ) -> None:
        page = page_of(cast.granted.client())
        words = page.partition('class="answer-words"')[2]
        assert "within five working days" in words
        assert "[S1]" not in words
        assert 'class="cite"' in words
        assert Receipt.objects.get().public_id in page
        assert "confirming complaints" in page

    @pytest.mark.req("S1-QRW-01", "S1-CON-12")
    def test_the_wording_that_was_searched_for_is_told(
        self, corpus: Corpus, cast: Cast, language_model: LanguageModel
    ) -> None:
        page = page_of(cast.granted.client())
        assert "Also searched for: <q>confirming complaints</q>" in page

    @pytest.mark.parametrize(
        ("says", "sentence"),
        [
            (NOT_THERE, "none answers exactly this"),
            ("Within 77 days [S1].", "could not be proved by the passages"),
            (f"{FACT} It costs 77 pounds [S1].", "One sentence was left out"),
            (f"{FACT} Members like it [S1].", "Not checked"),
        ],
    )
    def test_what_came_of_wording_is_told(
        self,
        corpus: Corpus,
        cast: Cast,
        language_model: LanguageModel,
        says: str,
        sentence: str,
    ) -> None:
        language_model.says = ('["complaints"]', says)
        page = page_of(cast.granted.client())
        assert sentence in page
        assert "77 " not in page.partition('class="answer"')[2]
        assert 'id="source-1"' in page

    @pytest.mark.req("REL-Q7")
    def test_a_model_that_fails_leaves_the_passages(
        self, corpus: Corpus, cast: Cast, settings: Settings
    ) -> None:
        with LocalServer(servers.fail) as server:
            point_to(server, settings)
            page = page_of(cast.granted.client())
        assert "The language model does not answer" in page
        assert 'id="source-1"' in page

    @pytest.mark.req("REL-X9")
    def test_what_a_model_writes_is_words_and_nothing_else(
        self, corpus: Corpus, cast: Cast, language_model: LanguageModel
    ) -> None:
        evil = f"{FACT}\n<img src=x onerror=alert(1)> [a](javascript:alert(2)) <b>b</b>"
        language_model.says = ('["complaints"]', evil)
        words = page_of(cast.granted.client()).partition('class="answer"')[2]
        assert "<img" not in words
        assert "<b>" not in words
        assert 'href="javascript' not in words

    def test_staff_may_ask_as_the_person_that_they_view_as(
        self, corpus: Corpus, cast: Cast, language_model: LanguageModel
    ) -> None:
        client = cast.superuser.client()
        begin(client, cast.granted.user)
        assert "within five working days" in page_of(client)
        row = Interaction.objects.get()
        assert (row.owner, row.acting) == (cast.granted.user, cast.superuser.user)


class TestItComesAsItGoes:
    """Under ASGI the page is sent in parts, while the work goes on."""

    @pytest.mark.django_db(transaction=True)
    def test_a_step_is_seen_before_the_work_behind_it_ends(
        self, corpus: Corpus, cast: Cast, settings: Settings
    ) -> None:
        release = threading.Event()

        def slowly(_prompt: servers.Prompt) -> str:
            release.wait(60)
            return '["complaints"]'

        async def read(client: AsyncClient) -> list[str]:
            response: Any = await client.get(f"/ask/?{urlencode({'q': QUESTION})}")
            parts = []
            async for part in response.streaming_content:
                parts.append(part.decode())
                if "Preparing the searches" in parts[-1]:
                    # Only now may the model answer.
                    release.set()
            return parts

        with LanguageModel(slowly, FACT) as server:
            point_to(server, settings)
            parts = play(read, cast.granted.user)
        page = "".join(parts)
        steps = re.findall("<li>([A-Z][^<]+)</li>", page.partition("<ol")[2])
        assert steps[:2] == ["Preparing the searches", "Searching the documents"]
        assert "within five working days" in page
        assert page.rstrip().endswith("</html>")
        assert Interaction.objects.count() == 1

    @pytest.mark.django_db(transaction=True)
    def test_who_leaves_early_blocks_nobody(
        self, corpus: Corpus, cast: Cast, settings: Settings
    ) -> None:
        async def leave(client: AsyncClient) -> None:
            response: Any = await client.get(f"/ask/?{urlencode({'q': QUESTION})}")
            parts = aiter(response.streaming_content)
            while "Preparing the searches" not in (await anext(parts)).decode():
                pass
            await parts.aclose()

        with LanguageModel('["complaints"]', FACT) as server:
            point_to(server, settings)
            play(leave, cast.granted.user)
        # The thread was let go on to its end.
        assert Interaction.objects.count() == 1

    @pytest.mark.django_db(transaction=True)
    def test_a_failure_on_the_way_ends_the_page_in_a_sentence(
        self,
        corpus: Corpus,
        cast: Cast,
        settings: Settings,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        async def read(client: AsyncClient) -> str:
            address = urlencode({"q": QUESTION, "layer": ["x"] * 300}, doseq=True)
            response: Any = await client.get(f"/ask/?{address}")
            return b"".join([p async for p in response.streaming_content]).decode()

        page = play(read, cast.granted.user)
        assert "Name at most 200 layers." in page
        assert page.rstrip().endswith("</html>")
