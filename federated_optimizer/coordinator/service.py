"""The coordinator: catalog, queries and sites of one federation, behind `CoordinatorApi`.

One coordinator serves a federation: the newest. Starting one claims a new epoch in the catalog and
announces it on the broker; an older one that still runs sees the newer epoch, stops deploying and
refuses changes from then on (its own writes to a shared catalog fail, too).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from federated_optimizer.alarm_book import AlarmRow
from federated_optimizer.coordinator.alarms import Alarms
from federated_optimizer.coordinator.base_rows import BaseRowReader
from federated_optimizer.coordinator.catalog_store import CatalogStore
from federated_optimizer.coordinator.deployment import Deployment
from federated_optimizer.coordinator.elapsed import elapsed
from federated_optimizer.coordinator.explaining import explain_running
from federated_optimizer.coordinator.explaining_rows import Question, RowExplanations
from federated_optimizer.coordinator.explanations import RowExplainer
from federated_optimizer.coordinator.host_reports import HostReports
from federated_optimizer.coordinator.leftovers import Leftovers
from federated_optimizer.coordinator.links import LinkTable
from federated_optimizer.coordinator.membership import Membership
from federated_optimizer.coordinator.model import (
    AlarmInfo,
    QueryInfo,
    SiteInfo,
    StatementResult,
    Subscription,
    Validation,
)
from federated_optimizer.coordinator.planner import Planned, Planner
from federated_optimizer.coordinator.queries import Queries
from federated_optimizer.coordinator.receiver import Receiver
from federated_optimizer.coordinator.repairs import Repairs
from federated_optimizer.coordinator.running import RunningQuery
from federated_optimizer.coordinator.settings import CoordinatorSettings
from federated_optimizer.coordinator.site_settings import SettingsBook
from federated_optimizer.coordinator.statements import StatementRunner
from federated_optimizer.coordinator.system_rows import (
    alarm_rows as rows_of_alarms,
)
from federated_optimizer.coordinator.system_rows import (
    query_rows,
    site_rows,
    source_rows,
)
from federated_optimizer.coordinator.system_tables import SystemTables
from federated_optimizer.coordinator.validation import validate
from messaging import MessageClient, MessagingError, Will
from streamsql.algebra.row_order import in_order
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import Definition
from streamsql.catalog.system import (
    SYS_ALARMS,
    SYS_GATEWAYS,
    SYS_LINKS,
    SYS_QUERIES,
    SYS_SOURCES,
    is_system,
)
from streamsql.data.types import Row, Value
from streamsql.errors import DeploymentError, FederationError
from streamsql.library import library_views
from streamsql.syntax import parse_script
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import Command, SiteState
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.topics import Topics, check_id

log = logging.getLogger(__name__)

HOUSEKEEPING_SECONDS = 0.25
RETRY_SECONDS = 5.0

ClientFactory = Callable[[Will], MessageClient]


class Coordinator:
    """Implements `CoordinatorApi`; lives on one event loop between `start` and `close`.

    Args:
        settings: See `CoordinatorSettings`.
        client: Makes the (not yet started) message client from the will that announces our loss;
            or such a client itself, whose loss nobody then announces.
        clock: Wall-clock microseconds.
        explainer: The engine that answers questions about rows, which are refused without it, and
            foresees how recursions will be kept.

    Attributes:
        rows: Answers questions about rows; see `RowQuestions`.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        client: MessageClient | ClientFactory,
        clock: Callable[[], int],
        explainer: RowExplainer | None = None,
    ) -> None:
        self._settings = settings
        self._explainer = explainer
        self._client_or_factory = client
        self._clock = clock
        self._topics = Topics(settings.site)
        self._membership = Membership()
        self._links = LinkTable()
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._regroup_at: int | None = None
        self._planned_for: object = None
        self._owes_greeting = False
        self._taken_over = False
        self._closing = False
        self.epoch = 0

    # --- life --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the catalog, connect (in the background) and redeploy what ran before.

        Raises:
            DeploymentError: The catalog cannot be used.
        """
        self._store = await asyncio.to_thread(CatalogStore, self._settings.database)
        try:
            self.epoch = await asyncio.to_thread(self._store.claim, self._clock())
            stored = await asyncio.to_thread(self._store.queries)
            definitions = await asyncio.to_thread(self._store.definitions)
            settings = await asyncio.to_thread(self._store.settings)
            alarm_rows = await asyncio.to_thread(self._store.alarm_rows)
        except DeploymentError:
            self._store.close()
            raise
        library = library_views()
        self._catalog = Catalog(library)
        for definition in definitions:
            self._catalog.define(definition, replace=True)
        self._client = self._make_client()
        self._deployment = Deployment(self._client, self._topics, self._settings.host)
        self._planner = Planner(
            self._catalog,
            self._membership,
            bases=self._settings.bases,
            static=self._settings.static,
            host=self._settings.host,
            links=self._links,
            clock=self._clock,
            patience=self._settings.patience,
            foresee=None if self._explainer is None else self._explainer.foresee,
        )
        self._queries = Queries(
            self._settings, self._deployment, self._planner, self._membership, self._clock
        )
        self._repairs = Repairs(self._deployment, self._membership)
        self._alarms = Alarms(self._queries, self._store, self._clock)
        self._site_settings = SettingsBook(
            self._store, self._deployment, self._membership, self._settings.bases
        )
        self._site_settings.begin(settings)
        self._statements = StatementRunner(
            self._catalog,
            self._store,
            self._queries,
            self._planner,
            self._clock,
            library={view.name: view for view in library},
            publish_tables=self._publish_tables,
            sites=self.sites,
            alarms=self._alarms,
            site_settings=self._site_settings,
            refresh=lambda view: self.command(self._settings.static, "refresh", {"view": view}),
            zone=self._settings.time_zone,
        )
        reader = BaseRowReader(
            self._start_helper, self._stop_helper, self._membership, self._settings
        )
        self.rows = RowExplanations(
            self._explainer, reader, self._catalog, self._planner, self._queries
        )
        for query in stored:
            self._planner.remember(query.bundle)
            self._queries.start(
                Planned(query.bundle, ()),
                name=query.name,
                origin=query.origin,
                created=query.created,
                recovered=True,
                deploy=False,
            )
        self._reports = HostReports(
            self._client,
            self._topics,
            self._settings.host,
            self._settings.static,
            self.epoch,
        )
        self._system = SystemTables(
            self._client,
            self._topics,
            self._settings.host,
            self.epoch,
            {
                SYS_QUERIES.name: lambda: query_rows(self.queries()),
                SYS_GATEWAYS.name: lambda: site_rows(self.sites()),
                SYS_SOURCES.name: lambda: source_rows(
                    (*self._catalog.sources, *self._catalog.tables),
                    self.sites(),
                    self._settings.static,
                ),
                SYS_LINKS.name: self.links,
                SYS_ALARMS.name: lambda: rows_of_alarms(self.alarms()),
            },
        )
        self._alarms.begin(self._catalog.alarms, alarm_rows)
        self._leftovers = Leftovers(self._client, self._topics, self._deployment, self._queries)
        self._receiver = Receiver(
            self._client,
            self._topics,
            self._settings.host,
            self._clock,
            membership=self._membership,
            links=self._links,
            queries=self._queries,
            on_sites=self._sites_changed,
            on_removed=self._planner.forget,
            on_own_state=self._heard_own_state,
            on_retained_fragment=self._leftovers.found,
            on_resync=self._system.resync,
        )
        self._client.on_messages(self._receiver.on_messages)
        self._client.on_connection(self._on_connection)
        await self._client.connect(timeout=None)
        await self._client.subscribe(*self._receiver.filters())
        # What ran before is planned again once: this release may place it better.
        self._regroup_soon(self._settings.regroup)
        self._spawn(self._housekeeping())

    async def close(self) -> None:
        """Say goodbye and stop; queries keep running at the sites."""
        self._closing = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for query in self._queries.all():
            query.result.end(query.status)
        if not self._taken_over:
            with contextlib.suppress(MessagingError):
                self._deployment.state(self._state(online=False, reason="stopped"))
        await self._client.close()
        await asyncio.to_thread(self._store.close)

    # --- CoordinatorApi ----------------------------------------------------------------------

    async def execute(
        self, text: str, *, name: str = "", origin: str = "user"
    ) -> tuple[StatementResult, ...]:
        """Run a script; see `CoordinatorApi.execute`."""
        results = []
        for statement in parse_script(text):
            if isinstance(statement, Question):
                results.append(await self.rows.answer(statement))
                continue
            async with self._lock:
                self._check_in_charge()
                results.append(await self._statements.run(statement, name=name, origin=origin))
                self._look_at_plans()
        return tuple(results)

    def validate(self, text: str) -> Validation:
        """Parse and bind without running anything."""
        return validate(text, self._catalog)

    def queries(self, origin: str | None = None) -> tuple[QueryInfo, ...]:
        """Return all queries, newest last."""
        return tuple(
            self._queries.info(query)
            for query in self._queries.all()
            if origin is None or query.origin == origin
        )

    def query(self, query_id: str) -> QueryInfo:
        """Return a query by id or name."""
        return self._queries.info(self._find(query_id))

    def explain(self, query_id: str) -> StatementResult:
        """Return the fragments of a running query with live counts."""
        return explain_running(self._find(query_id))

    async def stop(self, query_id: str) -> QueryInfo:
        """Stop and forget a query."""
        async with self._lock:
            self._check_in_charge()
            query = self._find(query_id)
            result = await self._statements.stop(query)
        if result.query is None:
            raise KeyError(query_id)
        return result.query

    def relation(self, query_id: str) -> tuple[Row, ...]:
        """Return the current rows of a query's result, sorted; of a stream its latest rows."""
        query = self._find(query_id)
        rows = query.result.rows()
        return in_order(rows, query.order) if query.order else rows

    def subscribe(
        self, query_id: str, *, snapshot: bool = True, progress: bool = False
    ) -> Subscription:
        """Start reading a query's changes."""
        query = self._find(query_id)
        return self._queries.subscribe(query, snapshot=snapshot, progress=progress)

    def alarms(self) -> tuple[AlarmInfo, ...]:
        """Return all alarms with their rows."""
        return self._alarms.infos()

    def acknowledge(self, number: int) -> AlarmRow:
        """Take note that somebody has seen a raised row of an alarm."""
        self._check_in_charge()
        return self._alarms.acknowledge(number)

    def sites(self) -> tuple[SiteInfo, ...]:
        """Return gateways, base sites and the static engine, also those not heard of yet."""
        expected = dict.fromkeys(self._settings.bases, "base")
        return self._membership.infos({**expected, self._settings.static: "static"})

    def site_settings(self, site: str) -> SiteSettings:
        """Return what is set at an engine site, or what it uses."""
        return self._site_settings.of(site)

    async def change_site(self, site: str, changes: Mapping[str, Value]) -> SiteSettings:
        """Set something at an engine site while it runs."""
        async with self._lock:
            self._check_in_charge()
            return await self._site_settings.change(site, changes)

    def definitions(self) -> tuple[Definition, ...]:
        """Return all sources, tables and views."""
        return tuple(self._catalog)

    def links(self) -> tuple[tuple[str, str, float], ...]:
        """Return the links of gateways that are there, or away for no longer than the grace."""
        grace = int(self._settings.grace * 1_000_000)
        return self._links.of(self._membership.present(self._clock(), grace))

    def command(self, site: str, verb: str, arguments: dict[str, Value]) -> None:
        """Send a command to a site, e.g. simulate; nobody answers here.

        Commands are not retained: one to a site that does not listen is lost.

        Raises:
            DeploymentError: The site is not online, or not heard from since the broker was away.
        """
        if not self._membership.is_online(site):
            raise DeploymentError(f"site {site} is not online", hint="see the gateways page")
        if not self._membership.is_in_touch(site):
            raise DeploymentError(
                f"site {site} was not heard from since the broker was away",
                hint="give it a few seconds to come back, then try again",
            )
        self._deployment.command(check_id(site, "site"), verb, Command(arguments=arguments))

    @property
    def bad_payloads(self) -> int:
        """How many messages could not be decoded."""
        return self._receiver.bad_payloads

    # --- inside ------------------------------------------------------------------------------

    def _make_client(self) -> MessageClient:
        made = self._client_or_factory
        if not callable(made):
            return made
        lost = encode_json(self._state(online=False, reason="lost"))
        return made(Will(self._topics.host_state(self._settings.host), lost))

    def _state(self, *, online: bool, reason: str = "") -> SiteState:
        return SiteState(
            online=online, epoch=self.epoch, ts=self._clock(), role="coordinator", reason=reason
        )

    def _find(self, query_id: str) -> RunningQuery:
        query = self._queries.find(query_id)
        if query is None:
            raise KeyError(query_id)
        return query

    def _check_in_charge(self) -> None:
        if self._taken_over:
            raise DeploymentError(
                "another coordinator has taken over this federation",
                hint="stop one of the two, or give it a federation name of its own",
            )

    def _publish_tables(self) -> None:
        tables = [table for table in self._catalog.tables if not is_system(table)]
        stored = tuple(table for table in tables if table.refresh is None)
        zone = self._settings.time_zone
        orders = tuple(self._planner.refresh_order(v, zone) for v in self._catalog.refreshed)
        self._deployment.tables(stored, orders, self._settings.static)

    def _on_connection(self, connected: bool) -> None:
        self._membership.lost_touch(elapsed())
        self._queries.lost_touch()
        if not connected or self._taken_over:
            return
        self._owes_greeting = True
        self._queries.publish_all()
        self._system.resync_all()
        self._reports.forget()
        try:
            self._announce()
        except MessagingError as error:
            log.warning("not everything is announced to the broker yet: %s", error.message)
        self._spawn(self._leftovers.sweep())

    def _announce(self) -> None:
        """Tell the broker what it should know, as far as the message queue has room.

        Raises:
            MessagingError: It is full; the rest follows with the next call.
        """
        if self._owes_greeting:
            self._deployment.state(self._state(online=True))
            self._publish_tables()
            self._site_settings.publish()
            self._owes_greeting = False
        self._queries.publish_owed()

    def _sites_changed(self) -> None:
        self._look_at_plans()
        self._queries.refresh_all()

    def _look_at_plans(self) -> None:
        """Plan again soon if sites or definitions are others than when it was done last.

        Soon and not now: other gateways may be about to announce themselves.
        """
        if self._regroup_at is None and self._plan_inputs() != self._planned_for:
            self._regroup_soon(self._settings.regroup)

    def _plan_inputs(self) -> object:
        """Return all that plans depend on beside their text."""
        return (self._planner.topology(), tuple(self._catalog))

    def _regroup_soon(self, seconds: float) -> None:
        self._regroup_at = elapsed() + int(seconds * 1_000_000)

    def _heard_own_state(self, state: SiteState) -> None:
        if state.epoch > self.epoch:
            if not self._taken_over:
                log.error("another coordinator has taken over federation %s", self._settings.site)
                self._taken_over = True
                self._spawn(self._client.close())
        elif not state.online and not self._taken_over and not self._closing:
            # The will of a former life, or of our own link that broke and is back.
            self._deployment.state(self._state(online=True))

    async def _start_helper(self, text: str) -> RunningQuery:
        (result,) = await self.execute(text, origin="session")
        return self._find(result.query.id if result.query is not None else "")

    async def _stop_helper(self, query: RunningQuery) -> None:
        async with self._lock:
            if query.id in self._queries:
                await self._statements.stop(query)

    async def _housekeeping(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            if self._taken_over:
                continue
            for work in (self._regroup, self._stop_abandoned, self._keep_up, self._alarms.keep):
                try:
                    await work()
                except FederationError as error:
                    log.warning("housekeeping: %s", error.message)
                except Exception:
                    # Without it no result is released and no query placed anew.
                    log.exception("housekeeping met a defect; it goes on")

    async def _stop_abandoned(self) -> None:
        async with self._lock:
            for query in self._queries.abandoned():
                await self._statements.stop(query)

    async def _keep_up(self) -> None:
        self._queries.refresh_all()
        self._look_at_plans()  # a gateway may have been away for too long by now
        if self._client.connected:
            for site in self._membership.give_up(elapsed(), self._clock()):
                log.warning("site %s was not heard from since the broker was away", site)
                self._sites_changed()
            self._announce()
            self._system.look(self._queries.all(), self._clock())
            self._reports.look(self._queries.all(), elapsed())
            self._queries.request_missing()
            self._repairs.look(self._queries.all(), elapsed())

    async def _regroup(self) -> None:
        """Redeploy the queries that are planned otherwise with the sites there are now."""
        if self._regroup_at is None or elapsed() < self._regroup_at:
            return
        self._regroup_soon(RETRY_SECONDS)  # if it fails half way
        async with self._lock:
            self._planned_for = self._plan_inputs()
            for query, planned in self._queries.changed_plans():
                log.info("query %s is placed anew, version %d", query.id, planned.bundle.version)
                await self._statements.redeploy(query, planned)
        self._regroup_at = None
        self._look_at_plans()  # what has changed meanwhile

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
