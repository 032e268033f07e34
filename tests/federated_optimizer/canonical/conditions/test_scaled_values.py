"""Parts of a value are in the order of their scales, as its sign has it."""

from itertools import product

import pytest

from federated_optimizer.canonical.conditions.scaled_values import scaled
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.data.types import DataType

N, D, B = DataType.INTEGER, DataType.DOUBLE, DataType.BOOLEAN


def quotient(column: Column, divisor: int) -> Expression:
    return Call("/", (column, Literal(divisor, N)), column.dtype)


def at_least(first: Expression, second: Expression) -> Expression:
    return Call(">=", (first, second), B)


def positive(column: Column) -> Expression:
    return Call(">", (column, Literal(50_000, N)), B)


@pytest.mark.parametrize("dtype", [N, D])
def test_a_part_is_at_least_a_smaller_one_where_the_value_is_positive(dtype: DataType) -> None:
    a, b = Column(0, "a", dtype), Column(1, "b", dtype)
    for large, small in product((1, 2, 5, 10), repeat=2):
        has = [at_least(b, quotient(a, large))]
        known = PredicateSet.of([*has, positive(a)])
        wanted = PredicateSet.of([at_least(b, quotient(a, small)), positive(a)])
        assert known.implies(wanted) == (large <= small)
        assert PredicateSet.of(has).implies(wanted) is False
        if large < small:
            assert known.residual(wanted) == tuple(has)


@pytest.mark.parametrize("dtype", [N, D])
def test_the_order_is_turned_where_the_value_is_negative(dtype: DataType) -> None:
    a, b = Column(0, "a", dtype), Column(1, "b", dtype)
    negative = Call("<=", (a, Literal(0, N)), B)
    tenth, fifth = at_least(quotient(a, 10), b), at_least(quotient(a, 5), b)
    assert PredicateSet.of([fifth, negative]).implies(PredicateSet.of([tenth]))
    assert not PredicateSet.of([tenth, negative]).implies(PredicateSet.of([fifth]))


def test_a_greater_part_may_be_too_large_for_a_double() -> None:
    a, b = Column(0, "a", D), Column(1, "b", D)

    def times(factor: float) -> Expression:
        return Call("*", (Literal(factor, D), a), D)

    positive = Call(">=", (a, Literal(0, N)), B)
    below = PredicateSet.of([Call("<=", (b, times(2.0)), B), positive])
    assert not below.implies(PredicateSet.of([Call("<=", (b, times(3.0)), B)]))
    within = PredicateSet.of([Call("<=", (b, times(0.2)), B), positive])
    assert within.implies(PredicateSet.of([Call("<=", (b, times(0.3)), B)]))


def test_limits_of_the_value_are_limits_of_its_part() -> None:
    a, b = Column(0, "a", N), Column(1, "b", N)
    most = Call("<=", (a, Literal(49, N)), B)
    enough = PredicateSet.of([most, at_least(b, Literal(9, N))])
    assert enough.implies(PredicateSet.of([at_least(b, quotient(a, 5))]))
    assert not enough.implies(PredicateSet.of([at_least(b, quotient(a, 4))]))


@pytest.mark.parametrize("divisor", [0, -1, 2**60])
def test_other_constants_are_no_scales(divisor: int) -> None:
    assert scaled(quotient(Column(0, "a", N), divisor)) is None
    assert scaled(quotient(Column(0, "a", D), divisor)) is None
