"""Reports of the static engine: state, problems, counts of queries, jobs for `sys_stream`."""

import logging
import secrets
import time
from collections.abc import Iterable, Mapping

import msgspec

from host.clocks import wall_clock
from host.heartbeats import HEARTBEAT_SECONDS, Repetitions
from host.mqtt import MessageClient
from host.mqtt.publishing import publish_or_warn
from static_engine.evaluation.evaluations import Evaluations
from static_engine.evaluation.static_executor import tables_of
from static_engine.history.past_readings import PastReadings
from static_engine.refreshing.views import RefreshedViews
from static_engine.service.installed_fragments import InstalledQuery
from static_engine.tables.table_sizes import TableSizes
from static_engine.tables.table_watch import TableWatch
from streamsql.catalog.system import SYS_STREAM
from streamsql.errors import FederationError
from streamsql.wire.codec import decode_json, encode_json, encode_packed
from streamsql.wire.messages import FlowReport, QueryProblem, SystemRow, SystemRows
from streamsql.wire.site_messages import (
    PipelineState,
    RefreshState,
    SiteRole,
    SiteState,
    SourceCount,
    TableProblem,
    packed_flows,
)
from streamsql.wire.site_settings import ReportRequest
from streamsql.wire.topics import Topics

_FLOW_SECONDS = 10.0
_COLUMNS_SECONDS = 3_600.0
"""After which counts of columns are published again: what is lost is missed for so long."""
_MAX_DETAIL = 1_000
_PIPELINE_SECONDS = 5
log = logging.getLogger(__name__)


class Reporter:
    """Publishes what changed since it was last published.

    Attributes:
        evaluating: Whether a plan is being evaluated.
    """

    def __init__(self, client: MessageClient, topics: Topics, site: str, epoch: int) -> None:
        self._client = client
        self._topics = topics
        self._site = site
        self._epoch = epoch
        self._instance = secrets.token_hex(8)
        self._state: SiteState | None = None
        self._state_at = float("-inf")
        self._problems: dict[str, QueryProblem] = {}
        self._unsent: set[str] = set()
        self._flows: dict[str, FlowReport] = {}
        self._columns: dict[str, tuple[SourceCount, float]] = {}  # as published, and when
        self._repetitions = Repetitions(_FLOW_SECONDS)
        self.evaluating = False

    def announce(self) -> None:
        """Publish everything again, after a connect or on request."""
        self._state = None
        self._flows.clear()
        self._columns.clear()
        self._unsent.update(self._problems)

    def seconds_to_next(self) -> float:
        """Return the seconds to the next heartbeat; infinite while the broker is away."""
        if not self._client.connected:
            return float("inf")
        return self._state_at + HEARTBEAT_SECONDS - time.monotonic()

    def state(  # noqa: PLR0913 - what a state says
        self,
        *,
        detail: str,
        ready: bool,
        counters: dict[str, int],
        views: tuple[RefreshState, ...] = (),
        sizes: TableSizes | None = None,
        fills: bool = False,
        pipeline: PipelineState | None = None,
        table_problems: tuple[TableProblem, ...] = (),
    ) -> None:
        """Publish the state if it is new or old enough, then what is new of columns of tables."""
        state = SiteState(
            online=True,
            epoch=self._epoch,
            ts=0,
            role=SiteRole.STATIC,
            detail=detail[:_MAX_DETAIL],
            ready=ready,
            instance=self._instance,
            views=views,
            tables=sizes.rows() if sizes is not None else {},
            compared=sizes.compared_names() if sizes is not None else {},
            fills=fills,
            pipeline=pipeline and _seldom(pipeline),
            table_problems=table_problems,
        )
        if not self._client.connected:
            return
        if state != self._state or self.seconds_to_next() <= 0:
            told = {"ts": wall_clock(), "counters": counters, "pipeline": pipeline}
            full = msgspec.structs.replace(state, **told)
            if self._publish(self._topics.host_state(self._site), encode_json(full)):
                self._state, self._state_at = state, time.monotonic()
        # Who has not heard the state does not know that tables are counted here.
        if sizes is not None and self._state is not None:
            self._tell_columns(sizes.counts())

    def _tell_columns(self, counts: Mapping[str, SourceCount]) -> None:
        """Publish the counts of the columns of tables that changed, and all of them now and then.

        Values follow from them: they are no part of the state, which every site reads.
        """
        self._columns = {t: told for t, told in self._columns.items() if t in counts}
        moment = time.monotonic()
        for table, count in counts.items():
            told, at = self._columns.get(table, (None, 0.0))
            if told == count and moment - at < _COLUMNS_SECONDS:
                continue
            topic, payload = self._topics.columns(self._site), encode_packed(count)
            if self._publish(topic, payload, retain=False):
                self._columns[table] = (count, moment)

    def heard_own_state(self, payload: bytes) -> None:
        """Contradict our will if it was published although we run."""
        if payload:
            state = decode_json(payload, SiteState)
            if not state.online and state.epoch >= self._epoch:
                self.announce()

    def stopped(self) -> None:
        """Publish that we stop."""
        state = SiteState(
            False, self._epoch, wall_clock(), SiteRole.STATIC, "stopped", "", False, self._instance
        )
        if self._client.connected:
            self._publish(self._topics.host_state(self._site), encode_json(state))

    def problems(self, current: dict[str, FederationError | None]) -> None:
        """Publish problems that are new, and clear those that are over."""
        for query, error in current.items():
            known = self._problems.get(query)
            if error is None:
                if known is not None:
                    del self._problems[query]
                    self._unsent.add(query)
            elif known is None or (known.code, known.message) != (error.code, error.message):
                self._problems[query] = QueryProblem(
                    error.code, error.message, error.hint, wall_clock(), self._site
                )
                self._unsent.add(query)
        for query in self._problems.keys() - current.keys():  # uninstalled
            del self._problems[query]
            self._unsent.add(query)
        if not self._client.connected:
            return
        for query in sorted(self._unsent):
            problem = self._problems.get(query)
            payload = encode_json(problem) if problem else b""
            if self._publish(self._topics.error(query, self._site), payload):
                self._unsent.discard(query)

    def flows(self, current: dict[str, FlowReport]) -> None:
        """Publish counts that changed in one message, and repeat it later: it may get lost."""
        if not self._client.connected:
            return
        for query in self._flows.keys() - current.keys():
            del self._flows[query]
        self._repetitions.keep(current)
        changed = {q: report for q, report in current.items() if report != self._flows.get(q)}
        moment = time.monotonic()
        again = {q: current[q] for q in self._repetitions.due(moment) if q in self._flows}
        reports = again | changed
        for told, payload in packed_flows(reports):
            if not self._publish(self._topics.flow(self._site), payload, retain=False, qos=0):
                return
            for query in told:
                if query in changed:
                    self._flows[query] = reports[query]
                    self._repetitions.told((query,), moment)
                else:
                    self._repetitions.repeated(query, moment)

    def _publish(self, topic: str, payload: bytes, *, retain: bool = True, qos: int = 1) -> bool:
        return publish_or_warn(self._client, topic, payload, retain=retain, qos=qos)


