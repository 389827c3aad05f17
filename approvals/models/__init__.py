"""Gaps that wait for a person, who asked them, and who is told of their answers."""

from approvals.models.delivery import Delivery, Subscriber
from approvals.models.notification import Contact, Notification, ReceivedReply
from approvals.models.question import PendingQuestion
from approvals.models.wording import SettlingMark, Wording

__all__ = [
    "Contact",
    "Delivery",
    "Notification",
    "PendingQuestion",
    "ReceivedReply",
    "SettlingMark",
    "Subscriber",
    "Wording",
]
