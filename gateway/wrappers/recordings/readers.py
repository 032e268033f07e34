"""Recordings as readings in the order of their lines, which is taken for the order of time.

Each reader streams. A bad line is told to `problem` and left out; the default stops there.
"""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from gateway.connectors.reading import Reading
from gateway.senml import microseconds, rows_of
from gateway.wrappers.recordings.lines import Problem, numbered_lines, open_text, refuse
from streamsql.data.types import DataType, coerce, timestamp_of
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import SenmlRecord

__all__ = ["open_text", "read_csv", "read_k7", "read_senml"]


def read_k7(
    path: Path,
    source: str,
    owned: frozenset[str] | None,
    least: float,
    problem: Problem = refuse,
) -> Iterator[Reading]:
    """Yield link readings of a K7 trace: present while its newest pdr is at least `least`.

    Args:
        path: First line a JSON header, then CSV
            `datetime,src,dst,channel,mean_rssi,pdr,tx_count`, times UTC.
        source: Name of the link source.
        owned: Nodes whose outgoing links are wanted; None means all.
        least: Packet delivery ratio, above 0, below which a link counts as gone.
        problem: Told of bad lines.

    Raises:
        DeploymentError: The file cannot be read.
    """
    for number, row in _table(path, problem, ("datetime", "src", "dst", "pdr"), skip=1):
        try:
            ts = timestamp_of(datetime.fromisoformat(row["datetime"]).replace(tzinfo=UTC))
            ends = {"src": row["src"], "dst": row["dst"]}
            ratio = _ratio(row["pdr"])
        except (ValueError, OverflowError) as error:
            problem(f"{path} line {number}: {error!s:.300}")
            continue
        if owned is not None and ends["src"] not in owned:
            continue
        if ratio < least:
            yield Reading(source, ends, ts, delete=True)
        else:
            yield Reading(source, {**ends, "cost": round(1 / ratio, 4), "pdr": ratio}, ts)


def read_csv(
    path: Path, source: str, time_column: str, problem: Problem = refuse
) -> Iterator[Reading]:
    """Yield a reading per CSV row; the header names the columns, empty fields are NULL.

    Names are taken in lower case.

    Args:
        path: The file.
        source: Name of the source.
        time_column: Column of the event time, in ISO 8601 or seconds since 1970.
        problem: Told of bad lines.

    Raises:
        DeploymentError: The file cannot be read.
    """
    time_column = time_column.lower()
    for number, row in _table(path, problem, (time_column,)):
        try:
            ts = _timestamp(row[time_column])
        except (ValueError, OverflowError) as error:
            problem(
                f"{path} line {number}: {error!s:.300}; column {time_column!r:.60} must hold "
                "ISO times or seconds since 1970"
            )
            continue
        values: dict[str, object] = {name: value for name, value in row.items() if value != ""}
        yield Reading(source, {**values, time_column: ts}, ts)


def read_senml(
    path: Path, source: str, time_column: str, name_column: str, problem: Problem = refuse
) -> Iterator[Reading]:
    """Yield a reading per row of SenML packs, one pack (a JSON array) a line.

    Names of columns are taken in lower case, those of devices as they are.

    Args:
        path: The file.
        source: Name of the source.
        time_column: Column that gets the event time.
        name_column: Column that gets the device's name, or empty.
        problem: Told of bad lines.

    Raises:
        DeploymentError: The file cannot be read.
    """
    for number, line in numbered_lines(path, problem):
        if not line.strip():
            continue
        try:
            rows = [
                (name, microseconds(seconds), values)
                for name, seconds, values in rows_of(decode_json(line.encode(), list[SenmlRecord]))
            ]
        except (ValueError, WireError) as error:
            problem(f"{path} line {number}: {error!s:.300}")
            continue
        for name, ts, values in rows:
            named = {name_column: name} if name_column else {}
            lower = {column.lower(): value for column, value in values.items()}
            yield Reading(source, {**named, **lower, time_column: ts}, ts)


def _table(
    path: Path, problem: Problem, required: tuple[str, ...], skip: int = 0
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (number of its last line, row) of a CSV table with a header, after so many lines.

    Column names become lower case, as those of a source do that are not quoted.

    Raises:
        DeploymentError: The header lacks a required column.
    """
    at = 0

    def texts() -> Iterator[str]:
        nonlocal at
        for number, text in numbered_lines(path, problem):
            at = number
            if number > skip:
                yield text

    reader = csv.reader(texts())
    names: list[str] | None = None
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            problem(f"{path} line {at}: {error!s:.300}")
            continue
        if fields is None:
            return
        if names is None:
            names = [name.strip().lower() for name in fields]
            missing = [name for name in required if name not in names]
            if missing:
                raise DeploymentError(f"{path} line {at}: no column {missing[0]!r:.60}")
        elif len(fields) == len(names):
            yield at, dict(zip(names, fields, strict=True))
        elif fields:
            problem(f"{path} line {at}: {len(fields)} fields instead of {len(names)}")


def _ratio(text: str) -> float:
    ratio = float(text)
    if not 0 <= ratio <= 1:  # also refuses NaN
        raise ValueError(f"pdr {text!r:.40} is not between 0 and 1")
    return ratio


def _timestamp(text: str) -> int:
    try:
        seconds = float(text)
    except ValueError:
        value = coerce(text, DataType.TIMESTAMP)
        if not isinstance(value, int):
            raise ValueError(f"not a time: {text!r:.40}") from None
        return value
    return microseconds(seconds)
