"""Other wordings by which an approved answer is found, such as in other languages."""

from io import BytesIO
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from approvals import actions
from approvals.asking_again import follow_up
from approvals.errors import ApprovalError, PrivacyError
from approvals.messages import question_message
from approvals.models import Notification, PendingQuestion
from approvals.models.notification import Event
from approvals.models.question import Gap, State
from knowledge.actions import Upload, upload_source
from knowledge.ingest import run_ingest
from knowledge.models import IngestRun, KnowledgeBase, Layer, Passage, Source
from retrieval.ask import ask
from retrieval.confidence import Status
from retrieval.reach import reader_of
from retrieval.weighing import answering
from tests.approvals.channels import mail_contact
from tests.approvals.gaps import answered, approver_of, pending_question
from tests.factories import LayerFactory, StaffFactory

pytestmark = pytest.mark.django_db

QUESTION = "May I keep a bicycle in the reading room?"
# So short that another language's question is told from it by its wordings alone.
ANSWER = "No, it stands in the yard."
WORDINGS = {
    "pl": "Czy mogę trzymać rower w czytelni?",
    "vi": "Tôi có thể để xe đạp trong phòng đọc không?",
    "ru": "Можно ли оставить велосипед в читальном зале?",
    "ro": "Pot să țin o bicicletă în sala de lectură?",
}


def ingest() -> None:
    """Bring in whatever waits."""
    for run in IngestRun.objects.filter(state="queued"):
        run_ingest(run.pk)


def put_in(layer: Layer, *also_asked: str, **more: Any) -> PendingQuestion:
    """Answer a question of a layer's knowledge base, by an approver of it."""
    pending = pending_question(layer.knowledge_base, text=QUESTION)
    person = approver_of(layer.knowledge_base)
    done = answered(
        pending, person, question=QUESTION, answer=ANSWER, also_asked=also_asked, **more
    )
    ingest()
    return done


@pytest.mark.req("S2-APR-02", "S2-APR-10", "D8")
def test_an_answer_is_found_by_each_of_its_wordings(model: str) -> None:
    layer: Layer = LayerFactory()
    put_in(layer, *WORDINGS.values())
    reader = reader_of(frozenset({layer.knowledge_base_id}), None)
    for language, wording in WORDINGS.items():
        answer = ask(reader, wording)
        assert answer.status == Status.FOUND, language
        # What is quoted is the answer alone.
        assert [passage.text for passage in answer.passages] == [ANSWER], language
    # The wordings say nothing of what was not asked.
    assert ask(reader, "Kto naprawia ekspres do kawy?").status == Status.NOT_FOUND


@pytest.mark.req("S2-APR-10", "R17")
def test_a_wording_closes_the_gap_that_it_was_missing_for(model: str) -> None:
    layer: Layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = pending_question(layer.knowledge_base, text=WORDINGS["pl"])
    answered(pending, person, question=QUESTION, answer=ANSWER)
    ingest()
    assert follow_up() == 1
    pending.refresh_from_db()
    assert pending.gap == Gap.OPEN
    before = pending.source

    changed = actions.change_answer(
        pending,
        actor=person,
        question=QUESTION,
        answer=ANSWER,
        also_asked=[WORDINGS["pl"]],
    )
    assert changed.revision == 2
    ingest()
    assert follow_up() == 1
    pending.refresh_from_db()
    assert (pending.gap, pending.source) == (Gap.CLOSED, before)
    with pytest.raises(ApprovalError, match="Nothing is changed"):
        actions.change_answer(
            pending,
            actor=person,
            question=QUESTION,
            answer=ANSWER,
            also_asked=[WORDINGS["pl"]],
        )


@pytest.fixture
def layer(settings: Settings) -> Layer:
    """Where answers go; words are enough here."""
    settings.PORTAL_EMBEDS = False
    found: Layer = LayerFactory(knowledge_base__name="House rules", name="answers")
    return found


def test_wordings_are_lines_of_the_context_and_never_of_the_text(layer: Layer) -> None:
    put_in(
        layer, "  Where may\tmy bicycle stand? ", "", WORDINGS["pl"], QUESTION.upper()
    )
    passage = Passage.objects.get()
    assert passage.text == ANSWER
    # Once each, without the question itself.
    assert passage.context.split("\n") == [
        QUESTION,
        "Where may my bicycle stand?",
        WORDINGS["pl"],
    ]
    row = PendingQuestion.objects.get()
    actions.withdraw(row, actor=approver_of(layer.knowledge_base), because="Wrong.")
    row.refresh_from_db()
    assert (row.state, row.also_asked) == (State.PENDING, [])


def test_no_other_document_is_found_by_what_its_head_claims(layer: Layer) -> None:
    text = f'---\ntitle: Bicycles\nasked_as: ["{WORDINGS["pl"]}"]\n---\n\n{ANSWER}\n'
    upload_source(Upload(BytesIO(text.encode()), "b.md"), layer=layer, actor=None)
    ingest()
    assert Passage.objects.get(text=ANSWER).context == "Bicycles"


def test_only_its_own_questions_are_answered_by_words_that_say_little(
    layer: Layer,
) -> None:
    long = f"May I keep {'a very heavy bicycle, ' * 11}or two of them > there?"
    assert len(long) > 200
    put_in(layer, long, WORDINGS["ru"])
    found = Passage.objects.get().pk
    for asked in (QUESTION.lower(), long, WORDINGS["ru"].rstrip("?")):
        assert answering(asked, [found]) == {found}, asked
    assert answering("May I keep a dog in the reading room?", [found]) == set()
    # Of no other document does the title count.
    text = f"---\ntitle: {QUESTION}\n---\n\nNo, never.\n"
    upload_source(Upload(BytesIO(text.encode()), "b.md"), layer=layer, actor=None)
    ingest()
    other = Passage.objects.exclude(pk=found).get().pk
    assert answering(QUESTION, [found, other]) == {found}


