"""Pending questions for the tests of the pages that show them."""

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from approvals.models import PendingQuestion, Wording
from approvals.models.question import Channel, State
from knowledge.models import KnowledgeBase, User


def ago(**span: float) -> datetime:
    """Return a time that has passed, by days, hours or minutes."""
    return timezone.now() - timedelta(**span)


def waiting(
    text: str,
    *bases: KnowledgeBase,
    by: User | None = None,
    at: datetime | None = None,
    wordings: tuple[str, ...] = (),
    **fields: Any,
) -> PendingQuestion:
    """Return a question that waits, asked of knowledge bases, with its wordings."""
    at = at or ago(hours=3)
    pending = PendingQuestion.objects.create(
        **{
            "question": text,
            "language": "en",
            "channel": Channel.PORTAL,
            "knowledge_base_ids": sorted(base.pk for base in bases),
            "first_asked_at": at,
            "last_asked_at": at,
            **fields,
        }
    )
    for number, words in enumerate((text, *wordings)):
        Wording.objects.create(
            pending=pending,
            text=words,
            digest=hashlib.sha256(words.encode()).hexdigest(),
            language=pending.language,
            channel=pending.channel,
            asker=by,
            caller=f"person:{by.pk if by else number}",
            at=at + timedelta(minutes=number),
        )
    return pending


def approved(text: str, *bases: KnowledgeBase, **fields: Any) -> PendingQuestion:
    """Return a question that was answered; its source is the caller's affair."""
    now = timezone.now()
    return waiting(
        text,
        *bases,
        **{
            "first_approved_at": fields.get("approved_at", now),
            "state": State.APPROVED,
            "answer": "It is in the cabinet beside the lift.",
            "question_as_answered": text,
            "answered_at": now,
            "approved_at": now,
            **fields,
        },
    )
