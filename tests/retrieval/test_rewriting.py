"""One question becomes several searches, by a real server that plays the model."""

import json
from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from knowledge.models import Department, LedgerEntry, User
from knowledge.permissions import Reader
from retrieval.ask import ask
from retrieval.journal import Journal
from retrieval.reach import Reach
from retrieval.rewriting import MOST_ADDED, Rewrite, first_list, rewrite
from tests import servers
from tests.retrieval.shelf import layer_of, put, reader_of
from tests.servers import LanguageModel, LocalServer

pytestmark = pytest.mark.django_db

QUESTION = "Where do I leave my bike?"
KEY = "sk-a-key-that-nobody-may-meet"


@pytest.fixture
def reader() -> Reader:
    """A reader of one of two knowledge bases."""
    layer_of("handbook", "rooms").delete()
    shown = layer_of("handbook")
    shown.description = "Opening hours and house rules."
    shown.languages = ["en", "vi"]
    shown.save()
    hidden = layer_of("vault")
    hidden.description = "Nobody may know of this."
    hidden.save()
    return reader_of("handbook")


@pytest.fixture
def language_model(settings: Settings) -> Iterator[LanguageModel]:
    """A model that is set up as the provider; tests say what it says."""
    with LanguageModel('["bicycle stand", "parking of bicycles"]') as server:
        point_to(server, settings)
        yield server


def point_to(server: LocalServer, settings: Settings) -> None:
    settings.QUERY_REWRITE_PROVIDER = "openai_compatible"
    settings.QUERY_REWRITE_BASE_URL = f"{server.url}/v1"
    settings.QUERY_REWRITE_MODEL = "llama3.2"
    settings.QUERY_REWRITE_API_KEY = KEY
    settings.QUERY_REWRITE_TIMEOUT = 60.0


def reword(reader: Reader, question: str = QUESTION) -> tuple[Rewrite, Journal]:
    journal = Journal()
    return rewrite(reader, question, Reach.of(reader), journal), journal


@pytest.mark.req("S1-QRW-01")
def test_without_a_provider_the_question_is_searched_as_written(reader: Reader) -> None:
    done, journal = reword(reader)
    assert (done.queries, done.by) == ((QUESTION,), "")
    assert journal.notices == []
    assert not LedgerEntry.objects.exists()


@pytest.mark.req("S1-QRW-01")
def test_a_model_adds_searches_after_the_question(
    reader: Reader, language_model: LanguageModel
) -> None:
    done, journal = reword(reader)
    assert done.queries == (QUESTION, "bicycle stand", "parking of bicycles")
    assert done.by == "model"
    assert done.milliseconds > 0
    assert "rewrite" in journal.stage_ms
    assert journal.notices == []


@pytest.mark.req("S1-QRW-01")
def test_an_ask_searches_what_the_model_adds(
    reader: Reader, language_model: LanguageModel
) -> None:
    passage = put(layer_of("handbook"), "Cycles are locked behind the reading room.")
    assert ask(reader, QUESTION).passages == ()
    language_model.says = ('["cycles locked"]',)
    answer = ask(reader, QUESTION)
    assert answer.queries == (QUESTION, "cycles locked")
    assert [each.text for each in answer.passages] == [passage.text]


@pytest.mark.req("S1-QRW-04", "S1-PRV-03")
def test_question_and_layer_descriptions_are_all_that_is_sent(
    reader: Reader, language_model: LanguageModel
) -> None:
    reword(reader, "Is DE89 3704 0044 0532 0130 00 the account of the bike fund?")
    (prompt,) = language_model.prompts
    assert json.loads(prompt.message) == {
        "question": "Is [IBAN] the account of the bike fund?",
        "layers": [
            {
                "name": "handbook / main",
                "description": "Opening hours and house rules.",
                "languages": ["en", "vi"],
            }
        ],
    }
    assert set(prompt.body) == {"model", "max_tokens", "messages"}


def test_a_reader_of_nothing_asks_nobody(language_model: LanguageModel) -> None:
    done, _journal = reword(reader_of())
    assert done.queries == (QUESTION,)
    assert language_model.prompts == []


@pytest.mark.req("R24")
def test_the_reader_s_department_pays(
    reader: Reader, language_model: LanguageModel
) -> None:
    department = Department.objects.create(name="Archive")
    User.objects.filter(pk=reader.user_id).update(department=department)
    reword(reader)
    (entry,) = LedgerEntry.objects.all()
    assert (entry.kind, entry.units, entry.department) == ("rewrite", 120, department)
    rewrite(reader, QUESTION, Reach.of(reader), Journal(), leaves_trace=False)
    assert LedgerEntry.objects.count() == 1


@pytest.mark.req("S1-QRW-06", "REL-P8")
@pytest.mark.parametrize(
    ("reply", "listed"),
    [
        ('["a b", "c"]', ["a b", "c"]),
        ('Sure! Here you go:\n```json\n[\n  "a b",\n  "c"\n]\n```\nAnything else?', 2),
        ('See [1] and [2, 3]: ["a \\"b\\"", "ł [x]"] or ["d"].', ['a "b"', "ł [x]"]),
        ('<think>["a"] or [1, "b"]?</think> ["c"]', ["a"]),
        ('[["a"], ["b"]]', ["a"]),
        ('{"searches": ["a"]}', ["a"]),
        ('["broken \\x"] ["a"]', ["a"]),
        ("[]", None),
        ('[1, 2] [null] ["a", 1]', None),
        ("I cannot help with that.", None),
        ('["a", "b', None),
        ("[" * 200_000, None),
        ('["a",' * 50_000, None),
    ],
    ids=range(13),
)
def test_the_first_list_of_strings_is_taken(
    reply: str, listed: list[str] | int | None
) -> None:
    found = first_list(reply)
    assert (len(found or []) if isinstance(listed, int) else found) == listed


@pytest.mark.req("S1-QRW-06")
def test_a_reply_without_a_list_is_logged_and_said(
    reader: Reader, language_model: LanguageModel, caplog: pytest.LogCaptureFixture
) -> None:
    language_model.says = ("I would search for bicycles.",)
    done, journal = reword(reader)
    assert (done.queries, done.by) == ((QUESTION,), "")
    (notice,) = journal.notices
    assert "searched as you wrote it" in notice
    assert "query_rewrite_json_error" in caplog.text
    assert "bicycles" not in caplog.text
    # It was asked all the same.
    assert LedgerEntry.objects.get().units == 120


@pytest.mark.req("S1-QRW-01", "REL-Q7")
def test_a_model_that_fails_costs_nobody_the_search(
    reader: Reader, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with LocalServer(servers.fail) as server:
        point_to(server, settings)
        done, journal = reword(reader)
    assert (done.queries, done.by) == ((QUESTION,), "")
    assert "does not answer" in journal.notices[0]
    assert "query_rewrite_failed" in caplog.text
    assert KEY not in caplog.text
    assert QUESTION not in caplog.text
    assert not LedgerEntry.objects.exists()


def test_only_searches_that_can_be_made_are_added(
    reader: Reader, language_model: LanguageModel
) -> None:
    language_model.says = (
        json.dumps(
            ["", QUESTION.upper(), "\x00", "a" * 5000, " bike  stand ", "Bike stand"]
            + [f"search {number}" for number in range(20)]
        ),
    )
    done, _journal = reword(reader)
    assert done.queries == (QUESTION, "bike stand", "search 0", "search 1")
    assert len(done.queries) == 1 + MOST_ADDED
