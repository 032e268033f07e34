"""Aggregates in two phases are the aggregates, also beyond 64 bits and of nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.alternatives.parted import Parted
from federated_optimizer.alternatives.partial_aggregate import parted_aggregate
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Plan,
    UnionAll,
    Values,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.reference import Database, evaluate
from tests import user_aggregates

F = AggregateFunction
INTEGER, TEXT, BOOLEAN = DataType.INTEGER, DataType.TEXT, DataType.BOOLEAN
COLUMNS = Schema.of(("g", TEXT), ("x", INTEGER), ("by", INTEGER), ("b", BOOLEAN))
G, X, BY, B = (Column(i, f.name, f.dtype) for i, f in enumerate(COLUMNS.fields))
CALLS = (
    AggregateCall(F.COUNT_ALL, (), "rows"),
    AggregateCall(F.COUNT, (X,), "n"),
    AggregateCall(F.SUM, (X,), "s"),
    AggregateCall(F.AVG, (X,), "a"),
    AggregateCall(F.MIN, (X,), "least"),
    AggregateCall(F.MAX, (G,), "most"),
    AggregateCall(F.ARG_MIN, (X, BY), "first"),
    AggregateCall(F.ARG_MAX, (X, BY), "last"),
    AggregateCall(F.BOOL_AND, (B,), "every"),
    AggregateCall(F.BOOL_OR, (B,), "some"),
)
ROWS = st.tuples(
    st.sampled_from([None, "a", "b"]),
    st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.none(), st.integers(0, 2)),
    st.one_of(st.none(), st.booleans()),
)


def over(plan: Aggregate, sites: list[list[Row]]) -> tuple[object, object]:
    """Return the rows of an aggregate over all sites, and those of its parts put together."""
    tables: list[Plan] = [Values(tuple(rows), plan.input.schema) for rows in sites]
    whole = Aggregate(UnionAll(tuple(tables)), plan.group, plan.aggregates)
    halves = [parted_aggregate(plan, table) for table in tables]
    parts = tuple(half.part for half in halves if isinstance(half, Parted))
    assert len(parts) == len(sites)
    (first, *_) = halves
    assert isinstance(first, Parted)
    combined = first.whole(UnionAll(parts))
    assert combined.schema == whole.schema
    return evaluate(whole, Database(), 0), evaluate(combined, Database(), 0)


@given(
    group=st.sampled_from([(), (0,), (0, 3)]),
    calls=st.lists(st.sampled_from(CALLS), max_size=4, unique=True),
    sites=st.lists(st.lists(ROWS, max_size=6), min_size=1, max_size=3),
)
def test_parts_together_are_the_whole(
    group: tuple[int, ...], calls: list[AggregateCall], sites: list[list[Row]]
) -> None:
    plan = Aggregate(Values((), COLUMNS), group, tuple(calls))
    whole, combined = over(plan, sites)
    assert combined == whole


@given(
    group=st.sampled_from([(), (2,)]),
    calls=st.lists(st.sampled_from(user_aggregates.CALLS), max_size=4, unique=True),
    sites=st.lists(st.lists(user_aggregates.ROWS, max_size=6), min_size=1, max_size=3),
)
def test_results_of_users_at_gateways_together_are_that_of_all_rows(
    group: tuple[int, ...], calls: list[AggregateCall], sites: list[list[Row]]
) -> None:
    plan = Aggregate(Values((), user_aggregates.COLUMNS), group, tuple(calls))
    with user_aggregates.installed():
        whole, combined = over(plan, sites)
    assert combined == whole


LARGE = 1_764_000_000_000_000_000


@pytest.mark.parametrize(
    ("function", "sites", "wanted"),
    [
        (F.SUM, ([2**62] * 3, [-(2**62)] * 3), 0),
        (F.SUM, ([2**63 - 1, 2], [-2]), 2**63 - 1),
        (F.SUM, ([-(2**63)], []), -(2**63)),
        (F.SUM, ([2**62] * 2, [1]), None),
        (F.SUM, ([], []), None),
        (F.AVG, ([LARGE + n for n in range(6)], [LARGE + n for n in range(6)]), LARGE + 2.5),
        (F.AVG, ([2**53 + 1] * 3, [2**53 + 1] * 4), float(2**53)),
        (F.AVG, ([-(2**63), -1], [0]), -(2**63) / 3),
    ],
)
def test_sums_beyond_64_bits_at_one_gateway_are_as_if_it_had_no_parts(
    function: AggregateFunction, sites: tuple[list[int], ...], wanted: float | None
) -> None:
    plan = Aggregate(Values((), COLUMNS), (), (AggregateCall(function, (X,), "s"),))
    rows: list[list[Row]] = [[("a", x, None, None) for x in site] for site in sites]
    assert over(plan, rows) == ({(wanted,): 1}, {(wanted,): 1})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (AggregateCall(F.SUM, (Column(1, "x", DataType.DOUBLE),), "s"), "rounded once"),
        (AggregateCall(F.MODE, (X,), "m"), "no parts of a fixed size"),
        (AggregateCall(F.COUNT, (X,), "n", distinct=True), "the values themselves"),
    ],
)
def test_other_aggregates_say_why_they_have_no_parts(call: AggregateCall, words: str) -> None:
    columns = Schema.of(("g", TEXT), ("x", call.arguments[0].dtype))
    plan = Aggregate(Values((), columns), (0,), (CALLS[0], call))
    refused = parted_aggregate(plan, Values((), columns))
    assert not isinstance(refused, Parted)
    assert words in refused.reason


def test_distinct_values_are_parts_of_aggregates_that_count_no_copies() -> None:
    distinct = AggregateCall(F.COUNT, (X,), "n", distinct=True)
    plan = Aggregate(Values((), COLUMNS), (0,), (distinct, CALLS[4]))
    whole, combined = over(plan, [[("a", 1, 1, None)] * 2, [("a", 1, 1, None), ("b", 2, 1, None)]])
    assert combined == whole
