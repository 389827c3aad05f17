"""The cast: everybody who may knock at a door, each with one reason to be let in or not.

The handbook is granted to the group of members; the vault to the insider alone, so no
other person may ever meet a word of it.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, fields
from datetime import timedelta
from http.cookies import SimpleCookie

from django.contrib.auth.models import Group
from django.test import Client

from knowledge.models import AgentClient, ApiToken, KnowledgeBase, User
from knowledge.models.token import TokenKind
from knowledge.permissions import Access, Reader, deny, grant
from knowledge.tokens import (
    create_agent_token,
    create_token,
    reader_of,
    revoke_token,
)
from tests.factories import GroupFactory, StaffFactory, UserFactory
from tests.stored_corpus import Corpus

BOTH = (Access.LIST, Access.SEARCH)


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody at the door.

    `token` is what an API client sends; without one, `user` is signed in in a browser.
    """

    name: str
    user: User | None = None
    token: str = ""
    token_row: ApiToken | None = None

    def client(self, cookies: SimpleCookie | None = None) -> Client:
        """Return a client that acts as this one and answers with what it got.

        `cookies` are those of an earlier sign-in, which is then not made again.
        """
        client = Client(raise_request_exception=False)
        if self.token:
            client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {self.token}"
        elif cookies is not None:
            client.cookies = deepcopy(cookies)
        elif self.user is not None:
            client.force_login(self.user)
        return client

    @property
    def reader(self) -> Reader:
        """The reader that the product's own code takes this one for."""
        if self.token_row is not None:
            return reader_of(self.token_row)
        return Reader(user_id=self.user.pk if self.user is not None else None)


@dataclass(frozen=True, slots=True)
class Cast:
    """All actors. `members` is the group that the handbook is granted to.

    The staff are two editors of different knowledge bases, an approver of the handbook,
    an auditor who may read no document, and a superuser.
    """

    members: Group
    anonymous: Actor
    ungranted: Actor
    lister: Actor
    granted: Actor
    denied: Actor
    inactive: Actor
    other_staff: Actor
    editor: Actor
    approver: Actor
    auditor: Actor
    superuser: Actor
    token_in_scope: Actor
    token_out_of_scope: Actor
    agent_token: Actor
    other_agent: Actor
    expired_token: Actor
    revoked_token: Actor
    insider: Actor

    def __iter__(self) -> Iterator[Actor]:
        """Yield the actors."""
        for field in fields(self):
            each = getattr(self, field.name)
            if isinstance(each, Actor):
                yield each

    def __getitem__(self, name: str) -> Actor:
        """Return an actor by name."""
        found: Actor = getattr(self, name)
        return found


def person(name: str, **fields: object) -> Actor:
    """Return a reader."""
    return Actor(name, UserFactory(username=name, **fields))


def with_token(
    name: str, owner: User, *, kind: str = TokenKind.PERSON, bases: object = None
) -> Actor:
    """Return a client that holds a token of `owner`.

    An agent's belongs to a client of its own, bound to `bases`, or to all there are.
    """
    if kind == TokenKind.AGENT_CLIENT:
        client = AgentClient.objects.create(owner=owner, name=name, recalls_memory=True)
        client.knowledge_bases.set(
            KnowledgeBase.objects.all() if bases is None else bases  # type: ignore[arg-type]
        )
        row, token = create_agent_token(client, name=name, actor=owner)
        return Actor(name, owner, token, row)
    row, token = create_token(
        owner=owner,
        name=name,
        kind=kind,
        knowledge_bases=bases,  # type: ignore[arg-type]
        actor=owner,
    )
    return Actor(name, owner, token, row)


def gather(corpus: Corpus) -> Cast:
    """Make the cast around three knowledge bases."""
    members = GroupFactory(name="Members")
    grant(corpus.handbook, BOTH, to=members, actor=None)

    granted = person("granted")
    denied = person("denied")
    inactive = person("inactive", is_active=False)
    members.user_set.add(granted.user, denied.user, inactive.user)
    deny(corpus.handbook, to=denied.user, actor=None)

    lister = person("lister")
    grant(corpus.handbook, [Access.LIST], to=lister.user, actor=None)

    other_staff = Actor(
        "other_staff", StaffFactory(username="other_staff", groups=["Editor"])
    )
    grant(corpus.branches, BOTH, to=other_staff.user, actor=None)
    editor = Actor("editor", StaffFactory(username="editor", groups=["Editor"]))
    grant(corpus.handbook, BOTH, to=editor.user, actor=None)
    approver = Actor("approver", StaffFactory(username="approver", groups=["Approver"]))
    grant(corpus.handbook, BOTH, to=approver.user, actor=None)
    auditor = Actor("auditor", StaffFactory(username="auditor", groups=["Auditor"]))
    superuser = Actor(
        "superuser", StaffFactory(username="superuser", is_superuser=True)
    )

    insider = person("insider")
    grant(corpus.vault, BOTH, to=insider.user, actor=None)

    expired = with_token("expired_token", granted.user)
    ApiToken.objects.filter(pk=expired.token_row.pk).update(
        expires_at=expired.token_row.created_at - timedelta(seconds=1)
    )
    revoked = with_token("revoked_token", granted.user)
    revoke_token(revoked.token_row, actor=granted.user)
    return Cast(
        members=members,
        anonymous=Actor("anonymous"),
        ungranted=person("ungranted"),
        lister=lister,
        granted=granted,
        denied=denied,
        inactive=inactive,
        other_staff=other_staff,
        editor=editor,
        approver=approver,
        auditor=auditor,
        superuser=superuser,
        token_in_scope=with_token(
            "token_in_scope", granted.user, bases=[corpus.handbook]
        ),
        token_out_of_scope=with_token(
            "token_out_of_scope", granted.user, bases=[corpus.branches]
        ),
        agent_token=with_token(
            "agent_token", granted.user, kind=TokenKind.AGENT_CLIENT
        ),
        other_agent=with_token("other_agent", lister.user, kind=TokenKind.AGENT_CLIENT),
        expired_token=expired,
        revoked_token=revoked,
        insider=insider,
    )
