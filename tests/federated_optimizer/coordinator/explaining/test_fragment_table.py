"""Measurements are marked where they contradict an estimate."""

import pytest

from federated_optimizer.coordinator.explaining.fragment_table import measured_data
from federated_optimizer.coordinator.explaining.measured_fragments import MeasuredFragment
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.fragment_estimates import FragmentEstimate

TEN_SECONDS_EACH = FragmentEstimate(0.2, Cost(bytes=8.0, messages=0.1), 2.0)
RATES = {"rows_per_second", "messages_per_second", "bytes_per_second"}


def silent(seconds: float) -> MeasuredFragment:
    return MeasuredFragment(0.0, 0.0, 0.0, seconds=seconds)


@pytest.mark.parametrize(("seconds", "marked"), [(1.0, set()), (19.0, set()), (21.0, RATES)])
def test_silence_contradicts_once_a_message_was_due(seconds: float, marked: set[str]) -> None:
    shown = measured_data(TEN_SECONDS_EACH, silent(seconds))
    assert shown is not None
    assert set(shown["beyond"]) == marked


def test_what_comes_where_nothing_was_expected_contradicts_at_once() -> None:
    shown = measured_data(FragmentEstimate(0.0, Cost(), 2.0), MeasuredFragment(1.0, 1.0, 9.0))
    assert shown is not None
    assert shown["beyond"] == dict.fromkeys(RATES)


def test_what_is_in_the_range_is_not_marked() -> None:
    measured = MeasuredFragment(0.3, 0.15, 12.0, seconds=60.0)
    shown = measured_data(TEN_SECONDS_EACH, measured)
    assert shown is not None
    assert shown["beyond"] == {}
