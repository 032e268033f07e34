"""A column's type and clauses from the values that a field has held."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from streamsql.data.schema import Field
from streamsql.data.types import DataType, Value
from streamsql.mapping.conversions import conversion_of
from streamsql.mapping.source_mapping import ColumnMapping
from streamsql.proposals.unit_words import unit_beside_number

_PAIRS = (
    ("on", "off"), ("open", "closed"), ("opened", "closed"), ("online", "offline"), ("yes", "no"),
    ("locked", "unlocked"), ("lock", "unlock"), ("occupied", "free"), ("enabled", "disabled"),
    ("present", "absent"), ("home", "not_home"), ("up", "down"),
)  # fmt: skip
"""Words for true and false."""

_COUNTED = re.compile(
    r"(.*_)?(id|channel|count|counter|index|seq|sequence|uptime|uptime_sec|lqi|linkquality|frame|"
    r"f_cnt|f_port|port|heap|load_avg|mqtt_count|number|nr|no|address|version|level_id)"
)
"""Names of columns whose numbers are whole for ever."""

TIME_NAMES = (
    "ts", "time", "timestamp", "datetime", "date_time", "last_seen", "received_at", "measured_at",
    "time_stamp", "utc", "unixtime", "unix_time", "epoch",
)  # fmt: skip
"""Names of columns that hold the time of a reading; the first that is there is the event time."""

_NAMES = re.compile(
    r"(.*_)?(id|addr|address|eui|mac|serial|code|version|tag|uid|uuid|ip|key|name|number|phone)"
)
"""Names of columns whose texts are names, though they consist of digits."""
_TIMES = re.compile(r"(.*_)?(ts|time|timestamp|datetime|seen|at|unixtime|utc|epoch)")
FITS_MICROSECONDS = 900_000_000
"""By which the time in a payload may differ from its arrival."""

_YEAR_2001, _YEAR_2100 = 978_307_200, 4_102_444_800
_UNIX = ((1, "unix"), (1_000, "unix_ms"), (1_000_000, "unix_us"), (1_000_000_000, "unix_ns"))
_DATED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", re.DOTALL)
_PADDED = re.compile(r"\s*0\d")
_EXACT = 2**53
_STYLES = (str.lower, str.upper, str.capitalize)

Typed = tuple[DataType, ColumnMapping]


def typed(name: str, values: Sequence[object], zone: str = "") -> Typed | None:
    """Return type and clauses of a column, or None if no type takes all values.

    Args:
        name: Of the column.
        values: At least one, without nulls.
        zone: Of times that name none.
    """
    for candidate in _candidates(name, values, zone):
        if _takes_all(name, candidate, values):
            return candidate
    return None


def fitting_zone(values: Iterable[object], zone: str, arrival: int) -> str:
    """Return a zone if a time among values fits the arrival when read in it; else empty.

    Args:
        values: Of one payload.
        zone: Where the device may be.
        arrival: Of the payload, in microseconds since 1970.
    """
    for value in values:
        if isinstance(value, str) and _DATED.fullmatch(value) and _is_naive(value):
            time = _read(value, ColumnMapping(zone=zone))
            if time is not None and abs(time - arrival) <= FITS_MICROSECONDS:
                return zone
    return ""


def _candidates(name: str, values: Sequence[object], zone: str) -> list[Typed]:
    found: list[Typed] = []
    if all(isinstance(value, bool) for value in values):
        found.append((DataType.BOOLEAN, ColumnMapping()))
    elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        found += _numbers(name, values)
    elif all(isinstance(value, str) for value in values):
        found += _texts(name, [str(value) for value in values], zone)
    return [*found, (DataType.TEXT, ColumnMapping())]


def _numbers(name: str, values: Sequence[object]) -> list[Typed]:
    form = _unix_format(values) if _TIMES.fullmatch(name) else ""
    if form:
        return [(DataType.TIMESTAMP, ColumnMapping(format=form))]
    whole = all(isinstance(value, int) for value in values)
    large = any(isinstance(value, int) and abs(value) >= _EXACT for value in values)
    # A temperature of 21 may be 21.5 next time.
    first = DataType.INTEGER if whole and (large or _COUNTED.fullmatch(name)) else DataType.DOUBLE
    return [(first, ColumnMapping()), (DataType.DOUBLE, ColumnMapping())]


def _texts(name: str, texts: list[str], zone: str) -> list[Typed]:
    if all(_DATED.fullmatch(text) for text in texts):
        zone = zone if all(map(_is_naive, texts)) else ""
        return [(DataType.TIMESTAMP, ColumnMapping(zone=zone))]
    if {text.strip().lower() for text in texts} <= {"true", "false"}:
        return [(DataType.BOOLEAN, ColumnMapping())]
    pair = _pair(set(texts))
    if pair:
        values: tuple[tuple[str, Value], ...] = ((pair[0], True), (pair[1], False))
        return [(DataType.BOOLEAN, ColumnMapping(values=values))]
    if _NAMES.fullmatch(name) or any(map(_PADDED.match, texts)):
        return []
    leading = ColumnMapping(format="leading", unit=unit_beside_number(texts))
    found: list[Typed] = [(DataType.DOUBLE, ColumnMapping())]
    if leading.unit:
        found.append((DataType.DOUBLE, leading))
    return found


def _pair(texts: set[str]) -> tuple[str, str] | None:
    for words in _PAIRS:
        for style in _STYLES:
            yes, no = map(style, words)
            if texts <= {yes, no}:
                return yes, no
    return None


def _unix_format(values: Sequence[object]) -> str:
    for factor, form in _UNIX:
        if all(
            isinstance(value, int | float) and _YEAR_2001 * factor <= value < _YEAR_2100 * factor
            for value in values
        ):
            return form
    return ""


def _is_naive(text: str) -> bool:
    try:
        return datetime.fromisoformat(text.strip()).tzinfo is None
    except ValueError:
        return False


def _read(text: str, origin: ColumnMapping) -> int | None:
    try:
        value = conversion_of(Field("ts", DataType.TIMESTAMP), origin)(text)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def _takes_all(name: str, candidate: Typed, values: Sequence[object]) -> bool:
    dtype, origin = candidate
    try:
        convert = conversion_of(Field(name, dtype), origin)
        for value in values:
            convert(value)
    except ValueError:
        return False
    return True
