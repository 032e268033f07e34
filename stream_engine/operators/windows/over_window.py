"""Window functions: ranks, neighbours and aggregates over frames, kept up to date."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from stream_engine.operators.windows.over_window_reach import (
    Interval,
    Reach,
    Spot,
    around_run_starts,
    merged,
    reach_of,
)
from stream_engine.operators.windows.over_window_values import (
    Changed,
    OrderedPartition,
    accumulator_of,
    stretch_of,
    values_of,
)
from stream_engine.state.columns import picker
from stream_engine.state.row_order import Entry, entry_function, row_of
from streamsql.algebra.operators import OverWindow, WindowCall, WindowFunction
from streamsql.algebra.over_windows import NUMBERING, PEER_RANKS, SHIFTING
from streamsql.algebra.scalar_functions.scalar import compile_row
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row, Value


class OverWindowOperator(Operator):
    """Each row with the values of window functions; a row stands in the order once per weight.

    With W(P) the rows of a partition P with their values, the output of a change is
    W(P + change) - W(P). Both are made only where they can differ (`over_window_reach`): of a
    bounded frame, LAG and LEAD the rows around the change; of ranks and of frames that begin with
    the partition the rows from the change on (of DENSE_RANK only if keys come or go); of NTILE
    those where a run begins; of an aggregate over the whole partition all of them, if its value is
    another, and of PERCENT_RANK and CUME_DIST, if it has more or fewer rows. Changes that come
    together are looked at together, so rows reached by several are made once.

    State: all rows by partition and order; the different keys for DENSE_RANK; for aggregates whose
    frame is unbounded a few numbers a partition, or for MIN and MAX each value. Work: O(log rows) a
    changed row, plus the rows reached and, per frame end, the rows it moves over.

        LAG(x) BY x    input   {1: 1, 5: 1}               {3: 1}
                       output  {(1, NULL): 1, (5, 1): 1}  {(3, 1): 1, (5, 1): -1, (5, 3): 1}
    """

    def __init__(self, plan: OverWindow) -> None:
        calls = plan.calls
        self._partition_of = picker(plan.partition)
        self._entry_of = entry_function(plan.order, plan.input.schema.dtypes)
        self._counts_groups = any(c.function == WindowFunction.DENSE_RANK for c in calls)
        self._needs_peers = any(map(_looks_at_peers, calls))
        kept = [number for number, call in enumerate(calls) if _keeps_slot(call)]
        self._slots = [_Slot(calls[number]) for number in kept]
        self._runs = {c.number for c in calls if c.function == WindowFunction.NTILE}
        self._reaches: list[Reach] = [r for r in map(reach_of, calls) if r is not None]
        slot_of = {number: place for place, number in enumerate(kept)}
        self._values = [values_of(call, slot_of.get(n)) for n, call in enumerate(calls)]
        self._partitions: dict[Row, OrderedPartition] = {}

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        changes: dict[Row, Changed] = {}
        for row, weight in delta.items():
            changes.setdefault(self._partition_of(row), []).append((self._entry_of(row), weight))
        result: Delta = {}
        for key, changed in changes.items():
            partition = self._partitions.get(key)
            if partition is None:
                empty = [slot.accumulator.empty() for slot in self._slots]
                partition = self._partitions[key] = OrderedPartition(empty)
            applied = partition.possible(changed)
            if applied:
                self._change(partition, applied, result)
            if not partition:
                del self._partitions[key]
        return result

    @override
    def state_rows(self) -> int:
        total = 0
        for partition in self._partitions.values():
            total += len(partition.order) + len(partition.groups)
            for slot, value in zip(self._slots, partition.slots, strict=True):
                total += slot.accumulator.rows(value)
        return total

    def _change(self, partition: OrderedPartition, applied: Changed, result: Delta) -> None:
        turned = self._turned_groups(partition, applied) if self._counts_groups else {}
        every, results = False, list(partition.results)
        for number, slot in enumerate(self._slots):
            if slot.is_whole:
                results[number] = slot.changed(partition.slots, number, applied)
                every = every or results[number] != partition.results[number]

        change = _Change(applied, turned, self._run_edges(partition, applied), every)
        self._add_reached(partition, change, result, -1)
        for entry, came in applied:
            partition.order.change(entry, came)
        for keys, came in turned.items():
            partition.groups.change(keys, came)
        for number, slot in enumerate(self._slots):
            if not slot.is_whole:
                slot.changed(partition.slots, number, applied)
        partition.results = results
        self._add_reached(partition, change, result, 1)

    def _run_edges(
        self, partition: OrderedPartition, applied: Changed
    ) -> list[tuple[Entry, Entry]]:
        """Return first and last entries of the rows that may come into another run of NTILE.

        They are named by entries, not places: the same rows have to be looked at before and after.
        """
        order = partition.order
        if not self._runs or not order.total:
            return []
        changed = sum(abs(came) for _, came in applied)
        intervals = [
            i for runs in self._runs for i in around_run_starts(runs, order.total, changed)
        ]
        return [
            (order.at(start), order.at(end - 1)) for start, end in merged(intervals, order.total)
        ]

    @staticmethod
    def _turned_groups(partition: OrderedPartition, applied: Changed) -> dict[Entry, int]:
        """Return the keys that come with a change (1) or go (-1)."""
        came: dict[Entry, int] = {}
        for entry, weight in applied:
            came[entry[:-1]] = came.get(entry[:-1], 0) + weight
        turned = {}
        for keys, weight in came.items():
            first, behind = partition.peers(keys)
            before, now = behind > first, behind - first + weight > 0
            if before != now:
                turned[keys] = 1 if now else -1
        return turned

    def _add_reached(
        self, partition: OrderedPartition, change: "_Change", result: Delta, weight: int
    ) -> None:
        total = partition.order.total
        reached = [(0, total)] if change.every else list(self._reached(partition, change))
        intervals = merged(reached, total)  # none where there are no rows
        for start, end in intervals:
            stretch = stretch_of(partition, start, end, with_peers=self._needs_peers)
            columns = [values(stretch) for values in self._values]
            for row, *more in zip(stretch.rows, *columns, strict=True):
                add(result, row + tuple(more), weight)

    def _reached(self, partition: OrderedPartition, change: "_Change") -> Iterator[Interval]:
        total, resized = partition.order.total, change.changes_total
        for first, last in change.run_edges:
            yield partition.order.place(first)[0], sum(partition.order.place(last))
        for entry, _ in change.applied:
            start, copies = partition.order.place(entry)
            yield start, start + copies
            keys = entry[:-1]
            peers = partition.peers(keys) if self._needs_peers else (start, start + copies)
            spot = Spot(start, start + copies, peers, total, keys in change.turned, resized)
            for reach in self._reaches:
                found = reach(spot)
                if found is not None:
                    yield found


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of one partition.

    Attributes:
        turned: Keys that come (1) or go (-1), if a call counts them.
        run_edges: First and last entries around the places where runs of NTILE begin.
        every: Whether an aggregate over the whole partition has another value.
    """

    applied: Changed
    turned: dict[Entry, int]
    run_edges: list[tuple[Entry, Entry]]
    every: bool

    @property
    def changes_total(self) -> bool:
        return sum(came for _, came in self.applied) != 0


class _Slot:
    """An aggregate that is kept over whole partitions.

    Attributes:
        is_whole: Whether that is all it is wanted over.
    """

    __slots__ = ("_arguments_of", "accumulator", "is_whole")

    def __init__(self, call: WindowCall) -> None:
        self.accumulator = accumulator_of(call)
        self.is_whole = call.frame.is_whole
        self._arguments_of = compile_row(call.arguments)

    def changed(self, slots: list[Any], number: int, applied: Changed) -> Value:
        changes = [(self._arguments_of(row_of(entry)), came) for entry, came in applied]
        slots[number] = self.accumulator.update(slots[number], changes)
        return self.accumulator.result(slots[number])


def _keeps_slot(call: WindowCall) -> bool:
    """Whether an aggregate has a frame without end on one side."""
    return call.aggregate is not None and None in (call.frame.start, call.frame.end)


def _looks_at_peers(call: WindowCall) -> bool:
    if call.function in PEER_RANKS:
        return True
    return call.function not in (*NUMBERING, *SHIFTING) and call.frame.peers
