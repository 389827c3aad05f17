"""Access for many at once: what is previewed is what is done."""

import random
from typing import Any

import pytest
from django.contrib.auth.models import Group

from knowledge.granting import MOST_PAIRS, Act, Choice, apply, preview
from knowledge.models import AuditEntry, KnowledgeBase, User
from knowledge.permissions import Access, Reader, deny, everyone, grant, resolve
from tests.cast import BOTH, Cast
from tests.factories import GroupFactory, KnowledgeBaseFactory, UserFactory
from tests.knowledge.test_permissions import SEED, Worlds
from tests.stored_corpus import Corpus

pytestmark = pytest.mark.django_db

BULK = "/admin/knowledge/knowledgebase/bulk-access/"


def views(access: Access) -> set[tuple[int, int]]:
    """Return who sees which knowledge base, by the resolver."""
    found = set()
    for pk in User.objects.values_list("pk", flat=True):
        scope = resolve(Reader(pk))
        ids = scope.listed if access is Access.LIST else scope.searchable
        found |= {(pk, base) for base in ids}
    return found


@pytest.mark.req("S3-VIS-01", "S3-VIS-02")
@pytest.mark.parametrize("act", Act)
@pytest.mark.parametrize("kind", ["people", "groups"])
def test_the_effect_is_what_the_resolver_says_afterwards(act: Act, kind: str) -> None:
    dice = random.Random(f"{SEED}:{act}:{kind}")
    worlds = Worlds.draw(dice)
    worlds.store(dice)
    people = dice.sample(list(User.objects.order_by("pk")), 30)
    groups = dice.sample(list(Group.objects.order_by("pk")), 10)
    choice = Choice(
        act=act,
        knowledge_bases=dice.sample(list(KnowledgeBase.objects.order_by("pk")), 25),
        people=people if kind == "people" else (),
        groups=groups if kind == "groups" else (),
    )
    measured = Access.LIST if act is Act.LIST else Access.SEARCH
    actor = UserFactory()
    before = views(measured)
    effect = preview(choice)
    entries = AuditEntry.objects.count()
    changed = apply(choice, actor=actor)
    after = views(measured)
    assert effect.gains == len(after - before), SEED
    assert effect.losses == len(before - after), SEED
    assert changed == effect.written + effect.removed
    assert AuditEntry.objects.count() == entries + changed
    assert preview(choice).written == preview(choice).removed == 0


def test_a_grant_to_everyone_concerns_everyone() -> None:
    base, people = KnowledgeBaseFactory(), [UserFactory() for _ in range(3)]
    deny(base, to=people[0], actor=None)
    effect = preview(Choice(Act.SEARCH, [base], groups=[everyone()]))
    active = User.objects.filter(is_active=True).count()
    assert (effect.people, effect.gains) == (active, active - 1)
    assert effect.overruled == 1


def test_each_row_is_recorded_like_a_single_grant() -> None:
    actor, person, base = UserFactory(), UserFactory(), KnowledgeBaseFactory()
    grant(base, BOTH, to=person, actor=actor)
    single = list(AuditEntry.objects.filter(target_id=base.pk).order_by("pk"))
    twin = KnowledgeBaseFactory()
    apply(Choice(Act.SEARCH, [twin], people=[person]), actor=actor)
    many = list(AuditEntry.objects.filter(target_id=twin.pk).order_by("pk"))

    def told(entry: AuditEntry) -> tuple[Any, ...]:
        return (
            entry.actor,
            entry.actor_label,
            entry.verb,
            entry.target_type,
            entry.detail,
        )

    assert [told(entry) for entry in many] == [told(entry) for entry in single]


def test_what_stands_already_is_left_alone() -> None:
    person, base = UserFactory(), KnowledgeBaseFactory()
    grant(base, BOTH, to=person, actor=None)
    before = AuditEntry.objects.count()
    assert apply(Choice(Act.SEARCH, [base], people=[person]), actor=person) == 0
    assert AuditEntry.objects.count() == before


class TestThePage:
    """The steps of one form; every choice travels along as ids."""

    def sent(self, cast: Cast, **fields: object) -> str:
        """Return the page that a step leads to."""
        response = cast.superuser.client().post(BULK, fields, follow=True)
        return response.content.decode()

    def test_ticks_stay_while_a_page_is_turned(self, cast: Cast) -> None:
        people = [UserFactory(username=f"a{number:03}") for number in range(60)]
        shown = ",".join(str(each.pk) for each in people[:50])
        page = self.sent(
            cast,
            **{
                "do": "people-page-2",
                "people": people[7].pk,
                "people-shown": shown,
                "people-chosen": str(people[3].pk),
                "people-q": "a0",
                "people-searched": "a0",
            },
        )
        assert f'name="people-chosen" value="{people[7].pk}"' in page
        assert "a059" in page
        assert "page 2 of 2" in page

    def test_all_that_a_search_finds_are_chosen_at_once(self, cast: Cast) -> None:
        for number in range(60):
            UserFactory(username=f"b{number:03}")
        page = self.sent(cast, **{"do": "people-all", "people-q": "b0"})
        assert "60 chosen; 60 found" in page

    def test_a_preview_changes_nothing_and_the_act_what_it_said(
        self, cast: Cast, shelves: Corpus
    ) -> None:
        group = GroupFactory()
        fields = {
            "kind": "groups",
            "act": "search",
            "groups-chosen": str(group.pk),
            "bases-chosen": f"{shelves.handbook.pk},{shelves.vault.pk}",
        }
        page = self.sent(cast, do="preview", **fields)
        assert "This is what would change" in page
        assert not group.knowledgebasegroupaccess_set.exists()
        page = self.sent(cast, do="apply", **fields)
        assert "4 rows were written." in page
        assert group.knowledgebasegroupaccess_set.count() == 4

    @pytest.mark.parametrize("missing", ["people", "bases"])
    def test_an_empty_choice_is_answered_in_a_sentence(
        self, cast: Cast, shelves: Corpus, missing: str
    ) -> None:
        fields = {
            "people-chosen": str(cast.granted.user.pk if cast.granted.user else 0),
            "bases-chosen": str(shelves.handbook.pk),
        }
        fields[f"{missing}-chosen"] = ""
        assert "Choose at least one" in self.sent(cast, do="preview", **fields)

    def test_too_many_pairs_are_answered_in_a_sentence(self, cast: Cast) -> None:
        number = int(MOST_PAIRS**0.5) + 1
        users = User.objects.bulk_create(
            User(username=f"c{each:04}") for each in range(number)
        )
        bases = KnowledgeBase.objects.bulk_create(
            KnowledgeBase(name=f"c{each:04}", slug=f"c{each:04}")
            for each in range(number)
        )
        page = self.sent(
            cast,
            **{
                "do": "apply",
                "people-chosen": ",".join(str(each.pk) for each in users),
                "bases-chosen": ",".join(str(each.pk) for each in bases),
            },
        )
        assert "put the people into a group" in page

    @pytest.mark.req("REL-A7", "REL-A8")
    def test_only_bases_in_scope_can_be_named(
        self, cast: Cast, shelves: Corpus
    ) -> None:
        staff = cast.other_staff.user
        assert staff is not None
        staff.groups.set(Group.objects.filter(name="Administrator"))
        client = cast.other_staff.client()
        assert "Vault" not in client.get(BULK).content.decode()
        response = client.post(
            BULK,
            {
                "do": "apply",
                "people-chosen": str(staff.pk),
                "bases-chosen": str(shelves.vault.pk),
            },
        )
        assert "Choose at least one knowledge base." in response.content.decode()
        assert shelves.vault.pk not in Reader(staff.pk).searchable
