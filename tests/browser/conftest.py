"""A real Chromium for the tests of this folder.

`visit` opens browser windows on the live server, watches them, and fails the test at
its end if a window logged an error, was refused something by the content security
policy, or asked for anything outside the portal.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from knowledge.models import User
from tests.factories import PASSWORD

PATIENCE_MS = 120_000
SCREENSHOTS = Path(__file__).resolve().parents[2] / "var" / "screenshots"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser, started once."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("There is no Chromium on this machine.")
    with pytest.MonkeyPatch.context() as patch:
        # Playwright keeps an event loop in this thread, which Django would take for a
        # caller that must not wait for the database.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=program,
                # Chromium's own sandbox refuses to run as root.
                args=["--no-sandbox"] if os.geteuid() == 0 else [],
            )
            yield browser
            browser.close()


@dataclass
class Visit:
    """Windows on the portal, and what they complained of."""

    browser: Browser
    url: str
    problems: list[str] = field(default_factory=list)

    def window(self, width: int = 1280, scheme: str = "light", **options: Any) -> Page:
        """Open a window of its own, signed in as nobody."""
        context = self.browser.new_context(
            base_url=self.url,
            viewport={"width": width, "height": 844 if width < 600 else 900},
            color_scheme=scheme,  # type: ignore[arg-type]
            locale="en",
            reduced_motion="reduce",
            **options,
        )
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", self.note_message)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", self.note_dialog)
        context.on("request", self.note_request)
        return page

    def note_message(self, message: Any) -> None:
        """Keep what the browser reports as an error."""
        if message.type == "error":
            self.problems.append(f"console: {message.text}")

    def note_dialog(self, dialog: Any) -> None:
        """A dialog of the browser itself is always somebody's script."""
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def note_request(self, request: Any) -> None:
        """Keep what goes elsewhere than to the portal."""
        if not request.url.startswith(
            (self.url, "chrome-extension:", "data:", "blob:")
        ):
            self.problems.append(f"request: {request.url}")

    def sign_in(self, page: Page, user: User | None, path: str = "/") -> None:
        """Sign in by the form, as a person does, and end at `path`."""
        assert user is not None
        page.goto(f"/login/?next={path}")
        page.fill("input[name=username]", user.get_username())
        page.fill("input[name=password]", PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{self.url}{path}")


@pytest.fixture
def visit(chromium: Browser, live_server: LiveServer) -> Iterator[Visit]:
    """Windows on the live server; what they complained of fails the test."""
    visit = Visit(chromium, live_server.url)
    yield visit
    for context in chromium.contexts:
        context.close()
    assert visit.problems == []
