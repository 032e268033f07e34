"""A scan of the past becomes a plan over the rows that the lake keeps of an interval.

What the lake keeps of a source is the leaf `ScanPart.KEPT`: readings and withdrawals, each with its
origin and event time (`KEPT_COLUMNS`). Everything above it is ordinary algebra, so that every
engine of tables computes it.

* BETWEEN: the readings.
* AS OF, keyed: of each gateway and key the readings behind the gateway's last withdrawal of the
  key; of these the newest per key. Of equal event times a gateway's later reading counts, and of
  several gateways the one that came to the lake later.
* AS OF, without key: the readings, less one equal reading of the same gateway for each withdrawal,
  the oldest first.
* A lifetime, or a window by time, bounds what is read of the lake as well.

The rows that a managed table had at a time are a leaf that stays as it is.
"""

from collections.abc import Sequence

import msgspec

from streamsql.algebra.expressions import Call, Column, Expression, Literal, conjunction
from streamsql.algebra.operators import (
    AggregateFunction,
    Filter,
    Frame,
    Join,
    JoinKind,
    OverWindow,
    Plan,
    Project,
    Scan,
    ScanPart,
    SortKey,
    TopN,
    Window,
    WindowCall,
    WindowFunction,
    WindowKind,
    identity_columns,
    transform_up,
    walk_plan,
    with_inputs,
)
from streamsql.algebra.past_times import KEPT_COLUMNS, History, HistoryKind, Moment
from streamsql.data.types import MICROSECONDS, DataType

_GATEWAY, _EPOCH, _SEQ, _PLACE, _TIME, _WITHDRAWN, _ARRIVED = range(len(KEPT_COLUMNS))
_SENT = (_EPOCH, _SEQ, _PLACE)
"""Order in which a gateway has sent its rows."""


def fixed(plan: Plan, start: int) -> Plan:
    """Return a plan whose scans of the past stand still, for a query that started then."""

    def stand_still(node: Plan) -> Plan:
        if isinstance(node, Scan) and node.history is not None and node.history.follows_start:
            return msgspec.structs.replace(node, history=node.history.fixed(start))
        return node

    return transform_up(plan, stand_still)


def with_kept_rows(plan: Plan) -> Plan:
    """Return a plan that reads of the past only what the lake keeps.

    Args:
        plan: Its scans of the past stand still, see `fixed`.
    """
    match plan:
        case Scan(history=History(kind=HistoryKind.VERSION)):
            return plan
        case Scan(history=History(), part=ScanPart.ROWS):
            return _Past(plan).plan(None)
        case Window(input=Scan(history=History(), part=ScanPart.ROWS) as scan):
            return _Past(scan).plan(plan)
        case _:
            return with_inputs(plan, tuple(with_kept_rows(child) for child in plan.inputs))


def kept_scans(plan: Plan) -> tuple[Scan, ...]:
    """Return what a plan of `with_kept_rows` reads of the lake, each scan once."""
    leaves = (node for node in walk_plan(plan) if isinstance(node, Scan))
    return tuple(dict.fromkeys(leaf for leaf in leaves if leaf.history is not None))


