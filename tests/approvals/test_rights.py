"""Who may act on a question: asked for one person, and for everybody at once."""

import pytest
from pytest_django import DjangoAssertNumQueries

from approvals.models import PendingQuestion
from approvals.rights import ANSWER, APPROVE, Rights, may_act
from knowledge.models import Layer, User
from knowledge.permissions import deny, everyone, grant
from tests.approvals.gaps import BOTH, approver_of, pending_question
from tests.cast import Cast
from tests.factories import LayerFactory, SourceFactory
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db


@pytest.mark.req("REL-W5", "REL-W8")
def test_what_everybody_may_agrees_with_what_each_may(
    cast: Cast, shelves: Corpus
) -> None:
    approver_of(shelves.handbook)
    approver_of(shelves.branches, is_active=False)
    both = approver_of(shelves.handbook, shelves.branches)
    grant(shelves.branches, BOTH, to=everyone(), actor=None)
    deny(shelves.branches, to=both, actor=None)
    approver_of(is_superuser=True)
    alone = pending_question(shelves.handbook)
    either = pending_question(shelves.handbook, shelves.branches)
    of_layer = pending_question(shelves.handbook, shelves.branches, text="Layer?")
    of_source = pending_question(shelves.handbook, shelves.vault, text="Source?")
    of_layer.layer = Layer.objects.get(knowledge_base=shelves.branches)
    of_source.source = SourceFactory(
        layer=Layer.objects.get(knowledge_base=shelves.vault)
    )
    gone = pending_question(shelves.handbook, text="Gone?")
    gone.knowledge_base_ids = [2**40]
    questions = [alone, either, of_layer, of_source, gone]
    PendingQuestion.objects.bulk_update(
        questions, ["layer", "source", "knowledge_base_ids"]
    )

    rights, met = Rights(), set()
    for pending in questions:
        for right in (ANSWER, APPROVE):
            found = rights.who_may(pending, right)
            for person in User.objects.all():
                assert (person.pk in found) == may_act(person, pending, right), (
                    pending.question,
                    right,
                    person.username,
                )
            met.add(found)
    assert len(met) > 2, "the questions are for different people"


def test_many_questions_are_looked_up_at_once(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    layer = LayerFactory()
    for _ in range(3):
        approver_of(layer.knowledge_base)
    questions = [
        pending_question(layer.knowledge_base, text=f"Number {each}?")
        for each in range(4)
    ]
    rights = Rights()
    rights.who_may(questions[0], ANSWER)
    with django_assert_num_queries(0):
        for pending in questions:
            assert len(rights.who_may(pending, ANSWER)) == 3
