"""The page of a receipt, and the page that checks one from a disk."""

import base64
import hashlib
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from knowledge.purging import purge_source
from retrieval.models import Receipt
from retrieval.opening import export
from retrieval.proof import check_file, read_keys
from retrieval.signing import published_keys
from tests.browser.conftest import SCREENSHOTS, Visit
from tests.browser.looking import RULES, WIDTHS, look_at, overflow
from tests.cast import Cast
from tests.factories import ready_source
from tests.retrieval.receipts import issued, replace_text, span_of, unguarded
from tests.stored_corpus import Corpus

CHECKER = (
    Path(__file__).resolve().parents[2] / "static/strata_portal/check-receipt.html"
)
TEXT = (
    "Opening hours\nThe harbour opens at six 🚢 and closes at nine. A berth costs 5 euro "
    "a night; boats longer than 12 metres pay twice as much.\nBoats wait outside."
)
VIETNAMESE = (
    "Người lao động được nghỉ 12 ngày phép hằng năm, nếu đã làm việc đủ một năm. "
    "Quy định này áp dụng cho mọi chi nhánh."
)
DRAFT = (
    'The harbour "opens at six" [S1], and a berth costs 5 euro a night [S1]. '
    "Everybody has 12 days of leave [S2]. Have a good trip."
)


@pytest.fixture
def receipt(shelves: Corpus, cast: Cast) -> Receipt:
    """A receipt of a draft about two documents, with a sentence that was not checked."""
    layer = shelves.handbook.layers.get()
    harbour = ready_source(TEXT, layer=layer, title="Harbour rules")
    leave = ready_source(VIETNAMESE, layer=layer, title="Quy chế nghỉ phép")
    one, two = (source.passages.get() for source in (harbour, leave))
    quotes = tuple(
        (TEXT.index(words), TEXT.index(words) + len(words))
        for words in ("opens at six", "A berth costs 5 euro a night")
    )
    read = [
        span_of(one, quotes=quotes),
        span_of(two, quotes=((25, 33),)),
    ]
    return issued(
        cast.granted.reader,
        read=read,
        draft=DRAFT,
        unchecked=["Have a good trip."],
        question="When does the harbour open, and how long is my leave?",
    )


def variants(receipt: Receipt, cast: Cast) -> Iterator[str]:
    """Yield what happens to a receipt, one thing after the other, by name."""
    yield "current"
    first, second = (row.source for row in receipt.reads.all())
    assert first is not None
    assert second is not None
    replace_text(second, "Everybody has 20 days of leave.")
    replace_text(first, TEXT.replace("nine", "nine").replace("Opening", "New opening"))
    yield "replaced"
    purge_source(second, actor=None)
    yield "erased"
    with unguarded():
        receipt.words.filter(part="read/0/text").update(text="It opens at five.")
    yield "changed"


@pytest.mark.req("S1-RCP-03", "REL-R5")
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_a_receipt(
    visit: Visit, receipt: Receipt, cast: Cast, width: int
) -> None:
    page = visit.window(width, permissions=["clipboard-write", "clipboard-read"])
    visit.sign_in(page, cast.granted.user)
    wrong = []
    for name in variants(receipt, cast):
        address = f"/receipts/{receipt.public_id}/"
        wrong += look_at(page, address, f"receipt-{name}", full_page=True)
        page.emulate_media(media="print", color_scheme="light")
        page.screenshot(
            path=SCREENSHOTS / f"receipt-{name}-{width}-print.png", full_page=True
        )
        page.emulate_media(media="screen")
    assert not wrong, "\n".join(wrong)
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == receipt.public_id


# --- The page that checks -----------------------------------------------------------------


