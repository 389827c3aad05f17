"""No bank detail is left anywhere that a question passes: planted, then looked for."""

import json
import logging
import re
from collections.abc import Iterable, Iterator
from random import Random

import pytest
from django.apps import apps
from django.db import connection
from pytest_django.fixtures import Settings

from approvals import actions
from approvals.models import Contact, Notification, PendingQuestion
from approvals.models.notification import Event, Pace
from approvals.models.question import Channel
from approvals.notifying import send_due
from approvals.reminding import summarise
from benchmarks.bank_details import Line, lines_with_ibans, lines_with_others
from knowledge.models import KnowledgeBase, Layer, User
from knowledge.permissions import grant
from knowledge.scrubbing import scrub
from retrieval.models import Interaction
from strata_portal.logs import OneLineFormatter
from tests.approvals.channels import hook_contact, mail_contact, signed_reply, told
from tests.approvals.gaps import ANSWER, BOTH, approver_of
from tests.approvals.test_hooks import SECRET, hand_over, mail_to
from tests.approvals.test_webhooks import Receiver, allow
from tests.cast import Actor, Cast
from tests.mail_server import MailServer
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db
# One IBAN in each form, and some of each other kind.
PLANTED = [*lines_with_ibans(Random(11), 22), *lines_with_others(Random(12), 9)]


# Stands between values, so that digits of two make no number.
APART = " ZQXZQX "
# What holds digits by chance and no words: times, vectors, hashes, ids and refs.
WORDLESS = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.+-]+|\[[-\d.,e ]*\]|[0-9a-f]{32,}"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\bd[0-9]{6,16}\b"
)


def everything_kept() -> Iterator[tuple[str, str]]:
    """Yield (table, words) of every row of every table, as the database holds it."""
    with connection.cursor() as cursor:
        for model in apps.get_models():
            table = model._meta.db_table
            cursor.execute(f'SELECT to_jsonb(t)::text FROM "{table}" AS t')  # noqa: S608
            for (row,) in cursor.fetchall():
                yield table, APART.join(words_in(json.loads(row)))


