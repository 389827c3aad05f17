"""The staff's pages of the gate: who sees what, what they do, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from approvals import actions
from approvals.gaps import duration_words, gaps
from approvals.models import PendingQuestion
from approvals.models.question import Gap, State
from knowledge.models import AuditEntry, Source, User
from tests.approvals.gaps import approver_of
from tests.approvals.shown import ago, approved, waiting
from tests.factories import KnowledgeBaseFactory, LayerFactory, ready_source

pytestmark = pytest.mark.django_db

QUESTION = "Where do I get a permit for the roof terrace?"
ANSWER = "From the caretaker, on weekdays until noon."


@pytest.fixture
def terrace() -> Any:
    """A layer of a knowledge base."""
    return LayerFactory(knowledge_base__name="House rules", name="answers")


@pytest.fixture
def approver(terrace: Any) -> User:
    """Who settles its questions."""
    return approver_of(terrace.knowledge_base, username="oana")


@pytest.fixture
def client(client: Client, approver: User) -> Client:
    """A browser of theirs."""
    client.force_login(approver)
    return client


def page_of(name: str, pending: PendingQuestion | None = None) -> str:
    """Return an address of the queue."""
    arguments = [pending.pk] if pending is not None else []
    return reverse(f"admin:approvals_pendingquestion_{name}", args=arguments)


def sent(client: Client, pending: PendingQuestion, **data: Any) -> Any:
    """Do something to a question by its form, and return the page that follows."""
    return client.post(page_of("act", pending), data, follow=True)


def written(pending: PendingQuestion, terrace: Any, **data: Any) -> dict[str, Any]:
    """Return what the form of an answer sends."""
    return {
        "act": "answer",
        "version": pending.version,
        "question": QUESTION,
        "answer": ANSWER,
        "layer": terrace.pk,
        **data,
    }


@pytest.mark.req("S2-APR-09")
def test_the_queue_is_in_the_order_of_want_and_shows_backlog_and_age(
    client: Client, terrace: Any
) -> None:
    base = terrace.knowledge_base
    waiting("Asked by few?", base, at=ago(days=20), asked_count=9, asker_count=1)
    waiting("Asked by many?", base, at=ago(days=3), asked_count=4, asker_count=4)
    waiting("Put off?", base, snoozed_until=timezone.now() + timedelta(days=1))
    page = client.get(page_of("changelist"))
    shown = [item.pending.question for item in page.context["items"]]
    assert shown == ["Asked by many?", "Asked by few?"]
    figures = {tile.note: tile.figure for tile in page.context["summary"]}
    assert figures["wait for an answer"] == "2"
    assert figures["waits the oldest"] == "20 days"
    assert figures["wait longer than a week"] == "1"
    tabs = {tab.key: tab.count for tab in page.context["tabs"]}
    assert tabs == {"waiting": 2, "snoozed": 1, "answered": 0}


@pytest.mark.req("REL-W8", "S2-APR-10")
def test_only_questions_of_ones_own_knowledge_bases_are_there(
    client: Client, terrace: Any
) -> None:
    other = KnowledgeBaseFactory(name="The vault")
    hidden = waiting("What is in the vault?", other)
    both = waiting("Where is the lift?", terrace.knowledge_base, other)
    page = client.get(page_of("changelist")).content.decode()
    assert "Where is the lift?" in page
    assert "vault" not in page
    story = client.get(page_of("change", both)).content.decode()
    assert "House rules" in story
    assert "The vault" not in story
    for name in ("act", "marks", "preview", "lock"):
        assert client.post(page_of(name, hidden)).status_code == 404
    assert client.get(page_of("change", hidden)).status_code == 404
    # Neither by its number in a form of another question.
    sent(client, both, act="merge", into=str(hidden.public_id), version=both.version)
    client.post(
        page_of("bulk"),
        {"act": "ignore", "because": "No.", "chosen": [str(hidden.public_id)]},
    )
    both.refresh_from_db()
    hidden.refresh_from_db()
    assert {both.state, hidden.state} == {State.PENDING}


@pytest.mark.req("S2-APR-07")
def test_the_story_shows_what_was_asked_and_where(client: Client, terrace: Any) -> None:
    pending = waiting(
        QUESTION,
        terrace.knowledge_base,
        channel="voice",
        wordings=("Ai cấp phép cho sân thượng?",),
    )
    page = client.get(page_of("change", pending)).content.decode()
    assert "Ai cấp phép cho sân thượng?" in page
    assert "by voice" in page
    assert "Never copy from the customer" in page


@pytest.mark.req("S2-APR-07", "S2-APR-08")
def test_what_may_be_personal_is_marked_and_stops_an_answer(
    client: Client, terrace: Any
) -> None:
    pending = waiting(QUESTION, terrace.knowledge_base)
    answer = "Call the caretaker: +48 512 345 678."
    marks = client.post(
        page_of("marks", pending), {"question": QUESTION, "answer": answer}
    ).content.decode()
    assert 'data-in="answer" data-start="20" data-end="35"' in marks
    page = sent(client, pending, **written(pending, terrace, answer=answer))
    assert "+48 512 345 678" in page.content.decode()
    pending.refresh_from_db()
    assert (pending.state, pending.answer) == (State.PENDING, "")
    # Kept on purpose, it passes.
    sent(
        client,
        pending,
        **written(pending, terrace, answer=answer, kept=["+48 512 345 678"]),
    )
    pending.refresh_from_db()
    assert pending.state == State.APPROVED
    assert pending.source is not None
    assert pending.source.layer == terrace


@pytest.mark.req("S2-APR-07")
def test_the_next_question_follows_an_answer(client: Client, terrace: Any) -> None:
    base = terrace.knowledge_base
    first = waiting(QUESTION, base, asker_count=3)
    second = waiting("Where is the lift?", base, asker_count=2)
    page = sent(client, first, **written(first, terrace))
    assert page.redirect_chain[-1][0] == page_of("change", second)
    assert "It is being taken into the documents" in page.content.decode()
    why = "Everybody can see it."
    page = sent(client, second, act="ignore", because=why, version=second.version)
    assert page.redirect_chain[-1][0] == page_of("changelist")


@pytest.mark.req("REL-K5")
def test_an_answer_that_comes_too_late_is_not_lost(
    client: Client, terrace: Any
) -> None:
    pending = waiting(QUESTION, terrace.knowledge_base)
    stale = written(pending, terrace, answer="I was slow.")
    colleague = approver_of(terrace.knowledge_base)
    actions.propose_answer(
        pending, actor=colleague, question=QUESTION, answer=ANSWER, layer=terrace
    )
    page = client.post(page_of("act", pending), stale)
    assert page.status_code == 409
    assert "I was slow." in page.content.decode()
    pending.refresh_from_db()
    assert pending.answer == ANSWER
    # Nor where the question takes none any more.
    ignored = waiting("Where is the cellar?", terrace.knowledge_base)
    actions.ignore(ignored, actor=colleague, because="No.")
    page = client.post(page_of("act", ignored), written(ignored, terrace))
    assert page.status_code == 409
    shown = page.content.decode()
    assert "This question is ignored by now." in shown
    assert "takes no answer as it stands now" in shown
    assert ANSWER in shown
    assert "data-answer" not in shown


@pytest.mark.req("S2-APR-02")
def test_with_four_eyes_another_person_approves(
    client: Client, terrace: Any, approver: User, settings: Settings
) -> None:
    settings.STRATA_FOUR_EYES = True
    pending = waiting(QUESTION, terrace.knowledge_base)
    sent(client, pending, **written(pending, terrace))
    pending.refresh_from_db()
    assert pending.is_awaiting_approval
    assert not Source.objects.exists()
    own = client.get(page_of("change", pending)).content.decode()
    assert 'value="approve"' not in own
    colleague = Client()
    colleague.force_login(approver_of(terrace.knowledge_base))
    page = colleague.get(page_of("change", pending))
    assert 'value="approve"' in page.content.decode()
    assert page.context["current"] == "approval"
    anew = f"{page_of('change', pending)}?show=approval&amp;edit=1"
    for address in (page_of("change", pending), anew.replace("&amp;edit=1", "")):
        assert f'href="{anew}"' in colleague.get(address).content.decode()
    # Another answer than the one that a page shows is neither sent back nor thrown away.
    late = {"because": "Too short.", "version": pending.version - 1}
    for act in ("send_back", "ignore"):
        shown = sent(colleague, pending, act=act, **late).content.decode()
        assert "Somebody changed this question meanwhile" in shown
    sent(colleague, pending, act="send_back", **{**late, "version": pending.version})
    pending.refresh_from_db()
    assert not pending.is_awaiting_approval
    sent(client, pending, **written(pending, terrace))
    pending.refresh_from_db()
    sent(colleague, pending, act="approve", version=pending.version)
    pending.refresh_from_db()
    assert pending.state == State.APPROVED
    assert pending.author == approver
    shown = sent(colleague, pending, act="withdraw", **late).content.decode()
    assert "Somebody changed this question meanwhile" in shown
    late["version"] = pending.version
    sent(colleague, pending, act="withdraw", **late)
    assert not Source.objects.exists()


@pytest.mark.req("S2-APR-03", "S2-APR-04", "S2-APR-06")
def test_questions_are_sorted_one_by_one_and_together(
    client: Client, terrace: Any, approver: User
) -> None:
    base = terrace.knowledge_base
    wanted, *others = (
        waiting(f"Question {number}?", base, asked_count=9 - number)
        for number in range(5)
    )
    into = {"act": "merge", "into": str(wanted.public_id)}
    late = sent(client, others[0], **into, version=others[0].version + 1)
    assert "Somebody changed this question meanwhile" in late.content.decode()
    sent(client, others[0], **into, version=others[0].version)
    sent(client, others[1], act="assign", person=approver.pk)
    sent(client, others[1], act="snooze", days=7)
    page = client.post(
        page_of("bulk"),
        {
            "act": "ignore",
            "because": "Concerns one person.",
            "chosen": [str(each.public_id) for each in (others[0], *others[2:])],
        },
        follow=True,
    ).content.decode()
    assert "Done to 2 questions." in page
    assert "Not done to one:" in page
    for row in (wanted, *others):
        row.refresh_from_db()
    assert others[0].original == wanted
    assert others[1].assigned_to == approver
    assert others[1].snoozed_until is not None
    assert [each.state for each in others[2:]] == [State.IGNORED, State.IGNORED]
    # Each can be undone.
    sent(client, others[0], act="unmerge")
    sent(client, others[1], act="wake")
    sent(client, others[2], act="reopen")
    for row in others[:3]:
        row.refresh_from_db()
        assert (row.state, row.snoozed_until) == (State.PENDING, None)
    merged = client.post(
        page_of("bulk"),
        {"act": "merge", "chosen": [str(wanted.public_id), str(others[1].public_id)]},
        follow=True,
    )
    assert "One question now points to" in merged.content.decode()


def test_an_answer_that_is_written_is_not_thrown_away_with_others(
    client: Client, terrace: Any
) -> None:
    base = terrace.knowledge_base
    wanted = waiting("Where is the lift?", base, asker_count=5)
    written = waiting("Where is the yard?", base, answer="Behind the house.")
    chosen = [str(each.public_id) for each in (wanted, written)]
    for act in ({"act": "ignore", "because": "No."}, {"act": "merge"}):
        page = client.post(page_of("bulk"), {**act, "chosen": chosen}, follow=True)
        assert "An answer is written already" in page.content.decode()
    written.refresh_from_db()
    assert (written.state, written.answer) == (State.PENDING, "Behind the house.")


def test_what_a_form_names_wrongly_is_said_in_a_sentence(
    client: Client, terrace: Any
) -> None:
    pending = waiting(QUESTION, terrace.knowledge_base)
    for data, sentence in (
        ({"act": "ignore", "because": " ", "version": pending.version}, "Say why"),
        ({"act": "ignore", "because": "No."}, "Open the question again"),
        ({"act": "send_back"}, "Open the question again"),
        ({"act": "withdraw", "because": "No."}, "Open the question again"),
        ({"act": "merge", "into": "nonsense"}, "Choose a question"),
        ({"act": "assign", "person": "999999"}, "Choose a colleague"),
        ({"act": "snooze", "days": "-1"}, "Choose for how long"),
        ({"act": "approve"}, "Open the question again"),
    ):
        assert sentence in sent(client, pending, **data).content.decode()
    assert client.post(page_of("act", pending), {"act": "delete"}).status_code == 404
    nothing = client.post(page_of("bulk"), {"act": "assign"}, follow=True)
    assert "Choose at least one question." in nothing.content.decode()
    pending.refresh_from_db()
    assert pending.state == State.PENDING
    assert not AuditEntry.objects.filter(verb="ignored").exists()


def test_all_colleagues_are_offered_whoever_else_there_is(
    client: Client, terrace: Any, approver: User
) -> None:
    waiting(QUESTION, terrace.knowledge_base)
    with CaptureQueriesContext(connection) as few:
        client.get(page_of("changelist"))
    far = KnowledgeBaseFactory()
    for number in range(51):
        approver_of(far, username=f"a{number}")
    colleague = approver_of(terrace.knowledge_base, username="zoe")
    with CaptureQueriesContext(connection) as many:
        page = client.get(page_of("changelist"))
    assert page.context["people"] == [approver, colleague]
    assert len(many) == len(few)


def test_who_is_writing_is_shown_to_the_others(client: Client, terrace: Any) -> None:
    pending = waiting(QUESTION, terrace.knowledge_base)
    assert b"data-locked" not in client.post(page_of("lock", pending)).content
    colleague = Client()
    colleague.force_login(approver_of(terrace.knowledge_base, username="ion"))
    refused = colleague.post(page_of("lock", pending)).content.decode()
    assert "oana is writing an answer" in refused
    assert (
        "<fieldset disabled>"
        in colleague.get(page_of("change", pending)).content.decode()
    )
    client.post(page_of("lock", pending), {"unlock": "1"})
    assert b"data-locked" not in colleague.post(page_of("lock", pending)).content


def test_a_preview_shows_the_answer_as_it_is_cut_and_cited(
    client: Client, terrace: Any
) -> None:
    pending = waiting(QUESTION, terrace.knowledge_base)
    data = written(pending, terrace)
    part = client.post(page_of("preview", pending), data).content.decode()
    assert QUESTION in part
    assert ANSWER in part
    whole = sent(client, pending, **{**data, "act": "preview"}).content.decode()
    assert "As it will be found" in whole
    pending.refresh_from_db()
    assert pending.answer == ""


@pytest.mark.req("S2-APR-09")
def test_gaps_are_counted_by_week_and_layer_with_the_words_nobody_covers(
    client: Client, terrace: Any, approver: User
) -> None:
    base = terrace.knowledge_base
    ready_source("Terraces are cleaned in May.", layer=terrace)
    waiting("Who cleans the terrace, and where is the gazebo?", base, at=ago(days=15))
    waiting("May the gazebo be let?", base, at=ago(days=15))
    approved(
        "Is there a sauna?",
        base,
        at=ago(days=15),
        layer=terrace,
        approved_at=ago(days=13),
        gap=Gap.CLOSED,
    )
    waiting("Of another house?", KnowledgeBaseFactory(), at=ago(days=15))
    # Changed later, and waiting for a second person now: answered since the first time.
    for state in (
        {"approved_at": ago(days=1)},
        {"state": State.PENDING, "approved_at": None},
    ):
        approved(
            "Is there a sauna beside the pool?",
            base,
            at=ago(days=15),
            layer=terrace,
            first_approved_at=ago(days=13),
            gap=Gap.CLOSED,
            **state,
        )
    found = gaps(13, approver)
    assert sum(week.asked for week in found.weeks) == 5
    assert sum(week.answered for week in found.weeks) == 3
    assert found.weeks[-1].open == 2
    assert found.median == "2 days"
    layers = {row.name: dict(row.counts) for row in found.layers}
    assert layers["House rules, no layer yet"]["waiting"] == 2
    assert layers[str(terrace)]["found"] == 3
    terms = {term.text: term.questions for term in found.terms}
    # What a passage holds in another form is covered; the sauna's gap is closed.
    assert terms["gazebo"] == 2
    assert not {"terrace", "cleans", "sauna"} & set(terms)
    page = client.get(page_of("gaps")).content.decode()
    assert "gazebo" in page
    assert "All figures as tables" in page


def test_durations_are_said_as_people_say_them() -> None:
    spans = (20, 3600, 7200, 50 * 3600)
    said = [str(duration_words(span)) for span in spans]
    assert said == ["1 min", "60 min", "2 h", "2 days"]
