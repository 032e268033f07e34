"""The coordinator: catalog, queries and sites of one federation, behind `CoordinatorApi`.

One coordinator serves a federation: the newest. Starting one claims a new epoch in the catalog and
announces it on the broker; an older one that still runs sees the newer epoch, stops deploying and
refuses changes from then on (its own writes to a shared catalog fail, too).
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

from typing_extensions import override

from federated_optimizer.alarm_life_cycle import AlarmRow
from federated_optimizer.coordinator.adaptation.adaptation import Adaptation
from federated_optimizer.coordinator.checked.on_behalf import OnBehalf, Parts
from federated_optimizer.coordinator.contract.coordinator_api import (
    CoordinatorApi,
    Subscription,
    UnknownQueryError,
)
from federated_optimizer.coordinator.contract.coordinator_model import (
    ALL,
    AlarmInfo,
    Origin,
    QueryInfo,
    SiteInfo,
    StatementResult,
    Validation,
    Wanted,
)
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal
from federated_optimizer.coordinator.explaining.explaining_rows import RowExplanations
from federated_optimizer.coordinator.explaining.known_base_rows import BaseRowReader
from federated_optimizer.coordinator.explaining.row_explainer import RowExplainer
from federated_optimizer.coordinator.facts.heard_facts import HeardFacts
from federated_optimizer.coordinator.facts.kept_facts import KeptFacts
from federated_optimizer.coordinator.fleet.fleet import Fleet
from federated_optimizer.coordinator.fleet.gateway_dialogue import GatewayDialogue
from federated_optimizer.coordinator.grants.grant_changes import GrantChanges
from federated_optimizer.coordinator.notices.alarm_queries import Alarms
from federated_optimizer.coordinator.opened_rooms import OpenedRooms
from federated_optimizer.coordinator.planning_processes import Beside, OnTheLoop
from federated_optimizer.coordinator.queries.background_work import Background, keep_house
from federated_optimizer.coordinator.queries.leftovers import Leftovers
from federated_optimizer.coordinator.queries.listed_queries import infos_of
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.recovered_queries import recover_all
from federated_optimizer.coordinator.queries.repairs import Repairs
from federated_optimizer.coordinator.queries.replanning import Replanning
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import (
    ClientFactory,
    SharedParts,
    open_shared_parts,
)
from federated_optimizer.coordinator.sinks.sinks import Sinks
from federated_optimizer.coordinator.statement_turns import StatementTurns
from federated_optimizer.coordinator.statements.statement_execution import StatementRunner
from federated_optimizer.coordinator.store.catalog_store import Stored
from federated_optimizer.coordinator.system.announcing import Announcer
from federated_optimizer.coordinator.system.coordinator_figures import CoordinatorFigures
from federated_optimizer.coordinator.system.host_reports import HostReports
from federated_optimizer.coordinator.system.message_receiver import Receiver
from federated_optimizer.coordinator.system.site_settings_changes import SettingsBook
from federated_optimizer.coordinator.system.source_publisher import SourcePublisher
from federated_optimizer.coordinator.system.system_tables import SystemTables, rows_of_tables
from federated_optimizer.coordinator.system.upkeep import Upkeep
from federated_optimizer.coordinator.tables.lake_requests import LakeRequests
from federated_optimizer.coordinator.tables.table_change_requests import TableChanges
from federated_optimizer.coordinator.trials.history_runner import HistoryRunner
from federated_optimizer.coordinator.trials.history_trials import HistoryTrials
from federated_optimizer.coordinator.trials.source_trials import trials_of
from host.clocks import Clock, monotonic_clock
from host.mqtt import MessagingError
from streamsql.algebra.operators.orders import in_order
from streamsql.catalog.definitions import Definition
from streamsql.data.types import Row, Value
from streamsql.syntax.explain_options import ExplainFormat as Form
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import SiteState
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.topics import check_id


async def open_coordinator(  # noqa: PLR0913, PLR0917 - each is one seam
    settings: CoordinatorSettings,
    client: ClientFactory,
    clock: Clock,
    explainer: RowExplainer | None = None,
    beside: Beside | None = None,
    history: HistoryRunner | None = None,
) -> "Coordinator":
    """Open the catalog, connect (in the background) and redeploy what ran before.

    Args:
        settings: See `CoordinatorSettings`.
        client: Makes the (not yet connected) message client from the will that announces our loss.
        clock: Wall-clock microseconds.
        explainer: The engine that answers questions about rows, which are refused without it, and
            foresees how recursions will be kept.
        beside: Where statements are bound and planned, and expressions of users evaluated; without
            it on the loop.
        history: Runs queries on the past; without it they are refused.

    Raises:
        DeploymentError: The catalog cannot be used.
    """
    shared, found = await open_shared_parts(settings, client, clock, beside or OnTheLoop())
    coordinator = Coordinator(shared, found, explainer, history)
    await coordinator.connect()
    return coordinator


class Coordinator(OpenedRooms):
    """The coordinator of one event loop, from `open_coordinator` to `close`."""

    def __init__(
        self,
        shared: SharedParts,
        found: Stored,
        explainer: RowExplainer | None,
        history: HistoryRunner | None,
    ) -> None:
        self._shared = shared
        self._background = Background()
        foresee = None if explainer is None else explainer.foresee
        self._heard = HeardFacts(shared.facts, shared.catalog)
        self._facts = KeptFacts(shared.store, shared.facts)
        self._planner = Planner(shared, self._heard, foresee, history)
        self._queries = Queries(shared, self._planner)
        self._repairs = Repairs(shared.deployment, shared.membership)
        self._alarms = Alarms(shared, self._queries)
        self._sinks = Sinks(shared, self._queries, found.sinks)
        self._site_settings = SettingsBook(shared, found.settings)
        self._declared = SourcePublisher(shared)
        self._announcer = Announcer(
            shared, self._planner, self._queries, self._site_settings, self._declared
        )
        self._grants = GrantChanges(shared, self._queries, self._announcer.tables)
        self._statements = self._make_statements()
        starting = self._statements.queries
        self._replanning = Replanning(shared, self._planner, self._queries, starting.redeploy)
        reader = BaseRowReader(shared, starting.start_reading, starting.stop_reading)
        self._rows = RowExplanations(shared, explainer, reader, self._planner, self._queries)
        self._past = HistoryTrials(shared, self._planner, self._queries, reader, history)
        self._reports = HostReports(shared)
        self._upkeep = Upkeep(
            *(shared, self._queries, self._replanning, self._announcer),
            *(self._reports, self._repairs, self._heard),
        )
        self._adaptation = Adaptation(shared, self._planner, self._queries)
        tables = rows_of_tables(self, shared, self._queries)
        self._system = SystemTables(shared, tables, self._queries.fail)
        self._changes = TableChanges(shared, self._planner.topology)
        self._lake = LakeRequests(shared)
        self._dialogue = GatewayDialogue(shared)
        self._turns = StatementTurns(
            *(shared, self._queries, self._statements, self._replanning),
            *(self._rows, self._changes, self._past),
        )
        self._trials = trials_of(shared, self.sites)
        self._fleet = Fleet(shared, found.enrolments)
        self._leftovers = Leftovers(shared, self._queries)
        self._receiver = self._make_receiver()
        self.figures = CoordinatorFigures(shared, self._receiver)
        recover_all(self._queries, found.queries, found.nodes)
        self._alarms.begin(shared.catalog.alarms, found.alarm_rows)

    def _make_statements(self) -> StatementRunner:
        shared = self._shared
        return StatementRunner(
            shared,
            self._planner,
            self._queries,
            alarms=self._alarms,
            sinks=self._sinks,
            site_settings=self._site_settings,
            declared=self._declared,
            publish_tables=self._announcer.tables,
            sites=self.sites,
            grants=self._grants,
            refresh=lambda kind, name: self.command(
                shared.settings.static, "refresh", {kind: name}
            ),
        )

    def _make_receiver(self) -> Receiver:
        return Receiver(
            *(self._shared, self._queries, self._changes, self._lake, self._trials, self._heard),
            on_sites=self._upkeep.sites_changed,
            on_removed=self._planner.sites.forget,
            on_own_state=self._heard_own_state,
            on_retained_fragment=self._leftovers.found,
            on_retained_source=self._declared.found,
            on_resync=self._system.resync,
            on_counts=self._adaptation.counts_came,
        )

    async def connect(self) -> None:
        """Connect to the broker in the background, and plan what ran before again."""
        client = self._shared.client
        client.on_messages(self._receiver.on_messages)
        client.on_connection(self._on_connection)
        await client.connect(timeout=None)
        await client.subscribe(*self._receiver.filters())
        await self._sinks.begin(self._shared.catalog.sinks)
        self._background.spawn(self._shared.broker.follow(client))
        self._replanning.soon()  # this release may place it better
        chores = (self._replanning.work, self._upkeep.look, self._alarms.keep)
        kept = (self._shared.audit.keep, self._grants.keep, self._facts.keep)
        runs = (self._statements.queries.keep, self._adaptation.work, self._shared.decisions.keep)
        alone = ((self._sinks.keep,), (self._show_tables,), (self._adaptation.look,))
        for jobs in (chores, kept, runs, *alone):
            self._background.spawn(keep_house(jobs, lambda: self._shared.presence.taken_over))

    async def close(self) -> None:
        """Say goodbye and stop; queries keep running at the sites."""
        self._shared.presence.closing = True
        await self._background.stop()
        await self._past.end()
        await self._sinks.end(in_charge=not self._shared.presence.taken_over)
        for query in self._queries.all():
            query.result.end(query.status)
        if not self._shared.presence.taken_over:
            await self._alarms.end()
            await self._shared.audit.end()
            await self._facts.end()
            await self._shared.decisions.end()
            with contextlib.suppress(MessagingError):
                left = self._shared.presence.state(online=False, reason="stopped")
                self._shared.deployment.state(left)
        await self._shared.client.close()
        await asyncio.to_thread(self._shared.store.close)

    # --- CoordinatorApi ----------------------------------------------------------------------

    @override
    def on_behalf(self, principal: Principal) -> CoordinatorApi:
        shared = self._shared
        return OnBehalf(self, Parts(shared, self._queries, self._rows, self._grants), principal)

    @override
    def follow_accounts(self, account_of: Callable[[str], Account | None]) -> None:
        self._grants.follow(account_of)

    @override
    async def execute(
        self,
        text: str,
        *,
        name: str = "",
        origin: Origin = Origin.USER,
        principal: Principal | None = None,
    ) -> tuple[StatementResult, ...]:
        return await self._turns.script(text, name, origin, principal or LOCAL)

    @override
    async def validate(self, text: str, *, principal: Principal | None = None) -> Validation:
        return await self._turns.validate(text, principal or LOCAL)

    @override
    async def shapes(
        self, names: Sequence[str], *, principal: Principal | None = None
    ) -> dict[str, Validation]:
        return await self._turns.shapes(names, principal or LOCAL)

    @override
    def queries(self, origin: Origin | None = None, wanted: Wanted = ALL) -> tuple[QueryInfo, ...]:
        return infos_of(self._queries.all(origin, displayed=wanted.displayed), wanted)

    @override
    def query_changes(self) -> int:
        return self._queries.runs.changes

    @override
    def query(self, query_id: str) -> QueryInfo:
        return self._find(query_id).info()

    @override
    def keep(self, query_id: str) -> QueryInfo:
        self._queries.unread.keep(self._find(query_id))
        return self.query(query_id)

    @override
    def explain(self, query_id: str) -> StatementResult:
        return self.on_behalf(LOCAL).explain(query_id)

    @override
    async def explained(self, query_id: str, form: Form = Form.TEXT) -> StatementResult:
        return await self.on_behalf(LOCAL).explained(query_id, form)

    @override
    async def stop(self, query_id: str) -> QueryInfo:
        async with self._shared.changing():
            query = self._find(query_id)
            result = await self._statements.queries.stop(query)
        if result.query is None:
            raise KeyError(query_id)
        return result.query

    @override
    def relation(self, query_id: str) -> tuple[Row, ...]:
        query = self._find(query_id)
        rows = query.result.rows()
        return in_order(rows, query.order) if query.order else rows

    @override
    def subscribe(
        self, query_id: str, *, snapshot: bool = True, progress: bool = False
    ) -> Subscription:
        query = self._find(query_id)
        return self._queries.subscribe(query, snapshot=snapshot, progress=progress)

    @override
    def alarms(self) -> tuple[AlarmInfo, ...]:
        return self._alarms.infos()

    @override
    def acknowledge(self, number: int) -> AlarmRow:
        self._shared.presence.check_in_charge()
        return self._alarms.acknowledge(number)

    @override
    def acknowledge_all(self, alarm: str) -> int:
        self._shared.presence.check_in_charge()
        return self._alarms.acknowledge_all(alarm)

    @override
    def sites(self) -> tuple[SiteInfo, ...]:
        return self._shared.membership.infos(
            self._shared.expected_sites, self._queries.differing, self._queries.awaited.late()
        )

    @override
    def site_settings(self, site: str) -> SiteSettings:
        return self._site_settings.of(site)

    @override
    async def change_site(self, site: str, changes: Mapping[str, Value]) -> SiteSettings:
        async with self._shared.changing():
            return await self._site_settings.change(site, changes)

    @override
    async def remove_gateway(self, site: str) -> None:
        async with self._shared.changing():
            self._shared.membership.check_removable(site)
            self._shared.deployment.remove_gateway(site, self._shared.links.owned_by(site))

    @override
    def definitions(self) -> tuple[Definition, ...]:
        return tuple(self._shared.catalog)

    @override
    def links(self) -> tuple[tuple[str, str, float | None, str, str], ...]:
        grace = int(self._shared.settings.grace * 1_000_000)
        return self._shared.links.of(self._shared.membership.present(self._shared.clock(), grace))

    @override
    def command(self, site: str, verb: str, arguments: dict[str, Value]) -> None:
        self._shared.membership.check_reachable(site)
        self._shared.deployment.command(check_id(site, "site"), verb, Command(arguments=arguments))

    @override
    async def answer_of(
        self, site: str, verb: str, arguments: dict[str, Value]
    ) -> dict[str, Value]:
        return await self._dialogue.answer(check_id(site, "site"), verb, arguments, "retry")

    # --- inside ------------------------------------------------------------------------------

    def _find(self, query_id: str) -> RunningQuery:
        query = self._queries.find(query_id)
        if query is None:
            raise UnknownQueryError(query_id, self._queries.unread.why_ended(query_id))
        return query

    def _on_connection(self, connected: bool) -> None:
        self._shared.membership.lost_touch(monotonic_clock(), self._queries.runs.sites())
        self._queries.lost_touch()
        if not connected or self._shared.presence.taken_over:
            return
        self._queries.owed.owe_all()
        self._system.resync_all()
        self._reports.forget()
        self._announcer.connected()
        self._background.spawn(self._leftovers.sweep())

    def _heard_own_state(self, state: SiteState) -> None:
        if self._shared.presence.is_replaced_by(state):
            self._background.spawn(self._shared.client.close())
        elif self._shared.presence.is_contradicted_by(state):
            self._announcer.say_online()

    async def _show_tables(self) -> None:
        if self._shared.client.connected:
            await self._system.look(self._queries.runs, self._shared.clock())
