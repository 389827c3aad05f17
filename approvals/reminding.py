"""What is told without anybody's act: reminders, what has grown old, summaries.

All of it runs now and then, in any number of workers, and says each thing once.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from approvals.models import Contact, Notification, PendingQuestion
from approvals.models.notification import Event, Pace
from approvals.notifying import notifications, write
from approvals.rights import Rights
from knowledge.models import WorkerBeat
from knowledge.vitals import leave_sign

# A summary that is due a little early goes out with the round that finds it.
_PACES: Final = {
    Pace.DAILY: timedelta(hours=23, minutes=30),
    Pace.WEEKLY: timedelta(days=6, hours=23, minutes=30),
}
# Above the rounds of first messages, which are versions and revisions.
_FIRST_REMINDER: Final = 1_000_000
# How often it is looked what is due, and the sign that is left of it.
_EVERY: Final = timedelta(hours=1)
_BEAT: Final = "reminding"


def is_due() -> bool:
    """Tell whether it is time to look again."""
    since = timezone.now() - _EVERY
    return not WorkerBeat.objects.filter(name=_BEAT, at__gte=since).exists()


def remind_in_time() -> None:
    """Look what is due, at most once an hour."""
    if is_due():
        leave_sign(_BEAT)
        remind()


def remind() -> None:
    """Write the reminders, escalations and summaries that are due.

    People and their rights are looked up once for all questions; each is looked up
    again when its message is sent.
    """
    now, rights = timezone.now(), Rights()
    live = Contact.objects.live()
    each, takers = live.filter(pace=Pace.EACH), live.filter(takes_escalations=True)
    told, chiefs = list(each), list(takers)
    waiting = (
        PendingQuestion.objects.open()
        .filter(Q(snoozed_until=None) | Q(snoozed_until__lte=now))
        .select_related("source", "layer")
        .order_by("pk")
    )
    due = waiting.filter(first_asked_at__lte=now - _days(settings.STRATA_REMIND_DAYS))
    old = waiting.filter(first_asked_at__lte=now - _days(settings.STRATA_ESCALATE_DAYS))
    write(
        [
            *(row for pending in due for row in reminders(pending, told, rights)),
            *(row for pending in old for row in escalations(pending, chiefs, rights)),
        ]
    )
    for contact in live.exclude(pace=Pace.EACH):
        summarise(contact)


def reminders(
    pending: PendingQuestion, contacts: Iterable[Contact], rights: Rights
) -> list[Notification]:
    """Remind of one question, once for each time that its age reaches the days again.

    Whoever it is assigned to is reminded alone.
    """
    holder = pending.assigned_to_id
    age = timezone.now() - pending.first_asked_at
    return notifications(
        [each for each in contacts if holder in {None, each.user_id}],
        pending,
        Event.AWAITING if pending.is_awaiting_approval else Event.REMINDER,
        _FIRST_REMINDER
        + 1_000 * pending.revision
        + age // _days(settings.STRATA_REMIND_DAYS),
        rights,
    )


def escalations(
    pending: PendingQuestion, contacts: Iterable[Contact], rights: Rights
) -> list[Notification]:
    """Tell those who take what grows old, once, whoever has the question."""
    return notifications(contacts, pending, Event.ESCALATED, pending.revision, rights)


@transaction.atomic
def summarise(contact: Contact) -> None:
    """Write a contact's summary, if it is time."""
    now = timezone.now()
    before = now - _PACES[Pace(contact.pace)]
    is_due = Q(digest_at=None) | Q(digest_at__lte=before)
    if Contact.objects.filter(is_due, pk=contact.pk).update(digest_at=now):
        Notification.objects.create(contact=contact, event=Event.DIGEST)


def _days(count: int) -> timedelta:
    """Return so many days."""
    return timedelta(days=count)
