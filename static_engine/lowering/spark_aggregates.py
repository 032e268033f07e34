"""Aggregates as Spark computes them, and what is done to their results.

Sums of doubles are exact whatever the order of the rows, so the numbers of a group are collected
and added by a function of ours; a group of them must fit one worker's memory.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as fn

from static_engine.lowering.python_functions import call_python_on_list
from static_engine.lowering.spark_types import INTEGRAL, SPARK_TYPES
from static_engine.lowering.worker_aggregates import (
    array_text,
    deviation,
    discrete_percentile,
    exact_mean,
    exact_ratio,
    exact_sum,
    exact_text,
    joined,
    mode,
    percentile,
    variance,
)
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.algebra.user_functions import INSTALLED
from streamsql.data.delta import sort_key
from streamsql.data.types import DataType, Row, Value
from streamsql.errors import InternalError

# A sum of 64-bit integers fits while there are fewer than 10^19 of them.
_WIDE = "decimal(19,0)"


@dataclass(frozen=True, slots=True)
class LoweredAggregate:
    """One aggregate.

    Attributes:
        parts: What Spark aggregates per group.
        finish: The result from those.
    """

    parts: tuple[Column, ...]
    finish: Callable[[list[Column]], Column]


def lower_aggregate(call: AggregateCall, arguments: list[Column]) -> LoweredAggregate:
    """Return how to compute an aggregate over columns holding its arguments."""
    match call.function:
        case AggregateFunction.COUNT_ALL:
            return _simple(fn.count(fn.lit(1)))
        case AggregateFunction.COUNT:
            counted = fn.count_distinct(arguments[0]) if call.distinct else fn.count(arguments[0])
            return _simple(counted)
        case AggregateFunction.SUM:
            return _sum(call, arguments[0])
        case AggregateFunction.AVG:
            return _mean(call, arguments[0])
        case AggregateFunction.MIN:
            return _simple(fn.min(arguments[0]))
        case AggregateFunction.MAX:
            return _simple(fn.max(arguments[0]))
        case AggregateFunction.ARG_MIN:
            return _argument(arguments[0], arguments[1], arguments[1])
        case AggregateFunction.ARG_MAX:
            descending = _descending(arguments[1], call.arguments[1].dtype)
            return _argument(arguments[0], arguments[1], descending)
        case _:
            return _lower_further(call, arguments)


def _lower_further(call: AggregateCall, arguments: list[Column]) -> LoweredAggregate:
    match call.function:
        case AggregateFunction.BOOL_AND:
            return _simple(fn.bool_and(arguments[0].cast("boolean")))
        case AggregateFunction.BOOL_OR:
            return _simple(fn.bool_or(arguments[0].cast("boolean")))
        case AggregateFunction.ARRAY_AGG:
            return _of_values(call, arguments[0], array_text, [])
        case AggregateFunction.PERCENTILE_CONT:
            fraction = 0.5 if call.parameter is None else call.parameter
            return _of_values(call, arguments[0], percentile, [fn.lit(fraction)])
        case AggregateFunction.STRING_AGG:
            return _of_values(call, arguments[0], joined, [fn.lit(call.separator)])
        case AggregateFunction.PERCENTILE_DISC:
            written = repr(0.5 if call.parameter is None else call.parameter)
            parameters = [fn.lit(written), fn.lit(call.descending)]
            return _of_values(call, arguments[0], discrete_percentile, parameters)
        case AggregateFunction.MODE:
            return _of_values(call, arguments[0], mode, [])
        case AggregateFunction.VAR_SAMP | AggregateFunction.VAR_POP:
            sample = fn.lit(call.function == AggregateFunction.VAR_SAMP)
            return _of_values(call, arguments[0], variance, [sample])
        case AggregateFunction.STDDEV_SAMP | AggregateFunction.STDDEV_POP:
            sample = fn.lit(call.function == AggregateFunction.STDDEV_SAMP)
            return _of_values(call, arguments[0], deviation, [sample])
        case AggregateFunction.EXACT_SUM | AggregateFunction.EXACT_SQUARES:
            squared = fn.lit(call.function == AggregateFunction.EXACT_SQUARES)
            return _of_values(call, arguments[0], exact_text, [squared])
        case AggregateFunction.USER:
            return _by_user(call, arguments)
        case _:
            raise InternalError(f"no aggregate {call.function} on Spark")


def _of_values(
    call: AggregateCall,
    argument: Column,
    function: Callable[..., object],
    parameters: list[Column],
) -> LoweredAggregate:
    """Return a function of the list of a group's values."""
    if call.arguments[0].dtype == DataType.DOUBLE:
        argument = argument + 0.0
    collected = fn.collect_set(argument) if call.distinct else fn.collect_list(argument)
    return LoweredAggregate(
        (collected,),
        lambda results: call_python_on_list(function, call.dtype, [*results, *parameters]),
    )


