"""Execute scripts, one statement after another: definitions, queries, EXPLAIN, SHOW, DESCRIBE."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache

from federated_optimizer.coordinator.contract.coordinator_model import (
    ACTING,
    Origin,
    ResultKind,
    SiteInfo,
    StatementResult,
)
from federated_optimizer.coordinator.contract.network_model import Network
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal
from federated_optimizer.coordinator.contract.refresh_text import refreshes_of
from federated_optimizer.coordinator.explaining.explaining import explained
from federated_optimizer.coordinator.explaining.sharing_notes import Sharing
from federated_optimizer.coordinator.explaining.shown_network import network_for
from federated_optimizer.coordinator.grants.grant_changes import GrantChanges
from federated_optimizer.coordinator.grants.query_rights import check_made, may_read
from federated_optimizer.coordinator.notices.alarm_queries import Alarms
from federated_optimizer.coordinator.notices.table_alarm import shown_alarms
from federated_optimizer.coordinator.planning_processes import Beside
from federated_optimizer.coordinator.queries.listed_queries import infos_of
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sinks.sinks import Sinks
from federated_optimizer.coordinator.statements.definition_statements import DefinitionStatements
from federated_optimizer.coordinator.statements.listings import (
    SHOWS_QUERIES,
    describe_definition,
    show,
)
from federated_optimizer.coordinator.statements.preparation import (
    Preparation,
    Prepared,
    PreparedDefinition,
)
from federated_optimizer.coordinator.statements.query_statements import QueryStatements
from federated_optimizer.coordinator.system.site_settings_changes import SettingsBook, alter_site
from federated_optimizer.coordinator.system.source_publisher import SourcePublisher
from streamsql.binder import Creating, altered_source, refreshed
from streamsql.catalog.catalog import Catalog
from streamsql.errors import BindingError, FederationError, UnsupportedError
from streamsql.script_progress import newest, undo_hint
from streamsql.syntax import (
    AdvanceTime,
    AlterSite,
    AlterSource,
    AlterUser,
    CreateAlarm,
    CreateSink,
    Describe,
    Drop,
    Explain,
    Grant,
    Query,
    Refresh,
    Revoke,
    Show,
    ShowGrants,
    Subscribe,
    parse_script,
)
from streamsql.syntax.statements import Statement

_SHORT = 1_000
"""Characters that are read at once; no text of that length takes noticeable time."""
_LONG = 20_000
"""Characters of a script that is parsed next to the event loop: an INSERT of 10,000 rows takes over
a second."""


class StatementRunner:
    """Executes statements against the catalog and the running queries. One at a time.

    Attributes:
        preparation: Does what can be done of a statement before it is its turn.
        queries: Starts and stops queries.
    """

    def __init__(  # noqa: PLR0913 - each is one seam
        self,
        shared: SharedParts,
        planner: Planner,
        queries: Queries,
        *,
        alarms: Alarms,
        sinks: Sinks,
        site_settings: SettingsBook,
        declared: SourcePublisher,
        publish_tables: Callable[[], None],
        sites: Callable[[], tuple[SiteInfo, ...]],
        refresh: Callable[[str, str], None],
        grants: GrantChanges,
    ) -> None:
        self._shared = shared
        self._planner = planner
        self._queries = queries
        self._alarms = alarms
        self._sinks = sinks
        self._site_settings = site_settings
        self._sites = sites
        self._refresh = refresh
        self.preparation = Preparation(shared, planner, queries.offers)
        self.queries = QueryStatements(shared, queries, self.preparation)
        self._grants = grants
        self._definitions = DefinitionStatements(
            shared,
            planner,
            queries,
            self.queries,
            alarms=alarms,
            sinks=sinks,
            declared=declared,
            publish_tables=publish_tables,
            sites=sites,
            grants=grants,
        )

    async def run(
        self,
        statement: Statement,
        *,
        name: str,
        origin: Origin,
        principal: Principal = LOCAL,
        prepared: Prepared | PreparedDefinition | None = None,
    ) -> StatementResult:
        """Execute one statement.

        Raises:
            FederationError: It fails; nothing has changed then.
        """
        match statement:
            case Query() | Subscribe():
                planned = prepared if isinstance(prepared, Prepared) else None
                return await self.queries.start(
                    statement, name=name, origin=origin, principal=principal, prepared=planned
                )
            case _ if isinstance(statement, Creating):
                defined = prepared if isinstance(prepared, PreparedDefinition) else None
                return await self._create(statement, defined, principal)
            case AlterSource():
                whole = altered_source(statement, self._shared.catalog)
                return await self.run(whole, name=name, origin=origin, principal=principal)
            case Drop():
                return await self._definitions.drop(statement, principal)
            case Explain() | Show() | Describe():
                return await self._shown(statement, principal)
            case Refresh():
                found = refreshed(statement, self._shared.catalog)
                check_made(self._shared.rights, principal, statement, found.name)
                if statement.is_table:
                    self._refresh("table", found.name)
                    message = f"table {found.name} is read again where queries need it"
                else:
                    self._refresh("view", found.name)
                    message = f"view {found.name} is being refreshed; SHOW VIEWS shows the outcome"
                return StatementResult(ResultKind.DONE, message)
            case AlterSite(site=site, options=options):
                return await alter_site(self._site_settings, site, options)
            case Grant() | Revoke() | ShowGrants() | AlterUser():
                return await self._grants.run(statement, principal)
            case AdvanceTime():
                raise UnsupportedError(
                    "ADVANCE TIME works only in a local session: a federation takes the "
                    "time from clocks",
                    span=statement.span,
                    hint="pando shell --local, or pando run FILE --local",
                    code="local_only",
                )
            case _:
                raise UnsupportedError(
                    f"{type(statement).__name__} is not executed here",
                    span=statement.span,
                    code="unsupported_statement",
                )

    async def _create(
        self, statement: Creating, prepared: PreparedDefinition | None, principal: Principal
    ) -> StatementResult:
        if prepared is None or not self.preparation.is_current(prepared):
            prepared = await self.preparation.definition(statement, principal)
        if isinstance(statement, CreateAlarm):
            return await self._definitions.create_alarm(statement, prepared, principal)
        if isinstance(statement, CreateSink):
            return await self._definitions.create_sink(statement, prepared, principal)
        return await self._definitions.create(statement, prepared.definition, principal)

    async def _shown(
        self, statement: Explain | Show | Describe, principal: Principal
    ) -> StatementResult:
        catalog, beside = self._shared.catalog_of(principal), self._shared.beside
        may = may_read(self._shared.rights, principal)
        match statement:
            case Explain():
                self._planner.get_ready_to_note()
                sharing = Sharing(self._queries.runs, self._shared.rights, principal)
                running = tuple(filter(may, self._queries.all())) if statement.analyze else ()
                planner = self._planner.over(self.preparation.reading(principal))
                return await beside.run(
                    lambda: explained(statement, catalog, planner, running, sharing),
                    "explaining the plan",
                )
            case Show(kind=kind):
                every = self._queries.all
                listed = every(displayed=kind == "displays") if kind in SHOWS_QUERIES else ()
                infos = infos_of(tuple(filter(may, listed)))
                acting = (query for origin in ACTING for query in every(origin))
                ids = {query.id for query in acting if may(query)}
                sites = self._sites()
                gate = self._shared.rights.gate(principal)
                alarms = shown_alarms(self._alarms.infos(), ids, gate)
                sinks = tuple(info for info in self._sinks.infos() if info.query in ids)
                refreshes = refreshes_of(sites, self._shared.settings.time_zone)
                network = Network(())
                if kind == "network":
                    network = network_for(self._queries, self._shared.rights, principal)
                return await beside.run(
                    lambda: show(
                        *(kind, catalog, infos, sites, alarms),
                        sinks=sinks,
                        refreshes=refreshes,
                        network=network,
                    ),
                    "listing",
                )
            case Describe():
                return await beside.run(
                    lambda: self._describe(statement, catalog, may), "describing"
                )

    def _describe(
        self, statement: Describe, catalog: Catalog, may: Callable[[RunningQuery], bool]
    ) -> StatementResult:
        definition = catalog.find(statement.name.text)
        if definition is None:
            query = self._queries.find(statement.name.text)
            if query is not None and may(query):
                rows = tuple((f.name, str(f.dtype), "") for f in query.bundle.schema.fields)
                return StatementResult(
                    ResultKind.ROWS, columns=("column", "type", "note"), rows=rows
                )
            raise BindingError(
                f"there is nothing with the name {statement.name.text!r}",
                span=statement.name.span,
                hint="SHOW SOURCES, TABLES, VIEWS, FUNCTIONS, QUERIES, ALARMS, DISPLAYS or SINKS",
                code="unknown_relation",
            )
        catalog.check_read(definition.name, statement.name.span)
        refreshes = refreshes_of(self._sites(), self._shared.settings.time_zone)
        return describe_definition(definition, catalog, refreshes)


@lru_cache(maxsize=512)
def _short_script(text: str) -> tuple[Statement, ...]:
    """Return the statements of a script; programs send the same again and again."""
    return tuple(parse_script(text))


async def carry_out(
    text: str, run: Callable[[Statement], Awaitable[StatementResult]], beside: Beside
) -> tuple[StatementResult, ...]:
    """Run the statements of a script in their order.

    A long text is read `beside` the loop first.

    Raises:
        FederationError: The first statement that fails; what earlier ones did stays, and is told
            in `carried_out`.
    """
    results: list[StatementResult] = []
    hints: list[str] = []
    long = len(text) > _LONG
    if len(text) > _SHORT:
        await beside.run(lambda: parse_script(text) and None, "reading the script")
    if len(text) <= _SHORT:
        statements = _short_script(text)
    else:
        statements = await asyncio.to_thread(parse_script, text) if long else parse_script(text)
    for statement in statements:
        try:
            result = await run(statement)
        except FederationError as error:
            error.carried_out = newest(hints)
            raise
        results.append(result)
        started = result.query if result.kind == ResultKind.QUERY else None
        query = started.id if started is not None else None
        hints.append(undo_hint(statement, result.message, query))
    return tuple(results)
