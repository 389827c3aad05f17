"""Replies that come in by webhook and by mail: who is let in, and what they do."""

import threading
import time
from email.message import EmailMessage

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from approvals import actions
from approvals.mailing import MARKER, reply_address
from approvals.models import Contact, Notification, PendingQuestion, ReceivedReply
from approvals.models.notification import Event
from approvals.models.question import State
from approvals.notifying import rotate_secret, secrets_of
from approvals.webhooks import sign
from knowledge.models import AuditEntry, Layer, Source, User
from knowledge.permissions import deny
from tests.approvals.channels import (
    hook_contact,
    mail_contact,
    new_secret,
    signed_reply,
    told,
)
from tests.approvals.gaps import ANSWER, QUESTION, approver_of, pending_question
from tests.factories import LayerFactory

pytestmark = pytest.mark.django_db
IBAN = "DE89 3704 0044 0532 0130 00"


class Gate:
    """One question, and one person who was told of it by webhook."""

    def __init__(self) -> None:
        self.layer: Layer = LayerFactory()
        self.person: User = approver_of(self.layer.knowledge_base)
        self.contact: Contact = hook_contact(self.person)
        self.pending: PendingQuestion = pending_question(self.layer.knowledge_base)
        self.message: Notification = told(self.contact, self.pending)

    @property
    def state(self) -> str:
        return str(PendingQuestion.objects.get(pk=self.pending.pk).state)

    def audited(self) -> list[str]:
        rows = AuditEntry.objects.filter(target_type="pendingquestion")
        return list(rows.order_by("pk").values_list("verb", flat=True))


@pytest.fixture
def gate() -> Gate:
    return Gate()


# --- The signature --------------------------------------------------------------------


@pytest.mark.req("S2-APR-02", "REL-W1")
def test_a_signed_reply_becomes_an_approved_source(gate: Gate) -> None:
    assert signed_reply(gate.message, {"text": ANSWER}) == (200, {"status": "taken"})
    assert gate.state == State.APPROVED
    source = Source.objects.get()
    assert (source.kind, source.title) == ("qa", QUESTION)
    assert gate.audited() == ["answered", "approved"]


@pytest.mark.req("REL-W1")
def test_whatever_is_wrong_with_a_signature_answers_the_same(gate: Gate) -> None:
    stranger = Notification(contact=gate.contact, public_id=new_public_id())
    body = b'{"text":  "No."}'
    answers = [
        signed_reply(gate.message, body, secret=new_secret()),
        signed_reply(gate.message, body, changed=b'{"text": "No."}'),
        signed_reply(gate.message, body, at=int(time.time()) - 360),
        signed_reply(gate.message, body, at=int(time.time()) + 360),
        signed_reply(gate.message, body, at="soon"),
        signed_reply(gate.message, body, event_id=""),
        signed_reply(stranger, body),
        unsigned(f"/hooks/replies/{gate.message.public_id}", body),
        unsigned("/hooks/replies/none", body),
    ]
    assert {status for status, _ in answers} == {401}
    assert len({str(said) for _, said in answers}) == 1
    assert gate.state == State.PENDING


def new_public_id() -> str:
    return "6fa459ea-ee8a-4ca4-894e-db77e160355e"


def unsigned(path: str, body: bytes) -> tuple[int, dict[str, str]]:
    response = Client().post(path, body, content_type="application/json")
    return response.status_code, response.json()


@pytest.mark.req("REL-W1")
def test_a_new_secret_and_for_a_day_the_old_one_hold(gate: Gate) -> None:
    old = secrets_of(gate.contact)[0]
    new = rotate_secret(gate.contact, actor=gate.person)
    wrong = {"text": "Ignore:"}
    for secret in (old, new):
        status, said = signed_reply(
            gate.message, wrong, secret=secret, event_id=secret[-8:]
        )
        assert (status, "signature" in said["error"]) == (422, False)
    Contact.objects.update(rotated_at=timezone.now() - timezone.timedelta(hours=25))
    assert signed_reply(gate.message, wrong, secret=old)[0] == 401
    assert signed_reply(gate.message, wrong, secret=new)[0] == 422


def test_a_contact_that_is_off_lets_nobody_in(gate: Gate) -> None:
    Contact.objects.update(is_active=False)
    assert signed_reply(gate.message, {"text": ANSWER})[0] == 401


# --- Once, and by whom ----------------------------------------------------------------


