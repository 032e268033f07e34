"""Tables and views of a database, as offers, with their columns and one row.

Everything here blocks and belongs into a thread of its own.
"""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnClause, Connection, column, inspect, select, table
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.exc import SQLAlchemyError

from gateway.connectors.sql.sql_values import plain_value
from streamsql.data.types import DataType
from streamsql.mapping.offers import MAX_RECORDS, OfferedRecord, OfferedValue

_OF_SYSTEMS = ("information_schema", "pg_")
_TYPES = (
    (bool, DataType.BOOLEAN),
    (int, DataType.INTEGER),
    (float, DataType.DOUBLE),
    (Decimal, DataType.DOUBLE),
    (datetime, DataType.TIMESTAMP),
)
_GROWING = (DataType.INTEGER, DataType.TIMESTAMP)


def tables_of(connection: Connection) -> list[OfferedRecord]:
    """Return the tables and views of a database, at most 100.

    Raises:
        SQLAlchemyError: It does not tell.
    """
    inspector = inspect(connection)
    found: list[OfferedRecord] = []
    for schema, name in _names(inspector):
        offered = _offered(connection, inspector, schema, name)
        if offered is not None:
            found.append(offered)
        if len(found) >= MAX_RECORDS:
            break
    return found


def _names(inspector: Inspector) -> Iterator[tuple[str | None, str]]:
    """Yield (schema, name) of tables and views; the schema of the connection is None."""
    others = [
        schema
        for schema in inspector.get_schema_names()
        if schema != inspector.default_schema_name and not schema.startswith(_OF_SYSTEMS)
    ]
    for schema in (None, *others):
        for name in (*inspector.get_table_names(schema), *inspector.get_view_names(schema)):
            yield schema, name


def _offered(
    connection: Connection, inspector: Inspector, schema: str | None, name: str
) -> OfferedRecord | None:
    """Return a table, or None where it has no columns, or may not be read."""
    try:
        columns = inspector.get_columns(name, schema)
        key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
        listed: list[ColumnClause[Any]] = [column(each["name"]) for each in columns]
        row = connection.execute(
            select(*listed).select_from(table(name, schema=schema)).limit(1)
        ).first()
    except (SQLAlchemyError, ValueError, OverflowError):
        connection.rollback()
        return None
    samples = [None] * len(columns) if row is None else [plain_value(value) for value in row]
    values = tuple(
        OfferedValue(each["name"], each["name"], _type_of(each["type"]), sample=sample)  # type: ignore[arg-type]
        for each, sample in zip(columns, samples, strict=True)
    )
    if not values:
        return None
    whole = name if schema is None else f"{schema}.{name}"
    watermark = _growing(values, key)
    options = {"table": whole, **({"watermark": watermark} if watermark else {})}
    return OfferedRecord(whole, values, options)


def _type_of(kind: Any) -> DataType | None:
    try:
        found = kind.python_type
    except NotImplementedError:
        return None
    if found is str:
        return DataType.TEXT
    return next((dtype for known, dtype in _TYPES if issubclass(found, known)), None)


def _growing(values: tuple[OfferedValue, ...], key: list[str]) -> str:
    """Return the column that likely grows from row to row, or empty: a serial number, a time."""
    types = {value.name: value.type for value in values}
    if len(key) == 1 and types.get(key[0]) in _GROWING:
        return key[0]
    times = [name for name, dtype in types.items() if dtype == DataType.TIMESTAMP]
    return times[0] if times else ""
