"""Execute statements one by one: definitions, queries, EXPLAIN, SHOW, DESCRIBE."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import (
    ResultKind,
    SiteInfo,
    StatementResult,
)
from federated_optimizer.coordinator.contract.presentation import check_room_on, presentation_of
from federated_optimizer.coordinator.contract.refresh_text import refreshes_of
from federated_optimizer.coordinator.explaining.explaining import explained
from federated_optimizer.coordinator.notices.alarm_states import ORIGIN as ALARM
from federated_optimizer.coordinator.notices.alarm_states import Alarms
from federated_optimizer.coordinator.queries.planner import Planned, Planner
from federated_optimizer.coordinator.queries.planning_processes import Beside
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.statements.definition_drops import (
    Reader,
    dropped_definition,
    refuse_used,
    users_of,
)
from federated_optimizer.coordinator.statements.listings import describe_definition, show
from federated_optimizer.coordinator.store.catalog_store import CatalogStore, StoredQuery
from federated_optimizer.coordinator.system.site_settings_changes import SettingsBook, alter_site
from federated_optimizer.coordinator.tables.table_places import check_place
from host.clocks import Clock
from streamsql.algebra.user_functions import INSTALLED
from streamsql.binder import Creating, define, refreshed_view
from streamsql.catalog.catalog import Catalog, kind_of
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notices import AlarmDefinition, DisplayDefinition
from streamsql.catalog.open_folders import OpenFolders
from streamsql.errors import BindingError, FederationError, InternalError, UnsupportedError
from streamsql.syntax import (
    AdvanceTime,
    AlterSite,
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSource,
    CreateView,
    Describe,
    Drop,
    Explain,
    Query,
    Refresh,
    Show,
    Subscribe,
    parse_statement,
)
from streamsql.syntax.cursor import nearest
from streamsql.syntax.statements import Statement
from streamsql.wire.topics import check_id

ORIGINS = ("user", "map", "session")
_NO_SOURCE = (
    "this table has no option source, so queries over it wait for ever; write WITH (source "
    "= 'csv', path = 'rows.csv')"
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that was planned before it is its turn.

    Attributes:
        catalog: The definitions it was planned with.
        planned: Its plan, without an id.
        display: The display it wants to be shown on, or empty.
        gathered: Whether rows of gateways are brought together first.
    """

    catalog: tuple[Definition, ...]
    planned: Planned
    display: str
    gathered: bool = True


@dataclass(frozen=True, slots=True)
class PreparedDefinition:
    """A definition that was checked before it is its turn.

    Attributes:
        catalog: The definitions it was checked with.
        definition: What it defines.
        query: The plan of an alarm's query.
    """

    catalog: tuple[Definition, ...]
    definition: Definition
    query: Prepared | None = None


