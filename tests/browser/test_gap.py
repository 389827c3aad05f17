"""The gate's journey: from a question that nobody wrote an answer to, to its answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from approvals.models import PendingQuestion
from approvals.models.question import Gap, State
from knowledge.actions import create_knowledge_base
from knowledge.models import AgentClient, KnowledgeBase, User
from knowledge.permissions import Access, grant
from knowledge.tokens import create_agent_token
from tests.browser.conftest import Visit
from tests.factories import StaffFactory, UserFactory
from tests.stored_corpus import bring_in
from tests.worker_process import Worker, until

ASKED = "Where can I have the strap of my theodolite case mended?"
ELSEWHERE = "Gdzie mogę oddać do naprawy pasek od futerału teodolitu?"
PHONE = "+48 512 345 678"
ANSWER = (
    "The saddler in Orchard Lane 9 mends the straps of theodolite cases within a week."
)
WRITTEN = """# Opening hours of the instrument store

The instrument store opens on Mondays and Thursdays from 8 to 15. Levels and tripods
are lent for three days.
"""


@pytest.fixture
def store(transactional_db: None, model: str) -> KnowledgeBase:
    """A knowledge base that says nothing of straps."""
    keeper = StaffFactory(username="keeper", groups=["Editor"])
    base = create_knowledge_base(name="Instrument store", slug="store", actor=keeper)
    layer = base.layers.get()
    bring_in(layer, "hours.md", WRITTEN.encode())
    return base


def reading(user: User, base: KnowledgeBase) -> User:
    """Return a person who may search a knowledge base from now on."""
    grant(base, [Access.LIST, Access.SEARCH], to=user, actor=None)
    return user


@pytest.fixture
def worker(store: KnowledgeBase, tmp_path: Path) -> Iterator[Worker]:
    """The product's own worker, on this test's database."""
    with Worker(tmp_path / "worker.log") as worker:
        yield worker


def agent_of(owner: User, base: KnowledgeBase) -> str:
    """Return the token of an agent that acts for a person in a knowledge base."""
    client = AgentClient.objects.create(owner=owner, name="Counter agent")
    client.knowledge_bases.set([base])
    _row, token = create_agent_token(client, name="Counter agent", actor=owner)
    return token


def answers(page: Page, token: str) -> list[dict[str, Any]]:
    """Return what the agent client is told when it asks, and acknowledge it."""
    headers = {"Authorization": f"Bearer {token}"}
    response = page.request.get("/api/v1/answers", headers=headers)
    assert response.ok
    found: list[dict[str, Any]] = response.json()["answers"]
    for each in found[-1:]:
        confirmed = page.request.post(
            "/api/v1/answers/acknowledge",
            headers=headers,
            data={"through": each["sequence"]},
        )
        assert confirmed.ok
    return found


@pytest.mark.timeout(600)
@pytest.mark.req("S2-APR-05", "S2-APR-07", "R17")
def test_a_gap_becomes_knowledge_through_a_person(
    visit: Visit, store: KnowledgeBase, worker: Worker
) -> None:
    asker = reading(UserFactory(username="lidia"), store)
    approver = reading(StaffFactory(username="oana", groups=["Approver"]), store)
    token = agent_of(asker, store)

    # A reader asks what nobody wrote, is told so, and sends it to a person.
    reader = visit.window()
    visit.sign_in(reader, asker, "/ask/")
    reader.fill("#q", ASKED)
    reader.keyboard.press("Enter")
    expect(reader.locator(".answer-status")).to_contain_text("Not in the documents")
    reader.get_by_role("button", name="Send it to a person").click()
    expect(reader.locator(".messages")).to_contain_text("Sent.")
    expect(reader.locator(".hit")).to_contain_text("It waits for a person")

    # Staff find it at the head of their queue, by the keys alone.
    staff = visit.window()
    visit.sign_in(staff, approver, "/admin/approvals/pendingquestion/")
    staff.keyboard.press("j")
    staff.keyboard.press("Enter")
    expect(staff.get_by_role("heading", name=ASKED)).to_be_visible()
    # The keys work once the page's scripts have run, which is after it is seen.
    staff.wait_for_load_state()
    staff.keyboard.press("a")
    answer = staff.locator("textarea[name=answer]")
    expect(answer).to_be_focused()

    # A phone number is marked while it is typed, and stops the answer.
    staff.keyboard.type(f"{ANSWER} Call {PHONE}.")
    mark = staff.locator("mark.guard")
    expect(mark).to_have_text(PHONE)
    staff.get_by_role("button", name="Answer and publish").click()
    expect(staff.locator(".errorlist")).to_contain_text(PHONE)
    assert PendingQuestion.objects.get().state == State.PENDING
    staff.get_by_role("button", name="Take it out").click()
    expect(staff.locator("mark.guard")).to_have_count(0)
    answer.fill(ANSWER)
    staff.get_by_role("button", name="Preview").click()
    expect(staff.locator("[data-preview] .hit")).to_contain_text(ANSWER)
    staff.get_by_role("button", name="Answer and publish").click()
    expect(staff.locator(".messages")).to_contain_text("Answered.")

    # It is taken in and asked again, and the asker is told in the head of each page.
    until(
        lambda: PendingQuestion.objects.get().gap == Gap.CLOSED,
        "the answer to be found when it is asked again",
    )
    reader.goto("/")
    expect(reader.locator(".nav-count")).to_contain_text("1")
    reader.get_by_role("link", name="My questions").click()
    expect(reader.locator(".hit")).to_contain_text(ANSWER)

    # In another language it is answered, with a citation to the approved pair.
    reader.goto(f"/ask/?{urlencode({'q': ELSEWHERE})}")
    source = reader.locator(".hits .hit").first
    expect(source).to_contain_text(ASKED)
    source.locator("[data-item-link]").click()
    expect(reader.locator("#cited")).to_contain_text("Orchard Lane 9")

    # The agent's client has it once: what it has confirmed is not handed out again.
    assert [each["answer"] for each in answers(staff, token)] == [ANSWER]
    assert answers(staff, token) == []
