"""The verbs of the deployment's settings: propose a change, save it, go back.

Each is one transaction with its audit entry. The caller has checked that the actor may.
"""

from collections.abc import Mapping

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from knowledge.actions import ActionError
from knowledge.models import User
from knowledge.models.audit import record
from retrieval.models import TuningProposal, TuningRecord
from retrieval.tuning import (
    Tuning,
    contradictions,
    current,
    differing,
    from_environment,
    values_of,
    with_record,
    with_values,
)


class TuningError(ActionError):
    """Settings that cannot be saved; the message says why."""


def checked(tuning: Tuning) -> Tuning:
    """Return settings that do not contradict each other; raises TuningError."""
    if sentences := contradictions(tuning):
        raise TuningError(" ".join(sentences))
    return tuning


def propose_tuning(
    values: Mapping[str, object],
    *,
    actor: User,
    note: str = "",
    restored: int | None = None,
) -> TuningProposal:
    """Keep a change of the settings that hold, to be tried and saved.

    `values` are by name; what they lack stays as it is. Raises TuningError where they
    contradict each other or change nothing.
    """
    now = current()
    tuning = checked(with_values(now, values))
    if not differing(tuning, now):
        raise TuningError(_("These are the settings that hold already."))
    return TuningProposal.objects.create(
        values=values_of(tuning),
        based_on=now.version,
        restored=restored,
        note=note,
        created_by=actor,
    )


def propose_return(version: int, *, actor: User) -> TuningProposal:
    """Propose the settings of an earlier version; 0 is the environment alone."""
    return propose_tuning(
        values_of(tuning_at(version)),
        actor=actor,
        note=_("Back to version %(version)s.") % {"version": version},
        restored=version,
    )


def tuning_at(version: int) -> Tuning:
    """Return the settings of a version over today's environment; raises TuningError."""
    if version == 0:
        return from_environment()
    row = TuningRecord.objects.at(version).first()
    if row is None:
        raise TuningError(_("There is no such version."))
    return with_record(row)


def proposed(proposal: TuningProposal) -> Tuning:
    """Return the settings of a proposal, numbered as the version they were made over."""
    return with_values(current(), proposal.values)


def save_tuning(
    proposal: TuningProposal, *, actor: User, lowers: tuple[str, ...] = ()
) -> TuningRecord:
    """Let the proposed settings hold from the next search on.

    `lowers` names the question sets whose figures they lower, which the actor has
    confirmed. Raises TuningError when other settings were saved meanwhile.
    """
    changed = TuningError(
        _("Other settings were saved meanwhile. Look at them, and enter yours again.")
    )
    with transaction.atomic():
        locked = TuningProposal.objects.select_for_update().get(pk=proposal.pk)
        now = current()
        if locked.saved_version is not None:
            raise TuningError(_("These settings were saved already."))
        if now.version != locked.based_on:
            raise changed
        tuning = checked(with_values(now, locked.values))
        before = values_of(now)
        changes = {
            name: [before[name], value]
            for name, value in differing(tuning, now).items()
        }
        try:
            with transaction.atomic():
                row = TuningRecord.objects.create(
                    version=now.version + 1,
                    values=differing(tuning, from_environment()),
                    changes=changes,
                    note=locked.note,
                    restored=locked.restored,
                    saved_by=actor,
                )
        except IntegrityError as error:
            raise changed from error
        locked.saved_version = row.version
        locked.save(update_fields=["saved_version"])
        record(
            actor,
            "changed" if locked.restored is None else "reverted",
            row,
            changes=changes,
            note=locked.note,
            restored=locked.restored,
            lowers=list(lowers),
        )
    return row
