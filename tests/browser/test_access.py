"""Access for many and view as, by hand in a browser."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import expect

from knowledge.models import AuditEntry
from knowledge.permissions import deny
from tests.browser.conftest import SCREENSHOTS, Visit
from tests.browser.looking import overflow
from tests.cast import Cast
from tests.factories import UserFactory, ready_source
from tests.stored_corpus import Corpus


@pytest.mark.req("S3-VIS-01", "S3-VIS-02")
@pytest.mark.parametrize("width", [1280, 390])
def test_access_for_many_is_seen_before_it_is_done(
    visit: Visit, shelves: Corpus, cast: Cast, width: int
) -> None:
    for number in range(60):
        UserFactory(username=f"reader-{number:02}", first_name="An", last_name="Bui")
    stopped = UserFactory(username="stopped")
    deny(shelves.branches, to=stopped, actor=None)
    page = visit.window(width)
    visit.sign_in(page, cast.superuser.user)
    page.goto(reverse("admin:knowledge_knowledgebase_changelist"))
    page.get_by_role("link", name="Access for many").click()
    page.get_by_label("Search by name").first.fill("reader-")
    page.keyboard.press("Enter")
    expect(page.get_by_text("0 chosen; 60 found")).to_be_visible()
    page.get_by_role("button", name="Choose all 60").click()
    expect(page.get_by_text("60 chosen; 60 found")).to_be_visible()
    page.get_by_label("Search by name").first.fill("stopped")
    page.keyboard.press("Enter")
    page.get_by_role("checkbox", name="stopped").check()
    page.get_by_role("checkbox", name=shelves.branches.name).check()
    page.screenshot(path=SCREENSHOTS / f"bulk-chosen-{width}.png", full_page=True)
    page.get_by_role("button", name="See what would change").click()
    expect(page.get_by_text("This is what would change")).to_be_visible()
    tiles = page.locator(".tile")
    expect(tiles.filter(has_text="rows are written")).to_contain_text("122")
    expect(tiles.filter(has_text="views are gained")).to_contain_text("60")
    expect(tiles.filter(has_text="a deny overrules")).to_contain_text("1")
    page.screenshot(path=SCREENSHOTS / f"bulk-preview-{width}.png", full_page=True)
    assert overflow(page) <= 0
    assert Axe().run(page).violations_count == 0
    page.get_by_role("button", name="Do it").click()
    expect(page.get_by_text("122 rows were written.")).to_be_visible()
    assert AuditEntry.objects.filter(verb="granted", actor=cast.superuser.user).count()


@pytest.mark.req("D27")
@pytest.mark.parametrize("width", [1280, 390])
def test_view_as_is_plain_to_see_and_one_click_from_its_end(
    visit: Visit, shelves: Corpus, cast: Cast, width: int
) -> None:
    ready_source("The rent is due in May.", layer=shelves.handbook.layers.get())
    page = visit.window(width)
    visit.sign_in(page, cast.superuser.user)
    page.goto(
        reverse("admin:knowledge_knowledgebase_finders", args=[shelves.handbook.pk])
    )
    page.get_by_role("link", name="View as granted").click()
    page.get_by_label("Why?").fill("Asked why the rent is missing.")
    page.get_by_role("button", name="View as this person").click()
    banner = page.locator(".viewing")
    expect(banner).to_contain_text("You see the portal as granted sees it")
    page.goto("/?q=rent")
    expect(page.get_by_text("The rent is due in May.")).to_be_visible()
    page.mouse.wheel(0, 4000)
    expect(banner).to_be_in_viewport()
    assert overflow(page) <= 0
    assert Axe().run(page).violations_count == 0
    page.screenshot(path=SCREENSHOTS / f"view-as-{width}.png")
    expect(page.get_by_role("link", name="Admin")).to_have_count(0)
    response = page.goto("/account/tokens/")
    assert response is not None
    assert response.status == 403
    page.screenshot(path=SCREENSHOTS / f"view-as-closed-{width}.png")
    page.get_by_role("button", name="Stop").click()
    expect(banner).to_have_count(0)
    page.goto("/?q=rent")
    expect(page.get_by_text("The rent is due in May.")).to_have_count(0)
    # The browser itself tells of the page that was refused.
    visit.problems = [each for each in visit.problems if "403" not in each]
