"""Every door × every person, enumerated from the addresses that the portal really has.

`tests/doors.yaml` says what each address answers to each of the cast. An address that
the table lacks fails `test_every_address_is_in_the_table`, with the row to add.

To add a view, add its route, exactly as that test prints it, to the group of those that
answer everybody alike, or among the `doors` with one entry for each knowledge base that
matters (`about`; its objects fill the `<…>` of the route):

    read/<str:ref>/:
      - {about: handbook, 200: granted editor approver, 404: people, 302: rest}
      - {about: vault, 200: insider, 404: people, 302: rest}

A number is a status; the names behind it are actors of `tests.cast` or sets from the
top of the table; the first status that names an actor counts, and `rest` is everybody
else. Further keys: `method` (get), `query` (appended), `data` (a form, or JSON where
`json: true`), `path` (where the route is a pattern that no object fills).

Nobody but the insider, a superuser in the admin, and an auditor in the log of what was
searched, may ever meet the canary word of the vault, in body or header, whatever the
door.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from django.db import transaction
from django.urls import URLResolver, get_resolver

from approvals.models import Contact, PendingQuestion, Subscriber
from knowledge.memory import remember, start_conversation
from knowledge.models import (
    AuditEntry,
    Conversation,
    Department,
    EmbeddingSpace,
    KnowledgeBase,
    NeverRule,
    Passage,
    RegisterEntry,
    Statement,
)
from knowledge.models.register import Decision, RuleKind
from knowledge.permissions import Reader, Scope
from retrieval.impact import impact_of, keep
from retrieval.measuring import request_run
from retrieval.models import (
    Calibration,
    Feedback,
    ImpactReport,
    Interaction,
    LearnedItem,
    QuestionSet,
    Receipt,
    SearchLog,
    Snapshot,
    TuningProposal,
    Turn,
)
from retrieval.models.impact import Act, Moment
from retrieval.receipts import new_id
from retrieval.tuning import current, values_of
from tests.approvals.shown import waiting
from tests.cast import Actor, Cast
from tests.factories import CalibrationFactory
from tests.retrieval.receipts import issued
from tests.stored_corpus import CANARY, Corpus

TABLE: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("doors.yaml").read_text(encoding="utf-8")
)
GROUPED: list[tuple[str, list[dict[Any, Any]]]] = [
    (route, group["answers"]) for group in TABLE["groups"] for route in group["doors"]
]
DOORS: dict[str, list[dict[Any, Any]]] = {**dict(GROUPED), **TABLE["doors"]}
SETS: dict[str, list[str]] = {
    name: str(members).split() for name, members in TABLE["sets"].items()
}
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
CSRF_TOKEN = re.compile(r'value="\w{64}"')
SEARCHES = "/admin/retrieval/searchlog/"
MODEL = re.compile(r"admin/\w+/(\w+)/")


def routes(resolver: Any = None, before: str = "") -> Iterator[str]:
    """Yield the route of every address."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, route)
        else:
            yield route


def section(route: str) -> str:
    """Return the part of the portal that a route belongs to."""
    model = MODEL.match(route)
    return f"admin/{model[1]}" if model else route.partition("/")[0] or "front"


@dataclass(frozen=True)
class Door:
    """One request, and what it answers to whom."""

    route: str
    case: dict[Any, Any]

    def expected(self, actor: str) -> int | None:
        """Return the status for an actor, or None where the table says nothing."""
        for status, names in self.case.items():
            if not isinstance(status, int):
                continue
            for name in str(names).split():
                if name in {actor, "rest"} or actor in SETS.get(name, []):
                    return status
        return None

    def path(self, filled: dict[str, Any]) -> str:
        """Return the address, with the objects of `about` in place."""
        if "path" in self.case:
            return str(self.case["path"])
        model = MODEL.match(self.route)
        filled = {**filled, "object_id": filled.get(model[1] if model else "")}
        route = PARAMETER.sub(lambda found: str(filled[found[1]]), self.route)
        return f"/{route}{self.case.get('query', '')}"

    def knock(self, actor: Actor, path: str, cookies: SimpleCookie) -> Any:
        """Return the response; whatever it changed is undone.

        `cookies` are those with which the actor is signed in.
        """
        data = self.case.get("data")
        with transaction.atomic():
            client = actor.client(cookies)
            if self.case.get("json"):
                response = client.post(path, data, content_type="application/json")
            else:
                method = self.case.get("method", "get")
                response = getattr(client, method)(path, data)
            transaction.set_rollback(True)
        return response


def doors(part: str) -> list[Door]:
    """Return the doors of one part of the portal."""
    return [
        Door(route, case)
        for route, cases in DOORS.items()
        if section(route) == part
        for case in cases
    ]


