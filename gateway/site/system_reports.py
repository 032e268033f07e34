"""Reports of a site about itself, as rows of the system's own sources at that site.

Only while a query that runs here reads them, and once per period: the rows of a report cause work
that the next report tells of, so a query over `sys_stream` sees itself and nothing runs in circles.
"""

from collections.abc import Callable, Iterable

from host.clocks import Clock
from stream_engine.site.measured_values import Measured
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.catalog.system import SITE_SOURCES, SYS_OPERATORS, SYS_STREAM
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row

SHORTEST_SECONDS = 0.05
"""Between two reports: a site whose clock runs fast would else do nothing but report."""

FIRST_SECONDS = 1.0
"""Between the reports that a new query waits for, at most: it shall not wait for a long period."""

NEWS = 2
"""Reports until a new query has what is measured from one report to the next."""

Meter = Callable[[], Iterable[Measured]]


class SystemReports:
    """Samples a site and hands it the rows.

    Args:
        engine: The site.
        clock: Its time.
        speed: How fast its clock passes against the wall.
        meter: Returns what the site's process has counted beside the engine.

    Attributes:
        seconds: Between two reports, by the site's clock.
        count: Reports so far.
    """

    def __init__(
        self, engine: RecordedSite, clock: Clock, *, speed: float = 1.0, meter: Meter = tuple
    ) -> None:
        self.seconds = 1.0
        self.count = 0
        self._engine = engine
        self._clock = clock
        self._speed = speed
        self._meter = meter
        self._readers: dict[str, int] = {}
        self._heard: dict[str, int] = {}  # reports since each reader of `sys_stream` began
        self._reported_at = float("-inf")
        self._operators: dict[Row, SourceEvent] = {}
        for source in SITE_SOURCES:
            engine.declare(source.scan())

    def is_new(self, query: str) -> bool:
        """Whether a query reads `sys_stream` and has yet to be told of one whole period.

        Rates are differences of two reports, so that its answer is not there before the second.
        """
        return self._heard.get(query, 0) < NEWS and query in self._engine.readers_of(
            SYS_STREAM.name
        )

    def next_due(self) -> float | None:
        """Return when `publish` has something to do, in its seconds; None: nobody reads."""
        if not self._engine.told:
            return None if not self._operators else float("-inf")
        if SYS_OPERATORS.name in self._engine.told and self._engine.queries != self._readers:
            return self._reported_at + SHORTEST_SECONDS
        seconds = self.seconds
        if any(map(self.is_new, self._engine.readers_of(SYS_STREAM.name))):
            seconds = min(seconds, FIRST_SECONDS)
        return self._reported_at + max(seconds / self._speed, SHORTEST_SECONDS)

    def publish(self, now: float) -> None:
        """Hand the site a report if one is due; `now` in seconds that only go forward."""
        self._engine.measured = SYS_STREAM.name in self._engine.told
        due = self.next_due()
        if due is None or now < due:
            return
        ts, told = self._clock(), self._engine.told
        batches: dict[str, list[SourceEvent]] = {}
        changed = self._changed_operators(ts if SYS_OPERATORS.name in told else None)
        if changed:
            batches[SYS_OPERATORS.name] = changed
        if told:
            self._reported_at = now
            self.count += 1
        readers = self._engine.readers_of(SYS_STREAM.name)
        self._heard = {query: min(self._heard.get(query, 0) + 1, NEWS) for query in readers}
        if readers:
            batches[SYS_STREAM.name] = self._measured(ts)
        if batches:
            self._engine.take_in(batches)

    def _measured(self, ts: int) -> list[SourceEvent]:
        site = self._engine.site
        return [
            SourceEvent((ts, site, p.query, p.entity, p.kind, p.property, p.value), ts)
            for p in self._engine.properties(ts, self._meter())
        ]

    def _changed_operators(self, ts: int | None) -> list[SourceEvent]:
        """Return how the operators differ from those told before; None: nobody asks any more."""
        self._readers = self._engine.queries
        site = self._engine.site
        if not self._operators:
            self._recall()
        present: dict[Row, Row] = (
            {}
            if ts is None
            else {
                (site, o.query, o.entity): (o.operator, o.inputs) for o in self._engine.operators()
            }
        )
        events: list[SourceEvent] = []
        for key, known in list(self._operators.items()):
            if present.get(key) != known.row[4:]:
                del self._operators[key]
                if key not in present:
                    events.append(SourceEvent(known.row, ts or known.ts, delete=True))
        for key, told in present.items():
            if key not in self._operators and ts is not None:
                event = self._operators[key] = SourceEvent((ts, *key, *told), ts)
                events.append(event)
        return events

    def _recall(self) -> None:
        for row in self._engine.source_rows(SYS_OPERATORS.name):
            self._operators[row[1:4]] = SourceEvent(row, int(row[0] or 0))
