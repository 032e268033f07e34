"""Medians of rounds."""

import contextlib
import gc

import pytest

from deploy.calibration.rounds import (
    Measurement,
    beyond,
    measurement,
    processor_time,
    without_collections,
)


def test_one_wild_round_moves_neither_median_nor_quartiles_far() -> None:
    calm = measurement("join_microseconds", [5.0, 5.2, 5.1, 4.9, 5.0])
    wild = measurement("join_microseconds", [5.0, 5.2, 5.1, 4.9, 900.0])
    assert calm == Measurement("join_microseconds", 5.0, 5.0, 5.1, 5)
    assert (wild.value, wild.low, wild.high) == (5.1, 5.0, 5.2)


def test_what_goes_beyond_may_be_negative() -> None:
    assert beyond([3.0, 5.0], [4.0, 4.0, 90.0]) == [-1.0, 1.0]


def test_processor_time_counts_work_and_not_waiting() -> None:
    assert processor_time(lambda: sum(range(200_000))) > 100.0


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_before_even_after_an_error(*, enabled: bool) -> None:
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with contextlib.suppress(KeyError), without_collections():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()
