"""A gateway's clock against the coordinator's: within its bound, however messages are delayed."""

import asyncio
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.gateway_settings import ClockSettings
from gateway.session.clock_exchange import ATTEMPTS, ClockExchange
from gateway.session.clock_offset import MOST_DELAY, ClockOffset, sample_of
from host.clocks import SteadyClock
from host.mqtt.in_memory import InMemoryBroker
from streamsql.wire.messages import Command
from streamsql.wire.topics import Topics

SECOND = 1_000_000
DELAYS = st.tuples(st.integers(0, SECOND), st.integers(0, SECOND), st.integers(0, SECOND))


@given(
    st.integers(-(10**13), 10**13),
    st.lists(st.tuples(DELAYS, st.integers(0, 30 * SECOND)), min_size=1),
)
def test_the_offset_is_within_its_bound_however_long_the_ways_take(
    skew: int, answers: list[tuple[tuple[int, int, int], int]]
) -> None:
    offset, now = ClockOffset(), 0
    for (there, work, back), pause in answers:
        now += pause
        here, other = 10**15 + now, 10**15 + now + skew
        waited = there + work + back
        sample = sample_of(here, other + there, other + there + work, waited, now + waited)
        assert sample is not None
        offset.take(sample)
        now += waited
        assert offset.offset is not None
        assert abs(offset.offset - skew) <= offset.error + 1
    assert offset.resets == 0
    assert offset.error_ms <= SECOND  # it does not grow without end


def test_an_answer_that_cannot_be_is_not_taken() -> None:
    assert sample_of(0, 10, 5, 100, 0) is None  # sent before it was received
    assert sample_of(0, 10, 200, 100, 0) is None  # worked on for longer than we waited
    assert sample_of(0, 10, 10, MOST_DELAY + 1, 0) is None


def test_a_clock_that_is_set_is_noticed_with_the_next_answer() -> None:
    offset = ClockOffset()
    for now in range(0, 10 * SECOND, SECOND):
        sample = sample_of(now, now + 500, now + 500, 1_000, now)
        assert sample is not None
        offset.take(sample)
    assert offset.offset == 0.0
    sample = sample_of(0, 3_600 * SECOND, 3_600 * SECOND, 2_000, 11 * SECOND)
    assert sample is not None
    offset.take(sample)
    assert offset.offset == 3_600 * SECOND - 1_000
    assert offset.resets == 1


class World:
    """Two machines whose clocks differ, and a network that takes its time."""

    def __init__(self, skew: int, settings: ClockSettings) -> None:
        self.elapsed, self.skew = 0, skew
        self.stalls: list[int] = []
        self.settings = settings
        self.topics = Topics("demo")
        broker = InMemoryBroker()
        self.client = broker.client("gw-1")
        self.coordinator = broker.client("coordinator")
        self.asked: list[Command] = []
        self.exchange = ClockExchange(
            "gw-1",
            self.client,
            self.topics,
            settings,
            wall=self.wall,
            elapsed=lambda: self.elapsed,
        )
        self.steady = SteadyClock(self.exchange.corrected, lambda: self.elapsed)

    def wall(self) -> int:
        """Return the time; then the process is put aside for a while if a test wants it."""
        now = 10**15 + self.elapsed - self.skew
        self.elapsed += self.stalls.pop(0) if self.stalls else 0
        return now

    async def connect(self) -> None:
        await self.client.connect()
        await self.coordinator.connect()
        self.coordinator.on_messages(
            lambda burst: self.asked.extend(
                Command(m["id"], arguments=m["arguments"])
                for m in (json.loads(message.payload) for message in burst)
            )
        )
        await self.coordinator.subscribe(self.topics.clock())

    async def exchanged(self, there: int = 1_000, back: int = 1_000) -> None:
        """Ask once; the answer is on its way for so long."""
        before = len(self.asked)
        self.exchange.ask()
        for _ in range(1_000):
            if len(self.asked) > before:
                break
            await asyncio.sleep(0.001)
        question = self.asked[-1]
        self.elapsed += there
        now = 10**15 + self.elapsed
        self.elapsed += back
        told = {**question.arguments, "received": now, "sent": now}
        self.exchange.answered(Command(question.id, arguments=told))


def test_a_wrong_clock_is_told_and_corrected_if_wanted() -> None:
    async def run(settings: ClockSettings) -> World:
        world = World(5 * SECOND, settings)
        await world.connect()
        assert world.exchange.problem() == ""
        assert world.exchange.state().offset_ms is None
        for _ in range(5):
            await world.exchanged()
        return world

    left_alone = asyncio.run(run(ClockSettings()))
    assert left_alone.exchange.state().offset_ms == 5_000
    assert left_alone.exchange.state().corrected_ms == 0
    assert "5.0 s behind the coordinator's" in left_alone.exchange.problem()
    assert left_alone.exchange.corrected() == left_alone.wall()

    corrected = asyncio.run(run(ClockSettings(correct=True)))
    assert corrected.exchange.problem() == ""
    assert corrected.exchange.state().corrected_ms == 5_000
    assert corrected.steady() == 10**15 + corrected.elapsed
    corrected.skew += SECOND  # somebody sets the machine's clock: until the next answer that is
    corrected.elapsed += 10  # of no matter
    assert corrected.steady() == 10**15 + corrected.elapsed
    (measured,) = corrected.exchange.measured()
    assert measured.gauges["clock_offset_ms"] == 5_000


@pytest.mark.parametrize("stalls", [1, 3, 20])
def test_a_process_that_is_put_aside_between_two_clocks_stays_within_the_bound(
    stalls: int,
) -> None:
    async def run() -> None:
        world = World(5 * SECOND, ClockSettings(correct=True))
        await world.connect()
        world.stalls = [50_000] * stalls
        await world.exchanged()
        offset = world.exchange.offset
        assert offset.offset is not None
        assert abs(offset.offset - world.skew) <= offset.error
        if stalls < ATTEMPTS:
            assert abs(world.exchange.corrected() - 10**15 - world.elapsed) <= offset.error
        world.stalls = []
        await world.exchanged()
        assert offset.resets == 0

    asyncio.run(run())


def test_what_is_stamped_never_goes_back() -> None:
    async def run() -> None:
        world = World(-60 * SECOND, ClockSettings(correct=True))  # a minute ahead
        await world.connect()
        seen = [world.steady()]
        for number in range(40):
            world.elapsed += SECOND * (number % 5)
            await world.exchanged(there=number * 1_000, back=(40 - number) * 1_000)
            seen.append(world.steady())
        assert all(earlier <= later for earlier, later in pairwise(seen))
        world.elapsed += 200 * SECOND
        world.steady()
        right = 10**15 + world.elapsed
        assert abs(world.steady() - right) <= 40_000

    asyncio.run(run())


def test_answers_to_other_questions_are_none() -> None:
    async def run() -> None:
        world = World(0, ClockSettings())
        await world.connect()
        world.exchange.answered(Command("t1", arguments={"asked": 1, "received": 2, "sent": 3}))
        await world.exchanged()
        number = world.exchange.offset.answers
        for told in ({}, {"asked": 1}, {"asked": world.wall(), "received": "x", "sent": True}):
            world.exchange.answered(Command("t1", arguments=told))  # type: ignore[arg-type]
        assert world.exchange.offset.answers == number == 1

    asyncio.run(run())
