"""Groups of which nothing is asked but how many rows they have: a number each."""

from stream_engine.state.columns import picker
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class CountedGroups:
    """COUNT(*) by the values of columns; also several of them.

    State: a number a group. Work: one step a changed row and one a touched group.
    """

    def __init__(self, group: tuple[int, ...], times: int) -> None:
        self._key_of = picker(group)
        self._times = times
        self._counts: dict[Row, int] = {}

    @staticmethod
    def of(group: tuple[int, ...], aggregates: tuple[AggregateCall, ...]) -> "CountedGroups | None":
        """Return an empty collection, or None where something else is asked."""
        counted = all(call.function == AggregateFunction.COUNT_ALL for call in aggregates)
        if not (group and aggregates and counted):
            return None
        return CountedGroups(group, len(aggregates))

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self._counts)

    def forget(self, key: Row) -> None:
        """Drop a group without a word."""
        self._counts.pop(key, None)

    def change(self, delta: Delta) -> Delta:
        """Take changed rows in; return the change of the output."""
        counts, times, key_of = self._counts, self._times, self._key_of
        changes: Delta = {}
        changed = changes.get
        for row, weight in delta.items():
            key = key_of(row)
            changes[key] = changed(key, 0) + weight
        result: Delta = {}
        for key, weight in changes.items():
            old = counts.get(key, 0)
            new = old + weight
            if new == old:
                continue
            if old > 0:
                result[key + (old,) * times] = -1
            if new > 0:
                result[key + (new,) * times] = 1
            if new:
                counts[key] = new
            else:
                del counts[key]
        return result
