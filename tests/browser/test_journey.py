"""The main journey: from a file in the admin to a cited passage, and back out."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from knowledge.actions import create_knowledge_base
from knowledge.models import User
from knowledge.tokens import create_token
from tests.browser.conftest import Visit
from tests.factories import StaffFactory
from tests.worker_process import Worker

QUESTION = "How long may the battery of an electric bicycle charge in the basement?"
FIRST = """# Quy định về xe đạp điện

## 1. Nơi để xe

Xe đạp điện được để ở tầng hầm phía bắc, hàng có vạch màu cam.

## 2. Sạc pin

Pin xe đạp điện chỉ được sạc dưới tầng hầm từ 9 giờ đến 15 giờ, mỗi lần không quá ba
tiếng rưỡi. Người sạc phải ghi tên vào sổ XD-4471.
"""
SECOND = FIRST.replace("ba\ntiếng rưỡi", "hai\ntiếng")


@pytest.fixture
def editor(transactional_db: None) -> User:
    """A member of staff with a knowledge base of their own."""
    user = StaffFactory(username="thu", groups=["Editor"])
    create_knowledge_base(name="Nội quy", slug="rules", actor=user)
    return user


@pytest.fixture
def worker(editor: User, model: str, tmp_path: Path) -> Iterator[Worker]:
    """The product's own worker, on this test's database."""
    with Worker(tmp_path / "worker.log") as worker:
        yield worker


def marked(page: Page) -> str:
    """Return the words that a document's page highlights, white space single."""
    return " ".join(" ".join(page.locator("mark.cited").all_inner_texts()).split())


def results_by_curl(url: str, token: str) -> list[dict[str, object]]:
    """Ask the API as a program does."""
    program = shutil.which("curl")
    assert program is not None
    answer = subprocess.run(
        [
            program,
            "--silent",
            "--show-error",
            "--fail",
            "--header",
            f"Authorization: Bearer {token}",
            "--header",
            "Content-Type: application/json",
            "--data",
            json.dumps({"query": QUESTION}),
            f"{url}/api/v1/search",
        ],
        capture_output=True,
        check=True,
    )
    found: list[dict[str, object]] = json.loads(answer.stdout)["results"]
    return found


@pytest.mark.timeout(600)
@pytest.mark.req("S2-REF-02", "S2-REF-03", "S2-ING-15")
def test_from_a_new_file_to_a_cited_passage(
    visit: Visit,
    live_server: LiveServer,
    editor: User,
    worker: Worker,
    tmp_path: Path,
) -> None:
    page = visit.window()
    file = tmp_path / "xe-dap-dien.md"
    file.write_text(FIRST, encoding="utf-8")

    # Upload by the form; the row of the file says how far it is.
    visit.sign_in(page, editor, "/admin/knowledge/source/add/")
    layer = page.locator("select[name=layer]")
    layer.select_option(label=layer.locator("option").last.inner_text())
    page.set_input_files("input[type=file]", file)
    page.get_by_role("button", name="Upload").click()
    row = page.locator(".files .file")
    expect(row.locator("[data-state=ready]")).to_be_visible(timeout=180_000)
    source_path = row.locator("a").get_attribute("href")
    assert source_path is not None

    # Asked in another language, the portal finds it and opens it at the place.
    search = f"/?{urlencode({'q': QUESTION})}"
    page.goto(search)
    hit = page.locator(".hit").first
    expect(hit).to_contain_text("tiếng rưỡi")
    hit.locator("[data-item-link]").click()
    cited = page.locator("mark#cited")
    expect(cited).to_be_in_viewport()
    expect(page.locator(".banner")).to_have_count(0)
    old_address, old_words = page.url, marked(page)
    assert "ba tiếng rưỡi" in old_words

    # A program gets the same passage.
    _row, token = create_token(owner=editor, name="curl", actor=editor)
    result = results_by_curl(live_server.url, token)[0]
    assert " ".join(str(result["text"]).split()) == old_words
    assert f"{live_server.url}/read/{result['ref']}/#cited" == old_address

    # The original is handed back as it came.
    answer = page.request.get(
        page.get_by_role("link", name="Download").get_attribute("href") or ""
    )
    assert answer.body() == FIRST.encode()

    # Replaced: the new words are found, the old citation shows what it said then.
    file.write_text(SECOND, encoding="utf-8")
    page.goto(source_path)
    page.get_by_text("Replace the file").click()
    page.set_input_files("#replacement", file)
    page.get_by_role("button", name="See what it changes").click()
    page.get_by_role("button", name="Put the file in its place").click()
    expect(page.locator("[data-state=ready]").first).to_be_visible(timeout=180_000)
    page.goto(search)
    expect(page.locator(".hit").first).to_contain_text("hai tiếng")
    expect(page.locator(".hits")).not_to_contain_text("tiếng rưỡi")
    page.goto(old_address)
    assert marked(page) == old_words
    expect(page.locator(".banner")).to_contain_text("This is not the current text")
    page.get_by_role("link", name="Open the current text").click()
    expect(page.locator(".doc")).to_contain_text("không quá hai")

    # Switched off: gone at the next search, and the old citation with it.
    page.goto(source_path)
    page.get_by_role("button", name="Switch off").click()
    page.wait_for_load_state()
    page.goto(search)
    expect(page.get_by_text("Not in the documents")).to_be_visible()
    gone = page.request.get(old_address)
    assert gone.status == 404
