"""Seeing the portal as another person sees it: for staff with the right, and audited.

It lives in the session alone, ends by itself, and changes nothing but whose eyes the
portal's pages are read with. What is remembered about the person stays closed.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from knowledge.models import User
from knowledge.models.audit import record
from knowledge.permissions import Reader

RIGHT = "knowledge.view_as"
SESSION_KEY = "viewing_as"
LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Viewing:
    """Who is seen as, who really looks, and until when."""

    person: User
    actor: User
    ends_at: datetime

    @property
    def reader(self) -> Reader:
        """The reader that the portal's pages answer to."""
        return Reader(user_id=self.person.pk, acting_user_id=self.actor.pk)


def may_view_as(actor: User) -> bool:
    """Return whether a person may see the portal as others do."""
    return actor.is_active and actor.is_staff and actor.has_perm(RIGHT)


@transaction.atomic
def begin(request: HttpRequest, person: User, *, actor: User, reason: str) -> Viewing:
    """Begin to see the portal as a person; the caller has checked the right."""
    ends_at = timezone.now() + timedelta(minutes=settings.STRATA_VIEW_AS_MINUTES)
    record(
        actor,
        "began viewing as",
        person,
        reason=reason[:LONGEST_REASON],
        until=ends_at.isoformat(),
    )
    request.session[SESSION_KEY] = {
        "person": person.pk,
        "actor": actor.pk,
        "ends_at": ends_at.isoformat(),
    }
    return Viewing(person, actor, ends_at)


def current(request: HttpRequest) -> Viewing | None:
    """Return what the request's session is in the middle of, if it still may be."""
    kept = request.session.get(SESSION_KEY)
    actor = request.user
    if kept is None or not isinstance(actor, User) or kept["actor"] != actor.pk:
        return None
    ends_at = parse_datetime(kept["ends_at"])
    person = User.objects.filter(pk=kept["person"], is_active=True).first()
    if (
        ends_at is None
        or ends_at <= timezone.now()
        or person is None
        or not may_view_as(actor)
    ):
        return None
    return Viewing(person, actor, ends_at)


def is_marked(request: HttpRequest) -> bool:
    """Return whether the session was begun to view as somebody, and not ended yet."""
    return SESSION_KEY in request.session


@transaction.atomic
def end(request: HttpRequest, *, by_itself: bool = False) -> None:
    """End it and say so in the audit; does nothing where nothing was begun."""
    kept = request.session.pop(SESSION_KEY, None)
    if kept is None:
        return
    actor = User.objects.filter(pk=kept["actor"]).first()
    person = User.objects.filter(pk=kept["person"]).first()
    if person is not None:
        record(actor, "stopped viewing as", person, by_itself=by_itself)
