"""For tests and benchmarks: small sources, settings, a wrapper that says what it is told.

No source here is special: keyed, bag with a lifetime, link.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gateway.connectors.reading import Reading
from gateway.settings import GatewaySettings
from gateway.wrappers.wrapper import WrapperContext
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

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


def settings_for(folder: Path, gateway: str = "gw-1", **changes: Any) -> GatewaySettings:
    """Return settings of a gateway with its data below a folder; nothing listens at its broker."""
    plain: dict[str, Any] = {
        "site": "demo",
        "gateway": gateway,
        "broker": "mqtt://127.0.0.1:1",
        "data_dir": str(folder / gateway),
        "sources": (SEATS, TEMPERATURES, LINKS),
        "grace_seconds": 0.5,
    }
    return GatewaySettings(**{**plain, **changes})


class TellingWrapper:
    """A wrapper that emits what a test tells it to."""

    kind = "telling"
    streams: tuple[str, ...] = ("seatsensor", "temperature", "link")

    def __init__(self) -> None:
        self.context: WrapperContext | None = None
        self.started = 0
        self._failure: asyncio.Future[None] | None = None

    async def run(self, context: WrapperContext) -> None:
        """Be ready until cancelled, or fail as told."""
        self.started += 1
        self.context = context
        self._failure = asyncio.get_running_loop().create_future()
        await self._failure

    def fail(self, error: Exception) -> None:
        """Let `run` raise."""
        assert self._failure is not None  # noqa: S101
        self._failure.set_exception(error)

    def emit(self, *readings: Reading) -> None:
        """Emit readings."""
        assert self.context is not None  # noqa: S101
        self.context.emit(readings)


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
