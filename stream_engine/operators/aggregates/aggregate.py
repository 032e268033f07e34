"""Grouping and aggregation."""

from collections.abc import Iterable
from typing import Any

from typing_extensions import override

from stream_engine.operators.aggregates.accumulator import Changes
from stream_engine.operators.aggregates.aggregate_slots import row_of, slots_of
from stream_engine.operators.aggregates.small_groups import CountedGroups, SmallGroups, Spilled
from stream_engine.operators.rows.operator import Operator
from stream_engine.state.columns import picker
from streamsql.algebra.operators import AggregateCall
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row


class _Group:
    __slots__ = ("output", "slots", "weight")

    def __init__(self, slots: list[Any]) -> None:
        self.weight = 0
        self.slots = slots
        self.output: Row | None = None


class AggregateOperator(Operator):
    """Groups and their aggregates; without group columns always exactly one row.

    A group's output row is a function of its slots: a changed group retracts its old row and
    inserts the new one, if they differ. Groups vanish with their last row.

    Groups of which only the number of rows is asked keep this alone. A group of a row or two is
    kept as its rows where the aggregates can be looked up in them; with more it gets slots, which
    it keeps until it vanishes (`small_groups`).

    State: a row or a few numbers a group, and for MIN, MAX, ARG_* and DISTINCT each distinct value.
    Work: O(1) a changed row and slot (O(log values) where values are ordered) plus one output
    row per touched group.

        input   {(a, 1): 1, (a, 2): 1}    {(a, 1): -1}                 SUM by first column
        output  {(a, 3): 1}               {(a, 3): -1, (a, 2): 1}
    """

    def __init__(self, group: tuple[int, ...], aggregates: tuple[AggregateCall, ...]) -> None:
        self._key_of = picker(group)
        self._scalar = not group
        slots = slots_of(aggregates)
        self._arguments_of = row_of(slots.arguments)
        self._accumulators = slots.accumulators
        self._updates = [accumulator.update for accumulator in slots.accumulators]
        self._results = slots.results
        self._groups: dict[Row, _Group] = {}
        self._counted = CountedGroups.of(group, aggregates)
        self._small = SmallGroups.of(group, aggregates) if self._counted is None else None

    @override
    def initial(self) -> Delta:
        if not self._scalar:
            return {}
        group = self._groups[()] = self._new_group()
        group.output = tuple([of(group.slots[slot]) for of, slot in self._results])
        return {group.output: 1}

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        if self._counted is not None:
            return self._counted.change(delta)
        result: Delta = {}
        spilled: dict[Row, Spilled] = {}
        if self._small is not None:
            delta, spilled = self._small.change(delta, self._groups, result)
        if delta:
            self._change_groups(delta, spilled, result)
        return result

    def forget(self, keys: Iterable[Row]) -> None:
        """Discard groups silently; no row of theirs may come any more."""
        for key in keys:
            if self._counted is not None:
                self._counted.forget(key)
            if self._small is not None:
                self._small.forget(key)
            self._groups.pop(key, None)

    def _change_groups(self, delta: Delta, spilled: dict[Row, Spilled], result: Delta) -> None:
        groups, scalar, updates, results = self._groups, self._scalar, self._updates, self._results
        only = results[0][0] if len(results) == 1 else None  # 6 % faster (MEDIAN by key)
        for key, changes in self._by_group(delta).items():
            group = groups.get(key)
            if group is None:
                group = groups[key] = self._new_group()
                if key in spilled:
                    # What the group held until now counts as a change of the empty slots.
                    rows, group.output = spilled[key]
                    changes += [(self._arguments_of(row), weight) for row, weight in rows.items()]
            weight = group.weight
            for _arguments, change in changes:
                weight += change
            group.weight = weight
            slots = group.slots
            for number, update in enumerate(updates):
                slots[number] = update(slots[number], changes)
            old, new = group.output, None
            if scalar or weight > 0:
                if only is not None:
                    new = (*key, only(slots[0]))
                else:
                    new = key + tuple([of(slots[slot]) for of, slot in results])
            if new != old:
                group.output = new
                if key in spilled:
                    # As a small group it may have shown something in this step already.
                    if old is not None:
                        add(result, old, -1)
                    if new is not None:
                        add(result, new, 1)
                else:
                    if old is not None:
                        result[old] = -1
                    if new is not None:
                        result[new] = 1
            if new is None and not weight:
                del groups[key]

    @override
    def state_rows(self) -> int:
        if self._counted is not None:
            return len(self._counted)
        total = len(self._groups) + (0 if self._small is None else len(self._small))
        for group in self._groups.values():
            for accumulator, slot in zip(self._accumulators, group.slots, strict=True):
                total += accumulator.rows(slot)
        return total

    def _by_group(self, delta: Delta) -> dict[Row, Changes]:
        key_of, arguments_of = self._key_of, self._arguments_of
        touched: dict[Row, Changes] = {}
        for row, weight in delta.items():
            key = key_of(row)
            changes = touched.get(key)
            if changes is None:
                touched[key] = [(arguments_of(row), weight)]
            else:
                changes.append((arguments_of(row), weight))
        return touched

    def _new_group(self) -> _Group:
        return _Group([accumulator.empty() for accumulator in self._accumulators])
