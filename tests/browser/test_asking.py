"""Asking in a real browser: how it looks, what moves, and what stays inert."""

import threading
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
import uvicorn
from django.core.asgi import get_asgi_application
from django.db import connections
from playwright.sync_api import Route, expect
from pytest_django.fixtures import Settings

from retrieval.models import Feedback
from tests.browser.conftest import SCREENSHOTS, Visit
from tests.browser.looking import WIDTHS, look_at
from tests.browser.test_pages import EVIL
from tests.cast import Cast
from tests.servers import LanguageModel, Prompt
from tests.stored_corpus import Corpus

QUESTION = "How soon do we confirm a complaint?"
FACT = 'Complaints are confirmed "within five working days" [S1].'
SEARCHES = '["confirming complaints", "first answer"]'
DRAFT = f"{FACT} The answer comes from the branch that was addressed [S1, S2]."
PAGES = {
    "start": {},
    "passages": {"q": QUESTION},
    "quotes": {"q": QUESTION, "quotes": "1"},
    "partly": {"q": f"{QUESTION} And is form ZZ-999 needed?"},
    "nothing": {"q": "Who won the regatta on the moon?"},
}


def address(**fields: str) -> str:
    return f"/ask/?{urlencode(fields)}"


@pytest.fixture
def language_model(settings: Settings) -> Iterator[LanguageModel]:
    """A model that is set up to reword questions and to word answers."""
    with LanguageModel(
        lambda prompt: SEARCHES if is_rewording(prompt) else DRAFT
    ) as model:
        point_to(model, settings)
        yield model


def point_to(model: LanguageModel, settings: Settings) -> None:
    settings.ANTHROPIC_BASE_URL = model.url
    settings.ANTHROPIC_API_KEY = "sk-for-tests"
    settings.STRATA_DRAFTING = True


def is_rewording(prompt: Prompt) -> bool:
    return '"layers"' in prompt.message


@pytest.mark.parametrize("width", WIDTHS)
def test_answers_fit_read_well_and_keep_the_policy(
    visit: Visit, corpus: Corpus, cast: Cast, settings: Settings, width: int
) -> None:
    page = visit.window(width)
    visit.sign_in(page, cast.granted.user)
    wrong = [
        flaw
        for name, fields in PAGES.items()
        for flaw in look_at(page, address(**fields), f"ask-{name}", full_page=True)
    ]
    # The last of them: what was not found can be sent on, and rated.
    expect(page.get_by_role("button", name="Send it to a person")).to_be_visible()
    expect(page.locator("[data-rating-block]")).to_contain_text("Did this help?")
    with LanguageModel(SEARCHES, DRAFT) as model:
        point_to(model, settings)
        wrong += look_at(page, address(q=QUESTION), "ask-worded", full_page=True)
    expect(page.locator(".answer-words")).to_contain_text("five working days")
    assert not wrong, "\n".join(wrong)


def test_marks_and_sources_light_up_together_and_the_receipt_is_copied(
    visit: Visit, corpus: Corpus, cast: Cast, language_model: LanguageModel
) -> None:
    page = visit.window(permissions=["clipboard-read", "clipboard-write"])
    visit.sign_in(page, cast.granted.user)
    page.goto(address(q=QUESTION))
    mark = page.locator(".answer-words .cite").first
    mark.hover()
    expect(page.locator("#source-1")).to_have_class("hit source is-lit")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    receipt = page.locator(".receipt-line code").inner_text()
    assert page.evaluate("navigator.clipboard.readText()") == receipt
    mark.click()
    expect(page.locator("#cited")).to_be_in_viewport()


def test_the_keyboard_alone_asks_and_opens(
    visit: Visit, corpus: Corpus, cast: Cast
) -> None:
    page = visit.window()
    visit.sign_in(page, cast.granted.user, "/ask/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_be_visible()
    # The keys work once the page's scripts have run, which is after it is seen.
    page.wait_for_load_state()
    page.keyboard.press("j")
    expect(page.locator("[data-item-link]").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#cited")).to_be_in_viewport()


def test_without_scripts_all_is_there(
    visit: Visit, corpus: Corpus, cast: Cast, language_model: LanguageModel
) -> None:
    page = visit.window(java_script_enabled=False)
    visit.sign_in(page, cast.granted.user, "/ask/")
    page.fill("#q", QUESTION)
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".answer-words")).to_contain_text("five working days")
    # Nothing offers what would not work.
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    page.locator(".answer-words .cite").first.click()
    expect(page.locator("#cited")).to_be_visible()


