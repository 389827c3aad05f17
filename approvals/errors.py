"""Why an act at the gate is refused; each message is a sentence a person can act on."""

from collections.abc import Sequence

from approvals.privacy import Mark
from knowledge.actions import ActionError


class ApprovalError(ActionError):
    """An act that cannot be done as it was sent."""


class ConflictError(ApprovalError):
    """Somebody else was quicker: what the act was about is no longer so (REL-W4)."""


class ForbiddenError(ApprovalError):
    """The person has no right to it, at this moment."""


class PrivacyError(ApprovalError):
    """Personal details are left that nobody removed or keeps on purpose (S2-APR-08)."""

    def __init__(self, message: str, marks: Sequence[Mark]) -> None:
        super().__init__(message)
        self.marks = tuple(marks)
