"""`make bench-journey`: the main journey against a running portal.

Signs in to the admin with a real Chromium, uploads a file that is new to the portal
through the upload form, waits until the worker has it ready, asks for it in another
language over the API with `curl`, and opens the citation in the browser, where exactly
the passage must be highlighted and in view. At the end the file is deleted again.

Address, login and token come from the arguments, else from STRATA_URL and the file
`demo-login.txt` that `make run` writes. The last line of the output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urljoin

from playwright.sync_api import Error, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
VAR = Path(os.environ.get("STRATA_VAR_DIR", "").strip() or ROOT / "var").resolve()
PATIENCE_SECONDS = 180
MINUTE_MS = 60_000
TOP_K = 5
TEXT = """# Quy định về xe đạp điện {code}

## 1. Nơi để xe

Xe đạp điện được để ở tầng hầm phía bắc, hàng có vạch màu cam. Chìa khoá hàng rào nhận
tại phòng thường trực.

## 2. Sạc pin

Pin xe đạp điện chỉ được sạc dưới tầng hầm từ 9 giờ đến 15 giờ, mỗi lần không quá ba
tiếng rưỡi. Người sạc phải ghi tên vào sổ {code} và tự rút phích cắm khi hết giờ.
"""
QUESTION = "How long may the battery of an electric bicycle charge in the basement?"


@dataclass(frozen=True, slots=True)
class Visit:
    """Where to go and as whom."""

    url: str
    user: str
    password: str
    token: str


@dataclass(slots=True)
class Steps:
    """How long each step took, in seconds."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step and say when it is done."""
        began = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - began, 2)
        print(f"  {name:<28} {self.seconds[name]:8.2f} s", flush=True)


def refuse(sentence: str) -> NoReturn:
    """End with one sentence and status 2: something to begin with is missing."""
    print(sentence, file=sys.stderr)
    raise SystemExit(2)


def fail(sentence: str) -> NoReturn:
    """End with one sentence and status 1: the journey does not lead to its end."""
    print(sentence, file=sys.stderr)
    raise SystemExit(1)


def read_visit() -> Visit:
    """Return what the arguments say, filled up from what `make run` wrote."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.journey")
    port = os.environ.get("STRATA_WEB_PORT", "").strip() or "8600"
    default = os.environ.get("STRATA_URL", "").strip() or f"http://127.0.0.1:{port}"
    parser.add_argument("--url", default=default, help="the portal's address")
    parser.add_argument("--user", help="a person who may upload")
    parser.add_argument("--password")
    parser.add_argument("--token", help="an API token of that person")
    given = parser.parse_args()
    known = {}
    file = VAR / "demo-login.txt"
    if file.is_file():
        lines = file.read_text(encoding="ascii").splitlines()
        known = dict(line.partition(": ")[::2] for line in lines)
    visit = Visit(
        url=given.url.rstrip("/"),
        user=given.user or known.get("user", ""),
        password=given.password or known.get("password", ""),
        token=given.token or known.get("token", ""),
    )
    for name in ("user", "password", "token"):
        if not getattr(visit, name):
            refuse(
                f"There is no {name}: give --{name}, or start the portal by make run."
            )
    return visit


def program(name: str) -> str:
    """Return the path of a program, or refuse."""
    found = shutil.which(name)
    if found is None:
        refuse(f"The journey needs {name}, and it is not installed here.")
    return found


def sign_in(page: Page, visit: Visit) -> None:
    """Sign in at the admin's own form."""
    page.goto(f"{visit.url}/admin/login/?next=/admin/")
    page.fill("input[name=username]", visit.user)
    page.fill("input[name=password]", visit.password)
    page.click("[type=submit] >> nth=-1")
    page.wait_for_url(f"{visit.url}/admin/")


