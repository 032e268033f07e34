"""The coordinator as one principal may use it: every question and action is checked here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import override

from federated_optimizer.alarm_life_cycle import AlarmRow
from federated_optimizer.coordinator.checked.checked_costs import CheckedCosts
from federated_optimizer.coordinator.checked.checked_lake import CheckedLake
from federated_optimizer.coordinator.checked.checked_rooms import (
    CheckedAudit,
    CheckedGrants,
    CheckedPast,
    CheckedRows,
    CheckedSinks,
    CheckedSubscription,
    CheckedTrials,
)
from federated_optimizer.coordinator.checked.shown_sites import shown_site
from federated_optimizer.coordinator.contract.audit_model import Audit, Outcome
from federated_optimizer.coordinator.contract.coordinator_api import (
    CoordinatorApi,
    RowQuestions,
    Subscription,
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
from federated_optimizer.coordinator.contract.cost_model import CostsApi
from federated_optimizer.coordinator.contract.fleet_model import FleetApi
from federated_optimizer.coordinator.contract.grant_model import GrantsApi
from federated_optimizer.coordinator.contract.history_model import HistoryTrialsApi
from federated_optimizer.coordinator.contract.lake_model import LakeApi
from federated_optimizer.coordinator.contract.network_model import (
    MOST_NODES,
    IndexReport,
    Network,
)
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.contract.sink_model import SinkApi
from federated_optimizer.coordinator.contract.trial_model import TrialsApi
from federated_optimizer.coordinator.explaining.explaining import explained_running
from federated_optimizer.coordinator.explaining.explaining_rows import RowExplanations
from federated_optimizer.coordinator.explaining.running_explanation import explain_running
from federated_optimizer.coordinator.explaining.sharing_notes import Sharing
from federated_optimizer.coordinator.explaining.shown_network import network_for
from federated_optimizer.coordinator.grants.grant_changes import GrantChanges
from federated_optimizer.coordinator.grants.query_rights import (
    check_stop,
    may_read,
    refusal_of,
    refuse_reads,
    sees_all,
)
from federated_optimizer.coordinator.notices.table_alarm import shown_alarms
from federated_optimizer.coordinator.queries.listed_queries import infos_of
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.rights.statement_roles import NotAllowedError, check_action
from federated_optimizer.coordinator.shared_parts import SharedParts
from streamsql.catalog.definitions import Definition
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.catalog.read_gate import Read
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.catalog.system import TABLE_ALARM
from streamsql.data.types import Row, Value
from streamsql.errors import FederationError
from streamsql.syntax import ExplainFormat, parse_statement
from streamsql.wire.site_settings import SiteSettings


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a coordinator that are asked besides its interface."""

    shared: SharedParts
    queries: Queries
    rows: RowExplanations
    grants: GrantChanges


