"""The staff's pages of the gate: pending questions, gaps, and who is told of answers."""

from approvals.admin import contacts, queue, subscribers

__all__ = ["contacts", "queue", "subscribers"]
