"""Window functions on Spark.

Spark leaves rows with equal keys in any order, so every window whose values depend on it is
ordered by the whole row as well. RANK and RANGE frames look at the keys alone.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as fn

from static_engine.lowering.spark_aggregates import lower_aggregate
from static_engine.lowering.spark_expressions import lower_expression
from static_engine.lowering.spark_orders import by_key, ordered
from streamsql.algebra.operators import OverWindow, WindowCall, WindowFunction


def over(frame: DataFrame, plan: OverWindow) -> DataFrame:
    """Return the input's columns c0, c1, … and one more per call."""
    width = len(plan.input.schema)
    row = [fn.col(f"c{position}") for position in range(width)]
    # Arguments get columns of their own first: Spark takes no Python function inside a window.
    arguments = [
        lower_expression(argument, row).alias(f"a{n}_{m}")
        for n, call in enumerate(plan.calls)
        for m, argument in enumerate(call.arguments)
    ]
    prepared = frame.select(*row, *arguments)
    windows = _Windows(plan, row)
    parts: list[Column] = []
    finished: list[Column] = []
    for n, call in enumerate(plan.calls):
        given = [fn.col(f"a{n}_{m}") for m in range(len(call.arguments))]
        aggregate = call.aggregate_call
        if aggregate is None:
            parts.append(_value(call, given, windows).alias(f"p{n}"))
            value = fn.col(f"p{n}")
            looks_ahead = call.function == WindowFunction.NTH_VALUE and _is_tail_of_peers(call)
            finished.append(fn.first(value).over(windows.group) if looks_ahead else value)
            continue
        lowered = lower_aggregate(aggregate, given)
        window = windows.framed(call)
        parts += [part.over(window).alias(f"p{n}_{m}") for m, part in enumerate(lowered.parts)]
        finished.append(lowered.finish([fn.col(f"p{n}_{m}") for m in range(len(lowered.parts))]))
    numbered = prepared.select(*row, *parts)
    return numbered.select(
        *row, *[value.alias(f"c{width + n}") for n, value in enumerate(finished)]
    )


class _Windows:
    """The ways to order the partitions of an operator."""

    def __init__(self, plan: OverWindow, row: list[Column]) -> None:
        dtypes = plan.input.schema.dtypes
        columns = [ordered(column, dtype) for column, dtype in zip(row, dtypes, strict=True)]
        keys = [by_key(columns[key.position], key) for key in plan.order]
        whole = [column.asc_nulls_first() for column in columns]
        self._partition = [columns[p] for p in plan.partition]
        self._group = [*self._partition, *[columns[key.position] for key in plan.order]]
        # Spark wants an order for ranks; by a constant all rows are peers.
        self._keys = keys or [fn.lit(1).asc()]
        self._whole = [*keys, *whole]

    @property
    def rows(self) -> WindowSpec:
        """By keys and whole rows: no two rows that differ are peers."""
        return Window.partitionBy(*self._partition).orderBy(*self._whole)

    @property
    def peers(self) -> WindowSpec:
        """By keys alone."""
        return Window.partitionBy(*self._partition).orderBy(*self._keys)

    @property
    def whole(self) -> WindowSpec:
        """The partition in order."""
        return self.rows.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)

    @property
    def group(self) -> WindowSpec:
        """All peers of a row, in order."""
        window = Window.partitionBy(*self._group).orderBy(*self._whole)
        return window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)

    def framed(self, call: WindowCall) -> WindowSpec:
        """Return the frames of an aggregate."""
        frame = call.frame
        start = Window.unboundedPreceding if frame.start is None else frame.start
        end = Window.unboundedFollowing if frame.end is None else frame.end
        if frame.is_whole or not frame.peers:
            return self.rows.rowsBetween(start, end)
        return self.peers.rangeBetween(start, end)


def _value(call: WindowCall, given: list[Column], windows: _Windows) -> Column:
    match call.function:
        case WindowFunction.ROW_NUMBER:
            return fn.row_number().over(windows.rows)
        case WindowFunction.RANK:
            return fn.rank().over(windows.peers)
        case WindowFunction.DENSE_RANK:
            return fn.dense_rank().over(windows.peers)
        case WindowFunction.PERCENT_RANK:
            return fn.percent_rank().over(windows.peers)
        case WindowFunction.CUME_DIST:
            return fn.cume_dist().over(windows.peers)
        case WindowFunction.NTILE:
            return fn.ntile(call.number).over(windows.rows)
        case WindowFunction.LAG | WindowFunction.LEAD:
            shifted = fn.lag(given[0], -call.shift).over(windows.rows)
            if len(given) == 1:
                return shifted
            known = fn.lag(fn.lit(1), -call.shift).over(windows.rows)
            return fn.when(known.isNull(), given[1]).otherwise(shifted)
        case WindowFunction.NTH_VALUE:
            return _nth(call, given[0], windows)
        case _:
            return _edge(call, given[0], windows)


def _edge(call: WindowCall, value: Column, windows: _Windows) -> Column:
    """Return FIRST_VALUE or LAST_VALUE; at a bound of peers those are in order themselves."""
    first = call.function == WindowFunction.FIRST_VALUE
    frame = call.frame
    bound = frame.start if first else frame.end
    chosen = fn.first(value) if first else fn.last(value)
    if not frame.peers:
        return chosen.over(windows.framed(call))
    if bound is not None:
        return chosen.over(windows.group)
    return chosen.over(windows.whole)


def _is_tail_of_peers(call: WindowCall) -> bool:
    """Whether a frame goes from the row's peers to the end of the partition."""
    return call.frame.peers and call.frame.start == 0 and call.frame.end is None


def _nth(call: WindowCall, value: Column, windows: _Windows) -> Column:
    """Return NTH_VALUE; peers are in order themselves.

    From the peers to the end it is the value so many rows ahead of the first peer: this returns
    those ahead of each row, `over` takes the first one's.
    """
    frame, nth = call.frame, fn.nth_value(value, call.number)
    if not frame.peers:
        return nth.over(windows.framed(call))
    if frame.is_whole:
        return nth.over(windows.whole)
    if frame.start == frame.end:
        return nth.over(windows.group)
    if _is_tail_of_peers(call):
        return fn.lead(value, call.number - 1).over(windows.rows)
    held = fn.count(fn.lit(1)).over(windows.framed(call))
    return fn.when(held >= call.number, nth.over(windows.whole))
