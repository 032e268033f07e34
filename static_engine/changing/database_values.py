"""Values as the columns of a database take them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import types
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.types import TypeEngine

from streamsql.data.types import MICROSECONDS, DataType, Value, text_of, timestamp_text

_DAY = 86_400 * MICROSECONDS
_SPANS = (types.Interval, INTERVAL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