def fill(base: KnowledgeBase, cast: Cast) -> dict[str, Any]:
    """Return an object of a knowledge base for each parameter and admin model."""
    source = base.sources.order_by("pk").first()
    assert source is not None
    document = source.documents.get(is_current=True)
    passage = document.passages.order_by("pk").first()
    run = source.runs.first()
    entry = AuditEntry.objects.filter(knowledge_base_id=base.pk).first()
    assert passage is not None
    assert run is not None
    assert entry is not None
    assert cast.granted.user is not None
    assert cast.agent_token.token_row is not None
    return {
        "ref": document.ref(passage.start, passage.end),
        "public_id": source.public_id,
        "number": document.number,
        "knowledge_base_id": base.pk,
        "source_id": source.pk,
        "layer_id": source.layer_id,
        "token_id": cast.agent_token.token_row.pk,
        "verb": "reindex",
        "statement_id": Statement.objects.get().public_id,
        "conversation_id": Conversation.objects.get().public_id,
        "id": cast.granted.user.pk,
        "user_id": cast.granted.user.pk,
        "knowledgebase": base.pk,
        "layer": source.layer_id,
        "source": source.pk,
        "document": document.pk,
        "passage": passage.pk,
        "ingestrun": run.pk,
        "auditentry": entry.pk,
        "user": cast.granted.user.pk,
        "group": cast.members.pk,
        "apitoken": cast.agent_token.token_row.pk,
        "agentclient": cast.agent_token.token_row.client_id,
        "client_id": cast.agent_token.token_row.client_id,
        "embeddingspace": EmbeddingSpace.objects.get().pk,
        "registerentry": base.register.get().pk,
        "neverrule": base.never_rules.get().pk,
        "department": Department.objects.get().pk,
        "searchlog": base_log(base).pk,
        "log_id": base_log(base).pk,
        "calibration": Calibration.objects.get().pk,
        "question_id": question_of(base).pk,
        "pendingquestion": question_of(base).pk,
        "subscriber": Subscriber.objects.get().pk,
        "contact": Contact.objects.get_or_create(
            user=cast.superuser.user, address="chief@bank.example"
        )[0].pk,
        **fill_question_set(base, cast),
        "impactreport": ImpactReport.objects.get(knowledge_base=base).pk,
        "report_id": ImpactReport.objects.get(knowledge_base=base).pk,
        "item_id": LearnedItem.objects.get(knowledge_base_ids=[base.pk]).pk,
        "receipt": receipt_of(base).pk,
        "receipt_id": receipt_of(base).public_id,
        "turn_id": Turn.objects.get(knowledge_base_ids=[base.pk]).public_id,
        "interaction_id": Interaction.objects.get(
            knowledge_base_ids=[base.pk]
        ).public_id,
        "mark": 1,
    }


def fill_question_set(base: KnowledgeBase, cast: Cast) -> dict[str, Any]:
    """Return the set of one knowledge base, with what hangs on it."""
    found = base.question_sets.get()
    proposal = TuningProposal.objects.get(created_by=cast.editor.user)
    return {
        "question_set_id": found.pk,
        "form": "csv",
        "version": 0,
        "proposal_id": proposal.pk,
        "run_id": found.runs.get().pk,
        "questionset": found.pk,
        "question": found.questions.get().pk,
    }


def question_of(base: KnowledgeBase) -> PendingQuestion:
    """Return the question that waits in one knowledge base."""
    return PendingQuestion.objects.get(knowledge_base_ids=[base.pk])


def receipt_of(base: KnowledgeBase) -> Receipt:
    """Return the receipt of what was read in one knowledge base."""
    return Receipt.objects.filter(reads__knowledge_base=base).earliest("pk")


def base_log(base: KnowledgeBase) -> SearchLog:
    """Return the logged search in one knowledge base."""
    return SearchLog.objects.filter(knowledge_bases=[base.pk]).earliest("pk")


@pytest.fixture(autouse=True)
def memory(request: pytest.FixtureRequest) -> None:
    """Something that is remembered about one person, where people knock."""
    if "cast" in request.fixturenames:
        cast: Cast = request.getfixturevalue("cast")
        remember(cast.granted.reader, "Likes short answers.")
        start_conversation(cast.granted.reader)


