"""The data types of StreamSQL and the Python values that represent them.

| type      | Python value                                            |
|-----------|---------------------------------------------------------|
| BOOLEAN   | bool                                                    |
| INTEGER   | int, 64-bit range on the wire                           |
| DOUBLE    | float, finite                                           |
| TEXT      | str                                                     |
| TIMESTAMP | int, microseconds since 1970-01-01 00:00:00 UTC         |
| INTERVAL  | int, microseconds                                       |
| NULL      | the type of a bare NULL before it meets another type    |

Times are integers so that windows, expiry and arithmetic on them are exact.
"""

import enum
import math
from datetime import UTC, datetime, timedelta

Value = bool | int | float | str | None
Row = tuple[Value, ...]

MICROSECONDS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = -62_135_596_800_000_000
"""The year 1; an event is from between here and `LATEST`, so that sums of times fit 64 bits."""
LATEST = 253_402_300_800_000_000
"""The year 10000."""
LEAST_TIME, GREATEST_TIME = -(2**63), 2**63 - 1
"""The bounds of TIMESTAMP in other columns than event times, as of INTEGER."""


class DataType(enum.StrEnum):
    """A column type."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    DOUBLE = "DOUBLE"
    TEXT = "TEXT"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"
    NULL = "NULL"

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic applies: INTEGER or DOUBLE."""
        return self in (DataType.INTEGER, DataType.DOUBLE)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """Return the type both sides convert to implicitly, or None when there is none.

    Examples:
        >>> common_type(DataType.INTEGER, DataType.DOUBLE)
        <DataType.DOUBLE: 'DOUBLE'>
        >>> common_type(DataType.TEXT, DataType.DOUBLE) is None
        True
    """
    if right in {left, DataType.NULL}:
        return left
    if left == DataType.NULL:
        return right
    if left.is_numeric and right.is_numeric:
        return DataType.DOUBLE
    return None


def conforms(value: object, dtype: DataType) -> bool:
    """Whether a Python value is a legal value of a type; None always is.

    Examples:
        >>> conforms(1, DataType.DOUBLE), conforms(True, DataType.INTEGER)
        (False, False)
    """
    if value is None:
        return True
    match dtype:
        case DataType.BOOLEAN:
            return isinstance(value, bool)
        case DataType.INTEGER | DataType.TIMESTAMP | DataType.INTERVAL:
            return (
                isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
            )
        case DataType.DOUBLE:
            return isinstance(value, float) and math.isfinite(value)
        case DataType.TEXT:
            return isinstance(value, str)
        case DataType.NULL:
            return False


def coerce(value: object, dtype: DataType) -> Value:
    """Turn a value from outside (JSON, CSV, a device) into a legal value of a type.

    Raises:
        ValueError: It cannot be represented in that type; the text says why.

    Examples:
        >>> coerce(3, DataType.DOUBLE), coerce("7", DataType.INTEGER), coerce("on", DataType.TEXT)
        (3.0, 7, 'on')
        >>> coerce("2026-01-01T00:00:01Z", DataType.TIMESTAMP)
        1767225601000000
    """
    if value is None or conforms(value, dtype):
        return value  # type: ignore[return-value]
    try:
        match dtype:
            case DataType.BOOLEAN:
                return _to_boolean(value)
            case DataType.INTEGER | DataType.INTERVAL:
                return _to_integer(value)
            case DataType.DOUBLE:
                return _to_double(value)
            case DataType.TIMESTAMP:
                return _to_timestamp(value)
            case DataType.TEXT if isinstance(value, bool | int | float):
                return text_of(value)
            case _:
                pass
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{value!r:.60} is not a {dtype}: {error!s:.100}") from None
    raise ValueError(f"{value!r:.60} is not a {dtype}")


def _to_boolean(value: object) -> bool:
    words = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    if value in (0, 1) and isinstance(value, int | float):
        return bool(value)
    raise ValueError("expected true or false")


def _to_integer(value: object) -> int:
    if isinstance(value, bool):
        raise ValueError("expected a whole number")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("it has a fraction")
    if not isinstance(value, int | float | str):
        raise ValueError("expected a whole number")
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError("it does not fit 64 bits")
    return number


def _to_double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("expected a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("it is not finite")
    return number


def _to_timestamp(value: object) -> int:
    if isinstance(value, float):
        return _to_integer(float(round(value * MICROSECONDS)))
    if isinstance(value, str):
        moment = datetime.fromisoformat(value.strip())
        return timestamp_of(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    raise ValueError("expected ISO 8601 text or seconds since 1970")


def timestamp_of(moment: datetime) -> int:
    """Return an aware datetime as microseconds since 1970 UTC."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def timestamp_text(micros: int) -> str:
    """Return ISO 8601 text in UTC, with a fraction only where there is one.

    Examples:
        >>> timestamp_text(1767225601000000)
        '2026-01-01T00:00:01Z'
    """
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return str(micros)
    return moment.isoformat().replace("+00:00", "Z")


def text_of(value: Value) -> str:
    """Return a value as CAST(... AS TEXT) writes it.

    Examples:
        >>> text_of(True), text_of(2.0), text_of(7), text_of(-0.0)
        ('true', '2.0', '7', '0.0')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(unsigned(value))


def unsigned(value: Value) -> Value:
    """Return a value without the sign of a zero.

    Rows with 0.0 and -0.0 are equal, so which of both a set of rows has kept must not show: what
    would tell them apart (texts, ATAN2, code of users) takes its arguments without it.
    """
    return value + 0.0 if isinstance(value, float) else value


def display(value: Value, dtype: DataType) -> Value:
    """Return a value as it is shown to people and sent as JSON.

    Times become ISO text, intervals seconds; everything else stays as it is.
    """
    if value is None or isinstance(value, bool):
        return value
    if dtype == DataType.TIMESTAMP and isinstance(value, int):
        return timestamp_text(value)
    if dtype == DataType.INTERVAL and isinstance(value, int):
        return value / MICROSECONDS
    return value
