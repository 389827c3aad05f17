"""Who may find what, asked from the other end: by knowledge base and source, for staff.

A reader's own list comes from `permissions.resolve`. What is here answers the same rule
for many people at once; `tests/knowledge/test_access.py` holds the two together.
"""

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from knowledge.models import (
    ApiToken,
    KnowledgeBase,
    KnowledgeBaseGroupAccess,
    KnowledgeBaseUserAccess,
    Source,
    User,
)
from knowledge.permissions import (
    EVERYONE,
    Access,
    AccessRow,
    Decision,
    Reader,
    decide,
    explain,
)
from knowledge.tokens import reader_of

MOST_TOKENS = 20


def holders_of(
    knowledge_base: KnowledgeBase, access: Access
) -> tuple[models.QuerySet[KnowledgeBaseUserAccess], set[int], bool]:
    """Return (rows of people, group ids, whether everyone) that hold one access."""
    people = KnowledgeBaseUserAccess.objects.filter(
        content_object=knowledge_base, permission__codename=access
    )
    groups = dict(
        KnowledgeBaseGroupAccess.objects.filter(
            content_object=knowledge_base, permission__codename=access
        ).values_list("group_id", "group__name")
    )
    return people, set(groups), EVERYONE in groups.values()


def people_with(knowledge_base: KnowledgeBase, access: Access) -> models.QuerySet[User]:
    """Return the active people that a row of one access names, by whatever way."""
    people, groups, is_everyone = holders_of(knowledge_base, access)
    active = User.objects.filter(is_active=True)
    if is_everyone:
        return active
    members = User.groups.through.objects.filter(group__in=groups)
    return active.filter(
        models.Q(pk__in=people.values("user_id"))
        | models.Q(pk__in=members.values("user_id"))
    )


def people_who_may(
    knowledge_base: KnowledgeBase, access: Access = Access.SEARCH
) -> models.QuerySet[User]:
    """Return the people who may list or search a knowledge base.

    The resolver's rule for all at once: active, granted, and not denied.
    """
    if knowledge_base.owner_id is not None:
        return User.objects.none()
    denied = people_with(knowledge_base, Access.DENY)
    return people_with(knowledge_base, access).exclude(pk__in=denied.values("pk"))


def who_may_some(
    people: Collection[int],
    knowledge_bases: Collection[int],
    access: Access = Access.SEARCH,
) -> set[int]:
    """Return who of some active people may list or search some of the knowledge bases.

    Both by their ids; in three statements, however many there are. Knowledge bases with
    an owner are not to be named here.
    """
    named = {
        "content_object__in": knowledge_bases,
        "permission__codename__in": [access, Access.DENY],
    }
    fields = ("content_object_id", "permission__codename")
    found: dict[tuple[int, str], set[int]] = {}
    for user_id, *row in KnowledgeBaseUserAccess.objects.filter(
        user__in=people, **named
    ).values_list("user_id", *fields):
        found.setdefault((row[0], row[1]), set()).add(user_id)
    of_groups = list(
        KnowledgeBaseGroupAccess.objects.filter(**named).values_list(
            "group_id", "group__name", *fields
        )
    )
    members: dict[int, set[int]] = {}
    for group_id, user_id in User.groups.through.objects.filter(
        user__in=people, group__in={row[0] for row in of_groups}
    ).values_list("group_id", "user_id"):
        members.setdefault(group_id, set()).add(user_id)
    for group_id, name, base, codename in of_groups:
        holders = set(people) if name == EVERYONE else members.get(group_id, set())
        found.setdefault((base, codename), set()).update(holders)
    nobody: set[int] = set()
    return {
        person
        for (base, codename), holders in found.items()
        if codename == access
        for person in holders - found.get((base, Access.DENY), nobody)
    }


def find_people(people: models.QuerySet[User], text: str) -> models.QuerySet[User]:
    """Return the people whose name or address holds each word, by user name."""
    for word in text.split():
        people = people.filter(
            models.Q(username__icontains=word)
            | models.Q(first_name__icontains=word)
            | models.Q(last_name__icontains=word)
            | models.Q(email__icontains=word)
        )
    return people.order_by(Lower("username"), "pk")