def _seldom(pipeline: PipelineState) -> PipelineState:
    """Return what of a pipeline is told at once; counts are told every few seconds."""
    step = _PIPELINE_SECONDS * 1_000_000
    return PipelineState(
        running=pipeline.running,
        problem=pipeline.problem,
        last=None if pipeline.last is None else pipeline.last // step * step,
    )


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
        self._reported_at = float("-inf")

    def request(self, payload: bytes) -> None:
        """Set whether, and how often, to report.

        Raises:
            WireError: It cannot be read.
        """
        self._seconds = decode_json(payload, ReportRequest).seconds if payload else None

    def seconds_to_next(self) -> float:
        """Return the seconds to the next report; infinite while nobody reads."""
        if self._seconds is None or not self._client.connected:
            return float("inf")
        return self._reported_at + self._seconds - time.monotonic()

    def publish(self, queries: Iterable[InstalledQuery], evaluations: Evaluations) -> None:
        """Report if it is time."""
        if self.seconds_to_next() > 0:
            return
        self._reported_at = time.monotonic()
        rows = tuple(row for query in queries for row in _rows(query, evaluations))
        topic = self._topics.observation(self._site, SYS_STREAM.name)
        payload = encode_json(SystemRows(self._epoch, self._sequence, rows))
        if publish_or_warn(self._client, topic, payload, otherwise="jobs are not reported"):
            self._sequence += 1


def _rows(query: InstalledQuery, evaluations: Evaluations) -> Iterable[SystemRow]:
    """Yield the measurements of the jobs of one query."""
    for fragment in query.fragments:
        outcome = evaluations.outcome(fragment.plan)
        values: dict[str, float] = {"runs": outcome.runs, "failed": outcome.error is not None}
        if outcome.seconds is not None:
            values["last_ms"] = outcome.seconds * 1_000
        if outcome.result is not None:
            values["rows"] = outcome.result.total
        for name, value in values.items():
            yield (query.bundle.query, fragment.id, "job", name, float(value))


def will_state(epoch: int) -> SiteState:
    """Return the will: the state that the broker publishes when the connection is lost."""
    return SiteState(False, epoch, wall_clock(), SiteRole.STATIC, "lost", ready=False)


def problem_of_tables(
    query: InstalledQuery, evaluations: Evaluations, views: RefreshedViews, watch: TableWatch
) -> FederationError | None:
    """Return why a table or a refreshed view that a query names cannot be read, or None."""
    parts = [tables_of(evaluations.narrowed(f.plan)) for f in query.whole]
    for table in sorted(query.named_tables.union(*parts)):
        problem = (views if table in views.names else watch).problem(table)
        if problem is not None:
            return problem
    return None


def problem_of(
    query: InstalledQuery, evaluations: Evaluations, past: PastReadings
) -> FederationError | None:
    """Return why a query's fragments have no rows, or only former ones; None: they have."""
    for fragment in query.whole:
        error = past.problem(fragment.plan) or evaluations.outcome(fragment.plan).error
        if error is not None:
            return error
    return query.outgrown or query.keyed.error
