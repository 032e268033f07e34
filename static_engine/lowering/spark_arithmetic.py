"""Arithmetic: what leaves the range of its type is NULL, as is division by zero."""

import sys
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as fn

from static_engine.lowering.spark_types import INTEGRAL, constant
from streamsql.data.types import DataType

_LARGEST = sys.float_info.max
_WHOLE = float(2**53)  # from here on every double is whole


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
