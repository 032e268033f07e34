"""Values of databases as payloads hold them."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import msgspec


def plain_value(value: object) -> object:
    """Return a value of a database as payloads hold it."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case bytes() | memoryview():
            return bytes(value).hex()
        case dict() | list():
            return msgspec.json.encode(value).decode()
        case _:
            return value