class OnBehalf(CoordinatorApi):
    """A coordinator for one principal."""

    def __init__(self, whole: CoordinatorApi, parts: Parts, principal: Principal) -> None:
        self._whole = whole
        self._parts = parts
        self._rights = parts.shared.rights
        self._principal = principal
        self.figures = whole.figures

    @override
    def on_behalf(self, principal: Principal) -> CoordinatorApi:
        return self._whole.on_behalf(principal)

    @override
    def follow_accounts(self, account_of: Callable[[str], Account | None]) -> None:
        self._whole.follow_accounts(account_of)

    @property
    @override
    def rows(self) -> RowQuestions:
        return CheckedRows(self._parts.rows, self._parts.shared.quotas, self._principal)

    @property
    @override
    def trials(self) -> TrialsApi:
        return CheckedTrials(self._whole.trials, self._principal)

    @property
    @override
    def past(self) -> HistoryTrialsApi:
        return CheckedPast(self._whole.past, self._principal)

    @property
    @override
    def lake(self) -> LakeApi:
        return CheckedLake(self._whole.lake, self._parts.shared, self._principal, self._may_read)

    @property
    @override
    def costs(self) -> CostsApi:
        return CheckedCosts(self._whole.costs, self._parts.shared.audit, self._principal)

    @property
    @override
    def sinks(self) -> SinkApi:
        audit = self._parts.shared.audit
        return CheckedSinks(self._whole.sinks, audit, self._principal, self._may_see_id)

    @property
    @override
    def audit(self) -> Audit:
        return CheckedAudit(self._parts.shared.audit, self._principal)

    @property
    @override
    def fleet(self) -> FleetApi:
        # A gateway joins without an account; the other routes are for administrators.
        return self._whole.fleet

    @property
    @override
    def grants(self) -> GrantsApi:
        return CheckedGrants(self._parts.shared, self._parts.grants, self._principal)

    @override
    async def execute(
        self,
        text: str,
        *,
        name: str = "",
        origin: Origin = Origin.USER,
        principal: Principal | None = None,
    ) -> tuple[StatementResult, ...]:
        return await self._whole.execute(
            text, name=name, origin=origin, principal=principal or self._principal
        )

    @override
    async def validate(self, text: str, *, principal: Principal | None = None) -> Validation:
        return await self._whole.validate(text, principal=principal or self._principal)

    @override
    async def shapes(
        self, names: Sequence[str], *, principal: Principal | None = None
    ) -> dict[str, Validation]:
        return await self._whole.shapes(names, principal=principal or self._principal)

    @override
    def queries(self, origin: Origin | None = None, wanted: Wanted = ALL) -> tuple[QueryInfo, ...]:
        found = self._parts.queries.all(origin, displayed=wanted.displayed)
        return infos_of(found, wanted, may_read(self._rights, self._principal))

    @override
    def query(self, query_id: str) -> QueryInfo:
        self._check_read(query_id)
        return self._whole.query(query_id)

    @override
    def keep(self, query_id: str) -> QueryInfo:
        self._check_read(query_id)
        return self._whole.keep(query_id)

    @override
    def explain(self, query_id: str) -> StatementResult:
        query, queries = self._check_read(query_id), self._parts.queries
        sharing = Sharing(queries.runs, self._rights, self._principal)
        return explain_running(query, queries.planner, sharing)

    @override
    async def explained(
        self, query_id: str, form: ExplainFormat = ExplainFormat.TEXT
    ) -> StatementResult:
        query, parts = self._check_read(query_id), self._parts
        shared, queries = parts.shared, parts.queries
        sharing = Sharing(queries.runs, self._rights, self._principal)
        statement, catalog = parse_statement(query.text), shared.catalog_of(self._principal)
        async with shared.quotas.planning(self._principal):
            return await shared.beside.run(
                lambda: explained_running(
                    query, statement, catalog, queries.planner, sharing, form
                ),
                "explaining the plan",
            )

    @override
    async def stop(self, query_id: str) -> QueryInfo:
        query = self._find(query_id)
        try:
            check_action("stop queries", self._principal)
            check_stop(self._rights, self._principal, query)
        except FederationError as error:
            self._note("stop query", query.name, Outcome.REFUSED, error.message)
            raise
        stopped = await self._whole.stop(query_id)
        if query.origin != Origin.SESSION:
            self._note("stop query", query.name, Outcome.DONE)
        return stopped

    @override
    def relation(self, query_id: str) -> tuple[Row, ...]:
        self._check_read(query_id)
        return self._whole.relation(query_id)

    @override
    def subscribe(
        self, query_id: str, *, snapshot: bool = True, progress: bool = False
    ) -> Subscription:
        query = self._check_read(query_id)
        reader = self._whole.subscribe(query_id, snapshot=snapshot, progress=progress)
        return CheckedSubscription(
            reader, lambda: refuse_reads(self._rights, self._principal, query)
        )

    @override
    def network(self, most: int = MOST_NODES) -> Network:
        return network_for(self._parts.queries, self._rights, self._principal, most)

    @override
    def query_changes(self) -> int:
        return self._whole.query_changes()

    @override
    async def check_network(self, *, rebuild: bool = False) -> IndexReport:
        self._check("check the network", "")
        if not sees_all(self._principal):
            raise NotAllowedError(
                f"API token {self._principal.token} may not check the network: it is limited to "
                "some sources",
                hint="use a token without a limit",
            )
        found = await self._whole.check_network(rebuild=rebuild)
        if rebuild:
            words = f"{len(found.differences)} differences"
            self._note("rebuild the computation index", "", Outcome.DONE, words)
        return found

    @override
    def sites(self) -> tuple[SiteInfo, ...]:
        check_action("look at sites", self._principal)
        sites = self._whole.sites()
        if self._principal.role.may_act_as(Role.OPERATOR) and self._principal.sources is None:
            return sites
        return tuple(shown_site(site, self._may_read) for site in sites)

    @override
    def site_settings(self, site: str) -> SiteSettings:
        check_action("look at sites", self._principal)
        return self._whole.site_settings(site)

    @override
    async def change_site(self, site: str, changes: Mapping[str, Value]) -> SiteSettings:
        self._check("change sites", site)
        settings = await self._whole.change_site(site, changes)
        self._note("change site", site, Outcome.DONE, ", ".join(changes))
        return settings

    @override
    async def remove_gateway(self, site: str) -> None:
        self._check("remove gateways", site)
        await self._whole.remove_gateway(site)
        self._note("remove gateway", site, Outcome.DONE)

    @override
    def definitions(self) -> tuple[Definition, ...]:
        return tuple(
            found
            for found in self._parts.shared.catalog_of(self._principal)
            if not isinstance(found, AlarmDefinition | SinkDefinition)
            or self._may_see(found.query_name)
        )

    @override
    def alarms(self) -> tuple[AlarmInfo, ...]:
        infos, gate = self._whole.alarms(), self._rights.gate(self._principal)
        return shown_alarms(infos, set(filter(self._may_see_id, (i.query for i in infos))), gate)

    @override
    def acknowledge(self, number: int) -> AlarmRow:
        shown = {row.id for info in self.alarms() for row in info.rows}
        if number not in shown:
            raise KeyError(number)
        self._check("acknowledge alarms", str(number))
        return self._whole.acknowledge(number)

    @override
    def acknowledge_all(self, alarm: str) -> int:
        if alarm not in {info.definition.name for info in self.alarms()}:
            raise KeyError(alarm)
        self._check("acknowledge alarms", alarm)
        if alarm != TABLE_ALARM.name:
            return self._whole.acknowledge_all(alarm)
        rows = [row for info in self.alarms() if info.definition.name == alarm for row in info.rows]
        seen = [row for row in rows if row.needs_acknowledgement]
        for row in seen:  # those of tables that may be read
            self._whole.acknowledge(row.id)
        return len(seen)

    @override
    def links(self) -> tuple[tuple[str, str, float | None, str, str], ...]:
        links = self._whole.links()
        sources = {link[3] for link in links}
        hidden = {source for source in sources if not self._may_read(source)}
        return tuple(link for link in links if link[3] not in hidden) if hidden else links

    @override
    def command(self, site: str, verb: str, arguments: dict[str, Value]) -> None:
        self._check("command sites", site)
        self._whole.command(site, verb, arguments)
        self._note(f"command {verb}", site, Outcome.DONE)

    @override
    async def answer_of(
        self, site: str, verb: str, arguments: dict[str, Value]
    ) -> dict[str, Value]:
        self._check("command sites", site)
        answer = await self._whole.answer_of(site, verb, arguments)
        self._note(f"command {verb}", site, Outcome.DONE)
        return answer

    def _may_read(self, source: str) -> bool:
        return self._rights.refusal(self._principal, Read(source.lower())) is None

    def _find(self, query_id: str) -> RunningQuery:
        self._whole.query(query_id)  # says why there is none
        found = self._parts.queries.find(query_id)
        if found is None:
            raise KeyError(query_id)
        return found

    def _check_read(self, query_id: str) -> RunningQuery:
        check_action("read results", self._principal)
        query = self._find(query_id)
        refuse_reads(self._rights, self._principal, query)
        return query

    def _may_see(self, name: str) -> bool:
        """Return whether a query is there, by its id or name, and its answer may be read."""
        return self._is_seen(self._parts.queries.find(name))

    def _may_see_id(self, query_id: str) -> bool:
        """Return the same by its id alone: somebody's query may be called like it."""
        return self._is_seen(self._parts.queries.known(query_id))

    def _is_seen(self, query: RunningQuery | None) -> bool:
        return query is not None and refusal_of(self._rights, self._principal, query) is None

    def _check(self, action: str, target: str) -> None:
        try:
            check_action(action, self._principal)
        except FederationError as error:
            self._note(action, target, Outcome.REFUSED, error.message)
            raise

    def _note(self, action: str, target: str, outcome: Outcome, detail: str = "") -> None:
        self._parts.shared.audit.note(self._principal, action, target, outcome, detail)
