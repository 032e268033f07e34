"""Operators by example, one change at a time, as their docstrings draw it."""

from stream_engine.operators.aggregates.aggregate import AggregateOperator
from stream_engine.operators.joins.join import JoinOperator
from stream_engine.operators.joins.outer_join import (
    CountedOuterJoinOperator,
    KeyedOuterJoinOperator,
)
from stream_engine.operators.rows.linear_operators import (
    FilterOperator,
    ProjectOperator,
    ValuesOperator,
)
from stream_engine.operators.rows.set_operators import DistinctOperator
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.data.types import DataType

K, N = Column(0, "k", DataType.TEXT), Column(1, "n", DataType.INTEGER)
X = Column(0, "x", DataType.DOUBLE)


def compared(function: str, left: Column, right: Column | Literal) -> Call:
    return Call(function, (left, right), DataType.BOOLEAN)


def test_filter() -> None:
    operator = FilterOperator(
        compared(">", Column(0, "n", DataType.INTEGER), Literal(5, DataType.INTEGER))
    )
    assert operator.apply(0, {(3,): 1, (7,): 1, (None,): 1}) == {(7,): 1}
    assert operator.apply(0, {(7,): -1}) == {(7,): -1}


def test_project_adds_up_equal_rows() -> None:
    operator = ProjectOperator((K,), 2)
    assert operator.apply(0, {("a", 1): 1, ("a", 2): 1}) == {("a",): 2}
    assert operator.apply(0, {("a", 1): -1, ("a", 3): 1}) == {}


def test_distinct() -> None:
    operator = DistinctOperator()
    assert operator.apply(0, {("a",): 2}) == {("a",): 1}
    assert operator.apply(0, {("a",): -1}) == {}
    assert operator.apply(0, {("a",): -1}) == {("a",): -1}
    assert operator.state_rows() == 0


def test_join() -> None:
    operator = JoinOperator(((0, 0),), None)
    assert operator.apply(0, {(1, "a"): 1, (None, "a"): 1}) == {}
    assert operator.apply(1, {(1, "x"): 2, (None, "x"): 1}) == {(1, "a", 1, "x"): 2}
    assert operator.state_rows() == 2
    assert operator.apply(0, {(1, "a"): -1}) == {(1, "a", 1, "x"): -2}


def test_theta_join() -> None:
    less = compared("<", Column(0, "a", DataType.INTEGER), Column(1, "b", DataType.INTEGER))
    operator = JoinOperator((), less)
    operator.apply(0, {(1,): 1, (3,): 1, (None,): 1})
    assert operator.apply(1, {(2,): 1, (4,): 1}) == {(1, 2): 1, (1, 4): 1, (3, 4): 1}


def test_left_join_pads_and_unpads() -> None:
    operator = KeyedOuterJoinOperator(((0, 0),), ((None, None), None))
    padded = (1, "a", None, None)
    assert operator.apply(0, {(1, "a"): 2}) == {padded: 2}
    assert operator.apply(1, {(1, "x"): 1}) == {padded: -2, (1, "a", 1, "x"): 2}
    assert operator.apply(1, {(1, "y"): 1}) == {(1, "a", 1, "y"): 2}
    assert operator.apply(1, {(1, "x"): -1}) == {(1, "a", 1, "x"): -2}
    assert operator.apply(1, {(1, "y"): -1}) == {padded: 2, (1, "a", 1, "y"): -2}


def test_left_join_counts_partners_that_were_there_before() -> None:
    operator = KeyedOuterJoinOperator(((0, 0),), ((None, None), None))
    assert operator.apply(1, {(1, "x"): 1, (1, "y"): 1}) == {}
    assert operator.apply(0, {(1, "a"): 1}) == {(1, "a", 1, "x"): 1, (1, "a", 1, "y"): 1}
    assert operator.apply(1, {(1, "x"): -1}) == {(1, "a", 1, "x"): -1}
    assert operator.apply(1, {(1, "y"): -1}) == {(1, "a", 1, "y"): -1, (1, "a", None, None): 1}


def test_joins_forget_keys_without_rows() -> None:
    join = JoinOperator(((0, 0),), None)
    left_join = KeyedOuterJoinOperator(((0, 0),), ((None,), None))
    for operator in (join, left_join):
        for port in (0, 1):
            operator.apply(port, {(key,): 1 for key in range(100)})
            operator.apply(port, {(key,): -1 for key in range(100)})
        assert operator.state_rows() == 0
    assert [side.buckets for side in join._sides] == [{}, {}]