@pytest.mark.req("REL-W3")
def test_the_same_id_has_its_effect_once(gate: Gate) -> None:
    assert signed_reply(gate.message, {"text": ANSWER})[1] == {"status": "taken"}
    for _ in range(3):
        assert signed_reply(gate.message, {"text": "Another."}) == (
            200,
            {"status": "already"},
        )
    assert Source.objects.count() == ReceivedReply.objects.count() == 1


@pytest.mark.req("REL-W3")
@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_has_an_effect() -> None:
    gate = Gate()
    answers: list[str] = []

    def reply() -> None:
        try:
            answers.extend(
                signed_reply(gate.message, {"text": ANSWER})[1]["status"]
                for _ in range(5)
            )
        finally:
            connection.close()

    threads = [threading.Thread(target=reply) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["already"] * 39 + ["taken"]
    assert Source.objects.count() == 1


@pytest.mark.req("REL-W4")
def test_the_later_of_two_approvers_is_told_so(gate: Gate) -> None:
    other = approver_of(gate.layer.knowledge_base)
    second = told(hook_contact(other), gate.pending)
    assert signed_reply(gate.message, {"text": ANSWER})[0] == 200
    status, said = signed_reply(second, {"text": "Something else."})
    assert status == 409
    assert "approved" in said["error"]
    assert gate.audited()[-1] == "came too late for"
    assert Source.objects.get().title == QUESTION


@pytest.mark.req("REL-W4")
def test_a_reply_after_its_time_or_to_a_deleted_question_is_late(gate: Gate) -> None:
    Notification.objects.update(created_at=timezone.now() - timezone.timedelta(days=31))
    status, said = signed_reply(gate.message, {"text": ANSWER})
    assert (status, "too old" in said["error"]) == (409, True)
    assert gate.audited() == ["came too late for"]
    Notification.objects.update(pending=None, created_at=timezone.now())
    status, said = signed_reply(gate.message, {"text": ANSWER})
    assert (status, "deleted" in said["error"]) == (409, True)
    assert AuditEntry.objects.filter(target_type="notification").count() == 1
    assert not Source.objects.exists()


@pytest.mark.req("REL-W5", "REL-W4")
def test_the_right_is_looked_up_now(gate: Gate) -> None:
    deny(gate.layer.knowledge_base, to=gate.person, actor=None)
    status, said = signed_reply(gate.message, {"text": ANSWER})
    assert (status, said["error"]) == (404, "There is no such message.")
    assert gate.state == State.PENDING
    assert not Source.objects.exists()
    assert gate.audited() == ["was refused"]


@pytest.mark.req("REL-W5")
def test_without_the_role_nothing_is_done(gate: Gate) -> None:
    gate.person.groups.clear()
    assert signed_reply(gate.message, {"text": ANSWER})[0] == 404
    gate.person.is_active = False
    gate.person.save()
    assert signed_reply(gate.message, {"text": ANSWER})[0] == 401
    assert gate.state == State.PENDING


# --- What is in it --------------------------------------------------------------------


@pytest.mark.req("REL-W6")
def test_a_reply_may_be_so_long_and_no_longer(gate: Gate) -> None:
    frame = len(b'{"text": ""}')
    whole = b'{"text": "' + b"x" * (64 * 1024 - frame) + b'"}'
    assert len(whole) == 64 * 1024
    assert signed_reply(gate.message, whole)[0] == 422, "longer than an answer may be"
    assert signed_reply(gate.message, whole + b" ")[0] == 413
    assert signed_reply(gate.message, b" " * 2_000_000)[0] == 413


@pytest.mark.req("REL-W6")
@pytest.mark.parametrize(
    "body", [b"", b"text", b"[]", b'{"text": 1}', b"[" * 50_000, b"\xff\xfe"]
)
def test_what_is_no_reply_is_refused(gate: Gate, body: bytes) -> None:
    assert signed_reply(gate.message, body)[0] == 400


@pytest.mark.req("REL-W6")
def test_what_is_published_is_plain(gate: Gate) -> None:
    text = "<p>In the\x00 yard.</p><script>alert(1)</script>"
    assert signed_reply(gate.message, {"text": text})[0] == 200
    assert PendingQuestion.objects.get().answer == "In the yard."


@pytest.mark.req("REL-W6", "REL-L3")
def test_a_bank_detail_is_refused_and_in_no_log(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(0):
        status, said = signed_reply(gate.message, {"text": f"Pay to {IBAN}."})
    assert status == 422
    assert f"“{IBAN}”" in said["error"], "its sender reads what to remove"
    assert "Unprocessable" in caplog.text, "the refusal is in the log"
    assert IBAN not in caplog.text
    assert gate.state == State.PENDING
    assert gate.audited() == ["sent a reply that was refused to"]


@pytest.mark.req("S2-APR-06")
def test_a_question_can_be_ignored_by_reply(gate: Gate) -> None:
    reply = {"text": "Ignore: concerns one reader alone"}
    assert signed_reply(gate.message, reply)[0] == 200
    row = PendingQuestion.objects.get()
    assert (row.state, row.ignored_because) == (
        State.IGNORED,
        "concerns one reader alone",
    )


@pytest.mark.req("S2-APR-06")
@pytest.mark.parametrize(
    ("text", "status", "state"),
    [
        ("Ignore:\nconcerns one reader alone", 200, State.IGNORED),
        ("Ignore", 422, State.PENDING),
        ("Approved!", 409, State.PENDING),
    ],
)
def test_a_word_for_the_portal_is_never_published(
    gate: Gate, text: str, status: int, state: State
) -> None:
    assert signed_reply(gate.message, {"text": text})[0] == status
    row = PendingQuestion.objects.get()
    assert (row.state, row.answer, Source.objects.exists()) == (state, "", False)
    assert row.ignored_because == (
        "concerns one reader alone" if state == State.IGNORED else ""
    )


def test_what_the_register_keeps_out_is_refused_with_a_sentence(gate: Gate) -> None:
    gate.layer.knowledge_base.never_rules.create(
        kind="name", pattern="approved-answers/*", reason="No answers go in here."
    )
    status, said = signed_reply(gate.message, {"text": ANSWER})
    assert (status, "No answers go in here." in said["error"]) == (422, True)
    assert (gate.state, Source.objects.exists()) == (State.PENDING, False)


def test_a_reply_names_its_layer_and_question(gate: Gate) -> None:
    other = LayerFactory(knowledge_base=gate.layer.knowledge_base, name="Häuser")
    status, said = signed_reply(gate.message, {"text": f"Layer: none\n{ANSWER}"})
    assert (status, "“none”" in said["error"]) == (422, True)
    reply = {"text": f"Layer: häuser\nQuestion: Where do bicycles go?\n\n{ANSWER}"}
    assert signed_reply(gate.message, reply)[0] == 200
    source = Source.objects.get()
    assert (source.title, source.layer) == ("Where do bicycles go?", other)


def test_a_contact_has_a_layer_of_its_own(gate: Gate) -> None:
    gate.contact.layer = LayerFactory(knowledge_base=gate.layer.knowledge_base)
    gate.contact.save()
    assert signed_reply(gate.message, {"text": ANSWER})[0] == 200
    assert Source.objects.get().layer == gate.contact.layer


def test_an_answer_that_waits_is_approved_by_a_word(
    gate: Gate, settings: Settings
) -> None:
    settings.STRATA_FOUR_EYES = True
    assert signed_reply(gate.message, {"text": ANSWER})[0] == 200
    assert gate.state == State.PENDING
    other = approver_of(gate.layer.knowledge_base)
    contact = hook_contact(other)
    word = {"text": "Approve"}
    assert signed_reply(told(contact, gate.pending), word)[0] == 409, "showed no answer"
    version = PendingQuestion.objects.get().version
    message = told(contact, gate.pending, Event.AWAITING, version=version - 1)
    assert signed_reply(message, word)[0] == 409, "showed another answer"
    message = told(contact, gate.pending, Event.AWAITING, version=version)
    assert signed_reply(message, {"text": "My own."})[0] == 409
    # Who approves need not be one who answers.
    other.groups.clear()
    other.user_permissions.add(
        Permission.objects.get(codename="approve_pendingquestion")
    )
    assert signed_reply(message, word, event_id="msg-2")[0] == 200
    row = PendingQuestion.objects.get()
    assert (row.state, row.approved_by) == (State.APPROVED, other)


def test_what_is_not_the_word_approves_nothing_and_is_no_answer(
    gate: Gate, settings: Settings
) -> None:
    settings.STRATA_FOUR_EYES = True
    author = approver_of(gate.layer.knowledge_base)
    row = actions.propose_answer(
        gate.pending, actor=author, question=QUESTION, answer=ANSWER
    )
    message = told(gate.contact, row, Event.AWAITING, version=row.version)
    text = {"text": "Approve\n\nAnna, branch 7"}
    assert signed_reply(message, text)[0] == 409
    actions.send_back(row, actor=gate.person)
    assert signed_reply(message, text)[0] == 409
    row = PendingQuestion.objects.get()
    assert (row.state, row.answer) == (State.PENDING, "")


# --- By mail --------------------------------------------------------------------------

SECRET = new_secret()


@pytest.fixture
def mailbox(settings: Settings) -> None:
    settings.STRATA_REPLY_ADDRESS = "Replies@bank.example"
    settings.STRATA_MAIL_HOOK_SECRETS = [new_secret(), SECRET]


def mail_to(message: Notification, text: str = ANSWER, **headers: str) -> EmailMessage:
    mail = EmailMessage()
    for name, value in {
        "From": f"Anna <{message.contact.address.upper()}>",
        "To": reply_address(str(message.public_id)),
        "Message-ID": "<1@bank.example>",
        **headers,
    }.items():
        mail[name] = value
    mail.set_content(f"{text}\n\n> {MARKER}\n> {QUESTION}\n")
    return mail


def hand_over(mail: EmailMessage | bytes, secret: str = SECRET) -> tuple[int, str]:
    body = mail if isinstance(mail, bytes) else mail.as_bytes()
    response = Client().post(
        "/hooks/mail",
        body,
        content_type="message/rfc822",
        headers=sign(body, secret, int(time.time()), "any"),
    )
    said = response.json()
    return response.status_code, said.get("status") or said["error"]


@pytest.mark.req("S2-APR-02")
@pytest.mark.usefixtures("mailbox")
def test_an_answer_by_mail_becomes_an_approved_source(gate: Gate) -> None:
    message = told(mail_contact(gate.person), gate.pending)
    assert hand_over(mail_to(message)) == (200, "taken")
    row = PendingQuestion.objects.get()
    assert (row.state, row.answer) == (State.APPROVED, ANSWER)
    # The mail server hands it over again after a cut connection.
    assert hand_over(mail_to(message)) == (200, "already")


@pytest.mark.req("REL-W1")
@pytest.mark.usefixtures("mailbox")
def test_only_the_mail_server_hands_mails_over(gate: Gate, settings: Settings) -> None:
    mail = mail_to(told(mail_contact(gate.person), gate.pending))
    assert hand_over(mail, new_secret())[0] == 401
    assert unsigned("/hooks/mail", mail.as_bytes())[0] == 401
    assert hand_over(b"x" * (512 * 1024 + 1))[0] == 413
    settings.STRATA_MAIL_HOOK_SECRETS = []
    assert hand_over(mail)[0] == 401
    assert gate.state == State.PENDING


@pytest.mark.req("REL-W5")
@pytest.mark.usefixtures("mailbox")
def test_what_is_no_reply_of_the_person_is_dropped(gate: Gate) -> None:
    contact = mail_contact(gate.person)
    message = told(contact, gate.pending)
    for mail in (
        mail_to(message, From="eve@evil.example"),
        mail_to(message, To="replies@bank.example"),
        mail_to(message, To="replies+00@bank.example"),
        mail_to(message, To=reply_address(str(gate.message.public_id))),
        mail_to(message, **{"Auto-Submitted": "auto-replied"}),
        b"To: " + mail_to(message)["To"].encode() + b"\r\nFrom: a@[\r\n\r\nYes.",
    ):
        assert hand_over(mail) == (200, "dropped")
    assert gate.state == State.PENDING
    assert not Source.objects.exists()


@pytest.mark.req("S2-APR-02", "S2-PRV-01")
@pytest.mark.usefixtures("mailbox")
def test_who_wrote_too_much_is_told_by_mail(gate: Gate) -> None:
    message = told(mail_contact(gate.person), gate.pending)
    assert hand_over(mail_to(message, "Call +48 512 345 678."))[0] == 422
    back = Notification.objects.get(event=Event.REFUSED)
    assert "+48 512 345 678" in back.note
    assert (
        hand_over(mail_to(message, f"Pay {IBAN}.", **{"Message-ID": "<3@b>"}))[0] == 422
    )
    assert "“[IBAN]”" in Notification.objects.latest("pk").note
    # The person keeps it on purpose, in a reply to that.
    text = "Keep: +48 512 345 678\nCall +48 512 345 678."
    assert hand_over(mail_to(back, text, **{"Message-ID": "<2@bank.example>"})) == (
        200,
        "taken",
    )


def test_gate_verbs_are_the_only_way(gate: Gate) -> None:
    """What a reply may do, the person may do in the admin, and nothing else."""
    actions.ignore(gate.pending, actor=gate.person, because="not for machines")
    assert signed_reply(gate.message, {"text": ANSWER})[0] == 409
