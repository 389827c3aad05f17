"""Who may list and search which knowledge base, and why.

Grants and denies are rows of guardian's direct-foreign-key models, written with
guardian's API; the answer to "may this reader" comes from `resolve` alone. A reader's
knowledge bases are resolved once, before any query runs, and a deny beats every grant.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group
from django.db import models, transaction
from django.utils.translation import gettext as _
from guardian.shortcuts import assign_perm, remove_perm

from knowledge.models.audit import record

if TYPE_CHECKING:
    from knowledge.models import KnowledgeBase, User

# Holds every active person without a membership row, so that a person who joins
# tomorrow is in it.
EVERYONE = "Everyone signed in"


class Access(models.TextChoices):
    """What a row says about a knowledge base; the values are permission codenames."""

    LIST = "list_knowledgebase", "may see that it exists"
    SEARCH = "search_knowledgebase", "may search and read it"
    DENY = "deny_knowledgebase", "sees nothing of it"


# What a person needs to read a knowledge base, as `has_perm` takes it.
READING = frozenset({f"knowledge.{Access.LIST}", f"knowledge.{Access.SEARCH}"})


@dataclass(frozen=True, slots=True)
class Scope:
    """The knowledge bases of one reader, as ids.

    `listed` are those whose existence may be shown, `searchable` those whose passages
    may be read. Neither contains the other.
    """

    listed: frozenset[int]
    searchable: frozenset[int]


NOTHING = Scope(frozenset(), frozenset())


@dataclass(frozen=True)
class Reader:
    """Whoever a query runs for.

    `user_id` is the person, or the person an agent acts for; None is nobody, who sees
    nothing. `limit` holds the knowledge bases that a token is scoped to; None is no
    limit beyond the person's own. A reader lives as long as its request, and so does
    what was resolved for it.

    `acting_user_id` is the member of staff who really asks, where they see the portal
    as this person does. A reader that `recalls` searches what is remembered about the
    person, and nothing else; `conversation_id` then names the conversation it is in,
    which the query holds against the person's own, so that an id opens nothing by
    itself (S3-VIS-06).
    """

    user_id: int | None
    limit: frozenset[int] | None = None
    token_id: int | None = None
    is_agent: bool = False
    acting_user_id: int | None = None
    conversation_id: UUID | None = None
    recalls: bool = False
    # A client that is bound to knowledge bases may have the memory beside them.
    recalls_memory: bool = False

    @classmethod
    def for_user(cls, user: "AbstractBaseUser | AnonymousUser") -> "Reader":
        """Return the reader that a signed-in person is."""
        return cls(user_id=user.pk if user.is_authenticated else None)

    @cached_property
    def scope(self) -> Scope:
        """The knowledge bases in reach; one query, the first time it is asked."""
        return resolve(self)

    @property
    def searchable(self) -> frozenset[int]:
        """Ids of the knowledge bases whose passages this reader may read."""
        return self.scope.searchable

    @property
    def listed(self) -> frozenset[int]:
        """Ids of the knowledge bases this reader may know of."""
        return self.scope.listed

    @property
    def has_memory(self) -> bool:
        """Whether what is remembered about the person is within this reader's scope."""
        return self.acting_user_id is None and (
            self.limit is None or self.recalls_memory
        )

    def recalling(self, conversation_id: UUID | None = None) -> "Reader":
        """Return the reader of what is remembered about this person.

        A conversation adds what was said in it. A token that is scoped to knowledge
        bases remembers nothing, and neither does who sees the portal as another does.
        """
        return replace(self, conversation_id=conversation_id, recalls=True)


def access_rows(user_id: int) -> list[tuple[int, str]]:
    """Return (knowledge base id, codename) for every row that concerns a person."""
    from knowledge.models import KnowledgeBaseGroupAccess, KnowledgeBaseUserAccess, User

    active = User.objects.filter(pk=user_id, is_active=True)
    memberships = User.groups.through.objects.filter(user__in=active)
    # Nobody can be granted what is remembered about a person.
    is_shared = models.Q(content_object__owner__isnull=True)
    own = KnowledgeBaseUserAccess.objects.filter(is_shared, user__in=active)
    # Each part finds its rows by an index; as one condition they would read every row
    # of every group.
    of_groups = KnowledgeBaseGroupAccess.objects.filter(is_shared)
    parts = (
        of_groups.filter(group__in=memberships.values("group_id")),
        of_groups.filter(models.Exists(active), group__name=EVERYONE),
    )
    fields = ("content_object_id", "permission__codename")
    return list(
        own.values_list(*fields).union(
            *(part.values_list(*fields) for part in parts), all=True
        )
    )


def resolve(reader: Reader) -> Scope:
    """Return what a reader may list and search: grants, minus denies, within the limit.

    Absence of a grant is no. A superuser is a person like anyone here (D27). An error
    of the database is let through: a request fails rather than sees too much.
    """
    if reader.user_id is None:
        return NOTHING
    if reader.recalls:
        return Scope(frozenset(), memory_of(reader))
    found: dict[str, set[int]] = {access: set() for access in Access}
    for knowledge_base_id, codename in access_rows(reader.user_id):
        if codename in found:
            found[codename].add(knowledge_base_id)
    listed = found[Access.LIST] - found[Access.DENY]
    searchable = found[Access.SEARCH] - found[Access.DENY]
    if reader.limit is not None:
        listed &= reader.limit
        searchable &= reader.limit
    return Scope(frozenset(listed), frozenset(searchable))


