"""A gateway process; one of its wrappers makes readings up and hands them in.

Run as a file, with the tree that is to be measured on PYTHONPATH: nothing here is of `benchmarks`.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from gateway.connectors.reading import Reading
from gateway.wrappers import registry
from gateway.wrappers.wrapper import WrapperContext


class HandedIn:
    """Makes up readings at a steady rate and hands them in so many at a time."""

    kind = "handed_in"
    streams: tuple[str, ...] = ("climate",)

    def __init__(self) -> None:
        self._go = asyncio.Event()

    async def run(self, context: WrapperContext) -> None:
        """Wait for the start, then emit `count` readings, `rate` per second, `batch` at a time."""
        options: dict[str, Any] = dict(context.options)
        rate, count, batch, devices = (
            int(options[name]) for name in ("rate", "count", "batch", "devices")
        )
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
    registry.KINDS[HandedIn.kind] = HandedIn
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
