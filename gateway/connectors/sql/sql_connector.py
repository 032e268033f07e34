"""The connector sql: polls the tables and queries of one database for new rows."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from gateway.connectors.browsing import BrowseContext, NoOptions
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.own_thread import OwnThread
from gateway.connectors.reading import Memory, Reading
from gateway.connectors.sql.database import PAGE, Database, QueryError
from gateway.connectors.sql.row_watermark import Row, Watermark, WatermarkError, remembered
from gateway.connectors.sql.sql_options import SqlEndpoint, SqlSource, Start
from gateway.connectors.sql.sql_values import plain_value
from gateway.connectors.sql.table_listing import tables_of
from streamsql.errors import DeploymentError

MAX_PAUSE = 60.0
"""Seconds from one try to the next while a query is refused, unless its interval is longer."""
_GRACE = 5.0
"""Seconds for a query that is interrupted to end."""

T = TypeVar("T")


class SqlConnector:
    """Reads new rows of tables and queries, and remembers how far it has come."""

    kind = "sql"
    endpoint_options: type[msgspec.Struct] = SqlEndpoint
    source_options: type[msgspec.Struct] = SqlSource
    browse_options = NoOptions

    async def run(self, context: ConnectorContext) -> None:
        """Emit new rows until cancelled.

        Raises:
            DeploymentError: The address is wrong, or its driver is missing.
            ConnectionError: The database cannot be reached.
        """
        endpoint = context.endpoint_as(SqlEndpoint)
        database = _database_of(context)
        polls = _Polls(context, database, endpoint.timeout)
        tasks = [asyncio.create_task(polls.follow(source)) for source in context.sources]
        try:
            # Not a TaskGroup: what goes wrong is to be shown as it is.
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            polls.end()

    async def browse(self, context: BrowseContext) -> None:
        """Offer the tables and views of the database.

        Raises:
            DeploymentError: The address is wrong, or its driver is missing.
            ConnectionError: The database cannot be reached.
            QueryError: It does not tell its tables.
        """
        database = _database_of(context)
        thread = OwnThread(f"sql {context.endpoint_name} browsed")
        try:
            for record in await thread.run(lambda: database.asked(tables_of)):
                context.offer(record)
                if "watermark" not in record.options:
                    context.note(f"{record.name}: no column seems to grow; name the watermark")
        finally:
            OwnThread("sql end").end(database.interrupt)
            thread.end(database.close)


def _database_of(context: ConnectorContext | BrowseContext) -> Database:
    """Return the database of an endpoint.

    Raises:
        DeploymentError: The address is wrong, or its driver is missing.
    """
    try:
        return Database(context.endpoint_as(SqlEndpoint))
    except ValueError as error:
        raise DeploymentError(f"endpoint {context.endpoint_name}: {error}") from None


class _Polls:
    """The polls of one database: one query at a time."""

    def __init__(self, context: ConnectorContext, database: Database, seconds: float) -> None:
        self._context = context
        self._database = database
        self._seconds = seconds
        self._thread = OwnThread(f"sql {context.endpoint_name}")
        self._turn = asyncio.Lock()
        self._memory: Memory = dict(context.memory or {})

    def end(self) -> None:
        """Interrupt what runs, without waiting for it."""
        # In a thread, too: to cancel a query PostgreSQL is connected to once more.
        OwnThread("sql end").end(self._database.interrupt)
        self._thread.end(self._database.close)

    async def follow(self, source: DeclaredSource) -> None:
        """Read a source's new rows again and again."""
        options = source.options_as(SqlSource)
        failures = 0
        watermark: Watermark | None = None
        while True:
            pause: float = options.interval
            try:
                watermark = watermark or await self._begin(source, options)
                while await self._read_page(source, options, watermark):
                    pass
                failures = 0
            except (QueryError, WatermarkError) as error:
                source.problem(str(error))
                failures += 1
                pause = max(pause, min(pause * 2.0 ** min(failures - 1, 20), MAX_PAUSE))
            await asyncio.sleep(pause)

    async def _begin(self, source: DeclaredSource, options: SqlSource) -> Watermark:
        """Return how far a source was read in an earlier life, or where it begins."""
        match self._memory.get(source.name):
            case [options.fingerprint, *plain]:
                if (watermark := remembered(plain)) is not None:
                    return watermark
            case _:
                pass
        if options.start == Start.ALL:
            return Watermark()
        greatest = await self._asked(lambda: self._database.greatest(options))
        watermark = Watermark()
        if greatest is not None:
            names = _names(source)
            rows = await self._asked(
                lambda: self._database.page(options, names, greatest, 2 * PAGE)
            )
            for _ in watermark.new_rows(rows):
                pass  # they were there before
        # Else a restart before the first new row would begin after those that came meanwhile.
        self._note(source, options, watermark)
        self._context.remember(dict(self._memory))
        self._context.emit(())
        await self._context.kept()
        return watermark

    def _note(self, source: DeclaredSource, options: SqlSource, watermark: Watermark) -> None:
        self._memory[source.name] = [options.fingerprint, *watermark.to_remember()]

    async def _read_page(
        self, source: DeclaredSource, options: SqlSource, watermark: Watermark
    ) -> bool:
        """Read and emit the next rows; return whether there may be more."""
        names, above = _names(source), watermark.value
        limit = PAGE + watermark.ties
        rows = await self._asked(lambda: self._database.page(options, names, above, limit))
        readings: list[Reading] = []
        wrong: WatermarkError | None = None
        try:
            for row in watermark.new_rows(rows):
                readings += source.read_record(_values(names, row))
        except WatermarkError as error:
            wrong = error  # the rows before it are new all the same
        if rows:
            self._note(source, options, watermark)
        if readings:
            self._context.remember(dict(self._memory))
            self._context.emit(readings)
            await self._context.kept()
        if wrong is not None:
            raise wrong
        return len(rows) >= limit

    async def _asked(self, call: Callable[[], T]) -> T:
        """Return what the database answers.

        Raises:
            ConnectionError: It cannot be reached, or does not end a query that took too long.
            QueryError: It took too long, or was refused.
        """
        async with self._turn:
            running = asyncio.ensure_future(self._thread.run(call))
            try:
                done, _ = await asyncio.wait({running}, timeout=self._seconds)
                if done:
                    return running.result()
                OwnThread("sql interrupt").end(self._database.interrupt)
                await asyncio.wait({running}, timeout=_GRACE)
            finally:
                ended = not running.cancel()
            if not ended:
                raise ConnectionError(f"the database has not answered for {self._seconds:g} s")
            raise QueryError(f"the query took longer than {self._seconds:g} s")


def _names(source: DeclaredSource) -> tuple[str, ...]:
    return tuple(dict.fromkeys(address for _, address in source.addresses()))


def _values(names: tuple[str, ...], row: Row) -> dict[str, object]:
    return {name: plain_value(value) for name, value in zip(names, row, strict=False)}
