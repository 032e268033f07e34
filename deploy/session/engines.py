"""The three executors a local session can ask: stream engine, reference evaluator, Spark."""

from typing import Protocol

from federated_optimizer.placement.topology import Topology
from stream_engine.site import SiteEngine

from deploy.session.history import History
from federated_optimizer import plan as place_plan
from streamsql.algebra.operators import Plan, Scan, Values, Window, with_inputs
from streamsql.binder import BoundQuery
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta, accumulate
from streamsql.data.types import Row
from streamsql.errors import FederationError, InternalError, UnsupportedError
from streamsql.reference import evaluate
from streamsql.reference.database import contents, windowed
from streamsql.wire.channels import ReceivingChannel
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.partitioning import site_of

STATIC_SITE = "static"
MAX_ROUNDS = 1_000_000


class Executor(Protocol):
    """Answers a query at the end of a history."""

    def answer(self, bound: BoundQuery, history: History, catalog: Catalog) -> Delta:
        """Return the settled relation as a Z-set of positive weights."""
        ...

    def close(self) -> None:
        """Free what the executor holds."""
        ...


class ReferenceExecutor:
    """Evaluates from scratch."""

    def answer(self, bound: BoundQuery, history: History, _catalog: Catalog) -> Delta:
        """See `Executor`."""
        return evaluate(bound.plan, history.database, history.now)

    def close(self) -> None:
        """Nothing is held."""


class StreamExecutor:
    """Runs the query incrementally over the whole history on N sites of the stream engine.

    The query is installed first and lives through every insert, delete and passing of time, as it
    would in a federation; rows of a source are spread over the sites by hash of key or row.
    """

    def __init__(self, sites: int = 1) -> None:
        self.sites = sites

    def answer(self, bound: BoundQuery, history: History, catalog: Catalog) -> Delta:
        """See `Executor`."""
        bundle = place_plan(bound, Topology.partitioned(self.sites, static=STATIC_SITE))
        run = _Run(bundle, catalog)
        run.settle(0)
        for moment in history.moments:
            run.ingest(moment.source, moment.events)
            run.settle(moment.now)
        return run.result()

    def close(self) -> None:
        """Nothing is held between answers."""


class _Run:
    """One bundle installed on all its sites, with channels that deliver at once and in order."""

    def __init__(self, bundle: FragmentBundle, catalog: Catalog) -> None:
        self.bundle = bundle
        self.catalog = catalog
        names = sorted({site for f in bundle.fragments for site in f.sites} | {STATIC_SITE})
        self.engines = {name: SiteEngine(name, 1) for name in names}
        self.streaming_sites = tuple(name for name in names if name != STATIC_SITE) or names
        self.results = {s: ReceivingChannel(version=bundle.version) for s in bundle.result_sites}
        for definition in (*catalog.sources, *catalog.tables):
            for name in self._owners(definition.is_table):
                self.engines[name].declare(definition.scan())
        for engine in self.engines.values():
            engine.install(bundle)

    def _owners(self, is_table: bool) -> tuple[str, ...]:
        return (STATIC_SITE,) if is_table else tuple(self.streaming_sites)

    def ingest(self, source: str, events: tuple) -> None:  # type: ignore[type-arg]
        definition = self.catalog.find(source) if source else None
        if definition is None:
            return
        owners = self._owners(definition.is_table)  # type: ignore[union-attr]
        for event in events:
            key = tuple(event.row[k] for k in definition.key) or event.row  # type: ignore[union-attr]
            self.engines[site_of(key, owners)].ingest(source, [event])

    def settle(self, now: int) -> None:
        """Step and deliver until nothing moves."""
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


class SparkExecutor:
    """Answers on Spark over the contents of all sources at the end of the history."""

    def __init__(self) -> None:
        self._spark: object | None = None

    def answer(self, bound: BoundQuery, history: History, _catalog: Catalog) -> Delta:
        """See `Executor`."""
        from static_engine.executor import SparkExecutor as Spark  # noqa: PLC0415  (starts a JVM)

        if self._spark is None:
            self._spark = Spark.local()
        frozen = _frozen(bound.plan, history)
        return self._spark.evaluate(frozen)  # type: ignore[attr-defined, no-any-return]

    def close(self) -> None:
        """Stop Spark."""
        if self._spark is not None:
            self._spark.close()  # type: ignore[attr-defined]


def _frozen(plan: Plan, history: History) -> Plan:
    """Replace every source by its rows of now; Spark sees relations, not streams."""
    rows: list[Row]
    match plan:
        case Window():
            rows = windowed(plan, history.database, history.now)
        case Scan():
            rows = [row for _, row in contents(plan, history.database, history.now)]
        case _:
            return with_inputs(plan, tuple(_frozen(child, history) for child in plan.inputs))
    return Values(tuple(rows), plan.schema)


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
