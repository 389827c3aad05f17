"""Sending deliveries to agent clients that take messages, signed (R17).

At least once on the wire, with an id that stays the same, so that the receiver takes
each once. A client gets its deliveries in their order: while one cannot be sent, the
next ones wait. What is sent is acknowledged by the receiver's answer.
"""

import logging
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from approvals.delivering import bring_back, handed_out, reader_of_client
from approvals.models import Delivery, Subscriber
from approvals.pauses import is_pausing, pause
from approvals.webhooks import WebhookError, secret_of, send_signed

logger = logging.getLogger(__name__)

# Minutes before the next attempt, by those that failed in a row; then the last of them.
PAUSES: Final = (1, 2, 5, 15, 60, 180, 360)
# Deliveries that one round sends to one client.
BATCH: Final = 100
# It was looked what clients may see by now.
LOOKED: Final = "hidden answers"


def due() -> QuerySet[Subscriber]:
    """Return the clients with something to send now."""
    waiting = Delivery.objects.filter(
        client=OuterRef("client"), acknowledged_at=None, pushed_at=None
    )
    is_time = Q(push_after=None) | Q(push_after__lte=timezone.now())
    return Subscriber.objects.filter(Exists(waiting), is_time).exclude(push_url="")


def hiding() -> QuerySet[Subscriber]:
    """Return the clients that may see by now what they were not sent."""
    hidden = Delivery.objects.current().filter(
        client=OuterRef("client"), hidden_at__isnull=False
    )
    return Subscriber.objects.filter(Exists(hidden)).exclude(push_url="")


def looking_is_due() -> bool:
    """Tell whether it is time to look what clients may see by now."""
    return hiding().exists() and not is_pausing(LOOKED)


def push_all() -> int:
    """Send what is due to everybody; returns how much was taken."""
    if looking_is_due():
        pause(LOOKED)
        for subscriber in hiding().select_related("client"):
            bring_back(subscriber.client, reader_of_client(subscriber.client))
    sent = 0
    for subscriber in due():
        try:
            sent += push(subscriber.pk)
        except Exception:
            # Its attempt is counted; the other clients must not wait for it.
            logger.exception("deliveries to client %s failed", subscriber.pk)
    return sent


def push(client_id: int) -> int:
    """Send one client what waits for it, in its order; returns how much it took."""
    sent = 0
    for _attempt in range(BATCH):
        with transaction.atomic():
            subscriber = (
                due()
                .select_for_update(of=("self",), skip_locked=True)
                .select_related("client")
                .filter(pk=client_id)
                .first()
            )
            if subscriber is None:
                break
            delivery = next_for(subscriber)
            if delivery is None:
                # The client fetched it meanwhile.
                break
            # Before it is tried: what kills the worker is not tried at once again.
            put_off(subscriber)
        problem = send(subscriber, delivery)
        note(subscriber, delivery, problem)
        if problem:
            break
        sent += 1
    return sent


def next_for(subscriber: Subscriber) -> Delivery | None:
    """Return the first delivery that a client has not got yet, or None."""
    waiting = Delivery.objects.filter(
        client=subscriber.client, acknowledged_at=None, pushed_at=None
    )
    return waiting.order_by("sequence").first()


def put_off(subscriber: Subscriber) -> None:
    """Count an attempt, and set when the next one may be."""
    pause = PAUSES[min(subscriber.push_attempts, len(PAUSES) - 1)]
    subscriber.push_attempts += 1
    subscriber.push_after = timezone.now() + timedelta(minutes=pause)
    subscriber.save(update_fields=["push_attempts", "push_after"])


def send(subscriber: Subscriber, delivery: Delivery) -> str:
    """Send one delivery; returns why it was not taken, or "".

    What was overtaken or withdrawn meanwhile, or may not be seen now, counts as sent
    without a word.
    """
    told = handed_out([delivery], reader_of_client(subscriber.client))
    if not told:
        return ""
    try:
        send_signed(
            subscriber.push_url,
            secret_for(subscriber),
            str(delivery.delivery_id),
            {"type": f"answer.{told[0].kind}", **told[0].payload},
        )
    except WebhookError as error:
        return str(error)
    return ""


def note(subscriber: Subscriber, delivery: Delivery, problem: str) -> None:
    """Keep what came of an attempt."""
    if problem:
        logger.warning("a delivery to client %s failed: %s", subscriber.pk, problem)
        Subscriber.objects.filter(pk=subscriber.pk).update(push_problem=problem[:300])
        return
    now = timezone.now()
    with transaction.atomic():
        Subscriber.objects.filter(pk=subscriber.pk).update(
            push_attempts=0, push_after=None, push_problem=""
        )
        # Not where it was given a new number meanwhile, to be sent under.
        Delivery.objects.filter(pk=delivery.pk, sequence=delivery.sequence).update(
            pushed_at=now, acknowledged_at=now
        )


def secret_for(subscriber: Subscriber) -> str:
    """Return the secret that messages to a client are signed with."""
    return secret_of(f"client:{subscriber.pk}:{subscriber.secret_number}")
