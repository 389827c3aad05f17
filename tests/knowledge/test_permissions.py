"""The one access rule, against an oracle that a person can read at a glance.

`STRATA_TEST_WORLDS` (default 1,000; `make faults` takes 10,000) is the number of random
worlds; `STRATA_TEST_SEED` replays one run, and every failure names its seed.
"""

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import DatabaseError, connection, transaction

from knowledge.models import (
    ApiToken,
    AuditEntry,
    KnowledgeBase,
    KnowledgeBaseGroupAccess,
    KnowledgeBaseUserAccess,
    Layer,
    Passage,
    Source,
    User,
)
from knowledge.permissions import (
    EVERYONE,
    NOTHING,
    Access,
    Reader,
    Scope,
    deny,
    everyone,
    explain,
    grant,
    resolve,
    withdraw,
)
from tests.cast import BOTH, Cast
from tests.factories import (
    GroupFactory,
    KnowledgeBaseFactory,
    UserFactory,
    ready_source,
)
from tests.stored_corpus import Corpus

WORLDS = int(os.environ.get("STRATA_TEST_WORLDS", "1000"))
SEED = int(os.environ.get("STRATA_TEST_SEED", random.SystemRandom().getrandbits(32)))
# Worlds that share one database at a time: whoever is granted by all of them through
# the group of everyone is in each.
BATCH = 25

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Person:
    """Somebody in a random world; `limit` is a token's scope, None is no token."""

    name: str
    groups: frozenset[str]
    active: bool
    limit: frozenset[str] | None


@dataclass(frozen=True)
class Row:
    """A grant or deny in a random world."""

    holder: str
    knowledge_base: str
    access: Access


def oracle(person: Person, rows: Iterable[Row]) -> tuple[set[str], set[str]]:
    """Return what somebody may list and search, said in plain Python."""
    listed: set[str] = set()
    searchable: set[str] = set()
    denied: set[str] = set()
    if not person.active:
        return listed, searchable
    for row in rows:
        if row.holder in {person.name, EVERYONE} or row.holder in person.groups:
            if row.access == Access.LIST:
                listed.add(row.knowledge_base)
            elif row.access == Access.SEARCH:
                searchable.add(row.knowledge_base)
            else:
                denied.add(row.knowledge_base)
    listed -= denied
    searchable -= denied
    if person.limit is not None:
        listed &= person.limit
        searchable &= person.limit
    return listed, searchable


@dataclass
class Worlds:
    """Some random worlds, first as plain values and then as rows."""

    people: list[Person]
    groups: list[str]
    knowledge_bases: list[str]
    rows: list[Row]

    @classmethod
    def draw(cls, dice: random.Random) -> "Worlds":
        """Draw BATCH worlds."""
        made = cls([], [], [], [])
        for world in range(BATCH):
            bases = [f"kb-{world}-{each}" for each in range(dice.randint(1, 5))]
            groups = [f"group-{world}-{each}" for each in range(dice.randint(0, 3))]
            people = [
                Person(
                    name=f"person-{world}-{each}",
                    groups=frozenset(name for name in groups if dice.random() < 0.5),
                    active=dice.random() < 0.85,
                    limit=(
                        frozenset(name for name in bases if dice.random() < 0.5)
                        if dice.random() < 0.4
                        else None
                    ),
                )
                for each in range(dice.randint(1, 4))
            ]
            holders = [person.name for person in people] + groups
            for base in bases:
                for holder in holders:
                    for access, chance in (
                        (Access.LIST, 0.25),
                        (Access.SEARCH, 0.3),
                        (Access.DENY, 0.12),
                    ):
                        if dice.random() < chance:
                            made.rows.append(Row(holder, base, access))
                for access in Access:
                    if dice.random() < 0.03:
                        made.rows.append(Row(EVERYONE, base, access))
            made.people += people
            made.groups += groups
            made.knowledge_bases += bases
        return made

    def store(self, dice: random.Random) -> dict[str, User]:
        """Write the worlds, with what must not matter: flags, model-level rights."""
        users = User.objects.bulk_create(
            User(
                username=person.name,
                is_active=person.active,
                is_superuser=dice.random() < 0.15,
                is_staff=dice.random() < 0.3,
            )
            for person in self.people
        )
        user_of = {user.username: user for user in users}
        group_of = {
            group.name: group
            for group in Group.objects.bulk_create(
                Group(name=name) for name in self.groups
            )
        }
        group_of[EVERYONE] = everyone()
        User.groups.through.objects.bulk_create(
            User.groups.through(user=user_of[person.name], group=group_of[name])
            for person in self.people
            for name in person.groups
        )
        permission_of = {
            permission.codename: permission
            for permission in Permission.objects.filter(
                content_type__app_label="knowledge"
            )
        }
        User.user_permissions.through.objects.bulk_create(
            User.user_permissions.through(user=user, permission=permission_of[codename])
            for user in users
            for codename in ("search_knowledgebase", "view_knowledgebase")
            if dice.random() < 0.3
        )
        self.base_of = {
            base.slug: base
            for base in KnowledgeBase.objects.bulk_create(
                KnowledgeBase(name=slug, slug=slug) for slug in self.knowledge_bases
            )
        }
        KnowledgeBaseUserAccess.objects.bulk_create(
            KnowledgeBaseUserAccess(
                user=user_of[row.holder],
                content_object=self.base_of[row.knowledge_base],
                permission=permission_of[row.access],
            )
            for row in self.rows
            if row.holder in user_of
        )
        KnowledgeBaseGroupAccess.objects.bulk_create(
            KnowledgeBaseGroupAccess(
                group=group_of[row.holder],
                content_object=self.base_of[row.knowledge_base],
                permission=permission_of[row.access],
            )
            for row in self.rows
            if row.holder in group_of
        )
        return user_of

    def reader(self, person: Person, user: User) -> Reader:
        """Return the reader that a person of these worlds is."""
        limit = None
        if person.limit is not None:
            limit = frozenset(self.base_of[slug].pk for slug in person.limit)
        return Reader(user_id=user.pk, limit=limit)


