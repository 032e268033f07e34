"""What hosts that are no engine sites tell of themselves in `sys_stream`, while a query reads it.

The coordinator tells of its results, and asks the static engine to tell of its jobs.
"""

import logging
from collections.abc import Iterable

from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from host.mqtt import MessageClient, MessagingError
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.catalog.system import SYS_STREAM
from streamsql.wire.codec import encode_json
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import ReportRequest, SystemRow, SystemRows
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

SECOND = 1_000_000


class HostReports:
    """Publishes reports of the coordinator, and asks for those of the static engine.

    Args:
        client: To publish with.
        topics: Of the federation.
        host: The coordinator's id.
        static: The static engine's id.
        epoch: Of this life.
        seconds: Between two reports.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (who tells whom, and how often)
        self,
        client: MessageClient,
        topics: Topics,
        host: str,
        static: str,
        epoch: int,
        seconds: float = 1.0,
    ) -> None:
        self._client = client
        self._topics = topics
        self._host = host
        self._static = static
        self._epoch = epoch
        self._seconds = seconds
        self._sequence = 0
        self._asked: bool | None = None
        self._told_at: int | None = None
        self._reads: dict[tuple[str, int], bool] = {}

    def forget(self) -> None:
        """Ask again: the broker was away, and may have forgotten."""
        self._asked = None

    def look(self, queries: Iterable[RunningQuery], moment: int) -> None:
        """Ask or report if it is time.

        Args:
            queries: All that run.
            moment: By `monotonic_clock`.
        """
        running = tuple(queries)
        before, self._reads = self._reads, {}
        for query in running:
            key = (query.id, query.bundle.version)
            self._reads[key] = before[key] if key in before else _reads(query.bundle)
        wanted = any(self._reads.values())
        try:
            if wanted != self._asked:
                payload = encode_json(ReportRequest(self._seconds)) if wanted else b""
                self._client.publish(self._topics.reports(self._static), payload, retain=True)
                self._asked = wanted
            due = self._told_at is None or moment - self._told_at >= self._seconds * SECOND
            if wanted and due:
                self._told_at = moment
                rows = tuple(row for query in running for row in _rows(query))
                topic = self._topics.observation(self._host, SYS_STREAM.name)
                pack = SystemRows(self._epoch, self._sequence, rows)
                self._client.publish(topic, encode_json(pack))
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
