"""Relational operators as DataFrames.

Columns are named c0, c1, … by position at every step, so names never clash. A relation without
columns still counts its rows; it carries one column that is no part of it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from static_engine.lowering.spark_aggregates import lower_aggregate
from static_engine.lowering.spark_expressions import lower_expression
from static_engine.lowering.spark_joins import joined
from static_engine.lowering.spark_orders import as_of, first_rows
from static_engine.lowering.spark_over_windows import over
from static_engine.lowering.spark_recursion import SparkRecursion
from static_engine.lowering.spark_time_windows import closed, hops, sessions
from static_engine.lowering.spark_types import SPARK_TYPES
from static_engine.sources.values.conversion import arrow_schema
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    SessionWindow,
    SetKind,
    SetOperation,
    StreamWindow,
    TopN,
    ToStream,
    UnionAll,
    Values,
    Window,
    WindowBounds,
    Younger,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError

Tables = Callable[[Scan], DataFrame]
_NOTHING = "nothing"  # the column of a relation without columns


def lower_plan(
    plan: Plan, tables: Tables, session: SparkSession, keep: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """Return the DataFrame of a plan over stored tables.

    Args:
        plan: A plan without streams and remote inputs. Recursions in it are evaluated here.
        tables: The rows of a table or of the past, columns c0, c1, … in the scan's order.
        session: Where constant rows are made.
        keep: Marks a frame as one to be computed once; called once for each materialized table.
    """
    return _Lowering(tables, session, keep).lower(plan)


def columns_of_width(width: int) -> list[Column]:
    """Return the columns of a relation of that many columns."""
    return [fn.col(f"c{position}") for position in range(width)]


class _Lowering:
    def __init__(
        self, tables: Tables, session: SparkSession, keep: Callable[[DataFrame], DataFrame]
    ) -> None:
        self._tables = tables
        self._session = session
        self._keep = keep
        self._kept: dict[Plan, DataFrame] = {}
        self._recursive: Mapping[str, DataFrame] = {}

    def lower(self, plan: Plan) -> DataFrame:
        match plan:
            case Scan() | Values() | RecursiveReference():
                return self._leaf(plan)
            case Filter() | Project():
                return self._row_by_row(plan)
            case Join():
                return self._join(plan)
            case Aggregate():
                return self._aggregate(plan)
            case Materialize():
                return self._materialized(plan)
            case Distinct(input=child):
                return self.lower(child).distinct()
            case UnionAll(branches=branches):
                return reduce(DataFrame.unionAll, [self.lower(branch) for branch in branches])
            case SetOperation():
                return _combined(self.lower(plan.left), self.lower(plan.right), plan)
            case AsOfJoin():
                both = (self.lower(plan.left), self.lower(plan.right))
                return _select(as_of(*both, plan), columns_of_width(len(plan.schema)), plan.schema)
            case OverWindow():
                lowered = over(self.lower(plan.input), plan)
                return _select(lowered, columns_of_width(len(plan.schema)), plan.schema)
            case TopN() | HopWindow() | SessionWindow():
                return _timed_or_ordered(self.lower(plan.input), plan)
            case OnClose(left=groups, right=progress, end=end):
                return closed(self.lower(groups), self.lower(progress), end)
            case Fixpoint():
                return SparkRecursion(plan, self._inside, self._keep).rows()
            case (
                Window() | RemoteSource() | ToStream() | StreamWindow() | WindowBounds() | Younger()
            ):
                # The executor has refused these with the reason.
                raise InternalError(f"{type(plan).__name__} cannot be lowered to Spark")

    def _leaf(self, plan: Scan | Values | RecursiveReference) -> DataFrame:
        match plan:
            case Scan():
                return self._tables(plan)
            case Values():
                return self._values(plan)
            case RecursiveReference(name=name):
                return self._recursive[name]

    def _inside(self, plan: Plan, recursive: Mapping[str, DataFrame]) -> DataFrame:
        """Return the frame of a part of a recursion; what it may read besides is given by name."""
        around = self._recursive
        self._recursive = {**around, **recursive}
        try:
            return self.lower(plan)
        finally:
            self._recursive = around

    def _row_by_row(self, plan: Filter | Project) -> DataFrame:
        row = columns_of_width(len(plan.input.schema))
        below = self.lower(plan.input)
        if isinstance(plan, Filter):
            return below.filter(lower_expression(plan.predicate, row).cast("boolean"))
        return _select(below, [lower_expression(e, row) for e in plan.expressions], plan.schema)

    def _materialized(self, plan: Materialize) -> DataFrame:
        if plan not in self._kept:
            self._kept[plan] = self._keep(self.lower(plan.input))
        return self._kept[plan]

    def _values(self, values: Values) -> DataFrame:
        if not values.rows or not len(values.schema):
            empty = self._session.range(len(values.rows))
            return _select(empty, [fn.lit(None)] * len(values.schema), values.schema)
        types = values.schema.dtypes
        arrays = [
            [float(v) if t == DataType.DOUBLE and v is not None else v for v in column]
            for t, column in zip(types, zip(*values.rows, strict=True), strict=True)
        ]
        data = pa.Table.from_arrays(
            [pa.array(a, f.type) for a, f in zip(arrays, arrow_schema(values.schema), strict=True)],
            schema=arrow_schema(values.schema),
        )
        return self._session.createDataFrame(data)

    def _join(self, join: Join) -> DataFrame:
        width = len(join.left.schema)
        left = self.lower(join.left)
        right = self.lower(join.right)
        moved = [
            column.alias(f"c{width + position}")
            for position, column in enumerate(columns_of_width(len(join.right.schema)))
        ]
        right = right.select(*moved) if moved else right.withColumnRenamed(_NOTHING, "also_nothing")
        row = columns_of_width(len(join.schema))
        return _select(joined(left, right, join), row, join.schema)

    def _aggregate(self, plan: Aggregate) -> DataFrame:
        width = len(plan.input.schema)
        row = columns_of_width(width)
        group = [row[position].alias(f"g{n}") for n, position in enumerate(plan.group)]
        keys = [fn.col(f"g{n}") for n in range(len(group))]
        arguments = [[lower_expression(a, row) for a in call.arguments] for call in plan.aggregates]
        # Arguments get columns of their own first: Spark takes no Python function inside a sum.
        prepared = [
            column.alias(f"a{n}_{m}")
            for n, columns in enumerate(arguments)
            for m, column in enumerate(columns)
        ]
        frame = _some(self.lower(plan.input), [*group, *prepared])
        lowered = [
            lower_aggregate(call, [fn.col(f"a{n}_{m}") for m in range(len(columns))])
            for n, (call, columns) in enumerate(zip(plan.aggregates, arguments, strict=True))
        ]
        parts = [
            part.alias(f"p{n}_{m}")
            for n, aggregate in enumerate(lowered)
            for m, part in enumerate(aggregate.parts)
        ]
        # A count of its own, because Spark wants at least one aggregate.
        grouped = frame.groupBy(*keys).agg(fn.count(fn.lit(1)).alias(_NOTHING), *parts)
        finished = [
            aggregate.finish([fn.col(f"p{n}_{m}") for m in range(len(aggregate.parts))])
            for n, aggregate in enumerate(lowered)
        ]
        return _select(grouped, [*keys, *finished], plan.schema)


def _combined(left: DataFrame, right: DataFrame, plan: SetOperation) -> DataFrame:
    if plan.kind == SetKind.INTERSECT:
        return left.intersectAll(right) if plan.all else left.intersect(right)
    return left.exceptAll(right) if plan.all else left.subtract(right)


def _timed_or_ordered(frame: DataFrame, plan: TopN | HopWindow | SessionWindow) -> DataFrame:
    match plan:
        case TopN():
            return first_rows(frame, plan)
        case HopWindow():
            return hops(frame, plan)
        case SessionWindow():
            return sessions(frame, plan)


def _select(frame: DataFrame, columns: Sequence[Column], schema: Schema) -> DataFrame:
    named = [
        column.cast(SPARK_TYPES[dtype]).alias(f"c{position}")
        for position, (column, dtype) in enumerate(zip(columns, schema.dtypes, strict=True))
    ]
    return _some(frame, named)


def _some(frame: DataFrame, columns: list[Column]) -> DataFrame:
    return frame.select(*(columns or [fn.lit(True).alias(_NOTHING)]))
