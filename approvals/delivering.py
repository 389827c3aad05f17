"""Telling agent clients of approved answers: each client of each one once (R17)."""

from collections.abc import Iterable

from django.db import transaction

from approvals.models import Delivery, PendingQuestion, Subscriber
from approvals.models.delivery import DeliveryKind
from knowledge.models import AgentClient
from knowledge.permissions import Reader


def searchable_by(client: AgentClient) -> frozenset[int]:
    """Return what a client may search now: its bindings, within its owner's list."""
    bound = frozenset(client.knowledge_bases.values_list("pk", flat=True))
    return Reader(user_id=client.owner_id, limit=bound, is_agent=True).searchable


def clients_that_see(knowledge_base_id: int) -> list[AgentClient]:
    """Return the agent clients that hold a knowledge base now (REL-W8)."""
    bound = AgentClient.objects.filter(knowledge_bases=knowledge_base_id)
    return [
        client
        for client in bound.order_by("pk")
        if knowledge_base_id in searchable_by(client)
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
