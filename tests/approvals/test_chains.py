"""Which asks are rewordings of one another, and what they came to."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.chains import MOST_MISSES, Chain, Outcome, chains_of

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ask:
    """An ask on a topic, so many minutes after the start."""

    minutes: float
    is_miss: bool = True
    topic: str = "heron"

    @property
    def at(self) -> datetime:
        """When it was asked."""
        return START + timedelta(minutes=self.minutes)


def chained(*asks: Ask, now: float = 600) -> list[Chain[Ask]]:
    """Return the chains of asks, looked at so many minutes after the start."""
    return chains_of(
        asks,
        now=START + timedelta(minutes=now),
        rewords=lambda one, other: one.topic == other.topic,
    )


@pytest.mark.req("R19")
def test_a_chain_ends_at_the_third_ask_that_finds_nothing() -> None:
    asks = [Ask(0), Ask(1), Ask(2)]

    assert [chain.outcome for chain in chained(*asks[:2], now=3)] == [Outcome.GOING_ON]
    (chain,) = chained(*asks, now=3)
    assert (chain.outcome, chain.misses) == (Outcome.GAP, asks)


@pytest.mark.req("R19")
def test_a_chain_ends_when_nothing_was_asked_for_ten_minutes() -> None:
    (chain,) = chained(Ask(0), now=10)
    assert chain.outcome is Outcome.GOING_ON
    (chain,) = chained(Ask(0), now=10.1)
    assert chain.outcome is Outcome.GAP
    # An ask on another matter keeps the conversation going.
    first, _other = chained(Ask(0), Ask(9, topic="lamp"), now=11)
    assert first.outcome is Outcome.GOING_ON


@pytest.mark.req("R19")
def test_a_wording_that_is_answered_leaves_no_gap() -> None:
    (chain,) = chained(Ask(0), Ask(1), Ask(2, is_miss=False))
    assert chain.outcome is Outcome.ANSWERED
    # What another question found answers nothing.
    heron, lamp = chained(Ask(0), Ask(1, is_miss=False, topic="lamp"))
    assert (heron.outcome, lamp.outcome) == (Outcome.GAP, Outcome.ANSWERED)


def test_a_fourth_wording_belongs_to_the_same_gap() -> None:
    (chain,) = chained(*(Ask(minutes) for minutes in range(4)))
    assert len(chain.misses) == 4


def test_after_a_pause_the_same_question_is_a_new_chain() -> None:
    first, second = chained(Ask(0), Ask(11))
    assert (first.misses, second.misses) == ([Ask(0)], [Ask(11)])


@given(
    st.lists(
        st.tuples(
            st.floats(0, 25),
            st.booleans(),
            st.sampled_from(["heron", "lamp", "well"]),
        ),
        max_size=12,
    )
)
def test_every_ask_is_in_one_chain_and_every_chain_has_an_end(
    steps: list[tuple[float, bool, str]],
) -> None:
    minutes = 0.0
    asks = []
    for step, is_miss, topic in steps:
        minutes += step
        asks.append(Ask(minutes, is_miss, topic))
    found = chained(*asks, now=minutes + 11)

    together = [id(ask) for chain in found for ask in chain.asks]
    assert sorted(together) == sorted(map(id, asks))
    for chain in found:
        assert chain.outcome is not Outcome.GOING_ON
        assert len({ask.topic for ask in chain.asks}) == 1
        times = [ask.at for ask in chain.asks]
        assert times == sorted(times)
        # Only an answer's chain holds a hit, as its last ask, before a third miss.
        hits = [ask for ask in chain.asks if not ask.is_miss]
        if chain.outcome is Outcome.ANSWERED:
            assert hits == [chain.asks[-1]]
            assert len(chain.misses) < MOST_MISSES
        assert (
            chain.outcome is Outcome.ANSWERED
            or not hits
            or len(chain.misses) >= MOST_MISSES
        )
    # Looked at while it went on, nothing stood elsewhere or came to something else: what
    # is filed then is filed for good.
    for number, ask in enumerate(asks[1:], start=1):
        earlier = chained(*asks[:number], now=ask.minutes)
        for before, chain in zip(earlier, found, strict=False):
            assert before.asks == chain.asks[: len(before.asks)]
            is_over = before.outcome is not Outcome.GOING_ON
            assert not is_over or chain.outcome is before.outcome
