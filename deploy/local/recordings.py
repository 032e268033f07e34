"""Recordings given to `--replay`: what they hold, and when they begin."""

import csv
import itertools
import json
from dataclasses import dataclass
from pathlib import Path

from gateway.wrappers.recordings.readers import open_text, read_csv, read_k7, read_senml
from streamsql.data.types import DataType, coerce
from streamsql.errors import DeploymentError

SAMPLE_ROWS = 1_000
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
    """Find out what a recording is, from its name and first lines.

    Raises:
        DeploymentError: It is empty, or nothing that can be replayed.
    """
    with open_text(path) as file:
        try:
            first = file.readline(100_000)
            second = file.readline(100_000)
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise DeploymentError(f"cannot read recording {path}: {error}") from error
    if not first.strip():
        raise DeploymentError(f"recording {path} is empty")
    if first.lstrip().startswith("{") and second.startswith("datetime,src,dst"):
        begins = next((r.ts for r in read_k7(path, "link", None, 0.5)), None)
        return _with_start(path, "k7", "link", begins)
    if first.lstrip().startswith("["):
        return _senml(path)
    if "," in first:
        return _csv(path)
    raise DeploymentError(
        f"recording {path} is neither a K7 link trace, nor CSV with a header, nor SenML lines",
        hint="K7: a JSON line, then 'datetime,src,dst,…'; SenML: one JSON array a line",
    )


def _with_start(path: Path, form: str, source: str, begins: int | None) -> Recording:
    if begins is None:
        raise DeploymentError(f"recording {path} has no readings")
    return Recording(path, form, source, begins)


def _csv(path: Path) -> Recording:
    with open_text(path) as file:
        reader = csv.DictReader(file)
        names = [name for name in reader.fieldnames or () if name]
        rows = list(itertools.islice(reader, SAMPLE_ROWS))
    time_column = next((n for n in names if n.lower() in TIME_COLUMNS), None)
    if time_column is None:
        raise DeploymentError(
            f"recording {path} has no time column", hint=f"name one of {', '.join(TIME_COLUMNS)}"
        )
    columns = [
        (name, DataType.TIMESTAMP if name == time_column else _type_of([r[name] for r in rows]))
        for name in names
    ]
    source = _identifier(path)
    begins = next((r.ts for r in read_csv(path, source, time_column)), None)
    found = _with_start(path, "csv", source, begins)
    text = _create(source, columns, time_column)
    return Recording(path, "csv", source, found.begins, text, time_column)


def _senml(path: Path) -> Recording:
    source = _identifier(path)
    rows = list(itertools.islice(read_senml(path, source, "ts", "name"), SAMPLE_ROWS))
    kinds: dict[str, DataType] = {"name": DataType.TEXT, "ts": DataType.TIMESTAMP}
    for reading in rows:
        for name, value in reading.values.items():
            if name not in kinds:
                kinds[name] = _kind_of(value)
    begins = rows[0].ts if rows else None
    found = _with_start(path, "senml", source, begins)
    text = _create(source, list(kinds.items()), "ts")
    return Recording(path, "senml", source, found.begins, text, "ts", "name")


def _create(source: str, columns: list[tuple[str, DataType]], time_column: str) -> str:
    listed = ", ".join(f"{json.dumps(name)} {dtype}" for name, dtype in columns)
    quoted = json.dumps(time_column)
    return (
        f"CREATE SOURCE {source} ({listed}, WATERMARK FOR {quoted} AS {quoted} - INTERVAL '5 s')\n"
        "  WITH (wrapper = 'replay', ttl = '1 h');\n"
    )


def _type_of(texts: list[str | None]) -> DataType:
    """Return the narrowest type that every non-empty text converts to."""
    values = [text for text in texts if text]
    for dtype in (DataType.INTEGER, DataType.DOUBLE, DataType.BOOLEAN):
        try:
            for value in values:
                coerce(value, dtype)
        except ValueError:
            continue
        return dtype if values else DataType.TEXT
    return DataType.TEXT


def _kind_of(value: object) -> DataType:
    if isinstance(value, bool):
        return DataType.BOOLEAN
    return DataType.DOUBLE if isinstance(value, int | float) else DataType.TEXT


def _identifier(path: Path) -> str:
    stem = path.name.split(".")[0]
    name = "".join(c if c.isalnum() else "_" for c in stem.lower()).strip("_")
    return name if name and not name[0].isdigit() else f"recording_{name}"
