"""What the static engine tells of its jobs in `sys_stream`, while the coordinator asks for it."""

import logging
import time
from collections.abc import Iterable

from host.mqtt import MessageClient
from host.mqtt.publishing import publish_or_warn
from static_engine.evaluation.evaluations import Evaluations
from static_engine.service.installed_fragments import InstalledQuery
from streamsql.catalog.system import SYS_STREAM
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.messages import ReportRequest, SystemRow, SystemRows
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)


class JobReports:
    """Publishes reports on the observation lane of the system's stream.

    Args:
        client: To publish with.
        topics: Of the federation.
        site: Our id.
        epoch: Of this session.
    """

    def __init__(self, client: MessageClient, topics: Topics, site: str, epoch: int) -> None:
        self._client = client
        self._topics = topics
        self._site = site
        self._epoch = epoch
        self._sequence = 0
        self._seconds: float | None = None
        self._told_at = float("-inf")

    def asked(self, payload: bytes) -> None:
        """Take in whether, and how often, to report.

        Raises:
            WireError: It cannot be read.
        """
        self._seconds = decode_json(payload, ReportRequest).seconds if payload else None

    def seconds_to_next(self) -> float:
        """Return when the next report is due; never, while nobody reads."""
        if self._seconds is None or not self._client.connected:
            return float("inf")
        return self._told_at + self._seconds - time.monotonic()

    def publish(self, queries: Iterable[InstalledQuery], evaluations: Evaluations) -> None:
        """Report if it is time."""
        if self.seconds_to_next() > 0:
            return
        self._told_at = time.monotonic()
        rows = tuple(row for query in queries for row in _rows(query, evaluations))
        topic = self._topics.observation(self._site, SYS_STREAM.name)
        payload = encode_json(SystemRows(self._epoch, self._sequence, rows))
        if publish_or_warn(self._client, topic, payload, otherwise="jobs are not reported"):
            self._sequence += 1


def _rows(query: InstalledQuery, evaluations: Evaluations) -> Iterable[SystemRow]:
    """Yield what there is to tell of the jobs of one query."""
    for fragment in query.fragments:
        told: dict[str, float] = {
            "runs": evaluations.runs(fragment.plan),
            "failed": float(evaluations.error(fragment.plan) is not None),
        }
        took, result = evaluations.seconds(fragment.plan), evaluations.result(fragment.plan)
        if took is not None:
            told["last_ms"] = took * 1_000
        if result is not None:
            told["rows"] = sum(result.values())
        for name, value in told.items():
            yield (query.bundle.query, fragment.id, "job", name, float(value))
