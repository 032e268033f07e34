"""StreamSQL types as Spark types; times are 64-bit microseconds."""

from pyspark.sql import Column
from pyspark.sql import functions as fn
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType
from pyspark.sql.types import DataType as SparkType

from streamsql.data.types import DataType, Value

SPARK_TYPES: dict[DataType, SparkType] = {
    DataType.BOOLEAN: BooleanType(),
    DataType.INTEGER: LongType(),
    DataType.DOUBLE: DoubleType(),
    DataType.TEXT: StringType(),
    DataType.TIMESTAMP: LongType(),
    DataType.INTERVAL: LongType(),
    DataType.NULL: StringType(),
}
INTEGRAL = frozenset({DataType.INTEGER, DataType.TIMESTAMP, DataType.INTERVAL})
"""Types whose values are 64-bit integers."""


def constant(value: Value, dtype: DataType) -> Column:
    """Return a constant of a StreamSQL type."""
    return fn.lit(value).cast(SPARK_TYPES[dtype])


def null(dtype: DataType) -> Column:
    """Return the NULL of a type."""
    return constant(None, dtype)


def as_type(column: Column, source: DataType, target: DataType) -> Column:
    """Return a column under another type whose values are the same, e.g. INTEGER as DOUBLE."""
    if SPARK_TYPES[source] == SPARK_TYPES[target]:
        return column
    return column.cast(SPARK_TYPES[target])


def whole_number(double: Column) -> Column:
    """Return a double cut to a 64-bit integer; NULL out of range.

    Spark's own conversion takes 2^63 for the largest integer.
    """
    fits = (double >= -(2.0**63)) & (double < 2.0**63)
    return fn.when(fits, double).cast("bigint")
