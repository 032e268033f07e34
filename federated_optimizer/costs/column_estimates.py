"""Estimates of operators that depend on what is in columns: distinct values, and what changes.

A device's reading takes the place of its last one: its key stays, its numbers and times are others,
its texts and truths mostly the same. So a projection on the key hardly moves.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from federated_optimizer.costs.size_and_motion import GUESSED, Estimate, wider
from federated_optimizer.statistics.default_facts import SAME_VALUE
from streamsql.algebra.column_origins import column_origins
from streamsql.algebra.expressions import columns_of
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    TopN,
    walk_plan,
)
from streamsql.data.types import DataType


class Columns:
    """Estimates by columns.

    Args:
        rows: Of a source at one site.
    """

    def __init__(self, rows: Callable[[Scan], float]) -> None:
        self._rows = rows

    def projected(self, plan: Project, below: Estimate) -> Estimate:
        """Return a projection: a row that takes the place of an equal one does not move."""
        if not below.replaced:
            return below
        read = {c for expression in plan.expressions for c in columns_of(expression)}
        before = self.changing(plan.input, range(len(plan.input.schema)))
        share = self.changing(plan.input, tuple(read)) / before if before else 1.0
        stays = 1.0 - below.replaced * (1.0 - min(share, 1.0))
        return replace(
            below,
            inserts=below.inserts * stays,
            deletes=below.deletes * stays,
            replaced=1.0 - (1.0 - below.replaced) / stays if stays else 0.0,
        )

    def changing(self, plan: Plan, columns: Sequence[int]) -> float:
        """Return how likely a reading in another one's place differs in some columns."""
        keys = {node.source: node.key for node in walk_plan(plan) if isinstance(node, Scan)}
        origins = column_origins(plan)
        same = 1.0
        for column in columns:
            source, position = origins[column] or ("", -1)
            if position in keys.get(source, ()):
                continue
            dtype = plan.schema.dtypes[column]
            is_state = dtype in (DataType.TEXT, DataType.BOOLEAN)
            same *= SAME_VALUE.value if is_state else 0.0
        return 1.0 - same

    def joined(self, plan: Join, left: Estimate, right: Estimate) -> Estimate:
        """Return a join: a value of the larger domain meets rows of the other side by chance."""
        if plan.kind == JoinKind.SEMI and plan.keys:
            return self._found(plan, left, right)
        if plan.kind.is_filter:
            return left
        pairs = tuple(zip(*plan.keys, strict=True)) if plan.keys else ((), ())
        domain = max(self._domain(plan.left, pairs[0]), self._domain(plan.right, pairs[1]))
        per_left, per_right = right.rows / domain, left.rows / domain
        return Estimate(
            left.rows * per_left,
            left.inserts * per_left + right.inserts * per_right,
            left.deletes * per_left + right.deletes * per_right,
            tuple(dict.fromkeys(left.assumed + right.assumed)),
            min(left.replaced, right.replaced),
            wider(left.factor, right.factor, GUESSED),
        )

    def _found(self, plan: Join, left: Estimate, right: Estimate) -> Estimate:
        """Return the rows of a left side that keys of the right side find."""
        domain = self._domain(plan.left, tuple(key for key, _ in plan.keys))
        share, of_one = min(right.rows / domain, 1.0), left.rows / domain
        return replace(
            left.scaled(share, GUESSED),
            inserts=left.inserts * share + right.inserts * of_one,
            deletes=left.deletes * share + right.deletes * of_one,
        )

    def _domain(self, plan: Plan, columns: Sequence[int]) -> float:
        """Return how many values columns may have, whatever filters leave of them."""
        sources = [self._rows(node) for node in walk_plan(plan) if isinstance(node, Scan)]
        return self.values(plan, columns, max(sources, default=1.0))

    def aggregated(self, plan: Aggregate, below: Estimate) -> Estimate:
        """Return groups: a change of one that changes its row takes the old row's place."""
        groups = self.values(plan.input, plan.group, below.rows)
        members = below.rows / groups
        stays = below.replaced * (1.0 - self.changing(plan.input, plan.group))
        most = max((_moved(call, below, members, stays) for call in plan.aggregates), default=0.0)
        changed = below.events * most
        factor = wider(below.factor, GUESSED)
        return Estimate(groups, changed, changed, below.assumed, 1.0, factor)

    def distinct(self, plan: Distinct, below: Estimate) -> Estimate:
        """Return distinct rows: one changes if no other row is equal."""
        values = self.values(plan.input, range(len(plan.schema)), below.rows)
        alone = math.exp(min(1.0 - below.rows / values, 0.0))
        # No row moves that would not move without it, so it may be wrong by no more.
        return replace(below.scaled(alone), rows=values, replaced=below.replaced * alone)

    def first(self, plan: TopN, below: Estimate) -> Estimate:
        """Return first rows: one that comes pushes another out, and one that goes lets one in."""
        if plan.limit is None:
            return below
        parts = self.values(plan.input, plan.partition, below.rows)
        rows = min((plan.limit + plan.offset) * parts, below.rows)
        if rows >= below.rows:
            return below
        share = rows / below.rows
        # A row that comes or goes among them; another one in its place if there are more.
        changed = below.events * share * (1.0 - share / 2)
        replaced = 2.0 * (1.0 - share) / (2.0 - share)
        factor = wider(below.factor, GUESSED)
        return Estimate(rows, changed, changed, below.assumed, replaced, factor)

    @staticmethod
    def values(plan: Plan, columns: Sequence[int], rows: float) -> float:
        """Return how many distinct values so many rows have in some columns."""
        if not columns:
            return 1.0
        origins = column_origins(plan)
        keys = {node.source: node.key for node in walk_plan(plan) if isinstance(node, Scan)}
        found = 1.0
        for column in dict.fromkeys(columns):
            source, position = origins[column] or ("", -1)
            found *= _values_of(plan.schema.dtypes[column], keys.get(source, ()), position, rows)
        return max(min(found, rows), 1.0)


def _values_of(dtype: DataType, key: tuple[int, ...], position: int, rows: float) -> float:
    if position in key:
        return float(rows ** (1 / len(key)))
    if dtype == DataType.BOOLEAN:
        return 2.0
    if dtype in (DataType.DOUBLE, DataType.TIMESTAMP):
        return rows
    return math.sqrt(rows)


def _moved(call: AggregateCall, below: Estimate, members: float, stays: float) -> float:
    """Return the share of changes that change an aggregate.

    Args:
        call: The aggregate.
        below: What it reads.
        members: Rows of a group.
        stays: Share of changes by which a row takes the place of one of its group.
    """
    match call.function:
        case AggregateFunction.COUNT_ALL | AggregateFunction.COUNT if not call.distinct:
            return 1.0 - stays
        case (
            AggregateFunction.MIN
            | AggregateFunction.MAX
            | AggregateFunction.ARG_MIN
            | AggregateFunction.ARG_MAX
            | AggregateFunction.BOOL_AND
            | AggregateFunction.BOOL_OR
        ):
            # A row that comes or goes is the best one as often as any other.
            return min((1.0 + below.replaced) / max(members, 1.0), 1.0)
        case _:
            return 1.0