def _by_user(call: AggregateCall, arguments: list[Column]) -> LoweredAggregate:
    """Return an aggregate of the installation, over the rows of arguments in row order."""
    aggregate = INSTALLED.aggregate(call.implementation, call.dtype)
    distinct = call.distinct

    def over(rows: list[Row] | None) -> Value:
        chosen = [tuple(row) for row in rows or ()]
        return aggregate.over(sorted(set(chosen) if distinct else chosen, key=sort_key))

    row = fn.struct(*[column.alias(f"v{n}") for n, column in enumerate(arguments)])
    return LoweredAggregate(
        (fn.collect_list(row),),
        lambda results: call_python_on_list(over, call.dtype, results),
    )


def _simple(part: Column) -> LoweredAggregate:
    return LoweredAggregate((part,), lambda results: results[0])


def _sum(call: AggregateCall, argument: Column) -> LoweredAggregate:
    if call.arguments[0].dtype not in INTEGRAL:
        return LoweredAggregate(
            (_numbers(call, argument),),
            lambda results: call_python_on_list(exact_sum, DataType.DOUBLE, results),
        )
    kind = SPARK_TYPES[call.dtype]
    return LoweredAggregate((_integers(call, argument),), lambda results: results[0].try_cast(kind))


def _mean(call: AggregateCall, argument: Column) -> LoweredAggregate:
    if call.arguments[0].dtype not in INTEGRAL:
        return LoweredAggregate(
            (_numbers(call, argument),),
            lambda results: call_python_on_list(exact_mean, DataType.DOUBLE, results),
        )
    count = fn.count_distinct(argument) if call.distinct else fn.count(argument)
    return LoweredAggregate(
        (_integers(call, argument), count),
        lambda results: call_python_on_list(exact_ratio, DataType.DOUBLE, results),
    )


def _integers(call: AggregateCall, argument: Column) -> Column:
    wide = argument.cast(_WIDE)
    return fn.sum_distinct(wide) if call.distinct else fn.sum(wide)


def _numbers(call: AggregateCall, argument: Column) -> Column:
    doubles = argument.cast("double")
    # Adding 0 makes -0 and 0 one value, as they are.
    return fn.collect_set(doubles + 0.0) if call.distinct else fn.collect_list(doubles)


def _argument(value: Column, by: Column, order: Column) -> LoweredAggregate:
    """Return the value of the least (order, value); NULL is the least value, as in a struct."""
    pair = fn.when(by.isNotNull(), fn.struct(order.alias("by"), value.alias("value")))
    return LoweredAggregate((fn.min(pair),), lambda results: results[0].getField("value"))


def _descending(column: Column, dtype: DataType) -> Column:
    """Return a column that orders the other way round."""
    if dtype in INTEGRAL:
        return fn.bitwise_not(column)
    match dtype:
        case DataType.DOUBLE:
            return -column
        case DataType.BOOLEAN:
            return ~column
        case _:
            # Complement every half byte; a mark above them puts a prefix after what it begins.
            digits = fn.hex(fn.encode(column.cast("string"), "UTF-8"))
            return fn.concat(
                fn.translate(digits, "0123456789ABCDEF", "FEDCBA9876543210"), fn.lit("G")
            )