@pytest.fixture
def registers(corpus: Corpus) -> None:
    """What each knowledge base has for staff; the vault's rows name the canary.

    A candidate, a rule, a search and a pending question; and a calibration of none.
    """
    CalibrationFactory()
    for base in (corpus.handbook, corpus.branches, corpus.vault):
        word = CANARY if base == corpus.vault else base.slug
        waiting(f"Where is {word}?", base)
        RegisterEntry.objects.create(
            knowledge_base=base,
            title=f"Prices of {word}",
            location=f"{word}/prices.csv",
            decision=Decision.REJECTED,
            reason=f"{word} keeps them.",
        )
        NeverRule.objects.create(
            knowledge_base=base,
            kind=RuleKind.NAME,
            pattern=f"{word}*.pst",
            reason=f"{word} keeps them.",
        )
        passage = base.passages.order_by("pk").first()
        assert passage is not None
        ref = passage.document.ref(passage.start, passage.end)
        SearchLog.objects.create(
            door="portal",
            query=f"What of {word}?",
            count=5,
            knowledge_bases=[base.pk],
            layers=[passage.layer_id],
            layer_id=passage.layer_id,
            fused=[passage.pk],
            rankings={"keywords": [[passage.pk, 0.5, 0]]},
            hits=[
                {
                    "passage": passage.pk,
                    "ref": ref,
                    "match": "ranked",
                    "score": 0.1,
                    "similarity": 0.8,
                    "rerank_score": None,
                }
            ],
            returned=1,
            status="found",
        )
        put_learned(passage, word, ref)
    Department.objects.create(name="Archive")


def put_learned(passage: Passage, word: str, ref: str) -> None:
    """Put something that was learned, and a rating, into a passage's knowledge base."""
    LearnedItem.objects.create(
        kind="synonym",
        key=word,
        term=word,
        value=[f"other {word}"],
        layer_id=passage.layer_id,
        knowledge_base_ids=[passage.knowledge_base_id],
        origin="reworded",
        digest=word.ljust(64, "0"),
    )
    rating = Feedback.objects.create(
        interaction_id=uuid4(),
        is_helpful=False,
        comment=f"Nothing of {word}.",
        knowledge_base_ids=[passage.knowledge_base_id],
    )
    rating.passages.create(
        worth="wrong",
        ref=ref,
        revision=passage.document.number,
        source_id=passage.source_id,
    )


@pytest.fixture
def question_sets(corpus: Corpus, cast: Cast) -> None:
    """A set with a run in each knowledge base; the vault's holds the canary."""
    assert cast.superuser.user is not None
    for base in (corpus.handbook, corpus.branches, corpus.vault):
        word = CANARY if base == corpus.vault else base.slug
        made = QuestionSet.objects.create(name=f"Questions of {word}")
        made.knowledge_bases.add(base)
        made.questions.create(text=f"Where is {word}?", places=[{"file": word}])
        run = request_run(made, current(), actor=cast.superuser.user)
        run.outcomes.create(
            question=made.questions.get(),
            hits=[{"ref": "d1:0-5", "file": f"{word}.md", "lines": "1"}],
        )
    TuningProposal.objects.create(
        values=values_of(current()), based_on=0, created_by=cast.editor.user
    )


@pytest.fixture
def turns(corpus: Corpus, cast: Cast) -> None:
    """A turn and an ask of the same agent about each knowledge base, with a citation.

    And a receipt of the passage that is cited, and a report of what quotes it.
    """
    row = cast.agent_token.token_row
    assert row is not None
    assert row.client is not None
    Subscriber.objects.create(client=row.client)
    for base in (corpus.handbook, corpus.branches, corpus.vault):
        turn = Turn.objects.create(
            client=row.client, owner=row.owner, knowledge_base_ids=[base.pk]
        )
        passage = Passage.objects.filter(knowledge_base=base).order_by("pk").first()
        assert passage is not None
        interaction = Interaction.objects.create(
            owner=row.owner,
            client=row.client,
            door="api",
            question=f"What of {base.slug}?",
            knowledge_base_ids=[base.pk],
            status="found",
            mode="grounded",
        )
        for of in ({"turn": turn}, {"interaction": interaction}):
            Snapshot.objects.create(
                **of,
                number=1,
                knowledge_base=base,
                source=passage.source,
                document=passage.document,
                revision=passage.document.number,
                start=passage.start,
                end=passage.end,
                ref=passage.document.ref(passage.start, passage.end),
                text=f"{base.slug}: {passage.text}",
                text_sha256="0" * 64,
                title=passage.document.title,
                layer="main",
                lines="1",
                text_origin="text",
                score=1.0,
                indexed_at=passage.document.created_at,
            )
        # Whoever read it then: each of the cast has a reader of their own.
        reader = Reader(None)
        vars(reader)["scope"] = Scope(frozenset(), frozenset([base.pk]))
        issued(reader, passage, draft=f"{base.slug}: {passage.text}")
        keep(
            impact_of(passage.source, None),
            passage.source,
            act=Act.REPLACEMENT,
            moment=Moment.BEFORE,
        )


def words_of(response: Any) -> str:
    """Return body and headers in small letters."""
    body = (
        b"".join(response.streaming_content)
        if getattr(response, "streaming", False)
        else response.content
    )
    return f"{body.decode(errors='replace')}\n{response.headers}".lower()


def comparable(response: Any, path: str) -> str:
    """Return what a response tells, but for its own address and its CSRF token."""
    return CSRF_TOKEN.sub("", words_of(response)).replace(path, "")


