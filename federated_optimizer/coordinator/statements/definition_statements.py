"""CREATE and DROP: definitions in the catalog, and the queries of alarms and sinks."""

import asyncio
from collections.abc import Callable

import msgspec
import sqlalchemy as sa

from federated_optimizer.coordinator.contract.coordinator_model import (
    ACTING,
    Origin,
    ResultKind,
    SiteInfo,
    StatementResult,
)
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal
from federated_optimizer.coordinator.grants.grant_changes import GrantChanges
from federated_optimizer.coordinator.grants.query_rights import (
    check_made,
    check_stop,
    maker_of,
    refuse_library,
)
from federated_optimizer.coordinator.notices.alarm_queries import Alarms
from federated_optimizer.coordinator.queries.planning.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sinks.sinks import Sinks
from federated_optimizer.coordinator.sites.source_serving import creation_warnings
from federated_optimizer.coordinator.statements.definition_drops import (
    Reader,
    dropped_definition,
    refuse_used,
    users_of,
)
from federated_optimizer.coordinator.statements.preparation import PreparedDefinition
from federated_optimizer.coordinator.statements.query_statements import QueryStatements
from federated_optimizer.coordinator.statements.source_replacement import (
    broken_readers,
    refuse_broken,
)
from federated_optimizer.coordinator.store.grant_store import MadeKind, put_maker
from federated_optimizer.coordinator.system.source_publisher import SourcePublisher
from streamsql.binder import mapping_warnings
from streamsql.catalog.catalog import is_library, kind_of
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition, DisplayDefinition
from streamsql.catalog.open_folders import OpenFolders
from streamsql.catalog.sink_definitions import SinkDefinition
from streamsql.errors import BindingError, FederationError, InternalError
from streamsql.syntax import (
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSink,
    CreateSource,
    CreateView,
    Drop,
    Query,
)
from streamsql.syntax.statements import Name

_NO_CONNECTOR = (
    "no connector feeds this source, so queries over it stay empty; write WITH (connector = "
    "'mqtt', …), or another connector"
)


