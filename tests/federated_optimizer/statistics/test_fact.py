"""Facts fade, and their ranges widen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.statistics.fact import (
    DAY,
    HALF_LIVES,
    HOUR,
    Fact,
    Origin,
    Quantity,
    Subject,
    SubjectKind,
    exact,
    share,
)
from streamsql.wire.codec import decode_json, encode_json

HEAT = Subject(SubjectKind.SOURCE, "heat", "gw-1")
QUANTITIES = st.sampled_from(Quantity)


@given(QUANTITIES, st.integers(0, 100 * DAY))
def test_confidence_halves_with_each_half_life(quantity: Quantity, age: int) -> None:
    fact = exact(HEAT, quantity, 5.0, DAY, Origin.COUNTED)
    life = HALF_LIVES.get(quantity, DAY)
    now = fact.confidence_at(DAY + age)
    assert 0 <= now <= 1
    assert fact.confidence_at(DAY + age + life) == pytest.approx(now / 2)


def test_rates_fade_within_hours_and_sizes_within_days() -> None:
    rate, rows = (
        exact(HEAT, quantity, 5.0, 0, Origin.COUNTED)
        for quantity in (Quantity.INSERTS, Quantity.ROWS)
    )
    assert rate.confidence_at(3 * HOUR) == pytest.approx(1 / 8)
    assert rows.confidence_at(3 * HOUR) > 0.9
    assert rows.confidence_at(-DAY) == 1  # a clock that was set back makes nothing surer


@given(
    st.tuples(*[st.floats(0, 1e6)] * 3).map(sorted),
    st.tuples(*[st.floats(0, 1e6)] * 2).map(sorted),
    st.lists(st.integers(0, 30 * DAY), min_size=2, max_size=2).map(sorted),
)
def test_a_range_only_widens_and_ends_at_what_is_usual(
    measured: list[float], usual: list[float], ages: list[int]
) -> None:
    low, value, high = measured
    fact = Fact(HEAT, Quantity.ROWS, value, low, high, 0, 1.0, Origin.COUNTED)
    early, late = (fact.range_at(age, *usual) for age in ages)
    slack = 1e-6 * max(*measured, *usual, 1.0)
    assert late[0] <= early[0] + slack
    assert early[1] <= late[1] + slack
    assert late[0] <= value + slack
    assert value <= late[1] + slack
    assert fact.range_at(0, *usual) == pytest.approx((low, high))
    widest = (min(low, usual[0]), max(high, usual[1]))
    assert fact.range_at(1000 * DAY, *usual) == pytest.approx(widest, abs=slack)


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_share_has_the_interval_of_wilson(counted: tuple[int, int]) -> None:
    # Its ends are the shares p of which the counted one is just 1.96 deviations away.
    part, whole = counted
    fact = share(HEAT, Quantity.SELECTIVITY, part, whole, 0, Origin.COUNTED)
    assert 0 <= fact.low <= fact.value <= fact.high <= 1
    for end in (fact.low, fact.high):
        away = (fact.value - end) ** 2
        assert away == pytest.approx(1.96**2 * end * (1 - end) / whole, rel=1e-4, abs=1e-9)


def test_more_rows_make_a_share_surer() -> None:
    few, many = (
        share(HEAT, Quantity.SELECTIVITY, n // 4, n, 0, Origin.COUNTED) for n in (20, 20_000)
    )
    assert few.confidence < 0.2
    assert many.confidence > 0.99
    assert few.high - few.low > 10 * (many.high - many.low)


@given(st.text(max_size=20), st.text(max_size=20), QUANTITIES, st.floats(0, 1e9))
def test_facts_survive_the_catalog(name: str, part: str, quantity: Quantity, value: float) -> None:
    fact = exact(Subject(SubjectKind.PREDICATE, name, part), quantity, value, 7, Origin.LINKS)
    again = decode_json(encode_json(fact), Fact)
    assert again == fact
    assert again.key == fact.key
    assert type(again.subject) is Subject
