"""Functions that run in Spark's Python workers, where Spark's own differ from ours.

Java rounds, raises to powers, measures distances and writes numbers a little differently. Where the
last digit matters the worker runs the very function the other engines run. The functions are sent
by value, so workers of a cluster need no package of ours. Rows travel in Arrow batches.
"""

import copyreg
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from pyspark import SparkContext, cloudpickle
from pyspark.sql import Column
from pyspark.sql.functions import udf
from pyspark.sql.types import DataType as SparkType

import streamsql
from static_engine.lowering import worker_aggregates
from static_engine.lowering.spark_types import SPARK_TYPES
from streamsql.algebra.scalar_functions import scalar
from streamsql.data.types import DataType

for _package in (streamsql, worker_aggregates):
    cloudpickle.register_pickle_by_value(_package)  # type: ignore[no-untyped-call]


def _leave_out_lookups() -> None:
    """Let enumerations be sent by value after msgspec has decoded one.

    msgspec then keeps a lookup table on the class, which cannot be pickled and which a worker has
    no use for: it travels as None.
    """
    msgspec.convert(DataType.TEXT.value, DataType)
    lookup = type(vars(DataType)["__msgspec_cache__"])
    copyreg.pickle(lookup, lambda _lookup: (type(None), ()))


_leave_out_lookups()


def _send_what_is_cached() -> None:
    """Let functions that remember their results be sent by value, without what they remember.

    They are no plain functions, so they would be sent by name, which a worker cannot import.
    """
    copyreg.pickle(type(_strict), lambda cached: (lru_cache, (cached.__wrapped__,)))


PythonFunction = Callable[..., Column]


def call_python(
    function: Callable[..., object], result: DataType, arguments: list[Column]
) -> Column:
    """Return a call of a function of our own; a NULL argument gives NULL without calling it."""
    return _strict(function, SPARK_TYPES[result], SparkContext._gateway)(*arguments)  # noqa: SLF001


def call_python_cast(argument: Column, result: DataType) -> Column:
    """Return `CAST(argument AS result)` as `scalar_functions.scalar.cast` does it."""
    return _cast(result, SparkContext._gateway)(argument)  # noqa: SLF001


def call_python_on_list(
    function: Callable[..., object], result: DataType, arguments: list[Column]
) -> Column:
    """Return a call of a function that judges NULL itself."""
    return _plain(function, SPARK_TYPES[result], SparkContext._gateway)(*arguments)  # noqa: SLF001


# A function made for one JVM is of no use to the next one, so the gateway is part of the key.


@lru_cache(maxsize=64)
def _strict(function: Callable[..., object], result: SparkType, _gateway: object) -> PythonFunction:
    def evaluate(*values: Any) -> Any:
        if None in values:
            return None
        try:
            return function(*values)
        except OverflowError:
            return None  # the result is no number of ours

    made: PythonFunction = udf(evaluate, result, useArrow=True)
    return made


@lru_cache(maxsize=16)
def _plain(function: Callable[..., object], result: SparkType, _gateway: object) -> PythonFunction:
    made: PythonFunction = udf(function, result, useArrow=True)
    return made


@lru_cache(maxsize=16)
def _cast(result: DataType, _gateway: object) -> PythonFunction:
    convert = scalar.cast
    integral = SPARK_TYPES[result] == SPARK_TYPES[DataType.INTEGER]

    def evaluate(value: Any) -> Any:
        converted: Any = convert(value, result)
        if integral and converted is not None and not -(2**63) <= converted < 2**63:
            return None
        return converted

    made: PythonFunction = udf(evaluate, SPARK_TYPES[result], useArrow=True)
    return made


_send_what_is_cached()
