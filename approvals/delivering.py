"""Telling agent clients of approved answers: each client of each one once (R17)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
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
    holding = holding_clients(row)
    # Who may not see where its source was moved to loses it.
    kinds = dict.fromkeys(holding, DeliveryKind.WITHDRAWN)
    for client in clients_that_see(row.source.knowledge_base_id):
        is_held = client.pk in holding
        kinds[client.pk] = DeliveryKind.CHANGED if is_held else DeliveryKind.ANSWER
    add(row, kinds)
    mark_announced(row)


def holding_clients(row: PendingQuestion) -> set[int]:
    """Return the ids of the clients that were told of an answer, and not of its end."""
    told = Delivery.objects.filter(pending=row).order_by("revision")
    last = dict(told.values_list("client_id", "kind"))
    return {pk for pk, kind in last.items() if kind != DeliveryKind.WITHDRAWN}


def announce_withdrawal(row: PendingQuestion) -> None:
    """Tell whoever was told of an answer that it is withdrawn; the caller holds it.

    Also a client that may not see the knowledge base any more: it is told no word.
    """
    add(row, dict.fromkeys(holding_clients(row), DeliveryKind.WITHDRAWN))
    mark_announced(row)


def mark_announced(row: PendingQuestion) -> None:
    """Keep that this revision was announced, so that earlier ones are overtaken."""
    row.announced_revision = row.revision
    PendingQuestion.objects.filter(pk=row.pk).update(announced_revision=row.revision)


@transaction.atomic
def add(row: PendingQuestion, kinds: Mapping[int, DeliveryKind]) -> None:
    """Write one delivery for each client, by its id, numbered on from its last one.

    One client after the other by their ids, so that two who announce at once only wait.
    """
    for client_id in sorted(kinds):
        Delivery.objects.create(
            client_id=client_id,
            pending=row,
            revision=row.revision,
            kind=kinds[client_id],
            sequence=next_number(client_id),
        )


def next_number(client_id: int) -> int:
    """Return the number of a client's next delivery, within the caller's transaction.

    It becomes visible with the end of the lock, so that no reader ever sees a later one
    before an earlier one.
    """
    Subscriber.objects.get_or_create(client_id=client_id)
    subscriber = Subscriber.objects.select_for_update().get(client_id=client_id)
    subscriber.last_sequence += 1
    subscriber.save(update_fields=["last_sequence"])
    return subscriber.last_sequence


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
    bring_back(client, reader)
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
    reader may not search now; these come again under a new number once it may, and
    never under the old one. The words are those in the corpus: a change that waits for
    its approval is in none of them.
    """
    current = still_told(Delivery.objects.filter(pk__in=[each.pk for each in batch]))
    current = [each for each in current if each.hidden_at is None]
    texts = texts_of(current, reader)
    found, hidden = [], []
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
                hidden.append(each.pk)
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
    if hidden:
        # Not what was given a new number meanwhile.
        passed = Delivery.objects.filter(sequence__lte=current[-1].sequence)
        passed.filter(pk__in=hidden).update(hidden_at=Now())
    return found


def still_told(rows: QuerySet[Delivery]) -> list[Delivery]:
    """Return those of some deliveries that nothing has overtaken, in their order."""
    current = Delivery.objects.current().filter(pk__in=rows.order_by().values("pk"))
    return list(current.select_related("pending").order_by("sequence"))


def texts_of(rows: Sequence[Delivery], reader: Reader) -> dict[int, Document]:
    """Return the answers of deliveries that a reader may search now, by their source."""
    sources = [each.pending.source_id for each in rows]
    documents = Document.objects.visible_to(reader).filter(
        is_current=True, source__in=sources
    )
    found = documents.select_related("source__layer", "source__knowledge_base")
    return {each.source_id: each for each in found.defer("blocks", "pages")}


def bring_back(client: AgentClient, reader: Reader) -> int:
    """Give a new number to what a client was not told and may see now; returns how many.

    Its cursor has passed the old one. It keeps its id, and is told once.
    """
    hidden = Delivery.objects.filter(client=client, hidden_at__isnull=False)
    rows = still_told(hidden)
    texts = texts_of(rows, reader) if rows else {}
    seen = [each for each in rows if each.pending.source_id in texts]
    if not seen:
        return 0
    with transaction.atomic():
        # Held from here on: nobody else gives one of them a number.
        Subscriber.objects.select_for_update().get(client=client)
        left = hidden.filter(pk__in=[each.pk for each in seen]).order_by("sequence")
        for each in left:
            each.sequence, each.hidden_at = next_number(client.pk), None
            each.pushed_at = each.acknowledged_at = None
            each.save(
                update_fields=["sequence", "hidden_at", "pushed_at", "acknowledged_at"]
            )
    return len(seen)


def acknowledge(client: AgentClient, through: int) -> int:
    """Note that a client has kept all up to a number; returns how many are new."""
    waiting = Delivery.objects.filter(
        client=client, sequence__lte=through, acknowledged_at=None
    )
    return waiting.update(acknowledged_at=Now())
