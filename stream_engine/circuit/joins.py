"""Which operator runs a join."""

from stream_engine.operators.joins.as_of_join import AsOfJoinOperator
from stream_engine.operators.joins.band_bounds import find_band
from stream_engine.operators.joins.join import BandJoinOperator, JoinOperator
from stream_engine.operators.joins.outer_join import (
    CountedOuterJoinOperator,
    KeyedOuterJoinOperator,
)
from stream_engine.operators.joins.semi_join import CountedSemiJoinOperator, SemiJoinOperator
from stream_engine.operators.rows.operator import Operator
from streamsql.algebra.operators import AsOfJoin, Join, JoinKind


def join_operator(plan: Join | AsOfJoin) -> Operator:
    """Return the operator of a join of two inputs."""
    if isinstance(plan, AsOfJoin):
        return AsOfJoinOperator(plan)
    keys, residual = plan.keys, plan.residual
    left, right = len(plan.left.schema), len(plan.right.schema)
    match plan.kind:
        case JoinKind.INNER:
            if find_band(residual, left) is not None:
                return BandJoinOperator(keys, residual, left)
            return JoinOperator(keys, residual)
        case JoinKind.LEFT | JoinKind.FULL as kind:
            paddings = ((None,) * right, (None,) * left if kind == JoinKind.FULL else None)
            if residual is None:
                return KeyedOuterJoinOperator(keys, paddings)
            return CountedOuterJoinOperator(keys, residual, left, paddings)
        case JoinKind.SEMI | JoinKind.ANTI as kind:
            anti = kind == JoinKind.ANTI
            if residual is None:
                return SemiJoinOperator(keys, anti=anti)
            return CountedSemiJoinOperator(keys, residual, left, anti=anti)
