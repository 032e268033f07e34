"""The WITH clause of a stored table, checked."""

import difflib
import re
from dataclasses import dataclass

from static_engine.sources.errors import TableError
from streamsql.catalog.definitions import SourceDefinition

_FILES = {"source", "path", "refresh"}
KNOWN_OPTIONS: dict[str, frozenset[str]] = {
    "csv": frozenset(_FILES | {"header", "delimiter"}),
    "parquet": frozenset(_FILES),
    "json": frozenset(_FILES),
    "sql": frozenset({"source", "url", "table", "refresh"}),
}
"""Legal options by source."""

_UNITS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_UNITS |= {"d": 86_400, "day": 86_400}
_TRUTH = {"true": True, "false": False, "on": True, "off": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Where a table's rows are and when to look again.

    Attributes:
        source: csv, parquet, json or sql.
        path: File or folder as written; empty for sql.
        url: SQLAlchemy address; sql only.
        table: Table or `schema.table` in the database; sql only.
        header: Whether the first line of a CSV file names the columns.
        delimiter: Between fields of a CSV file.
        refresh: Seconds between two readings; None means only when a file changes.
    """

    source: str
    path: str = ""
    url: str = ""
    table: str = ""
    header: bool = True
    delimiter: str = ","
    refresh: float | None = None


def table_options(definition: SourceDefinition) -> TableOptions:
    """Return the options of a table's definition.

    Raises:
        TableError: One is unknown, missing or malformed.
    """
    options = dict(definition.options)
    source = options.get("source", "").lower()
    if source not in KNOWN_OPTIONS:
        known = ", ".join(KNOWN_OPTIONS)
        what = f"has the unknown source {source!r:.40}" if source else "names no source"
        raise TableError(
            f"table {definition.name} {what}", hint=f"WITH (source = '…'), one of {known}"
        )
    for name in options:
        _check_known(definition.name, name, source)
    for name in ("url", "table") if source == "sql" else ("path",):
        if not options.get(name):
            raise TableError(
                f"table {definition.name}: source {source} needs the option {name}",
                hint=f"WITH (source = '{source}', {name} = '…')",
            )
    return TableOptions(
        source=source,
        path=options.get("path", ""),
        url=options.get("url", ""),
        table=options.get("table", ""),
        header=_truth(definition.name, options.get("header", "true")),
        delimiter=_delimiter(definition.name, options.get("delimiter", ",")),
        refresh=_refresh(definition.name, options.get("refresh")),
    )


def seconds_of(text: str) -> float:
    """Return a duration such as '10 min' in seconds.

    Raises:
        ValueError: It is none.

    Examples:
        >>> seconds_of("10 min"), seconds_of("1.5 h")
        (600.0, 5400.0)
    """
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]+)\s*", text.lower())
    unit = _UNITS.get(found[2], _UNITS.get(found[2].removesuffix("s"))) if found else None
    if found is None or unit is None:
        raise ValueError(f"{text!r:.40} is not a duration such as '30 s', '10 min' or '1 h'")
    return float(found[1]) * unit


def _check_known(table: str, name: str, source: str) -> None:
    known = KNOWN_OPTIONS[source]
    if name in known:
        return
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise TableError(
        f"table {table}: source {source} has no option {name!r:.40}",
        hint=f"{hint}known: {', '.join(sorted(known))}",
    )


def _truth(table: str, text: str) -> bool:
    value = _TRUTH.get(text.strip().lower())
    if value is None:
        raise TableError(f"table {table}: header is {text!r:.40}, not true or false")
    return value


def _delimiter(table: str, text: str) -> str:
    delimiter = "\t" if text in ("\\t", "tab") else text
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise TableError(
            f"table {table}: delimiter {text!r:.40} is not one ASCII character",
            hint="use ',' or ';' or 'tab'",
        )
    return delimiter


def _refresh(table: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise TableError(f"table {table}: refresh {error}") from None
    if seconds < 1:
        raise TableError(f"table {table}: refresh {text!r} is shorter than 1 s")
    return seconds
