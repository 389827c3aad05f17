"""Settling chains: what people asked in vain becomes a pending question (R19, D28).

Asks are read from the interactions that they left, which know nothing of this. Each
that found nothing is filed once, under the question of its chain; a chain in which
another wording found something is filed as answered. Question sets, the lab and replays
leave no interaction. Running twice, or at once, changes nothing.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from django.db.models import QuerySet
from django.utils import timezone

from approvals.chains import MOST_MISSES, PAUSE, Chain, Outcome, chains_of
from approvals.filing import Ask, ask_of, file_asks, file_wording
from approvals.likeness import REWORDS, cosine, embedded
from approvals.models import PendingQuestion, SettlingMark, Wording
from approvals.pauses import pause
from knowledge.inference.gateway import ModelError
from retrieval.models import Interaction
from retrieval.models.interaction import IMPORTED
from retrieval.models.log import Status

logger = logging.getLogger(__name__)

# An interaction that is committed later than this after its time would be overlooked;
# its transaction takes seconds.
LATE: Final = timedelta(hours=1)
# What was asked before the gate was there stays as it is, but for the last day.
FIRST_LOOK: Final = timedelta(days=1)
# So long wordings wait for a model that tells what belongs together.
PATIENCE: Final = timedelta(hours=1)
# What cannot be settled for so long is left.
GIVEN_UP: Final = timedelta(days=1)
PAUSED: Final = "settling"


@dataclass(frozen=True, slots=True)
class Heard:
    """An ask with what is known of it; `filed` is the question it is filed under."""

    ask: Ask
    is_miss: bool
    is_settled: bool
    filed: PendingQuestion | None = None

    @property
    def at(self) -> datetime:
        """When it was asked."""
        return self.ask.at


def settle(now: datetime | None = None) -> int:
    """File every chain that has ended; returns how many new questions came of it."""
    now = timezone.now() if now is None else now
    mark, _is_new = SettlingMark.objects.get_or_create(
        pk=1, defaults={"settled_before": now - FIRST_LOOK}
    )
    new = 0
    open_since = now - LATE
    for first, conversation in conversations(unsettled(mark.settled_before)):
        try:
            found, is_over = settle_conversation(conversation, now)
        except Exception:
            # One that cannot be settled must not keep the others from it, nor for ever
            # have all that was asked since looked through again.
            logger.exception("a conversation could not be settled")
            is_over, found = now - first > GIVEN_UP, 0
            pause(PAUSED)
        new += found
        if not is_over:
            open_since = min(open_since, first)
    if open_since > mark.settled_before:
        SettlingMark.objects.filter(pk=1, settled_before__lt=open_since).update(
            settled_before=open_since
        )
    return new


def unsettled(since: datetime) -> QuerySet[Interaction]:
    """Return the asks that found nothing and are not filed yet.

    Who sees the portal as another person does asks nobody, and what an import brought
    was asked elsewhere.
    """
    return (
        Interaction.objects.filter(
            at__gte=since,
            status=Status.NOT_FOUND,
            acting__isnull=True,
            wording__isnull=True,
        )
        .exclude(question="")
        .exclude(door=IMPORTED)
        .order_by("at", "pk")
    )


def conversations(
    asks: Iterable[Interaction],
) -> Iterator[tuple[datetime, list[Interaction]]]:
    """Yield each conversation with something to settle, and when that was asked first.

    One conversation is what a person, or an agent for them, asks in one conversation or
    turn, or without any at one door, over the same knowledge bases.
    """
    seen: set[tuple[object, ...]] = set()
    for first in asks:
        same: dict[str, object] = {
            "owner": first.owner_id,
            "client": first.client_id,
            "conversation_id": first.conversation_id,
            "door": first.door,
            "knowledge_base_ids": first.knowledge_base_ids,
        }
        if first.conversation_id is None:
            same["turn"] = first.turn_id
        key = tuple(str(value) for value in same.values())
        if key in seen:
            continue
        seen.add(key)
        others = Interaction.objects.filter(
            acting__isnull=True, at__gte=first.at - LATE, **same
        )
        yield (
            first.at,
            list(
                others.exclude(question="")
                .select_related("wording__pending")
                .order_by("at", "pk")
            ),
        )


def settle_conversation(asks: Sequence[Interaction], now: datetime) -> tuple[int, bool]:
    """File what has ended in one conversation.

    Returns how many new questions that made, and whether nothing is left to settle.
    """
    heard = [heard_of(each) for each in asks]
    left = [each.at for each in heard if each.is_miss and not each.is_settled]
    waits_since = min(left, default=now)
    goes_on = now - heard[-1].at <= PAUSE
    if goes_on and sum(each.is_miss for each in heard) < MOST_MISSES:
        return 0, False
    try:
        heard = with_vectors(heard)
    except ModelError as error:
        if now - waits_since < PATIENCE:
            logger.info("settling waits for the model: %s", error)
            pause(PAUSED)
            return 0, False
    chains = chains_of(heard, now=now, rewords=rewords)
    new = sum(settle_chain(chain) for chain in chains)
    return new, all(chain.outcome is not Outcome.GOING_ON for chain in chains)


def heard_of(interaction: Interaction) -> Heard:
    """Return an interaction as chains see it.

    One that was sent to a person is a miss, whatever it came to.
    """
    wording: Wording | None = getattr(interaction, "wording", None)
    ask = ask_of(interaction)
    if wording is not None and wording.vector is not None:
        ask = replace(ask, vector=bytes(wording.vector), space=wording.space)
    filed = wording.pending if wording is not None else None
    is_miss = interaction.status == Status.NOT_FOUND or filed is not None
    return Heard(ask, is_miss, wording is not None, filed)


def with_vectors(heard: Sequence[Heard]) -> list[Heard]:
    """Return asks with the vectors that tell what belongs together; one needs none."""
    if len(heard) == 1:
        return list(heard)
    vectors, space = embedded(each.ask.text for each in heard)
    return [
        replace(
            each,
            ask=replace(each.ask, vector=vectors.get(each.ask.text), space=space),
        )
        for each in heard
    ]


def rewords(one: Heard, other: Heard) -> bool:
    """Tell whether two asks of a conversation word one question.

    Without vectors, all that is asked in one go counts as one (R19).
    """
    first, second = one.ask, other.ask
    if first.vector is None or second.vector is None or first.space != second.space:
        return True
    likeness = cosine(first.vector, second.vector)
    return REWORDS.holds(likeness, first.language, second.language)


def settle_chain(chain: Chain[Heard]) -> int:
    """File one chain as far as it has ended; returns 1 where it is a new question."""
    left = [each.ask for each in chain.misses if not each.is_settled]
    if not left or chain.outcome is Outcome.GOING_ON:
        return 0
    if chain.outcome is Outcome.ANSWERED:
        for ask in left:
            file_wording(ask, None)
        return 0
    earlier = next((each.filed for each in chain.asks if each.filed), None)
    _question, is_new = file_asks(left, onto=earlier)
    return int(is_new)
