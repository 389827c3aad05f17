"""What is remembered about a person: theirs alone, and bound to its conversation."""

import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from knowledge.access import people_who_may
from knowledge.actions import ActionError
from knowledge.ingest import run_ingest
from knowledge.memory import (
    MOST_STATEMENTS,
    MemoryClosedError,
    NoConversationError,
    end_conversation,
    forget,
    remember,
    start_conversation,
    sweep_conversations,
)
from knowledge.models import (
    AuditEntry,
    Conversation,
    Document,
    KnowledgeBase,
    Layer,
    NeverRule,
    Passage,
    Source,
    Statement,
    User,
)
from knowledge.models.memory import IDLE
from knowledge.models.register import RuleKind
from knowledge.models.source import SourceState
from knowledge.permissions import Access, Reader, explain, grant
from knowledge.upkeep import clean
from retrieval.memory import recall
from retrieval.results import Branch
from tests.cast import Cast
from tests.factories import StaffFactory, UserFactory
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db


@pytest.fixture
def by_words(settings: Settings) -> None:
    """Ingest and recall by words alone, so that no model is needed."""
    settings.PORTAL_EMBEDS = False


def kept(
    reader: Reader, text: str, conversation: Conversation | None = None
) -> Statement:
    """Remember a statement and ingest it as the worker would."""
    named = conversation.public_id if conversation is not None else None
    statement = remember(reader, text, conversation_id=named)
    run_ingest(statement.source.runs.get().pk)
    statement.source.refresh_from_db()
    assert statement.source.state == SourceState.READY, statement.source.state_reason
    return statement


def texts(
    reader: Reader, query: str, conversation: Conversation | uuid.UUID | None = None
) -> list[str]:
    """Recall, and return the texts in order."""
    if isinstance(conversation, Conversation):
        conversation = conversation.public_id
    return [
        hit.text for hit in recall(reader, query, conversation_id=conversation).hits
    ]


@pytest.fixture
def reader(by_words: None) -> Reader:
    """Somebody with nothing remembered yet."""
    return Reader(UserFactory(username="an").pk)


@pytest.mark.req("S3-VIS-07")
def test_a_statement_is_a_source_in_the_persons_own_knowledge_base(
    reader: Reader,
) -> None:
    statement = kept(reader, "Prefers answers in Vietnamese.")
    source = statement.source
    assert source.kind == "memory"
    assert source.knowledge_base.owner_id == reader.user_id
    assert source.passages.get().text == "Prefers answers in Vietnamese."
    twin = kept(reader, "Works in the harbour branch.")
    assert twin.source.knowledge_base == source.knowledge_base
    assert KnowledgeBase.objects.filter(owner=reader.user_id).count() == 1
    assert texts(reader, "harbour branch") == ["Works in the harbour branch."]


