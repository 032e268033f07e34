"""The WITH clause of a stored table, checked."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.table_options import (
    TABLE_OPTIONS,
    TableSource,
    delimiter_of,
    layer_of,
    moment_of,
    needed_options,
    refresh_of,
    truth_of,
)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The place of a table's rows, and the interval between readings.

    Attributes:
        path: File or folder as written; empty for sql and lake.
        url: SQLAlchemy address; sql only.
        table: Table or `schema.table` in the database; sql only.
        header: Whether the first line of a CSV file names the columns.
        delimiter: Between fields of a CSV file.
        layer: Of a model or a map; empty for others.
        interval: Of the occurrences in a calendar; None: its events as they are written.
        refresh: Seconds between two readings; None means only when a file changes.
    """

    source: TableSource
    path: str = ""
    url: str = ""
    table: str = ""
    header: bool = True
    delimiter: str = ","
    layer: str = ""
    interval: tuple[datetime, datetime] | None = None
    refresh: float | None = None


def table_options(definition: SourceDefinition) -> TableOptions:
    """Return the options of a table's definition.

    Raises:
        TableError: One is unknown, missing or malformed.
    """
    options = dict(definition.options)
    source = options.get("source", TableSource.LAKE).lower()
    if source not in TABLE_OPTIONS:
        known = ", ".join(TABLE_OPTIONS)
        raise TableError(
            f"table {definition.name} has the unknown source {source!r:.40}",
            hint=f"WITH (source = '…'), one of {known}",
        )
    for name in options:
        _check_known(definition.name, name, source)
    for name in needed_options(source):
        if not options.get(name):
            raise TableError(
                f"table {definition.name}: source {source} needs the option {name}",
                hint=f"WITH (source = '{source}', {name} = '…')",
            )
    return TableOptions(
        source=TableSource(source),
        path=options.get("path", ""),
        url=options.get("url", ""),
        table=options.get("table", ""),
        header=_value(definition, "header", True, truth_of),
        delimiter=_value(definition, "delimiter", ",", delimiter_of),
        layer=_value(definition, "layer", "", lambda text: layer_of(text, source)),
        interval=_interval(definition),
        refresh=_value(definition, "refresh", None, _seconds),
    )


def _interval(definition: SourceDefinition) -> tuple[datetime, datetime] | None:
    since = _value(definition, "since", None, moment_of)
    until = _value(definition, "until", None, moment_of)
    if since is None or until is None:
        return None
    if since >= until:
        raise TableError(f"table {definition.name}: until must be later than since")
    return since, until


def _check_known(table: str, name: str, source: str) -> None:
    known = TABLE_OPTIONS[source]
    if name in known:
        return
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise TableError(
        f"table {table}: source {source} has no option {name!r:.40}",
        hint=f"{hint}known: {', '.join(sorted(known))}",
    )


T = TypeVar("T")
D = TypeVar("D")


def _value(definition: SourceDefinition, name: str, default: D, read: Callable[[str], T]) -> T | D:
    """Return an option's value.

    Raises:
        TableError: It is malformed.
    """
    text = dict(definition.options).get(name)
    if text is None:
        return default
    try:
        return read(text)
    except ValueError as error:
        raise TableError(f"table {definition.name}: {name} {error}") from None


def _seconds(text: str) -> float:
    return refresh_of(text) / 1_000_000
