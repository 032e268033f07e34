"""The static engine on the broker: fragments in, rows and their changes out.

One loop does the work in turns: read the tables that are due, evaluate the plans whose tables
changed, send what readers do not have. Reading and evaluating happen on one thread of their own,
starting Spark on another, so the loop always answers. Nothing is queued while the broker is away:
on reconnecting every reader gets a snapshot, which it turns into the exact difference.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from host.clocks import wall_clock
from host.defects import Defects
from host.mqtt import Message, MessageClient, QueueFull
from host.mqtt.dead_letters import DeadLetters
from static_engine.changing.change_requests import ChangeRequests
from static_engine.evaluation.changing_queries import ChangingQueries
from static_engine.evaluation.engine_starter import EngineStarter
from static_engine.evaluation.evaluations import Evaluations
from static_engine.evaluation.executor_choice import ExecutorChoice
from static_engine.evaluation.static_executor import EngineLostError, StaticExecutor, tables_of
from static_engine.filling.fill_requests import FillRequests, Pieces
from static_engine.history.past_readings import PastReadings
from static_engine.keyed.keyed_queries import KeyedQueries
from static_engine.refreshing.refresher import Refresher
from static_engine.refreshing.rows_file import RowsFolder
from static_engine.refreshing.views import RefreshedViews
from static_engine.service.batch_sender import Sender
from static_engine.service.engine_reports import JobReports, Reporter, problem_of, problem_of_tables
from static_engine.service.installed_fragments import InstalledQuery, whole_plans
from static_engine.service.key_channels import KeyChannels
from static_engine.service.lake_service import LakeService, define_kept, show_tables
from static_engine.service.landed_readings import Pipeline, definition_topics, learn_definition
from static_engine.service.snapshot_requests import resync_any, resync_own
from static_engine.static_settings import StaticSettings
from static_engine.tables.narrowed_tables import NarrowedTables
from static_engine.tables.table_problems import TableProblems
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.user_functions import INSTALLED
from streamsql.errors import FederationError, WireError
from streamsql.wire.codec import decode_json, decode_packed
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch, TableSet
from streamsql.wire.stored_tables.lake_messages import LakeRequest
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder
from streamsql.wire.stored_tables.table_changes import TableChange
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)
T = TypeVar("T")

SHORTEST_PAUSE = 0.05
DEFECT_PAUSE = 1.0
"""Between two log entries of turns that fail."""

MakeExecutor = Callable[[TableStore, Callable[[str], None]], StaticExecutor]


class StaticEngine:
    """One static engine; `run` serves until it is cancelled.

    Args:
        settings: See `StaticSettings`.
        epoch: This session's number.
        client: Not yet connected; its will is `will_state(epoch)`.
        store: The tables.
        make_executor: Starts the engine; blocking, called on a thread of its own.
        bridge: Evaluates plans over small tables until the engine is there; the state reports it.
        past: What is kept of the past.
        pieces: The same, for windows that start full.
        pipeline: Keeps what is landed; None: nothing is.
        lake: Answers requests about the lake.
        clock: Wall-clock microseconds: when views are refreshed.
    """

    def __init__(  # noqa: PLR0913 - each is one seam
        self,
        settings: StaticSettings,
        epoch: int,
        client: MessageClient,
        store: TableStore,
        make_executor: MakeExecutor,
        *,
        bridge: StaticExecutor | None = None,
        past: PastReadings | None = None,
        pieces: Pieces | None = None,
        pipeline: Pipeline | None = None,
        lake: LakeService | None = None,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self.settings = settings
        self.epoch = epoch
        self.client = client
        self.topics, self._me = Topics(settings.site), settings.site_id
        self._queries: dict[str, InstalledQuery] = {}
        self._last_sequence = 0
        self._store = store
        self._past, self._pipeline, self._lake = past or PastReadings(None), pipeline, lake
        self._watch = TableWatch(store)
        self.views = RefreshedViews(store, RowsFolder(settings.data_path / "views"), clock)
        self._refresher = Refresher(store, self._watch, self.views, wall=clock)
        self._evaluations = Evaluations(store, self._past)
        self._keyed = KeyedQueries(store, self._watch, self._evaluations, settings.max_result_rows)
        self._problems = TableProblems(self._watch)
        show_tables(lake, store, self._watch, sizes := self._keyed.sizes)
        self._key_channels = KeyChannels(client, self.topics, self._me)
        self._wake = asyncio.Event()
        self._starter = EngineStarter(partial(make_executor, store), self._wake.set)
        bounds = (settings.bridge_rows, settings.local_rows)
        self._choice = ExecutorChoice(self._starter, bridge, store, self._past, *bounds)
        self._querying = ChangingQueries(
            *(store, self._watch, self._past, self.views, self._choice.executor, self._compute)
        )
        self._changes = ChangeRequests(client, self.topics, self._me, epoch, self._querying)
        self._narrowed = NarrowedTables(self._watch.definition, sizes.rows, sizes.compared)
        self._dead_letters = DeadLetters(self._me, client, self.topics)
        self._reporter = Reporter(client, self.topics, self._me, epoch)
        self._jobs = JobReports(client, self.topics, self._me, epoch)
        self._fills = FillRequests(client, self.topics, pieces)
        self._sender = Sender(client, self.topics, self._me)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="static-engine")
        self._poll_at = 0.0
        self._defects = Defects("a turn", "the service")

    async def run(self) -> None:
        """Serve until cancelled; announces a clean stop then."""
        self.client.on_connection(self._on_connection)
        self.client.on_messages(self._on_messages)
        topics, me = self.topics, self._me
        await self.client.connect(timeout=None)
        own = (topics.tables(me), topics.reports(me), topics.fragment("+", me))
        commands = (topics.command(me, "+"), topics.request(me), topics.host_state(me))
        asked = (topics.exchange("+", me, "+"), topics.fill_request(me, scope="+"))
        learned = definition_topics(self._pipeline, topics)
        await self.client.subscribe(*own, *commands, *asked, *learned)
        self._starter.start()
        try:
            while True:
                await self._turn_or_report()
                # Not wait_for: before Python 3.12 it may swallow a cancellation.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            await self._stop()

    async def _turn_or_report(self) -> None:
        """Do what is due; a defect is logged, and the engine goes on unless it stays."""
        try:
            await self._turn()
            self._defects.passed()
        except Exception as error:
            if not self._defects.survives(error):
                raise
            await asyncio.sleep(DEFECT_PAUSE)

    async def _turn(self) -> None:
        for table in await self._changes.work(self._store.change, self._in_worker):
            self._watch.changed(table)
            self._poll_at = 0.0
        await self._read_tables()
        await self._refresher.refresh(self._choice.executor, self._compute)
        await self._evaluate()
        self._report()
        await self._send()
        await self._fills.work(self._in_worker)
        self._report()
        self._jobs.publish(self._queries.values(), self._evaluations)

    def _pause(self) -> float:
        if self._waits_for_tables or self._querying.plans or self._fills.is_due:
            return SHORTEST_PAUSE
        due = min(
            self._poll_at - time.monotonic(),
            self._reporter.seconds_to_next(),
            self._jobs.seconds_to_next(),
            self._key_channels.seconds_to_next(self._queries),
            self.views.seconds_to_next(),
        )
        return max(due, SHORTEST_PAUSE)

    @property
    def _waits_for_tables(self) -> bool:
        return self._refresher.waits_for_tables or self._querying.waits_for_tables

    async def _read_tables(self) -> None:
        if self.views.has_new:
            await self._in_worker(self.views.adopt)
        self._keyed.decide(self._queries.values())
        needed = self._refresher.tables()
        moment = time.monotonic()
        if moment < self._poll_at and not self._waits_for_tables:
            return
        self._poll_at = moment + self.settings.poll_seconds
        self._refresher.reading()
        whole = whole_plans(queries := list(self._queries.values()))
        named = needed.union(*map(tables_of, whole.union(self._querying.plans)))
        await self._in_worker(partial(self._keyed.sizes.poll, named))
        plans, parts = self._narrowed.plans(whole)
        self._evaluations.narrow(plans)
        used = needed.union(*map(tables_of, plans.values()), *(q.keyed_tables for q in queries))
        self._watch.narrow({**parts, **self._querying.narrow(self._narrowed, used)})
        await self._in_worker(partial(self._look, used | self._querying.tables(), queries))

    def _look(self, used: frozenset[str], queries: list[InstalledQuery]) -> None:
        self._watch.poll(used)
        self._past.look([*self._querying.plans, *(p.plan for q in queries for p in q.fragments)])
        self._querying.polled()
        self._keyed.poll(queries)

    async def _evaluate(self) -> None:
        """Evaluate what is due, one plan after the other; identical plans once."""
        self._evaluations.keep(plans := whole_plans(self._queries.values()))
        for plan in plans:
            executor = self._choice.executor(self._evaluations.narrowed(plan))
            if executor is None or not self._evaluations.is_due(plan, time.monotonic()):
                continue
            evaluate = partial(self._evaluations.evaluate, plan, executor, time.monotonic())
            await self._compute(evaluate)
        for query in self._queries.values():
            known = {f.id: self._evaluations.outcome(f.plan).result for f in query.whole}
            query.update_all({name: bag for name, bag in known.items() if bag is not None})
        self._key_channels.ask(self._queries)
        if await self._keyed.evaluate(self._queries, self._choice.executor, self._compute):
            self._wake.set()

    async def _compute(self, evaluate: Callable[[], None]) -> bool:
        """Evaluate on the worker and report it; return False if the engine was lost."""
        self._reporter.evaluating = True
        self._report()
        try:
            await self._in_worker(evaluate)
        except EngineLostError as error:
            log.warning("%s; restarting it", error.message)
            self._starter.restart(error.message)
            return False
        finally:
            self._reporter.evaluating = False
        return True

    async def _send(self) -> None:
        for name, query in list(self._queries.items()):
            if query.has_work and self._queries.get(name) is query:
                await self._sender.send(query, lambda n=name, q=query: self._queries.get(n) is q)  # type: ignore[misc]

    @property
    def is_ready(self) -> bool:
        """Whether the engine that was asked for has started."""
        return self._starter.executor is not None

    @property
    def counters(self) -> dict[str, int]:
        """Counts of this life, by name."""
        return {
            "tables": len(self._watch.names),
            "queries": len(self._queries),
            "defects": self._defects.count,
            "bad_payloads": self._dead_letters.count,
            "evaluations": self._evaluations.count,
            "batches_sent": self._sender.batches_sent,
            "function_failures": INSTALLED.failed,
        }

    def _report(self) -> None:
        """Publish state, problems and counts where they changed."""
        broken = self._problems.now(self._keyed.problems(self._queries.values()))
        words = [self._starter.detail, *self._choice.notes, *(e.message for e in broken.values())]
        self._reporter.state(
            detail="; ".join(words),
            ready=self.is_ready,
            views=self.views.states(),
            sizes=self._keyed.sizes,
            fills=self._fills.pieces is not None,
            counters=self.counters | self._choice.figures | self._evaluations.figures,
            pipeline=None if self._pipeline is None else self._pipeline.state(),
            table_problems=self._problems.as_begun(broken),
        )
        # After the state, which discards the problems of the earlier incarnation.
        busy, queries = self._reporter.evaluating, self._queries.items()
        self._reporter.problems({name: self._problem_of(query) for name, query in queries})
        self._reporter.flows({n: q.flow(busy=busy or self._has_due(q)) for n, q in queries})

    def _has_due(self, query: InstalledQuery) -> bool:
        due = any(self._evaluations.is_due(f.plan, time.monotonic()) for f in query.whole)
        return due or self._keyed.is_due(query)

    def _problem_of(self, query: InstalledQuery) -> FederationError | None:
        problem = problem_of_tables(query, self._evaluations, self.views, self._watch)
        rest = problem_of(query, self._evaluations, self._past)
        return problem or self._starter.problem or rest

    def _on_connection(self, connected: bool) -> None:
        log.info("broker %s", "connected" if connected else "lost; reconnecting")
        self._sender.connection_changed()
        if connected:
            self._reporter.announce()
            self._key_channels.connected(self._queries)
            for query in self._queries.values():
                query.request_all()
        self._wake.set()

    def _on_messages(self, burst: list[Message]) -> None:
        for message in burst:
            self._dead_letters.guard(self._dispatch, message)
        self._wake.set()

    def _dispatch(self, message: Message) -> None:
        match self.topics.parts(message.topic):
            case ["q", query, "frag", _me]:
                self._install(query, message.payload)
            case ["q", query, "x", _me, sender]:
                batch = decode_packed(message.payload, DeltaBatch)
                self._key_channels.receive(self._queries, query, sender, batch)
            case ["host", _me, "tables"]:
                tables = decode_json(message.payload, TableSet) if message.payload else TableSet()
                orders = [decode_packed(order, RefreshOrder) for order in tables.refreshed]
                self._watch.define(tuple(t for t in tables.tables if t.is_table))
                self.views.define(orders)
                define_kept(self._lake, tables)
                self._poll_at = 0.0
            case ["host", _me, "reports"]:
                self._jobs.request(message.payload)
            case ["host", _me, "fill", scope, sender]:
                self._fills.take(sender, message.payload, is_base=scope == "all")
            case ["host", _me, "state"]:
                self._reporter.heard_own_state(message.payload)
            case ["source", level]:
                learn_definition(self._pipeline, level, message.payload)
            case ["gw", _me, "cmd", "resync", sender]:
                resync_own(self._queries, sender, decode_json(message.payload, Command))
            case ["gw", _me, "cmd", "forget", _]:
                pass  # rows of tables do not expire, so there is nothing to discard
            case ["gw", _me, "cmd", "change"]:
                self._changes.take(decode_packed(message.payload, TableChange))
            case ["gw", _me, "cmd", "lake"] if self._lake is not None:
                self._lake.take(decode_packed(message.payload, LakeRequest))
            case ["gw", _me, "cmd", verb]:
                self._command(verb, decode_json(message.payload, Command))
            case _:
                raise WireError(f"no handler reads {message.topic!r:.200}")

    def _install(self, name: str, payload: bytes) -> None:
        bundle = decode_packed(payload, FragmentBundle) if payload else None
        if bundle is not None and bundle.query != name:
            raise WireError(f"a bundle of query {bundle.query!r:.80} on the topic of {name!r:.80}")
        old = self._queries.get(name)
        if bundle is not None and old is not None and not old.gives_way(bundle):
            return
        if old is not None:
            self._last_sequence = max(self._last_sequence, old.last_sequence())
            del self._queries[name]
        if bundle is not None:
            query = InstalledQuery(
                *(bundle, self._me, self.epoch, self._last_sequence),
                max_gateway_rows=self.settings.max_gateway_rows,
            )
            if query.fragments:
                self._queries[name] = query
                self._poll_at = 0.0
                log.info("query %s version %d installed", name, bundle.version)
        elif old is not None:
            log.info("query %s removed", name)
        self._evaluations.cancel_unneeded(whole_plans(self._queries.values()))

    def _command(self, verb: str, command: Command) -> None:
        match verb:
            case "resync":
                resync_any(self._queries, command)
            case "flow" | "ping":
                self._reporter.announce()
            case "refresh" if "view" in command.arguments:
                view = str(command.arguments["view"])
                if not self._refresher.ask(view):
                    log.warning("asked to refresh view %r, which does not exist", view)
            case "refresh":
                table = command.arguments.get("table", "")
                if not self._watch.read_again(str(table), accept=True):
                    log.warning("asked to read table %r again, which does not exist", table)
                self._poll_at = 0.0
            case _:
                log.warning("unknown command %r", verb[:40])

    async def _in_worker(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    async def _stop(self) -> None:
        with contextlib.suppress(QueueFull):
            self._reporter.stopped()
        await self.client.close()
        # First the engine, so that an evaluation on the worker thread ends.
        await asyncio.to_thread(self._starter.stop)
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)
