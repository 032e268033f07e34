"""When a session query has been unread for too long, on a clock of the test's own."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.queries import unread_queries as unread
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.queries.unread_queries import UnreadQueries

SECOND = 1_000_000
SETTINGS = CoordinatorSettings(session_grace=3.0, unread=30.0)


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000 * SECOND

    def __call__(self) -> int:
        return self.now


class Waiting:
    """What there is of a query here."""

    def __init__(self, name: str, now: int) -> None:
        self.id = name
        self.origin = "session"
        self.unread_since: int | None = now
        self.ever_read = False


class House:
    """The queries, looked after as the coordinator does: every quarter of a second."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.unread = UnreadQueries(SETTINGS)
        self.query: Any = Waiting("q1", clock.now)
        self.ended: list[RunningQuery] = []

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds * 4)):
            self.clock.now += SECOND // 4
            self.ended += self.unread.abandoned([self.query])

    def hold_up(self, seconds: float) -> None:
        """Time passes, and nobody looks or listens."""
        self.clock.now += round(seconds * SECOND)
        self.ended += self.unread.abandoned([self.query])


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> House:
    clock = Clock()
    monkeypatch.setattr(unread, "monotonic_clock", clock)
    return House(clock)


def test_one_that_nobody_ever_reads_ends_after_a_while(house: House) -> None:
    house.pass_time(29.5)
    assert not house.ended
    house.pass_time(0.5)
    assert house.ended
    assert house.unread.why_ended("q1") == "query q1 was stopped: it had no reader for 30 s"
    assert house.unread.why_ended("q2") == ""


def test_who_asks_again_and_again_reads_it(house: House) -> None:
    """As `pando run` does until the answer has settled, which may take longer than `unread`."""
    for _ in range(10):
        house.pass_time(29)
        house.unread.keep(house.query)
    assert not house.ended


def test_one_that_was_left_ends_sooner(house: House) -> None:
    house.unread.read(house.query)
    house.pass_time(100)
    house.unread.left(house.query)
    house.pass_time(2.75)
    assert not house.ended
    house.pass_time(0.25)
    assert house.ended


@pytest.mark.parametrize("before", [0.0, 1.0, 2.5])
def test_time_in_which_nobody_could_be_heard_does_not_count(house: House, before: float) -> None:
    """Under load the process is held up, and with it whoever wants to read again."""
    house.unread.read(house.query)
    house.pass_time(1)
    house.unread.left(house.query)
    house.pass_time(before)
    house.hold_up(60)
    house.pass_time(2.75 - before)
    assert not house.ended
    house.pass_time(0.25)
    assert house.ended


def test_a_reader_who_left_while_it_was_held_up_counts_from_its_end(house: House) -> None:
    house.unread.read(house.query)
    house.clock.now += 30 * SECOND
    house.unread.left(house.query)
    house.hold_up(30)
    house.pass_time(2.75)
    assert not house.ended
    house.pass_time(0.25)
    assert house.ended
