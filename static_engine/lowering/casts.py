"""CAST, which gives NULL where a value does not convert."""

from pyspark.sql import Column
from pyspark.sql import functions as fn

from static_engine.lowering.python_functions import call_python_cast
from static_engine.lowering.spark_types import INTEGRAL, SPARK_TYPES, null, whole_number
from streamsql.data.types import DataType


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