def words_in(value: object) -> Iterator[str]:
    """Yield the texts in a value of JSON, names included; numbers hold no words."""
    if isinstance(value, str):
        yield WORDLESS.sub(" ", value)
    elif isinstance(value, list):
        for each in value:
            yield from words_in(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from words_in(each)


def leaks_in(named: Iterable[tuple[str, str]]) -> list[str]:
    """Return where a planted number can still be read."""
    texts: dict[str, list[str]] = {}
    for name, text in named:
        texts.setdefault(name, []).append(text)
    return [
        f"{name}: {part} of {line.kind}"
        for name, rows in texts.items()
        for line in PLANTED
        if (part := line.left_in(APART.join(rows)))
    ]


def ask(reader: Actor, line: Line, door: int) -> None:
    """Ask by one of the doors that keep what was asked."""
    client = reader.client()
    text = " ".join(line.text.split())
    doors = (
        ("/api/v1/search", {"query": text}),
        ("/api/v1/ask", {"question": text}),
        ("/", {"q": text}),
        ("/ask/", {"q": text}),
    )
    path, said = doors[door % len(doors)]
    if path.startswith("/api/"):
        response = client.post(path, said, content_type="application/json")
    else:
        response = client.get(path, said)
    assert response.status_code == 200, response.content


def say_all(asker: Actor, person: User, by_mail: Contact) -> None:
    """Say each line where people say why: in ratings, replies by mail, and reasons."""
    client = asker.client()
    asks = list(Interaction.objects.filter(owner=asker.user))
    pending = PendingQuestion.objects.open().earliest("pk")
    message = told(by_mail, pending)
    for number, line in enumerate(PLANTED):
        rating = {
            "interaction_id": str(asks[number % len(asks)].public_id),
            "helpful": False,
            "comment": line.text,
            "better_query": line.text,
        }
        response = client.post("/api/v1/feedback", rating, "application/json")
        assert response.status_code == 200, response.content
        reply = mail_to(
            message,
            f"{line.text}\n{ANSWER}",
            **{"Message-ID": f"<{number}@bank.example>"},
        )
        assert hand_over(reply)[0] == 422, line
        ignored = actions.ignore(pending, actor=person, because=line.text)
        assert not line.left_in(ignored.ignored_because)
        actions.reopen(pending, actor=person)


@pytest.mark.req("REL-L3", "S1-PRV-01", "R16")
def test_no_bank_detail_is_kept_sent_or_logged(
    corpus: Corpus, cast: Cast, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    base: KnowledgeBase = corpus.handbook
    layer = Layer.objects.filter(knowledge_base=base).earliest("pk")
    settings.STRATA_API_RATE = 0
    with MailServer() as post, Receiver() as chat, caplog.at_level(logging.DEBUG):
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", post.port
        settings.STRATA_EMAIL_SECURITY = "none"
        settings.STRATA_REPLY_ADDRESS = "replies@bank.example"
        settings.STRATA_MAIL_HOOK_SECRETS = [SECRET]
        allow(settings, chat)
        person = approver_of(base)
        by_hook = hook_contact(person, chat.url)
        by_mail = mail_contact(person)
        daily = mail_contact(approver_of(base), pace=Pace.DAILY)
        asker = cast.granted
        grant(base, BOTH, to=asker.user, actor=None)
        before = set(everything_kept())
        for door, line in enumerate(PLANTED):
            ask(asker, line, door)
            actions.send_to_person(
                asker.reader,
                question=" ".join(line.text.split())[:900],
                channel=Channel.PORTAL,
            )
        summarise(daily)
        for pending in PendingQuestion.objects.all():
            reply = {"text": f"Layer: {layer.name}\n{ANSWER} {PLANTED[0].text}"}
            status, said = signed_reply(told(by_hook, pending), reply)
            assert status == 422, said
        say_all(asker, person, by_mail)
        assert Notification.objects.filter(event=Event.REFUSED).count() == len(PLANTED)
        assert not leaks_in(each for each in everything_kept() if each not in before)
        sent = 2 * PendingQuestion.objects.count()
        assert send_due() >= sent

    assert Interaction.objects.count() >= len(PLANTED) // 3
    assert not leaks_in(each for each in everything_kept() if each not in before)
    assert not leaks_in(
        [("mail", mail.as_string() + mail.get_content()) for mail in post.mails]
        + [
            ("webhook", APART.join(words_in(json.loads(body))))
            for _, _, body in chat.taken
        ]
    )
    formatter = OneLineFormatter("{message}", style="{")
    assert not leaks_in([("log", formatter.format(entry)) for entry in caplog.records])


@pytest.mark.req("REL-L3", "S1-PRV-01")
def test_the_log_of_addresses_holds_no_bank_detail() -> None:
    formatter = OneLineFormatter("{asctime} {levelname} {name}: {message}", style="{")
    for line in PLANTED:
        entry = logging.LogRecord(
            "uvicorn.access",
            logging.INFO,
            "",
            0,
            'GET /?q=%s "200"',
            (line.text,),
            None,
        )
        written = formatter.format(entry)
        assert not line.left_in(written), written


@pytest.mark.req("REL-L3")
def test_an_ordinary_entry_of_the_log_stays() -> None:
    formatter = OneLineFormatter("{asctime} {levelname} {name}: {message}", style="{")
    said = '127.0.0.1:53712 - "GET /read/d1234567890123:10-20 HTTP/1.1" 200'
    entry = logging.LogRecord("uvicorn.access", logging.INFO, "", 0, said, None, None)
    assert formatter.format(entry).endswith(f"INFO uvicorn.access: {said}")


@pytest.mark.req("REL-L6")
def test_what_stands_for_a_detail_tells_no_two_apart() -> None:
    """Nothing is kept by which two asks with the same number could be joined."""
    first, second = (line.number for line in lines_with_ibans(Random(3), 2))
    assert scrub(f"pay {first}") == scrub(f"pay {second}") == "pay [IBAN]"
