"""Aggregate functions and their calls."""

import enum

import msgspec

from streamsql.algebra.expressions import Expression
from streamsql.data.types import DataType


class AggregateFunction(enum.StrEnum):
    """Aggregates; all skip NULLs except COUNT_ALL (`COUNT(*)`).

    None depends on the order of arrival: where one would, values count in row order.
    """

    COUNT_ALL = "COUNT(*)"
    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    ARG_MIN = "ARG_MIN"
    ARG_MAX = "ARG_MAX"
    VAR_SAMP = "VAR_SAMP"
    VAR_POP = "VAR_POP"
    STDDEV_SAMP = "STDDEV_SAMP"
    STDDEV_POP = "STDDEV_POP"
    PERCENTILE_CONT = "PERCENTILE_CONT"
    ARRAY_AGG = "ARRAY_AGG"
    BOOL_AND = "BOOL_AND"
    BOOL_OR = "BOOL_OR"
    USER = "USER"


class AggregateCall(msgspec.Struct, frozen=True, tag="aggregate_call"):
    """One aggregate of a GROUP BY.

    * ARG_MIN(value, by) is the value where `by` is least, ties by least value; ARG_MAX where `by`
      is greatest, ties by least value.
    * SUM, AVG and the variances of DOUBLE are exact: the correctly rounded result of the real
      number, whatever the order of arrival. A standard deviation is the square root (`math.sqrt`)
      of the rounded variance. Sample variance and deviation of one value are NULL.
    * PERCENTILE_CONT(x, p) with n values in order lies at (n - 1) * p between its neighbours lo
      and hi: `lo + (hi - lo) * fraction` in doubles. MEDIAN(x) is p = 0.5.
    * ARRAY_AGG(x) is the JSON text of the values in row order, for want of array types.
    * USER is a class of the installation, see `streamsql.algebra.user_functions`.

    Attributes:
        function: Which.
        arguments: Over the input row.
        name: Of the output column.
        distinct: Each value once.
        parameter: The fraction p of PERCENTILE_CONT, from 0 to 1.
        implementation: Of USER: its registered name.
        result: Of USER: the type of its result.
    """

    function: AggregateFunction
    arguments: tuple[Expression, ...]
    name: str
    distinct: bool = False
    parameter: float | None = None
    implementation: str = ""
    result: DataType | None = None

    @property
    def dtype(self) -> DataType:
        """The result type."""
        if self.result is not None:
            return self.result
        return _TYPES.get(self.function) or self.arguments[0].dtype


_TYPES = {
    AggregateFunction.COUNT_ALL: DataType.INTEGER,
    AggregateFunction.COUNT: DataType.INTEGER,
    AggregateFunction.AVG: DataType.DOUBLE,
    AggregateFunction.VAR_SAMP: DataType.DOUBLE,
    AggregateFunction.VAR_POP: DataType.DOUBLE,
    AggregateFunction.STDDEV_SAMP: DataType.DOUBLE,
    AggregateFunction.STDDEV_POP: DataType.DOUBLE,
    AggregateFunction.PERCENTILE_CONT: DataType.DOUBLE,
    AggregateFunction.ARRAY_AGG: DataType.TEXT,
    AggregateFunction.BOOL_AND: DataType.BOOLEAN,
    AggregateFunction.BOOL_OR: DataType.BOOLEAN,
}
