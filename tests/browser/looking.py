"""What a person would trip over on a page, in the light and in the dark."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import SCREENSHOTS

WIDTHS = (1280, 390)
# A theme changes colours alone; what else axe looks for is the same in the other one.
COLOURS = ["color-contrast", "link-in-text-block"]
RULES: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"runOnly": {"type": "rule", "values": COLOURS}},
}


def overflow(page: Page) -> int:
    """Return by how many pixels a page is wider than its window."""
    width: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return width


def look_at(
    page: Page, address: str, name: str, *, full_page: bool = False
) -> list[str]:
    """Open a page, keep a picture of it in each theme, and return what is wrong."""
    response = page.goto(address)
    assert response is not None
    assert response.ok, name
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    width = page.viewport_size["width"] if page.viewport_size else 0
    wrong = []
    if (pixels := overflow(page)) > 0:
        wrong.append(f"{name} is {pixels} px too wide")
    for scheme, rules in RULES.items():
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.screenshot(
            path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=full_page
        )
        # The frame of an original is the browser's own page, or one in a sandbox.
        report = Axe().run(page, options={"iframes": False, **rules})
        if report.violations_count:
            wrong.append(f"{name}, {scheme}: {report.generate_report()}")
    return wrong
