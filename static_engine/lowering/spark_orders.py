"""Operators that need an order: first rows, as-of joins. Rows without columns have none.

NULL is the least value of a row, as in `streamsql.data.delta.sort_key`; Spark compares texts by
code point as we do, and adding 0 makes -0 and 0 one value.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from static_engine.lowering.spark_types import constant, whole_number
from streamsql.algebra.operators import AsOfJoin, JoinKind, SortKey, TopN
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

_LARGEST = 2**31 - 1  # what Spark takes as a limit; no result has so many rows
_RANK, _SIDE, _TIME, _OURS, _THEIRS = "rank", "side", "time", "ours", "theirs"


def first_rows(frame: DataFrame, plan: TopN) -> DataFrame:
    """Return the first rows of every partition; columns stay as they are."""
    if not plan.offset and plan.limit is None:
        return frame
    dtypes = plan.schema.dtypes
    columns = [ordered(_column(position), dtype) for position, dtype in enumerate(dtypes)]
    order = [by_key(columns[key.position], key) for key in plan.order]
    order += [column.asc_nulls_first() for column in columns]
    if not plan.partition:
        rest = frame.orderBy(*order).offset(min(plan.offset, _LARGEST))
        return rest if plan.limit is None else rest.limit(min(plan.limit, _LARGEST))
    window = Window.partitionBy(*[columns[p] for p in plan.partition]).orderBy(*order)
    ranked = frame.withColumn(_RANK, fn.row_number().over(window))
    kept = fn.col(_RANK) > plan.offset
    if plan.limit is not None:
        kept &= fn.col(_RANK) <= plan.offset + plan.limit
    return ranked.filter(kept).drop(_RANK)


def as_of(left: DataFrame, right: DataFrame, plan: AsOfJoin) -> DataFrame:
    """Return each left row with the right row that was current at its time.

    Both sides of a key are put in one order of time; the newest right row so far is the one. That
    sorts once and makes no pairs. A left row whose key or time is NULL meets no right row, because
    those are taken out.
    """
    ours = _side(left, plan, right=False)
    theirs = _side(right, plan, right=True)
    for number in range(len(plan.keys)):
        theirs = theirs.filter(fn.col(f"k{number}").isNotNull())
    both = ours.unionAll(theirs.filter(fn.col(_TIME).isNotNull()))
    parts = [
        ordered(fn.col(f"{_THEIRS}.c{position}"), dtype).asc_nulls_first()
        for position, dtype in enumerate(plan.right.schema.dtypes)
    ]
    window = (
        Window.partitionBy(*[fn.col(f"k{number}") for number in range(len(plan.keys))])
        .orderBy(fn.col(_TIME).asc_nulls_first(), fn.col(_SIDE), *parts)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    found = fn.last(fn.col(_THEIRS), ignorenulls=True).over(window)
    joined = both.withColumn(_RANK, found).filter(fn.col(_OURS).isNotNull())
    if plan.kind == JoinKind.INNER:
        joined = joined.filter(fn.col(_RANK).isNotNull())
    return joined.select(
        *[fn.col(f"{_OURS}.c{position}") for position in range(len(plan.left.schema))],
        *[
            fn.col(f"{_RANK}.c{position}").alias(f"c{position + len(plan.left.schema)}")
            for position in range(len(plan.right.schema))
        ],
    )


def _side(frame: DataFrame, plan: AsOfJoin, *, right: bool) -> DataFrame:
    """Return keys, time, which side comes first at one time, and the row as one column."""
    mine, other = (plan.right, plan.left) if right else (plan.left, plan.right)
    dtypes, others = mine.schema.dtypes, other.schema.dtypes
    pairs = [pair[::-1] if right else pair for pair in plan.keys]
    keys = [_key(_column(key), dtypes[key], others[partner]) for key, partner in pairs]
    time = plan.right_time if right else plan.left_time
    row = fn.struct(*[_column(position) for position in range(len(dtypes))])
    ours, theirs = _nothing(plan.left.schema), _nothing(plan.right.schema)
    return frame.select(
        *[key.alias(f"k{number}") for number, key in enumerate(keys)],
        ordered(_column(time), dtypes[time]).alias(_TIME),
        fn.lit(int(right == plan.strict)).alias(_SIDE),
        (ours if right else row).alias(_OURS),
        (row if right else theirs).alias(_THEIRS),
    )


def _nothing(schema: Schema) -> Column:
    """Return the NULL of a row type."""
    fields = [
        constant(None, dtype).alias(f"c{position}") for position, dtype in enumerate(schema.dtypes)
    ]
    return fn.when(fn.lit(False), fn.struct(*fields))


def _key(column: Column, dtype: DataType, other: DataType) -> Column:
    """Return a key that is equal for equal values of two types: INTEGER meets DOUBLE exactly."""
    match (dtype, other):
        case (DataType.INTEGER, DataType.DOUBLE):
            double, integer = column.cast("double"), column
        case (DataType.DOUBLE, DataType.INTEGER):
            double, integer = column + 0.0, whole_number(column)
        case _:
            return ordered(column, dtype)
    pair = fn.struct(double.alias("double"), integer.alias("integer"))
    return fn.when(column.isNotNull(), pair)


def by_key(column: Column, key: SortKey) -> Column:
    """Return a column as a key of an order."""
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def ordered(column: Column, dtype: DataType) -> Column:
    """Return a column whose equal values order as one."""
    return column + 0.0 if dtype == DataType.DOUBLE else column


def _column(position: int) -> Column:
    return fn.col(f"c{position}")
