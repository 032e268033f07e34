"""Reports to `sys_stream` by hosts that are no engine sites, while a query reads it.

The coordinator reports its results, and asks the static engine to report its jobs.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from host.mqtt import MessagingError
from streamsql.catalog.system import SYS_STREAM
from streamsql.data.types import MICROSECONDS
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import SystemRow, SystemRows
from streamsql.wire.site_settings import ReportRequest

log = logging.getLogger(__name__)

PERIOD_SECONDS = 1.0
"""Between two reports."""
MOST_QUIET = 500
"""Queries that are reported each time, whether or not anything of them has changed."""
TURNS = 8
"""Reports in which each query has its turn when there are more: their readers look back ten."""


class HostReports:
    """Publishes reports of the coordinator, and asks for those of the static engine."""

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._sequence = 0
        self._asked: bool | None = None
        self._told_at: int | None = None
        self._told: dict[str, tuple[SystemRow, ...]] = {}

    def forget(self) -> None:
        """Ask again: the broker was away, and may have lost the request."""
        self._asked = None

    def look(
        self,
        wanted: bool,
        everyone: Callable[[], Iterable[RunningQuery]],
        moment: int,
    ) -> None:
        """Ask or report if it is time.

        Args:
            wanted: Whether a query reads the system's stream.
            everyone: Returns all queries.
            moment: Now, by `monotonic_clock`.
        """
        try:
            if wanted != self._asked:
                payload = encode_json(ReportRequest(PERIOD_SECONDS)) if wanted else b""
                self._shared.client.publish(
                    self._shared.topics.reports(self._shared.settings.static), payload, retain=True
                )
                self._asked = wanted
            due = self._told_at is None or moment - self._told_at >= PERIOD_SECONDS * MICROSECONDS
            if wanted and due:
                self._told_at = moment
                rows = self._rows(tuple(everyone()))
                topic = self._shared.topics.observation(self._shared.settings.host, SYS_STREAM.name)
                pack = SystemRows(self._shared.presence.epoch, self._sequence, rows)
                self._shared.client.publish(topic, encode_json(pack))
                self._sequence += 1
        except MessagingError as error:
            log.warning("no report: %s", error.message)

    def _rows(self, queries: Sequence[RunningQuery]) -> tuple[SystemRow, ...]:
        """Return what is told now: of many queries what has changed, and of a share the rest."""
        before, self._told = self._told, {query.id: _rows(query) for query in queries}
        if len(queries) <= MOST_QUIET:
            return tuple(row for rows in self._told.values() for row in rows)
        turn = self._sequence % TURNS
        return tuple(
            row
            for number, (query, rows) in enumerate(self._told.items())
            if number % TURNS == turn or rows != before.get(query)
            for row in rows
        )


def _rows(query: RunningQuery) -> tuple[SystemRow, ...]:
    """Return what there is to tell of one result."""
    told = {
        "rows": query.result.size,
        "changes": query.result.changes,
        "readers": len(query.result.readers),
        "warnings": len(query.warnings),
    }
    return tuple((query.id, "result", "result", name, float(n)) for name, n in told.items())
