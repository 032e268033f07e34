"""The sessions of a partition of many times, each with the aggregates of its rows."""

from collections.abc import Iterator
from itertools import zip_longest
from math import inf
from operator import itemgetter

from stream_engine.operators.aggregates.accumulator import Changes
from stream_engine.operators.sessions.session_cells import Session, SessionAggregates
from stream_engine.state.indexed_relation import Bucket, add_row, rows_in
from stream_engine.state.sorted_list import SortedList
from streamsql.data.delta import Delta
from streamsql.data.types import Row

TimedItems = list[tuple[int, tuple[Row, int]]]
"""Times, and an item and its weight at each."""

_BY_TIME = itemgetter(0)


class SessionPartition:
    """Times in order, the items at each, and sessions that begin at some of them.

    A time that comes looks at the sessions before and after it, no time else. Where it joins two,
    the one with fewer times is added to the other; where a time goes and a session falls apart, the
    part with fewer times is taken out (both are walked from the gap until one ends), and only its
    items are summed up anew.
    """

    __slots__ = ("_sessions", "_starts", "_times", "items")

    def __init__(self) -> None:
        self.items: dict[int, Bucket] = {}
        self._times: SortedList[int] = SortedList()
        self._starts: SortedList[int] = SortedList()
        self._sessions: dict[int, Session] = {}

    def last_of(self, time: int) -> int:
        """Return the last time of the session that holds a time."""
        return self.session_of(time).last

    def first(self) -> int:
        """Return the first time of all."""
        return self._starts.first()

    def drop(self, time: int) -> Changes:
        """Discard the session that holds a time, silently; return its items."""
        session = self.session_of(time)
        times = self.times_of(session)
        items = list(self.items_at(times))
        for gone in times:
            self._times.discard(gone)
            del self.items[gone]
        self.forget(session)
        return items

    def rows(self, aggregates: SessionAggregates) -> int:
        """Return the items and what the aggregates of the sessions remember."""
        items = sum([len(b) if isinstance(b, dict) else 1 for b in self.items.values()])
        return items + sum([aggregates.rows(s) for s in self._sessions.values()])

    def session_of(self, time: int) -> Session:
        """Return the session that holds one of the times."""
        start = self._starts.below(time + 1)
        if start is None:
            raise AssertionError(f"no session holds {time}")
        return self._sessions[start]

    def before(self, time: int) -> Session | None:
        """Return the last session that begins before a time."""
        start = self._starts.below(time)
        return None if start is None else self._sessions[start]

    def after(self, time: int) -> Session | None:
        """Return the first session that begins after a time."""
        start = self._starts.above(time)
        return None if start is None else self._sessions[start]

    def next_start(self, session: Session) -> float:
        """Return where the session after one begins; infinity where there is none."""
        start = self._starts.above(session.last)
        return inf if start is None else start

    def remember(self, session: Session) -> None:
        """Remember a session."""
        self._starts.add(session.start)
        self._sessions[session.start] = session

    def forget(self, session: Session) -> None:
        """Drop a session, or take it out to change where it starts."""
        self._starts.discard(session.start)
        del self._sessions[session.start]

    def add_times(self, times: list[int]) -> None:
        """Ingest times, in order, that have items now."""
        self._times.extend(times)

    def forget_time(self, time: int) -> None:
        """Drop a time that has no items any more."""
        self._times.discard(time)

    def neighbours(self, time: int) -> tuple[int | None, int | None]:
        """Drop a time; return those before and after it."""
        times = self._times
        times.discard(time)
        return times.below(time), times.above(time)

    def smaller_side(self, session: Session, below: int, above: int) -> tuple[list[int], bool]:
        """Return the times of the smaller part of a session, and whether it is the lower one."""
        lower: list[int] = []
        upper: list[int] = []
        down = self._times.down(below, session.start)
        for low, high in zip_longest(down, self._times.between(above, session.last)):
            if low is None:
                return lower, True
            if high is None:
                return upper, False
            lower.append(low)
            upper.append(high)
        return lower, True

    def items_at(self, times: list[int]) -> Iterator[tuple[Row, int]]:
        """Yield the items at some times, with their weights."""
        items = self.items
        for time in times:
            yield from rows_in(items[time])

    def times_of(self, session: Session) -> list[int]:
        """Return the times of a session."""
        return list(self._times.between(session.start, session.last))


