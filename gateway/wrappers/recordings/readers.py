"""Recordings as readings in order of time. Each reader streams; nothing is held but one line."""

import csv
import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec

from gateway.senml import rows_of
from gateway.wrappers.wrapper import Reading
from streamsql.data.types import MICROSECONDS, DataType, coerce, timestamp_of
from streamsql.errors import DeploymentError
from streamsql.wire.messages import SenmlRecord

MAX_LINE = 1_000_000


def open_text(path: Path) -> IO[str]:
    """Open a text file, gzip or plain.

    Raises:
        DeploymentError: It cannot be opened.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        if packed:
            return gzip.open(path, "rt", encoding="utf-8", newline="")
        return path.open("r", encoding="utf-8", newline="")
    except OSError as error:
        raise DeploymentError(f"cannot read recording {path}: {error.strerror}") from error


def read_k7(
    path: Path, source: str, owned: frozenset[str] | None, least: float
) -> Iterator[Reading]:
    """Yield link readings of a K7 trace: present while its newest pdr is at least `least`.

    Args:
        path: First line a JSON header, then CSV
            `datetime,src,dst,channel,mean_rssi,pdr,tx_count`, times UTC.
        source: Name of the link source.
        owned: Nodes whose outgoing links are wanted; None means all.
        least: Packet delivery ratio below which a link counts as gone.

    Raises:
        DeploymentError: A line is wrong; names it.
    """
    with open_text(path) as file:
        file.readline(MAX_LINE)
        for number, row in enumerate(csv.DictReader(file), start=3):
            try:
                ts = timestamp_of(datetime.fromisoformat(row["datetime"]).replace(tzinfo=UTC))
                ends = {"src": row["src"], "dst": row["dst"]}
                ratio = float(row["pdr"])
            except (KeyError, TypeError, ValueError) as error:
                raise DeploymentError(f"{path} line {number}: {error}") from error
            if owned is not None and ends["src"] not in owned:
                continue
            if ratio < least:
                yield Reading(source, ends, ts, delete=True)
            else:
                values = {**ends, "cost": round(1 / ratio, 4), "pdr": ratio}
                yield Reading(source, values, ts)


def read_csv(path: Path, source: str, time_column: str) -> Iterator[Reading]:
    """Yield a reading per CSV row; the header names the columns, empty fields are NULL.

    Raises:
        DeploymentError: The time column is missing, or a line is wrong; names it.
    """
    with open_text(path) as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                ts = _timestamp(row[time_column])
            except (KeyError, TypeError, ValueError) as error:
                raise DeploymentError(
                    f"{path} line {number}: {error}",
                    hint=f"column {time_column} must hold ISO times or seconds since 1970",
                ) from error
            values: dict[str, object] = {
                name: value for name, value in row.items() if name and value not in ("", None)
            }
            values[time_column] = ts
            yield Reading(source, values, ts)


def read_senml(path: Path, source: str, time_column: str, name_column: str) -> Iterator[Reading]:
    """Yield a reading per row of SenML packs, one pack (a JSON array) a line.

    Raises:
        DeploymentError: A line is no SenML pack; names it.
    """
    with open_text(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), ""), start=1):
            if not line.strip():
                continue
            try:
                records = msgspec.convert(json.loads(line), list[SenmlRecord])
                rows = list(rows_of(records))
            except (ValueError, msgspec.ValidationError, RecursionError) as error:
                raise DeploymentError(f"{path} line {number}: {error}") from error
            for name, seconds, values in rows:
                ts = round(seconds * MICROSECONDS)
                named = {name_column: name} if name_column else {}
                yield Reading(source, {**named, **values, time_column: ts}, ts)


def _timestamp(text: str) -> int:
    try:
        return round(float(text) * MICROSECONDS)
    except ValueError:
        value = coerce(text, DataType.TIMESTAMP)
        if not isinstance(value, int):
            raise ValueError(f"no time: {text!r:.40}") from None
        return value
