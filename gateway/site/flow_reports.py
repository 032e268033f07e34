"""Counts of batches sent and received, for whoever wants to know whether a query has settled."""

import msgspec

from gateway.site.traffic import Traffic
from messaging import MessageClient, QueueFull
from stream_engine.site import SiteEngine
from streamsql.wire.codec import encode_packed
from streamsql.wire.messages import FlowReport
from streamsql.wire.topics import Topics

INTERVAL = 0.1
REPEAT = 10.0
"""Seconds after which unchanged counts are published again: the broker may drop a report."""


class FlowReports:
    """Publishes queries' counts when they change, at most ten times a second, and now and then."""

    def __init__(
        self, engine: SiteEngine, client: MessageClient, topics: Topics, traffic: Traffic
    ) -> None:
        self._engine = engine
        self._traffic = traffic
        self._client = client
        self._topics = topics
        self._reported: dict[str, FlowReport] = {}
        self._published_at = float("-inf")
        self._repeated_at = float("-inf")

    def forget(self) -> None:
        """Report everything again: a reader has just started, or the network was away."""
        self._reported.clear()

    def is_due(self) -> bool:
        """Whether some count is not reported yet."""
        reported = self._reported
        return any(self._report(query) != reported.get(query) for query in self._engine.queries)

    def _report(self, query: str) -> FlowReport | None:
        report = self._engine.flow(query)
        if report is None:
            return None
        return msgspec.structs.replace(report, traffic=self._traffic.report(query))

    def publish(self, now: float) -> None:
        """Publish what has changed; `now` in seconds of a clock that only goes forward."""
        if now - self._published_at < INTERVAL or not self._client.connected:
            return
        self._published_at = now
        if now - self._repeated_at >= REPEAT:
            self._repeated_at = now
            self.forget()
        queries = self._engine.queries
        self._traffic.forget(queries)
        for query in queries:
            report = self._report(query)
            if report is None or report == self._reported.get(query):
                continue
            try:
                topic = self._topics.flow(query, self._engine.site)
                self._client.publish(topic, encode_packed(report), qos=0)
            except QueueFull:
                return  # the next interval tries again
            self._reported[query] = report
        for query in self._reported.keys() - set(queries):
            del self._reported[query]
