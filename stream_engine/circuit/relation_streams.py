"""ISTREAM, DSTREAM, RSTREAM: queries run instant by instant behind the watermark, and windows."""

from heapq import heappop, heappush
from typing import Any

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import OperatorNode, StepInput, combined
from stream_engine.operators.windows.hold import Hold
from stream_engine.operators.windows.reached_progress import reached_by
from stream_engine.operators.windows.time_window import StreamWindowOperator
from stream_engine.state.source_relation import SourceRelation, TimedDelta
from streamsql.algebra.operators import Plan, SourceKind, StreamKind, ToStream
from streamsql.data.delta import Delta, accumulate, sort_key
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import DeploymentError, InternalError

MAX_WAITING = 1_000_000
"""Max events pending for the end of their instant; more means that some site does not go on."""

_Feed = tuple[int, Row]
"""The number of a scan and a row of its events."""


class ChangesOperator:
    """Additions to the stream of a relation that changes one instant after the other.

    State: for RSTREAM the rows of the query. Work: O(1) a changed row, for RSTREAM O(rows).
    """

    def __init__(self, kind: StreamKind) -> None:
        self._kind = kind
        self._relation: Delta = {}

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, _port: int, _delta: Delta) -> Delta:
        """Refuse: a change needs its instant.

        Raises:
            InternalError: Always.
        """
        raise InternalError("a change of a stream needs its instant")

    def at(self, instant: int, changed: Delta, *, first: bool) -> Delta:
        """Return the additions to the stream by the query's change at an instant.

        The `first` change is the query's relation before all instants.
        """
        if self._kind == StreamKind.RSTREAM:
            accumulate(self._relation, changed)
        if first:
            return {}
        match self._kind:
            case StreamKind.ISTREAM:
                return {(*row, instant): w for row, w in changed.items() if w > 0}
            case StreamKind.DSTREAM:
                return {(*row, instant): -w for row, w in changed.items() if w < 0}
            case StreamKind.RSTREAM:
                shown = self._relation if changed else {}
                return {(*row, instant): w for row, w in shown.items()}

    def state_rows(self) -> int:
        """Return the number of rows of the query, for RSTREAM."""
        return len(self._relation)


