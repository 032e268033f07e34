"""Rows of a database's table that hold given keys, found by the database itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Engine,
    any_,
    bindparam,
    column,
    create_engine,
    select,
    tuple_,
)
from sqlalchemy import table as sql_table
from sqlalchemy.engine import URL, Connection
from sqlalchemy.pool import NullPool
from sqlalchemy.sql import quoted_name, sqltypes

from static_engine.sources.conditions.pushed_conditions import pushed
from static_engine.sources.databases.database_reader import (
    BATCH_ROWS,
    IDLE_SECONDS,
    columns_of,
    comparable_columns,
    connect_arguments,
    database_errors,
    prepare_session,
    shown,
)
from static_engine.sources.time_limit import TimeLimit
from static_engine.sources.values.column_matching import match_columns
from static_engine.sources.values.conversion import batch_of_values
from streamsql.algebra.expressions import Expression
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType, Row

_ARRAY_KEYS = 5_000
_LISTED_VALUES = 500
"""SQLite takes 999 parameters or more; each value is one."""


class NoLookupError(Exception):
    """The database might compare the keys in another way than we do; nobody is told."""


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """Rows wanted of a table.

    Attributes:
        keys: Columns that hold the keys.
        conditions: Over the table's columns; the database may leave out rows that fail one.
        columns: Those that are read; the others are NULL.
        key_types: Of the keys.
    """

    keys: tuple[int, ...]
    key_types: tuple[DataType, ...]
    conditions: tuple[Expression, ...] = ()
    columns: frozenset[int] = field(default_factory=frozenset)


class DatabaseLookup:
    """One table of a database, asked for keys; at least the rows that hold them come back.

    Args:
        definition: The table as declared.
        url: The database.
        name: Its name there, `table` or `schema.table`.
        request: What is wanted.

    Attributes:
        conditions: Those that the database evaluates.
    """

    def __init__(
        self, definition: SourceDefinition, url: URL, name: str, request: LookupRequest
    ) -> None:
        self._definition, self._url, self._name, self._request = definition, url, name, request
        self._where = f"table {definition.name}: database {shown(url)}"
        self.conditions: tuple[Expression, ...] = ()

    def batches(self, keys: Sequence[Row]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the declared types, by one SELECT for some thousand keys.

        Raises:
            NoLookupError: A key column is of a type that databases compare in other ways.
            TableMissingError: The database has no such table.
            TableError: It does not answer, lacks a column, or holds a value of another type.
        """
        limit = TimeLimit(IDLE_SECONDS)
        with database_errors(self._where, self._url, limit):
            engine = create_engine(
                self._url, poolclass=NullPool, connect_args=connect_arguments(self._url)
            )
            limit.watch(engine)
            with engine.connect() as connection:
                for batch in self._found(engine, connection, keys):
                    limit.extend()
                    yield batch
                    limit.extend()

    def _found(
        self, engine: Engine, connection: Connection, keys: Sequence[Row]
    ) -> Iterator[pa.RecordBatch]:
        prepare_session(connection)
        schema, _, plain = self._name.rpartition(".")
        found = columns_of(connection, plain, schema or None, self._where)
        places = match_columns(self._definition, [str(c["name"]) for c in found], self._name)
        chosen = [found[place] for place in places]
        safe = comparable_columns(chosen, self._definition.schema.dtypes)
        for position, wanted in zip(self._request.keys, self._request.key_types, strict=True):
            if position not in safe or wanted != self._definition.schema.dtypes[position]:
                raise NoLookupError(
                    f"{self._where}: column {chosen[position]['name']} is "
                    f"{chosen[position]['type']}, by which keys are not looked up"
                )
        clauses = [(c, pushed(c, safe)) for c in self._request.conditions]
        self.conditions = tuple(c for c, clause in clauses if clause is not None)
        needed = self._request.columns | set(self._request.keys)
        read = sorted(needed)
        # Untyped, as when the table is read whole: values come as the driver gives them.
        plainly: list[ColumnElement[Any]] = [
            column(quoted_name(str(chosen[p]["name"]), quote=True)) for p in read
        ]
        source = sql_table(quoted_name(plain, quote=True), schema=schema or None)
        query = select(*plainly).select_from(source)
        query = query.where(*(clause for _, clause in clauses if clause is not None))
        row = 1
        for condition in _by_keys([safe[p] for p in self._request.keys], keys, engine):
            # Not all at once: a key may have any number of rows, and who asks stops in time.
            streaming = connection.execution_options(yield_per=BATCH_ROWS)
            width = len(self._definition.schema)
            place = {p: n for n, p in enumerate(read)}
            where = f"table {self._definition.name}: {self._name}"
            with streaming.execute(query.where(condition)) as result:
                for values in result.partitions():
                    rows = [
                        [v[place[p]] if p in place else None for p in range(width)] for v in values
                    ]
                    yield batch_of_values(self._definition, rows, row, where)
                    row += len(rows)


def _by_keys(
    columns: list[ColumnElement[Any]], keys: Sequence[Row], engine: Engine
) -> Iterator[ColumnElement[bool]]:
    """Yield conditions for some keys each."""
    # No text of a database holds the character 0; PostgreSQL refuses even to be asked.
    rest = iter([k for k in keys if not any(isinstance(v, str) and "\0" in v for v in k)])
    if len(columns) == 1 and engine.dialect.name == "postgresql":
        whole = isinstance(columns[0].type, sqltypes.Integer)
        kind = ARRAY(sqltypes.BigInteger() if whole else sqltypes.Text())
        while chunk := list(islice(rest, _ARRAY_KEYS)):
            values = [key[0] for key in chunk]
            yield columns[0] == any_(bindparam(None, values, type_=kind))
        return
    while chunk := list(islice(rest, _LISTED_VALUES // len(columns))):
        if len(columns) == 1:
            yield columns[0].in_([key[0] for key in chunk])
        else:
            yield tuple_(*columns).in_(chunk)
