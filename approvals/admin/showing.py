"""Pending questions as the queue shows them: in its list, and one with its story."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from approvals.gaps import duration_words
from approvals.models import PendingQuestion, Wording
from approvals.models.question import Gap, State
from approvals.queue import backlog_of, wanted_first
from knowledge.models import User

# From when on a question is shown as old.
OLD: Final = timedelta(days=7)

# The parts of the queue, in the order of their tabs.
TABS: Final[Mapping[str, tuple[str | Promise, tuple[str, ...]]]] = {
    "waiting": (gettext_lazy("Waiting"), ()),
    "approval": (gettext_lazy("To approve"), ("answered_at", "pk")),
    "mine": (gettext_lazy("Mine"), ()),
    "snoozed": (gettext_lazy("Snoozed"), ("snoozed_until", "pk")),
    "open": (gettext_lazy("Still open"), ("-asker_count", "-asked_count", "pk")),
    "answered": (gettext_lazy("Answered"), ("-approved_at", "-pk")),
    "ignored": (gettext_lazy("Ignored"), ("-last_asked_at", "-pk")),
    "duplicates": (gettext_lazy("Merged"), ("-last_asked_at", "-pk")),
}
# Parts whose questions wait for somebody, so that something can be done with several.
WORKED_ON: Final = {"waiting", "approval", "mine", "snoozed"}
# Tabs that are there with nothing in them.
ALWAYS: Final = {"waiting", "answered"}


@dataclass(frozen=True, slots=True)
class Tab:
    """A part of the queue, and how many questions are in it."""

    key: str
    label: str | Promise
    count: int
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Item:
    """A question in a list: how it was asked, since when it waits, who is at it.

    `until` is when one that is put off waits again.
    """

    pending: PendingQuestion
    url: str
    asked: str
    age: str
    is_old: bool
    state: str
    state_label: str
    writer: str
    is_current: bool = False
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure and what it says."""

    figure: str
    note: str


# --- The list ---------------------------------------------------------------------


def conditions(user: User) -> dict[str, Q]:
    """Return which questions are in which part of the queue."""
    waits = Q(state=State.PENDING)
    is_snoozed = Q(snoozed_until__gt=Now())
    return {
        "waiting": waits & Q(answer="") & ~is_snoozed,
        "approval": waits & ~Q(answer=""),
        "mine": waits & Q(assigned_to=user.pk),
        "snoozed": waits & Q(answer="") & is_snoozed,
        "open": Q(state=State.APPROVED, gap=Gap.OPEN),
        "answered": Q(state=State.APPROVED),
        "ignored": Q(state=State.IGNORED),
        "duplicates": Q(state=State.DUPLICATE),
    }


def part_with(pending: PendingQuestion) -> str:
    """Return the part of the queue that a question stands in."""
    if pending.state == State.IGNORED:
        return "ignored"
    if pending.state == State.DUPLICATE:
        return "duplicates"
    if pending.state == State.APPROVED:
        return "open" if pending.gap == Gap.OPEN else "answered"
    if pending.is_awaiting_approval:
        return "approval"
    return "snoozed" if is_put_off(pending) else "waiting"


def tabs_of(
    questions: QuerySet[PendingQuestion], user: User, current: str
) -> list[Tab]:
    """Return the parts of the queue that hold anything."""
    parts = conditions(user)
    counts = questions.order_by().aggregate(
        **{key: Count("pk", filter=part) for key, part in parts.items()}
    )
    listing = reverse("admin:approvals_pendingquestion_changelist")
    return [
        Tab(
            key=key,
            label=label,
            count=counts[key],
            url=listing if key == "waiting" else f"{listing}?show={key}",
            is_current=key == current,
        )
        for key, (label, _order) in TABS.items()
        if counts[key] or key in ALWAYS or key == current
    ]


def part_of(
    questions: QuerySet[PendingQuestion], user: User, show: str, words: str
) -> QuerySet[PendingQuestion]:
    """Return one part of the queue in its order, as far as it holds some words."""
    order = TABS[show][1]
    rows = (questions if order else wanted_first(user)).filter(conditions(user)[show])
    if words:
        rows = rows.filter(
            Q(question__icontains=words)
            | Q(answer__icontains=words)
            | Q(pk__in=Wording.objects.filter(text__icontains=words).values("pending"))
        )
    rows = rows.order_by(*order) if order else rows
    return rows.select_related("assigned_to", "locked_by")


def item_of(
    pending: PendingQuestion, user: User, words: str = "", *, is_current: bool = False
) -> Item:
    """Return a question as lists show it to a person."""
    page = reverse("admin:approvals_pendingquestion_change", args=[pending.pk])
    waited = timezone.now() - pending.first_asked_at
    state, label = state_of(pending)
    waits = pending.state == State.PENDING
    return Item(
        pending=pending,
        url=f"{page}{words}",
        asked=asked_words(pending),
        age=(_("waits %(time)s") if waits else _("asked %(time)s ago"))
        % {"time": duration_words(waited.total_seconds())},
        is_old=waits and waited > OLD,
        # That it waits is said by the tab that it stands under.
        state="" if state == "pending" else state,
        state_label=label,
        writer=writer_of(pending, user),
        is_current=is_current,
        until=pending.snoozed_until if waits and is_put_off(pending) else None,
    )


def asked_words(pending: PendingQuestion) -> str:
    """Return how often a question was asked, and by how many."""
    times = ngettext("asked once", "asked %(times)s times", pending.asked_count) % {
        "times": pending.asked_count
    }
    if pending.asker_count < 2:
        return times
    return _("%(times)s by %(people)s people") % {
        "times": times,
        "people": pending.asker_count,
    }


def state_of(pending: PendingQuestion) -> tuple[str, str]:
    """Return the shape and the word of what became of a question."""
    if pending.is_awaiting_approval:
        return "processing", _("Waits for approval")
    if pending.state == State.PENDING:
        return "pending", _("Waits for an answer")
    if pending.state == State.IGNORED:
        return "off", _("Ignored")
    if pending.state == State.DUPLICATE:
        return "off", _("Merged")
    if pending.gap == Gap.CLOSED:
        return "found", _("Answered, gap closed")
    if pending.gap == Gap.OPEN:
        return "partly", _("Answered, still open")
    return "processing", _("Answered, not asked again yet")


def is_put_off(pending: PendingQuestion) -> bool:
    """Return whether a question is out of sight for some time."""
    until = pending.snoozed_until
    return until is not None and until > timezone.now()


def writer_of(pending: PendingQuestion, user: User) -> str:
    """Name who is writing an answer now, "" where nobody else is."""
    until = pending.locked_until
    if pending.locked_by is None or pending.locked_by == user:
        return ""
    if until is None or until < timezone.now():
        return ""
    return str(pending.locked_by)


def summary_of(questions: QuerySet[PendingQuestion], user: User) -> list[Tile]:
    """Return how the queue stands: backlog and age are always in sight (S2-APR-09)."""
    backlog, since = backlog_of(user), timezone.now() - OLD
    tiles = [Tile(str(backlog.count), _("wait for an answer"))]
    if backlog.oldest_at is not None:
        waited = timezone.now() - backlog.oldest_at
        old = questions.filter(conditions(user)["waiting"], first_asked_at__lt=since)
        age = duration_words(waited.total_seconds())
        tiles.append(Tile(age, _("waits the oldest")))
        tiles.append(Tile(str(old.count()), _("wait longer than a week")))
    answered = questions.filter(first_approved_at__gte=since).count()
    tiles.append(Tile(str(answered), _("answered in the last seven days")))
    return tiles
