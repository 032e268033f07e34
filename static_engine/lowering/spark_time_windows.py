"""Windows over a time column: hopping ones, sessions, and those that have closed."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from static_engine.lowering.spark_types import constant
from streamsql.algebra.operators import HopWindow, SessionWindow
from streamsql.data.types import DataType

_START, _NEW, _SESSION, _LEAST = "start", "new", "session", "least"


def hops(frame: DataFrame, plan: HopWindow) -> DataFrame:
    """Return each row once per window that holds its time."""
    width = len(plan.input.schema)
    time = fn.col(f"c{plan.time}")
    hop, size = _micros(plan.hop), _micros(plan.size)
    last = time - fn.pmod(time - _micros(plan.offset), hop)
    # Windows start at last, last - hop, ... while start + size > time.
    count = fn.call_function("div", last + size - time + hop - 1, hop)
    starts = fn.when(count > 0, fn.sequence(last, last - (count - 1) * hop, -hop))
    spread = frame.withColumn(_START, fn.explode(starts))
    bounds = [fn.col(_START), fn.col(_START) + size]
    return spread.select(
        *[fn.col(f"c{position}") for position in range(width)],
        *[bound.alias(f"c{width + n}") for n, bound in enumerate(bounds)],
    )


def sessions(frame: DataFrame, plan: SessionWindow) -> DataFrame:
    """Return each row with the bounds of its session."""
    width = len(plan.input.schema)
    time = fn.col(f"c{plan.time}")
    keys = [fn.col(f"c{position}") for position in plan.partition]
    in_order = Window.partitionBy(*keys).orderBy(time)
    earlier = fn.lag(time).over(in_order)
    is_new = fn.when(earlier.isNull() | (time - earlier >= _micros(plan.gap)), 1).otherwise(0)
    marked = frame.filter(time.isNotNull()).withColumn(_NEW, is_new)
    # The frame ends with the last row of equal time, so rows of one time are in one session.
    up_to_now = in_order.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = marked.withColumn(_SESSION, fn.sum(_NEW).over(up_to_now))
    together = Window.partitionBy(*keys, fn.col(_SESSION))
    bounds = [fn.min(time).over(together), fn.max(time).over(together) + _micros(plan.gap)]
    return numbered.select(
        *[fn.col(f"c{position}") for position in range(width)],
        *[bound.alias(f"c{width + n}") for n, bound in enumerate(bounds)],
    )


def closed(groups: DataFrame, progress: DataFrame, end: int) -> DataFrame:
    """Return the rows whose window the watermark of every site has passed; without sites none."""
    least = progress.agg(fn.min(fn.col("c1")).alias(_LEAST))
    return groups.join(least, fn.col(f"c{end}") <= fn.col(_LEAST), "left_semi")


def _micros(value: int) -> Column:
    return constant(value, DataType.INTEGER)