def upload(page: Page, visit: Visit, file: Path) -> str:
    """Upload a file by the form, see it become ready; return its admin page's path."""
    page.goto(f"{visit.url}/admin/knowledge/source/add/")
    layer = page.locator("select[name=layer]")
    layer.select_option(
        layer.locator("option[value]:not([value=''])").first.get_attribute("value")
    )
    page.set_input_files("input[type=file]", str(file))
    page.get_by_role("button", name="Upload").click()
    row = page.locator(".files .file", has_text=file.name)
    row.wait_for()
    end = time.monotonic() + PATIENCE_SECONDS
    while (state := row.locator("[data-state]").get_attribute("data-state")) != "ready":
        if state == "failed" or time.monotonic() > end:
            fail(f"The file is {state}: {row.inner_text()}")
        page.wait_for_timeout(200)
    return row.locator("a").get_attribute("href") or ""


def ask(visit: Visit, curl: str, file_name: str) -> dict[str, Any]:
    """Return the file's passage as the API gives it to `curl`."""
    answer = subprocess.run(
        [
            curl,
            "--silent",
            "--show-error",
            "--fail-with-body",
            "--header",
            f"Authorization: Bearer {visit.token}",
            "--json",
            json.dumps({"query": QUESTION, "top_k": TOP_K}),
            f"{visit.url}/api/v1/search",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        fail(f"curl got no answer: {answer.stderr.strip()} {answer.stdout.strip()}")
    results = json.loads(answer.stdout)["results"]
    for result in results:
        if result["citation"]["file"] == file_name:
            found: dict[str, Any] = result
            return found
    files = ", ".join(result["citation"]["file"] for result in results) or "nothing"
    fail(f"The new file is not among the first {TOP_K} results, which are {files}.")


def open_citation(page: Page, visit: Visit, result: dict[str, Any]) -> None:
    """Open a result's citation; its passage must be highlighted and in view."""
    page.goto(urljoin(visit.url, result["citation"]["url"]))
    page.wait_for_selector("mark#cited")
    marked = " ".join(page.locator("mark.cited").all_inner_texts())
    if marked.split() != result["text"].split():
        fail(f"The page highlights other words than the passage's: {marked}")
    place = page.locator("mark#cited").bounding_box()
    size = page.viewport_size
    if place is None or size is None or not 0 <= place["y"] < size["height"]:
        fail(f"The highlighted passage is out of view, at {place}.")


def delete(page: Page, visit: Visit, path: str) -> None:
    """Delete the file by the admin's form; its page says so."""
    page.goto(f"{visit.url}{path.removesuffix('change/')}delete/")
    page.locator("#content [type=submit], #content-main [type=submit]").first.click()
    page.wait_for_url(f"{visit.url}/admin/knowledge/source/**")


def journey(visit: Visit, steps: Steps, folder: Path) -> str:
    """Walk the journey and return the ref of the passage that was opened."""
    curl = program("curl")
    code = f"XD-{secrets.randbelow(900_000) + 100_000}"
    file = folder / f"xe-dap-dien-{code}.md"
    file.write_text(TEXT.format(code=code), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program("chromium"),
            # Chromium's own sandbox refuses to run as root.
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        page = browser.new_page(locale="en")
        page.set_default_timeout(MINUTE_MS)
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda message: (
                problems.append(message.text) if message.type == "error" else None
            ),
        )
        with steps.step("sign in"):
            sign_in(page, visit)
        with steps.step("upload until ready"):
            path = upload(page, visit, file)
        with steps.step("search by curl"):
            result = ask(visit, curl, file.name)
        with steps.step("open and see highlighted"):
            open_citation(page, visit, result)
        with steps.step("delete"):
            delete(page, visit, path)
        browser.close()
    if problems:
        fail("The browser complained: " + "; ".join(problems))
    return str(result["ref"])


def main() -> None:
    """Walk the journey and print what it took."""
    visit = read_visit()
    steps = Steps()
    print(f"The main journey at {visit.url}:", flush=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            ref = journey(visit, steps, Path(folder))
    except Error as error:
        fail(f"The browser got no further: {error.message}")
    print(json.dumps({"seconds": steps.seconds, "ref": ref}))


if __name__ == "__main__":
    main()
