"""Who can find this, and why or why not: the rule, asked from the other end."""

import random
from datetime import timedelta

import pytest
from django.utils import timezone

from knowledge.access import (
    answers_about,
    decisions,
    explain_source,
    find_people,
    groups_with,
    people_who_may,
    people_with,
    who_may_some,
)
from knowledge.models import KnowledgeBase, Passage, Source, User
from knowledge.models.source import SourceState
from knowledge.permissions import (
    EVERYONE,
    Access,
    Reader,
    deny,
    everyone,
    explain,
    grant,
    resolve,
)
from tests.cast import BOTH, Cast
from tests.factories import (
    GroupFactory,
    KnowledgeBaseFactory,
    LayerFactory,
    SourceFactory,
    UserFactory,
    ready_source,
)
from tests.knowledge.test_permissions import SEED, Worlds
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db


@pytest.mark.req("S3-VIS-01", "S3-VIS-02", "REL-A2")
def test_who_may_agrees_with_the_resolver_of_each_person() -> None:
    dice = random.Random(SEED)
    worlds = Worlds.draw(dice)
    user_of = worlds.store(dice)
    people = list(user_of.values())
    scope_of = {user.pk: resolve(Reader(user.pk)) for user in people}
    for slug, base in worlds.base_of.items():
        for access in (Access.LIST, Access.SEARCH):
            found = set(people_who_may(base, access).values_list("pk", flat=True))
            rule_of = decisions(base, people, access)
            for user in people:
                scope = scope_of[user.pk]
                ids = scope.listed if access is Access.LIST else scope.searchable
                expected = base.pk in ids
                where = (SEED, slug, user.username, access)
                assert (user.pk in found) == expected, where
                assert bool(rule_of[user.pk]) == expected, where
        denied = people_with(base, Access.DENY)
        for user in denied:
            assert base.pk not in scope_of[user.pk].searchable
    active = [user.pk for user in people if user.is_active]
    bases = [base.pk for base in worlds.base_of.values()]
    for some in (bases[:1], bases[1:], []):
        assert who_may_some(active, some) == {
            pk for pk in active if scope_of[pk].searchable & set(some)
        }


@pytest.mark.req("S3-VIS-02")
def test_the_rules_of_many_are_those_of_each(cast: Cast, shelves: Corpus) -> None:
    deny(shelves.branches, to=everyone(), actor=None)
    people = list(User.objects.all())
    for base in KnowledgeBase.objects.all():
        rule_of = decisions(base, people)
        for person in people:
            assert rule_of[person.pk] == explain(Reader(person.pk), base)


def test_people_are_found_by_any_of_their_names() -> None:
    UserFactory(username="hanh", first_name="Hạnh", last_name="Trần")
    UserFactory(username="jan", email="jan@example.org")
    everybody = User.objects.all()
    assert [each.username for each in find_people(everybody, "trần hạ")] == ["hanh"]
    assert [each.username for each in find_people(everybody, "EXAMPLE.ORG")] == ["jan"]


def test_groups_are_named_with_what_they_hold_and_how_many_they_are() -> None:
    base, group = KnowledgeBaseFactory(), GroupFactory(name="Readers")
    group.user_set.add(UserFactory(), UserFactory(is_active=False))
    grant(base, BOTH, to=group, actor=None)
    deny(base, to=everyone(), actor=None)
    found = [(each.name, each.is_denied, each.people) for each in groups_with(base)]
    assert found == [
        (EVERYONE, True, User.objects.filter(is_active=True).count()),
        ("Readers", False, 1),
    ]


