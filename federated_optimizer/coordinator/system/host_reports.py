"""Reports to `sys_stream` by hosts that are no engine sites, while a query reads it.

The coordinator reports its results, and asks the static engine to report its jobs.
"""

import logging
from collections.abc import Callable, Iterable

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from host.mqtt import MessagingError
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.catalog.system import SYS_STREAM
from streamsql.data.types import MICROSECONDS
from streamsql.wire.codec import encode_json
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import SystemRow, SystemRows
from streamsql.wire.site_settings import ReportRequest

log = logging.getLogger(__name__)

PERIOD_SECONDS = 1.0
"""Between two reports."""


class HostReports:
    """Publishes reports of the coordinator, and asks for those of the static engine."""

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._sequence = 0
        self._asked: bool | None = None
        self._told_at: int | None = None
        self._reads: dict[tuple[str, int], bool] = {}

    def forget(self) -> None:
        """Ask again: the broker was away, and may have lost the request."""
        self._asked = None

    def look(
        self,
        leaders: Iterable[RunningQuery],
        everyone: Callable[[], Iterable[RunningQuery]],
        moment: int,
    ) -> None:
        """Ask or report if it is time.

        Args:
            leaders: A query of each run.
            everyone: Returns all queries.
            moment: Now, by `monotonic_clock`.
        """
        before, self._reads = self._reads, {}
        for query in leaders:
            key = (query.run, query.bundle.version)
            self._reads[key] = before[key] if key in before else _reads(query.bundle)
        wanted = any(self._reads.values())
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
                rows = tuple(row for query in everyone() for row in _rows(query))
                topic = self._shared.topics.observation(self._shared.settings.host, SYS_STREAM.name)
                pack = SystemRows(self._shared.presence.epoch, self._sequence, rows)
                self._shared.client.publish(topic, encode_json(pack))
                self._sequence += 1
        except MessagingError as error:
            log.warning("no report: %s", error.message)


def _reads(bundle: FragmentBundle) -> bool:
    """Whether a query reads the system's stream."""
    return any(
        isinstance(node, Scan) and node.source == SYS_STREAM.name
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
    )


def _rows(query: RunningQuery) -> Iterable[SystemRow]:
    """Yield what there is to tell of one result."""
    told = {
        "rows": query.result.size,
        "changes": query.result.changes,
        "readers": len(query.result.readers),
        "warnings": len(query.warnings),
    }
    for name, value in told.items():
        yield (query.id, "result", "result", name, float(value))
