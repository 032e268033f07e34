"""Times as devices write them, as microseconds since 1970 UTC.

A time without a zone is local to ZONE, or UTC. A local time that comes twice (the clock went back)
is the earlier one; one that never comes (the clock went forward) is read with the offset before.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from fractions import Fraction

from streamsql.data.types import EARLIEST, LATEST, MICROSECONDS, timestamp_of
from streamsql.mapping.number_formats import Number, NumberFormat, number_reader
from streamsql.mapping.shown_values import shown

TimeReader = Callable[[object], int]

MAX_TIME_TEXT = 100

_DIGITS = re.compile(r"[+-]?\d{9,20}(?:\.\d{1,9})?", re.ASCII)
_PER_UNIT = {"unix": 1_000_000, "unix_ms": 1_000, "unix_us": 1}
# Every directive of strptime that gives a date, and sets of them that give a whole one.
_WHOLE_DATES = (
    {"c"},
    {"x"},
    {"Y", "m", "d"},
    {"y", "m", "d"},
    {"Y", "j"},
    {"y", "j"},
    {"G", "V", "u"},
)
_DIRECTIVE = re.compile(r"%(.)", re.DOTALL)
_MONTH_NAMES = {"b": "m", "B": "m"}
_KNOWN = frozenset("aAwdbBmyYHIpMSfzZjUWcxXGuV%")


class TimeFormat(StrEnum):
    """The FORMAT of a column of times; a text with `%` is a pattern of strptime instead."""

    AUTO = "auto"
    ISO = "iso"
    UNIX = "unix"
    UNIX_MS = "unix_ms"
    UNIX_US = "unix_us"
    UNIX_NS = "unix_ns"


def time_reader(form: str, zone: tzinfo) -> TimeReader:
    """Return the function that reads times of a format as microseconds since 1970 UTC.

    It raises ValueError for what is no time of that format within the years 1 to 9999.

    Args:
        form: A `TimeFormat` or a pattern such as `%d.%m.%Y %H:%M`; empty: `auto`.
        zone: Of times that name none.

    Raises:
        ValueError: There is no such format, or the pattern does not give a date.

    Examples:
        >>> time_reader("unix_ms", UTC)(1_500), time_reader("", UTC)("2026-01-01T00:00:01")
        (1500000, 1767225601000000)
    """
    if "%" in form:
        return _pattern_reader(form, zone)
    if form not in set(TimeFormat) | {""}:
        raise ValueError(
            f"{form!r:.60} is no format of times: auto, iso, unix, unix_ms, unix_us, unix_ns "
            "or a pattern such as '%d.%m.%Y %H:%M'"
        )
    match TimeFormat(form or "auto"):
        case TimeFormat.AUTO:
            return lambda value: _auto(value, zone)
        case TimeFormat.ISO:
            return lambda value: _iso(value, zone)
        case TimeFormat.UNIX_NS:
            return lambda value: _scaled(_NUMBER(value), 1, 1_000)
        case unix:
            factor = _PER_UNIT[unix]
            return lambda value: _scaled(_NUMBER(value), factor, 1)


def zone_named(name: str) -> tzinfo:
    """Return the time zone of an IANA name; empty: UTC.

    Raises:
        ValueError: There is no such zone; the text names similar ones.
    """
    if not name:
        return UTC
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415  (half a megabyte)

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        from difflib import get_close_matches  # noqa: PLC0415

        near = get_close_matches(name, available_timezones(), n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else "such as Europe/Berlin"
        raise ValueError(f"there is no time zone {name!r:.60}; {hint}") from None


_NUMBER = number_reader(NumberFormat.PLAIN)


def _auto(value: object, zone: tzinfo) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return _by_size(value)
    if isinstance(value, str) and not _DIGITS.fullmatch(value.strip()):
        return _iso(value, zone)
    if isinstance(value, datetime):
        return _moment(value, zone)
    return _by_size(_NUMBER(value))


def _by_size(number: Number) -> int:
    """Return a time that counts seconds, ms, µs or ns, told by its size.

    Seconds up to the year 5138, ms from 1973 to 5138, and so on: each in the last century or the
    next is told right.
    """
    size = number if number >= 0 else -number
    if size < 100_000_000_000:
        return _scaled(number, MICROSECONDS, 1)
    if size < 100_000_000_000_000:
        return _scaled(number, 1_000, 1)
    if size < 100_000_000_000_000_000:
        return _scaled(number, 1, 1)
    return _scaled(number, 1, 1_000)


def _scaled(number: Number, factor: int, divisor: int) -> int:
    if isinstance(number, int):
        return checked_time(number * factor // divisor)
    # Nearest microsecond: 1.1 s is 1,100,000 µs although its double is a little more. A bound
    # first, since a Fraction of 1E+400 is a long number.
    if not -1e22 < number < 1e22:
        raise ValueError(f"{number!r:.40} is no time within the years 1 to 9999")
    return checked_time(round(Fraction(number) * factor / divisor))


def _iso(value: object, zone: tzinfo) -> int:
    if isinstance(value, datetime):
        return _moment(value, zone)
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is no text in ISO 8601, such as 2026-01-31T12:00:00Z")
    try:
        moment = datetime.fromisoformat(_bounded(value))
    except ValueError:
        raise ValueError(f"{shown(value)} is no time in ISO 8601") from None
    return _moment(moment, zone)


def _pattern_reader(pattern: str, zone: tzinfo) -> TimeReader:
    _check_pattern(pattern)

    def read(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value) if value.bit_length() < 128 else ""
        if not isinstance(value, str):
            raise ValueError(f"{shown(value)} is no time in the format {pattern!r:.60}")
        try:
            # The zone is put on below.
            moment = datetime.strptime(_bounded(value), pattern)  # noqa: DTZ007
        except (ValueError, OverflowError):
            raise ValueError(f"{shown(value)} is no time in the format {pattern!r:.60}") from None
        return _moment(moment, zone)

    return read


def _check_pattern(pattern: str) -> None:
    if len(pattern) > MAX_TIME_TEXT:
        raise ValueError(f"a FORMAT has {len(pattern)} characters; the max is {MAX_TIME_TEXT}")
    directives = {found.group(1) for found in _DIRECTIVE.finditer(pattern)}
    if unknown := directives - _KNOWN:
        raise ValueError(f"FORMAT {pattern!r:.60}: %{min(unknown)} is no directive of a time")
    given = {_MONTH_NAMES.get(directive, directive) for directive in directives}
    if not any(whole <= given for whole in _WHOLE_DATES):
        raise ValueError(f"FORMAT {pattern!r:.60} has no complete date: year, month and day")
    try:
        example = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC).strftime(pattern)
        datetime.strptime(example, pattern)  # noqa: DTZ007 - only whether it raises
    except (ValueError, re.error) as error:
        raise ValueError(f"FORMAT {pattern!r:.60} cannot be read: {error!s:.80}") from None


def _moment(moment: datetime, zone: tzinfo) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    try:
        return checked_time(timestamp_of(aware))
    except OverflowError:
        raise ValueError("it is not within the years 1 to 9999") from None


def _bounded(text: str) -> str:
    if len(text) > MAX_TIME_TEXT:
        raise ValueError(f"a time has {len(text)} characters; the max is {MAX_TIME_TEXT}")
    return text.strip()


def checked_time(micros: int) -> int:
    """Return microseconds since 1970 if they are within the years 1 to 9999.

    Raises:
        ValueError: They are not.
    """
    if not is_time(micros):
        raise ValueError(f"{shown(micros)} µs since 1970 is not within the years 1 to 9999")
    return micros


def is_time(micros: int) -> bool:
    """Whether microseconds since 1970 are within the years 1 to 9999."""
    return EARLIEST <= micros < LATEST
