"""The current contents of a source at one site: keys, event time and lifetimes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stream_engine.state.columns import picker
from stream_engine.state.expiry_queue import ExpiryQueue
from stream_engine.state.watermark import Judged
from streamsql.algebra.operators import Scan, ScanPart
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.errors import InternalError

TimedRow = tuple[int, Row]
"""A row with its event time in microseconds."""

TimedDelta = dict[TimedRow, int]
"""The change of a source: a Z-set over rows with their event times, which windows need."""


@dataclass(slots=True)
class SourceChanges:
    """Changes of the site's sources in one step, which queries only read.

    Attributes:
        deltas: By scan; empty ones are left out.
        oldest: Time of the oldest reading behind each change; none for expiry.
        current: Returns the rows of a scan with which a starting query begins.
    """

    deltas: Mapping[Scan, TimedDelta]
    oldest: Mapping[Scan, int]
    current: Callable[[Scan], TimedDelta]


def without_times(delta: TimedDelta) -> Delta:
    """Return the change of the plain rows.

    Examples:
        >>> without_times({(1, ("a",)): -1, (2, ("a",)): 1, (2, ("b",)): 1})
        {('b',): 1}
    """
    if len(delta) == 1:
        (((_ts, row), weight),) = delta.items()
        return {row: weight}
    result: Delta = dict(zip([row for _ts, row in delta], delta.values(), strict=True))
    if len(result) == len(delta):
        return result  # all different, as most are: nothing to add up
    result = {}
    for (_ts, row), weight in delta.items():
        new = result.get(row, 0) + weight
        if new:
            result[row] = new
        else:
            del result[row]
    return result


def with_both(first: TimedDelta, second: TimedDelta) -> TimedDelta:
    """Return the sum of two changes.

    Examples:
        >>> with_both({(1, ("a",)): 1}, {(1, ("a",)): -1, (2, ("b",)): 1})
        {(2, ('b',)): 1}
    """
    total = dict(first)
    for (ts, row), weight in second.items():
        _add(total, ts, row, weight)
    return total


def _add(delta: TimedDelta, ts: int, row: Row, weight: int) -> None:
    timed = (ts, row)
    new = delta.get(timed, 0) + weight
    if new:
        delta[timed] = new
    else:
        delta.pop(timed, None)


def _pass_on(events: Sequence[SourceEvent], delta: TimedDelta) -> None:
    """Add events to the empty change of a log."""
    if len(events) == 1:
        event = events[0]
        delta[event.ts, event.row] = -1 if event.delete else 1
        return
    arrived = [(event.ts, event.row) for event in events if not event.delete]
    delta.update(dict.fromkeys(arrived, 1))
    if len(delta) == len(events):
        return  # they all arrive, and all are different, as most are
    delta.clear()
    for event in events:
        _add(delta, event.ts, event.row, -1 if event.delete else 1)


class SourceRelation:
    """The relation of a scan at one site.

    * Keyed: the newest row per key. A row older than the current one is ignored; of equal times
      the later arrival wins. A withdrawal removes the key's row.
    * Bag: every row; a withdrawal removes the copy of its event time, else the oldest alive.
    * With a ttl a row lives while `ts + ttl > now`; one that arrives too late never enters.
    * A bag of kind STREAM without ttl is a log: it is forwarded and not kept, so a query installed
      later starts from nothing, and a withdrawal is trusted to name a row that was sent. So are the
      late events of a source, but for late withdrawals: what they name was most likely not late.
    * The progress of a source is a row per site that has taken readings in (this one, and gateways
      whose readings are read here): the site and its watermark. With a ttl the row names no site
      any more (NULL) when there was no reading of that site for so long by the clock here, until
      the next one. It goes when the site is given up, with a ttl or without.

    State: one entry per row alive (none for a log). Work per event: O(1), O(log rows) with a ttl.

    Attributes:
        follows_clock: Whether it changes whenever it is polled, with events or without.
        may_expire: Whether rows may go without input.
    """

    __slots__ = (
        "_alive",
        "_bag",
        "_expiry",
        "_idle_times",
        "_is_keyed",
        "_key_of",
        "_keyed",
        "follows_clock",
        "is_log",
        "may_expire",
        "scan",
    )

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self._key_of = picker(scan.key)
        self._idle_times: dict[str, int] = {}
        self._is_keyed = bool(scan.key) or scan.part == ScanPart.PROGRESS
        self.is_log = scan.is_log
        self.follows_clock = False
        self.may_expire = scan.ttl is not None or scan.part == ScanPart.PROGRESS
        self._keyed: dict[Row, TimedRow] = {}
        self._bag: dict[Row, dict[int, int]] = {}
        self._expiry: ExpiryQueue[Row] = ExpiryQueue()

    def take(self, judged: Judged, site: str, now: int) -> TimedDelta:
        """Ingest accepted events, late events or watermarks, whichever the scan reads."""
        match self.scan.part:
            case ScanPart.ROWS:
                return self.apply(judged.accepted, now)
            case ScanPart.LATE:
                arrived = [event for event in judged.late if not event.delete]
                return self.apply(arrived, now)
            case ScanPart.PROGRESS:
                return self._progress(judged, site, now)
            case ScanPart.EVENTS | ScanPart.KEPT:
                raise InternalError(f"a relation has no {self.scan.part} of a source")

    def begin(
        self, reached: Mapping[str, int], heard: Mapping[str, int], site: str, now: int
    ) -> None:
        """Begin with the watermarks of all origins at the time of the last step.

        `heard` says when each origin last had readings; now, if nothing is known.
        """
        idle = self.scan.ttl
        for origin in sorted(reached, key=lambda name: heard.get(name, now)):
            name, watermark, since = origin or site, reached[origin], heard.get(origin, now)
            is_idle = idle is not None and since + idle <= now
            if idle is not None and not is_idle:
                self._idle_times[name] = since + idle
            self._keyed[(name,)] = (watermark, (None if is_idle else name, watermark))

    def _progress(self, judged: Judged, site: str, now: int) -> TimedDelta:
        """Return how the sites' rows change: each follows its watermark, or is of an idle site."""
        delta: TimedDelta = {}
        rows, times, idle = self._keyed, self._idle_times, self.scan.ttl
        for origin, watermark in judged.reached.items():
            name = origin or site
            old = rows.pop((name,), None)
            new = rows[(name,)] = (watermark, (name, watermark))
            _add(delta, *new, 1)
            if old is not None:
                _add(delta, *old, -1)
            if idle is not None:
                times.pop(name, None)
                times[name] = now + idle  # the last one heard is the last one to be idle
        for name in judged.gone:
            old = rows.pop((name,), None)
            times.pop(name, None)
            if old is not None:
                _add(delta, *old, -1)
        while times and (name := next(iter(times))) and times[name] <= now:
            del times[name]
            watermark, old_row = rows[(name,)]
            rows[(name,)] = idle_row = (watermark, (None, watermark))
            _add(delta, watermark, old_row, -1)
            _add(delta, *idle_row, 1)
        return delta

    def not_before(self, now: int) -> None:
        """Note that time has come so far; only an `EventLog` needs it."""

    def apply(self, events: Sequence[SourceEvent], now: int) -> TimedDelta:
        """Ingest events; return the change, with expiry up to `now`."""
        delta = self.advance(now)
        if self.is_log:
            _pass_on(events, delta)
        elif self.scan.key:
            self._apply_keyed(events, now, delta)
        else:
            self._apply_bag(events, now, delta)
        return delta

    def advance(self, now: int) -> TimedDelta:
        """Move the time; return what expired."""
        ttl = self.scan.ttl
        delta: TimedDelta = {}
        if ttl is None:
            return delta
        for time, rows in self._expiry.due(now):
            ts = time - ttl
            for row, weight in rows.items():
                delta[(ts, row)] = -weight
                self._forget(ts, row)
        return delta

    def next_expiry(self) -> int | None:
        """Return when the next row leaves, or None."""
        if self.scan.part == ScanPart.PROGRESS:
            return next(iter(self._idle_times.values()), None)
        return self._expiry.next_time()

    def snapshot(self) -> TimedDelta:
        """Return all rows that are alive as of the last `take`, `apply` or `advance`."""
        if self.scan.part == ScanPart.PROGRESS:
            return dict(Counter(self._keyed.values()))  # idle sites may be equally far
        if self._is_keyed:
            return dict.fromkeys(self._keyed.values(), 1)
        return {(ts, row): count for row, times in self._bag.items() for ts, count in times.items()}

    def __len__(self) -> int:
        """Return the number of distinct timed rows kept."""
        return len(self._keyed) if self._is_keyed else sum(map(len, self._bag.values()))

    def _apply_keyed(self, events: Iterable[SourceEvent], now: int, delta: TimedDelta) -> None:
        keyed, key_of, ttl, expiry = self._keyed, self._key_of, self.scan.ttl, self._expiry
        for event in events:
            row, ts = event.row, event.ts
            key = key_of(row)
            current = keyed.get(key)
            if event.delete:
                if current is None:
                    continue
                del keyed[key]
            elif (current is not None and current[0] > ts) or (ttl is not None and ts + ttl <= now):
                continue
            else:
                keyed[key] = (ts, row)
                _add(delta, ts, row, 1)
                if ttl is not None:
                    expiry.add(ts + ttl, row, 1)
            if current is not None:
                _add(delta, *current, -1)
                if ttl is not None:
                    expiry.add(current[0] + ttl, current[1], -1)

    def _apply_bag(self, events: Iterable[SourceEvent], now: int, delta: TimedDelta) -> None:
        bag, ttl, expiry = self._bag, self.scan.ttl, self._expiry
        for event in events:
            row, ts = event.row, event.ts
            times = bag.get(row)
            if event.delete:
                if times is None:
                    continue
                ts = ts if ts in times else min(times)
                weight = -1
            elif ttl is not None and ts + ttl <= now:
                continue
            else:
                weight = 1
                if times is None:
                    times = bag[row] = {}
            count = times.get(ts, 0) + weight
            if count:
                times[ts] = count
            else:
                del times[ts]
                if not times:
                    del bag[row]
            _add(delta, ts, row, weight)
            if ttl is not None:
                expiry.add(ts + ttl, row, weight)

    def _forget(self, ts: int, row: Row) -> None:
        """Drop an expired row from the state."""
        if self.scan.key:
            del self._keyed[self._key_of(row)]
            return
        times = self._bag[row]
        del times[ts]
        if not times:
            del self._bag[row]
