"""From asks that found nothing to pending questions: one for each gap."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.utils.crypto import salted_hmac

from approvals.acting import lock_in_order, locked, once_more
from approvals.counting import COUNTS, count_again
from approvals.models import PendingQuestion, Subscriber, Wording
from approvals.models.notification import Event
from approvals.models.question import Channel, Gap, State
from approvals.notifying import notify
from knowledge.language import language_of
from knowledge.models.source import SourceState
from knowledge.terms import LANGUAGES
from retrieval.models import Interaction
from retrieval.models.log import Door

_WORD = re.compile(r"\w+")
# Whoever files waits for whoever files: the same words never make two questions.
LOCK = "SELECT pg_advisory_xact_lock(hashtext('pending questions'))"
# What the hashes of callers are made with, beside the portal's key.
CALLERS = "approvals.callers"


@dataclass(frozen=True, slots=True)
class Ask:
    """One ask, as it is kept: its words are scrubbed already (R16).

    `knowledge_base_ids` is the resolved list, sorted. `call` names the conversation or
    turn in which an agent asked, so that its callers can be counted.
    """

    text: str
    at: datetime
    channel: Channel
    knowledge_base_ids: tuple[int, ...]
    asker_id: int | None
    client_id: int | None = None
    call: str = ""
    interaction_id: int | None = None
    vector: bytes | None = None
    space: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of its words, however they are written, and of the list."""
        words = " ".join(_WORD.findall(self.text.casefold()))
        key = f"{words or self.text}|{self.knowledge_base_ids}"
        return hashlib.sha256(key.encode()).hexdigest()

    @property
    def language(self) -> str:
        """The language that it seems to be in, or ""."""
        return language_of(self.text, LANGUAGES)

    @property
    def caller(self) -> str:
        """Who asked, for counting: a person, or somebody whom an agent talked to.

        A keyed hash, which stays when the asker's name is taken off a wording.
        """
        name = f"client:{self.client_id}:{self.call}"
        if self.client_id is None:
            name = f"person:{self.asker_id}"
        return salted_hmac(CALLERS, name, algorithm="sha256").hexdigest()


def ask_of(interaction: Interaction) -> Ask:
    """Return an interaction as an ask."""
    call = interaction.conversation_id or interaction.turn_id or ""
    return Ask(
        text=interaction.question,
        at=interaction.at,
        channel=channel_of(interaction),
        knowledge_base_ids=tuple(sorted(interaction.knowledge_base_ids)),
        asker_id=interaction.owner_id,
        client_id=interaction.client_id,
        call=str(call),
        interaction_id=interaction.pk,
    )


def channel_of(interaction: Interaction) -> Channel:
    """Return the channel of an interaction: an agent's is what its client is set to."""
    if interaction.door == Door.PORTAL:
        return Channel.PORTAL
    known = Subscriber.objects.filter(client=interaction.client_id).first()
    return Channel(known.channel) if known is not None else Channel.API


@once_more
@transaction.atomic
def file_asks(
    asks: Sequence[Ask], *, onto: PendingQuestion | None = None
) -> tuple[PendingQuestion, bool]:
    """File one gap's wordings, oldest first; return its question and whether it is new.

    `onto` is the question that an earlier wording of the same chain was filed under.
    Words that wait already, over the same list, count for the question that is there.
    An interaction is filed once, however often this is called.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
    filed = filed_already(asks)
    known = filed or onto or waiting_for(asks)
    row, counted = held(known or new_question(asks[0]))
    for ask in asks:
        file_wording(ask, row)
    if not row.question:
        # Its own words were past their time; it is asked in these by now.
        row.question, row.language = asks[0].text, asks[0].language
    for each in {row.pk: row, counted.pk: counted}.values():
        count_again(each)
        each.save(update_fields=[*COUNTS, "question", "language"])
    if known is None:
        notify(counted, Event.ASKED)
    return counted, known is None


def held(row: PendingQuestion) -> tuple[PendingQuestion, PendingQuestion]:
    """Return a question and the one that it counts for, locked for this transaction."""
    lock_in_order([row.pk, row.original_id])
    now = locked(row)
    return now, locked(now.original) if now.original is not None else now


def filed_already(asks: Sequence[Ask]) -> PendingQuestion | None:
    """Return the question under which one of the interactions was filed."""
    ids = [ask.interaction_id for ask in asks if ask.interaction_id is not None]
    return PendingQuestion.objects.filter(wordings__interaction__in=ids).first()


def waiting_for(asks: Sequence[Ask]) -> PendingQuestion | None:
    """Return a question that was asked in the same words over the same list.

    One that is ignored stays so.
    """
    last = max(ask.at for ask in asks)
    alike = PendingQuestion.objects.filter(
        wordings__digest__in=[ask.digest for ask in asks]
    ).select_related("source", "original__source")
    for each in alike.order_by("-last_asked_at").distinct():
        root = each.original or each
        if root.state != State.APPROVED or answers(root, last):
            return each
    return None


def answers(row: PendingQuestion, asked_at: datetime) -> bool:
    """Tell whether an approved question's answer is one to what was asked at a time.

    It is until it is found: what is asked after that, and finds nothing, is a gap anew.
    An answer that could not be taken in is none.
    """
    if row.gap == Gap.CLOSED:
        found_at = row.gap_checked_at or row.approved_at
        return found_at is not None and asked_at <= found_at
    return row.source is None or row.source.state != SourceState.FAILED


def new_question(ask: Ask) -> PendingQuestion:
    """Make a pending question of its first wording."""
    return PendingQuestion.objects.create(
        question=ask.text,
        language=ask.language,
        channel=ask.channel,
        knowledge_base_ids=list(ask.knowledge_base_ids),
        first_asked_at=ask.at,
        last_asked_at=ask.at,
    )


def file_wording(ask: Ask, pending: PendingQuestion | None) -> None:
    """Keep a wording, once for each interaction."""
    fields = {
        "pending": pending,
        "text": ask.text,
        "digest": ask.digest,
        "language": ask.language,
        "channel": ask.channel,
        "asker_id": ask.asker_id,
        "client_id": ask.client_id,
        "caller": ask.caller,
        "at": ask.at,
        "vector": ask.vector,
        "space": ask.space,
    }
    if ask.interaction_id is None:
        Wording.objects.create(**fields)
        return
    wording, is_new = Wording.objects.get_or_create(
        interaction_id=ask.interaction_id, defaults=fields
    )
    if not is_new and wording.pending_id is None and pending is not None:
        # Its asker wants a person all the same.
        Wording.objects.filter(pk=wording.pk).update(pending=pending)