@pytest.mark.req("REL-X9")
def test_its_policy_lets_nothing_run_but_itself_and_nothing_out() -> None:
    text = CHECKER.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    hashes = {}
    for tag in ("script", "style"):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = hashlib.sha256(inner.encode()).digest()
        hashes[tag] = base64.b64encode(digest).decode()
    assert policy[1] == (
        f"default-src 'none'; script-src 'sha256-{hashes['script']}'; "
        f"style-src 'sha256-{hashes['style']}'; base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"https?:|\bimport\b|fetch\(|innerHTML|\bon\w+=", text)


@pytest.fixture
def checker(chromium: Browser) -> Iterator[Page]:
    """The page, opened from the disk in a browser that is offline."""
    context = chromium.new_context(offline=True, reduced_motion="reduce", locale="en")
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: problems.append(request.url))
    page.goto(CHECKER.as_uri())
    assert problems == [CHECKER.as_uri()]
    yield page
    context.close()
    assert problems == [CHECKER.as_uri()]


def choose(page: Page, receipt: bytes, keys: bytes) -> None:
    """Choose the two files."""
    for name, data in (("receipt", receipt), ("keys", keys)):
        page.set_input_files(
            f"#{name}",
            {"name": f"{name}.json", "mimeType": "application/json", "buffer": data},
        )


@pytest.mark.req("S1-RCP-03", "REL-R3")
def test_it_tells_intact_from_changed_and_unknown(
    checker: Page, receipt: Receipt
) -> None:
    data, keys = export(receipt), published_keys()
    choose(checker, data, keys)
    verdict = checker.locator(".verdict h2")
    expect(verdict).to_have_text("Intact")
    expect(checker.locator("mark")).to_have_text(
        ["opens at six", "A berth costs 5 euro a night", VIETNAMESE[25:33]]
    )
    expect(checker.get_by_text("Have a good trip.", exact=True)).to_be_visible()
    expect(checker.get_by_text(receipt.key_id)).to_be_visible()

    choose(checker, data.replace(b"5 euro a night;", b"6 euro a night;"), keys)
    expect(verdict).to_have_text("Changed")
    expect(checker.locator(".verdict li")).to_have_text(
        "Passage 1, text: Its words or their salt were changed."
    )
    expect(checker.locator("mark")).to_have_count(0)

    none = json.dumps({"format": "strata-receipt-keys/1", "keys": []}).encode()
    choose(checker, data, none)
    expect(verdict).to_have_text("Unknown key")
    choose(checker, data, data)
    expect(verdict).to_have_text("Not to be read")

    source = receipt.reads.all()[0].source
    assert source is not None
    purge_source(source, actor=None)
    choose(checker, export(receipt), keys)
    expect(verdict).to_have_text("Intact")
    expect(checker.locator(".removed").first).to_contain_text("Words removed on")
    expect(checker.locator("mark")).to_have_text([VIETNAMESE[25:33]])


def mutations(data: bytes, draw: random.Random) -> Iterator[bytes]:
    """Yield a file, and other files that are like it."""
    yield data
    for _ in range(300):
        bit = draw.randrange(8 * len(data))
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)
    for _ in range(60):
        start = draw.randrange(len(data))
        end = start + draw.randrange(40)
        yield data[:start] + data[end:]
        yield data[:end] + data[start:]
    file = json.loads(data)
    yield json.dumps(file).encode()
    yield json.dumps(file, ensure_ascii=False, separators=(",", ":")).encode()
    yield json.dumps(file, indent=1, sort_keys=True).encode()
    for part in file["words"]:
        words = {name: row for name, row in file["words"].items() if name != part}
        yield written({**file, "words": words})
        yield written({**file, "words": {**file["words"], f"{part}/more": {}}})
    for more in ({"x": 1}, {"signed": {}}, {"signature": ""}, {"words": []}):
        yield written({**file, **more})
    for number in (7.5, 2**53, -0.0, 1e3):
        yield written({**file, "signed": {**file["signed"], "number": number}})
    yield data.replace(b"Harbour", b"Harb\\ud800our")
    yield b'{"a":' * 3000 + b"1" + b"}" * 3000
    yield b"\xef\xbb\xbf" + data
    yield b""


def written(file: Any) -> bytes:
    """Return an object as a receipt's file is written, or nearly so."""
    text = json.dumps(file, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode()


CHECK_ALL = """async ([files, keys]) => {
    const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    const trusted = await readKeys(bytes(keys));
    const found = [];
    for (const file of files) {
        const { outcome, problems } = await checkFile(bytes(file), trusted);
        found.push([outcome, problems.map(([part]) => part)]);
    }
    return found;
}"""


@pytest.mark.req("REL-R1", "REL-R2")
@pytest.mark.parametrize("purged", [False, True])
def test_page_and_portal_check_alike(
    checker: Page, receipt: Receipt, *, purged: bool
) -> None:
    if purged:
        source = receipt.reads.all()[0].source
        assert source is not None
        purge_source(source, actor=None)
    keys = published_keys()
    files = list(mutations(export(receipt), random.Random(5)))
    told = checker.evaluate(
        CHECK_ALL,
        [
            [base64.b64encode(file).decode() for file in files],
            base64.b64encode(keys).decode(),
        ],
    )
    trusted = read_keys(keys)
    for file, (outcome, parts) in zip(files, told, strict=True):
        found = check_file(file, trusted)
        assert found.outcome == outcome, file
        # JavaScript does not tell 1000.0 from 1000: it sees other bytes, and looks on.
        said = [each.part for each in found.problems]
        assert parts[:1] == said if found.file is None else parts == said, file
        assert found.is_intact == (file == files[0])


@pytest.mark.parametrize("width", WIDTHS)
def test_the_checking_page_fits_and_reads_well(
    checker: Page, receipt: Receipt, width: int
) -> None:
    checker.set_viewport_size({"width": width, "height": 900})
    data, keys = export(receipt), published_keys()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    wrong = []
    for name, file in (
        ("empty", b""),
        ("intact", data),
        ("changed", data.replace(b"5 euro", b"6 euro")),
    ):
        if file:
            choose(checker, file, keys)
            expect(checker.locator(".verdict")).to_have_attribute("data-outcome", name)
        if (pixels := overflow(checker)) > 0:
            wrong.append(f"{name} is {pixels} px too wide")
        for scheme, rules in RULES.items():
            checker.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            checker.screenshot(
                path=SCREENSHOTS / f"checker-{name}-{width}-{scheme}.png",
                full_page=True,
            )
            found = Axe().run(checker, options=rules)
            wrong += [f"{name}: {each['id']}" for each in found.response["violations"]]
    assert not wrong, "\n".join(wrong)
