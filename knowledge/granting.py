"""Grants and denies for many people or groups and many knowledge bases at once.

`preview` says what an act would change, `apply` does it: one transaction, and one audit
entry for each row, as a single grant has.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from knowledge.models import (
    AuditEntry,
    KnowledgeBase,
    KnowledgeBaseGroupAccess,
    KnowledgeBaseUserAccess,
    User,
)
from knowledge.permissions import EVERYONE, Access

# Rows for so many pairs are written in seconds; who needs more grants to a group.
MOST_PAIRS = 20_000
# Beyond so many people times knowledge bases the effect on each is not worked out.
MOST_WORKED_OUT = 2_000_000
MOST_EXAMPLES = 20
BATCH = 5000


class Act(models.TextChoices):
    """What is done to each pair of a holder and a knowledge base."""

    SEARCH = "search", _("grant: find it in lists, search and read it")
    LIST = "list", _("grant: find it in lists only")
    DENY = "deny", _("deny: see nothing of it, whatever else is granted")
    WITHDRAW_GRANTS = "withdraw-grants", _("take grants away")
    WITHDRAW_DENIES = "withdraw-denies", _("take denies away")

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The rows that it writes or takes away."""
        return {
            Act.SEARCH: (Access.LIST, Access.SEARCH),
            Act.LIST: (Access.LIST,),
            Act.DENY: (Access.DENY,),
            Act.WITHDRAW_GRANTS: (Access.LIST, Access.SEARCH),
            Act.WITHDRAW_DENIES: (Access.DENY,),
        }[self]

    @property
    def is_withdrawal(self) -> bool:
        """Whether rows are taken away instead of written."""
        return self in {Act.WITHDRAW_GRANTS, Act.WITHDRAW_DENIES}


@dataclass(frozen=True, slots=True)
class Choice:
    """Who, which and what: the people or the groups, never both."""

    act: Act
    knowledge_bases: Sequence[KnowledgeBase]
    people: Sequence[User] = ()
    groups: Sequence[Group] = ()

    @property
    def holders(self) -> Sequence[User] | Sequence[Group]:
        """Whom the rows name."""
        return self.people or self.groups

    @property
    def pairs(self) -> int:
        """How many pairs of a holder and a knowledge base there are."""
        return len(self.holders) * len(self.knowledge_bases)

    def rows(self) -> models.QuerySet[Any]:
        """Return the grants or denies that stand already for these pairs."""
        codenames = [str(access) for access in self.act.accesses]
        if self.people:
            return KnowledgeBaseUserAccess.objects.filter(
                content_object__in=self.knowledge_bases,
                user__in=self.people,
                permission__codename__in=codenames,
            )
        return KnowledgeBaseGroupAccess.objects.filter(
            content_object__in=self.knowledge_bases,
            group__in=self.groups,
            permission__codename__in=codenames,
        )

    @property
    def holder_field(self) -> str:
        """The column of the rows that names the holder."""
        return "user_id" if self.people else "group_id"


@dataclass(frozen=True, slots=True)
class Change:
    """A person whose view of a knowledge base would change."""

    person: str
    knowledge_base: str
    allowed_before: bool
    allowed_after: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """What an act would change.

    `written`, `removed` and `standing` count rows: new ones, ones that go, and ones
    that are as they should be. `gains` and `losses` count pairs of a person and a
    knowledge base that the person begins or ceases to search (to list, for an act on
    lists alone), `overruled` those of a grant that a deny overrules. The last three are
    None where too many people are concerned to work it out.
    """

    pairs: int
    people: int
    written: int
    removed: int
    standing: int
    gains: int | None
    losses: int | None
    overruled: int | None
    examples: tuple[Change, ...] = ()


def preview(choice: Choice) -> Effect:
    """Return what `apply` would change now."""
    standing = choice.rows().count()
    wanted = choice.pairs * len(choice.act.accesses)
    is_withdrawal = choice.act.is_withdrawal
    people = concerned(choice)
    number = len(people)
    gains = losses = overruled = None
    examples: list[Change] = []
    if number * len(choice.knowledge_bases) <= MOST_WORKED_OUT:
        gains = losses = overruled = 0
        world = World.read(choice, set(people))
        for base in choice.knowledge_bases:
            before, after, denied = world.seen(choice, base.pk)
            gained, lost = after - before, before - after
            gains += len(gained)
            losses += len(lost)
            if not is_withdrawal and choice.act is not Act.DENY:
                overruled += len(denied)
            examples.extend(
                Change(people[pk], base.name, pk in before, pk in after)
                for pk in sorted(gained | lost)[: MOST_EXAMPLES - len(examples)]
            )
    return Effect(
        pairs=choice.pairs,
        people=number,
        written=0 if is_withdrawal else wanted - standing,
        removed=standing if is_withdrawal else 0,
        standing=0 if is_withdrawal else standing,
        gains=gains,
        losses=losses,
        overruled=overruled,
        examples=tuple(examples),
    )


def concerned(choice: Choice) -> dict[int, str]:
    """Return the active people whom the holders are, with their names."""
    if choice.people:
        return {each.pk: named(each) for each in choice.people if each.is_active}
    people = User.objects.filter(is_active=True)
    if not any(group.name == EVERYONE for group in choice.groups):
        members = User.groups.through.objects.filter(group__in=choice.groups)
        people = people.filter(pk__in=members.values("user_id"))
    names = people.only("pk", "username", "first_name", "last_name")
    return {person.pk: named(person) for person in names}