@pytest.mark.req("S2-APR-08")
def test_personal_details_in_a_wording_are_stopped_too(layer: Layer) -> None:
    wording = "Where may Anna Kowalska keep a bicycle?"
    with pytest.raises(PrivacyError, match="Anna Kowalska"):
        put_in(layer, wording)
    put_in(layer, wording, kept_marks=["Anna Kowalska"])
    assert PendingQuestion.objects.get().also_asked == [wording]


def test_there_are_not_too_many_and_none_is_too_long(layer: Layer) -> None:
    with pytest.raises(ApprovalError, match="11 other wordings; at most 10"):
        put_in(layer, *[f"Where may bicycle {number} stand?" for number in range(11)])
    with pytest.raises(ApprovalError, match=r"Another wording: .*300"):
        put_in(layer, "Where? " * 60)
    assert not Source.objects.exists()


def test_who_approves_sees_them_first(layer: Layer, settings: Settings) -> None:
    settings.STRATA_FOUR_EYES = True
    pending = put_in(layer, WORDINGS["ro"])
    assert (pending.state, pending.also_asked) == (State.PENDING, [WORDINGS["ro"]])
    contact = mail_contact(approver_of(layer.knowledge_base))
    told = Notification(contact=contact, pending=pending, event=Event.AWAITING)
    message = question_message(told, pending, Event.AWAITING)
    assert f"these wordings, too:\n\n    {WORDINGS['ro']}\n" in message.text
    actions.approve(pending, actor=approver_of(layer.knowledge_base))
    ingest()
    assert Passage.objects.get().context.endswith(WORDINGS["ro"])


class TestTheForm:
    """The page on which the answer is written."""

    @pytest.fixture
    def base(self, layer: Layer) -> KnowledgeBase:
        """The only knowledge base."""
        return layer.knowledge_base

    def test_takes_them_a_line_each_and_shows_them_again(
        self, client: Client, base: KnowledgeBase, layer: Layer
    ) -> None:
        person = approver_of(base, username="oana")
        client.force_login(person)
        pending = pending_question(base, text=QUESTION)
        act = reverse("admin:approvals_pendingquestion_act", args=[pending.pk])
        sent = {
            "act": "answer",
            "version": pending.version,
            "question": QUESTION,
            "answer": ANSWER,
            "also_asked": f"{WORDINGS['pl']}\r\n\r\n{WORDINGS['ru']}\r\n",
            "layer": layer.pk,
        }
        client.post(act, sent)
        pending.refresh_from_db()
        assert pending.also_asked == [WORDINGS["pl"], WORDINGS["ru"]]
        page = reverse("admin:approvals_pendingquestion_change", args=[pending.pk])
        shown = client.get(page).content.decode()
        assert f"<li>{WORDINGS['ru']}</li>" in shown
        written = client.get(f"{page}?edit=1").content.decode()
        assert f"{WORDINGS['pl']}\n{WORDINGS['ru']}</textarea>" in written

    def test_marks_personal_details_while_one_types(
        self, client: Client, base: KnowledgeBase
    ) -> None:
        client.force_login(approver_of(base))
        pending = pending_question(base, text=QUESTION)
        marks = reverse("admin:approvals_pendingquestion_marks", args=[pending.pk])
        page = client.post(marks, {"also_asked": "Where?\nCall +48 512 345 678"})
        assert 'data-in="also_asked"' in page.content.decode()

    def test_offers_the_words_of_merged_questions_that_one_works_on(
        self, client: Client, base: KnowledgeBase
    ) -> None:
        person = approver_of(base)
        client.force_login(person)
        pending = pending_question(base, text=QUESTION)
        other = pending_question(base, text=WORDINGS["vi"])
        actions.merge([other], into=pending, actor=person)
        page = reverse("admin:approvals_pendingquestion_change", args=[pending.pk])
        offered = f'data-use-wording="{WORDINGS["vi"]}"'
        assert offered in client.get(page).content.decode()
        # Nothing is offered to who may not answer.
        client.force_login(StaffFactory(groups=["Auditor"]))
        assert client.get(page).status_code in {302, 403, 404}


@pytest.mark.req("S1-EXT-01", "S2-APR-10")
def test_where_sentences_are_quoted_it_is_found_by_its_question_too(model: str) -> None:
    """The answer alone says nothing of what was asked."""
    layer: Layer = LayerFactory(answer_mode="extractive")
    put_in(layer, WORDINGS["pl"])
    reader = reader_of(frozenset({layer.knowledge_base_id}), None)
    for wording in (
        QUESTION,
        "may I keep a bicycle in the reading-room",
        WORDINGS["pl"],
    ):
        answer = ask(reader, wording)
        assert answer.status == Status.FOUND, wording
        # Word for word, and never the question.
        assert [sentence.text for sentence in answer.sentences] == [ANSWER], wording
    # Beside another question it would be a wrong answer.
    for other in (
        "May I keep a dog in the reading room?",
        "Where is the reading room?",
    ):
        answer = ask(reader, other)
        assert (answer.status, answer.sentences) == (Status.NOT_FOUND, ()), other
