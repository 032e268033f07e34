"""For tests and benchmarks: small sources, and settings of gateways that serve them.

No source here is special: keyed, bag with a lifetime, link.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gateway.connectors.reading import Reading
from gateway.declared.served_devices import BOOK
from gateway.declared.source_book import SourceBook
from gateway.gateway_settings import GatewaySettings
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping

SECOND = 1_000_000

SEATS = SourceDefinition(
    "seatsensor",
    SourceKind.STREAM,
    Schema.of(("mid", DataType.TEXT), ("weight", DataType.DOUBLE), ("ts", DataType.TIMESTAMP)),
    key=(0,),
    time_column=2,
)
"""Newest weight per machine, for ever."""

TEMPERATURES = SourceDefinition(
    "temperature",
    SourceKind.STREAM,
    Schema.of(("sensor", DataType.TEXT), ("celsius", DataType.DOUBLE), ("ts", DataType.TIMESTAMP)),
    time_column=2,
    ttl=600 * SECOND,
)
"""Every reading of ten minutes."""

LINKS = SourceDefinition(
    "link",
    SourceKind.LINK,
    Schema.of(
        ("src", DataType.TEXT),
        ("dst", DataType.TEXT),
        ("cost", DataType.DOUBLE),
        ("ts", DataType.TIMESTAMP),
    ),
    key=(0, 1),
    time_column=3,
    ttl=60 * SECOND,
)
"""Links of a minute's life."""


def declared_for(
    definition: SourceDefinition, connector: str = "telling", endpoint: str = ""
) -> SourceDefinition:
    """Return a source as it is declared for a connector that hands over values by column."""
    mapping = SourceMapping(
        connector,
        endpoint,
        format=PayloadFormat.FIELDS,
        columns=tuple(ColumnMapping() for _ in definition.schema.names),
        options=(("topic", definition.name),) if connector == "telling" else (),
    )
    version = max(definition.version, 1)
    return msgspec.structs.replace(definition, mapping=mapping, version=version)


def keep_declared(data_dir: Path, definitions: Sequence[SourceDefinition]) -> None:
    """Let a site start with these declared sources, as if the catalog had sent them before."""
    data_dir.mkdir(parents=True, exist_ok=True)
    (data_dir / BOOK).unlink(missing_ok=True)
    book = SourceBook(data_dir / BOOK)
    for definition in definitions:
        book.put(definition)
    book.save()


def settings_for(
    folder: Path,
    gateway: str = "gw-1",
    sources: Sequence[SourceDefinition] = (SEATS, TEMPERATURES, LINKS),
    **changes: Any,
) -> GatewaySettings:
    """Return settings of a gateway with its data below a folder; nothing listens at its broker.

    Args:
        folder: Its data are in the folder of its name there.
        gateway: Its id.
        sources: Those it knows of from an earlier life; they are fed by `testing_connectors`.
        changes: Other settings.
    """
    plain: dict[str, Any] = {
        "site": "demo",
        "gateway": gateway,
        "broker": "mqtt://127.0.0.1:1",
        "data_dir": str(folder / gateway),
        "grace_seconds": 0.5,
    }
    if sources:
        keep_declared(folder / gateway, [declared_for(source) for source in sources])
        plain["endpoints"] = {"told": {"connector": "telling"}}
    return GatewaySettings(**{**plain, **changes})


async def until(condition: Callable[[], bool], what: str = "", seconds: float = 60.0) -> None:
    """Wait until something is so.

    Raises:
        AssertionError: It is not in time; says what.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what or condition}")
        await asyncio.sleep(0.01)


def seat(mid: str, weight: float, ts: int | None = None) -> Reading:
    """Return a reading of `SEATS`."""
    return Reading("seatsensor", {"mid": mid, "weight": weight}, ts, f"seat-{mid}")


def temperature(sensor: str, celsius: float, ts: int | None = None) -> Reading:
    """Return a reading of `TEMPERATURES`."""
    return Reading("temperature", {"sensor": sensor, "celsius": celsius}, ts, sensor)


def link(source: str, target: str, cost: float = 1.0, *, delete: bool = False) -> Reading:
    """Return a reading of `LINKS`."""
    values: dict[str, object] = {"src": source, "dst": target}
    if not delete:
        values["cost"] = cost
    return Reading("link", values, delete=delete)


def numbered(readings: Sequence[Reading]) -> list[Reading]:
    """Return readings whose event times are 1, 2, 3, … seconds."""
    return [
        Reading(r.source, r.values, number * SECOND, r.sensor, r.delete)
        for number, r in enumerate(readings, start=1)
    ]


def fill_disk(file: Path) -> None:
    """Write to a file until its disk is full."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as open_file:
        for _ in range(1_000_000):
            open_file.write(bytes(1_000))
    with contextlib.suppress(OSError), file.open("ab", buffering=0) as open_file:
        for _ in range(10_000):
            open_file.write(b"x")
