"""Options in the WITH clause of a stored table, and the forms of their values."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

from streamsql.data.durations import parse_duration


class TableSource(StrEnum):
    """Kinds of places where the rows of a stored table are."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"
    SQL = "sql"
    GEOJSON = "geojson"
    IMDF = "imdf"
    ICS = "ics"
    RDF = "rdf"
    ICEBERG = "iceberg"
    DELTA = "delta"
    LAKE = "lake"


_FILE = ("source", "path", "refresh")
TABLE_OPTIONS: Mapping[str, tuple[str, ...]] = {
    TableSource.CSV: (*_FILE, "header", "delimiter"),
    TableSource.PARQUET: _FILE,
    TableSource.JSON: _FILE,
    TableSource.SQL: ("source", "url", "table", "refresh"),
    TableSource.GEOJSON: _FILE,
    TableSource.IMDF: (*_FILE, "layer"),
    TableSource.ICS: (*_FILE, "since", "until"),
    TableSource.RDF: (*_FILE, "layer"),
    TableSource.ICEBERG: _FILE,
    TableSource.DELTA: _FILE,
    TableSource.LAKE: ("source",),
}
"""Options by source. A table without the option source is one of the lake."""

CHANGED_SOURCES = (TableSource.LAKE, TableSource.SQL)
"""Tables of these take INSERT, UPDATE, DELETE and MERGE. Files are their owner's."""

SUFFIXES: Mapping[str, tuple[str, ...]] = {
    TableSource.GEOJSON: (".geojson", ".json"),
    TableSource.IMDF: (".geojson",),
    TableSource.RDF: (".ttl", ".nt", ".n3", ".rdf", ".xml"),
}
"""Ends of the names of files in a folder that is a table; of other sources, their own name."""

RDF_LAYERS = ("entities", "relations", "values", "triples")
_LAYER = re.compile(r"[a-z][a-z_]{0,39}")

SECRET = "secret:"  # noqa: S105  (how a name begins)
"""Begins an address that is looked up by name where it is used: statements hold no password."""
_SECRET_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

_TRUTH = {"true": True, "false": False, "on": True, "off": False, "1": True, "0": False}

LEAST_REFRESH = 1_000_000
"""Shortest time between two readings of a table, in microseconds."""


def needed_options(source: str) -> tuple[str, ...]:
    """Return the options that tables of a source must have."""
    match source:
        case TableSource.SQL:
            return ("url", "table")
        case TableSource.IMDF | TableSource.RDF:
            return ("path", "layer")
        case TableSource.LAKE:
            return ()
        case _:
            return ("path",)


def layer_of(text: str, source: str) -> str:
    """Return the layer of a model or a map that a table holds.

    Raises:
        ValueError: There is no such layer.
    """
    layer = text.strip().lower()
    if source == TableSource.RDF and layer not in RDF_LAYERS:
        raise ValueError(f"{text!r:.40} is none of {', '.join(RDF_LAYERS)}")
    if not _LAYER.fullmatch(layer):
        raise ValueError(f"{text!r:.40} is not the name of a layer, such as 'unit' or 'level'")
    return layer


def moment_of(text: str) -> datetime:
    """Return a day or a time of a calendar's interval; without a zone it is UTC.

    Raises:
        ValueError: It is neither.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r:.40} is not a day or time such as '2026-01-31'") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


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
