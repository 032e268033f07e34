"""Changes of a table in a database: one transaction each.

A condition means the same as in queries: rows are read and judged here, and deleted by what the
database itself identifies them by.
"""

from collections.abc import Generator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import ColumnClause, column, insert, inspect, table, types
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.engine import URL, Connection
from sqlalchemy.sql import quoted_name
from sqlalchemy.types import TypeEngine

from static_engine.changing.change_checks import (
    Key,
    assigned_places,
    check_keys,
    duplicate,
    failed,
    keys_of,
    missing,
    not_writable,
    row_changes,
)
from static_engine.changing.database_rows import FoundRows
from static_engine.changing.database_session import in_transaction
from static_engine.sources.databases.database_reader import columns_of
from static_engine.sources.declared_options import TableOptions
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, database_url, sqlite_file
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import batch_of_values, plain, rows_in
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import MICROSECONDS, DataType, Row, Value, coerce, text_of, timestamp_text
from streamsql.wire.stored_tables.table_changes import TableChange

DIALECTS = ("sqlite", "postgresql")
_DAY = 86_400 * MICROSECONDS
_SPANS = (types.Interval, INTERVAL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def change_database(change: TableChange, options: TableOptions, locations: Locations) -> int:
    """Change rows of a table; return how many.

    Raises:
        TableError: It cannot be done, and the table is as it was; only with code `no_answer`
            nobody knows.
    """
    definition = change.definition
    url = database_url(options.url, locations)
    if url.get_backend_name() not in DIALECTS:
        raise not_writable(
            definition,
            f"is in a database of kind {url.get_backend_name()}: INSERT and DELETE change "
            f"{' and '.join(DIALECTS)}",
        )
    where = f"table {definition.name}: {options.table} in {_shown(url)}"

    def work(connection: Connection) -> int:
        target = _Target(definition, connection, options.table, where)
        if change.update or change.merge is not None:
            return target.alter(change)
        return target.delete(change) if change.delete else target.insert(change)

    return in_transaction(url, where, work)


class _Target:
    """A table of a database within a transaction.

    Args:
        definition: As it is declared.
        connection: In the transaction.
        name: Its name there, `table` or `schema.table`.
        where: Both, for errors.

    Raises:
        TableMissingError: There is none.
        TableError: It is a view, or lacks a declared column.
    """

    def __init__(
        self, definition: SourceDefinition, connection: Connection, name: str, where: str
    ) -> None:
        schema, _, plain_name = name.rpartition(".")
        found = columns_of(connection, plain_name, schema or None, where)
        if plain_name not in inspect(connection).get_table_names(schema or None):
            raise not_writable(
                definition,
                f"is {name}, which is not a plain table of its database",
                "change its underlying tables",
            )
        names = [str(one["name"]) for one in found]
        chosen = [found[position] for position in match_columns(definition, names, name)]
        columns: list[ColumnClause[Any]] = [
            column(quoted_name(one["name"], quote=True)) for one in chosen
        ]
        self._definition, self._connection, self._where = definition, connection, where
        self._columns = columns
        self._kinds = [one["type"] for one in chosen]
        self._table = table(quoted_name(plain_name, quote=True), *columns, schema=schema or None)
        self._found = FoundRows(
            definition, connection, self._table, names=names, declared=columns, where=where
        )

    def insert(self, change: TableChange) -> int:
        """Add rows; columns that the statement does not name get what the database gives them."""
        given = change.given or tuple(range(len(self._columns)))
        for key in keys_of(self._definition, change.rows):
            # SQLite would number such a row by itself. What is not named it may.
            named = zip(self._definition.key, key, strict=True)
            if any(value is None and place in given for place, value in named):
                raise missing(self._definition, key)
        parameters = [
            {self._columns[place].name: self._stored(row[place], place) for place in given}
            for row in change.rows
        ]
        statement = insert(self._table).returning(*self._columns)
        written = self._connection.execute(statement, parameters).all()
        if len(written) != len(change.rows):
            raise failed(
                f"{self._where}: {len(written)} of {len(change.rows)} rows were accepted, "
                "and a trigger or a rule of the database rejects the others; nothing has "
                "changed",
                "see the table's definition there",
            )
        try:
            batch = batch_of_values(self._definition, written, 1, self._where)
        except TableError as error:
            raise failed(
                f"{error.message}: Pando could not read back the stored value; nothing has changed",
                error.hint,
            ) from error
        self._check_keys([*rows_in(batch)])
        return len(written)

    def delete(self, change: TableChange) -> int:
        """Take rows away."""
        if change.predicate is None:
            return self._found.delete_all()
        return self._found.delete_where(compile_predicate(change.predicate))

    def alter(self, change: TableChange) -> int:
        """Do what an UPDATE or a MERGE says."""
        found = self._found.changed(partial(row_changes, change))
        gone = [known for known, new in found if known is not None and new is None]
        new = [row for known, row in found if known is None and row is not None]
        kept = [(known, row) for known, row in found if known is not None and row is not None]
        if gone:
            self._found.delete(gone)
        places = assigned_places(change)
        self._found.update(
            [
                (known, {self._columns[p].name: self._stored(row[p], p) for p in places})
                for known, row in kept
            ]
        )
        if new:
            self.insert(msgspec.structs.replace(change, rows=tuple(new)))
        if set(places) & set(self._definition.key):
            self._check_keys([row for _, row in kept])
        return len(found)

    def _stored(self, value: Value, place: int) -> object:
        field = self._definition.schema.fields[place]
        try:
            kind, dialect = self._kinds[place], self._connection.dialect.name
            return stored_value(value, field.dtype, kind, dialect)
        except (ValueError, OverflowError) as error:
            raise failed(
                f"{self._where}: column {field.name}: {error}", "give it another value"
            ) from None

    def _check_keys(self, written: Sequence[Row]) -> None:
        """Check that the rows just written have keys of their own, even if the database would not.

        Raises:
            TableError: One is NULL, or there is another row of it.
        """
        added = keys_of(self._definition, written)
        check_keys(self._definition, (), added)
        wanted, seen = set(added), set[Key]()
        if not wanted or self._found.is_unique(self._definition.key, self._kinds):
            return
        with closing(self._keys()) as keys:
            for key in keys:
                if key in seen:
                    raise duplicate(self._definition, key)
                if key in wanted:
                    seen.add(key)

    def _keys(self) -> Generator[Key]:
        fields = [self._definition.schema.fields[k] for k in self._definition.key]
        with closing(self._found.rows(self._definition.key)) as rows:
            for row in rows:
                try:
                    yield tuple(
                        coerce(plain(value), field.dtype)
                        for value, field in zip(row, fields, strict=True)
                    )
                except (ValueError, OverflowError):
                    continue  # no key of ours; reading the table says what is wrong with that row


def _shown(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return sqlite_file(url).name
    return f"{url.host or 'the local server'}/{url.database or ''}"


def stored_value(value: Value, dtype: DataType, kind: TypeEngine[Any], dialect: str) -> object:
    """Return a value for a column; what is left as text the database turns into its type.

    Args:
        value: Of the declared type.
        dtype: The declared type.
        kind: The column's type there.
        dialect: `sqlite` or `postgresql`.

    Raises:
        ValueError: The column cannot hold it.
    """
    if value is None or isinstance(value, str):
        return value
    if dtype == DataType.TIMESTAMP and isinstance(value, int):
        return _time(value, kind)
    if isinstance(kind, types.String):
        return text_of(value)
    if dtype == DataType.INTERVAL and isinstance(value, int):
        return f"{value} microseconds" if isinstance(kind, _SPANS) else value
    if dtype == DataType.BOOLEAN:
        return value if isinstance(kind, types.Boolean) or dialect == "sqlite" else int(value)
    if isinstance(value, float) and dialect == "postgresql":
        if isinstance(kind, types.Integer):
            if not value.is_integer():
                raise ValueError(f"{value!r} is not a whole number")
            return int(value)
        if isinstance(kind, types.Numeric) and not isinstance(kind, types.Float):
            return Decimal(repr(value))
    return value


def _time(micros: int, kind: TypeEngine[Any]) -> object:
    if isinstance(kind, types.Float):  # a fraction is read as seconds
        return micros / MICROSECONDS
    if isinstance(kind, types.Integer | types.Numeric):
        return micros
    if isinstance(kind, types.Date) and not isinstance(kind, types.DateTime):
        if micros % _DAY:
            raise ValueError(f"{timestamp_text(micros)} is not midnight, but a day has no time")
        return (_EPOCH + timedelta(microseconds=micros)).date().isoformat()
    return timestamp_text(micros)
