"""Which operator runs a join."""

from stream_engine.operators.joins.as_of_join import AsOfJoinOperator
from stream_engine.operators.joins.band_bounds import find_band
from stream_engine.operators.joins.band_join import BandJoinOperator
from stream_engine.operators.joins.full_join import FullJoinOperator
from stream_engine.operators.joins.join import JoinOperator
from stream_engine.operators.joins.left_join import LeftJoinOperator
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
            condition = find_band(residual, left)
            if condition is not None:
                return BandJoinOperator(keys, condition)
            return JoinOperator(keys, residual)
        case JoinKind.LEFT:
            return LeftJoinOperator(keys, residual, left, right)
        case JoinKind.FULL:
            return FullJoinOperator(keys, residual, left, right)
        case JoinKind.SEMI | JoinKind.ANTI as kind:
            anti = kind == JoinKind.ANTI
            if residual is None:
                return SemiJoinOperator(keys, anti=anti)
            return CountedSemiJoinOperator(keys, residual, left, anti=anti)
