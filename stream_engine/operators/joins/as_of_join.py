"""As-of joins: each left row with the right row that was current at its time."""

from itertools import chain
from operator import itemgetter
from typing import Any

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from stream_engine.state.indexed_relation import Bucket, rows_in
from stream_engine.state.ordered_index import OrderedIndex
from streamsql.algebra.operators import AsOfJoin, JoinKind
from streamsql.data.delta import Delta, add, sort_key
from streamsql.data.types import Row


class AsOfJoinOperator(Operator):
    """Each left row with the right row of its keys that has the greatest time not after its own.

    Within a key the right rows cut the time into stretches, each from its own time to that of the
    next; the left rows in a stretch are paired with the row that begins it. A left row is looked up
    once. A right row that appears takes the left rows of its stretch away from its predecessor, one
    that vanishes gives them back to it; other left rows are not touched. Of right rows with the
    same time the greatest in row order is current. How often a right row is there does not matter.
    A left row with a NULL key or time has no partner and is not remembered.

    State: both sides, per key in the order of time. Work: O(log rows of the key) a changed row, for
    the right side plus one step per left row in the stretch and per right row of the same time.

        left    {(5,): 1}                             by time
        right   {(3, a): 1}     {(4, b): 1}           {(9, c): 1}
        output  {(5, 3, a): 1}  {(5, 3, a): -1,       {}
                                 (5, 4, b): 1}
    """

    def __init__(self, plan: AsOfJoin) -> None:
        self._sides = (
            OrderedIndex(tuple(left for left, _ in plan.keys), itemgetter(plan.left_time)),
            OrderedIndex(tuple(right for _, right in plan.keys), itemgetter(plan.right_time)),
        )
        self._strict = plan.strict
        outer = plan.kind == JoinKind.LEFT
        self._padding: Row | None = (None,) * len(plan.right.schema) if outer else None

    @override
    def apply(self, port: int, delta: Delta) -> Delta:
        return self._apply_right(delta) if port else self._apply_left(delta)

    @override
    def state_rows(self) -> int:
        return self._sides[0].length + self._sides[1].length

    def _apply_left(self, delta: Delta) -> Delta:
        left, right = self._sides
        newest, strict, padding = right.newest, self._strict, self._padding
        result: Delta = {}
        for row, weight in delta.items():
            place = left.place_of(row)
            current = None
            if place is not None:
                key, time = place
                left.add(key, time, row, weight)
                current = _greatest(newest(key, time, strict=strict))
            if current is None:
                current = padding
            if current is not None:
                add(result, row + current, weight)
        return result

    def _apply_right(self, delta: Delta) -> Delta:
        right = self._sides[1]
        result: Delta = {}
        for row, weight in delta.items():
            place = right.place_of(row)
            if place is None:
                continue
            key, time = place
            new = right.add(key, time, row, weight)
            if (new - weight > 0) != (new > 0):
                self._hand_over(key, time, row, result, comes=new > 0)
        return result

    def _hand_over(self, key: Any, time: Any, row: Row, result: Delta, *, comes: bool) -> None:
        """Give the left rows of a right row's stretch to it as it comes, back as it leaves."""
        left, right = self._sides
        strict = self._strict
        end = right.next_value(key, time)
        found = left.between(key, time, end, low_open=strict, high_open=not strict)
        if not found:
            return
        peers = right.between(key, time, time, low_open=False, high_open=False)
        at_time = [peer for entry in peers for peer, _ in rows_in(entry) if peer != row]
        other = max(at_time, key=sort_key, default=None)
        if other is None:
            other = _greatest(right.newest(key, time, strict=True))
        elif sort_key(other) > sort_key(row):
            return
        if other is None:
            other = self._padding
        sign = 1 if comes else -1
        for partner, count in chain.from_iterable(map(rows_in, found)):
            add(result, partner + row, sign * count)
            if other is not None:
                add(result, partner + other, -sign * count)


def _greatest(entry: Bucket | None) -> Row | None:
    return max(entry, key=sort_key) if isinstance(entry, dict) else entry