@pytest.mark.req("S3-VIS-06")
class TestConversations:
    """A statement that names a conversation matches in that one alone."""

    def test_it_is_recalled_there_and_nowhere_else(self, reader: Reader) -> None:
        here, there = start_conversation(reader), start_conversation(reader)
        kept(reader, "The parcel is for Minh.", here)
        kept(reader, "Letters go to the gate.")
        assert texts(reader, "parcel", here) == ["The parcel is for Minh."]
        assert texts(reader, "letters gate", there) == ["Letters go to the gate."]
        assert texts(reader, "Minh", there) == []
        assert texts(reader, "Minh") == []

    def test_an_id_of_somebody_elses_opens_nothing(self, reader: Reader) -> None:
        other = Reader(UserFactory().pk)
        theirs = start_conversation(other)
        kept(other, "The parcel is for Minh.", theirs)
        for stranger in (reader, Reader(None), reader.recalling(theirs.public_id)):
            assert texts(stranger, "Minh parcel", theirs) == []
        with pytest.raises(NoConversationError) as foreign:
            remember(reader, "Mine.", conversation_id=theirs.public_id)
        with pytest.raises(NoConversationError) as absent:
            remember(reader, "Mine.", conversation_id=uuid.uuid4())
        assert str(foreign.value) == str(absent.value)
        with pytest.raises(NoConversationError):
            end_conversation(reader, theirs.public_id)
        assert texts(other, "Minh", theirs) == ["The parcel is for Minh."]

    def test_the_condition_is_in_the_query_itself(self, reader: Reader) -> None:
        other = Reader(UserFactory().pk)
        theirs = start_conversation(other)
        statement = kept(other, "The parcel is for Minh.", theirs)
        base = statement.source.knowledge_base_id
        # Even with the knowledge base among those resolved, the row does not match.
        forged = reader.recalling(theirs.public_id)
        vars(forged)["scope"] = type(forged.scope)(frozenset(), frozenset({base}))
        for model in (Passage, Source, Document):
            assert not model.objects.visible_to(forged).exists()
        right = other.recalling(theirs.public_id)
        for model in (Passage, Source, Document):
            assert model.objects.visible_to(right).count() == 1
        assert Passage.objects.hidden_from(right).count() == 0
        assert Passage.objects.hidden_from(other.recalling()).count() == 1

    @pytest.mark.req("S3-VIS-07")
    def test_it_ends_after_a_day_without_a_word(self, reader: Reader) -> None:
        talk = start_conversation(reader)
        kept(reader, "The parcel is for Minh.", talk)
        Conversation.objects.update(ends_at=timezone.now() + IDLE / 2)
        assert texts(reader, "Minh", talk)
        talk.refresh_from_db()
        assert talk.ends_at > timezone.now() + IDLE - timedelta(minutes=2)
        Conversation.objects.update(ends_at=timezone.now())
        assert texts(reader, "Minh", talk) == []
        with pytest.raises(NoConversationError):
            remember(reader, "More.", conversation_id=talk.public_id)
        clean()
        assert not Statement.objects.exists()
        assert not Conversation.objects.exists()
        assert not Passage.objects.exists()

    @pytest.mark.req("S3-VIS-07")
    def test_it_ends_on_call_and_takes_its_statements_along(
        self, reader: Reader
    ) -> None:
        talk = start_conversation(reader)
        kept(reader, "The parcel is for Minh.", talk)
        kept(reader, "Likes short answers.")
        end_conversation(reader, talk.public_id)
        assert [each.text for each in Statement.objects.all()] == [
            "Likes short answers."
        ]
        with pytest.raises(NoConversationError):
            end_conversation(reader, talk.public_id)
        assert sweep_conversations() == 1
        assert texts(reader, "short answers") == ["Likes short answers."]


@pytest.mark.req("S3-VIS-07")
class TestNobodyElse:
    """Neither grants nor rights nor lists lead to what is remembered."""

    def test_no_grant_opens_it(self, reader: Reader) -> None:
        base = kept(reader, "Prefers Vietnamese.").source.knowledge_base
        other = UserFactory()
        grant(base, [Access.LIST, Access.SEARCH], to=other, actor=None)
        assert Reader(other.pk).searchable == frozenset()
        assert Reader(other.pk).listed == frozenset()
        assert Reader(other.pk).recalling().searchable == frozenset()
        assert not explain(Reader(other.pk), base)
        assert not people_who_may(base).exists()
        assert not Passage.objects.visible_to(Reader(other.pk)).exists()

    def test_no_list_has_it_not_even_the_persons_own(self, reader: Reader) -> None:
        kept(reader, "Prefers Vietnamese.")
        assert not KnowledgeBase.objects.listed_to(reader).exists()
        assert not KnowledgeBase.objects.visible_to(reader).exists()
        assert not Layer.objects.visible_to(reader).exists()
        assert not Source.objects.visible_to(reader).exists()

    def test_no_administrator_works_on_it(self, reader: Reader) -> None:
        kept(reader, "Prefers zephyrine paper.")
        superuser = StaffFactory(is_superuser=True)
        assert not KnowledgeBase.objects.administered_by(superuser).exists()
        owner = User.objects.get(pk=reader.user_id)
        owner.is_staff = owner.is_superuser = True
        owner.save()
        assert not KnowledgeBase.objects.administered_by(owner).exists()

    def test_the_audit_tells_that_not_what(self, reader: Reader) -> None:
        statement = kept(reader, "Prefers zephyrine paper.")
        forget(reader, statement.public_id)
        told = [
            (each.verb, f"{each.target_label} {each.detail}")
            for each in AuditEntry.objects.order_by("pk")
        ]
        assert [verb for verb, _words in told] == ["remembered", "deleted"]
        assert not [words for _verb, words in told if "zephyrine" in words]

    def test_view_as_does_not_reach_it(self, reader: Reader) -> None:
        kept(reader, "Prefers Vietnamese.")
        assert texts(reader, "Vietnamese")
        viewed = Reader(reader.user_id, acting_user_id=StaffFactory().pk)
        assert texts(viewed, "Vietnamese") == []
        with pytest.raises(MemoryClosedError):
            remember(viewed, "Not they.")

    def test_a_token_with_a_scope_does_not_reach_it(self, reader: Reader) -> None:
        base = kept(reader, "Prefers Vietnamese.").source.knowledge_base_id
        scoped = Reader(reader.user_id, limit=frozenset({base}))
        assert texts(scoped, "Vietnamese") == []
        with pytest.raises(MemoryClosedError):
            start_conversation(scoped)

    def test_an_inactive_person_recalls_nothing(self, reader: Reader) -> None:
        kept(reader, "Prefers Vietnamese.")
        User.objects.update(is_active=False)
        assert texts(reader, "Vietnamese") == []

    def test_it_goes_with_its_person(self, reader: Reader) -> None:
        talk = start_conversation(reader)
        kept(reader, "The parcel is for Minh.", talk)
        kept(reader, "Prefers Vietnamese.")
        User.objects.get(pk=reader.user_id).delete()
        for model in (KnowledgeBase, Statement, Conversation, Source, Passage):
            assert not model.objects.exists()