class SessionBatch:
    """Changes of partitions: their sessions are found, merged and split, and then shown."""

    __slots__ = ("_aggregates", "_gap", "_new", "_partition", "_result", "_touched")

    def __init__(self, gap: int, aggregates: SessionAggregates, result: Delta) -> None:
        self._gap = gap
        self._aggregates = aggregates
        self._result = result
        self._partition = SessionPartition()
        self._new: list[int] = []  # times not yet known to the partition, in order
        self._touched: list[Session] = []  # items or bounds have changed; some are no more

    def change(self, partition: SessionPartition, key: Row, changes: TimedItems) -> list[int]:
        """Take changed items into a partition.

        What comes is taken in before what goes, and both in the order of time: then no session
        falls apart that is whole afterwards, and what goes mostly goes from an end.

        Returns:
            Last times of the sessions whose bounds are new.
        """
        if len(changes) > 1:
            changes.sort(key=_BY_TIME)
        self._partition, self._touched = partition, []
        going = self._come(changes)
        if going:
            self._go(going)
        moved = [session.last for session in self._touched if session.moved and session.size]
        settle = self._aggregates.settle
        for session in self._touched:
            settle(session, key, self._gap, self._result)
        return moved

    def _come(self, changes: TimedItems) -> TimedItems:
        """Ingest the items that come; return those that go.

        Args:
            changes: In the order of time.
        """
        partition, gap, touched = self._partition, self._gap, self._touched
        items = partition.items
        session: Session | None = None  # that of the time before
        limit: float | None = None  # it may grow until there without a look at the next one
        going: TimedItems = []
        for change in changes:
            time, pair = change
            item, weight = pair
            if weight < 0:
                going.append(change)
                continue
            if time in items:
                if session is None or time > session.last:
                    session, limit = partition.session_of(time), None
                add_row(items, time, item, weight)
            else:
                if session is None or time - session.last >= gap:
                    session, limit = self._appeared(time), None
                elif time < session.last:
                    session.size += 1
                else:
                    if limit is None:
                        limit = partition.next_start(session) - gap
                    if time <= limit:
                        session.size += 1
                        session.last = time
                        session.moved = True
                    else:
                        session, limit = self._appeared(time), None
                items[time] = item if weight == 1 else {item: weight}
                self._new.append(time)
            if session.pending is None:
                session.pending = [pair]
                touched.append(session)
            else:
                session.pending.append(pair)
            if time not in items:  # it had been taken away before it came
                self._vanished(time, session)
                session = None
        self._flush()
        return going

    def _go(self, changes: TimedItems) -> None:
        partition = self._partition
        items = partition.items
        for time, pair in changes:
            if time in items:
                session = partition.session_of(time)
            else:
                session = self._appeared(time)
                self._new.append(time)
                self._flush()
            add_row(items, time, *pair)
            self._pending(session).append(pair)
            if time not in items:
                self._vanished(time, session)

    def _flush(self) -> None:
        if self._new:
            self._partition.add_times(self._new)
            self._new = []

    def _pending(self, session: Session) -> Changes:
        pending = session.pending
        if pending is None:
            pending = session.pending = []
            self._touched.append(session)
        return pending

    def _appeared(self, time: int) -> Session:
        """Return the session of a time that no item had; its bounds are new, unless inside."""
        partition, gap = self._partition, self._gap
        session = partition.before(time)
        if session is None or time - session.last >= gap:
            session = None
        elif time < session.last:
            session.size += 1
            return session
        following = partition.after(time)
        if following is not None and following.start - time >= gap:
            following = None
        if session is not None:
            session.last = time
            session.size += 1
            if following is not None:
                session = self._merged(session, following)
            session.moved = True
        elif following is not None:
            session = following
            partition.forget(session)
            session.start = time
            session.size += 1
            session.moved = True
            partition.remember(session)
        else:
            session = Session(time, time, 1)
            partition.remember(session)
        return session

    def _merged(self, left: Session, right: Session) -> Session:
        """Make one session of two neighbours; return it. The last time of the left is to come."""
        partition, aggregates = self._partition, self._aggregates
        kept, gone = (left, right) if left.size >= right.size else (right, left)
        pending, more = self._pending(kept), self._pending(gone)
        if not aggregates.merges:
            self._flush()
            more = list(partition.items_at(partition.times_of(gone)))
        pending += more
        aggregates.absorb(kept, gone)
        partition.forget(left)
        partition.forget(right)
        kept.start, kept.last = left.start, right.last
        kept.size += gone.size
        partition.remember(kept)
        gone.size, gone.pending = 0, []
        return kept

    def _vanished(self, time: int, session: Session) -> None:
        self._flush()
        partition = self._partition
        session.size -= 1
        if not session.size:
            partition.forget_time(time)
            partition.forget(session)
            return
        below, above = partition.neighbours(time)
        if time == session.start and above is not None:
            partition.forget(session)
            session.start = above
            session.moved = True
            partition.remember(session)
        elif time == session.last and below is not None:
            session.last = below
            session.moved = True
        elif below is not None and above is not None and above - below >= self._gap:
            self._split(session, below, above)

    def _split(self, session: Session, below: int, above: int) -> None:
        """Let a session fall apart: its smaller part becomes a session of its own."""
        partition = self._partition
        times, is_lower = partition.smaller_side(session, below, above)
        partition.forget(session)
        if is_lower:
            part = Session(session.start, below, len(times))
            session.start = above
        else:
            part = Session(above, session.last, len(times))
            session.last = below
        session.size -= part.size
        session.moved = True
        partition.remember(session)
        partition.remember(part)
        moved = list(partition.items_at(times))
        self._pending(part).extend(moved)
        self._pending(session).extend([(item, -weight) for item, weight in moved])