class StatementRunner:
    """Executes statements against the catalog and the running queries. One at a time."""

    def __init__(  # noqa: PLR0913 - each is one seam
        self,
        catalog: Catalog,
        store: CatalogStore,
        queries: Queries,
        planner: Planner,
        clock: Clock,
        *,
        publish_tables: Callable[[], None],
        sites: Callable[[], tuple[SiteInfo, ...]],
        alarms: Alarms,
        site_settings: SettingsBook,
        refresh: Callable[[str], None],
        zone: str,
        folders: OpenFolders | None,
        beside: Beside,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._queries = queries
        self._planner = planner
        self._clock = clock
        self._publish_tables = publish_tables
        self._sites = sites
        self._alarms = alarms
        self._site_settings = site_settings
        self._refresh = refresh
        self._zone = zone
        self._folders = folders
        self._beside = beside

    async def prepared(self, statement: Statement) -> Prepared | PreparedDefinition | None:
        """Do what can be done of a statement before others have to wait for it.

        Raises:
            FederationError: The statement is wrong, or takes too long.
        """
        match statement:
            case Query() | Subscribe():
                return await self._prepared(statement)
            case CreateAlarm(query=query):
                defined = await self._defined(statement)
                return replace(defined, query=await self._prepared(query))
            case CreateSource() | CreateView() | CreateFunction() | CreateDisplay():
                return await self._defined(statement)
            case _:
                return None

    def is_current(self, prepared: Prepared | PreparedDefinition) -> bool:
        """Whether no definition has changed since."""
        return prepared.catalog == tuple(self._catalog)

    async def _prepared(self, statement: Query | Subscribe, *, gathered: bool = True) -> Prepared:
        self._planner.topology()  # remembers who is there
        known = tuple(self._catalog)

        def work() -> Prepared:
            bound = self._planner.bind(statement)
            presentation = presentation_of(statement, bound.schema, bound.emit)
            bundle = self._planner.place(bound, query="", text=statement.text, gathered=gathered)
            planned = Planned(bundle, tuple(bound.warnings), bound.order)
            return Prepared((), planned, presentation.display, gathered)

        return replace(await self._beside.run(work, "planning the query"), catalog=known)

    async def _defined(self, statement: Creating) -> PreparedDefinition:
        known = tuple(self._catalog)
        work = lambda: define(statement, self._catalog)  # noqa: E731
        return PreparedDefinition(known, await self._beside.run(work, "checking the definition"))

    async def run(
        self,
        statement: Statement,
        *,
        name: str,
        origin: str,
        prepared: Prepared | PreparedDefinition | None = None,
    ) -> StatementResult:
        """Execute one statement.

        Raises:
            FederationError: It fails; nothing has changed then.
        """
        match statement:
            case Query() | Subscribe():
                planned = prepared if isinstance(prepared, Prepared) else None
                return await self.start(statement, name=name, origin=origin, prepared=planned)
            case CreateAlarm() | CreateSource() | CreateView() | CreateFunction() | CreateDisplay():
                defined = prepared if isinstance(prepared, PreparedDefinition) else None
                if defined is None or not self.is_current(defined):
                    defined = await self._defined(statement)
                if isinstance(statement, CreateAlarm):
                    return await self._create_alarm(statement, defined)
                return await self._create(statement, defined.definition)
            case Drop():
                return await self._drop(statement)
            case Explain():
                return await self._beside.run(
                    lambda: explained(statement, self._catalog, self._planner, self._queries.all()),
                    "explaining the plan",
                )
            case Show(kind=kind):
                infos = tuple(self._queries.info(query) for query in self._queries.all())
                sites, alarms = self._sites(), self._alarms.infos()
                refreshes = refreshes_of(sites, self._zone)
                return await self._beside.run(
                    lambda: show(kind, self._catalog, infos, sites, alarms, refreshes=refreshes),
                    "listing",
                )
            case Describe():
                return await self._beside.run(lambda: self._describe(statement), "describing")
            case Refresh():
                view = refreshed_view(statement, self._catalog)
                self._refresh(view.name)
                message = f"view {view.name} is being refreshed; SHOW VIEWS shows the outcome"
                return StatementResult(ResultKind.DONE, message)
            case AlterSite(site=site, options=options):
                return await alter_site(self._site_settings, site, options)
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

    # --- queries -----------------------------------------------------------------------------

    async def start(
        self,
        statement: Query | Subscribe,
        *,
        name: str,
        origin: str,
        prepared: Prepared | None = None,
    ) -> StatementResult:
        """Start a continuous query; one of the same name and text is returned as it runs."""
        if origin not in ORIGINS:
            raise BindingError(
                f"origin {origin!r} is not one of {', '.join(ORIGINS)}", code="bad_option"
            )
        running = self._of_same_name(statement, name)
        if running is not None:
            return self._query_result(running, f"query {running.name} already runs")
        running = await self._start(statement, name, origin, prepared)
        return self._query_result(running, f"query {running.name} started")

    async def start_reading(self, text: str) -> RunningQuery:
        """Start a session query over a leaf whose rows come from the sites that have them."""
        statement = parse_statement(text)
        assert isinstance(statement, Query)  # noqa: S101  (our own text)
        prepared = await self._prepared(statement, gathered=False)
        return await self._start(statement, "", "session", prepared)

    async def _start(
        self, statement: Query | Subscribe, name: str, origin: str, prepared: Prepared | None
    ) -> RunningQuery:
        if prepared is None or not self.is_current(prepared):
            prepared = await self._prepared(statement)
        planned = prepared.planned
        check_room_on(statement, len(self._shown_on(prepared.display)))
        self._queries.check_room()
        number = await asyncio.to_thread(self._store.next_query_number)
        query_id = f"q{number}"
        bundle = msgspec.structs.replace(planned.bundle, query=query_id)
        stored = StoredQuery(
            query_id, name or query_id, statement.text, origin, self._clock(), bundle
        )
        if origin != "session":
            await asyncio.to_thread(self._store.put_query, stored)
        try:
            running = self._queries.start(
                replace(planned, bundle=bundle),
                name=stored.name,
                origin=origin,
                created=stored.created,
                gathered=prepared.gathered,
            )
        except FederationError:
            await asyncio.to_thread(self._store.drop_query, query_id)
            raise
        return running

    def _shown_on(self, display: str) -> list[RunningQuery]:
        """Return the queries whose answers a display shows, oldest first."""
        return [q for q in self._queries.all() if display and q.presentation.display == display]

    async def stop(self, query: RunningQuery) -> StatementResult:
        """Stop and forget a query.

        Raises:
            BindingError: It is an alarm's.
        """
        if query.origin == ALARM:
            alarm = query.name.partition(" ")[2]
            raise BindingError(
                f"query {query.id} belongs to alarm {alarm}",
                hint=f'DROP ALARM "{alarm}"',
                code="in_use",
            )
        return await self._stop(query)

    async def _stop(self, query: RunningQuery) -> StatementResult:
        if query.origin != "session":
            await asyncio.to_thread(self._store.drop_query, query.id)
        info = self._queries.stop(query)
        return StatementResult(ResultKind.DONE, f"query {info.name} stopped", query=info)

    async def redeploy(self, query: RunningQuery, planned: Planned) -> None:
        """Store and deploy another bundle of a running query."""
        if query.origin != "session":
            stored = StoredQuery(
                query.id, query.name, query.text, query.origin, query.created, planned.bundle
            )
            await asyncio.to_thread(self._store.put_query, stored)
        if query.id in self._queries:
            self._queries.redeploy(query, planned)

    def _of_same_name(self, statement: Statement, name: str) -> RunningQuery | None:
        if not name:
            return None
        check_id(name, "query name")
        existing = self._queries.find(name)
        if existing is not None and existing.text != statement.text:
            raise BindingError(
                f"query {name!r} already exists",
                hint=f'DROP QUERY "{name}" or choose another name',
                code="already_exists",
            )
        return existing

    def _query_result(self, query: RunningQuery, message: str) -> StatementResult:
        info = self._queries.info(query)
        return StatementResult(ResultKind.QUERY, message, query=info, warnings=info.warnings)

    # --- definitions -------------------------------------------------------------------------

    async def _create(
        self,
        statement: CreateSource | CreateView | CreateFunction | CreateDisplay,
        definition: Definition,
    ) -> StatementResult:
        if isinstance(statement, CreateSource) and self._folders and statement.kind == "table":
            check_place(statement, self._folders)
        if isinstance(definition, FunctionDefinition):
            # Planning evaluates calls with constants, so the coordinator needs it, too.
            INSTALLED.check(definition.implementation, aggregate=definition.aggregate)
        await asyncio.to_thread(self._store.put_definition, definition)
        self._catalog.define(definition, replace=True)
        if _is_table(definition) or self._catalog.refreshed:  # their plans may be others now
            self._publish_tables()
        message = f"{kind_of(definition)} {definition.name} created"
        return StatementResult(
            ResultKind.DONE, message, warnings=self._creation_warnings(definition)
        )

    async def _create_alarm(
        self, statement: CreateAlarm, prepared: PreparedDefinition
    ) -> StatementResult:
        definition = prepared.definition
        if not isinstance(definition, AlarmDefinition):
            raise InternalError("CREATE ALARM created something else")
        query = await self._start(statement.query, definition.query_name, ALARM, prepared.query)
        try:
            await asyncio.to_thread(self._store.put_definition, definition)
        except FederationError:
            await self._stop(query)
            raise
        self._catalog.define(definition, replace=True)
        self._alarms.follow(definition, query)
        message = f"alarm {definition.name} created"
        return StatementResult(ResultKind.DONE, message, warnings=query.warnings)

    def _creation_warnings(self, definition: Definition) -> tuple[str, ...]:
        if not isinstance(definition, SourceDefinition):
            return ()
        if definition.refresh is not None:
            return ()
        if definition.is_table:
            return () if definition.option("source") else (_NO_SOURCE,)
        if self._planner.topology().owners(definition.name):
            return ()
        wrapper = definition.option("wrapper")
        what = f" (wrapper {wrapper!r})" if wrapper else ""
        known = sorted({w.kind for site in self._sites() for w in site.wrappers})
        if wrapper and known and wrapper not in known:
            close = nearest(wrapper, known)
            what += f"; the gateways' wrappers are {', '.join(known)}"
            what += f": did you mean {close}?" if close else ""
        return (f"no gateway offers this source yet{what}; queries over it wait for a gateway",)

    async def _drop(self, statement: Drop) -> StatementResult:
        name = statement.name.text
        if statement.kind == "query":
            return await self._drop_query(statement)
        definition = dropped_definition(statement, self._catalog)
        if definition is None:
            return StatementResult(ResultKind.DONE, f"there was no {statement.kind} {name}")
        await self._beside.run(
            lambda: self._refuse_if_used(statement, definition), "looking for who reads it"
        )
        await asyncio.to_thread(self._store.drop_definition, definition.name)
        self._catalog.drop(name)
        if isinstance(definition, AlarmDefinition):
            query = self._queries.find(definition.query_name)
            if query is not None:
                await self._stop(query)
            await self._alarms.forget(definition)
        if _is_table(definition) or self._catalog.refreshed:
            self._publish_tables()
        return StatementResult(ResultKind.DONE, f"{statement.kind} {definition.name} dropped")

    async def _drop_query(self, statement: Drop) -> StatementResult:
        query = self._queries.find(statement.name.text)
        if query is not None:
            return await self.stop(query)
        if statement.if_exists:
            message = f"there was no query {statement.name.text}"
            return StatementResult(ResultKind.DONE, message)
        raise BindingError(
            f"there is no query {statement.name.text!r}",
            span=statement.name.span,
            hint="SHOW QUERIES lists them",
            code="unknown_relation",
        )

    def _refuse_if_used(self, statement: Drop, definition: Definition) -> None:
        """Refuse to drop what a query, an alarm or a view uses.

        Raises:
            BindingError: One does.
        """
        if isinstance(definition, DisplayDefinition):
            users = [f"query {q.name}" for q in self._shown_on(definition.name)]
        else:
            users = users_of(definition, self._catalog, map(_reader, self._queries.all()))
        refuse_used(statement, definition, users)

    def _describe(self, statement: Describe) -> StatementResult:
        definition = self._catalog.find(statement.name.text)
        if definition is None:
            query = self._queries.find(statement.name.text)
            if query is not None:
                rows = tuple((f.name, str(f.dtype), "") for f in query.bundle.schema.fields)
                return StatementResult(
                    ResultKind.ROWS, columns=("column", "type", "note"), rows=rows
                )
            raise BindingError(
                f"there is nothing with the name {statement.name.text!r}",
                span=statement.name.span,
                hint="SHOW SOURCES, TABLES, VIEWS, FUNCTIONS, QUERIES, ALARMS or DISPLAYS",
                code="unknown_relation",
            )
        refreshes = refreshes_of(self._sites(), self._zone)
        return describe_definition(definition, self._catalog, refreshes)


def _reader(query: RunningQuery) -> Reader:
    if query.origin == ALARM:
        return Reader("alarm", query.name.partition(" ")[2], query.text)
    return Reader("query", query.name, query.text)


def _is_table(definition: Definition) -> bool:
    return isinstance(definition, SourceDefinition) and definition.is_table