@pytest.mark.req("REL-A1")
def test_every_address_is_in_the_table() -> None:
    real = list(routes())
    missing = [route for route in real if route not in DOORS]
    assert not missing, "Add to tests/doors.yaml: " + " ".join(map(repr, missing))
    assert not [route for route in DOORS if route not in real], "gone: clean the table"
    assert len(DOORS) == len(GROUPED) + len(TABLE["doors"]), "a route stands twice"


def test_the_table_names_only_who_there_is(cast_names: set[str]) -> None:
    for members in SETS.values():
        assert set(members) <= cast_names
    for cases in DOORS.values():
        for case in cases:
            for status, names in case.items():
                if isinstance(status, int):
                    known = cast_names | set(SETS) | {"rest"}
                    assert set(str(names).split()) <= known


@pytest.fixture
def cast_names() -> set[str]:
    """The names of all actors."""
    return {name for name in Cast.__slots__ if name != "members"}


@pytest.mark.req("REL-A1", "REL-A3")
@pytest.mark.parametrize("part", sorted({section(route) for route in DOORS}))
@pytest.mark.django_db
def test_each_door_answers_each_person_as_the_table_says(
    part: str,
    corpus: Corpus,
    registers: None,
    question_sets: None,
    turns: None,
    cast: Cast,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    cookies = {actor.name: actor.client().cookies for actor in cast}
    wrong, met = [], []
    for door in doors(part):
        base = getattr(corpus, door.case.get("about", "handbook"))
        path = door.path(fill(base, cast))
        for actor in cast:
            before = len(caplog.text)
            response = door.knock(actor, path, cookies[actor.name])
            expected = door.expected(actor.name)
            if response.status_code != expected:
                wrong.append(
                    f"{door.route} about {base.slug}: {actor.name} got "
                    f"{response.status_code}, not {expected}"
                )
            allowed = (
                actor is cast.insider
                or (actor is cast.superuser and path.startswith("/admin/"))
                or (actor is cast.auditor and path.startswith(SEARCHES))
            )
            told = words_of(response)
            if not allowed:
                if CANARY in told:
                    met.append(f"{door.route}: {actor.name}")
                if CANARY in caplog.text[before:].lower():
                    met.append(f"{door.route}: the log, by {actor.name}")
    assert not wrong, "\n".join(wrong)
    assert not met, "the canary was met at\n" + "\n".join(met)


@pytest.mark.req("REL-A3")
@pytest.mark.django_db
def test_the_insider_meets_the_canary(
    corpus: Corpus, registers: None, question_sets: None, turns: None, cast: Cast
) -> None:
    # Else its absence for all others would show nothing.
    found = fill(corpus.vault, cast)
    for path in (f"/read/{found['ref']}/", "/?q=merger", "/knowledge-bases/"):
        assert CANARY in words_of(cast.insider.client().get(path))
    assert CANARY in words_of(cast.superuser.client().get("/admin/knowledge/source/"))


@pytest.mark.req("REL-A10", "REL-R6", "D25")
@pytest.mark.django_db
def test_a_hidden_file_is_answered_like_one_that_never_was(
    corpus: Corpus, registers: None, question_sets: None, turns: None, cast: Cast
) -> None:
    hidden = fill(corpus.vault, cast)
    client = cast.granted.client()
    pairs = [
        (f"/read/{hidden['ref']}/", "/read/d123456789:0-10/"),
        (f"/original/{hidden['number']}/", "/original/123456789/"),
        (
            f"/source/{hidden['public_id']}/",
            "/source/00000000-0000-4000-8000-000000000000/",
        ),
        (f"/api/v1/passages/{hidden['ref']}", "/api/v1/passages/d123456789:0-10"),
        (f"/read/{hidden['ref']}/difference/", "/read/d123456789:0-10/difference/"),
        (
            f"/cited/{hidden['turn_id']}/1/",
            "/cited/00000000-0000-4000-8000-000000000000/1/",
        ),
        (f"/cited/{hidden['turn_id']}/1/", "/cited/no-id/1/"),
        *(
            (address.format(hidden["receipt_id"]), address.format(other))
            for other in (new_id(), "no-id")
            for address in (
                "/receipts/{}/",
                "/receipts/{}/file/",
                "/api/v1/receipts/{}",
            )
        ),
    ]
    for there, absent in pairs:
        for headers in (
            {},
            {"If-None-Match": "*"},
            {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
            {"Range": "bytes=0-0"},
        ):
            for method in ("get", "head", "options", "post"):
                one = getattr(client, method)(there, headers=headers)
                other = getattr(client, method)(absent, headers=headers)
                assert one.status_code == other.status_code
                assert one.status_code in {404, 405}
                assert comparable(one, there) == comparable(other, absent)
