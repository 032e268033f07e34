"""Operators on columns: arithmetic, comparisons and CAST, with StreamSQL's results.

What leaves the range of its type is NULL, as are division by zero and a CAST that fails.
Spark would compare INTEGER with DOUBLE after it has rounded the integer; here they compare exactly.
"""

import sys
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne

from pyspark.sql import Column
from pyspark.sql import functions as fn

from static_engine.lowering.python_functions import call_python_cast
from static_engine.lowering.spark_types import INTEGRAL, SPARK_TYPES, constant, null, whole_number
from streamsql.algebra.expressions import Expression, Literal
from streamsql.data.types import DataType

_LARGEST = sys.float_info.max
_WHOLE = float(2**53)  # from here on every double is whole
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


def arithmetic(
    operator: str, left: Column, left_type: DataType, right: Column, right_type: DataType
) -> Column:
    """Return `left operator right` for numbers and times."""
    if left_type in INTEGRAL and right_type in INTEGRAL:
        return _INTEGRAL[operator](left, right)
    return _DOUBLE[operator](left.cast("double"), right.cast("double"))


def negate(operand: Column, dtype: DataType) -> Column:
    """Return `- operand`."""
    if dtype in INTEGRAL:
        return fn.try_subtract(constant(0, DataType.INTEGER), operand)
    return -operand


def absolute(operand: Column, dtype: DataType) -> Column:
    """Return the absolute value; of the least integer it is NULL."""
    if dtype in INTEGRAL:
        return fn.when(operand < 0, negate(operand, dtype)).otherwise(operand)
    return fn.abs(operand)


def whole(operand: Column, dtype: DataType, rounding: Callable[[Column], Column]) -> Column:
    """Return FLOOR or CEIL as a double."""
    if dtype in INTEGRAL:
        return operand.cast("double")
    # Spark's answer is an integer, which has no place for the largest doubles.
    small = fn.when(fn.abs(operand) < _WHOLE, operand)
    return fn.when(fn.abs(operand) >= _WHOLE, operand).otherwise(rounding(small).cast("double"))


def square_root(operand: Column) -> Column:
    """Return the square root; NULL of a negative number."""
    return fn.sqrt(fn.when(operand >= 0, operand).cast("double"))


def finite(column: Column) -> Column:
    """Return a double, or NULL where it is infinite or no number."""
    return fn.when(fn.abs(column) <= _LARGEST, column)


def _divide_integers(left: Column, right: Column) -> Column:
    divisor = fn.when((right != 0) & (right != -1), right)
    quotient = fn.call_function("div", left, divisor)  # truncates toward zero
    # By -1 apart: the least integer has no positive.
    return fn.when(right == -1, negate(left, DataType.INTEGER)).otherwise(quotient)


def _nonzero(column: Column) -> Column:
    return fn.when(column != 0, column)


_INTEGRAL: dict[str, Callable[[Column, Column], Column]] = {
    "+": fn.try_add,
    "-": fn.try_subtract,
    "*": fn.try_multiply,
    "/": _divide_integers,
    "%": lambda left, right: left % _nonzero(right),
}
_DOUBLE: dict[str, Callable[[Column, Column], Column]] = {
    "+": lambda left, right: finite(left + right),
    "-": lambda left, right: finite(left - right),
    "*": lambda left, right: finite(left * right),
    "/": lambda left, right: finite(left / _nonzero(right)),
    "%": lambda left, right: left % _nonzero(right),
}


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


def cast(column: Column, source: DataType, target: DataType) -> Column:
    """Return a column converted from one StreamSQL type to another.

    Spark converts what both convert alike; reading numbers and times out of text, and writing
    doubles, is left to the function that defines it.
    """
    if source == target:
        return column
    match (source, target):
        case (DataType.NULL, _) | (_, DataType.NULL):
            return null(target)
        case _ if source in INTEGRAL and target in INTEGRAL:
            return column
        case (_, DataType.DOUBLE | DataType.TEXT) if source in INTEGRAL:
            return column.cast(SPARK_TYPES[target])
        case (DataType.DOUBLE, DataType.INTEGER):
            return whole_number(fn.rint(column))
        case (DataType.BOOLEAN, DataType.INTEGER):
            return column.cast("bigint")
        case (DataType.BOOLEAN, DataType.TEXT):
            return column.cast("string")
        case (DataType.INTEGER | DataType.DOUBLE, DataType.BOOLEAN):
            return fn.when(column == 0, fn.lit(False)).when(column == 1, fn.lit(True))
        case _:
            return call_python_cast(column, target)
