"""Recordings for `--replay`: their format, columns and first time."""

import contextlib
import csv
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gateway.connectors.replay.lines import numbered_lines, refuse
from gateway.connectors.replay.readers import read_csv, read_k7, read_senml
from streamsql.data.types import DataType, coerce
from streamsql.errors import DeploymentError

SAMPLE_ROWS = 1_000
REPLAY_ENDPOINT = "recording"
"""The endpoint that gives a recording's rows, as `trace.sql` names it, too."""
TIME_COLUMNS = ("ts", "time", "timestamp", "datetime", "date")


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that can be replayed.

    Attributes:
        format: k7, csv or senml.
        source: Name of the source its readings feed.
        begins: Event time of the first reading, microseconds since 1970.
        schema: CREATE statement of the source; empty for k7, whose schema is fixed.
        time_column: Column of the event time.
        name_column: Column for the SenML base name, or empty.
    """

    path: Path
    format: str
    source: str
    begins: int
    schema: str = ""
    time_column: str = "ts"
    name_column: str = ""


def inspect(path: Path) -> Recording:
    """Detect what a recording is, from its name and first lines.

    Raises:
        DeploymentError: It is empty, or nothing that can be replayed.
    """
    head = [text for _, text in itertools.islice(numbered_lines(path, refuse), 2)]
    first, second, *_ = [*head, "", ""]
    if not (first.strip() or second.strip()):
        raise DeploymentError(f"recording {path} is empty")
    if first.lstrip().startswith("{") and second.startswith("datetime,src,dst"):
        begins = next((r.ts for r in read_k7(path, None, 0.5, _leave_out)), None)
        return Recording(path, "k7", "link", _known(begins, path))
    if first.lstrip().startswith("["):
        return _senml(path)
    if "," in first:
        return _csv(path)
    raise DeploymentError(
        f"recording {path} is neither a K7 link trace, nor CSV with a header, nor SenML lines",
        hint="K7: a JSON line, then 'datetime,src,dst,…'; SenML: one JSON array per line",
    )


def _leave_out(_complaint: str) -> None:
    """Skip a bad line: the replay counts and names them all."""


def _known(begins: int | None, path: Path) -> int:
    if begins is None:
        raise DeploymentError(
            f"recording {path} has no readings",
            hint="at least one line must have a time: ISO 8601, or seconds since 1970",
        )
    return begins


def _csv(path: Path) -> Recording:
    reader = csv.reader(text for _, text in numbered_lines(path, _leave_out))
    try:
        names = [name.strip().lower() for name in next(reader)]
        _check_header(path, names)
        rows = [row for row in itertools.islice(reader, SAMPLE_ROWS) if len(row) == len(names)]
    except csv.Error as error:
        raise DeploymentError(f"recording {path} is not CSV: {error}") from error
    time_column = next(name for name in names if name in TIME_COLUMNS)
    source = _identifier(path)
    begins = next((r.ts for r in read_csv(path, time_column, _leave_out)), None)
    texts = zip(*rows, strict=True) if rows else ([""] for _ in names)
    columns = [
        (name, DataType.TIMESTAMP if name == time_column else _type_of(values))
        for name, values in zip(names, texts, strict=True)
    ]
    text = _create(source, columns, time_column)
    return Recording(path, "csv", source, _known(begins, path), text, time_column)


def _check_header(path: Path, names: list[str]) -> None:
    """Refuse a header that makes no columns.

    Raises:
        DeploymentError: A column has no name or that of another, or none is the time.
    """
    for position, name in enumerate(names, start=1):
        if not name:
            raise DeploymentError(f"recording {path} line 1: column {position} has no name")
        if names.index(name) != position - 1:
            raise DeploymentError(f"recording {path} line 1: two columns are called {name!r:.60}")
    if not any(name in TIME_COLUMNS for name in names):
        raise DeploymentError(
            f"recording {path} has no time column",
            hint=f"name it one of {', '.join(TIME_COLUMNS)}",
        )


def _senml(path: Path) -> Recording:
    source = _identifier(path)
    rows = list(itertools.islice(read_senml(path, "name", _leave_out), SAMPLE_ROWS))
    kinds: dict[str, DataType] = {"name": DataType.TEXT, "ts": DataType.TIMESTAMP}
    for record in rows:
        for name, value in record.values.items():
            kinds.setdefault(name, _kind_of(value))
    begins = _known(rows[0].ts if rows else None, path)
    text = _create(source, list(kinds.items()), "ts")
    return Recording(path, "senml", source, begins, text, "ts", "name")


def _create(source: str, columns: list[tuple[str, DataType]], time_column: str) -> str:
    listed = ", ".join(f"{_quoted(name)} {dtype}" for name, dtype in columns)
    time = _quoted(time_column)
    return (
        f"CREATE SOURCE {_quoted(source)} ({listed}, "
        f"WATERMARK FOR {time} AS {time} - INTERVAL '5 s')\n"
        f"  WITH (connector = 'replay', endpoint = '{REPLAY_ENDPOINT}', ttl = '1 h');\n"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _type_of(texts: Iterable[str]) -> DataType:
    """Return the narrowest type that every non-empty text converts to."""
    values = [text for text in texts if text]
    if not values:
        return DataType.TEXT
    for dtype in (DataType.INTEGER, DataType.DOUBLE, DataType.BOOLEAN):
        with contextlib.suppress(ValueError):
            for value in values:
                coerce(value, dtype)
            return dtype
    return DataType.TEXT


def _kind_of(value: object) -> DataType:
    if isinstance(value, bool):
        return DataType.BOOLEAN
    return DataType.DOUBLE if isinstance(value, int | float) else DataType.TEXT


def _identifier(path: Path) -> str:
    """Return a source's name made of the file's: letters, digits and underscores."""
    stem = path.name.split(".")[0].lower()
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in stem).strip("_")
    return name if name and not name[0].isdigit() else f"recording_{name}".rstrip("_")