class TestSources:
    """For a source the reader's rule comes first, then what became of the source."""

    @pytest.mark.req("S2-VIS-01", "S2-ING-10")
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({}, "Granted to"),
            ({"enabled": False}, "switched off"),
            ({"expires_at": timezone.now() - timedelta(minutes=1)}, "expired on"),
            ({"expires_at": timezone.now() + timedelta(days=1)}, "Granted to"),
        ],
    )
    def test_the_deciding_rule_is_named(
        self, change: dict[str, object], words: str
    ) -> None:
        source = ready_source("The fee is due on Monday.")
        person = UserFactory()
        grant(source.knowledge_base, BOTH, to=person, actor=None)
        Source.objects.filter(pk=source.pk).update(**change)
        source.refresh_from_db()
        reader = Reader(person.pk)
        decision = explain_source(reader, source)
        assert words in decision.rule
        assert bool(decision) == Source.objects.visible_to(reader).exists()
        assert bool(decision) == Passage.objects.visible_to(reader).exists()

    def test_what_is_not_indexed_yet_is_found_by_nobody(self) -> None:
        source = SourceFactory(state=SourceState.PENDING)
        person = UserFactory()
        grant(source.knowledge_base, BOTH, to=person, actor=None)
        decision = explain_source(Reader(person.pk), source)
        assert not decision
        assert "not ready (pending)" in decision.rule

    def test_who_may_not_search_is_told_that_first(self) -> None:
        source = ready_source("The fee is due.", enabled=False)
        assert "Nothing grants" in explain_source(Reader(UserFactory().pk), source).rule

    def test_each_live_token_is_answered_for(self, cast: Cast, shelves: Corpus) -> None:
        source = ready_source("The fee is due.", layer=shelves.handbook.layers.get())
        assert cast.granted.user is not None
        answers = answers_about(cast.granted.user, shelves.handbook, source)
        found = {answer.way.split(" (")[0]: bool(answer.decision) for answer in answers}
        assert found == {
            "Searches and reads it": True,
            "With the token token_in_scope": True,
            "With the token token_out_of_scope": False,
            "With the token agent_token": True,
        }


class TestPages:
    """What staff are shown; tests/doors.yaml says to whom each page opens."""

    def test_the_page_pages_and_searches(self, cast: Cast, shelves: Corpus) -> None:
        group = GroupFactory(name="Many")
        grant(shelves.branches, BOTH, to=group, actor=None)
        group.user_set.set([UserFactory(username=f"many{n:03}") for n in range(60)])
        client = cast.superuser.client()
        address = f"/admin/knowledge/knowledgebase/{shelves.branches.pk}/finders/"
        first = client.get(address).content.decode()
        assert "Granted to Many" in first
        assert "many000" in first
        assert "many059" not in first
        assert "many059" in client.get(f"{address}?page=2").content.decode()
        found = client.get(f"{address}?q=many059").content.decode()
        assert "many059" in found
        assert "many058" not in found

    def test_denied_people_are_shown_with_whom_the_deny_names(
        self, cast: Cast, shelves: Corpus
    ) -> None:
        address = f"/admin/knowledge/knowledgebase/{shelves.handbook.pk}/finders/"
        page = cast.superuser.client().get(f"{address}?show=denied").content.decode()
        assert "Denied to denied. A deny beats every grant." in page

    @pytest.mark.req("S2-VIS-01")
    def test_a_source_tells_why_nobody_finds_it(
        self, cast: Cast, shelves: Corpus
    ) -> None:
        layer = shelves.handbook.layers.get()
        source = ready_source("The fee is due.", layer=layer, enabled=False)
        address = f"/admin/knowledge/source/{source.pk}/finders/?person=granted"
        page = cast.superuser.client().get(address).content.decode()
        assert "Nobody finds it now" in page
        assert "It is switched off, so nobody finds it." in page

    def test_grants_and_denies_have_a_history(
        self, cast: Cast, shelves: Corpus
    ) -> None:
        deny(shelves.handbook, to=cast.members, actor=cast.superuser.user)
        address = f"/admin/knowledge/knowledgebase/{shelves.handbook.pk}/access/"
        page = cast.superuser.client().get(address).content.decode()
        history = page.partition('id="history"')[2]
        assert "denied" in history
        assert "sees nothing of it" in history
        assert "superuser" in history

    def test_editors_do_not_learn_who_else_reads(
        self, cast: Cast, shelves: Corpus
    ) -> None:
        address = f"/admin/knowledge/knowledgebase/{shelves.handbook.pk}/finders/"
        assert cast.editor.client().get(address).status_code == 403


def test_what_nobody_was_granted_is_found_by_nobody() -> None:
    layer = LayerFactory()
    assert not people_who_may(layer.knowledge_base).exists()
