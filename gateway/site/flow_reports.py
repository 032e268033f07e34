"""Counts of batches sent and received, for whoever wants to know whether a query has settled."""

from collections.abc import Callable

import msgspec

from gateway.site.traffic import Traffic
from host.heartbeats import Repetitions
from host.mqtt import MessageClient, QueueFull
from stream_engine.site.site_engine import SiteEngine
from streamsql.wire.messages import FlowReport
from streamsql.wire.site_messages import packed_flows
from streamsql.wire.topics import Topics

INTERVAL = 0.1
"""Seconds from a change to its report: whoever waits for an answer waits for changes, and their
reports should not compete with them."""

REPEAT = 10.0
"""Seconds after which what was published is repeated first: the broker may drop a report.

Every so many seconds all queries are compared with what was reported of them, too: time alone
changes counts.
"""


class FlowReports:
    """Publishes queries' counts soon after they change, one message for all that have.

    Only those of queries to which something has happened are looked at. Counts that stay as they
    are are repeated after pauses that double.

    Args:
        engine: The site.
        client: To publish with.
        topics: Of the federation.
        traffic: What channels have cost.
        is_new: Whether a query waits for something else before its answer can be complete.
    """

    def __init__(
        self,
        engine: SiteEngine,
        client: MessageClient,
        topics: Topics,
        traffic: Traffic,
        is_new: Callable[[str], bool],
    ) -> None:
        self._engine = engine
        self._is_new = is_new
        self._traffic = traffic
        self._client = client
        self._topics = topics
        self._reported: dict[str, FlowReport] = {}
        self._filters: dict[str, tuple[FlowReport, float]] = {}
        self._repetitions = Repetitions(REPEAT)
        self._mark = 0
        self._changed: dict[str, None] = {}
        self._due_since: float | None = None
        self._compared_at = float("-inf")

    def forget(self) -> None:
        """Report everything again, at once: a reader has just started, or the network was away."""
        self._reported.clear()
        self._filters.clear()
        self._mark = 0
        self._due_since = float("-inf")

    def look_again(self) -> None:
        """Compare every query with what was reported of it: what they wait for has changed."""
        self._mark = 0

    def next_due(self, now: float) -> float | None:
        """Return when `publish` has something to do; `now` in seconds, never back."""
        repeat = min(self._compared_at + REPEAT, self._repetitions.next_due)
        if self._due_since is None:
            self._look()
            reported = self._reported
            for query in list(self._changed):
                if self._report(query) != reported.get(query):
                    break
                del self._changed[query]
            if not self._changed:
                return repeat
            self._due_since = now
        return min(self._due_since + INTERVAL, repeat)

    def _look(self) -> None:
        changed, self._mark = self._engine.changed_since(self._mark)
        self._changed.update(dict.fromkeys(reversed(changed)))

    def _report(self, query: str) -> FlowReport | None:
        report = self._engine.flow(query)
        if report is None:
            return None
        return msgspec.structs.replace(
            report,
            traffic=self._traffic.report(query),
            busy=report.busy or self._is_new(query),
        )

    def publish(self, now: float) -> None:
        """Publish what has changed; `now` in seconds of a clock that only goes forward."""
        if not self._client.connected:
            return
        again = self._repetitions.due(now)
        if now - self._compared_at >= REPEAT:
            self._compared_at = now
            self.look_again()
        elif not again and (self._due_since is None or now - self._due_since < INTERVAL):
            return
        self._due_since = None
        queries = self._engine.queries
        self._traffic.forget(queries)
        for query in self._reported.keys() - set(queries):
            del self._reported[query]
            self._filters.pop(query, None)
        self._repetitions.keep(queries)
        known = {query: self._reported[query] for query in again if query in self._reported}
        self._publish(known | self._news(), now)

    def _news(self) -> dict[str, FlowReport]:
        """Return the counts that differ from those reported; of others no change is pending."""
        self._look()
        found: dict[str, FlowReport] = {}
        for query in list(self._changed):
            report = self._report(query)
            if report is not None and report != self._reported.get(query):
                found[query] = report
            else:
                del self._changed[query]
        return found

    def _lean(self, query: str, report: FlowReport, now: float) -> FlowReport:
        """Return a report without the counts of filters if these were told a moment ago."""
        before, at = self._filters.get(query, (None, now))
        if before is None or now - at >= REPEAT or before.version != report.version:
            return report
        same = before.filters == report.filters
        return msgspec.structs.replace(report, filters=()) if same else report

    def _publish(self, reports: dict[str, FlowReport], now: float) -> None:
        topic = self._topics.flow(self._engine.site)
        sent = {query: self._lean(query, report, now) for query, report in reports.items()}
        for told, payload in packed_flows(sent):
            try:
                self._client.publish(topic, payload, qos=0)
            except QueueFull:
                self._due_since = now  # the next interval tries again
                return
            for query in told:
                if sent[query].filters:
                    self._filters[query] = (sent[query], now)
                if query in self._changed:
                    del self._changed[query]
                    self._reported[query] = reports[query]
                    self._repetitions.told((query,), now)
                else:
                    self._repetitions.repeated(query, now)