def test_left_join_keeps_rows_with_null_keys_and_failed_residuals() -> None:
    positive = compared(">", Column(3, "y", DataType.INTEGER), Literal(0, DataType.INTEGER))
    operator = CountedOuterJoinOperator(((0, 0),), positive, 2, ((None, None), None))
    operator.apply(1, {(1, -5): 1})
    result = operator.apply(0, {(None, "a"): 1, (1, "b"): 1})
    assert result == {(None, "a", None, None): 1, (1, "b", None, None): 1}
    assert operator.apply(1, {(1, 5): 1}) == {(1, "b", None, None): -1, (1, "b", 1, 5): 1}


def aggregate(function: AggregateFunction, *columns: Column) -> AggregateOperator:
    return AggregateOperator((), (AggregateCall(function, columns, "a"),))


def test_a_scalar_aggregate_always_has_one_row() -> None:
    operator = aggregate(AggregateFunction.COUNT_ALL)
    assert operator.initial() == {(0,): 1}
    assert operator.apply(0, {("a",): 2}) == {(0,): -1, (2,): 1}
    assert operator.apply(0, {("a",): -2}) == {(2,): -1, (0,): 1}


def test_sums_of_doubles_forget_nothing() -> None:
    operator = aggregate(AggregateFunction.SUM, X)
    assert operator.initial() == {(None,): 1}
    assert operator.apply(0, {(1e300,): 1, (1.0,): 1}) == {(None,): -1, (1e300,): 1}
    assert operator.apply(0, {(1e300,): -1}) == {(1e300,): -1, (1.0,): 1}
    assert operator.apply(0, {(5e-324,): 1, (1.0,): -1}) == {(1.0,): -1, (5e-324,): 1}


def test_a_sum_beyond_the_range_is_null_until_it_comes_back() -> None:
    operator = aggregate(AggregateFunction.SUM, X)
    operator.initial()
    assert operator.apply(0, {(1.7e308,): 2}) == {}
    assert operator.apply(0, {(1.7e308,): -1}) == {(None,): -1, (1.7e308,): 1}


def test_sums_of_integers_are_integers() -> None:
    operator = aggregate(AggregateFunction.SUM, Column(0, "n", DataType.INTEGER))
    operator.initial()
    ((total,),) = [row for row, w in operator.apply(0, {(2**60,): 1, (1,): 3}).items() if w > 0]
    assert total == 2**60 + 3
    assert isinstance(total, int)


def test_average_is_rounded_once() -> None:
    operator = aggregate(AggregateFunction.AVG, X)
    operator.initial()
    assert operator.apply(0, {(0.1,): 3}) == {(None,): -1, (0.1,): 1}


def test_minimum_comes_back_after_deletion() -> None:
    operator = aggregate(AggregateFunction.MIN, Column(0, "n", DataType.INTEGER))
    operator.initial()
    operator.apply(0, {(3,): 1, (1,): 2, (None,): 1})
    assert operator.apply(0, {(1,): -1}) == {}
    assert operator.apply(0, {(1,): -1}) == {(1,): -1, (3,): 1}
    assert operator.apply(0, {(3,): -1}) == {(3,): -1, (None,): 1}


def test_ties_of_arg_max_go_to_the_least_value() -> None:
    operator = aggregate(AggregateFunction.ARG_MAX, K, N)
    operator.initial()
    operator.apply(0, {("b", 9): 1, ("c", 9): 1, ("a", 1): 1, ("z", None): 1})
    assert operator.apply(0, {("b", 9): -1}) == {("b",): -1, ("c",): 1}
    assert operator.apply(0, {(None, 9): 1}) == {("c",): -1, (None,): 1}


def test_distinct_count() -> None:
    call = AggregateCall(AggregateFunction.COUNT, (N,), "a", distinct=True)
    operator = AggregateOperator((0,), (call,))
    assert operator.apply(0, {("a", 1): 3, ("a", 2): 1}) == {("a", 2): 1}
    assert operator.apply(0, {("a", 1): -2}) == {}
    assert operator.apply(0, {("a", 1): -1}) == {("a", 2): -1, ("a", 1): 1}


def test_groups_vanish_with_their_last_row() -> None:
    operator = AggregateOperator((0,), (AggregateCall(AggregateFunction.MAX, (N,), "a"),))
    assert operator.apply(0, {("a", 1): 1, (None, 2): 1}) == {("a", 1): 1, (None, 2): 1}
    assert operator.apply(0, {("a", 1): -1}) == {("a", 1): -1}
    assert operator.state_rows() == 2


def test_values_come_once() -> None:
    assert ValuesOperator([(1,), (1,), (2,)]).initial() == {(1,): 2, (2,): 1}
