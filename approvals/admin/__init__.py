"""The staff's pages of the gate: the queue of pending questions, and its figures."""

from approvals.admin import queue

__all__ = ["queue"]
