"""Options in the WITH clause of a stored table, and the forms of their values."""

import re
from collections.abc import Mapping
from enum import StrEnum

from streamsql.data.durations import parse_duration


class TableSource(StrEnum):
    """Kinds of places where the rows of a stored table are."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"
    SQL = "sql"


_FILE = ("source", "path", "refresh")
TABLE_OPTIONS: Mapping[str, tuple[str, ...]] = {
    TableSource.CSV: (*_FILE, "header", "delimiter"),
    TableSource.PARQUET: _FILE,
    TableSource.JSON: _FILE,
    TableSource.SQL: ("source", "url", "table", "refresh"),
}
"""Options by source."""

SECRET = "secret:"  # noqa: S105  (how a name begins)
"""Begins an address that is looked up by name where it is used: statements hold no password."""
_SECRET_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

_TRUTH = {"true": True, "false": False, "on": True, "off": False, "1": True, "0": False}

LEAST_REFRESH = 1_000_000
"""Shortest time between two readings of a table, in microseconds."""


def needed_options(source: str) -> tuple[str, ...]:
    """Return the options that tables of a source must have."""
    return ("url", "table") if source == TableSource.SQL else ("path",)


def secret_of(url: str) -> str | None:
    """Return the name in `secret:NAME`, or None where an address is written out.

    Raises:
        ValueError: It is no name.
    """
    if not url.startswith(SECRET):
        return None
    name = url.removeprefix(SECRET)
    if not _SECRET_NAME.fullmatch(name):
        raise ValueError(f"{name!r:.80} is not the name of a secret (letters, digits, - and _)")
    return name


def truth_of(text: str) -> bool:
    """Return whether a text says true or false.

    Raises:
        ValueError: It says neither.
    """
    value = _TRUTH.get(text.strip().lower())
    if value is None:
        raise ValueError(f"{text!r:.40} is not true or false")
    return value


def delimiter_of(text: str) -> str:
    """Return the character between the fields of a CSV file; `tab` stands for a tab.

    Raises:
        ValueError: It is not one ASCII character that may stand there.
    """
    delimiter = "\t" if text in ("\\t", "tab") else text
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise ValueError(f"{text!r:.40} is not one ASCII character such as ',' or ';', or 'tab'")
    return delimiter


def refresh_of(text: str) -> int:
    """Return the time between two readings in microseconds.

    Raises:
        ValueError: It is no duration, or shorter than a second.
    """
    try:
        micros = parse_duration(text)
    except ValueError:
        what = f"{text!r:.40} is not a duration such as '30 s', '10 min' or '1 h'"
        raise ValueError(what) from None
    if micros < LEAST_REFRESH:
        raise ValueError(f"{text!r:.40} is shorter than 1 s")
    return micros