class InstantsOperator:
    """A circuit of its own, to which events are given in the order of their instants.

    Ports are the feeds, then the progress of each stream. Events are pending until the least
    watermark of all sites has passed their instant; then the circuit is stepped through every
    instant before it: those of events, and those at which rows expire or windows move. Changes are
    emitted once, with their instant, and never retracted. An event for an instant that is over (of
    a site that was away) is counted and ignored.

    State: pending events, the query's state, and for RSTREAM its rows. Work: that of the query per
    instant, and O(log instants) for each.

        events     (1, a) (3, b)    watermark 2 → 5      ISTREAM(SELECT * FROM s [RANGE 3])
        output     (a, 1)           (b, 3)

    Args:
        plan: The operator.
        circuit: Of its query; never stepped.

    Attributes:
        hold: Keeps instants from ending, whatever the watermark says.
        too_late: Events for an instant that was over.
    """

    def __init__(self, plan: ToStream, circuit: Circuit) -> None:
        self._changes = ChangesOperator(plan.kind)
        self._circuit = circuit
        self._scans = plan.scans
        self._relations = [SourceRelation(scan) for scan in plan.scans]
        self._is_table = [scan.kind == SourceKind.TABLE for scan in plan.scans]
        self._tables: dict[int, Delta] = {}
        self._waiting: dict[int, dict[_Feed, int]] = {}
        self._instants: list[int] = []
        self._marks: list[Delta] = [{} for _ in plan.progress]
        self._heard = [False for _ in plan.progress]
        self._over: int | None = None
        self._begun = False
        self._count = 0
        self.hold = Hold()
        self.too_late = 0

    def initial(self) -> Delta:
        """Return nothing: the first instant has to end."""
        return {}

    def apply(self, port: int, delta: Delta) -> Delta:
        """Ingest events, a table's change, or the sites' progress; return final additions.

        In a step events and tables have to come before the progress that ends their instants.

        Raises:
            DeploymentError: Too many events wait for the watermark of some site.
        """
        scans = len(self._scans)
        if port >= scans:
            marks = self._marks[port - scans]
            accumulate(marks, delta)
            self._heard[port - scans] = self._heard[port - scans] or bool(marks)
            return {} if self.hold.is_on else self.advance()
        if self._is_table[port]:
            accumulate(self._tables.setdefault(port, {}), delta)
            return {}
        self._wait_for(port, delta)
        return {}

    def state_rows(self) -> int:
        """Return the number of pending events and of rows in the query's state."""
        inside = sum(node.state_rows() for node in self._circuit.nodes)
        kept = sum(map(len, self._relations))
        return sum(map(len, self._waiting.values())) + inside + kept + self._changes.state_rows()

    def _wait_for(self, port: int, delta: Delta) -> None:
        over, waiting = self._over, self._waiting
        self._count += len(delta)
        if self._count > MAX_WAITING:
            self._count = len(delta) + sum(map(len, waiting.values()))
        if self._count > MAX_WAITING:
            raise DeploymentError(
                f"more than {MAX_WAITING:,} events wait for the watermark of {self._behind()}",
                hint="give its sources a shorter lateness or idle time, or send it readings",
            )
        for row, weight in delta.items():
            instant: Any = row[0]
            if over is not None and instant < over:
                self.too_late += max(weight, 0)
                continue
            events = waiting.get(instant)
            if events is None:
                events = waiting[instant] = {}
                heappush(self._instants, instant)
            feed = (port, row)
            count = events.get(feed, 0) + weight
            if count:
                events[feed] = count
            else:
                del events[feed]  # the site it came from is gone

    def _behind(self) -> str:
        """Return the stream that holds all others back."""
        streams = [
            s.source
            for s, is_table in zip(self._scans, self._is_table, strict=True)
            if not is_table
        ]
        marks: list[list[Any]] = [[mark for _site, mark in rows] for rows in self._marks]
        order = [(min(m, default=float("-inf")), s) for m, s in zip(marks, streams, strict=True)]
        return min(order)[1]

    def advance(self) -> Delta:
        """Step through the instants that the watermark has passed; return their additions."""
        if not all(self._heard):
            return {}
        reached = reached_by(self._marks)
        until = reached.idle if reached.least is None else reached.least
        if until is None or (self._over is not None and until <= self._over):
            return {}
        result: Delta = {}
        while (instant := self._next()) is not None and instant < until:
            self._step(instant, result)
            self._over = instant + 1
        if reached.least is not None:
            self._over = until  # of idle sites the next reading may be older
        return result

    def _next(self) -> int | None:
        """Return the next instant at which something may happen."""
        times = [relation.next_expiry() for relation in self._relations]
        times.append(self._circuit.next_wakeup())
        times.append(self._instants[0] if self._instants else None)
        return min([time for time in times if time is not None], default=None)

    def _step(self, instant: int, result: Delta) -> None:
        if not self._begun:
            self._begun = True
            before = self._circuit.step(self._stored(), {}, instant - 1)
            self._changes.at(instant - 1, before, first=True)
        sources = self._stored()
        sources.update(self._due(instant))
        changed = self._circuit.step(sources, {}, instant)
        self._circuit.check_rounds()
        result.update(self._changes.at(instant, changed, first=False))

    def _stored(self) -> dict[Any, TimedDelta]:
        """Return what has changed in stored tables."""
        tables, self._tables = self._tables, {}
        return {
            self._scans[number]: {(0, row): weight for row, weight in delta.items()}
            for number, delta in tables.items()
        }

    def _due(self, instant: int) -> dict[Any, TimedDelta]:
        """Return how the sources change at an instant: events in order, and expiry."""
        events: dict[int, list[Row]] = {}
        while self._instants and self._instants[0] <= instant:
            waiting = self._waiting.pop(heappop(self._instants))
            for (number, row), weight in waiting.items():
                events.setdefault(number, []).extend([row] * weight)
        sources: dict[Any, TimedDelta] = {}
        for number, relation in enumerate(self._relations):
            arrived = events.get(number)
            expiry = relation.next_expiry()
            if arrived is None and (expiry is None or expiry > instant):
                continue
            taken = [_event(row) for row in sorted(arrived or (), key=sort_key)]
            delta = relation.apply(taken, instant)
            if delta:
                sources[self._scans[number]] = delta
        return sources


def _event(row: Row) -> SourceEvent:
    _instant, _sequence, withdrawn, ts, *values = row
    return SourceEvent(tuple(values), int(ts or 0), delete=bool(withdrawn))


class ChangesNode(OperatorNode):
    """The same in a circuit that is stepped instant by instant: each step is an instant."""

    def __init__(self, plan: ToStream, operator: ChangesOperator) -> None:
        super().__init__(plan, operator)
        self._changes = operator
        self._is_first = False

    def start(self) -> Delta:
        """Return nothing: the first step is before all instants."""
        self._is_first = True
        return {}

    def run(self, step: StepInput) -> Delta:
        """Return what the query's change adds to the stream."""
        wiring, first = self.wiring, self._is_first
        self._is_first = False
        if not wiring.pending:
            return {}
        changed = combined([delta for _port, delta in wiring.pending])
        wiring.pending = []
        wiring.rows_in += len(changed)
        return self._changes.at(step.now, changed, first=first) if changed else {}


class StreamWindowNode(OperatorNode):
    """A window over a stream that a query gives; it moves as time passes."""

    is_timed = True

    def __init__(self, plan: Plan, operator: StreamWindowOperator) -> None:
        super().__init__(plan, operator)
        self._window = operator

    def run(self, step: StepInput) -> Delta:
        """Move the time, then take the new rows."""
        moved = self._window.advance(step.now)
        changed = super().run(step)
        return combined([moved, changed]) if moved and changed else moved or changed

    def next_wakeup(self) -> int | None:
        """Return when the window next moves."""
        return self._window.next_wakeup()
