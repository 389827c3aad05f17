"""One act at the gate: who may, who was first, and which rows it holds.

Whoever holds several rows takes them in one order, so that people who act at once wait
and do not stop each other: the lock of filing, questions by their ids, the source of an
answer, the outboxes of clients by their ids. Where the database still ends an act for a
deadlock, it is done once more.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from django.db import OperationalError, transaction
from django.utils.translation import gettext as _

from approvals.errors import ConflictError, ForbiddenError
from approvals.models import PendingQuestion
from approvals.models.question import State
from approvals.rights import ANSWER, holder_of, refuse_foreign
from knowledge.models import User
from knowledge.models.audit import record

DEADLOCK: Final = "40P01"
# Another act held a row for too long.
LOCK_TIMEOUT: Final = "55P03"

Given = ParamSpec("Given")
Done = TypeVar("Done")


def once_more(verb: Callable[Given, Done]) -> Callable[Given, Done]:
    """Have a verb done again where the database ended it for a deadlock.

    The second time, and where a row was held for too long, it raises ConflictError. The
    verb is one transaction, of which nothing is left then.
    """

    @wraps(verb)
    def done(*args: Given.args, **kwargs: Given.kwargs) -> Done:
        try:
            return verb(*args, **kwargs)
        except OperationalError as error:
            if sqlstate_of(error) != DEADLOCK:
                refuse_busy(error)
                raise
        try:
            return verb(*args, **kwargs)
        except OperationalError as error:
            refuse_busy(error)
            raise

    return done


def sqlstate_of(error: OperationalError) -> str:
    """Return the database's code of an error, "" where it has none."""
    return str(getattr(error.__cause__, "sqlstate", None) or "")


def refuse_busy(error: OperationalError) -> None:
    """Raise ConflictError where the error is that others hold the same rows."""
    if sqlstate_of(error) in {DEADLOCK, LOCK_TIMEOUT}:
        raise ConflictError(
            _("Others are working on the same questions at this moment. Try again.")
        ) from error


@dataclass(frozen=True, slots=True)
class Act:
    """An act under way: a locked row, and the person as they are now."""

    row: PendingQuestion
    person: User


@contextmanager
def acting(
    pending: PendingQuestion,
    actor: User,
    tried: str,
    *,
    right: str = ANSWER,
    states: Collection[str] = (State.PENDING,),
    expected_version: int | None = None,
    beside: Collection[int | None] = (),
) -> Iterator[Act]:
    """Do one act on a locked question, in a transaction; saved at the end.

    `beside` are the ids of others that the act will lock. Raises ForbiddenError and
    ConflictError, both of which the audit keeps.
    """
    try:
        with transaction.atomic():
            lock_in_order([pending.pk, *beside])
            row = locked(pending)
            person = holder_of(actor, right)
            refuse_foreign(person, row)
            refuse_late(row, states, expected_version)
            yield Act(row, person)
            row.version += 1
            row.save()
    except (ForbiddenError, ConflictError) as refused:
        verb = "was refused"
        if isinstance(refused, ConflictError):
            verb = "came too late for"
        record(actor, verb, pending, act=tried)
        raise


def lock_in_order(keys: Collection[int | None]) -> None:
    """Hold questions, by their ids in order; None among them is nobody."""
    found = PendingQuestion.objects.select_for_update(of=("self",)).order_by("pk")
    list(found.filter(pk__in=[key for key in keys if key]).values_list("pk"))


def locked(pending: PendingQuestion) -> PendingQuestion:
    """Return a question as it is now, locked for this transaction."""
    return PendingQuestion.objects.select_for_update(of=("self",)).get(pk=pending.pk)


def refuse_late(
    row: PendingQuestion, states: Collection[str], expected_version: int | None
) -> None:
    """Raise ConflictError where a question is no longer what the sender saw."""
    if row.state not in states:
        raise ConflictError(
            _("This question is %(state)s by now. Look at it again.")
            % {"state": row.get_state_display()}
        )
    if expected_version is not None and row.version != expected_version:
        raise ConflictError(
            _("Somebody changed this question meanwhile. Look at it again.")
        )
