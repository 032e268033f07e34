"""Comparisons. INTEGER against DOUBLE is exact, where Spark would round the integer first."""

from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne

from pyspark.sql import Column
from pyspark.sql import functions as fn

from static_engine.lowering.spark_types import constant, whole_number
from streamsql.algebra.expressions import Expression, Literal
from streamsql.data.types import DataType

COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT_INTEGERS = 2**53


def compare(
    operator: str, left: Expression, left_column: Column, right: Expression, right_column: Column
) -> Column:
    """Return `left operator right` for types that compare."""
    match (left.dtype, right.dtype):
        case (DataType.INTEGER, DataType.DOUBLE):
            return _mixed(operator, left, left_column, right_column)
        case (DataType.DOUBLE, DataType.INTEGER):
            return _mixed(_MIRRORED[operator], right, right_column, left_column)
        case _:
            return COMPARISONS[operator](left_column, right_column)


def _mixed(operator: str, integer: Expression, column: Column, double: Column) -> Column:
    if isinstance(integer, Literal) and _is_exact(integer):
        return COMPARISONS[operator](constant(integer.value, DataType.DOUBLE), double)
    return COMPARISONS[operator](compare_exactly(column, double), fn.lit(0))


def compare_exactly(integer: Column, double: Column) -> Column:
    """Return -1, 0 or 1 as a 64-bit integer is less than, equal to or greater than a double.

    Rounding keeps order, so only a tie after rounding needs a second look, and then the double is
    integral; 2^63 is the one that has no integer, and it is greater than any integer.
    """
    rounded = integer.cast("double")
    back = whole_number(double)
    tie = fn.when(back.isNull() | (integer < back), -1).when(integer > back, 1).otherwise(0)
    order = fn.when(rounded < double, -1).when(rounded > double, 1).otherwise(tie)
    return fn.when(integer.isNotNull() & double.isNotNull(), order)


def _is_exact(literal: Literal) -> bool:
    value = literal.value
    return value is None or (isinstance(value, int) and abs(value) <= _EXACT_INTEGERS)