def named(person: User) -> str:
    """Return a name that no other person has."""
    name, username = str(person), person.get_username()
    return name if name == username else f"{name} ({username})"


Rows = dict[int, dict[str, set[int]]]


@dataclass(slots=True)
class World:
    """The rows of some knowledge bases as they concern some people.

    `own` and `shared` hold user and group ids by knowledge base and access; `members`
    the people of each group.
    """

    people: set[int]
    own: Rows = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    shared: Rows = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    members: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def read(cls, choice: Choice, people: set[int]) -> "World":
        """Read what decides for these people and knowledge bases."""
        world = cls(people)
        codenames = [str(access) for access in Access]
        about = {
            "content_object__in": choice.knowledge_bases,
            "permission__codename__in": codenames,
        }
        fields = ("content_object_id", "permission__codename")
        own = KnowledgeBaseUserAccess.objects.filter(**about)
        if choice.people:
            own = own.filter(user__in=people)
        for base, codename, user_id in own.values_list(*fields, "user_id"):
            world.own[base][codename].add(user_id)
        names = {}
        shared = KnowledgeBaseGroupAccess.objects.filter(**about)
        for base, codename, group_id, name in shared.values_list(
            *fields, "group_id", "group__name"
        ):
            world.shared[base][codename].add(group_id)
            names[group_id] = name
        names |= {group.pk: group.name for group in choice.groups}
        memberships = User.groups.through.objects.filter(group__in=names)
        if choice.people:
            memberships = memberships.filter(user__in=people)
        for group_id, user_id in memberships.values_list("group_id", "user_id"):
            world.members[group_id].add(user_id)
        for group_id, name in names.items():
            if name == EVERYONE:
                world.members[group_id] = people
        return world

    def holding(self, own: set[int], groups: set[int]) -> set[int]:
        """Return the people among these holders."""
        return self.people & own.union(*(self.members[each] for each in groups))

    def seen(self, choice: Choice, base: int) -> tuple[set[int], set[int], set[int]]:
        """Return who sees a knowledge base before and after, and whom a deny stops."""
        measured = Access.LIST if choice.act is Act.LIST else Access.SEARCH
        chosen = {holder.pk for holder in choice.holders}
        found: list[set[int]] = []
        stopped: set[int] = set()
        for is_after in (False, True):
            rows: list[set[int]] = []
            for access in (measured, Access.DENY):
                own, groups = self.own[base][access], self.shared[base][access]
                if is_after and access in choice.act.accesses:
                    changed = own if choice.people else groups
                    changed = (
                        changed - chosen
                        if choice.act.is_withdrawal
                        else changed | chosen
                    )
                    own, groups = (changed, groups) if choice.people else (own, changed)
                rows.append(self.holding(own, groups))
            granted, denied = rows
            found.append(granted - denied)
            stopped = granted & denied
        return found[0], found[1], stopped


@transaction.atomic
def apply(choice: Choice, *, actor: User) -> int:
    """Do what was previewed and return how many rows were written or taken away.

    Rows that stand already are left, and not recorded again.
    """
    fields = (choice.holder_field, "content_object_id", "permission__codename")
    rows = choice.rows().select_for_update(of=("self",))
    standing = set(rows.values_list(*fields))
    if choice.act.is_withdrawal:
        choice.rows().delete()
        record_all(choice, sorted(standing), actor)
        return len(standing)
    missing = sorted(
        {
            (holder.pk, base.pk, str(access))
            for holder in choice.holders
            for base in choice.knowledge_bases
            for access in choice.act.accesses
        }
        - standing
    )
    permission_of = dict(
        Permission.objects.filter(
            content_type__app_label="knowledge", codename__in=Access.values
        ).values_list("codename", "pk")
    )
    table = KnowledgeBaseUserAccess if choice.people else KnowledgeBaseGroupAccess
    table.objects.bulk_create(
        (
            table(
                **{choice.holder_field: holder},
                content_object_id=base,
                permission_id=permission_of[access],
            )
            for holder, base, access in missing
        ),
        batch_size=BATCH,
        ignore_conflicts=True,
    )
    record_all(choice, missing, actor)
    return len(missing)


def record_all(
    choice: Choice, rows: Sequence[tuple[int, int, str]], actor: User
) -> None:
    """Write the audit entry of each row, in the words of a single grant's."""
    holder_of = {holder.pk: str(holder) for holder in choice.holders}
    base_of = {base.pk: base for base in choice.knowledge_bases}
    verb = "denied" if choice.act is Act.DENY else "granted"
    if choice.act.is_withdrawal:
        verb = "withdrew"

    def entries() -> Iterator[AuditEntry]:
        for holder, base, access in rows:
            yield AuditEntry(
                actor=actor,
                actor_label=str(actor)[:200],
                verb=verb,
                target_type="knowledgebase",
                target_id=base,
                target_label=base_of[base].name,
                knowledge_base_id=base,
                detail={"access": access, "holder": holder_of[holder]},
            )

    AuditEntry.objects.bulk_create(entries(), batch_size=BATCH)
