"""CREATE and DROP: definitions in the catalog, and the queries of alarms."""

import asyncio
from collections.abc import Callable

import sqlalchemy as sa

from federated_optimizer.coordinator.contract.coordinator_model import (
    Origin,
    ResultKind,
    SiteInfo,
    StatementResult,
)
from federated_optimizer.coordinator.coordinator_core import Core
from federated_optimizer.coordinator.notices.alarm_states import Alarms
from federated_optimizer.coordinator.queries.planner import Planner
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.statements.definition_drops import (
    Reader,
    dropped_definition,
    refuse_used,
    users_of,
)
from federated_optimizer.coordinator.statements.preparation import PreparedDefinition
from federated_optimizer.coordinator.statements.query_statements import QueryStatements
from streamsql.algebra.user_functions import INSTALLED
from streamsql.catalog.catalog import kind_of
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.notices import AlarmDefinition, DisplayDefinition
from streamsql.catalog.open_folders import OpenFolders
from streamsql.errors import BindingError, FederationError, InternalError
from streamsql.syntax import (
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSource,
    CreateView,
    Drop,
)
from streamsql.syntax.cursor import nearest

_NO_SOURCE = (
    "this table has no option source, so queries over it wait for ever; write WITH (source "
    "= 'csv', path = 'rows.csv')"
)


class DefinitionStatements:
    """Changes the catalog. One statement at a time."""

    def __init__(  # noqa: PLR0913, PLR0917 - each is one seam
        self,
        core: Core,
        planner: Planner,
        queries: Queries,
        starting: QueryStatements,
        alarms: Alarms,
        publish_tables: Callable[[], None],
        sites: Callable[[], tuple[SiteInfo, ...]],
    ) -> None:
        self._core = core
        self._planner = planner
        self._queries = queries
        self._starting = starting
        self._alarms = alarms
        self._publish_tables = publish_tables
        self._sites = sites

    async def create(
        self,
        statement: CreateSource | CreateView | CreateFunction | CreateDisplay,
        definition: Definition,
    ) -> StatementResult:
        """Store a definition, replacing one of the same name."""
        if (
            isinstance(statement, CreateSource)
            and self._core.settings.folders
            and statement.kind == "table"
        ):
            check_place(statement, self._core.settings.folders)
        if isinstance(definition, FunctionDefinition):
            # Planning evaluates calls with constants, so the coordinator needs it, too.
            INSTALLED.check(definition.implementation, aggregate=definition.aggregate)
        await asyncio.to_thread(self._core.store.put_definition, definition)
        self._core.catalog.define(definition, replace=True)
        if _is_table(definition) or self._core.catalog.refreshed:  # their plans may be others now
            self._publish_tables()
        message = f"{kind_of(definition)} {definition.name} created"
        return StatementResult(
            ResultKind.DONE, message, warnings=self._creation_warnings(definition)
        )

    async def create_alarm(
        self, statement: CreateAlarm, prepared: PreparedDefinition
    ) -> StatementResult:
        """Start an alarm's query and follow it."""
        definition = prepared.definition
        if not isinstance(definition, AlarmDefinition):
            raise InternalError("CREATE ALARM created something else")
        query = await self._starting.deploy(
            statement.query, definition.query_name, Origin.ALARM, prepared.query
        )
        try:
            await asyncio.to_thread(self._core.store.put_definition, definition)
        except FederationError:
            await self._starting.discard(query)
            raise
        self._core.catalog.define(definition, replace=True)
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

    async def drop(self, statement: Drop) -> StatementResult:
        """Remove a definition that nothing uses, or a query.

        Raises:
            BindingError: There is none, or something uses it.
        """
        name = statement.name.text
        if statement.kind == "query":
            return await self._drop_query(statement)
        definition = dropped_definition(statement, self._core.catalog)
        if definition is None:
            return StatementResult(ResultKind.DONE, f"there was no {statement.kind} {name}")
        await self._core.beside.run(
            lambda: self._refuse_if_used(statement, definition), "looking for who reads it"
        )
        await asyncio.to_thread(self._core.store.drop_definition, definition.name)
        self._core.catalog.drop(name)
        if isinstance(definition, AlarmDefinition):
            query = self._queries.find(definition.query_name)
            if query is not None:
                await self._starting.discard(query)
            await self._alarms.forget(definition)
        if _is_table(definition) or self._core.catalog.refreshed:
            self._publish_tables()
        return StatementResult(ResultKind.DONE, f"{statement.kind} {definition.name} dropped")

    async def _drop_query(self, statement: Drop) -> StatementResult:
        query = self._queries.find(statement.name.text)
        if query is not None:
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
            users = users_of(definition, self._core.catalog, map(_reader, self._queries.all()))
        refuse_used(statement, definition, users)


def _reader(query: RunningQuery) -> Reader:
    if query.origin == Origin.ALARM:
        return Reader("alarm", query.name.partition(" ")[2], query.text)
    return Reader("query", query.name, query.text)


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
