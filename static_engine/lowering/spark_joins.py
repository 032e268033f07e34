"""Joins of two frames whose columns are c0, c1, … through both."""

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from static_engine.lowering.spark_expressions import lower_expression
from static_engine.lowering.spark_operators import COMPARISONS, compare_exactly
from static_engine.lowering.spark_types import null
from streamsql.algebra.expressions import Call, Expression, walk
from streamsql.algebra.operators import Join, JoinKind
from streamsql.data.types import DataType

_KINDS = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left",
    JoinKind.FULL: "full",
    JoinKind.SEMI: "left_semi",
    JoinKind.ANTI: "left_anti",
}
_PLAIN = frozenset(
    {*COMPARISONS, "AND", "OR", "NOT", "IS NULL", "IS NOT NULL", "IN", "+", "-", "*"}
)
"""Functions that are never lowered to Python."""


def joined(left: DataFrame, right: DataFrame, join: Join) -> DataFrame:
    """Return a join; the right side's columns are numbered on from the left side's."""
    condition = _condition(join)
    if join.kind != JoinKind.INNER and join.residual is not None and not _is_plain(join.residual):
        return _by_pairs(left, right, join, condition)
    return left.join(right, condition, _KINDS[join.kind])


def _condition(join: Join) -> Column:
    width = len(join.left.schema) + len(join.right.schema)
    parts = [_keys_equal(join, left_key, right_key) for left_key, right_key in join.keys]
    if join.residual is not None:
        parts.append(lower_expression(join.residual, _columns(range(width))).cast("boolean"))
    return reduce(and_, parts) if parts else fn.lit(True)


def _is_plain(predicate: Expression) -> bool:
    calls = [part for part in walk(predicate) if isinstance(part, Call)]
    return all(call.function in _PLAIN for call in calls)


def _by_pairs(left: DataFrame, right: DataFrame, join: Join, condition: Column) -> DataFrame:
    """Return a join whose predicate may run in Python, which Spark supports in inner joins only.

    Whether a row has a partner follows from its values, so equal rows share the answer.
    """
    width = len(join.left.schema)
    mine, theirs = range(width), range(width, width + len(join.right.schema))
    pairs = left.join(right, condition, "inner").select(*_columns([*mine, *theirs]))
    if join.kind.is_filter:
        return _known(left, pairs, mine, wanted=join.kind == JoinKind.SEMI)
    lonely = _known(left, pairs, mine, wanted=False)
    padding = [
        null(dtype).alias(f"c{position}")
        for position, dtype in zip(theirs, join.right.schema.dtypes, strict=True)
    ]
    result = pairs.unionAll(lonely.select(*_columns(mine), *padding))
    if join.kind == JoinKind.FULL:
        nothing = [
            null(dtype).alias(f"c{position}")
            for position, dtype in zip(mine, join.left.schema.dtypes, strict=True)
        ]
        alone = _known(right, pairs, theirs, wanted=False)
        result = result.unionAll(alone.select(*nothing, *_columns(theirs)))
    return result


def _known(side: DataFrame, pairs: DataFrame, positions: range, *, wanted: bool) -> DataFrame:
    """Return the rows of a side that are in a pair, or those that are not."""
    known = pairs.select(*[fn.col(f"c{p}").alias(f"m{p}") for p in positions])
    same = [fn.col(f"c{p}").eqNullSafe(fn.col(f"m{p}")) for p in positions]
    condition = reduce(and_, same) if same else fn.lit(True)
    return side.join(known, condition, "left_semi" if wanted else "left_anti")


def _keys_equal(join: Join, left: int, right: int) -> Column:
    one, other = fn.col(f"c{left}"), fn.col(f"c{len(join.left.schema) + right}")
    match (join.left.schema.dtypes[left], join.right.schema.dtypes[right]):
        case (DataType.INTEGER, DataType.DOUBLE):
            integer, double = one, other
        case (DataType.DOUBLE, DataType.INTEGER):
            integer, double = other, one
        case _:
            return one == other
    # The first part lets Spark join by key, the second corrects large integers.
    return (integer.cast("double") == double) & (compare_exactly(integer, double) == 0)


def _columns(positions: "range | list[int]") -> list[Column]:
    return [fn.col(f"c{position}") for position in positions]
