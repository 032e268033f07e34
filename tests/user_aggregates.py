"""Aggregates of users for tests, of which those with MERGED BY keep what they promise."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st

from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.user_functions import INSTALLED
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

MODULE = "tests.user_aggregates"
SAMPLE = "deploy.samples.readings"
DEFINITIONS = f"""
CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE MERGED BY MAX AS '{SAMPLE}:Peak';
CREATE AGGREGATE divisor(n INTEGER) RETURNS INTEGER MERGED BY divisor AS '{MODULE}:Divisor';
CREATE AGGREGATE nearby(n INTEGER, v DOUBLE) RETURNS INTEGER MERGED BY SUM AS '{MODULE}:Nearby';
CREATE AGGREGATE short(s TEXT) RETURNS BOOLEAN MERGED BY BOOL_AND CALLED ON NULL INPUT
    AS '{MODULE}:Short';
CREATE AGGREGATE hm(v DOUBLE) RETURNS DOUBLE AS '{SAMPLE}:HarmonicMean';
CREATE AGGREGATE plain_peak(v DOUBLE) RETURNS DOUBLE AS '{SAMPLE}:Peak';
"""
IN_DUCKDB = (
    "peak(v) AS MAX(ABS(v))",
    "divisor(n) AS list_reduce(list(ABS(n)) FILTER (n <> 7), lambda a, b: gcd(a, b))",
    "nearby(n, v) AS CASE WHEN COUNT(n * v) > 0 THEN COUNT(*) FILTER (n * v >= 0) END",
    "short(s) AS BOOL_AND(COALESCE(LENGTH(s) < 3, FALSE))",
)
"""Macros of DuckDB that say the same."""

_X, _D, _S = (
    Column(n, name, dtype)
    for n, (name, dtype) in enumerate(
        (("x", DataType.INTEGER), ("d", DataType.DOUBLE), ("s", DataType.TEXT))
    )
)
COLUMNS = Schema.of(*((c.name, c.dtype) for c in (_X, _D, _S)))


def _call(
    name: str, arguments: tuple[Expression, ...], result: DataType, merged_by: AggregateFunction
) -> AggregateCall:
    return AggregateCall(
        AggregateFunction.USER,
        arguments,
        name.lower(),
        implementation=name,
        result=result,
        merged_by=merged_by,
    )


CALLS = (
    _call(f"{SAMPLE}:Peak", (_D,), DataType.DOUBLE, AggregateFunction.MAX),
    _call(f"{MODULE}:Divisor", (_X,), DataType.INTEGER, AggregateFunction.USER),
    _call(f"{MODULE}:Nearby", (_X, _D), DataType.INTEGER, AggregateFunction.SUM),
    _call(f"{MODULE}:Short on null", (_S,), DataType.BOOLEAN, AggregateFunction.BOOL_AND),
    # Another function of the same argument has a part of its own.
    _call(f"{MODULE}:Distances", (_D,), DataType.DOUBLE, AggregateFunction.MIN),
)
"""Calls of those that are MERGED BY a function."""
ROWS = st.tuples(
    st.sampled_from((None, -4, 0, 6, 7, 9, 2**62)),
    st.sampled_from((None, -0.0, 0.0, -2.5, 1.0, 1e300)),
    st.sampled_from((None, "", "ab", "abc")),
)


@contextmanager
def installed() -> Iterator[None]:
    """Let these aggregates run inside."""
    before = INSTALLED.modules
    INSTALLED.allow([MODULE, SAMPLE])
    try:
        yield
    finally:
        INSTALLED.allow(before)


class Rows:
    """A state of rows with their numbers; one that `refuses` says so."""

    def init(self) -> dict[Any, int]:
        return {}

    def refuses(self, row: tuple[Any, ...]) -> bool:
        return not row

    def step(self, state: dict[Any, int], *row: Any) -> dict[Any, int]:
        if self.refuses(row):
            raise ValueError(row)
        return self.merge(state, {row: 1})

    def retract(self, state: dict[Any, int], *row: Any) -> dict[Any, int]:
        return self.merge(state, {row: -1})

    def merge(self, state: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
        for row, number in other.items():
            state[row] = state.get(row, 0) + number
            if not state[row]:
                del state[row]
        return state


class Divisor(Rows):
    """The greatest common divisor; 7 is refused."""

    def refuses(self, row: tuple[Any, ...]) -> bool:
        return row == (7,)

    def final(self, state: dict[tuple[int], int]) -> int | None:
        return math.gcd(*(n for (n,) in state)) if state else None


class Nearby(Rows):
    """The number of pairs whose number and value have one sign."""

    def final(self, state: dict[tuple[int, float], int]) -> int | None:
        return sum(k for (n, v), k in state.items() if n * v >= 0) if state else None


class Short(Rows):
    """TRUE if all texts are shorter than three letters; NULL is none."""

    def final(self, state: dict[tuple[str | None], int]) -> bool | None:
        return all(s is not None and len(s) < 3 for (s,) in state) if state else None


class Distances(Rows):
    """The least distance from 0."""

    def final(self, state: dict[tuple[float], int]) -> float | None:
        return min((abs(v) for (v,) in state), default=None)


class Last(Rows):
    """The greatest number."""

    def final(self, state: dict[tuple[float], int]) -> float | None:
        return max((v for (v,) in state), default=None)


class Total(Rows):
    """A sum that is 0 of nothing."""

    def final(self, state: dict[tuple[float], int]) -> float:
        return sum((v * k for (v,), k in state.items()), 0.0)