@pytest.mark.req("REL-X9")
def test_what_a_model_writes_stays_inert(
    visit: Visit, corpus: Corpus, cast: Cast, settings: Settings
) -> None:
    page = visit.window()
    visit.sign_in(page, cast.granted.user)
    with LanguageModel(SEARCHES, f"{FACT}\n{EVIL}") as model:
        point_to(model, settings)
        page.goto(address(q=QUESTION))
    # What a window complains of fails the test at its end.
    expect(page.locator(".answer")).to_be_visible()


@pytest.fixture
def asgi_url(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> Iterator[str]:
    """Where the portal runs as an installation runs it, under uvicorn."""
    # Each request has a thread of its own, which must not leave its connection behind.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    server = uvicorn.Server(
        uvicorn.Config(get_asgi_application(), port=0, lifespan="off", log_config=None)
    )
    listening = server.config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


# Files of the look come through WhiteNoise, which Django has to read as a whole here.
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
@pytest.mark.parametrize(("width", "scripts"), [(1280, True), (390, False)])
def test_steps_are_seen_while_it_works(
    visit: Visit,
    asgi_url: str,
    cast: Cast,
    settings: Settings,
    width: int,
    *,
    scripts: bool,
) -> None:
    release = threading.Event()

    def slowly(prompt: Prompt) -> str:
        if is_rewording(prompt):
            return SEARCHES
        release.wait(60)
        return DRAFT

    visit.url = asgi_url
    page = visit.window(width, java_script_enabled=scripts)
    visit.sign_in(page, cast.granted.user)
    with LanguageModel(slowly) as model:
        point_to(model, settings)
        page.goto(address(q=QUESTION), wait_until="commit")
        try:
            step = page.get_by_text("Wording an answer")
            expect(step).to_be_visible()
            expect(page.locator(".answer")).to_have_count(0)
            page.screenshot(path=SCREENSHOTS / f"ask-steps-{width}.png")
        finally:
            release.set()
        expect(page.locator(".answer-words")).to_contain_text("five working days")
        expect(step).to_be_hidden()


@pytest.mark.parametrize("width", WIDTHS)
def test_answer_is_rated_where_it_stands(
    visit: Visit, corpus: Corpus, cast: Cast, width: int
) -> None:
    page = visit.window(width)
    visit.sign_in(page, cast.granted.user)
    page.goto(address(q=QUESTION))
    page.get_by_role("button", name="No", exact=True).click()
    expect(page.locator("#rating-title")).to_be_focused()
    page.get_by_text("It is out of date").click()
    page.get_by_role("radio", name=": outdated").first.check(force=True)
    page.screenshot(path=SCREENSHOTS / f"ask-rated-{width}.png", full_page=True)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".rating-more")).to_have_count(0)
    expect(page.locator("#rating-title")).to_have_text("Thank you. Did this help?")
    expect(page.locator(".answer-status")).to_be_visible()
    rating = Feedback.objects.get()
    assert rating.reasons == ["outdated"]
    assert rating.passages.get().worth == "outdated"
    own = f"/asked/{rating.interaction_id}/rate/"
    wrong = look_at(page, own, "rating", full_page=True)
    assert not wrong, "\n".join(wrong)
    # A search is rated too; where the request fails, on the rating's own page.
    page.route("**/rate/", refuse_parts)
    page.goto(f"/?{urlencode({'q': QUESTION})}")
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.get_by_text("Your rating is kept.")).to_be_visible()
    assert Feedback.objects.latest("pk").is_helpful
    assert [each for each in visit.problems if "503" not in each] == []
    visit.problems.clear()


def refuse_parts(route: Route) -> None:
    """Fail what a script asks for alone, as a server that is being restarted does."""
    if "x-part" in route.request.headers:
        route.fulfill(status=503)
    else:
        route.continue_()
