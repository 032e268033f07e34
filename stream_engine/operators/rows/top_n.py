"""ORDER BY … LIMIT … OFFSET as a relation that is kept up to date."""

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from stream_engine.state.columns import picker
from stream_engine.state.ranked_order import RankedOrder
from stream_engine.state.row_order import Entry, entry_function, row_of
from streamsql.algebra.operators import TopN
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row


class _Partition:
    """The rows of a partition in order.

    Attributes:
        edge: The last entry that can matter to a bounded answer, once there are so many: what
            comes and goes beyond it changes nothing (or, without limit, only itself).
    """

    __slots__ = ("edge", "order")

    def __init__(self) -> None:
        self.order: RankedOrder[Entry] = RankedOrder()
        self.edge: Entry | None = None


class TopNOperator(Operator):
    """The first rows by an order, in all or of every partition; a row counts once per weight.

    With F(n) the first n rows of a partition, the answer is F(offset + limit) - F(offset). A row
    that comes before place n pushes the last one of F(n) out; when one leaves from before place n,
    the next one moves up. So a change is at most two rows per bound and copy.

    State: all rows (any of them may move up), by partition and order. Work: O(log rows) a changed
    row, plus the rows that come and go in the answer.

        limit   2
        input   {3: 1, 5: 1, 8: 1}   {1: 1}           {3: -1}
        output  {3: 1, 5: 1}         {1: 1, 5: -1}    {3: -1, 5: 1}
    """

    def __init__(self, plan: TopN) -> None:
        self._partition_of = picker(plan.partition)
        self._entry_of = entry_function(plan.order, plan.input.schema.dtypes)
        self._unlimited = plan.limit is None
        bounds: list[tuple[int, int]] = []
        if plan.offset:
            bounds.append((plan.offset, -1))
        if plan.limit is not None:
            bounds.append((plan.offset + plan.limit, 1))
        self._bounds = [] if plan.limit == 0 else bounds
        self._keeps = bool(self._bounds)
        self._last = max((bound for bound, _sign in self._bounds), default=0)
        self._empty = plan.limit == 0
        self._partitions: dict[Row, _Partition] = {}

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        if not self._keeps:
            return {} if self._empty else delta
        partitions, partition_of, entry_of = self._partitions, self._partition_of, self._entry_of
        unlimited = self._unlimited
        result: Delta = {}
        for row, weight in delta.items():
            key = partition_of(row)
            partition = partitions.get(key)
            if partition is None:
                partition = partitions[key] = _Partition()
            entry = entry_of(row)
            if partition.edge is not None and partition.edge < entry:
                came = partition.order.change(entry, weight)
                if unlimited and came:
                    add(result, row, came)
                continue
            self._change(partition, entry, weight, result)
            if not partition.order:
                del partitions[key]
        return result

    @override
    def state_rows(self) -> int:
        return sum(len(partition.order) for partition in self._partitions.values())

    def _change(self, partition: _Partition, entry: Entry, weight: int, result: Delta) -> None:
        order = partition.order
        rank, copies = order.place(entry)
        before = order.total
        came = order.change(entry, weight)
        if self._unlimited and came:
            add(result, row_of(entry), came)
        for bound, sign in self._bounds:
            room = bound - rank
            if room <= 0:
                continue
            entered = min(copies + came, room) - min(copies, room)
            if not entered:
                continue
            add(result, row_of(entry), sign * entered)
            old, new = min(before, bound), min(order.total, bound)
            if entered > 0:  # the last ones of old are beyond the bound now, after what came
                behind = came - entered
                moved = order.between(new + behind, old + entered + behind)
                step = -sign
            else:  # the last ones of new were beyond the bound
                moved = order.between(old + entered, new)
                step = sign
            for other, number in moved:
                add(result, row_of(other), step * number)
        last = self._last
        partition.edge = order.at(last - 1) if order.total >= last else None
