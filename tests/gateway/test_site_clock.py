"""The time a site lives in: the machine's, or a recording's."""

import time

from hypothesis import given
from hypothesis import strategies as st

from gateway.gateway_settings import ClockSettings
from gateway.site_clock import clock_from

MINUTE = 60_000_000


def test_without_a_recording_it_is_the_machines() -> None:
    assert abs(clock_from(ClockSettings())() - time.time() * 1e6) < MINUTE


@given(st.integers(0, 4 * 10**15), st.sampled_from([0.5, 1.0, 60.0, 600.0]), st.integers(0, 10**10))
def test_a_recordings_time_begins_at_its_origin_and_passes_faster(
    origin: int, speed: float, passed: int
) -> None:
    start = 10**15
    now = [start]
    settings = ClockSettings(speed, origin_wall=start, origin=origin)
    clock = clock_from(settings, lambda: now[0])
    now[0] += passed
    # The machine's own clock may run ahead of a wall that stands still by what this test takes.
    assert -1 <= clock() - (origin + passed * speed) <= MINUTE * speed
