"""The search lab and the settings' check, as staff use them in a browser."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from knowledge.permissions import Access, grant
from retrieval.adjusting import propose_tuning
from retrieval.exchange import Line
from retrieval.measuring import carry_out, check_proposal, import_lines
from retrieval.models import QuestionSet, SetRun
from retrieval.tuning import current
from tests.browser.conftest import SCREENSHOTS, Visit
from tests.browser.looking import WIDTHS, look_at
from tests.cast import Cast
from tests.factories import ready_source
from tests.stored_corpus import Corpus

QUERY = "What happens when a member loses the payment card?"


def slide(page: Page, label: str, value: str) -> None:
    """Move a slider to a value, as a hand does."""
    slider = page.get_by_label(label, exact=True)
    slider.evaluate(
        "(slider, value) => { slider.value = value;"
        " slider.dispatchEvent(new Event('input', { bubbles: true })); }",
        value,
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_the_lab_fits_and_shows_the_lists(
    visit: Visit, corpus: Corpus, cast: Cast, width: int
) -> None:
    boss = cast.superuser.user
    assert boss is not None
    for base in (corpus.handbook, corpus.branches):
        grant(base, [Access.SEARCH], to=boss, actor=None)
    page = visit.window(width)
    visit.sign_in(page, boss)
    address = reverse("admin:retrieval_searchlab_changelist") + f"?q={QUERY}"
    assert look_at(page, address, "admin-lab-result", full_page=True) == []
    expect(page.locator(".bump")).to_have_count(10)
    if width > 1000:
        slide(page, "Weight of words", "2")
        expect(page.locator(".lab-changes")).to_contain_text("Weight of words 0.3 → 2")
        page.screenshot(path=SCREENSHOTS / "admin-lab-moved.png", full_page=True)


@pytest.mark.req("R1", "R3")
def test_sliders_are_tried_live_and_taken_to_the_check(
    visit: Visit, shelves: Corpus, cast: Cast
) -> None:
    layer = shelves.handbook.layers.get()
    ready_source("The rent is due in May.", layer=layer, title="Rent")
    ready_source("Rent, rent and rent again.", layer=layer, title="Again")
    boss = cast.superuser.user
    assert boss is not None
    grant(shelves.handbook, [Access.SEARCH], to=boss, actor=None)
    page = visit.window()
    visit.sign_in(page, boss)
    page.goto(reverse("admin:retrieval_searchlab_changelist"))
    page.get_by_label("Query").fill("rent may")
    expect(page.locator(".lab-table")).to_contain_text("Rent")
    slide(page, "k of the ranks", "20")
    expect(page.locator(".lab-changes")).to_contain_text("k of the ranks 60 → 20")
    assert "rrf_k=20" in page.url
    row = page.locator(".lab-table tbody tr").first
    row.hover()
    expect(page.locator(".bump.is-lit")).to_have_count(1)
    page.get_by_role("button", name="Make these the deployment’s settings").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Check the new settings")
    page.get_by_role("button", name="Save, from the next search on").click()
    expect(page.locator("h1")).to_have_text("Search settings")
    assert current().weights.k == 20


@pytest.mark.req("S2-LOG-03")
def test_a_check_renews_itself_until_its_runs_have_ended(
    visit: Visit, shelves: Corpus, cast: Cast
) -> None:
    layer = shelves.handbook.layers.get()
    ready_source("The rent is due in May.", layer=layer, path="rent.txt")
    boss = cast.superuser.user
    assert boss is not None
    made = QuestionSet.objects.create(name="Leases", asked_as=cast.granted.user)
    made.knowledge_bases.add(shelves.handbook)
    line = Line("rent", "1", "en", places=({"file": "rent.txt"},))
    import_lines(made, [line], actor=boss)
    proposal = propose_tuning({"search_type": "semantic"}, actor=boss)
    check_proposal(proposal, actor=boss)
    page = visit.window()
    visit.sign_in(page, boss)
    page.goto(reverse("admin:retrieval_tuningrecord_proposal", args=[proposal.pk]))
    expect(page.get_by_text("has not been asked to its end")).to_be_visible()
    for run in SetRun.objects.all():
        carry_out(run.pk)
    expect(page.get_by_text("lower the figures of 1 question set")).to_be_visible()
    expect(page.locator(".check")).to_contain_text("0 better, 1 worse")
    page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Save, from the next search on").click()
    expect(page.locator("h1")).to_have_text("Search settings")
