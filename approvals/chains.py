"""Which asks of one conversation reword one question, and what they came to. Pure.

People word a question anew when they are not answered. Such a chain is one gap, not
three (R19): it ends at the third ask that finds nothing, or when nothing has been asked
for ten minutes. Where another wording found something, there is no gap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeVar

# A question that is asked later than this after the one before begins anew.
PAUSE: Final = timedelta(minutes=10)
MOST_MISSES: Final = 3


class Outcome(StrEnum):
    """What became of a chain."""

    GAP = "gap"
    ANSWERED = "answered"
    GOING_ON = "going on"


class Asked(Protocol):
    """An ask as chains see it: when, and whether it found nothing."""

    @property
    def at(self) -> datetime:
        """When it was asked."""
        ...

    @property
    def is_miss(self) -> bool:
        """Whether it found nothing."""
        ...


Each = TypeVar("Each", bound=Asked)


@dataclass(slots=True)
class Chain(Generic[Each]):
    """The wordings of one question in their order, and what they came to."""

    asks: list[Each] = field(default_factory=list)
    outcome: Outcome = Outcome.GOING_ON

    @property
    def misses(self) -> list[Each]:
        """The wordings that found nothing."""
        return [ask for ask in self.asks if ask.is_miss]


def chains_of(
    asks: Sequence[Each],
    *,
    now: datetime,
    rewords: Callable[[Each, Each], bool],
) -> list[Chain[Each]]:
    """Return the chains among one conversation's asks, which are in their order.

    `rewords` tells whether two asks word one question. Every ask keeps the conversation
    going, also one on another matter. A wording that comes after the third miss, while
    it goes on, is still one of the same gap.
    """
    found: list[Chain[Each]] = []
    current: list[Chain[Each]] = []
    last: datetime | None = None
    for ask in asks:
        if last is not None and ask.at - last > PAUSE:
            end(current)
            current = []
        last = ask.at
        chain = chain_for(ask, current, rewords)
        if chain is None:
            chain = Chain()
            found.append(chain)
            current.append(chain)
        chain.asks.append(ask)
        if chain.outcome is Outcome.GOING_ON:
            if not ask.is_miss:
                chain.outcome = Outcome.ANSWERED
            elif len(chain.misses) >= MOST_MISSES:
                chain.outcome = Outcome.GAP
    if last is not None and now - last > PAUSE:
        end(current)
    return found


def chain_for(
    ask: Each,
    current: Sequence[Chain[Each]],
    rewords: Callable[[Each, Each], bool],
) -> Chain[Each] | None:
    """Return the chain that an ask goes on with, the latest first; None for a new one.

    One that was answered is over.
    """
    for chain in reversed(current):
        is_over = chain.outcome is Outcome.ANSWERED
        if not is_over and any(rewords(ask, earlier) for earlier in chain.asks):
            return chain
    return None


def end(chains: Sequence[Chain[Each]]) -> None:
    """Say of those that still went on what they came to: a gap."""
    for chain in chains:
        if chain.outcome is Outcome.GOING_ON:
            chain.outcome = Outcome.GAP
