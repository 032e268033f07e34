"""Aggregate functions and their calls."""

import enum
from decimal import ROUND_CEILING, Decimal

import msgspec
from msgspec import UNSET, UnsetType

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
    PERCENTILE_DISC = "PERCENTILE_DISC"
    MODE = "MODE"
    ARRAY_AGG = "ARRAY_AGG"
    STRING_AGG = "STRING_AGG"
    BOOL_AND = "BOOL_AND"
    BOOL_OR = "BOOL_OR"
    EXACT_SUM = "EXACT_SUM"
    EXACT_SQUARES = "EXACT_SQUARES"
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
    * PERCENTILE_DISC(x, p) is the first of the n values in order of which at least p n are not
      after it, with p as the decimal it was written; see `discrete_place`.
    * MODE(x) is the value that comes most often, ties by least value.
    * ARRAY_AGG(x) is the JSON text of the values in row order, for want of array types.
    * STRING_AGG(x, separator) is the texts in their order with the separator between them.
    * EXACT_SUM(x) of numbers, or of exact sums, is their exact sum as text, EXACT_SQUARES(x) that
      of their squares; see `streamsql.algebra.exact_totals`. No query can name these two.
    * USER is a class of the installation, see `streamsql.algebra.user_functions`.

    Attributes:
        function: Which.
        arguments: Over the input row.
        name: Of the output column.
        distinct: Each value once.
        parameter: The fraction p of a percentile, from 0 to 1.
        descending: Of PERCENTILE_DISC: in order from the greatest value.
        separator: Of STRING_AGG.
        implementation: Of USER: its registered name.
        result: Of USER: the type of its result.
        merged_by: Of USER declared MERGED BY: the function that makes the result of all rows from
            those of their parts, USER for itself. What is not declared is not sent either.
    """

    function: AggregateFunction
    arguments: tuple[Expression, ...]
    name: str
    distinct: bool = False
    parameter: float | None = None
    descending: bool = False
    separator: str = ""
    implementation: str = ""
    result: DataType | None = None
    merged_by: AggregateFunction | UnsetType = UNSET

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
    AggregateFunction.EXACT_SUM: DataType.TEXT,
    AggregateFunction.EXACT_SQUARES: DataType.TEXT,
    AggregateFunction.BOOL_AND: DataType.BOOLEAN,
    AggregateFunction.BOOL_OR: DataType.BOOLEAN,
}


def discrete_place(count: int, call: AggregateCall) -> int:
    """Return where PERCENTILE_DISC lies among `count` > 0 values in ascending order, from 0.

    Examples:
        >>> percentile = AggregateCall(AggregateFunction.PERCENTILE_DISC, (), "p", parameter=0.07)
        >>> discrete_place(100, percentile), discrete_place(1, percentile)
        (6, 0)
    """
    # In doubles 0.07 * 100 is more than 7.
    exact = Decimal(repr(0.5 if call.parameter is None else call.parameter)) * count
    nth = max(int(exact.to_integral_value(ROUND_CEILING)), 1)
    return count - nth if call.descending else nth - 1
