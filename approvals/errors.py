"""Why an act at the gate is refused; each message is a sentence a person can act on."""

from knowledge.actions import ActionError


class ApprovalError(ActionError):
    """An act that cannot be done as it was sent."""


class ConflictError(ApprovalError):
    """Somebody else was quicker: what the act was about is no longer so (REL-W4)."""


class ForbiddenError(ApprovalError):
    """The person has no right to it, at this moment."""
