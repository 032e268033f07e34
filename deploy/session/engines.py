"""The three executors a local session can ask: stream engine, reference evaluator, Spark."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from typing_extensions import override

from deploy.session.frozen import frozen, with_past_rows
from deploy.session.history import History, Moment
from federated_optimizer import Topology, direct_scans
from federated_optimizer import plan as place_plan
from federated_optimizer.coordinator.queries.planning.inner_query import query_of
from federated_optimizer.costs.fragment_estimates import FragmentEstimate, fragment_estimates
from federated_optimizer.planning import compared
from federated_optimizer.search.choosing import NOTHING_RUNS, Alternatives
from federated_optimizer.search.turning_facts import TURNING_SECONDS, Turn
from federated_optimizer.statistics.planning_statistics import NOTHING_KNOWN
from host.clocks import time_left
from static_engine.evaluation.static_executor import StaticExecutor
from stream_engine.recursion.foreseen import foreseen
from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import (
    Plan,
    SourceKind,
    Window,
    WindowKind,
)
from streamsql.binder import BoundQuery, bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta, accumulate
from streamsql.errors import FederationError, InternalError, UnsupportedError
from streamsql.reference import evaluate
from streamsql.syntax.statements import Statement
from streamsql.wire.bundles.partitioning import site_of
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import FragmentBundle

STATIC_SITE = "static"
COORDINATOR = "coordinator"
QUERY = "local"
MAX_ROUNDS = 1_000_000


def local_topology(sites: int, catalog: Catalog) -> Topology:
    """Return N simulated sites that own every source, and one that owns the tables."""
    names = tuple(f"site-{number}" for number in range(1, sites + 1))
    owned = frozenset(definition.name.lower() for definition in catalog.sources)
    return Topology(dict.fromkeys(names, owned), bases=names, static=STATIC_SITE)


class LocalPlanner:
    """Binds queries and places them on simulated sites, in the steps of the coordinator's planner.

    Args:
        catalog: All definitions.
        sites: Number of sites.
    """

    def __init__(self, catalog: Catalog, sites: int) -> None:
        self._catalog = catalog
        self._sites = sites

    def bind(self, statement: Statement, catalog: Catalog | None = None) -> BoundQuery:
        """Return the bound query of a SELECT or SUBSCRIBE.

        Raises:
            QueryError: It is wrong.
        """
        return bind_query(query_of(statement), catalog or self._catalog)

    def place(self, bound: BoundQuery, *, query: str = QUERY, text: str = "") -> FragmentBundle:
        """Return the fragments of a bound query.

        Raises:
            UnsupportedError: The strategy of a recursion does not fit it.
        """
        topology = local_topology(self._sites, self._catalog)
        return place_plan(bound, topology, query=query, text=text, foresee=foreseen)

    def would_run(self, bound: BoundQuery, text: str) -> tuple[FragmentBundle, tuple[()]]:
        """Return the fragments of a bound query; no nodes are made for it."""
        return self.place(bound, query="explain", text=text), ()

    def alternatives(
        self,
        bound: BoundQuery,
        text: str = "",  # noqa: ARG002
    ) -> tuple[Alternatives, tuple[Turn, ...]]:
        """Return the plans of a bound query with their costs, and the facts that turn the choice.

        Raises:
            UnsupportedError: It asks for a plan that there is not.
        """
        topology, more = local_topology(self._sites, self._catalog), time_left(TURNING_SECONDS)
        return compared(bound, topology, NOTHING_KNOWN, NOTHING_RUNS, more)

    def estimates(self, bundle: FragmentBundle) -> dict[str, FragmentEstimate]:
        """Return what each fragment is expected to send; nothing of a session is counted."""
        return fragment_estimates(bundle, NOTHING_KNOWN, COORDINATOR)

    def past_notes(self, plan: Plan, started: int = 0) -> tuple[str, ...]:  # noqa: ARG002
        """Return nothing: the past of a session is what it has inserted."""
        return ()

    def fill_notes(self, plan: Plan, fills: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002
        """Return nothing: a session keeps all that was inserted."""
        return ()


class Executor(Protocol):
    """Answers a query at the end of a history."""

    def answer(self, bound: BoundQuery, history: History, catalog: Catalog, /) -> Delta:
        """Return the settled relation as a Z-set of positive weights."""
        ...

    def close(self) -> None:
        """Free what the executor holds between answers; most hold nothing."""
        return


class ReferenceExecutor(Executor):
    """Evaluates from scratch."""

    @override
    def answer(self, bound: BoundQuery, history: History, _catalog: Catalog, /) -> Delta:
        return evaluate(bound.plan, history.database, history.now)


class StreamExecutor(Executor):
    """Runs the query incrementally over the whole history on N sites of the stream engine.

    The query is installed first and lives through every insert, delete and passing of time, as it
    would in a federation; rows of a source are spread over the sites by hash of key or row.
    """

    def __init__(self, sites: int = 1) -> None:
        self.sites = sites

    @override
    def answer(self, bound: BoundQuery, history: History, catalog: Catalog, /) -> Delta:
        plan = with_past_rows(bound.plan, history.database, history.now)
        bundle = LocalPlanner(catalog, self.sites).place(replace(bound, plan=plan))
        sites = tuple(f"site-{number}" for number in range(1, self.sites + 1))
        run = _Run(bundle, sites, catalog)
        run.settle(0)
        for moment in history.without_withdrawn(_counted_logs(bound.plan)):
            run.ingest(moment)
            run.settle(moment.now)
        for engine in run.engines.values():
            engine.check_rounds(bundle.query)
        return run.result()


def _counted_logs(plan: Plan) -> frozenset[str]:
    """Return the logs that a window by count stands on.

    The engine keeps no more of a log than the window holds, so a row that a withdrawal would bring
    back is gone. No device withdraws from a log; a script may.
    """
    found = frozenset[str]().union(*map(_counted_logs, plan.inputs))
    if isinstance(plan, Window) and plan.kind == WindowKind.ROWS:
        scan = plan.input
        if scan.kind == SourceKind.STREAM and not scan.key and scan.ttl is None:
            return found | {scan.source}
    return found


class _Run:
    """One bundle installed on all its sites, with channels that deliver at once and in order."""

    # The one seam where a session does without broker, wire and clocks (decision 54): a settled
    # answer takes 0.19 s on the broker in memory, and a SELECT replays everything.

    def __init__(self, bundle: FragmentBundle, sites: tuple[str, ...], catalog: Catalog) -> None:
        self.bundle = bundle
        self.catalog = catalog
        self.sites = sites
        self.engines = {name: SiteEngine(name, 1) for name in (*sites, STATIC_SITE)}
        self.results = {s: ReceivingChannel(version=bundle.version) for s in bundle.result_sites}
        self.direct = direct_scans(bundle)
        for definition in (*catalog.sources, *catalog.tables):
            for name in (STATIC_SITE,) if definition.is_table else sites:
                self.engines[name].declare(definition.scan())
        for engine in self.engines.values():
            engine.install(bundle)

    def ingest(self, moment: Moment) -> None:
        """Hand every event to the site that owns its row."""
        definition = self.catalog.find(moment.source)
        if not isinstance(definition, SourceDefinition):
            return
        for event in moment.events:
            key = tuple(event.row[k] for k in definition.key) or event.row
            if definition.scan().lateness is not None:
                key = (definition.name,)  # one site, one watermark, as the reference has it
            if definition.is_table:
                owners: tuple[str, ...] = (STATIC_SITE,)
            else:
                owners = self.direct.get(definition.name) or (site_of(key, self.sites),)
            for owner in owners:
                self.engines[owner].ingest(definition.name, [event])

    def settle(self, now: int) -> None:
        """Step and deliver until nothing moves; the answer is as of now at all sites."""
        for engine in self.engines.values():
            engine.tell_time()
        for _ in range(MAX_ROUNDS):
            moved = False
            for name, engine in self.engines.items():
                step = engine.step(now)
                for _query, failure in step.failures:
                    raise failure
                for sent in step.outgoing:
                    moved = True
                    if sent.destination:
                        self.engines[sent.destination].receive(sent.query, name, sent.batch)
                    else:
                        self.results[name].accept(sent.batch)
                for query, sender in step.resyncs:
                    moved = True
                    self.engines[sender].resync(query, name)
            if not moved:
                return
        raise InternalError("a local run does not settle")

    def result(self) -> Delta:
        """Return the query's current relation."""
        total: Delta = {}
        for channel in self.results.values():
            for rows in channel.contents.values():
                accumulate(total, rows)
        return total


