"""Turns: what they search, what they give, and what they keep back."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from knowledge.memory import remember, start_conversation
from knowledge.models import AgentClient, KnowledgeBase, User
from knowledge.models.agent import AgentSearchType
from knowledge.permissions import Access, Reader, deny, grant
from knowledge.tokens import create_agent_token, reader_of
from retrieval.models import Turn, TurnStep
from retrieval.narrowing import narrowed
from retrieval.results import Match
from retrieval.search import SearchInputError
from retrieval.tuning import SearchType, Tuning, from_environment
from retrieval.turns import TurnError, TurnResult, end_turn, search_turn, start_turn
from tests.factories import DocumentFactory, PassageFactory, UserFactory
from tests.retrieval.shelf import MODEL, layer_of, open_space, put
from tests.retrieval.test_sections import CHARTER, write

pytestmark = pytest.mark.django_db

SLUGS = ("one", "two", "three")


class Agent:
    """An agent client with a token, bound to `one` and `two`, not to `three`."""

    def __init__(self) -> None:
        self.owner: User = UserFactory()
        for slug in SLUGS:
            grant(base(slug), [Access.SEARCH], to=self.owner, actor=None)
        self.client = AgentClient.objects.create(owner=self.owner, name="Clerk")
        self.client.knowledge_bases.set([base("one"), base("two")])
        self.token, _token = create_agent_token(self.client, name="host", actor=None)

    @property
    def reader(self) -> Reader:
        """The reader of a new request."""
        return reader_of(self.token)

    def turn(self) -> Turn:
        """Start a turn."""
        return start_turn(self.client, self.reader)

    def search(self, turn: Turn, query: str = "harbour", **asked: Any) -> TurnResult:
        """Search as one request does."""
        turn.client.refresh_from_db()
        return search_turn(turn, self.reader, query, **asked)


def base(slug: str) -> KnowledgeBase:
    """Return a knowledge base of the tests, made if need be."""
    return layer_of(slug).knowledge_base


def stock(each: int = 4) -> None:
    """Put some passages into each knowledge base."""
    for slug in SLUGS:
        for number in range(each):
            put(layer_of(slug), f"The harbour of {slug} has berth {number}.")


@pytest.fixture
def agent(db: None) -> Agent:
    """The agent, and something to find."""
    stock()
    return Agent()


def bases_of(result: TurnResult) -> set[str]:
    """Return where hits come from."""
    return {each.citation.knowledge_base for each in result.hits}


@pytest.mark.req("S3-VIS-04", "S3-VIS-05")
def test_a_turn_searches_its_bindings_within_the_owners_list(agent: Agent) -> None:
    assert bases_of(agent.search(agent.turn())) == {"one", "two"}
    deny(base("two"), to=agent.owner, actor=None)
    assert bases_of(agent.search(agent.turn())) == {"one"}


@pytest.mark.req("S3-VIS-05")
def test_a_deny_reaches_a_running_turn_at_its_next_request(agent: Agent) -> None:
    turn = agent.turn()
    deny(base("two"), to=agent.owner, actor=None)
    assert bases_of(agent.search(turn)) == {"one"}
    agent.client.knowledge_bases.remove(base("one"))
    assert agent.search(turn).hits == ()
    # What is bound later belongs to the turns that begin then.
    agent.client.knowledge_bases.add(base("three"))
    assert agent.search(turn).hits == ()
    assert bases_of(agent.search(agent.turn())) == {"three"}


def test_an_owner_who_leaves_ends_what_their_agents_find(agent: Agent) -> None:
    turn = agent.turn()
    User.objects.filter(pk=agent.owner.pk).update(is_active=False)
    assert agent.search(turn).hits == ()


@pytest.mark.req("S3-RTE-01", "R4")
def test_the_count_is_per_bound_knowledge_base(agent: Agent) -> None:
    found = agent.search(agent.turn(), count=3)
    by_base = [each.citation.knowledge_base for each in found.hits]
    assert sorted(by_base) == ["one"] * 3 + ["two"] * 3
    assert len(agent.search(agent.turn()).hits) == 8


@pytest.mark.req("R4")
def test_a_clients_cap_holds(agent: Agent) -> None:
    agent.client.most_results = 2
    agent.client.save()
    turn = agent.turn()
    assert len(agent.search(turn).hits) == 4
    assert len(agent.search(turn, count=1).hits) == 2
    for count in (0, 3, 21):
        with pytest.raises(SearchInputError, match="1 to 2"):
            agent.search(turn, count=count)


@pytest.mark.req("S3-RTE-02", "S3-LOG-01")
def test_what_the_budget_withholds_is_on_the_step(agent: Agent, settings: Any) -> None:
    settings.STRATA_TURN_BUDGET = 80
    found = agent.search(agent.turn(), "berth")
    step = TurnStep.objects.get()
    assert len(found.hits) + found.withheld == 8
    assert found.withheld == len(step.withheld) > 0
    given = [row["ref"] for row in step.hits]
    assert given == [each.ref for each in found.hits]
    assert not set(given) & {row["ref"] for row in step.withheld}
    assert step.knowledge_base_ids == sorted([base("one").pk, base("two").pk])
    assert step.count == 10
    least = min(row["score"] for row in step.hits)
    assert all(row["score"] <= least for row in step.withheld)


@pytest.mark.req("S2-CHK-06")
def test_a_long_passage_is_cut_and_says_so(agent: Agent, settings: Any) -> None:
    settings.STRATA_TURN_PASSAGE = 40
    put(layer_of("one"), "lighthouse " * 30)
    (hit,) = agent.search(agent.turn(), "lighthouse").hits
    assert hit.cut
    assert len(hit.text) <= 40
    assert hit.ref.endswith("-330")


@pytest.mark.req("S3-RTE-02")
def test_the_best_of_all_knowledge_bases_come_first() -> None:
    open_space()
    far, near = [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
    put(layer_of("one"), "About ships.", far)
    put(layer_of("two"), "About boats.", near)
    layer_of("three")
    agent = Agent()
    found = agent.search(
        agent.turn(), "vessels", query_vector=[2.0, 0.1, 0.0, 0.0], query_model=MODEL
    )
    assert [each.text for each in found.hits] == ["About boats.", "About ships."]
    assert found.model == MODEL
    with pytest.raises(SearchInputError, match="embed the query with that model"):
        agent.search(agent.turn(), "vessels", query_vector=[1.0], query_model="another")


@pytest.mark.req("S1-HYB-09", "S3-VIS-05", "S3-CIT-01")
def test_a_named_section_comes_first_from_what_is_bound(agent: Agent) -> None:
    """Word for word and numbered; the same article of what is not bound never."""
    for slug in SLUGS:
        write(layer_of(slug), CHARTER.replace("monthly", f"in {slug}"), "charter.md")
    found = agent.search(agent.turn(), "Article 5 of the harbour")
    named = [each for each in found.hits if each.match is Match.EXACT]
    assert [each.text.split("\n")[-1] for each in named] == [
        "Pay is due in one.",
        "Pay is due in two.",
    ]
    assert list(found.hits[:2]) == named
    assert [each.number for each in found.hits] == list(range(1, len(found.hits) + 1))
    assert found.citations == "saved"
    assert {each.citation.knowledge_base for each in found.hits} == {"one", "two"}


def test_a_client_that_is_switched_off_finds_nothing(agent: Agent) -> None:
    turn = agent.turn()
    AgentClient.objects.update(search_enabled=False)
    with pytest.raises(TurnError, match="switched off"):
        agent.search(turn)
    agent.client.refresh_from_db()
    with pytest.raises(TurnError, match="switched off"):
        agent.turn()


def test_a_turn_ends_on_call_and_when_it_is_left_alone(agent: Agent) -> None:
    turn = agent.turn()
    agent.search(turn)
    ended = end_turn(turn).ended_at
    assert end_turn(turn).ended_at == ended
    with pytest.raises(TurnError, match="has ended"):
        agent.search(turn)
    assert turn.snapshots.count() == 8
    idle = agent.turn()
    Turn.objects.filter(pk=idle.pk).update(used_at="2020-01-01T00:00:00Z")
    with pytest.raises(TurnError, match="has ended"):
        agent.search(idle)


@pytest.mark.req("R3")
def test_a_client_only_narrows() -> None:
    wide = Tuning()
    client = AgentClient(
        search_type=AgentSearchType.LEXICAL,
        most_results=12,
        count=4,
        similarity_floor=0.3,
        keyword_weight=0.1,
    )
    narrow = narrowed(wide, client)
    assert narrow.search_type is SearchType.LEXICAL
    assert (narrow.search_count, narrow.turn_count) == (4, 4)
    assert narrow.similarity_floor == 0.3
    assert (narrow.weights.keywords, narrow.weights.relaxed) == (0.1, 0.1)
    assert narrow.weights.meaning == wide.weights.meaning

    strict = replace(
        wide,
        search_type=SearchType.SEMANTIC,
        similarity_floor=0.5,
        turn_count=2,
        weights=replace(wide.weights, keywords=0.05),
    )
    held = narrowed(strict, client)
    # Nothing is in common, so that what holds for everybody does.
    assert held.search_type is SearchType.SEMANTIC
    assert (held.similarity_floor, held.turn_count) == (0.5, 2)
    assert held.weights.keywords == 0.05
    assert narrowed(strict, AgentClient()) == replace(strict)
    hybrid = AgentClient(search_type=AgentSearchType.HYBRID)
    assert narrowed(strict, hybrid).search_type is SearchType.SEMANTIC


@pytest.mark.req("R3")
def test_a_narrower_search_type_holds_for_all_bindings(agent: Agent) -> None:
    agent.client.search_type = AgentSearchType.LEXICAL
    agent.client.save()
    found = agent.search(agent.turn())
    assert bases_of(found) == {"one", "two"}
    assert found.labels == ()
    assert from_environment().search_type is SearchType.HYBRID


@pytest.mark.req("S3-VIS-06", "S3-HYB-07")
def test_an_agent_recalls_what_it_may_of_the_conversation_it_is_in(
    agent: Agent,
) -> None:
    person = Reader(agent.owner.pk)
    talk = start_conversation(person).public_id
    write_down(person, "Anna waits at the harbour.", talk)
    other = Reader(UserFactory().pk)
    write_down(other, "Somebody else waits at the harbour.", None)

    def recalled(**asked: Any) -> list[str]:
        turn = start_turn(agent.client, agent.reader, **asked)
        return [hit.text for hit in agent.search(turn).memory]

    assert recalled(conversation_id=talk) == []
    agent.client.recalls_memory = True
    agent.client.save()
    agent.token.refresh_from_db()
    assert recalled(conversation_id=talk) == ["Anna waits at the harbour."]
    assert recalled() == []
    assert recalled(conversation_id=uuid4()) == []


def write_down(reader: Reader, text: str, talk: UUID | None) -> None:
    """Remember something, and put it into the index without a model."""
    statement = remember(reader, text, conversation_id=talk)
    document = DocumentFactory(source=statement.source, text=text)
    PassageFactory(document=document)