def decisions(
    knowledge_base: KnowledgeBase,
    people: Collection[User],
    access: Access = Access.SEARCH,
) -> dict[int, Decision]:
    """Return the deciding rule for each of some people, by their id."""
    rows: dict[int, list[AccessRow]] = {person.pk: [] for person in people}
    codenames = Access.values
    own = KnowledgeBaseUserAccess.objects.filter(
        content_object=knowledge_base, user__in=rows, permission__codename__in=codenames
    ).values_list("user_id", "permission__codename")
    name_of = {person.pk: str(person) for person in people}
    for user_id, codename in own:
        rows[user_id].append(AccessRow(Access(codename), name_of[user_id]))
    shared = list(
        KnowledgeBaseGroupAccess.objects.filter(
            content_object=knowledge_base, permission__codename__in=codenames
        )
        .order_by("group__name")
        .values_list("group_id", "group__name", "permission__codename")
    )
    members: dict[int, set[int]] = {}
    for group_id, user_id in User.groups.through.objects.filter(
        user__in=rows, group__in={group_id for group_id, _name, _codename in shared}
    ).values_list("group_id", "user_id"):
        members.setdefault(group_id, set()).add(user_id)
    for group_id, name, codename in shared:
        inside = rows if name == EVERYONE else members.get(group_id, ())
        for user_id in inside:
            rows[user_id].append(AccessRow(Access(codename), name))
    return {
        person.pk: decide(
            rows[person.pk],
            access,
            is_active=person.is_active,
            is_shared=knowledge_base.owner_id is None,
        )
        for person in people
    }


@dataclass(frozen=True, slots=True)
class GroupAccess:
    """What a group holds of a knowledge base, and how many active people are in it."""

    name: str
    accesses: tuple[Access, ...]
    people: int

    @property
    def is_denied(self) -> bool:
        """Whether its people see nothing."""
        return Access.DENY in self.accesses


def groups_with(knowledge_base: KnowledgeBase) -> list[GroupAccess]:
    """Return the groups that a grant or deny names, denies first."""
    accesses: dict[int, list[Access]] = {}
    for group_id, codename in KnowledgeBaseGroupAccess.objects.filter(
        content_object=knowledge_base, permission__codename__in=Access.values
    ).values_list("group_id", "permission__codename"):
        accesses.setdefault(group_id, []).append(Access(codename))
    active = models.Count("user", filter=models.Q(user__is_active=True))
    groups = Group.objects.filter(pk__in=accesses).annotate(people=active)
    everybody = User.objects.filter(is_active=True).count()
    found = [
        GroupAccess(
            name=group.name,
            accesses=tuple(each for each in Access if each in accesses[group.pk]),
            people=everybody if group.name == EVERYONE else group.people,
        )
        for group in groups
    ]
    return sorted(found, key=lambda each: (not each.is_denied, each.name.casefold()))


# --- Sources -------------------------------------------------------------------


def hindrance(source: Source) -> str:
    """Return why nobody finds a source whoever they are, as a sentence, or ""."""
    if not source.enabled:
        return _("It is switched off, so nobody finds it.")
    if source.expires_at is not None and source.expires_at <= timezone.now():
        return _("It expired on %(when)s, so nobody finds it.") % {
            "when": date_format(
                timezone.localtime(source.expires_at), "DATETIME_FORMAT"
            )
        }
    if not source.passages.exists():
        return _("It is not ready (%(state)s): nothing of it is indexed yet.") % {
            "state": source.get_state_display()
        }
    return ""


def explain_source(reader: Reader, source: Source) -> Decision:
    """Return whether a reader's searches find a source, and the rule that decides.

    First who the reader is, then what became of the source.
    """
    decision = explain(reader, source.knowledge_base)
    why = hindrance(source) if decision.allowed else ""
    return Decision(allowed=False, rule=why) if why else decision


# --- One person ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to "why can or can't this person?", for one way of asking."""

    way: str
    access: Access
    decision: Decision


def answers_about(
    person: User, knowledge_base: KnowledgeBase, source: Source | None = None
) -> list[Answer]:
    """Return the decision for a person: signed in, in lists, and by each live token."""

    def searched(reader: Reader) -> Decision:
        if source is not None:
            return explain_source(reader, source)
        return explain(reader, knowledge_base)

    reader = Reader.for_user(person)
    found = [Answer(_("Searches and reads it"), Access.SEARCH, searched(reader))]
    if source is None:
        listed = explain(reader, knowledge_base, Access.LIST)
        found.append(Answer(_("Finds it in lists"), Access.LIST, listed))
    tokens = ApiToken.objects.live().filter(owner=person)
    for token in tokens[:MOST_TOKENS]:
        way = _("With the token %(token)s") % {"token": token}
        found.append(Answer(way, Access.SEARCH, searched(reader_of(token))))
    return found