class SparkExecutor(Executor):
    """Answers on Spark over the contents of all sources at the end of the history."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._spark: StaticExecutor | None = None

    @override
    def answer(self, bound: BoundQuery, history: History, _catalog: Catalog, /) -> Delta:
        spark = self._spark = self._spark or self._start()
        return spark.evaluate(frozen(bound.plan, history.database, history.now))

    def _start(self) -> StaticExecutor:
        # Imported here because it loads Arrow and Spark, which the other engines do not need.
        from static_engine.sources.table_locations import Locations  # noqa: PLC0415
        from static_engine.spark.spark_executor import SparkExecutor as Spark  # noqa: PLC0415
        from static_engine.spark.spark_session import SessionSettings, start_session  # noqa: PLC0415
        from static_engine.tables.table_store import TableStore  # noqa: PLC0415

        self._folder = tempfile.TemporaryDirectory(prefix="pando-spark-")
        folder = Path(self._folder.name)
        settings = SessionSettings(folder / "session", archive=False)
        session = start_session(settings, lambda _text: None)
        return Spark(session, TableStore(Locations(folder), folder / "tables"))

    @override
    def close(self) -> None:
        if self._spark is not None:
            self._spark.stop()
        if self._folder is not None:
            self._folder.cleanup()


def executor_for(engine: str, sites: int) -> Executor:
    """Return an executor by its name on the command line.

    Raises:
        UnsupportedError: There is none of that name.
    """
    if sites < 1 or sites > 64:
        raise FederationError("--sites takes 1 to 64")
    match engine:
        case "stream":
            return StreamExecutor(sites)
        case "reference":
            return ReferenceExecutor()
        case "spark":
            return SparkExecutor()
        case _:
            raise UnsupportedError(
                f"there is no engine {engine!r}", hint="use stream, reference or spark"
            )
