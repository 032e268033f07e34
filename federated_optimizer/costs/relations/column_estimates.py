"""Estimates of operators that depend on what is in columns: distinct values, and what changes.

A device's reading takes the place of its last one: its key stays, its numbers and times are others,
its texts and truths mostly the same. So a projection on the key hardly moves.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from msgspec import UNSET

from federated_optimizer.costs.relations.column_sources import ColumnSources, finding
from federated_optimizer.costs.relations.moving_calls import any_changes
from federated_optimizer.costs.relations.size_and_motion import GUESSED, Estimate, wider
from federated_optimizer.statistics.column_shares import equal_share
from federated_optimizer.statistics.default_facts import SAME_VALUE
from federated_optimizer.statistics.planning_statistics import ColumnFacts
from streamsql.algebra.column_origins import Origin
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
    SourceKind,
    TopN,
    walk_plan,
)
from streamsql.algebra.row_keys import is_unique
from streamsql.data.types import DataType


class Spread(NamedTuple):
    """Spread of values: a most common one, and others that are all as common.

    Attributes:
        number: Of values.
        common: Share of the most common one.
    """

    number: float
    common: float

    def _other(self) -> float:
        return (1.0 - self.common) / (self.number - 1.0) if self.number > 1.0 else 0.0

    def seen(self, rows: float) -> float:
        """Return how many of the values so many rows have."""
        other = (self.number - 1.0) * _met(self._other(), rows)
        return _met(self.common, rows) + other

    def alone(self, rows: float) -> float:
        """Return how likely no other one of so many rows has the value of a row."""
        others, other = max(rows - 1.0, 0.0), self._other()
        rest = (1.0 - self.common) * (1.0 - _met(other, others))
        return self.common * (1.0 - _met(self.common, others)) + rest


def _met(share: float, rows: float) -> float:
    """Return how likely at least one of so many rows has a value of a share."""
    return 1.0 - float((1.0 - min(share, 1.0)) ** rows)


class Columns:
    """Estimates by columns.

    Args:
        rows: Of a source at one site.
        known: Facts about columns, by source and name in lower case.
        sites: That have rows of the sources; 1: it is all of them.
        merged: Gateways whose rows a site has.
    """

    def __init__(
        self,
        rows: Callable[[Scan], float],
        known: Mapping[tuple[str, str], ColumnFacts],
        sites: int,
        merged: int = 1,
    ) -> None:
        self._rows, self._known, self._sites, self._merged = rows, known, sites, merged
        self._sources = ColumnSources()

    def projected(self, plan: Project, below: Estimate) -> Estimate:
        """Return a projection: a row that takes the place of an equal one does not move."""
        if not below.replaced:
            return below
        read = sorted({c for expression in plan.expressions for c in columns_of(expression)})
        replaced = min(below.replaced, 1.0)
        stays = 1.0 - replaced * (1.0 - self._differing(plan.input, read))
        kept = self._kept(plan.input, read)
        return replace(
            below,
            assumed=tuple(dict.fromkeys((*below.assumed, *kept))),
            inserts=below.inserts * stays,
            deletes=below.deletes * stays,
            replaced=1.0 - (1.0 - below.replaced) / stays if stays else 0.0,
        )

    def changing(self, plan: Plan, columns: Sequence[int]) -> float:
        """Return how likely a reading in another one's place differs in some columns.

        Those of a stored table change with the key that has found its row.
        """
        leaves, origins = self._sources.of(plan)
        same, stored = 1.0, set[str]()
        for column in columns:
            source, position = origins[column] or ("", -1)
            if source in leaves and leaves[source].kind == SourceKind.TABLE:
                stored.add(source)
                continue
            if source in leaves and position in leaves[source].key:
                continue
            facts = self._facts(leaves, origins[column])
            if facts is not None and facts.same is not None:
                same *= facts.same
                continue
            same *= SAME_VALUE.value if _is_state(plan, column) else 0.0
        for found in filter(None, (finding(plan, table) for table in sorted(stored))):
            same *= 1.0 - self.changing(*found)
        return 1.0 - same

    def _kept(self, plan: Plan, columns: Sequence[int]) -> list[str]:
        """Return in words what is assumed of how often columns keep their value."""
        (leaves, origins), found = self._sources.of(plan), []
        for column in columns:
            source, position = origins[column] or ("", -1)
            facts, is_state = self._facts(leaves, origins[column]), _is_state(plan, column)
            unknown = facts is None or facts.same is None
            is_live = source in leaves and leaves[source].kind != SourceKind.TABLE
            if is_live and is_state and unknown and position not in leaves[source].key:
                name = leaves[source].columns.names[position]
                share = f"{SAME_VALUE.value:g} of the readings ({SAME_VALUE.range_text})"
                found.append(f"{source}: {share} keep {name}")
        return found

    def _counted(self, plan: Plan, columns: Sequence[int], rows: float) -> list[str]:
        """Return in words what is assumed of the distinct values of columns."""
        (leaves, origins), found = self._sources.of(plan), []
        for column in columns:
            source, position = origins[column] or ("", -1)
            is_boolean = plan.schema.dtypes[column] == DataType.BOOLEAN
            if source not in leaves or position in leaves[source].key or is_boolean:
                continue
            if self._facts(leaves, origins[column]) is None:
                name, most = leaves[source].columns.names[position], max(round(rows), 1)
                values = round(_values_of(plan.schema.dtypes[column], leaves, None, rows))
                found.append(f"{source}: {max(values, 1):,} values of {name} (1 to {most:,})")
        return found

    def _differing(self, plan: Plan, columns: Sequence[int]) -> float:
        """Return how likely a row that another one takes the place of differs in some columns.

        Where all columns are the same the row does not move, and is not counted.
        """
        before = self.changing(plan, range(len(plan.schema)))
        return min(self.changing(plan, columns) / before, 1.0) if before else 1.0

    def _facts(self, leaves: Mapping[str, Scan], origin: Origin | None) -> ColumnFacts | None:
        """Return what is known of a column that a plan has from a source as it is."""
        if origin is None or origin[0] not in leaves:
            return None
        source, position = origin
        return self._known.get((source.lower(), leaves[source].columns.names[position].lower()))

    def joined(self, plan: Join, left: Estimate, right: Estimate) -> Estimate:
        """Return a join: a value of the larger domain meets rows of the other side by chance."""
        if plan.kind == JoinKind.SEMI and plan.keys:
            return self._found(plan, left, right)
        if plan.kind.is_filter:
            return left
        pairs = tuple(zip(*plan.keys, strict=True)) if plan.keys else ((), ())
        domain = max(self.domain(plan.left, pairs[0]), self.domain(plan.right, pairs[1]))
        per_left, per_right = right.rows / domain, left.rows / domain
        joined = Estimate(
            left.rows * per_left,
            left.inserts * per_left + right.inserts * per_right,
            left.deletes * per_left + right.deletes * per_right,
            tuple(dict.fromkeys(left.assumed + right.assumed)),
            self._replaced(plan, (left, per_left), (right, per_right)),
            wider(left.factor, right.factor, GUESSED),
        )
        return _bunched(joined, (left, per_left), (right, per_right))

    def _replaced(
        self, plan: Join, left: tuple[Estimate, float], right: tuple[Estimate, float]
    ) -> float:
        """Return the share of changes of a join that put a row in the place of another one.

        Each side comes with the rows of the join that a row of it is in.
        """
        still = [not (side.inserts or side.deletes) for side, _ in (left, right)]
        if still[0] == still[1]:
            return min(left[0].replaced, right[0].replaced)
        number = 0 if still[1] else 1
        (moving, met), side = (left, right)[number], plan.inputs[number]
        # Of a reading with another key the old row or the new one may have no partner.
        other_key = self.changing(side, [pair[number] for pair in plan.keys])
        return moving.replaced * (1.0 - other_key * (1.0 - min(met, 1.0)))

    def _found(self, plan: Join, left: Estimate, right: Estimate) -> Estimate:
        """Return the rows of a left side that keys of the right side find."""
        domain = self.domain(plan.left, tuple(key for key, _ in plan.keys))
        share, of_one = min(right.rows / domain, 1.0), left.rows / domain
        found = replace(
            left.scaled(share, GUESSED),
            inserts=left.inserts * share + right.inserts * of_one,
            deletes=left.deletes * share + right.deletes * of_one,
        )
        return _bunched(found, (left, share), (right, of_one))

    def domain(self, plan: Plan, columns: Sequence[int]) -> float:
        """Return how many values columns may have, whatever filters leave of them."""
        sources = [self._rows(node) for node in walk_plan(plan) if isinstance(node, Scan)]
        return self.values(plan, columns, max(sources, default=1.0))

    def aggregated(self, plan: Aggregate, below: Estimate) -> Estimate:
        """Return groups: a change of one that changes its row takes the old row's place."""
        groups = self.values(plan.input, plan.group, below.rows)
        members = max(below.rows / groups, 1.0)
        moved = {call: self._moved(plan, call, members) for call in plan.aggregates}
        touched = any_changes({call: share for call, (share, _) in moved.items()})
        # The only row of a group comes or goes with it.
        lonely = self._alone(plan.input, plan.group, below.rows) if plan.group else 0.0
        moving = lonely + (1.0 - lonely) * touched
        sent = lonely / 2.0 + (1.0 - lonely) * touched
        # A row in the place of another one leaves its group, or stays in it; others come or go.
        pairs = min(below.replaced, 1.0) * min(below.inserts, below.deletes)
        leaving = pairs * self._differing(plan.input, plan.group) if plan.group else 0.0
        staying = (pairs - leaving) * any_changes({call: by for call, (_, by) in moved.items()})
        single = below.inserts + below.deletes - 2.0 * pairs
        # One that leaves changes two groups at once.
        changed = staying + (single + 2.0 * leaving) * sent
        events = staying + single * moving + leaving * (1.0 - (1.0 - moving) ** 2)
        replaced = 2.0 - events / changed if changed else 1.0
        factor = wider(below.factor, GUESSED)
        assumed = (*below.assumed, *self._counted(plan.input, plan.group, below.rows))
        assumed = tuple(dict.fromkeys(assumed))
        return Estimate(groups, changed, changed, assumed, max(replaced, 0.0), factor)

    def _alone(self, plan: Plan, columns: Sequence[int], rows: float) -> float:
        """Return how likely no other one of so many rows is equal to a row in some columns."""
        spread = self._spread(plan, columns)
        if spread is not None:
            return spread.alone(rows)
        return math.exp(min(1.0 - rows / self.values(plan, columns, rows), 0.0))

    def _moved(self, plan: Aggregate, call: AggregateCall, members: float) -> tuple[float, float]:
        """Return how likely an aggregate changes when a row comes or goes, and when one changes.

        Args:
            plan: The groups.
            call: The aggregate.
            members: Rows of a group.
        """
        read = {c for argument in call.arguments for c in columns_of(argument)}
        # Of a row that stays in its group only other columns change.
        others = tuple(read - set(plan.group))
        differs = self._differing(plan.input, others) if others else 0.0
        by = call.merged_by  # of results of users: the greatest one moves as a greatest value does
        match call.function if by is UNSET else by:
            case AggregateFunction.COUNT_ALL | AggregateFunction.COUNT if not call.distinct:
                return 1.0, 0.0
            case (
                AggregateFunction.MIN
                | AggregateFunction.MAX
                | AggregateFunction.ARG_MIN
                | AggregateFunction.ARG_MAX
                | AggregateFunction.BOOL_AND
                | AggregateFunction.BOOL_OR
            ):
                # A row that comes or goes is the best one as often as any other. One that changes
                # was it, or is it among those that stay.
                return 1.0 / members, 2.0 / (members + 1.0) * differs
            case AggregateFunction.SUM if not call.distinct and by is UNSET:
                return 1.0 - self._zeros(plan.input, read), differs
            case _:
                return 1.0, differs

    def _zeros(self, plan: Plan, columns: Iterable[int]) -> float:
        """Return the share of rows with a 0 in the only column that is added up."""
        one, (leaves, origins) = tuple(columns), self._sources.of(plan)
        facts = self._facts(leaves, origins[one[0]]) if len(one) == 1 else None
        return equal_share(facts, 0).value if facts is not None and facts.deciles else 0.0

    def distinct(self, plan: Distinct, below: Estimate) -> Estimate:
        """Return distinct rows: one changes if no other row is equal."""
        columns = range(len(plan.schema))
        if is_unique(plan.input, columns):
            return below
        values = self.values(plan.input, columns, below.rows)
        alone = self._alone(plan.input, columns, below.rows)
        # No row moves that would not move without it, so it may be wrong by no more.
        assumed = (*below.assumed, *self._counted(plan.input, columns, below.rows))
        return replace(
            below.scaled(alone),
            rows=values,
            replaced=below.replaced * alone,
            assumed=tuple(dict.fromkeys(assumed)),
        )

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

    def values(self, plan: Plan, columns: Sequence[int], rows: float) -> float:
        """Return how many distinct values so many rows have in some columns."""
        if not columns:
            return 1.0
        spread = self._spread(plan, columns)
        if spread is not None:
            return max(min(spread.seen(rows), rows), 1.0)
        leaves, origins = self._sources.of(plan)
        found = 1.0
        for column in dict.fromkeys(columns):
            facts = self._facts(leaves, origins[column])
            found *= (
                _values_of(plan.schema.dtypes[column], leaves, origins[column], rows)
                if facts is None
                else min(self._distinct(facts), max(rows, 1.0))
            )
        return max(min(found, rows), 1.0)

    def is_counted(self, plan: Plan, columns: Sequence[int]) -> bool:
        """Whether it is known how many distinct values columns have, or they are a whole key."""
        leaves, origins = self._sources.of(plan)

        def is_key(origin: Origin | None) -> bool:
            return origin in {(name, scan.key[0]) for name, scan in keyed.items()}

        keyed = {name: scan for name, scan in leaves.items() if len(scan.key) == 1}
        facts = (self._facts(leaves, origins[c]) for c in columns)
        return all(is_key(origins[c]) or f is not None for c, f in zip(columns, facts, strict=True))

    def _distinct(self, facts: ColumnFacts) -> float:
        # Gateways that meet have as many values as may be: merging is not to look too good.
        here = facts.local * self._merged if self._sites > 1 else facts.distinct
        return max(min(here, max(facts.distinct, facts.local)), 1.0)

    def _spread(self, plan: Plan, columns: Sequence[int]) -> Spread | None:
        """Return how values of columns are spread, if that is known of all of them."""
        leaves, origins = self._sources.of(plan)
        number, common = 1.0, 1.0
        for column in dict.fromkeys(columns):
            facts = self._facts(leaves, origins[column])
            if facts is None:
                return None
            here = self._distinct(facts)
            number *= here
            common *= max(facts.common, 1.0 / here)
        return Spread(number, common)


def _is_state(plan: Plan, column: int) -> bool:
    """Whether a column is of a type whose values devices mostly keep."""
    return plan.schema.dtypes[column] in (DataType.TEXT, DataType.BOOLEAN)


def _values_of(
    dtype: DataType, leaves: Mapping[str, Scan], origin: Origin | None, rows: float
) -> float:
    """Return how many distinct values a column is assumed to have in so many rows."""
    source, position = origin or ("", -1)
    key = leaves[source].key if source in leaves else ()
    if position in key:
        return float(rows ** (1 / len(key)))
    if dtype == DataType.BOOLEAN:
        return 2.0
    if dtype in (DataType.DOUBLE, DataType.TIMESTAMP):
        return rows
    return math.sqrt(rows)


def _bunched(joined: Estimate, *sides: tuple[Estimate, float]) -> Estimate:
    """Return a join whose rows travel together that one row of a side has brought.

    Args:
        joined: As if each row came alone.
        sides: Each with the rows of the join that one of its rows is in.
    """
    bunches = sum(side.events / side.bunched * min(rows, 1.0) for side, rows in sides)
    return replace(joined, bunched=max(joined.events / bunches, 1.0)) if bunches else joined
