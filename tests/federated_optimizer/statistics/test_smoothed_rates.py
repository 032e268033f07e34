"""Rates follow their counters, however often these are read."""

from itertools import pairwise
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.statistics.smoothed_rates import (
    TIME_CONSTANT,
    Reading,
    SmoothedRate,
    rate_between,
    smoothed,
)

SECOND = 1_000_000
RATES = st.floats(0, 1e6)
STRETCHES = st.lists(st.tuples(RATES, st.floats(0.1, 1e5)), min_size=1, max_size=12)


def after(stretches: list[tuple[float, float]]) -> SmoothedRate:
    found: SmoothedRate | None = None
    for rate, seconds in stretches:
        found = smoothed(found, rate, seconds)
    assert found is not None
    return found


@given(STRETCHES)
def test_a_rate_is_the_mean_of_the_past_weighted_by_its_age(
    stretches: list[tuple[float, float]],
) -> None:
    # The closed form: each moment counts by exp(-age / constant), over all that was observed.
    age = sum(seconds for _, seconds in stretches)
    whole = 1 - exp(-age / TIME_CONSTANT)
    expected = 0.0
    for rate, seconds in stretches:
        expected += rate * (exp(-(age - seconds) / TIME_CONSTANT) - exp(-age / TIME_CONSTANT))
        age -= seconds
    found = after(stretches)
    assert found.mass == pytest.approx(whole)
    assert found.value == pytest.approx(expected / whole, rel=1e-6, abs=1e-6)


@given(STRETCHES)
def test_the_range_holds_the_value_and_no_rate_that_never_was(
    stretches: list[tuple[float, float]],
) -> None:
    found, rates = after(stretches), [rate for rate, _ in stretches]
    slack = 1e-9 * max(rates)
    assert min(rates) - slack <= found.low <= found.value <= found.high <= max(rates) + slack


@given(RATES, st.lists(st.floats(0.1, 1e4), min_size=1, max_size=8))
def test_it_does_not_matter_how_often_a_counter_is_read(rate: float, cuts: list[float]) -> None:
    start = SmoothedRate(5.0, 5.0, 5.0, 0.5)
    often = start
    for seconds in cuts:
        often = often.then(rate, seconds)
    assert often.value == pytest.approx(start.then(rate, sum(cuts)).value)


def test_a_change_comes_through_by_two_thirds_in_the_constant() -> None:
    found = after([(0.0, 1e6), (9.0, TIME_CONSTANT)])
    assert found.value == pytest.approx(9 * (1 - exp(-1)))
    assert found.low < 9 / 4
    assert found.high > 8.9


def test_a_burst_at_the_start_counts_no_longer_than_it_was() -> None:
    # Links that are announced as a gateway starts: 600 a second for 0.3 s, then 1 a second.
    found = after([(600.0, 0.3), *[(1.0, 10.0)] * 6])
    assert found.value == pytest.approx((180 + 60) / 60.3, rel=0.25)


@given(st.lists(st.integers(0, 1_000), min_size=2, max_size=10))
def test_rates_between_readings_sum_to_the_count(counts: list[int]) -> None:
    totals = sorted(counts)
    readings = [Reading(n, at * 10 * SECOND, 1) for at, n in enumerate(totals, start=1)]
    found = [rate_between(*pair) for pair in pairwise(readings)]
    assert all(each is not None and each[1] == 10 for each in found)
    assert sum(r * s for r, s in filter(None, found)) == pytest.approx(totals[-1] - totals[0])


def test_a_counter_that_begins_again_counts_from_its_beginning() -> None:
    before = Reading(1_000, 50 * SECOND, 10 * SECOND)
    again = Reading(30, 120 * SECOND, 60 * SECOND)
    assert rate_between(before, again) == (0.5, 60.0)
    assert rate_between(None, again) == (0.5, 60.0)


def test_where_nothing_can_be_said_nothing_is() -> None:
    known = Reading(10, 50 * SECOND, 10 * SECOND)
    assert rate_between(known, known) is None  # no time has passed
    assert rate_between(known, Reading(4, 60 * SECOND, 10 * SECOND)) is None
    assert rate_between(None, Reading(4, 60 * SECOND, 0)) is None
