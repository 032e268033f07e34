"""Functions of times. Everything is UTC; a TIMESTAMP outside the years 1 to 9999 gives NULL.

Parts follow PostgreSQL: weeks are ISO weeks beginning on Monday, DOW counts from Sunday 0, ISODOW
from Monday 1. Whole parts are INTEGER; SECOND, MILLISECONDS and EPOCH are DOUBLE with fractions.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from streamsql.algebra.scalar_functions.scalar_numbers import total
from streamsql.data.types import MICROSECONDS, timestamp_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = 60 * MICROSECONDS
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_MONDAY = 4 * _DAY  # 1970-01-05


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _decade(moment: datetime) -> int:
    return moment.year // 10


def _century(moment: datetime) -> int:
    return (moment.year + 99) // 100


def _millennium(moment: datetime) -> int:
    return (moment.year + 999) // 1000


_OF_DATE: dict[str, Callable[[datetime], int]] = {
    "DOW": lambda moment: moment.isoweekday() % 7,
    "ISODOW": lambda moment: moment.isoweekday(),
    "DOY": lambda moment: moment.timetuple().tm_yday,
    "DAY": lambda moment: moment.day,
    "WEEK": lambda moment: moment.isocalendar().week,
    "ISOYEAR": lambda moment: moment.isocalendar().year,
    "MONTH": lambda moment: moment.month,
    "QUARTER": lambda moment: (moment.month + 2) // 3,
    "YEAR": lambda moment: moment.year,
    "DECADE": _decade,
    "CENTURY": _century,
    "MILLENNIUM": _millennium,
}
_OF_TIME: dict[str, Callable[[int], float]] = {
    "MICROSECONDS": lambda micros: micros % _MINUTE,
    "MILLISECONDS": lambda micros: micros % _MINUTE / 1_000,
    "SECOND": lambda micros: micros % _MINUTE / MICROSECONDS,
    "MINUTE": lambda micros: micros // _MINUTE % 60,
    "HOUR": lambda micros: micros // _HOUR % 24,
    "EPOCH": lambda micros: micros / MICROSECONDS,
}
TIMESTAMP_PARTS = (*_OF_TIME, *_OF_DATE)
"""What EXTRACT takes out of a TIMESTAMP."""
INTERVAL_PARTS = (*_OF_TIME, "DAY")
"""What EXTRACT takes out of an INTERVAL; its days are all of its 24 hours."""
DOUBLE_PARTS = ("MILLISECONDS", "SECOND", "EPOCH")
"""Parts with a fraction."""


def _extract(part: str, micros: int) -> float:
    of_time = _OF_TIME.get(part)
    return _OF_DATE[part](_moment(micros)) if of_time is None else of_time(micros)


def _extract_interval(part: str, micros: int) -> float:
    """Return a part of a duration; parts of a negative one are negative."""
    if part == "EPOCH":
        return micros / MICROSECONDS
    length = abs(micros)
    found = length // _DAY if part == "DAY" else _OF_TIME[part](length)
    return found if micros >= 0 else -found


FIXED = {
    "MICROSECONDS": 1,
    "MILLISECONDS": 1_000,
    "SECOND": MICROSECONDS,
    "MINUTE": _MINUTE,
    "HOUR": _HOUR,
    "DAY": _DAY,
}
"""Microseconds of the parts that are all equally long."""
_YEARS: dict[str, Callable[[int], int]] = {
    "YEAR": lambda year: year,
    "DECADE": lambda year: year // 10 * 10,
    "CENTURY": lambda year: (year - 1) // 100 * 100 + 1,
    "MILLENNIUM": lambda year: (year - 1) // 1000 * 1000 + 1,
}
TRUNCATIONS = (*FIXED, "WEEK", "MONTH", "QUARTER", *_YEARS)
"""What DATE_TRUNC cuts at."""


def _truncate(part: str, micros: int) -> int:
    """Return the beginning of the hour, week, … that a time lies in."""
    size = FIXED.get(part)
    if size is not None:
        return micros // size * size
    if part == "WEEK":
        return _bin(7 * _DAY, micros, _MONDAY)
    moment = _moment(micros)
    if part in _YEARS:
        return _micros(datetime(_YEARS[part](moment.year), 1, 1, tzinfo=UTC))
    month = moment.month if part == "MONTH" else (moment.month - 1) // 3 * 3 + 1
    return _micros(datetime(moment.year, month, 1, tzinfo=UTC))


def _bin(stride: int, micros: int, origin: int = 0) -> int:
    """Return the beginning of the stride a time lies in, counted from an origin.

    Raises:
        ValueError: The stride is not positive.
    """
    if stride <= 0:
        raise ValueError
    return (micros - origin) // stride * stride + origin


def _make(  # noqa: PLR0913, PLR0917  (MAKE_TIMESTAMP has six)
    year: int, month: int, day: int, hour: int, minute: int, second: float
) -> int:
    start = _micros(datetime(year, month, day, hour, minute, tzinfo=UTC))
    if not 0 <= second < 60:
        raise ValueError
    return start + round(second * MICROSECONDS)


def _interval_text(micros: int) -> str:
    """Return a duration as its literal is written: `90 s`, `1.5 s`, `-2 s`.

    Examples:
        >>> _interval_text(90_000_000), _interval_text(-1_500_000)
        ('90 s', '-1.5 s')
    """
    whole, rest = divmod(abs(micros), MICROSECONDS)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{'-' if micros < 0 else ''}{whole}{fraction} s"


TIME_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "EXTRACT": total(_extract),
    "EXTRACT INTERVAL": _extract_interval,
    "DATE_TRUNC": total(_truncate),
    "DATE_BIN": total(_bin),
    "TO_TIMESTAMP": total(lambda seconds: round(seconds * MICROSECONDS)),
    "MAKE_TIMESTAMP": total(_make),
    "TIMESTAMP TEXT": timestamp_text,
    "INTERVAL TEXT": _interval_text,
}
"""Strict functions of times by name; times are microseconds."""
