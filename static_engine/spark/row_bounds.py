"""Bounds of the rows that plans can have, from the rows and keys of their tables."""

import math
from collections.abc import Callable

from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Materialize,
    OverWindow,
    Plan,
    Project,
    Scan,
    SetOperation,
    TopN,
    UnionAll,
    Values,
)
from streamsql.algebra.row_keys import is_matched_once, is_unique


def most_rows(plan: Plan, rows_of: Callable[[Scan], float]) -> float:
    """Return how many rows a plan may have, where it is cheaper to count them than to collect them.

    What groups, sorts or compares rows is not evaluated twice: it returns 0. Of a join along a key
    the larger side is taken.
    """
    match plan:
        case Scan():
            return rows_of(plan)
        case Filter() | Project():
            return most_rows(plan.input, rows_of)
        case UnionAll(branches=branches):
            return sum(most_rows(branch, rows_of) for branch in branches)
        case Join():
            left, right = (most_rows(side, rows_of) for side in plan.inputs)
            if plan.kind.is_filter:
                return left
            return max(left, right) if plan.keys else left * right
        case _:
            return 0


def rows_at_most(plan: Plan, rows_of: Callable[[Scan], float]) -> float:
    """Return a bound of the rows a plan can have, whatever its tables hold; inf: none is known.

    Args:
        plan: Of `with_kept_rows`.
        rows_of: Rows of a table at most, or inf.
    """
    bounds = [rows_at_most(child, rows_of) for child in plan.inputs]
    match plan:
        case Scan():
            return rows_of(plan)
        case Values(rows=rows):
            return len(rows)
        case Filter() | Project() | Distinct() | Materialize() | TopN() | OverWindow():
            return bounds[0]
        case Aggregate():
            return max(bounds[0], 1)
        case SetOperation() | AsOfJoin():  # a left row once at most
            return bounds[0]
        case UnionAll():
            return sum(bounds)
        case Join():
            return _joined_at_most(plan, *bounds)
        case _:
            return math.inf


def _joined_at_most(join: Join, left: float, right: float) -> float:
    """Return a bound of pairs of rows, and of rows without partner."""
    right_once = is_matched_once(join)
    left_once = is_unique(join.left, (position for position, _ in join.keys))
    of_one_left, of_one_right = 1 if right_once else right, 1 if left_once else left
    match join.kind:
        case JoinKind.INNER:
            return min(_product(left, of_one_left), _product(right, of_one_right))
        case JoinKind.LEFT if left_once and not right_once:
            return min(_product(left, max(right, 1)), left + right)
        case JoinKind.LEFT:
            return _product(left, max(of_one_left, 1))
        case JoinKind.FULL if left_once or right_once:
            return left + right
        case JoinKind.FULL:
            return _product(left, max(right, 1)) + right
        case JoinKind.SEMI | JoinKind.ANTI:
            return left


def _product(one: float, other: float) -> float:
    return math.inf if math.inf in (one, other) else one * other
