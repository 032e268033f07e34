"""The coordinator: catalog, queries and sites of one federation, behind `CoordinatorApi`.

One coordinator serves a federation: the newest. Starting one claims a new epoch in the catalog and
announces it on the broker; an older one that still runs sees the newer epoch, stops deploying and
refuses changes from then on (its own writes to a shared catalog fail, too).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence

from federated_optimizer.alarm_book import AlarmRow
from federated_optimizer.coordinator.contract.coordinator_api import Subscription, UnknownQueryError
from federated_optimizer.coordinator.contract.coordinator_model import (
    AlarmInfo,
    QueryInfo,
    SiteInfo,
    StatementResult,
    Validation,
)
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.explaining.explaining import explain_running
from federated_optimizer.coordinator.explaining.explaining_rows import Question, RowExplanations
from federated_optimizer.coordinator.explaining.explanations import RowExplainer
from federated_optimizer.coordinator.explaining.known_base_rows import BaseRowReader
from federated_optimizer.coordinator.notices.alarm_states import Alarms
from federated_optimizer.coordinator.queries.background_work import Background, keep_house
from federated_optimizer.coordinator.queries.deployment import Deployment
from federated_optimizer.coordinator.queries.leftovers import Leftovers
from federated_optimizer.coordinator.queries.planner import Planner
from federated_optimizer.coordinator.queries.planning_processes import Beside, OnTheLoop
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.repairs import Repairs
from federated_optimizer.coordinator.queries.replanning import Replanning
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.sites.membership import Membership
from federated_optimizer.coordinator.sites.published_links import LinkTable
from federated_optimizer.coordinator.sites.site_presence import Presence
from federated_optimizer.coordinator.statements.scripts import carry_out
from federated_optimizer.coordinator.statements.statement_execution import (
    Prepared,
    PreparedDefinition,
    StatementRunner,
)
from federated_optimizer.coordinator.statements.statement_validation import select_all, validate
from federated_optimizer.coordinator.store.catalog_store import open_catalog
from federated_optimizer.coordinator.system.announcing import Announcer
from federated_optimizer.coordinator.system.gateway_removal import remove_gateway
from federated_optimizer.coordinator.system.host_reports import HostReports
from federated_optimizer.coordinator.system.message_receiver import Receiver
from federated_optimizer.coordinator.system.site_settings_changes import SettingsBook
from federated_optimizer.coordinator.system.system_rows import rows_of_tables
from federated_optimizer.coordinator.system.system_tables import SystemTables
from federated_optimizer.coordinator.tables.table_change_requests import Changing, TableChanges
from host.clocks import Clock, monotonic_clock
from host.mqtt import MessageClient, MessagingError, Will
from streamsql.algebra.row_order import in_order
from streamsql.catalog.definitions import Definition
from streamsql.data.types import Row, Value
from streamsql.syntax.statements import Describe, Explain, Show, Statement
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import SiteState
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.topics import Topics, check_id

_TRIES = 3
"""Times that a statement is planned while others may run, before they have to wait for it."""

log = logging.getLogger(__name__)

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
        beside: Where statements are bound and planned, and expressions of users evaluated; without
            it on the loop.

    Attributes:
        rows: Answers questions about rows; see `RowQuestions`.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        client: MessageClient | ClientFactory,
        clock: Clock,
        explainer: RowExplainer | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._settings = settings
        self._beside = beside or OnTheLoop()
        self._explainer = explainer
        self._client_or_factory = client
        self._clock = clock
        self._topics = Topics(settings.site)
        self._membership = Membership()
        self._links = LinkTable()
        self._lock = asyncio.Lock()
        self._background = Background()
        self._presence = Presence(settings, clock)

    @property
    def epoch(self) -> int:
        """Of this life; greater than any before."""
        return self._presence.epoch

    # --- life --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the catalog, connect (in the background) and redeploy what ran before.

        Raises:
            DeploymentError: The catalog cannot be used.
        """
        self._store, found = await asyncio.to_thread(
            open_catalog, self._settings.database, self._clock()
        )
        self._presence.epoch = found.epoch
        self._catalog = found.catalog()
        made = self._client_or_factory
        self._client = made(self._presence.will()) if callable(made) else made
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
        self._alarms = Alarms(self._queries, self._membership, self._store, self._clock)
        self._site_settings = SettingsBook(
            self._store, self._deployment, self._membership, self._settings.bases
        )
        self._site_settings.begin(found.settings)
        self._announcer = Announcer(
            self._settings,
            self._presence,
            self._deployment,
            self._planner,
            self._queries,
            self._site_settings,
        )
        self._statements = StatementRunner(
            self._catalog,
            self._store,
            self._queries,
            self._planner,
            self._clock,
            publish_tables=self._announcer.tables,
            sites=self.sites,
            alarms=self._alarms,
            site_settings=self._site_settings,
            refresh=lambda view: self.command(self._settings.static, "refresh", {"view": view}),
            zone=self._settings.time_zone,
            folders=self._settings.folders,
            beside=self._beside,
        )
        self._replanning = Replanning(
            self._planner,
            self._catalog,
            self._queries,
            redeploy=self._statements.redeploy,
            lock=self._lock,
            seconds=self._settings.regroup,
            beside=self._beside,
        )
        reader = BaseRowReader(
            self._start_helper, self._stop_helper, self._membership, self._settings
        )
        self.rows = RowExplanations(
            self._explainer,
            reader,
            self._catalog,
            self._planner,
            self._queries,
            self._membership,
            self._beside,
        )
        for query in found.queries:
            self._planner.remember(query.bundle)
            self._queries.recover(query)
        host, static = self._settings.host, self._settings.static
        self._reports = HostReports(self._client, self._topics, host, static, self.epoch)
        rows = rows_of_tables(self, self._catalog, static)
        self._system = SystemTables(
            self._client,
            self._topics,
            host,
            self.epoch,
            rows,
            beside=self._beside,
            fail=self._queries.fail,
        )
        self._alarms.begin(self._catalog.alarms, found.alarm_rows)
        self._changes = TableChanges(self._catalog, self._deployment, self._membership, static)
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
            changes=self._changes,
        )
        self._client.on_messages(self._receiver.on_messages)
        self._client.on_connection(self._on_connection)
        await self._client.connect(timeout=None)
        await self._client.subscribe(*self._receiver.filters())
        # What ran before is planned again once: this release may place it better.
        self._replanning.soon()
        chores = (self._replanning.work, self._stop_abandoned, self._keep_up, self._alarms.keep)
        for jobs in (chores, (self._show_tables,)):
            self._background.spawn(keep_house(jobs, lambda: self._presence.taken_over))

    async def close(self) -> None:
        """Say goodbye and stop; queries keep running at the sites."""
        self._presence.closing = True
        await self._background.stop()
        for query in self._queries.all():
            query.result.end(query.status)
        if not self._presence.taken_over:
            await self._alarms.end()
            with contextlib.suppress(MessagingError):
                self._deployment.state(self._presence.state(online=False, reason="stopped"))
        await self._client.close()
        await asyncio.to_thread(self._store.close)

    # --- CoordinatorApi ----------------------------------------------------------------------

    async def execute(
        self, text: str, *, name: str = "", origin: str = "user"
    ) -> tuple[StatementResult, ...]:
        """Run a script; see `CoordinatorApi.execute`."""
        return await carry_out(
            text, lambda statement: self._run(statement, name, origin), self._beside
        )

    async def _run(self, statement: Statement, name: str, origin: str) -> StatementResult:
        if isinstance(statement, Question):
            return await self.rows.answer(statement)
        if isinstance(statement, Changing):
            self._presence.check_in_charge()
            return await self._changes.run(statement)
        self._presence.check_in_charge()
        if isinstance(statement, Explain | Show | Describe):
            return await self._statements.run(statement, name=name, origin=origin)
        for _ in range(_TRIES):
            prepared = await self._statements.prepared(statement)
            async with self._lock:
                if prepared is None or self._statements.is_current(prepared):
                    return await self._run_in_turn(statement, name, origin, prepared)
        # Definitions change all the time: others wait until this one is planned.
        async with self._lock:
            return await self._run_in_turn(statement, name, origin, None)

    async def _run_in_turn(
        self,
        statement: Statement,
        name: str,
        origin: str,
        prepared: Prepared | PreparedDefinition | None,
    ) -> StatementResult:
        self._presence.check_in_charge()
        result = await self._statements.run(statement, name=name, origin=origin, prepared=prepared)
        self._queries.compare(self._catalog, changed=True)
        self._replanning.look()
        return result

    async def validate(self, text: str) -> Validation:
        """Parse and bind without running anything."""
        return await self._beside.run(lambda: validate(text, self._catalog), "checking the text")

    async def shapes(self, names: Sequence[str]) -> dict[str, Validation]:
        """Return the columns of what may be read, where it binds."""

        def work() -> dict[str, Validation]:
            return {name: validate(select_all(name), self._catalog) for name in names}

        return await self._beside.run(work, "looking at the columns")

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

    def keep(self, query_id: str) -> QueryInfo:
        """Return a query that somebody is about to read; a session query waits for them anew."""
        query = self._find(query_id)
        self._queries.unread.keep(query)
        return self._queries.info(query)

    def explain(self, query_id: str) -> StatementResult:
        """Return the fragments of a running query with live counts."""
        return explain_running(self._find(query_id))

    async def stop(self, query_id: str) -> QueryInfo:
        """Stop and forget a query."""
        async with self._lock:
            self._presence.check_in_charge()
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
        self._presence.check_in_charge()
        return self._alarms.acknowledge(number)

    def acknowledge_all(self, alarm: str) -> int:
        """Note that somebody has seen all rows of an alarm."""
        self._presence.check_in_charge()
        return self._alarms.acknowledge_all(alarm)

    def sites(self) -> tuple[SiteInfo, ...]:
        """Return gateways, base sites and the static engine, also those not heard of yet."""
        expected = {**dict.fromkeys(self._settings.bases, "base"), self._settings.static: "static"}
        return self._membership.infos(expected, self._queries.differing)

    def site_settings(self, site: str) -> SiteSettings:
        """Return what is set at an engine site, or what it uses."""
        return self._site_settings.of(site)

    async def change_site(self, site: str, changes: Mapping[str, Value]) -> SiteSettings:
        """Set something at an engine site while it runs."""
        async with self._lock:
            self._presence.check_in_charge()
            return await self._site_settings.change(site, changes)

    async def remove_gateway(self, site: str) -> None:
        """Remove a gateway that will not come back."""
        async with self._lock:
            self._presence.check_in_charge()
            remove_gateway(site, self._membership, self._links, self._deployment)

    def definitions(self) -> tuple[Definition, ...]:
        """Return all sources, tables and views."""
        return tuple(self._catalog)

    def links(self) -> tuple[tuple[str, str, float | None], ...]:
        """Return the links of gateways that are there, or away for no longer than the grace."""
        grace = int(self._settings.grace * 1_000_000)
        return self._links.of(self._membership.present(self._clock(), grace))

    def command(self, site: str, verb: str, arguments: dict[str, Value]) -> None:
        """Send a command to a site; nobody answers, and one that does not listen never gets it.

        Raises:
            DeploymentError: The site is not online, or silent since the broker was offline.
        """
        self._membership.check_reachable(site)
        self._deployment.command(check_id(site, "site"), verb, Command(arguments=arguments))

    @property
    def bad_payloads(self) -> int:
        """How many messages could not be decoded."""
        return self._receiver.bad_payloads

    # --- inside ------------------------------------------------------------------------------

    def _find(self, query_id: str) -> RunningQuery:
        query = self._queries.find(query_id)
        if query is None:
            raise UnknownQueryError(query_id, self._queries.unread.why_ended(query_id))
        return query

    def _on_connection(self, connected: bool) -> None:
        self._membership.lost_touch(monotonic_clock())
        self._queries.lost_touch()
        if not connected or self._presence.taken_over:
            return
        self._queries.publish_all()
        self._system.resync_all()
        self._reports.forget()
        self._announcer.connected()
        self._background.spawn(self._leftovers.sweep())

    def _sites_changed(self) -> None:
        self._replanning.look()
        self._queries.compare(self._catalog)
        self._queries.refresh_all()

    def _heard_own_state(self, state: SiteState) -> None:
        if self._presence.is_replaced_by(state):
            self._background.spawn(self._client.close())
        elif self._presence.is_contradicted_by(state):
            self._announcer.say_online()

    async def _start_helper(self, text: str) -> RunningQuery:
        async with self._lock:
            self._presence.check_in_charge()
            running = await self._statements.start_reading(text)
            self._replanning.look()
        return running

    async def _stop_helper(self, query: RunningQuery) -> None:
        async with self._lock:
            if query.id in self._queries:
                await self._statements.stop(query)

    async def _stop_abandoned(self) -> None:
        async with self._lock:
            for query in self._queries.unread.abandoned(self._queries.all()):
                await self._statements.stop(query)

    async def _show_tables(self) -> None:
        if self._client.connected:
            await self._system.look(self._queries.all(), self._clock())

    async def _keep_up(self) -> None:
        self._queries.refresh_all()
        self._replanning.look()  # a gateway may have been away for too long by now
        if self._client.connected:
            for site in self._membership.give_up(monotonic_clock(), self._clock()):
                log.warning("site %s has not reported since the broker was offline", site)
                self._queries.site_left(site)
                self._sites_changed()
            self._announcer.go_on()
            self._reports.look(self._queries.all(), monotonic_clock())
            self._queries.request_missing()
            self._repairs.look(self._queries.all(), monotonic_clock())
