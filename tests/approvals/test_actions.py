"""The verbs: who may, what becomes of a question, and who is first."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from approvals import actions, rights
from approvals.errors import ApprovalError, ConflictError, ForbiddenError
from approvals.models import PendingQuestion
from approvals.models.question import Channel, Gap, State
from knowledge.models import AuditEntry, Source, User
from knowledge.permissions import Reader, deny, grant
from tests.approvals.gaps import (
    ANSWER,
    BOTH,
    QUESTION,
    acts_on,
    answered,
    approver_of,
    asked,
    pending_question,
)
from tests.factories import (
    KnowledgeBaseFactory,
    LayerFactory,
    StaffFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db


# --- Answering ----------------------------------------------------------------------


@pytest.mark.req("S2-APR-02", "S2-APR-07", "R17")
def test_an_approved_answer_is_a_source_of_pairs() -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = pending_question(layer.knowledge_base)

    done = answered(pending, person, layer=layer, expected_version=pending.version)

    source = Source.objects.get()
    assert (done.state, done.source, done.approved_by) == (
        State.APPROVED,
        source,
        person,
    )
    assert (source.kind, source.title, source.layer) == ("qa", QUESTION, layer)
    assert source.runs.count() == 1
    assert acts_on(pending) == ["answered", "approved"]


@pytest.mark.req("S2-APR-11")
def test_asking_alone_puts_nothing_into_the_corpus() -> None:
    reader = UserFactory()
    base = LayerFactory().knowledge_base
    grant(base, BOTH, to=reader, actor=None)
    actions.send_to_person(
        Reader.for_user(reader), question=QUESTION, channel=Channel.PORTAL
    )

    assert PendingQuestion.objects.open().count() == 1
    assert not Source.objects.exists()


def test_without_a_choice_an_answer_goes_to_the_only_place_there_is() -> None:
    layer = LayerFactory()
    other = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = pending_question(layer.knowledge_base, other.knowledge_base)

    assert answered(pending, person).layer == layer


def test_of_several_places_one_must_be_chosen() -> None:
    layers = [LayerFactory(), LayerFactory()]
    bases = [layer.knowledge_base for layer in layers]
    pending = pending_question(*bases)

    with pytest.raises(ApprovalError, match="Choose the layer"):
        answered(pending, approver_of(*bases))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"answer": " \x00 "}, "Write the answer first"),
        ({"answer": "x" * 8001}, "8001 characters"),
        ({"question": ""}, "The question: "),
        ({"question": "x" * 301}, "301 characters"),
        # The question is in English, the number is not.
        ({"answer": "Yes. Ring 512 345 678 first."}, "on purpose: “512 345 678”"),
    ],
)
def test_what_cannot_be_published_is_said(
    fields: dict[str, str], sentence: str
) -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    with pytest.raises(ApprovalError, match=sentence):
        answered(pending_question(layer.knowledge_base), person, **fields)


# --- Four eyes ----------------------------------------------------------------------


def test_with_four_eyes_the_author_cannot_approve(settings: Settings) -> None:
    settings.STRATA_FOUR_EYES = True
    layer = LayerFactory()
    author = approver_of(layer.knowledge_base)
    colleague = approver_of(layer.knowledge_base)
    pending = answered(pending_question(layer.knowledge_base), author)

    assert pending.state == State.PENDING
    assert not Source.objects.exists()
    with pytest.raises(ForbiddenError, match="Ask a colleague"):
        actions.approve(pending, actor=author)

    done = actions.approve(pending, actor=colleague)
    assert (done.state, done.author, done.approved_by) == (
        State.APPROVED,
        author,
        colleague,
    )


def test_the_database_itself_holds_four_eyes() -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = answered(pending_question(layer.knowledge_base), person)

    with pytest.raises(IntegrityError, match="four_eyes"), transaction.atomic():
        PendingQuestion.objects.filter(pk=pending.pk).update(four_eyes=True)


def test_who_may_only_answer_leaves_the_approval_to_others() -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    permission = person.groups.get().permissions.get(codename="approve_pendingquestion")
    person.groups.get().permissions.remove(permission)
    pending = answered(pending_question(layer.knowledge_base), person)

    assert pending.is_awaiting_approval
    with pytest.raises(ForbiddenError):
        actions.approve(pending, actor=person)


def test_an_answer_that_is_sent_back_waits_no_longer(settings: Settings) -> None:
    settings.STRATA_FOUR_EYES = True
    layer = LayerFactory()
    pending = answered(
        pending_question(layer.knowledge_base), approver_of(layer.knowledge_base)
    )
    back = actions.send_back(pending, actor=approver_of(layer.knowledge_base))

    assert (back.state, back.answer, back.author) == (State.PENDING, "", None)
    with pytest.raises(ConflictError, match="No answer waits"):
        actions.approve(back, actor=approver_of(layer.knowledge_base))


# --- One winner, rights of this moment ----------------------------------------------


@pytest.mark.req("REL-W4", "REL-K5")
def test_who_saw_an_older_version_is_refused_and_named() -> None:
    layer = LayerFactory()
    first, second = (approver_of(layer.knowledge_base) for _ in range(2))
    pending = pending_question(layer.knowledge_base)
    seen = pending.version
    answered(pending, first, expected_version=seen)

    with pytest.raises(ConflictError, match="approved by now"):
        answered(pending, second, answer="Yes.", expected_version=seen)
    with pytest.raises(ConflictError, match="changed this question"):
        actions.change_answer(
            pending,
            actor=second,
            question=QUESTION,
            answer="Yes.",
            expected_version=seen,
        )

    pending.refresh_from_db()
    assert pending.answer == ANSWER
    assert acts_on(pending).count("came too late for") == 2


@pytest.mark.req("REL-W4", "REL-W8")
@pytest.mark.parametrize("lost", ["knowledge base", "role", "account"])
def test_a_right_that_was_lost_meanwhile_opens_nothing(lost: str) -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    assert person.has_perm(rights.ANSWER)
    pending = pending_question(layer.knowledge_base)
    if lost == "knowledge base":
        deny(layer.knowledge_base, to=person, actor=None)
    elif lost == "role":
        person.groups.clear()
    else:
        User.objects.filter(pk=person.pk).update(is_active=False)

    assert not rights.may_act(person, pending)
    with pytest.raises(ForbiddenError):
        answered(pending, person, layer=layer)
    assert acts_on(pending) == ["was refused"]


@pytest.mark.req("REL-W8")
def test_a_question_is_for_the_approvers_of_what_it_was_asked_of() -> None:
    layer, other = LayerFactory(), LayerFactory()
    pending = pending_question(layer.knowledge_base)
    ours = approver_of(layer.knowledge_base, other.knowledge_base)
    theirs = approver_of(other.knowledge_base)

    assert list(PendingQuestion.objects.administered_by(ours)) == [pending]
    assert not PendingQuestion.objects.administered_by(theirs)
    with pytest.raises(ForbiddenError):
        answered(pending, theirs, layer=other)
    # Its approver may answer it elsewhere; then it is a matter of that place alone.
    answered(pending, ours, layer=other)
    only_asked = approver_of(layer.knowledge_base)
    assert not PendingQuestion.objects.administered_by(only_asked)


def test_an_answer_goes_only_where_its_writer_works() -> None:
    layer, other = LayerFactory(), LayerFactory()
    pending = pending_question(layer.knowledge_base)

    with pytest.raises(ForbiddenError, match="do not work on that layer"):
        answered(pending, approver_of(layer.knowledge_base), layer=other)


# --- Changing and withdrawing -------------------------------------------------------


def test_a_changed_answer_is_a_new_revision_of_its_source() -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = answered(pending_question(layer.knowledge_base), person)
    PendingQuestion.objects.update(gap=Gap.CLOSED)

    changed = actions.change_answer(
        pending, actor=person, question=QUESTION, answer="Yes, a folding one."
    )

    assert (changed.revision, changed.gap) == (2, Gap.UNKNOWN)
    assert changed.source == pending.source
    assert changed.source.generation == 3
    with pytest.raises(ApprovalError, match="Nothing is changed"):
        actions.change_answer(
            changed, actor=person, question=QUESTION, answer="Yes, a folding one."
        )


def test_under_four_eyes_the_old_answer_serves_until_the_new_one_is_approved(
    settings: Settings,
) -> None:
    layer = LayerFactory()
    author = approver_of(layer.knowledge_base)
    pending = answered(pending_question(layer.knowledge_base), author)
    content = pending.source.content_sha256
    settings.STRATA_FOUR_EYES = True

    waiting = actions.change_answer(
        pending, actor=author, question=QUESTION, answer="Yes."
    )
    waiting.source.refresh_from_db()
    assert waiting.is_awaiting_approval
    assert waiting.source.content_sha256 == content

    done = actions.approve(waiting, actor=approver_of(layer.knowledge_base))
    assert done.source.content_sha256 != content


def test_an_answer_can_move_to_another_layer() -> None:
    layer = LayerFactory()
    other = LayerFactory(knowledge_base=layer.knowledge_base)
    person = approver_of(layer.knowledge_base)
    pending = answered(pending_question(layer.knowledge_base), person, layer=layer)

    moved = actions.change_answer(
        pending, actor=person, question=QUESTION, answer=ANSWER, layer=other
    )
    assert moved.source.layer == other


@pytest.mark.req("R17")
def test_a_withdrawn_answer_leaves_the_corpus_and_its_question_is_pending() -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = answered(pending_question(layer.knowledge_base), person)

    back = actions.withdraw(pending, actor=person, because="It was wrong.")

    assert (back.state, back.source, back.answer) == (State.PENDING, None, "")
    assert not Source.objects.exists()
    entry = AuditEntry.objects.get(verb="withdrew the answer of")
    assert entry.knowledge_base_id == layer.knowledge_base_id
    with pytest.raises(ConflictError):
        actions.withdraw(back, actor=person, because="Twice.")
    # The same words may come in again.
    assert answered(back, person).state == State.APPROVED


# --- Sorting ------------------------------------------------------------------------


@pytest.mark.req("S2-APR-06")
def test_ignored_is_an_outcome_with_a_reason() -> None:
    base = KnowledgeBaseFactory()
    person = approver_of(base)
    pending = pending_question(base)

    with pytest.raises(ApprovalError, match="Say why"):
        actions.ignore(pending, actor=person, because=" ")
    done = actions.ignore(pending, actor=person, because="Not ours to answer.")
    assert (done.state, done.ignored_because) == (State.IGNORED, "Not ours to answer.")
    # Asked again in the same words, it stays ignored and is counted.
    again = pending_question(base, asker=UserFactory())
    assert (again.pk, again.state, again.asked_count) == (done.pk, State.IGNORED, 2)
    assert actions.reopen(again, actor=person).state == State.PENDING


@pytest.mark.req("S2-APR-04")
def test_duplicates_point_at_the_original_and_count_for_it() -> None:
    base = KnowledgeBaseFactory()
    person = approver_of(base)
    texts = ["May bicycles come in?", "Can I bring a bike?", "Bike inside?"]
    original, *others = (
        pending_question(base, text=text, asker=UserFactory()) for text in texts
    )
    nested = pending_question(base, text="Bike here?", asker=UserFactory())
    actions.merge([nested], into=others[0], actor=person)

    merged = actions.merge(others, into=original, actor=person)

    assert (merged.asked_count, merged.asker_count) == (4, 4)
    for each in (*others, nested):
        each.refresh_from_db()
        assert (each.state, each.original) == (State.DUPLICATE, merged)
    # The same words again are counted on the original, and make no new question.
    again = pending_question(base, text=texts[1], asker=UserFactory())
    assert (again, again.asked_count) == (merged, 5)

    alone = actions.unmerge(others[0], actor=person)
    merged.refresh_from_db()
    assert (alone.state, alone.original, alone.asked_count) == (State.PENDING, None, 2)
    assert merged.asked_count == 3


def test_a_question_cannot_be_merged_into_itself_or_over_an_answer() -> None:
    layer = LayerFactory()
    person = approver_of(layer.knowledge_base)
    pending = pending_question(layer.knowledge_base)
    other = pending_question(layer.knowledge_base, text="Something else?")

    with pytest.raises(ApprovalError, match="into itself"):
        actions.merge([pending], into=pending, actor=person)
    done = answered(pending, person)
    with pytest.raises(ConflictError):
        actions.merge([done], into=other, actor=person)


def test_assigning_and_putting_off() -> None:
    base = KnowledgeBaseFactory()
    person, colleague = approver_of(base), approver_of(base)
    pending = pending_question(base)

    assert actions.assign(pending, actor=person, to=colleague).assigned_to == colleague
    with pytest.raises(ApprovalError, match="may not answer"):
        actions.assign(pending, actor=person, to=StaffFactory())
    later = timezone.now() + timedelta(days=1)
    assert actions.snooze(pending, actor=person, until=later).snoozed_until == later
    with pytest.raises(ApprovalError, match="still to come"):
        actions.snooze(pending, actor=person, until=timezone.now())


@pytest.mark.req("REL-K5")
def test_one_person_edits_at_a_time_until_the_lock_ends() -> None:
    base = KnowledgeBaseFactory()
    person, colleague = approver_of(base), approver_of(base)
    pending = pending_question(base)

    assert actions.lock(pending, actor=person)
    assert actions.lock(pending, actor=person)
    assert not actions.lock(pending, actor=colleague)
    PendingQuestion.objects.update(locked_until=timezone.now() - timedelta(seconds=1))
    assert actions.lock(pending, actor=colleague)
    actions.unlock(pending, actor=person)
    assert not actions.lock(pending, actor=person)
    assert not actions.lock(pending, actor=StaffFactory())


# --- Asking a person ----------------------------------------------------------------


@pytest.mark.req("S2-APR-01")
def test_an_own_interaction_is_sent_once() -> None:
    base = KnowledgeBaseFactory()
    reader = UserFactory()
    grant(base, BOTH, to=reader, actor=None)
    interaction = asked(reader, QUESTION, base, status="found")
    sent = [
        actions.send_to_person(
            Reader.for_user(reader),
            interaction_id=interaction.public_id,
            channel=Channel.PORTAL,
        )
        for _ in range(2)
    ]

    assert sent[0] == sent[1] == PendingQuestion.objects.get()
    assert (sent[0].channel, sent[0].asked_count) == (Channel.PORTAL, 1)
    assert sent[0].knowledge_base_ids == [base.pk]


def test_what_is_sent_and_its_entry_in_the_audit_are_one_act() -> None:
    base, reader = KnowledgeBaseFactory(), UserFactory()
    grant(base, BOTH, to=reader, actor=None)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'broken'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON knowledge_auditentry FOR EACH ROW "
            "WHEN (NEW.verb = 'sent to a person') EXECUTE FUNCTION refuse()"
        )
    with pytest.raises(DatabaseError, match="broken"):
        actions.send_to_person(
            Reader.for_user(reader), question=QUESTION, channel=Channel.PORTAL
        )
    assert not PendingQuestion.objects.exists()


def test_nobody_sends_what_another_person_asked() -> None:
    base = KnowledgeBaseFactory()
    owner, other = UserFactory(), UserFactory()
    interaction = asked(owner, QUESTION, base)

    with pytest.raises(ApprovalError, match="no such question of yours"):
        actions.send_to_person(
            Reader.for_user(other),
            interaction_id=interaction.public_id,
            channel=Channel.PORTAL,
        )


def test_who_may_search_nothing_or_views_as_another_asks_nobody() -> None:
    reader = UserFactory()
    with pytest.raises(ApprovalError, match="nobody to ask"):
        actions.send_to_person(
            Reader.for_user(reader), question=QUESTION, channel=Channel.PORTAL
        )
    with pytest.raises(ForbiddenError, match="as another person"):
        actions.send_to_person(
            Reader(user_id=reader.pk, acting_user_id=StaffFactory().pk),
            question=QUESTION,
            channel=Channel.PORTAL,
        )


@pytest.mark.req("R16")
def test_what_is_kept_of_a_question_is_scrubbed() -> None:
    base = KnowledgeBaseFactory()
    reader = UserFactory()
    grant(base, BOTH, to=reader, actor=None)
    pending = actions.send_to_person(
        Reader.for_user(reader),
        question="Why was GB82 WEST 1234 5698 7654 32 charged?",
        channel=Channel.PORTAL,
    )

    assert pending.question == "Why was [IBAN] charged?"
    assert pending.wordings.get().text == pending.question
