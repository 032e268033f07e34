"""Recordings as records in the order of their lines, which is taken for the order of time.

Each reader streams. A bad line is told to `problem` and left out; the default stops there.
"""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from gateway.connectors.replay.lines import Problem, numbered_lines, open_text, refuse
from streamsql.data.types import DataType, coerce, timestamp_of
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import SenmlRecord
from streamsql.wire.senml import microseconds, rows_of

__all__ = ["Recorded", "open_text", "read_csv", "read_k7", "read_senml"]


class Recorded(NamedTuple):
    """A record of a recording.

    Attributes:
        values: By name, without the time.
        ts: Event time in microseconds since 1970 UTC.
        gone: Whether it says that its row is no more.
    """

    values: dict[str, object]
    ts: int
    gone: bool = False


def read_k7(
    path: Path,
    owned: frozenset[str] | None,
    least: float,
    problem: Problem = refuse,
) -> Iterator[Recorded]:
    """Yield the links of a K7 trace: present while its newest pdr is at least `least`.

    Args:
        path: First line a JSON header, then CSV
            `datetime,src,dst,channel,mean_rssi,pdr,tx_count`, times UTC.
        owned: Nodes whose outgoing links are wanted; None means all.
        least: Packet delivery ratio, above 0, below which a link counts as gone.
        problem: Told of bad lines.

    Raises:
        DeploymentError: The file cannot be read.
    """
    for number, row in _table(path, problem, ("datetime", "src", "dst", "pdr"), skip=1):
        try:
            ts = timestamp_of(datetime.fromisoformat(row["datetime"]).replace(tzinfo=UTC))
            ends: dict[str, object] = {"src": row["src"], "dst": row["dst"]}
            ratio = _ratio(row["pdr"])
        except (ValueError, OverflowError) as error:
            problem(f"{path} line {number}: {error!s:.300}")
            continue
        if owned is not None and ends["src"] not in owned:
            continue
        if ratio < least:
            yield Recorded(ends, ts, gone=True)
        else:
            yield Recorded({**ends, "cost": round(1 / ratio, 4), "pdr": ratio}, ts)


def read_csv(path: Path, time_column: str, problem: Problem = refuse) -> Iterator[Recorded]:
    """Yield a record per CSV row; the header names its values, empty fields are NULL.

    Names are taken in lower case.

    Args:
        path: The file.
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
        values: dict[str, object] = {name: value or None for name, value in row.items()}
        del values[time_column]
        yield Recorded(values, ts)


def read_senml(path: Path, name_column: str, problem: Problem = refuse) -> Iterator[Recorded]:
    """Yield a record per row of SenML packs, one pack (a JSON array) a line.

    Names of columns are taken in lower case, those of devices as they are.

    Args:
        path: The file.
        name_column: What the device's name is called among the values, or empty.
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
            named: dict[str, object] = {name_column: name} if name_column else {}
            lower = {column.lower(): value for column, value in values.items()}
            yield Recorded({**named, **lower}, ts)


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