class DefinitionStatements:
    """Changes the catalog. One statement at a time."""

    def __init__(  # noqa: PLR0913 - each is one seam
        self,
        shared: SharedParts,
        planner: Planner,
        queries: Queries,
        starting: QueryStatements,
        *,
        alarms: Alarms,
        declared: SourcePublisher,
        sinks: Sinks,
        publish_tables: Callable[[], None],
        sites: Callable[[], tuple[SiteInfo, ...]],
        grants: GrantChanges,
    ) -> None:
        self._shared = shared
        self._planner = planner
        self._queries = queries
        self._starting = starting
        self._alarms = alarms
        self._declared = declared
        self._sinks = sinks
        self._publish_tables = publish_tables
        self._sites = sites
        self._grants = grants

    async def create(
        self,
        statement: CreateSource | CreateView | CreateFunction | CreateDisplay,
        definition: Definition,
        principal: Principal = LOCAL,
    ) -> StatementResult:
        """Store a definition, replacing one of the same name."""
        if (
            isinstance(statement, CreateSource)
            and self._shared.settings.folders
            and statement.kind == "table"
        ):
            check_place(statement, self._shared.settings.folders)
        if isinstance(definition, FunctionDefinition):
            # Planning evaluates calls with constants, so the coordinator needs it, too.
            definition.check_installed()
        replaced = self._shared.catalog.find(definition.name)
        if isinstance(definition, SourceDefinition):
            if isinstance(replaced, SourceDefinition):
                await self._check_readers(statement.name, replaced, definition)
            definition = await self._counted(definition)
            self._declared.check(definition)
        refuse_library(definition.name, replaced, principal)
        await self._note_maker(definition, principal)
        await asyncio.to_thread(self._shared.store.put_definition, definition)
        self._shared.catalog.define(definition, replace=True)
        if _is_declared(definition) or _is_declared(replaced):
            self._declared.changed(definition.name)
        if isinstance(definition, SourceDefinition) or self._shared.catalog.refreshed:
            self._publish_tables()  # plans of refreshed views may be others now
        message = f"{kind_of(definition)} {definition.name} {_done(definition, replaced)}"
        return StatementResult(
            ResultKind.DONE, message, warnings=self._creation_warnings(definition)
        )

    async def _check_readers(
        self, name: Name, old: SourceDefinition, new: SourceDefinition
    ) -> None:
        """Refuse a definition of a source with which something that reads it could not go on."""
        readers = [_reader(query) for query in self._queries.all()]
        broken = await self._shared.beside.run(
            lambda: broken_readers(old, new, self._shared.catalog, readers),
            "looking for who reads it",
        )
        refuse_broken(name, broken)

    async def _counted(self, definition: SourceDefinition) -> SourceDefinition:
        """Return a declared source's definition with a version that its name never had."""
        if definition.mapping is None:
            return definition
        version = await asyncio.to_thread(
            self._shared.store.next_source_version, definition.name, definition.version
        )
        return msgspec.structs.replace(definition, version=version)

    async def create_alarm(
        self, statement: CreateAlarm, prepared: PreparedDefinition, principal: Principal = LOCAL
    ) -> StatementResult:
        """Start an alarm's query and follow it."""
        definition = prepared.definition
        if not isinstance(definition, AlarmDefinition):
            raise InternalError("CREATE ALARM created something else")
        query = await self._start(statement.query, definition, Origin.ALARM, prepared, principal)
        self._alarms.follow(definition, query)
        message = f"alarm {definition.name} created"
        return StatementResult(ResultKind.DONE, message, warnings=query.warnings)

    async def create_sink(
        self, statement: CreateSink, prepared: PreparedDefinition, principal: Principal = LOCAL
    ) -> StatementResult:
        """Start a sink's query and send its answer."""
        definition = prepared.definition
        if not isinstance(definition, SinkDefinition):
            raise InternalError("CREATE SINK created something else")
        self._sinks.check(definition)
        query = await self._start(statement.query, definition, Origin.SINK, prepared, principal)
        await self._sinks.follow(definition, query)
        message = f"sink {definition.name} created: {definition.mode} to {definition.target}"
        return StatementResult(ResultKind.DONE, message, warnings=query.warnings)

    async def _start(
        self,
        statement: Query,
        definition: AlarmDefinition | SinkDefinition,
        origin: Origin,
        prepared: PreparedDefinition,
        principal: Principal,
    ) -> RunningQuery:
        """Start the query of a definition, and store this."""
        query = await self._starting.deploy(
            statement, definition.query_name, origin, prepared.query, principal
        )
        try:
            await self._note_maker(definition, principal)
            await asyncio.to_thread(self._shared.store.put_definition, definition)
        except FederationError:
            await self._starting.discard(query)
            raise
        self._shared.catalog.define(definition, replace=True)
        return query

    async def _note_maker(self, definition: Definition, principal: Principal) -> None:
        made = (MadeKind.DEFINITION, definition.name.lower())
        maker = maker_of(principal, self._shared.clock())
        await asyncio.to_thread(put_maker, self._shared.store, made, maker)
        self._shared.rights.made(made, maker)

    def _creation_warnings(self, definition: Definition) -> tuple[str, ...]:
        if not isinstance(definition, SourceDefinition):
            return ()
        if definition.refresh is not None:
            return ()
        if definition.is_table:
            return ()
        if definition.mapping is not None:
            served = creation_warnings(definition.mapping, self._sites())
            return (*mapping_warnings(definition), *served)
        if self._planner.topology().owners(definition.name):
            return ()
        return (_NO_CONNECTOR,)

    async def drop(self, statement: Drop, principal: Principal = LOCAL) -> StatementResult:
        """Remove a definition that nothing uses, or a query.

        Raises:
            BindingError: There is none, something uses it, or it is somebody else's.
        """
        name = statement.name.text
        if statement.kind == "query":
            return await self._drop_query(statement, principal)
        definition = dropped_definition(statement, self._shared.catalog)
        if definition is None:
            return StatementResult(ResultKind.DONE, f"there was no {statement.kind} {name}")
        check_made(self._shared.rights, principal, statement, definition.name)
        await self._shared.beside.run(
            lambda: self._refuse_if_used(statement, definition), "looking for who reads it"
        )
        warnings: tuple[str, ...] = ()
        if isinstance(definition, SinkDefinition):
            # Before it is dropped: what it has retained must be known until it is emptied.
            warnings = await self._sinks.forget(definition)
        await asyncio.to_thread(self._shared.store.drop_definition, definition.name)
        self._shared.catalog.drop(name)
        await self._grants.forget_definition(definition.name)
        if _is_declared(definition):
            self._declared.changed(definition.name)
        if isinstance(definition, AlarmDefinition | SinkDefinition):
            query = self._queries.find(definition.query_name)
            if query is not None:
                await self._starting.discard(query)
        if isinstance(definition, AlarmDefinition):
            await self._alarms.forget(definition)
        if isinstance(definition, SourceDefinition) or self._shared.catalog.refreshed:
            self._publish_tables()
        message = f"{statement.kind} {definition.name} dropped"
        return StatementResult(ResultKind.DONE, message, warnings=warnings)

    async def _drop_query(self, statement: Drop, principal: Principal) -> StatementResult:
        query = self._queries.find(statement.name.text)
        if query is not None:
            check_stop(self._shared.rights, principal, query)
            return await self._starting.stop(query)
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
        if isinstance(definition, DisplayDefinition):
            users = [f"query {q.name}" for q in self._starting.shown_on(definition.name)]
        else:
            users = users_of(definition, self._shared.catalog, map(_reader, self._queries.all()))
        refuse_used(statement, definition, users)


def _done(definition: Definition, replaced: Definition | None) -> str:
    if not isinstance(definition, SourceDefinition) or not definition.version:
        return "created" if replaced is None or is_library(replaced) else "replaced"
    return "created" if replaced is None else f"replaced, version {definition.version}"


def _reader(query: RunningQuery) -> Reader:
    columns = query.bundle.schema
    if query.origin in ACTING:
        return Reader(str(query.origin), query.name.partition(" ")[2], query.text, columns)
    return Reader("query", query.name, query.text, columns)


def _is_declared(definition: Definition | None) -> bool:
    return isinstance(definition, SourceDefinition) and definition.mapping is not None


def _is_table(definition: Definition) -> bool:
    return isinstance(definition, SourceDefinition) and definition.is_table


def check_place(statement: CreateSource, folders: OpenFolders) -> None:
    """Check the file that a table names; where links lead is seen when it is opened.

    Raises:
        BindingError: It is in no open folder.
    """
    for option in statement.options:
        path = option.value if option.name == "path" else ""
        if option.name == "url":
            path = _file_of(option.value)
        if path and not folders.allow(folders.place(path)):
            raise BindingError(
                f"{path!r:.200} is outside the folders that are open to tables: {folders.shown}",
                span=option.value_span,
                hint="move the file there, or open its folder with --tables DIR (setting "
                "table_folders)",
                code="outside_folders",
            )


def _file_of(url: str) -> str:
    """Return the file of an SQLite address, or nothing."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return ""  # the static engine says what is wrong with it
    return parsed.database or "" if parsed.get_backend_name() == "sqlite" else ""