@pytest.mark.req("REL-A2", "S3-VIS-01", "D27")
@pytest.mark.timeout(1800)
def test_the_resolver_equals_the_oracle_in_random_worlds() -> None:
    compared = 0
    for batch in range(-(-WORLDS // BATCH)):
        seed = f"{SEED}:{batch}"
        dice = random.Random(seed)
        worlds = Worlds.draw(dice)
        with transaction.atomic():
            user_of = worlds.store(dice)
            slug_of = {base.pk: slug for slug, base in worlds.base_of.items()}
            for person in worlds.people:
                scope = resolve(worlds.reader(person, user_of[person.name]))
                found = (
                    {slug_of[pk] for pk in scope.listed},
                    {slug_of[pk] for pk in scope.searchable},
                )
                assert found == oracle(person, worlds.rows), (seed, person)
                compared += 1
            transaction.set_rollback(True)
    assert compared >= WORLDS


@pytest.mark.req("REL-A2", "D29")
def test_the_explanation_agrees_with_the_resolver() -> None:
    dice = random.Random(SEED)
    worlds = Worlds.draw(dice)
    user_of = worlds.store(dice)
    for person in worlds.people:
        reader = worlds.reader(person, user_of[person.name])
        world = person.name.split("-")[1]
        for slug, base in worlds.base_of.items():
            if slug.split("-")[1] != world:
                continue
            for access, ids in (
                (Access.LIST, reader.listed),
                (Access.SEARCH, reader.searchable),
            ):
                decision = explain(reader, base, access)
                assert bool(decision) == (base.pk in ids), (SEED, person, slug, access)
                assert decision.rule


@pytest.mark.req("S3-VIS-02")
@pytest.mark.parametrize("holder", ["person", "group", "everyone"])
def test_one_deny_beats_every_grant(holder: str) -> None:
    base, user, group = KnowledgeBaseFactory(), UserFactory(), GroupFactory()
    group.user_set.add(user)
    for to in (user, group, everyone()):
        grant(base, BOTH, to=to, actor=None)
    reader = Reader(user.pk)
    assert reader.searchable == {base.pk}

    deny(
        base,
        to={"person": user, "group": group, "everyone": everyone()}[holder],
        actor=None,
    )

    assert resolve(reader) == NOTHING


@pytest.mark.req("S3-VIS-03")
def test_to_see_a_knowledge_base_listed_is_not_to_search_it() -> None:
    base, user = KnowledgeBaseFactory(), UserFactory()
    ready_source(
        "The fee is due on Monday.",
        layer=Layer.objects.create(knowledge_base=base, name="main"),
    )
    grant(base, [Access.LIST], to=user, actor=None)
    reader = Reader(user.pk)
    assert list(KnowledgeBase.objects.listed_to(reader)) == [base]
    assert not KnowledgeBase.objects.visible_to(reader).exists()
    assert not Passage.objects.visible_to(reader).exists()


def test_to_search_a_knowledge_base_is_not_to_see_it_listed() -> None:
    base, user = KnowledgeBaseFactory(), UserFactory()
    grant(base, [Access.SEARCH], to=user, actor=None)
    reader = Reader(user.pk)
    assert not KnowledgeBase.objects.listed_to(reader).exists()
    assert list(KnowledgeBase.objects.visible_to(reader)) == [base]


@pytest.mark.req("REL-A12", "D27")
class TestNothingElseGrants:
    """E11: what guardian's own shortcuts would have let in."""

    def test_a_superuser_reads_by_grants_like_anyone(self) -> None:
        base, user = KnowledgeBaseFactory(), UserFactory(is_superuser=True)
        assert resolve(Reader(user.pk)) == NOTHING
        assert not user.has_perm("knowledge.search_knowledgebase", base)
        grant(base, BOTH, to=user, actor=user)
        assert Reader(user.pk).searchable == {base.pk}
        deny(base, to=user, actor=None)
        assert resolve(Reader(user.pk)) == NOTHING

    def test_a_model_level_permission_opens_nothing(self) -> None:
        base, user = KnowledgeBaseFactory(), UserFactory()
        user.user_permissions.set(
            Permission.objects.filter(content_type__app_label="knowledge")
        )
        assert user.has_perm("knowledge.search_knowledgebase")
        assert not user.has_perm("knowledge.search_knowledgebase", base)
        assert resolve(Reader(user.pk)) == NOTHING

    def test_an_inactive_person_sees_nothing(self) -> None:
        base, user = KnowledgeBaseFactory(), UserFactory()
        grant(base, BOTH, to=user, actor=None)
        grant(base, BOTH, to=everyone(), actor=None)
        assert Reader(user.pk).searchable
        User.objects.filter(pk=user.pk).update(is_active=False)
        assert resolve(Reader(user.pk)) == NOTHING

    def test_nobody_sees_nothing(self) -> None:
        grant(KnowledgeBaseFactory(), BOTH, to=everyone(), actor=None)
        assert resolve(Reader(None)) == NOTHING
        assert resolve(Reader(10**9)) == NOTHING

    def test_grants_die_with_what_they_are_about(self) -> None:
        base, user, group = KnowledgeBaseFactory(), UserFactory(), GroupFactory()
        group.user_set.add(user)
        grant(base, BOTH, to=user, actor=None)
        grant(base, BOTH, to=group, actor=None)
        number = base.pk
        base.delete()
        KnowledgeBaseFactory(pk=number)
        assert resolve(Reader(user.pk)) == NOTHING

    def test_grants_die_with_their_group(self) -> None:
        base, user, group = KnowledgeBaseFactory(), UserFactory(), GroupFactory()
        group.user_set.add(user)
        grant(base, BOTH, to=group, actor=None)
        name = group.name
        group.delete()
        GroupFactory(name=name).user_set.add(user)
        assert resolve(Reader(user.pk)) == NOTHING

    def test_a_group_that_calls_itself_everyone_in_other_letters_is_a_group(
        self,
    ) -> None:
        base, user = KnowledgeBaseFactory(), UserFactory()
        grant(base, BOTH, to=GroupFactory(name=EVERYONE.upper()), actor=None)
        assert resolve(Reader(user.pk)) == NOTHING


def test_everyone_holds_whoever_joins_later() -> None:
    base = KnowledgeBaseFactory()
    grant(base, BOTH, to=everyone(), actor=None)
    assert Reader(UserFactory().pk).searchable == {base.pk}


@pytest.mark.req("D29")
def test_has_perm_answers_from_the_resolver() -> None:
    base, user, group = KnowledgeBaseFactory(), UserFactory(), GroupFactory()
    group.user_set.add(user)
    grant(base, [Access.SEARCH], to=group, actor=None)
    assert user.has_perm("knowledge.search_knowledgebase", base)
    assert not user.has_perm("knowledge.list_knowledgebase", base)
    assert not user.has_perm("knowledge.delete_knowledgebase", base)
    deny(base, to=user, actor=None)
    assert not user.has_perm("knowledge.search_knowledgebase", base)


@pytest.mark.req("S3-VIS-01")
def test_a_reader_is_resolved_once_before_its_queries(
    cast: Cast, django_assert_num_queries: object
) -> None:
    reader = cast.granted.reader
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert reader.searchable
        assert reader.searchable
        assert reader.listed
    sql = str(Passage.objects.visible_to(reader).query)
    (number,) = reader.searchable
    assert f'"knowledge_passage"."knowledge_base_id" IN ({number})' in sql


@pytest.mark.req("REL-A15")
@pytest.mark.parametrize("name", ["ungranted", "lister", "denied", "inactive"])
def test_nothing_in_reach_runs_no_query(
    cast: Cast, name: str, django_assert_num_queries: object
) -> None:
    reader = cast[name].reader
    assert reader.searchable == frozenset()
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert list(Passage.objects.visible_to(reader)) == []
        assert list(Source.objects.visible_to(reader)) == []
        assert list(Layer.objects.visible_to(reader)) == []
        assert list(KnowledgeBase.objects.visible_to(reader)) == []


@pytest.mark.req("REL-A14")
def test_an_error_of_the_database_is_not_an_answer(cast: Cast) -> None:
    reader = cast.granted.reader
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE knowledge_knowledgebasegroupaccess RENAME TO elsewhere"
            )
        with pytest.raises(DatabaseError), transaction.atomic():
            _ = reader.searchable
        transaction.set_rollback(True)


@pytest.mark.req("REL-A11")
class TestChangesHoldAtTheNextRequest:
    """A reader lives as long as its request; the next one is resolved anew."""

    def test_a_grant_is_withdrawn(self, cast: Cast, shelves: Corpus) -> None:
        assert cast.granted.reader.searchable
        withdraw(shelves.handbook, BOTH, holder=cast.members, actor=None)
        assert resolve(cast.granted.reader) == NOTHING

    def test_a_deny_is_written(self, cast: Cast, shelves: Corpus) -> None:
        deny(shelves.handbook, to=cast.granted.user, actor=None)
        assert resolve(cast.granted.reader) == NOTHING
        assert resolve(cast.token_in_scope.reader) == NOTHING

    def test_somebody_leaves_the_group(self, cast: Cast) -> None:
        cast.members.user_set.remove(cast.granted.user)
        assert resolve(cast.granted.reader) == NOTHING

    def test_somebody_is_deactivated(self, cast: Cast) -> None:
        User.objects.filter(pk=cast.granted.user.pk).update(is_active=False)
        assert resolve(cast.granted.reader) == NOTHING

    def test_a_deny_is_withdrawn(self, cast: Cast, shelves: Corpus) -> None:
        withdraw(shelves.handbook, [Access.DENY], holder=cast.denied.user, actor=None)
        assert cast.denied.reader.searchable == {shelves.handbook.pk}


class TestExplain:
    """The sentence names the rule that decided, and whom it was written for."""

    @pytest.mark.parametrize(
        ("name", "allowed", "words"),
        [
            ("granted", True, "Granted to Members"),
            ("denied", False, "Denied to denied"),
            ("inactive", False, "not active"),
            ("ungranted", False, "Nothing grants"),
            ("lister", False, "Nothing grants"),
            ("superuser", False, "Nothing grants"),
            ("anonymous", False, "not active"),
            ("token_in_scope", True, "Granted to Members"),
            ("token_out_of_scope", False, "token is not scoped"),
        ],
    )
    def test_it_names_the_rule(
        self, cast: Cast, shelves: Corpus, *, name: str, allowed: bool, words: str
    ) -> None:
        decision = explain(cast[name].reader, shelves.handbook)
        assert (decision.allowed, words in decision.rule) == (allowed, True)

    def test_a_deny_to_everyone_is_named(self, cast: Cast, shelves: Corpus) -> None:
        deny(shelves.handbook, to=everyone(), actor=None)
        decision = explain(cast.granted.reader, shelves.handbook)
        assert EVERYONE in decision.rule

    def test_listing_is_explained_by_itself(self, cast: Cast, shelves: Corpus) -> None:
        assert explain(cast.lister.reader, shelves.handbook, Access.LIST)
        assert not explain(cast.lister.reader, shelves.handbook, Access.SEARCH)


def test_grants_and_denies_are_audited(cast: Cast, shelves: Corpus) -> None:
    before = AuditEntry.objects.count()
    deny(shelves.branches, to=cast.members, actor=cast.superuser.user)
    withdraw(
        shelves.branches, [Access.DENY], holder=cast.members, actor=cast.superuser.user
    )
    written = list(
        AuditEntry.objects.order_by("pk").values_list(
            "actor_label", "verb", "detail__holder", "knowledge_base_id"
        )[before:]
    )
    assert written == [
        ("superuser", "denied", "Members", shelves.branches.pk),
        ("superuser", "withdrew", "Members", shelves.branches.pk),
    ]


def test_a_token_never_widens(cast: Cast, shelves: Corpus) -> None:
    row = cast.token_in_scope.token_row
    assert row is not None
    row.knowledge_bases.set([shelves.handbook, shelves.vault])
    assert cast.token_in_scope.reader.searchable == {shelves.handbook.pk}
    row.knowledge_bases.clear()
    assert not ApiToken.objects.get(pk=row.pk).covers_all
    assert resolve(cast.token_in_scope.reader) == Scope(frozenset(), frozenset())