class _Past:
    """One scan of the past; its rows have the kept columns behind their own."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._width = len(scan.columns)

    def plan(self, window: Window | None) -> Plan:
        history = self._scan.history or History(HistoryKind.BETWEEN)
        if not history.is_as_of:
            return self._own(self._readings(self._kept(history)))
        instant = history.instant(0)
        since = _since(self._scan, window, instant)
        kept = self._kept(History(HistoryKind.BETWEEN, since, Moment(instant)))
        rows = self._newest(kept) if self._scan.key else self._less_withdrawn(kept)
        bounds = [] if self._scan.ttl is None else [self._after(instant - self._scan.ttl)]
        if window is not None and window.kind == WindowKind.ROWS:
            rows = self._last(_filtered(rows, bounds), window)
            bounds = [] if window.range is None else [self._after(instant - window.range)]
        elif window is not None:
            bounds += self._in_window(window, instant)
        return self._own(_filtered(rows, bounds))

    def _kept(self, history: History) -> Scan:
        return msgspec.structs.replace(
            self._scan, key=(), ttl=None, part=ScanPart.KEPT, history=history
        )

    def _at(self, kept: int) -> int:
        return self._width + kept

    def _column(self, kept: int) -> Column:
        field = KEPT_COLUMNS.fields[kept]
        return Column(self._at(kept), field.name, field.dtype)

    def _own(self, rows: Plan) -> Plan:
        own = identity_columns(self._scan.columns)
        return Project(rows, own, self._scan.columns.names)

    def _readings(self, rows: Plan) -> Plan:
        return Filter(rows, Call("NOT", (self._column(_WITHDRAWN),), DataType.BOOLEAN))

    def _newest(self, kept: Plan) -> Plan:
        """Return the newest row of each key that no withdrawal took away."""
        keys = (self._at(_GATEWAY), *self._scan.key)
        sent = tuple(SortKey(self._at(column), descending=True) for column in _SENT)
        withdrawn = TopN(Filter(kept, self._column(_WITHDRAWN)), sent, 1, partition=keys)
        behind = len(kept.schema)
        left = Join(
            self._readings(kept),
            withdrawn,
            JoinKind.ANTI,
            tuple((key, key) for key in keys),
            _later([(self._at(c) + behind, self._at(c)) for c in _SENT]),
        )
        newest_first = SortKey(self._at(_TIME), descending=True)
        of_gateways = TopN(left, (newest_first, *sent), 1, partition=keys)
        arrived = tuple(SortKey(self._at(c), descending=True) for c in (_ARRIVED, _GATEWAY))
        return TopN(of_gateways, (newest_first, *arrived), 1, partition=self._scan.key)

    def _less_withdrawn(self, kept: Plan) -> Plan:
        """Return the readings of a bag without the oldest ones that withdrawals took away."""
        equal = (self._at(_GATEWAY), *range(self._width))
        order = (
            SortKey(self._at(_WITHDRAWN), descending=True),
            *(SortKey(self._at(column)) for column in (_TIME, *_SENT)),
        )
        taken = Call(
            "CASE",
            (self._column(_WITHDRAWN), Literal(1, DataType.INTEGER), _NO_NUMBER),
            DataType.INTEGER,
        )
        whole = Frame(None, None, peers=False)
        calls = (
            WindowCall(WindowFunction.ROW_NUMBER, "place"),
            WindowCall(
                WindowFunction.AGGREGATE,
                "withdrawals",
                (taken,),
                frame=whole,
                aggregate=AggregateFunction.COUNT,
            ),
        )
        numbered = OverWindow(kept, equal, order, calls)
        width = len(kept.schema)
        place, withdrawals = (
            Column(width + n, call.name, DataType.INTEGER) for n, call in enumerate(calls)
        )
        twice = Call("+", (withdrawals, withdrawals), DataType.INTEGER)
        return self._readings(
            Filter(numbered, Call(">", (place, twice), DataType.BOOLEAN)),
        )

    def _last(self, rows: Plan, window: Window) -> Plan:
        """Return the last rows by event time; of equal times those whose values sort higher."""
        order = (self._at(_TIME), *range(self._width))
        keys = tuple(SortKey(position, descending=True) for position in order)
        return TopN(rows, keys, window.size, partition=window.partition)

    def _in_window(self, window: Window, instant: int) -> list[Expression]:
        time, size = self._column(_TIME), window.size or 0
        match window.kind:
            case WindowKind.NOW:
                return [self._after(instant // MICROSECONDS * MICROSECONDS - 1)]
            case WindowKind.RANGE if window.slide is not None:
                end = instant // window.slide * window.slide
                upto = Call("<=", (time, _moment(end)), DataType.BOOLEAN)
                return [self._after(end - size), upto]
            case WindowKind.RANGE:
                return [self._after(instant - size)]
            case _:
                return []

    def _after(self, time: int) -> Expression:
        return Call(">", (self._column(_TIME), _moment(time)), DataType.BOOLEAN)


_NO_NUMBER = Literal(None, DataType.INTEGER)


def _moment(micros: int) -> Literal:
    return Literal(micros, DataType.TIMESTAMP)


def _filtered(rows: Plan, bounds: list[Expression]) -> Plan:
    predicate = conjunction(bounds)
    return rows if predicate is None else Filter(rows, predicate)


def _later(pairs: Sequence[tuple[int, int]]) -> Expression:
    """Return whether the left columns of pairs, compared one after the other, are greater."""
    (left, right), *rest = pairs
    first, second = (Column(c, f"c{c}", DataType.INTEGER) for c in (left, right))
    greater = Call(">", (first, second), DataType.BOOLEAN)
    if not rest:
        return greater
    equal = Call("=", (first, second), DataType.BOOLEAN)
    tied = Call("AND", (equal, _later(rest)), DataType.BOOLEAN)
    return Call("OR", (greater, tied), DataType.BOOLEAN)


def _since(scan: Scan, window: Window | None, instant: int) -> Moment | None:
    """Return the event time before which no row can be in an AS OF."""
    lengths = [] if scan.ttl is None else [scan.ttl]
    if window is not None:
        match window.kind:
            case WindowKind.RANGE:
                lengths.append((window.size or 0) + (window.slide or 0))
            case WindowKind.NOW:
                lengths.append(MICROSECONDS)
            case _ if window.range is not None:
                lengths.append(window.range)
            case _:
                pass
    return Moment(instant - min(lengths)) if lengths else None
