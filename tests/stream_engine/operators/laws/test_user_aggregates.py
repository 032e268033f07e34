"""Aggregates of the user: taken back, computed again, refused rows, DISTINCT and NULLs."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.operators.aggregates.aggregate import AggregateOperator
from stream_engine.testing.circuit_runs import evaluated_over
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    RemoteSource,
)
from streamsql.algebra.user_functions import INSTALLED, implementation_name
from streamsql.data.delta import Delta, accumulate, negated
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError

COLUMNS = Schema.of(("g", DataType.INTEGER), ("n", DataType.INTEGER), ("m", DataType.INTEGER))
SOURCE = RemoteSource("left", COLUMNS)
N, M = Column(1, "n", DataType.INTEGER), Column(2, "m", DataType.INTEGER)


class Products:
    """The sum of products of pairs; a pair with 3 in front is refused."""

    def init(self) -> dict[str, int]:
        """Return a state that the methods change in place."""
        return {"sum": 0}

    def step(self, state: dict[str, int], n: int | None, m: int | None) -> dict[str, int]:
        """Add."""
        if n == 3:
            raise ValueError("no threes")
        state["sum"] += (n or 0) * (m or 7)
        return state

    def retract(self, state: dict[str, int], n: int | None, m: int | None) -> dict[str, int]:
        """Subtract."""
        state["sum"] -= (n or 0) * (m or 7)
        return state

    def merge(self, state: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        """Add up."""
        return {"sum": state["sum"] + other["sum"]}

    def final(self, state: dict[str, int]) -> int:
        """Return the sum."""
        return state["sum"]


class Greatest:
    """The maximum; it cannot take back its greatest value, and spoils its state when asked to."""

    calls = 0

    def init(self) -> list[int]:
        """Return nothing."""
        return []

    def step(self, state: list[int], value: int) -> list[int]:
        """Compare."""
        Greatest.calls += 1
        return [max([*state, value])]

    def retract(self, state: list[int], value: int) -> list[int]:
        """Refuse what matters."""
        if value == state[0]:
            state.clear()
            raise ArithmeticError("unknown what was second")
        return state

    def merge(self, state: list[int], other: list[int]) -> list[int]:
        """Compare."""
        return [max(state + other)]

    def final(self, state: list[int]) -> Any:
        """Return the maximum, or nothing."""
        return state[0] if state else None


@pytest.fixture(autouse=True, scope="module")
def _installed() -> Iterator[None]:
    before = INSTALLED.modules
    INSTALLED.allow([__name__])
    yield
    INSTALLED.allow(before)


def call(name: str, *columns: Column, distinct: bool = False, nulls: bool = False) -> AggregateCall:
    return AggregateCall(
        AggregateFunction.USER,
        columns,
        "u",
        distinct=distinct,
        implementation=implementation_name(f"{__name__}:{name}", on_null=nulls),
        result=DataType.INTEGER,
    )


CALLS = (
    call("Products", N, M),
    call("Products", N, M, distinct=True),
    call("Products", N, M, nulls=True),
    call("Greatest", N),
    call("Greatest", M, distinct=True),
)
rows = st.tuples(
    st.integers(0, 1), st.sampled_from((None, 1, 2, 3, 9)), st.sampled_from((None, 1, 5))
)
steps = st.lists(st.dictionaries(rows, st.integers(-2, 2), max_size=5), max_size=8)


@given(st.sampled_from(((), (0,))), st.lists(st.sampled_from(CALLS), min_size=1, max_size=3), steps)
def test_incremental_equals_from_scratch(
    group: tuple[int, ...], chosen: list[AggregateCall], changes: list[Delta]
) -> None:
    plan = Aggregate(SOURCE, group, tuple(chosen))
    operator = AggregateOperator(group, tuple(chosen))
    relation: Delta = {}
    view = operator.initial()
    for change in changes:
        delta = {row: max(w, -relation.get(row, 0)) for row, w in change.items()}
        delta = {row: weight for row, weight in delta.items() if weight}
        accumulate(relation, delta)
        accumulate(view, operator.apply(0, delta))
        assert view == evaluated_over(plan, {"left": relation})
    operator.apply(0, negated(relation))
    assert operator.state_rows() == (0 if group else 1)


def test_a_group_is_computed_again_only_where_retract_fails() -> None:
    operator = AggregateOperator((0,), (call("Greatest", N),))
    operator.apply(0, {(0, number, None): 1 for number in range(50)})
    Greatest.calls = 0
    assert operator.apply(0, {(0, 7, None): -1}) == {}
    assert Greatest.calls == 0
    assert operator.apply(0, {(0, 49, None): -1}) == {(0, 49): -1, (0, 48): 1}
    assert Greatest.calls == 48


def test_what_is_not_installed_is_refused_when_the_circuit_is_made() -> None:
    missing = AggregateCall(AggregateFunction.USER, (N,), "u", implementation="elsewhere:Sum")
    with pytest.raises(DeploymentError, match="elsewhere"):
        AggregateOperator((), (missing,))
