"""As-of joins: each left row with the right row that was current at its time."""

from typing import Any

from stream_engine.state.columns import key_picker
from stream_engine.state.indexed_relation import Bucket
from stream_engine.state.ordered_rows import OrderedRows
from streamsql.algebra.operators import AsOfJoin, JoinKind
from streamsql.data.delta import Delta, add, sort_key
from streamsql.data.types import Row


class AsOfJoinOperator:
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
            _Timeline(tuple(left for left, _ in plan.keys), plan.left_time),
            _Timeline(tuple(right for _, right in plan.keys), plan.right_time),
        )
        self._strict = plan.strict
        outer = plan.kind == JoinKind.LEFT
        self._padding: Row | None = (None,) * len(plan.right.schema) if outer else None

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, port: int, delta: Delta) -> Delta:
        """Take the change of one side; return the change of the join."""
        return self._apply_right(delta) if port else self._apply_left(delta)

    def state_rows(self) -> int:
        """Return the rows of both sides that could match."""
        return self._sides[0].length + self._sides[1].length

    def _apply_left(self, delta: Delta) -> Delta:
        left, right = self._sides
        find, strict, padding = right.rows.get, self._strict, self._padding
        result: Delta = {}
        for row, weight in delta.items():
            place = left.place_of(row)
            current = None
            if place is not None:
                key, time = place
                left.add(key, time, row, weight)
                rows = find(key)
                if rows is not None:
                    current = _greatest(rows.newest(time, strict=strict))
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
        waiting = left.rows.get(key)
        if waiting is None:
            return
        rows = right.rows.get(key)
        end, other = None, self._padding
        if rows is not None:
            at_time = [peer for peer in rows.at(time) if peer != row]
            greatest = max(at_time, key=sort_key, default=None)
            if greatest is not None and sort_key(greatest) > sort_key(row):
                return
            end = rows.next_value(time)
            if greatest is None:
                greatest = _greatest(rows.newest(time, strict=True))
            if greatest is not None:
                other = greatest
        strict = self._strict
        found = waiting.between(time, end, low_open=strict, high_open=not strict)
        sign = 1 if comes else -1
        for partner, count in found:
            add(result, partner + row, sign * count)
            if other is not None:
                add(result, partner + other, -sign * count)


class _Timeline:
    """One side: rows in the order of their times, by key."""

    __slots__ = ("_composite", "_key_of", "_time", "length", "rows")

    def __init__(self, key: tuple[int, ...], time: int) -> None:
        self.rows: dict[Any, OrderedRows] = {}
        self.length = 0
        self._key_of = key_picker(key)
        self._composite = len(key) > 1
        self._time = time

    def place_of(self, row: Row) -> tuple[Any, Any] | None:
        """Return the row's key and time, or None if a NULL keeps it from ever matching."""
        key, time = self._key_of(row), row[self._time]
        if key is None or time is None or (self._composite and None in key):
            return None
        return key, time

    def add(self, key: Any, time: Any, row: Row, weight: int) -> int:
        """Add copies of a row; return how often it is there now."""
        rows = self.rows.get(key)
        if rows is None:
            rows = self.rows[key] = OrderedRows()
        new = rows.add(time, row, weight)
        if new == 0:
            self.length -= 1
            if not rows:
                del self.rows[key]
        elif new == weight:
            self.length += 1
        return new


def _greatest(entry: Bucket | None) -> Row | None:
    """Return the greatest of the rows that stand at one time."""
    return max(entry, key=sort_key) if isinstance(entry, dict) else entry
