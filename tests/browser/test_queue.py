"""The pages of the gate, filled, at two widths and in both themes; and its keys."""

import random
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from approvals.models import PendingQuestion
from approvals.models.question import Channel, Gap, State
from knowledge.models import User
from knowledge.models.audit import record
from knowledge.permissions import Access, grant
from tests.approvals.shown import ago, approved, waiting
from tests.browser.conftest import Visit
from tests.browser.looking import WIDTHS, look_at
from tests.cast import Cast
from tests.factories import StaffFactory, ready_source
from tests.stored_corpus import Corpus

QUEUE = "/admin/approvals/pendingquestion/"
QUESTIONS = (
    ("Where do I get a permit for the roof terrace?", "en"),
    ("Xe đạp điện được sạc ở đâu vào cuối tuần?", "vi"),
    ("Gdzie mogę zostawić wózek dziecięcy na noc?", "pl"),
    ("Unde se depun bateriile vechi din apartament?", "ro"),
    ("Кто отвечает за ключи от прачечной в праздники?", "ru"),
    (
        (
            "Who pays for the repair of the intercom on the third floor, and how long "
            "may it take before the landlord has to lend a spare handset to everybody?"
        ),
        "en",
    ),
)


@pytest.fixture
def approver(shelves: Corpus) -> User:
    """A member of staff who settles questions of the handbook and may read it."""
    user = StaffFactory(username="oana", groups=["Approver"])
    grant(shelves.handbook, [Access.LIST, Access.SEARCH], to=user, actor=None)
    return user


def fill(shelves: Corpus, cast: Cast, approver: User) -> dict[str, PendingQuestion]:
    """Make a queue of half a year, and return a question for each kind of page."""
    draw = random.Random(11)
    granted = cast.granted.user
    layer = shelves.handbook.layers.get()
    for number in range(60):
        text, language = draw.choice(QUESTIONS)
        at = ago(days=draw.randint(0, 170), hours=draw.randint(1, 20))
        source = ready_source(
            f"Answer number {number}.", layer=layer, title=f"Question {number}"
        )
        approved(
            text,
            shelves.handbook,
            by=granted if number % 20 == 0 else None,
            at=at,
            language=language,
            source=source,
            layer=layer,
            author=approver,
            approved_by=approver,
            approved_at=min(
                timezone.now(), at + timedelta(hours=draw.lognormvariate(3, 1))
            ),
            gap=draw.choice([Gap.CLOSED, Gap.CLOSED, Gap.OPEN, Gap.UNKNOWN]),
        )
    for number, (text, language) in enumerate(QUESTIONS):
        waiting(
            text,
            shelves.handbook,
            by=granted,
            at=ago(days=3 * number),
            wordings=(f"{text} ({number})",),
            language=language,
            channel=list(Channel)[number % 4],
            asked_count=9 - number,
            asker_count=max(1, 5 - number),
            assigned_to=approver if number == 1 else None,
            locked_by=cast.superuser.user if number == 2 else None,
            locked_until=timezone.now() + timedelta(minutes=3) if number == 2 else None,
        )
    first = PendingQuestion.objects.get(asked_count=9)
    written = waiting(
        "What does a second key cost?",
        shelves.handbook,
        at=ago(days=1),
        answer="A second key costs 12 euros and is ordered from the caretaker.",
        question_as_answered="What does a second key cost?",
        layer=layer,
        author=cast.superuser.user,
        answered_at=ago(hours=2),
        four_eyes=True,
    )
    ignored = waiting(
        "Which of my neighbours complained about me?",
        shelves.handbook,
        by=granted,
        state=State.IGNORED,
        ignored_because="Never to be answered by a machine.",
    )
    waiting(
        "Where is the permit for the terrace issued?",
        shelves.handbook,
        by=granted,
        state=State.DUPLICATE,
        original=first,
    )
    waiting(
        "When is the sauna heated?",
        shelves.handbook,
        snoozed_until=timezone.now() + timedelta(days=6),
    )
    record(cast.superuser.user, "answered", written, kept=0)
    settled = PendingQuestion.objects.filter(gap=Gap.OPEN).first()
    assert settled is not None
    return {
        "waiting": first,
        "locked": PendingQuestion.objects.get(asked_count=7),
        "approval": written,
        "answered": settled,
        "ignored": ignored,
    }


def addresses(rows: dict[str, PendingQuestion]) -> Iterator[tuple[str, str]]:
    """Yield the admin's pages by name."""
    for name in ("changelist", "gaps"):
        yield name, reverse(f"admin:approvals_pendingquestion_{name}")
    for part in ("snoozed", "duplicates", "ignored"):
        yield f"part-{part}", f"{QUEUE}?show={part}"
    for name, row in rows.items():
        yield name, reverse("admin:approvals_pendingquestion_change", args=[row.pk])
    page = reverse("admin:approvals_pendingquestion_change", args=[rows["answered"].pk])
    yield "change", f"{page}?show=answered&edit=1"
    yield (
        "history",
        reverse("admin:approvals_pendingquestion_history", args=[rows["approval"].pk]),
    )


@pytest.mark.req("S2-APR-07", "S2-APR-09")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_pages_fit_read_well_and_keep_the_policy(
    visit: Visit, shelves: Corpus, cast: Cast, approver: User, width: int
) -> None:
    page, reader = visit.window(width), visit.window(width)
    visit.sign_in(page, approver)
    visit.sign_in(reader, cast.granted.user)
    wrong = look_at(page, QUEUE, "queue-empty")
    wrong += look_at(reader, "/questions/", "my-questions-empty")
    rows = fill(shelves, cast, approver)
    wrong += [
        flaw
        for name, address in addresses(rows)
        for flaw in look_at(page, address, f"queue-{name}", full_page=True)
    ]
    wrong += look_at(reader, "/questions/", "my-questions", full_page=True)
    assert not wrong, "\n".join(wrong)


def test_the_lock_is_renewed_while_one_writes_and_no_longer(
    visit: Visit, shelves: Corpus, approver: User
) -> None:
    pending = waiting("Where is the lift?", shelves.handbook)
    page = visit.window()
    visit.sign_in(page, approver)
    page.clock.install()
    story = reverse("admin:approvals_pendingquestion_change", args=[pending.pk])
    page.goto(story)
    sent: list[str] = []
    page.on("request", lambda each: sent.append(each.url))
    answer = page.get_by_label("The answer, as it will be quoted")
    with page.expect_request("**/lock/"):
        answer.press_sequentially("At the back")
    # What was typed after the first letter renews it once.
    page.clock.run_for("01:10")
    renewed = len([url for url in sent if url.endswith("/lock/")])
    # Longer than a lock holds, without a word.
    page.clock.run_for("05:00")
    assert len([url for url in sent if url.endswith("/lock/")]) == renewed == 2
    with page.expect_request("**/lock/"):
        answer.press("s")


def test_words_in_which_it_was_asked_are_taken_over_by_a_button(
    visit: Visit, shelves: Corpus, approver: User
) -> None:
    in_polish = "Gdzie jest winda?"
    pending = waiting("Where is the lift?", shelves.handbook, wordings=(in_polish,))
    page = visit.window()
    visit.sign_in(page, approver)
    page.goto(reverse("admin:approvals_pendingquestion_change", args=[pending.pk]))
    field = page.get_by_label("Other wordings by which it is found")
    field.fill("Lift?")
    offered = page.get_by_role("button", name=in_polish)
    for _time in range(2):
        offered.click()
    expect(field).to_have_value(f"Lift?\n{in_polish}")
    expect(field).to_be_focused()
