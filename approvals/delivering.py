"""Telling agent clients of approved answers: each client of each one once (R17)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from approvals.models import Delivery, PendingQuestion, Subscriber
from approvals.models.delivery import DeliveryKind
from knowledge.models import AgentClient, Document
from knowledge.permissions import Reader


def reader_of_client(client: AgentClient) -> Reader:
    """Return the reader that a client is now, its owner's list within its bindings."""
    bound = frozenset(client.knowledge_bases.values_list("pk", flat=True))
    return Reader(user_id=client.owner_id, limit=bound, is_agent=True)


def clients_that_see(knowledge_base_id: int) -> list[AgentClient]:
    """Return the agent clients that hold a knowledge base now (REL-W8)."""
    bound = AgentClient.objects.filter(knowledge_bases=knowledge_base_id)
    return [
        client
        for client in bound.order_by("pk")
        if knowledge_base_id in reader_of_client(client).searchable
    ]


def announce(row: PendingQuestion) -> None:
    """Queue the approved answer that is found now for each client that may see it.

    The caller holds the row. Announcing a revision twice changes nothing.
    """
    if row.source is None or row.announced_revision == row.revision:
        return
    last = last_kinds(row)
    seeing = clients_that_see(row.source.knowledge_base_id)
    holding = {pk for pk, kind in last.items() if kind != DeliveryKind.WITHDRAWN}
    fresh = [each for each in seeing if each.pk not in holding]
    again = [each for each in seeing if each.pk in holding]
    # Its source was moved to where they may not see it.
    lost = holding - {each.pk for each in seeing}
    add(row, fresh, DeliveryKind.ANSWER)
    add(row, again, DeliveryKind.CHANGED)
    add(row, AgentClient.objects.filter(pk__in=lost), DeliveryKind.WITHDRAWN)
    mark_announced(row)


def last_kinds(row: PendingQuestion) -> dict[int, str]:
    """Return what each client was told last of a question, by the client's id."""
    told = Delivery.objects.filter(pending=row).order_by("revision")
    return dict(told.values_list("client_id", "kind"))


def announce_withdrawal(row: PendingQuestion) -> None:
    """Tell whoever was told of an answer that it is withdrawn; the caller holds it.

    Also a client that may not see the knowledge base any more: it is told no word.
    """
    last = last_kinds(row)
    holding = {pk for pk, kind in last.items() if kind != DeliveryKind.WITHDRAWN}
    add(row, AgentClient.objects.filter(pk__in=holding), DeliveryKind.WITHDRAWN)
    mark_announced(row)


def mark_announced(row: PendingQuestion) -> None:
    """Keep that this revision was announced, so that earlier ones are overtaken."""
    row.announced_revision = row.revision
    PendingQuestion.objects.filter(pk=row.pk).update(announced_revision=row.revision)


@transaction.atomic
def add(row: PendingQuestion, clients: Iterable[AgentClient], kind: str) -> None:
    """Write one delivery for each client, numbered on from its last one.

    Its number becomes visible with the end of the lock, so that no reader ever sees a
    later one before an earlier one.
    """
    for client in clients:
        Subscriber.objects.get_or_create(client=client)
        subscriber = Subscriber.objects.select_for_update().get(client=client)
        subscriber.last_sequence += 1
        subscriber.save(update_fields=["last_sequence"])
        Delivery.objects.create(
            client=client,
            pending=row,
            revision=row.revision,
            kind=kind,
            sequence=subscriber.last_sequence,
        )


# --- Handing out --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """One delivery as it is handed out; a withdrawal has no words.

    `entry` is the question's public id, `question` the title under which it is
    published, `answer` the text that is in the corpus now.
    """

    delivery_id: UUID
    sequence: int
    kind: str
    entry: UUID
    revision: int
    question: str = ""
    answer: str = ""
    knowledge_base: str = ""
    layer: str = ""
    ref: str = ""
    announced_at: datetime | None = None

    @property
    def payload(self) -> dict[str, Any]:
        """What a program is sent of it, pulled or pushed."""
        at = self.announced_at
        return {
            "delivery_id": str(self.delivery_id),
            "sequence": self.sequence,
            "kind": self.kind,
            "entry": str(self.entry),
            "revision": self.revision,
            "question": self.question,
            "answer": self.answer,
            "knowledge_base": self.knowledge_base,
            "layer": self.layer,
            "ref": self.ref,
            "announced_at": at.isoformat() if at is not None else None,
        }


@dataclass(frozen=True, slots=True)
class Page:
    """Deliveries in their order. `next_after` is the cursor behind them."""

    told: tuple[Told, ...]
    next_after: int
    has_more: bool


def deliveries_after(
    client: AgentClient, reader: Reader, after: int | None, count: int
) -> Page:
    """Return what a client is told next, from behind a cursor.

    Without one, from behind what it has acknowledged. Asking twice gives the same.
    """
    rows = Delivery.objects.filter(client=client).order_by("sequence")
    if after is None:
        waiting = rows.filter(acknowledged_at=None).first()
        last = rows.last()
        if waiting is not None:
            after = waiting.sequence - 1
        else:
            after = last.sequence if last is not None else 0
    told: list[Told] = []
    while True:
        batch = list(rows.filter(sequence__gt=after)[: count + 1])
        told = handed_out(batch[:count], reader)
        after = batch[:count][-1].sequence if batch else after
        has_more = len(batch) > count
        if told or not has_more:
            return Page(tuple(told), after, has_more)


def handed_out(batch: Sequence[Delivery], reader: Reader) -> list[Told]:
    """Return what is told of some deliveries at this moment (REL-W8).

    Left out are those that a later revision has overtaken, and those whose answer the
    reader may not search now. The words are those in the corpus: a change that waits
    for its approval is in none of them.
    """
    keys = [each.pk for each in batch]
    rows = (
        Delivery.objects.current()
        .filter(pk__in=keys)
        .select_related("pending")
        .order_by("sequence")
    )
    current = list(rows)
    texts = {
        document.source_id: document
        for document in Document.objects.visible_to(reader)
        .filter(
            is_current=True, source__in=[each.pending.source_id for each in current]
        )
        .select_related("source__layer", "source__knowledge_base")
        .defer("blocks", "pages")
    }
    found = []
    for each in current:
        told = Told(
            delivery_id=each.delivery_id,
            sequence=each.sequence,
            kind=each.kind,
            entry=each.pending.public_id,
            revision=each.revision,
            announced_at=each.created_at,
        )
        if each.kind != DeliveryKind.WITHDRAWN:
            document = texts.get(each.pending.source_id or 0)
            if document is None:
                continue
            told = replace(
                told,
                question=document.title,
                answer=document.text,
                knowledge_base=document.source.knowledge_base.slug,
                layer=document.source.layer.name,
                ref=document.ref(0, len(document.text)),
            )
        found.append(told)
    return found


def acknowledge(client: AgentClient, through: int) -> int:
    """Note that a client has kept all up to a number; returns how many are new."""
    waiting = Delivery.objects.filter(
        client=client, sequence__lte=through, acknowledged_at=None
    )
    return waiting.update(acknowledged_at=Now())
