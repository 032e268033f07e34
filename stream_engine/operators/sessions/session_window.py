"""Session windows: rows of a partition that follow each other closely."""

from typing import Any

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator, SessionRows
from stream_engine.operators.sessions.session_bounds import (
    ManySessions,
    Rows,
    SessionEnds,
    change_few,
    sessions_of,
)
from stream_engine.state.columns import picker
from streamsql.algebra.operators import SessionWindow
from streamsql.data.delta import Delta
from streamsql.data.types import GREATEST_TIME, Row

FEW_TIMES = 32
"""Distinct times up to which the sessions of a partition are found anew at every change.

1.6 times as fast as keeping them (benchmarks/_operators/groups_orders_windows.py, session window).
"""


class SessionWindowOperator(SessionRows, Operator):
    """Each row with the bounds of its session appended.

    A session is a longest run of times of a partition that are less than `gap` apart; it ends `gap`
    after its last time. A time that comes lengthens a session, merges two or begins one; a time
    that goes shortens a session, splits it or ends it. Rows show the bounds, so all rows of a
    session whose bounds change are retracted and emitted again; other sessions are not looked at.

    State: every row with a time; of partitions that have had more than a few times also these and
    the sessions in order. Work: O(log times) a changed row (at most `FEW_TIMES` steps where there
    are few), plus the rows of the sessions whose bounds change, once a batch. A row inside a
    session, or one more at its ends' times, changes no bounds.

        gap 5    the time is the first column
        input   {(1,): 1, (8,): 1}                  {(4,): 1}
        output  {(1, 1, 6): 1, (8, 8, 13): 1}       {(1, 1, 6): -1, (8, 8, 13): -1,
                                                     (1, 1, 13): 1, (4, 1, 13): 1, (8, 1, 13): 1}
    """

    def __init__(self, plan: SessionWindow) -> None:
        self._ends: SessionEnds | None = None
        self._time = plan.time
        self._gap = plan.gap
        self._last = GREATEST_TIME - plan.gap  # the end of a session fits 64 bits
        self._partition_of = picker(plan.partition)
        self._few: dict[Row, Rows] = {}
        self._many: dict[Row, ManySessions] = {}

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        position, gap, few = self._time, self._gap, self._few
        result: Delta = {}
        for key, changes in self._by_partition(delta).items():
            if self._ends is not None:
                for row, _weight in changes:
                    time: Any = row[position]
                    self._ends.note(time + gap, key, time)
            many = self._many.get(key)
            if many is None:
                rows = few.get(key)
                if rows is None:
                    rows = few[key] = {}
                if len(rows) + len(changes) <= FEW_TIMES:
                    change_few(rows, changes, position, gap, result)
                    if not rows:
                        del few[key]
                    continue
                many = self._many[key] = ManySessions(few.pop(key), position, gap)
            many.change(changes, position, result)
            if not many.rows.buckets:
                del self._many[key]
        return result

    @override
    def state_rows(self) -> int:
        few = [bucket for rows in self._few.values() for bucket in rows.values()]
        total = sum([len(bucket) if isinstance(bucket, dict) else 1 for bucket in few])
        return total + sum(len(many.rows) for many in self._many.values())

    @override
    def oldest(self) -> int | None:
        starts = [min(rows) for rows in self._few.values()]
        return min([*starts, *(many.oldest() for many in self._many.values())], default=None)

    def keep_ends(self) -> None:
        """Keep the ends of sessions in order from the first row on: `forget` will be called."""
        self._ends = SessionEnds()

    def forget(self, before: int) -> None:
        """Discard the sessions that have ended by a watermark silently.

        No row that is still to come is old enough to touch them. O(log times) a time dropped.
        """
        if self._ends is None:
            return
        for key, time in self._ends.due(before):
            end = self._end_of(key, time)
            if end is not None and end > before:
                self._ends.note(end, key, time)
            elif end is not None:
                self._drop(key, time)

    def _end_of(self, key: Row, time: int) -> int | None:
        """Return the end of the session that holds a time, or None where no row has it."""
        many = self._many.get(key)
        if many is not None:
            return many.end_of(time) if time in many.rows.buckets else None
        rows = self._few.get(key)
        return sessions_of(rows, self._gap)[time][1] if rows and time in rows else None

    def _drop(self, key: Row, time: int) -> None:
        many = self._many.get(key)
        if many is not None:
            many.drop(time)
            if not many.rows.buckets:
                del self._many[key]
            return
        rows = self._few[key]
        sessions = sessions_of(rows, self._gap)
        for other, bounds in sessions.items():
            if bounds == sessions[time]:
                del rows[other]
        if not rows:
            del self._few[key]

    def _by_partition(self, delta: Delta) -> dict[Row, list[tuple[Row, int]]]:
        position, partition_of, last = self._time, self._partition_of, self._last
        changes: dict[Row, list[tuple[Row, int]]] = {}
        for change in delta.items():
            row = change[0]
            time: Any = row[position]
            if time is not None and time <= last:
                key = partition_of(row)
                if key in changes:
                    changes[key].append(change)
                else:
                    changes[key] = [change]
        return changes
