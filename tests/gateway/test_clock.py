"""A site's time never goes back, and comes to agree with the wall's again."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.clock import SteadyClock, clock_from
from gateway.settings import ClockSettings
from stream_engine.site import SiteEngine
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

SECOND = 1_000_000
HOUR = 3_600 * SECOND


class Clocks:
    """A wall clock that somebody sets, and one that nobody does."""

    def __init__(self) -> None:
        self.offset, self.elapsed = 100 * HOUR, 0

    def wall(self) -> int:
        return self.offset + self.elapsed

    def steady(self) -> SteadyClock:
        return SteadyClock(self.wall, lambda: self.elapsed)


def test_it_is_the_wall_clock_as_long_as_nobody_sets_that_back() -> None:
    clocks = Clocks()
    steady = clocks.steady()
    for jump in (0, 0, HOUR, 1, 0):
        clocks.offset += jump
        clocks.elapsed += SECOND
        assert steady() == clocks.wall()


@given(st.lists(st.tuples(st.integers(-HOUR, HOUR), st.integers(0, SECOND)), max_size=20))
def test_it_never_goes_back_and_the_wall_catches_up(steps: list[tuple[int, int]]) -> None:
    clocks = Clocks()
    steady = clocks.steady()
    last = steady()
    for jump, elapsed in steps:
        clocks.offset += jump
        clocks.elapsed += elapsed
        now = steady()
        assert now >= max(last, clocks.wall())
        last = now
    clocks.elapsed += 2 * max(last - clocks.wall(), 0) + 2
    assert steady() == clocks.wall()


def test_readings_count_although_the_clock_was_set_back() -> None:
    """A gateway without a clock of its own may begin in the future."""
    clocks = Clocks()
    steady, engine = clocks.steady(), SiteEngine("gw-1", 1)
    schema = Schema.of(("seat", DataType.TEXT))
    engine.declare(Scan("seats", SourceKind.STREAM, schema, key=(0,), ttl=30 * SECOND))
    for name in ("before", "after", "later"):
        now = steady()
        engine.ingest("seats", [SourceEvent((name,), now)])
        engine.step(steady())
        assert (name,) in engine.source_rows("seats")
        clocks.offset -= HOUR
        clocks.elapsed += 5 * SECOND


def test_a_replay_goes_on_too() -> None:
    clocks = Clocks()
    settings = ClockSettings(600.0, origin_wall=clocks.offset, origin=1_000)
    replay = clock_from(settings, clocks.wall)
    clocks.elapsed += SECOND
    before = replay()
    assert before == 1_000 + 600 * SECOND
    clocks.offset -= HOUR
    assert replay() >= before
