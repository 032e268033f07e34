"""The clocks of services: an engine's follows the wall and never goes backwards."""

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from host.clocks import SteadyClock, wall_clock

MINUTE = 60_000_000


def test_the_wall_clock_is_in_microseconds() -> None:
    assert abs(wall_clock() - time.time() * 1e6) < MINUTE


class Time:
    """A wall that is set, and a clock that nobody sets."""

    def __init__(self) -> None:
        self.wall = 1_000 * MINUTE
        self.elapsed = 0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.elapsed)

    def passes(self, microseconds: int) -> None:
        self.wall += microseconds
        self.elapsed += microseconds


def test_a_wall_set_forward_is_followed_at_once() -> None:
    now = Time()
    now.wall += MINUTE
    assert now.clock() == now.wall


def test_a_wall_set_back_is_waited_for_at_half_speed() -> None:
    now = Time()
    before = now.clock()
    now.wall -= MINUTE
    now.passes(10)
    assert now.clock() == before + 5
    now.passes(2 * MINUTE)
    assert now.clock() == now.wall


@given(st.lists(st.tuples(st.integers(0, MINUTE), st.integers(-MINUTE, MINUTE)), max_size=20))
def test_it_never_goes_backwards_nor_falls_behind(steps: list[tuple[int, int]]) -> None:
    now = Time()
    seen = [now.clock()]
    for passed, setting in steps:
        now.passes(passed)
        now.wall += setting
        seen.append(now.clock())
        assert seen[-1] >= now.wall
    assert all(earlier <= later for earlier, later in pairwise(seen))