@pytest.mark.req("S3-HYB-07")
def test_the_count_is_narrow(reader: Reader, settings: Settings) -> None:
    for number in range(5):
        kept(reader, f"The {number}th parcel is for Minh.")
    assert len(texts(reader, "parcel Minh")) == 3
    found = recall(reader, "parcel Minh", count=5)
    assert len(found.hits) == 5


@pytest.mark.req("S3-VIS-07", "S3-HYB-07")
def test_it_is_compared_by_meaning_too(
    corpus: Corpus, cast: Cast, settings: Settings
) -> None:
    reader = cast.granted.reader
    kept(reader, "She lives on the second floor and uses a wheelchair.")
    kept(reader, "He is allergic to peanuts.")
    hits = recall(reader, "Which person needs a lift?").hits
    assert hits[0].text.startswith("She lives on the second floor")
    assert Branch.MEANING in hits[0].branches
    anchor = Statement.objects.get(text__startswith="She").public_id
    assert hits[0].citation.url == f"/account/memory/#m-{anchor}"


class TestWhatIsKept:
    """The same words once; nothing empty, endless or forbidden."""

    def test_the_same_words_are_kept_once_in_each_conversation(
        self, reader: Reader
    ) -> None:
        talk = start_conversation(reader)
        one = remember(reader, "Prefers  Vietnamese.")
        assert remember(reader, "Prefers Vietnamese.") == one
        bound = remember(reader, "Prefers Vietnamese.", conversation_id=talk.public_id)
        assert bound != one
        assert Statement.objects.count() == 2

    @pytest.mark.parametrize("text", ["", "   ", "a\x00b", "x" * 2001])
    def test_what_cannot_be_kept_is_refused_in_a_sentence(
        self, reader: Reader, text: str
    ) -> None:
        with pytest.raises(ActionError, match=r"\."):
            remember(reader, text)
        assert not Statement.objects.exists()

    @pytest.mark.req("S2-ING-12")
    def test_a_never_rule_for_all_keeps_out(self, reader: Reader) -> None:
        NeverRule.objects.create(
            kind=RuleKind.CONTENT, pattern="salary", reason="Pay stays out."
        )
        with pytest.raises(ActionError, match="Pay stays out"):
            remember(reader, "Her salary is 10.")
        assert not Source.objects.exists()

    def test_there_is_a_most(self, reader: Reader) -> None:
        own = kept(reader, "The first.")
        layer = own.source.layer
        sources = Source.objects.bulk_create(
            Source(layer=layer, knowledge_base=layer.knowledge_base, path=f"{n}")
            for n in range(MOST_STATEMENTS - 1)
        )
        Statement.objects.bulk_create(
            Statement(
                owner_id=reader.user_id, source=each, text="x", digest=f"{each.pk}"
            )
            for each in sources
        )
        with pytest.raises(ActionError, match="Delete some first"):
            remember(reader, "One more.")

    def test_forgetting_is_for_ones_own(self, reader: Reader) -> None:
        statement = kept(reader, "Prefers Vietnamese.")
        assert not forget(Reader(UserFactory().pk), statement.public_id)
        assert forget(reader, statement.public_id)
        assert not Statement.objects.exists()
        assert texts(reader, "Vietnamese") == []


def test_rights_of_the_model_open_nothing(reader: Reader) -> None:
    base = kept(reader, "Prefers Vietnamese.").source.knowledge_base
    staff = StaffFactory()
    staff.user_permissions.set(
        Permission.objects.filter(content_type__app_label="knowledge")
    )
    address = f"/admin/knowledge/knowledgebase/{base.pk}/finders/"
    client = Client()
    for person in (staff, StaffFactory(is_superuser=True)):
        client.force_login(person)
        assert client.get(address).status_code == 404
        for name in ("source", "knowledgebase", "passage", "document", "layer"):
            page = client.get(f"/admin/knowledge/{name}/").content.decode()
            assert "Prefers Vietnamese" not in page
            assert base.name not in page
