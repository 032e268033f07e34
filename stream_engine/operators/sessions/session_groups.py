"""GROUP BY over session windows as one operator: a session that grows shows one row, not all."""

from typing import Any

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator, Sessions
from stream_engine.operators.sessions.session_bounds import SessionEnds
from stream_engine.operators.sessions.session_cells import SessionAggregates, SessionGroups
from stream_engine.operators.sessions.session_partition import (
    SessionBatch,
    SessionPartition,
    TimedItems,
)
from stream_engine.state.columns import picker
from stream_engine.state.indexed_relation import Bucket, add_row, rows_in
from streamsql.data.delta import Delta
from streamsql.data.types import GREATEST_TIME, Row

Lone = tuple[int, Bucket]
"""The only time of a partition and its items: most partitions of a sparse key have no more.

An eighth of the memory of a `SessionPartition`, 1.2 times as fast (SUM by session, sparse keys).
"""


class SessionGroupsOperator(Operator, Sessions):
    """The groups of the sessions of a relation: a session window and the aggregate above it.

    A session window emits each row with the bounds of its session, so a session that grows changes
    all its rows, only to show the same group with other bounds. Where the groups are parts of one
    session each (the partition and the start or the end are among their columns) and nothing but
    the group columns looks at the bounds, a group can stay where it is:

        group(g, start, end; f)(session(r)) = { (g, start(s), end(s), f(s, g)) : s a session of r }

    A session keeps the slots of its aggregates. If a row joins two sessions the slots of the
    smaller are merged into those of the larger (where they are sums; else its items are put into
    the larger). If a row that goes parts a session, the items of the smaller part are taken out of
    its slots and into new ones: all aggregates are exact under deletion.

    State: by time the item of every row (what the aggregates need of it: nothing for COUNT(*)), and
    slots a session; of a partition of one time the items alone. Work: O(log times) a changed row
    and one output row a touched group; a group inside a session that grows is shown again. A row
    that joins sessions costs the items of the smaller one where an aggregate has no merge, one that
    parts a session those of the smaller part: while rows only come (or only go) each item moves
    O(log rows) times at most.

        gap 5, COUNT(*)   the time is the first column
        input   {(1,): 1, (8,): 1}              {(4,): 1}
        output  {(1, 6, 1): 1, (8, 13, 1): 1}   {(1, 6, 1): -1, (8, 13, 1): -1, (1, 13, 3): 1}
    """

    def __init__(self, spec: SessionGroups) -> None:
        self._time = spec.time
        self._gap = spec.gap
        self._last = GREATEST_TIME - spec.gap  # the end of a session fits 64 bits
        self._partition_of = picker(spec.partition)
        self._aggregates = SessionAggregates(spec)
        self._lone: dict[Row, Lone] = {}
        self._many: dict[Row, SessionPartition] = {}
        self._ends: SessionEnds | None = None

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        result: Delta = {}
        batch = SessionBatch(self._gap, self._aggregates, result)
        lone, many = self._lone, self._many
        for key, changes in self._by_partition(delta).items():
            partition = many.get(key)
            if partition is None:
                known = lone.pop(key, None)
                if self._change_lone(key, known, changes, result):
                    continue
                partition = many[key] = SessionPartition()
                if known is not None:
                    # It has been shown, so what is shown now is of no use.
                    time, bucket = known
                    again = SessionBatch(self._gap, self._aggregates, {})
                    again.change(partition, key, [(time, pair) for pair in rows_in(bucket)])
            moved = batch.change(partition, key, changes)
            if not partition.items:
                del many[key]
            if self._ends is not None:
                for last in moved:
                    self._ends.note(last + self._gap, key, last)
        return result

    @override
    def state_rows(self) -> int:
        lone = [len(b) if isinstance(b, dict) else 1 for _time, b in self._lone.values()]
        return sum(lone) + sum(many.rows(self._aggregates) for many in self._many.values())

    @override
    def oldest(self) -> int | None:
        starts = [time for time, _bucket in self._lone.values()]
        return min([*starts, *(many.first() for many in self._many.values())], default=None)

    def keep_ends(self) -> None:
        """Keep the ends of sessions in order from the first row on: `forget` will be called."""
        self._ends = SessionEnds()

    def forget(self, before: int) -> int:
        """Discard the sessions that have ended by a watermark silently.

        No row that is still to come is old enough to touch them. O(log times) a time dropped.

        Returns:
            Rows of their groups.
        """
        dropped = 0
        for key, last in () if self._ends is None else self._ends.due(before):
            many = self._many.get(key)
            if many is not None:
                # Where the session has grown, its new end has been noted too.
                if last in many.items and many.last_of(last) == last:
                    dropped += self._aggregates.grouped(many.drop(last))
                    if not many.items:
                        del self._many[key]
            elif key in self._lone and self._lone[key][0] == last:
                _time, bucket = self._lone.pop(key)
                dropped += self._aggregates.grouped(rows_in(bucket))
        return dropped

    def _change_lone(
        self, key: Row, known: Lone | None, changes: TimedItems, result: Delta
    ) -> bool:
        """Ingest changes of a partition that has one time before and after, if it is one."""
        time = changes[0][0] if known is None else known[0]
        for other, _pair in changes:
            if other != time:
                return False
        aggregates, bounds = self._aggregates, (time, time + self._gap)
        buckets: dict[int, Bucket] = {}
        if known is not None:
            buckets[time] = known[1]
            aggregates.of_items([*rows_in(known[1])], key, bounds, -1, result)
        for _time, pair in changes:
            add_row(buckets, time, *pair)
        bucket = buckets.get(time)
        if bucket is not None:
            self._lone[key] = (time, bucket)
            aggregates.of_items([*rows_in(bucket)], key, bounds, 1, result)
            if known is None and self._ends is not None:
                self._ends.note(bounds[1], key, time)
        return True

    def _by_partition(self, delta: Delta) -> dict[Row, TimedItems]:
        position, partition_of, item_of = self._time, self._partition_of, self._aggregates.item_of
        changes: dict[Row, TimedItems] = {}
        for row, weight in delta.items():
            time: Any = row[position]
            if time is not None and time <= self._last:
                key = partition_of(row)
                if key in changes:
                    changes[key].append((time, (item_of(row), weight)))
                else:
                    changes[key] = [(time, (item_of(row), weight))]
        return changes
