"""The meaning branch loses nothing: full rows and the nearest ones, for every reader.

On a synthetic world that is loaded once for each test, with limits so low that its
larger knowledge bases have indexes of their own.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from benchmarks.world import World, load
from knowledge.actions import switch_source
from knowledge.indexes import VectorIndex, existing, tune
from knowledge.models import KnowledgeBase, Passage, PassageVector, Source, User
from knowledge.permissions import Access, Reader, grant
from retrieval.branches import (
    MeaningPlan,
    by_meaning,
    plan_meaning,
    reading_of_indexes,
)
from retrieval.reach import Reach
from retrieval.search import search
from retrieval.sizes import Size
from tests.factories import UserFactory

PASSAGES = 1600
TOP = 10
QUERIES = 12
SHARES = (1.0, 0.5, 0.1, 0.01, 0.001)


@pytest.fixture
def world(transactional_db: None, settings: Settings) -> World:
    """A world of which the three largest knowledge bases have an index."""
    settings.STRATA_EXACT_LIMIT = 150
    settings.STRATA_INDEX_FROM = 150
    world = load(PASSAGES, seed=11)
    tuned = tune()
    assert len(tuned.made) == 3
    return world


def reader_of(bases: Sequence[int]) -> Reader:
    """Return a new person who may search these knowledge bases."""
    person: User = UserFactory()
    for base in KnowledgeBase.objects.filter(pk__in=bases):
        grant(base, [Access.SEARCH], to=person, actor=None)
    return Reader(user_id=person.pk)


def stored(world: World) -> tuple[np.ndarray, np.ndarray]:
    """Return all passage ids and their vectors."""
    rows = PassageVector.objects.order_by("passage_id").values_list(
        "passage_id", "embedding"
    )
    ids, vectors = zip(*rows, strict=True)
    return np.array(ids), np.array(vectors)


def check(world: World, reach: Reach, visible: set[int]) -> None:
    """Hold the branch against the comparison of every visible vector."""
    ids, vectors = stored(world)
    mine = np.isin(ids, list(visible))
    random = np.random.default_rng(5)
    # Topics inside and outside of what the reader sees.
    for place in random.integers(0, len(ids), size=QUERIES):
        vector = vectors[place] + random.normal(size=vectors.shape[1]) * 0.02
        vector /= np.linalg.norm(vector)
        order = np.argsort(-(vectors[mine] @ vector), kind="stable")
        nearest = set(ids[mine][order][:TOP].tolist())
        found = by_meaning(reach, world.space, vector.tolist(), count=50)
        assert len(found) == min(50, len(visible))
        assert {row.passage_id for row in found} <= visible
        assert {row.passage_id for row in found[:TOP]} == nearest


@pytest.mark.req("REL-S2", "D21", "S1-IDX-01")
def test_every_reader_gets_full_rows_and_the_nearest(world: World) -> None:
    """From all rows to one in a thousand, by index and row by row."""
    by_index = set()
    for share in SHARES:
        reader = reader_of(world.subset(share))
        reach = Reach.of(reader, None, {})
        by_index.add(len(plan_meaning(reach, world.space).by_index))
        passages = Passage.objects.visible_to(reader)
        check(world, reach, set(passages.values_list("pk", flat=True)))
    assert {0, 3} <= by_index


@pytest.mark.req("S2-IDX-01", "R8")
def test_indexes_are_made_anew_as_lists_where_a_setting_says_so(
    world: World, settings: Settings
) -> None:
    """Until they stand each vector is compared; then they are read, and none is lost."""
    settings.STRATA_VECTOR_INDEX = "ivfflat"
    reader = reader_of(world.knowledge_bases)
    reach = Reach.of(reader, None, {})
    visible = set(Passage.objects.visible_to(reader).values_list("pk", flat=True))
    assert plan_meaning(reach, world.space).by_index == ()
    check(world, reach, visible)

    tuned = tune()
    assert len(tuned.made) == len(tuned.dropped) == 3
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam "
            "WHERE c.relname = ANY(%s) AND a.amname = 'ivfflat'",
            [list(tuned.made)],
        )
        assert cursor.fetchone() == (3,)
    assert len(plan_meaning(reach, world.space).by_index) == 3
    check(world, reach, visible)
    assert tune().made == tune().dropped == ()


@pytest.mark.parametrize(
    ("rows", "held", "probes"),
    [
        (15_000, 200, 10),
        (62_500, 625, 12),
        (500_000, 1000, 100),
        (4_000_000, 1000, 400),
    ],
)
def test_a_larger_index_is_read_further(
    rows: int, held: int, probes: int, settings: Settings
) -> None:
    reach = Reach(frozenset({1}), None, (), {1: Size(1, {1: (rows, rows)}, None)})
    plan = MeaningPlan(by_index=(1,))
    assert f"hnsw.ef_search = {held}" in reading_of_indexes(reach, plan, 50)
    hides_some = MeaningPlan(by_index=(1,), sees_all=False)
    assert "hnsw.ef_search = 1000" in reading_of_indexes(reach, hides_some, 50)
    settings.STRATA_VECTOR_INDEX = "ivfflat"
    assert f"ivfflat.probes = {probes}" in reading_of_indexes(reach, plan, 50)


@pytest.mark.req("REL-S2", "D21")
def test_knowledge_base_that_is_mostly_out_of_reach_keeps_its_rows(
    world: World,
) -> None:
    """Switched off or filtered away, an index would lose rows, so it is not used."""
    reader = reader_of(world.knowledge_bases)
    largest = world.knowledge_bases[0]
    sources = Source.objects.filter(knowledge_base=largest).order_by("pk")
    for source in sources[: len(sources) // 2]:
        switch_source(source, enabled=False, actor=None)
    reach = Reach.of(reader, None, {})
    assert largest not in plan_meaning(reach, world.space).by_index
    visible = set(Passage.objects.visible_to(reader).values_list("pk", flat=True))
    assert len(visible) < PASSAGES
    check(world, reach, visible)

    reach = Reach.of(reader, None, {"page": "3"})
    assert plan_meaning(reach, world.space).by_index == ()
    third = Passage.objects.visible_to(reader).filter(metadata__page="3")
    check(world, reach, set(third.values_list("pk", flat=True)))


@pytest.mark.req("REL-A4", "D21")
def test_passages_out_of_reach_change_nothing(world: World) -> None:
    """The same hits, scores and order before and after others get the same topic."""
    reader = reader_of(world.knowledge_bases[1:])
    probe = PassageVector.objects.get(passage_id=world.first_passage).embedding
    words = Passage.objects.get(pk=world.first_passage).text.split()[:6]

    def asked() -> object:
        return search(
            reader,
            " ".join(words),
            top_k=20,
            query_vector=[float(number) for number in probe],
            query_model=world.space.model_id,
        ).hits

    before = asked()
    hidden = Passage.objects.filter(knowledge_base=world.knowledge_bases[0])
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE knowledge_passagevector SET embedding = %s::vector "
            "WHERE knowledge_base_id = %s",
            [str([float(n) for n in probe]), world.knowledge_bases[0]],
        )
    hidden.update(terms=" ".join(words))
    assert asked() == before


@pytest.mark.req("D21")
def test_upkeep_makes_repairs_and_drops_indexes(
    world: World, settings: Settings
) -> None:
    """A second round does nothing; a broken index is made anew, a needless one goes."""
    assert tune().made == tune().dropped == ()
    broken = VectorIndex(world.knowledge_bases[0], world.space.pk).name
    with connection.cursor() as cursor:
        # What a build that was broken off leaves behind is an index that is not valid.
        cursor.execute(f"DROP INDEX {broken}")
        cursor.execute(
            f"CREATE INDEX {broken} ON knowledge_passagevector (id) WHERE false"
        )
    settings.STRATA_INDEX_FROM = 10_000
    tuned = tune()
    assert len(tuned.dropped) == 3
    assert existing() == []
    settings.STRATA_INDEX_FROM = 700
    assert tune().made == (broken,)
    # It outlives a knowledge base that shrinks a little.
    settings.STRATA_INDEX_FROM = 1500
    assert tune().dropped == ()