def memory_of(reader: Reader) -> frozenset[int]:
    """Return the knowledge base of what is remembered about a reader, or nothing."""
    from knowledge.models import KnowledgeBase

    if not reader.has_memory:
        return frozenset()
    own = KnowledgeBase.objects.filter(owner=reader.user_id, owner__is_active=True)
    return frozenset(own.values_list("pk", flat=True))


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer to "may this reader", with the rule that decided it.

    `rule` is a sentence for people; `allowed` is the answer.
    """

    allowed: bool
    rule: str

    def __bool__(self) -> bool:
        """Return the answer."""
        return self.allowed


def explain(
    reader: Reader, knowledge_base: "KnowledgeBase", access: Access = Access.SEARCH
) -> Decision:
    """Return whether a reader may list or search a knowledge base, and the rule.

    The order is the resolver's: an inactive person, a deny, the token's scope, a
    grant, and no grant.
    """
    from knowledge.models import User

    user = None
    if reader.user_id is not None:
        user = User.objects.filter(pk=reader.user_id).first()
    if user is None:
        return decide((), access, is_active=False)
    return decide(
        matching_rows(user, knowledge_base),
        access,
        is_active=user.is_active,
        is_shared=knowledge_base.owner_id is None,
        in_limit=reader.limit is None or knowledge_base.pk in reader.limit,
    )


def decide(
    rows: Sequence["AccessRow"],
    access: Access,
    *,
    is_active: bool = True,
    is_shared: bool = True,
    in_limit: bool = True,
) -> Decision:
    """Return what the rows that concern a person mean for one knowledge base.

    `is_shared` is false for what is remembered about a person, `in_limit` for a token
    that is not scoped to the knowledge base.
    """
    if not is_active:
        return Decision(
            allowed=False, rule=_("This person is not active, so sees nothing.")
        )
    if not is_shared:
        return Decision(
            allowed=False,
            rule=_("It holds what is remembered about a person; nothing can grant it."),
        )
    denies = [row for row in rows if row.access == Access.DENY]
    if denies:
        return Decision(
            allowed=False,
            rule=_("Denied to %(holder)s. A deny beats every grant.")
            % {"holder": denies[0].holder},
        )
    if not in_limit:
        return Decision(
            allowed=False, rule=_("The token is not scoped to this knowledge base.")
        )
    grants = [row for row in rows if row.access == access]
    if grants:
        return Decision(
            allowed=True,
            rule=_("Granted to %(holder)s.") % {"holder": grants[0].holder},
        )
    return Decision(
        allowed=False,
        rule=_("Nothing grants this, to the person or to any of their groups."),
    )


@dataclass(frozen=True, slots=True)
class AccessRow:
    """A grant or deny as it is shown: what, to whom."""

    access: Access
    holder: str


def matching_rows(user: "User", knowledge_base: "KnowledgeBase") -> list[AccessRow]:
    """Return the rows of one knowledge base that concern a person, own ones first."""
    from knowledge.models import KnowledgeBaseGroupAccess, KnowledgeBaseUserAccess

    codenames = [str(access) for access in Access]
    own = KnowledgeBaseUserAccess.objects.filter(
        content_object=knowledge_base, user=user, permission__codename__in=codenames
    ).values_list("permission__codename", flat=True)
    shared = (
        KnowledgeBaseGroupAccess.objects.filter(
            models.Q(group__user=user) | models.Q(group__name=EVERYONE),
            content_object=knowledge_base,
            permission__codename__in=codenames,
        )
        .order_by("group__name")
        .values_list("permission__codename", "group__name")
        .distinct()
    )
    return [AccessRow(Access(codename), str(user)) for codename in own] + [
        AccessRow(Access(codename), group) for codename, group in shared
    ]


def everyone() -> Group:
    """Return the group that stands for every active person."""
    return Group.objects.get(name=EVERYONE)


@transaction.atomic
def grant(
    knowledge_base: "KnowledgeBase",
    accesses: Iterable[Access],
    *,
    to: "User | Group",
    actor: "User | None",
) -> None:
    """Let a person or group list or search a knowledge base; audited."""
    for access in accesses:
        assign_perm(str(access), to, knowledge_base)
        record(
            actor,
            "denied" if access is Access.DENY else "granted",
            knowledge_base,
            access=str(access),
            holder=str(to),
        )


def deny(
    knowledge_base: "KnowledgeBase", *, to: "User | Group", actor: "User | None"
) -> None:
    """Remove a knowledge base from a person's or group's sight; beats every grant."""
    grant(knowledge_base, [Access.DENY], to=to, actor=actor)


@transaction.atomic
def withdraw(
    knowledge_base: "KnowledgeBase",
    accesses: Iterable[Access],
    *,
    holder: "User | Group",
    actor: "User | None",
) -> None:
    """Take grants or denies away again; effective at the holder's next request."""
    for access in accesses:
        remove_perm(str(access), holder, knowledge_base)
        record(
            actor,
            "withdrew",
            knowledge_base,
            access=str(access),
            holder=str(holder),
        )


class KnowledgeBaseBackend(BaseBackend):
    """Answers `user.has_perm(permission, knowledge_base)` from the resolver (D29)."""

    def has_perm(
        self, user_obj: Any, perm: str, obj: models.Model | None = None
    ) -> bool:
        """Return whether a grant stands; any other object or permission is not ours."""
        from knowledge.models import KnowledgeBase

        if not isinstance(obj, KnowledgeBase):
            return False
        reader = Reader.for_user(user_obj)
        if perm == f"knowledge.{Access.SEARCH}":
            return obj.pk in reader.searchable
        if perm == f"knowledge.{Access.LIST}":
            return obj.pk in reader.listed
        return False
