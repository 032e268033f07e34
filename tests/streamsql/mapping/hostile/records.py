"""Hostile values by their addresses, as connectors hand them over that decode payloads themselves.

Modbus, SNMP, OPC UA, BACnet and SQL give numbers, texts, bytes, times and lists; a database gives
whatever its driver makes of a row, nested JSON among it.
"""

import datetime as dt
import decimal
import random
import uuid
from collections.abc import Iterator

from tests.streamsql.mapping.hostile.payloads import FIELDS, VALUES

DEPTH = 100_000

# Of years 1 and 9999, without a zone, as drivers of databases give them.
_FIRST, _LAST = dt.datetime(1, 1, 1), dt.datetime.max  # noqa: DTZ001, DTZ901
_PLAIN: tuple[object, ...] = (
    0, -1, 1, 21.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), float("-inf"), True, False,
    None, 2**63, -(2**64), 10**400, -(10**5_000), "", "ON", "21,5", "x" * 4_001, "\ud800", "\0",
    b"", b"\xff\xfe", b"x" * 5_000, bytearray(b"ab"), [], {}, (), [1, 2, 3], [None] * 1_000,
    {"d": 1}, {1: 2}, object, 1j, range(3), frozenset({1}), uuid.UUID(int=7),
    decimal.Decimal("NaN"), decimal.Decimal("Infinity"), decimal.Decimal("1E+999999"),
    decimal.Decimal("21.5"), _FIRST, _LAST,
    _FIRST.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))),
    _LAST.replace(tzinfo=dt.timezone(dt.timedelta(hours=-14))),
    dt.date.min, dt.date.max, dt.time(23, 59), dt.timedelta.max,
)  # fmt: skip
_TEXTS = tuple(text.strip('"') for text in VALUES)
_ADDRESSES = (*FIELDS, "holding:0", "1.3.6.1.2.1.1.3.0", "ns=2;s=a", "analog-input:3", "@device")


def hostile_records(seed: int, count: int) -> Iterator[dict[str, object]]:
    """Yield values by address."""
    rng = random.Random(seed)
    for _ in range(count):
        yield {
            rng.choice(_ADDRESSES): rng.choice(_PLAIN if rng.randrange(3) else _TEXTS)
            for _ in range(rng.randrange(8))
        }


def large_records() -> Iterator[dict[str, object]]:
    """Yield values that are too large or too deep for anything."""
    deep_list: object = 1
    deep_dict: object = 1
    for _ in range(DEPTH):
        deep_list, deep_dict = [deep_list], {"d": deep_dict}
    for value in (deep_list, deep_dict, "9" * 1_000_001, b"x" * 1_000_001, [1] * 1_000_000):
        yield dict.fromkeys(FIELDS, value)
    yield {f"d{number}": number for number in range(100_000)}
