"""A gateway process; one of its connectors makes readings up and hands them in.

Run as a file, with the tree that is to be measured on PYTHONPATH: nothing here is of `benchmarks`.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from gateway.connectors import registry
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.reading import Reading
from gateway.connectors.registry import BuiltIn


class HandedInEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much is handed in."""

    rate: int
    count: int
    batch: int
    devices: int


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """There is one source, `climate`."""


class HandedIn:
    """Makes up readings at a steady rate and hands them in so many at a time."""

    kind = "handed_in"
    endpoint_options = HandedInEndpoint
    source_options = NoOptions

    def __init__(self) -> None:
        self._go = asyncio.Event()

    async def run(self, context: ConnectorContext) -> None:
        """Wait for the start, then emit `count` readings, `rate` per second, `batch` at a time."""
        given = context.endpoint_as(HandedInEndpoint)
        rate, count, batch, devices = given.rate, given.count, given.batch, given.devices
        await self._go.wait()
        loop = asyncio.get_running_loop()
        start = loop.time()
        for first in range(0, count, batch):
            pause = start + first / rate - loop.time()
            await asyncio.sleep(max(pause, 0))
            now = context.clock()
            context.emit(
                [
                    _reading(number, devices, now)
                    for number in range(first, min(first + batch, count))
                ]
            )
        await asyncio.Event().wait()

    def command(self, action: str, arguments: dict[str, Any]) -> str:
        """Start."""
        self._go.set()
        return f"{action} {arguments}"


def _reading(number: int, devices: int, ts: int) -> Reading:
    device = f"s{number % devices}"
    values = {"device": device, "number": number, "temperature": float(number * 7919 % 100)}
    return Reading("climate", values, ts, device)


def main() -> int:
    """Serve the gateway; with PROFILE set, write what its main thread does to that file."""
    sys.modules["handed_in"] = sys.modules[__name__]  # this file is no module of a package
    registry.BUILT_IN[HandedIn.kind] = BuiltIn("handed_in", "HandedIn")
    sys.argv = ["gateway", "--config", sys.argv[1], "--log-level", "WARNING"]
    from gateway.__main__ import main as serve  # noqa: PLC0415 - only once the kinds are known

    path = os.environ.get("PROFILE")
    if path is None:
        return serve()
    import cProfile  # noqa: PLC0415 - not in what is measured

    profile = cProfile.Profile()
    # Two signals: what happens before the readings come is not of interest.
    signal.signal(signal.SIGUSR1, lambda *_: profile.enable())
    signal.signal(signal.SIGUSR2, lambda *_: profile.disable())
    try:
        return serve()
    finally:
        profile.dump_stats(Path(path))


if __name__ == "__main__":
    sys.exit(main())
