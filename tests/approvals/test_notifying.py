"""Who is told of pending questions, what of, and how often; over real servers."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from approvals import actions
from approvals.mailing import MARKER, MailError, message_replied_to, send_mail
from approvals.models import Contact, Notification, PendingQuestion
from approvals.models.notification import Event, Pace
from approvals.notifying import MOST_ATTEMPTS, secrets_of, send_due
from approvals.reminding import remind
from approvals.webhooks import verify
from knowledge.permissions import deny
from tests.approvals.channels import (
    hook_contact,
    mail_contact,
    new_secret,
    signed_reply,
)
from tests.approvals.gaps import ANSWER, QUESTION, approver_of, pending_question
from tests.approvals.test_webhooks import Receiver, allow
from tests.factories import LayerFactory
from tests.mail_server import MailServer

pytestmark = pytest.mark.django_db
IBAN = "DE89 3704 0044 0532 0130 00"


@pytest.fixture
def post(settings: Settings) -> Iterator[MailServer]:
    """A mail server that the portal is set up with."""
    with MailServer() as server:
        settings.EMAIL_HOST = "127.0.0.1"
        settings.EMAIL_PORT = server.port
        settings.STRATA_EMAIL_SECURITY = "none"
        settings.STRATA_REPLY_ADDRESS = "replies@bank.example"
        settings.STRATA_MAIL_HOOK_SECRETS = [new_secret()]
        yield server


def aged(pending: PendingQuestion, days: float) -> None:
    """Let a question have been asked so many days ago."""
    at = timezone.now() - timedelta(days=days)
    PendingQuestion.objects.filter(pk=pending.pk).update(first_asked_at=at)


# --- Who is told ----------------------------------------------------------------------


@pytest.mark.req("S2-APR-02", "REL-W8")
def test_a_new_question_is_told_to_those_who_answer_for_it(post: MailServer) -> None:
    layer, other = LayerFactory(), LayerFactory()
    person = approver_of(layer.knowledge_base)
    stranger = approver_of(other.knowledge_base)
    denied = approver_of(layer.knowledge_base)
    deny(layer.knowledge_base, to=denied, actor=None)
    away = mail_contact(approver_of(layer.knowledge_base), is_active=False)
    for each in (person, stranger, denied):
        mail_contact(each)

    pending = pending_question(layer.knowledge_base)
    pending_question(layer.knowledge_base)

    assert send_due() == 1
    assert post.recipients == [[f"{person.username}@bank.example"]]
    assert not away.notifications.exists()
    (mail,) = post.mails
    text = mail.get_content()
    assert text.startswith(MARKER)
    assert QUESTION in text
    assert f"/admin/approvals/pendingquestion/{pending.pk}/change/" in text
    assert "Never copy from the customer" in text
    assert QUESTION not in mail["Subject"]
    message = Notification.objects.get()
    assert message_replied_to(mail["Reply-To"]) == message.public_id
    assert mail["Message-ID"] == f"<{message.public_id}@localhost>"
    assert send_due() == 0


@pytest.mark.req("S2-APR-02", "REL-W1")
def test_a_webhook_gets_a_signed_message_with_where_to_reply(
    settings: Settings,
) -> None:
    layer = LayerFactory()
    with Receiver() as server:
        allow(settings, server)
        contact = hook_contact(approver_of(layer.knowledge_base), server.url)
        pending_question(layer.knowledge_base)
        assert send_due() == 1
    ((_, headers, body),) = server.taken
    message = Notification.objects.get()
    assert verify(headers, body, secrets_of(contact)) == str(message.public_id)
    said = json.loads(body)
    assert said["type"] == "question.asked"
    assert said["question"]["text"] == QUESTION
    assert QUESTION in said["text"]
    assert said["reply_to"].endswith(f"/hooks/replies/{message.public_id}")


@pytest.mark.req("REL-W5")
def test_the_right_is_looked_up_when_a_message_is_sent(post: MailServer) -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    mail_contact(person)
    pending_question(layer.knowledge_base)
    deny(layer.knowledge_base, to=person, actor=None)
    assert send_due() == 0
    assert not post.mails
    assert Notification.objects.get().dropped_at is not None


def test_what_is_settled_is_told_of_no_more(post: MailServer) -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    mail_contact(person)
    pending = pending_question(layer.knowledge_base)
    actions.ignore(pending, actor=person, because="not for machines")
    assert send_due() == 0
    assert not post.mails


def test_an_answer_that_waits_is_told_to_others_than_its_author(
    post: MailServer, settings: Settings
) -> None:
    settings.STRATA_FOUR_EYES = True
    layer = LayerFactory()
    author, other = (approver_of(layer.knowledge_base) for _ in range(2))
    pending = pending_question(layer.knowledge_base)
    for each in (author, other):
        mail_contact(each)
    actions.propose_answer(pending, actor=author, question=QUESTION, answer=ANSWER)
    assert send_due() == 1
    assert post.recipients == [[f"{other.username}@bank.example"]]
    text = post.mails[0].get_content()
    assert ANSWER in text
    assert "Approve" in text


@pytest.mark.req("S2-APR-02", "REL-W4")
def test_each_answer_that_waits_is_told_and_approved_as_it_was_shown(
    settings: Settings,
) -> None:
    settings.STRATA_FOUR_EYES = True
    layer = LayerFactory()
    author, other = (approver_of(layer.knowledge_base) for _ in range(2))
    pending = pending_question(layer.knowledge_base)
    messages = []
    with Receiver() as chat:
        allow(settings, chat)
        contact = hook_contact(other, chat.url)
        for answer in ("Perhaps.", "Yes.", ANSWER):
            # The second is written over before its message is sent.
            row = actions.propose_answer(
                pending, actor=author, question=QUESTION, answer=answer
            )
            if answer != "Yes.":
                assert send_due() == 1
                messages.append(contact.notifications.latest("pk"))
                assert messages[-1].version == row.version
    first, last = messages
    texts = [json.loads(body)["text"] for _, _, body in chat.taken]
    assert ["Perhaps." in text for text in texts] == [True, False]
    status, said = signed_reply(first, {"text": "Approve"})
    assert (status, "changed this question" in said["error"]) == (409, True)
    assert signed_reply(last, {"text": "Approve"}) == (200, {"status": "taken"})
    row.refresh_from_db()
    assert (row.state, row.answer, row.approved_by) == ("approved", ANSWER, other)


@pytest.mark.req("REL-L3", "S1-PRV-01")
def test_no_message_holds_a_bank_detail(post: MailServer, settings: Settings) -> None:
    settings.LEARNING_STORE_RAW_QUERIES = True
    layer = LayerFactory()
    mail_contact(approver_of(layer.knowledge_base))
    pending_question(layer.knowledge_base, text=f"Where is {IBAN} kept?")
    assert send_due() == 1
    text = post.mails[0].get_content()
    assert "Where is [IBAN] kept?" in text
    assert IBAN not in text


# --- When it fails --------------------------------------------------------------------


def test_a_mail_that_is_not_taken_is_tried_again(post: MailServer) -> None:
    layer = LayerFactory()
    mail_contact(approver_of(layer.knowledge_base))
    pending_question(layer.knowledge_base)
    post.refuses = True
    assert send_due() == 0
    row = Notification.objects.get()
    assert (row.attempts, row.sent_at) == (1, None)
    assert "did not take the mail" in row.problem
    assert row.next_at > timezone.now()
    assert send_due() == 0, "not before its time"
    post.refuses = False
    Notification.objects.update(next_at=timezone.now())
    assert send_due() == 1
    row.refresh_from_db()
    assert (row.attempts, row.problem) == (2, "")
    assert post.mails[0]["Message-ID"] == f"<{row.public_id}@localhost>"


def test_what_is_never_taken_is_given_up(settings: Settings) -> None:
    layer = LayerFactory()
    hook_contact(approver_of(layer.knowledge_base), "https://chat.example/in")
    pending_question(layer.knowledge_base)
    for _ in range(MOST_ATTEMPTS + 2):
        Notification.objects.update(next_at=timezone.now())
        assert send_due() == 0
    row = Notification.objects.get()
    assert row.attempts == MOST_ATTEMPTS
    assert row.dropped_at is not None
    assert "STRATA_WEBHOOK_HOSTS" in row.problem


def test_a_message_that_breaks_keeps_no_other_from_being_sent(
    post: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    layer = LayerFactory()
    # No library turns this into an address that goes over the wire.
    broken = mail_contact(approver_of(layer.knowledge_base))
    Contact.objects.update(address="anna@\u00ad.example")
    deadly = mail_contact(approver_of(layer.knowledge_base))
    mail_contact(approver_of(layer.knowledge_base))
    pending_question(layer.knowledge_base)
    # With each of its attempts the worker died.
    deadly.notifications.update(attempts=MOST_ATTEMPTS)
    assert send_due() == 1
    row = broken.notifications.get()
    assert (row.attempts, row.dropped_at) == (1, None)
    assert row.next_at > timezone.now()
    assert row.problem == "It could not be sent (UnicodeError)."
    assert "Traceback" in caplog.text
    row = deadly.notifications.get()
    assert (row.attempts, row.dropped_at is None) == (MOST_ATTEMPTS, False)
    assert len(post.mails) == 1


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nobody",
        "@b.example",
        "a@b..example",
        f"a@{'b' * 64}.example",
        "a@b.example, c@d.example",
        "a@b.example\nBcc: x@y.example",
    ],
)
def test_an_address_is_one_address(post: MailServer, address: str) -> None:
    with pytest.raises(MailError):
        send_mail(
            address, subject="s", text="t", message_id="0" * 32, takes_replies=False
        )
    assert not post.mails


def test_without_a_server_nothing_is_sent(settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    with pytest.raises(MailError, match="EMAIL_HOST"):
        send_mail(
            "a@b.example",
            subject="s",
            text="t",
            message_id="0" * 32,
            takes_replies=False,
        )


# --- What grows old -------------------------------------------------------------------


def events(contact: Contact) -> list[str]:
    return sorted(contact.notifications.values_list("event", flat=True))


@pytest.mark.req("S2-APR-09")
def test_what_waits_is_reminded_of_and_then_told_to_others(
    settings: Settings,
) -> None:
    layer = LayerFactory()
    own = mail_contact(approver_of(layer.knowledge_base))
    chief = mail_contact(
        approver_of(layer.knowledge_base), pace=Pace.WEEKLY, takes_escalations=True
    )
    pending = pending_question(layer.knowledge_base)
    contact = [Event.ASKED]
    remind()
    assert events(own) == contact
    aged(pending, 3.1)
    for _ in range(2):
        remind()
        assert events(own) == [*contact, Event.REMINDER]
    aged(pending, 7.1)
    for _ in range(2):
        remind()
    assert events(own) == [*contact, Event.REMINDER, Event.REMINDER]
    assert events(chief) == [Event.DIGEST, Event.ESCALATED]


def test_an_answer_that_waits_for_long_is_told_of_too(
    post: MailServer, settings: Settings
) -> None:
    settings.STRATA_FOUR_EYES = True
    layer = LayerFactory()
    author, other, chief = (approver_of(layer.knowledge_base) for _ in range(3))
    own = mail_contact(other)
    taking = mail_contact(chief, pace=Pace.WEEKLY, takes_escalations=True)
    for number in range(3):
        pending = pending_question(layer.knowledge_base, text=f"Number {number}?")
        aged(pending, 7.1)
        actions.propose_answer(pending, actor=author, question="Why?", answer=ANSWER)
    with CaptureQueriesContext(connection) as few:
        remind()
    assert events(own) == [Event.ASKED] * 3 + [Event.AWAITING] * 6
    assert events(taking) == [Event.DIGEST] + [Event.ESCALATED] * 3
    assert send_due() == 7, "of each one message tells it, not the one before it too"
    mails = [each for each in post.mails if "waited for long" in each["Subject"]]
    assert len(mails) == 3
    assert ANSWER in mails[0].get_content()
    assert "3 answers wait for approval" in digest_in(post)
    for number in range(3, 9):
        aged(pending_question(layer.knowledge_base, text=f"Number {number}?"), 7.1)
    with CaptureQueriesContext(connection) as many:
        remind()
    assert events(own).count(Event.REMINDER) == 6
    assert len(many) <= len(few), "people and rights are looked up once for all"


def digest_in(post: MailServer) -> str:
    """Return the text of the one summary."""
    (found,) = (each for each in post.mails if "answers wait" in each["Subject"])
    return str(found.get_content())


def test_who_has_a_question_is_reminded_alone_and_not_while_it_is_put_off() -> None:
    layer = LayerFactory()
    first, second = (mail_contact(approver_of(layer.knowledge_base)) for _ in range(2))
    pending = pending_question(layer.knowledge_base)
    aged(pending, 3.1)
    PendingQuestion.objects.update(
        assigned_to=second.user, snoozed_until=timezone.now() + timedelta(days=1)
    )
    remind()
    assert events(second) == [Event.ASKED]
    PendingQuestion.objects.update(snoozed_until=None)
    remind()
    assert events(first) == [Event.ASKED]
    assert events(second) == [Event.ASKED, Event.REMINDER]


@pytest.mark.req("S2-APR-09")
def test_a_summary_says_how_much_waits_and_for_how_long(post: MailServer) -> None:
    layer = LayerFactory()
    contact = mail_contact(approver_of(layer.knowledge_base), pace=Pace.DAILY)
    pending = pending_question(layer.knowledge_base)
    pending_question(layer.knowledge_base, text="What else?")
    later = pending_question(layer.knowledge_base, text="What is put off?")
    actions.snooze(later, actor=contact.user, until=timezone.now() + timedelta(days=1))
    aged(pending, 2.5)
    remind()
    remind()
    assert events(contact) == [Event.DIGEST]
    assert send_due() == 1
    text = post.mails[0].get_content()
    assert "2 questions wait for an answer" in text
    assert "2 days" in text
    assert QUESTION in text
    assert "put off" not in text
    assert "for approval" not in text
    PendingQuestion.objects.update(state="ignored", ignored_because="done")
    Contact.objects.update(digest_at=timezone.now() - timedelta(days=1))
    remind()
    assert send_due() == 0, "where nothing waits, nobody is told"
