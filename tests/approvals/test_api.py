"""The gate over HTTP: sending questions, and hearing of answers."""

from typing import Any

import pytest
from django.test import Client

from approvals import actions
from approvals.asking_again import follow_up
from approvals.models import PendingQuestion, Subscriber
from approvals.models.question import Channel
from knowledge.ingest import run_ingest
from knowledge.models import IngestRun
from tests.approvals.gaps import ANSWER, QUESTION, approver_of, asked, pending_question
from tests.cast import Cast
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

QUESTIONS, ANSWERS = "/api/v1/questions", "/api/v1/answers"
ACKNOWLEDGE = f"{ANSWERS}/acknowledge"


def post(client: Client, path: str, **body: Any) -> Any:
    """Send a body as JSON."""
    return client.post(path, body, content_type="application/json")


def approved(shelves: Corpus) -> PendingQuestion:
    """Answer a question in the handbook, as far as it is found."""
    pending = pending_question(shelves.handbook)
    person = approver_of(shelves.handbook)
    actions.propose_answer(pending, actor=person, question=QUESTION, answer=ANSWER)
    for run in IngestRun.objects.filter(state="queued"):
        run_ingest(run.pk)
    follow_up()
    pending.refresh_from_db()
    return pending


@pytest.mark.req("S2-APR-01")
def test_an_agent_sends_a_question_with_its_channel(
    cast: Cast, shelves: Corpus
) -> None:
    client = cast.agent_token.client()
    answer = post(client, QUESTIONS, question=QUESTION, channel="voice")

    pending = PendingQuestion.objects.get()
    assert answer.status_code == 201
    assert answer.json() == {
        "status": "ok",
        "id": str(pending.public_id),
        "state": "pending",
    }
    assert (pending.channel, pending.knowledge_base_ids) == (
        Channel.VOICE,
        [shelves.handbook.pk],
    )
    assert pending.wordings.get().client == cast.agent_token.token_row.client
    # Without one it is what the client is set to.
    Subscriber.objects.create(
        client=cast.agent_token.token_row.client, channel=Channel.WIDGET
    )
    post(client, QUESTIONS, question="Another one?")
    assert PendingQuestion.objects.get(question="Another one?").channel == "widget"


def test_an_own_interaction_is_sent_and_nobody_elses(
    cast: Cast, shelves: Corpus
) -> None:
    interaction = asked(cast.granted.user, QUESTION, shelves.handbook)
    sent = str(interaction.public_id)

    assert (
        post(cast.granted.client(), QUESTIONS, interaction_id=sent).status_code == 201
    )
    # Not that of the client's owner either: it is another caller's.
    for actor in (cast.editor, cast.agent_token):
        refused = post(actor.client(), QUESTIONS, interaction_id=sent)
        assert refused.status_code == 400
        fields = refused.json()["error"]["fields"]
        assert fields == {
            "interaction_id": ["There is no such question of yours. Ask it again."]
        }


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": "x", "interaction_id": "0c9b7a52-0d53-4bd5-a0c5-7a3a1f9c1100"},
        {"question": "x" * 1001},
        {"question": "x", "channel": "portal"},
        {"question": "x", "layers": ["handbook/main"]},
        {"interaction_id": "7"},
    ],
)
def test_a_body_that_cannot_be_taken_is_named(cast: Cast, body: dict[str, Any]) -> None:
    refused = post(cast.agent_token.client(), QUESTIONS, **body)
    assert refused.status_code == 400
    assert refused.json()["error"]["fields"]
    assert not PendingQuestion.objects.exists()


@pytest.mark.req("S2-APR-05", "R17")
def test_answers_are_pulled_by_cursor_and_acknowledged(
    cast: Cast, shelves: Corpus, settings: Any
) -> None:
    settings.PORTAL_EMBEDS = False
    pending = approved(shelves)
    client = cast.agent_token.client()

    body = client.get(ANSWERS).json()
    (told,) = body["answers"]
    assert (body["next_after"], body["has_more"]) == (1, False)
    assert (told["kind"], told["entry"]) == ("answer", str(pending.public_id))
    assert (told["question"], told["answer"]) == (QUESTION, ANSWER)
    assert told["knowledge_base"] == shelves.handbook.slug
    # The ref opens the answer, as any other.
    passage = client.get(f"/api/v1/passages/{told['ref']}").json()
    assert passage["text"] == ANSWER
    assert client.get(ANSWERS, {"after": 0}).json() == body
    assert client.get(ANSWERS, {"after": 1}).json()["answers"] == []

    done = post(client, ACKNOWLEDGE, through=1)
    assert done.json() == {"status": "ok", "acknowledged": 1}
    assert client.get(ANSWERS).json()["answers"] == []


@pytest.mark.req("REL-W8")
def test_an_agent_hears_nothing_of_what_its_owner_may_not_search(
    cast: Cast, shelves: Corpus, settings: Any
) -> None:
    settings.PORTAL_EMBEDS = False
    approved(shelves)
    body = cast.other_agent.client().get(ANSWERS).json()
    assert body == {"status": "ok", "answers": [], "next_after": 0, "has_more": False}


@pytest.mark.parametrize(
    "query",
    [{"after": "-1"}, {"after": "x"}, {"count": "0"}, {"count": "101"}, {"since": "1"}],
)
def test_a_cursor_that_is_none_is_refused(cast: Cast, query: dict[str, str]) -> None:
    refused = cast.agent_token.client().get(ANSWERS, query)
    assert refused.status_code == 400
    assert list(refused.json()["error"]["fields"]) == list(query)


def test_only_agent_clients_are_told(cast: Cast) -> None:
    refused = cast.token_in_scope.client().get(ANSWERS)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "agents_only"
