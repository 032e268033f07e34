"""The replay wrapper: emits a recording's readings when the gateway's clock reaches them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gateway.wrappers.recordings.readers import read_csv, read_k7, read_senml
from gateway.wrappers.wrapper import Reading, WrapperContext
from streamsql.errors import DeploymentError

PAUSE = 0.05
MAX_BATCH = 2_000


class ReplayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the replay wrapper.

    Attributes:
        file: The recording; gzip or plain.
        format: k7, csv or senml.
        source: Name of the source its readings belong to.
        nodes: Only links from these nodes (k7); empty means all.
        least_pdr: Delivery ratio below which a link counts as gone (k7).
        time_column: Column of the event time (csv, senml).
        name_column: Column that gets the SenML base name, or empty.
    """

    file: str
    format: str
    source: str
    nodes: tuple[str, ...] = ()
    least_pdr: float = 0.5
    time_column: str = "ts"
    name_column: str = ""


class ReplayWrapper:
    """Replays one recording, once.

    The gateway's clock runs in the recording's time, at the chosen speed; what is already past when
    the wrapper starts is emitted at once, so a restarted gateway catches up.
    """

    kind = "replay"
    streams: tuple[str, ...] = ()

    async def run(self, context: WrapperContext) -> None:
        """Emit until the recording ends, then wait to be cancelled."""
        try:
            options = msgspec.convert(dict(context.options), ReplayOptions)
        except msgspec.ValidationError as error:
            raise DeploymentError(f"options of wrapper replay: {error}") from error
        self.streams = (options.source,)
        waiting: Reading | None = None
        readings = _readings(options)
        while True:
            batch: list[Reading] = []
            now = context.clock()
            while len(batch) < MAX_BATCH:
                reading = waiting if waiting is not None else next(readings, None)
                waiting = None
                if reading is None:
                    context.emit(batch)
                    await asyncio.Event().wait()
                    return
                if (reading.ts or 0) > now:
                    waiting = reading
                    break
                batch.append(reading)
            if batch:
                context.emit(batch)
            await asyncio.sleep(0 if len(batch) == MAX_BATCH else PAUSE)


def _readings(options: ReplayOptions) -> Iterator[Reading]:
    path = Path(options.file)
    match options.format:
        case "k7":
            owned = frozenset(options.nodes) or None
            return read_k7(path, options.source, owned, options.least_pdr)
        case "csv":
            return read_csv(path, options.source, options.time_column)
        case "senml":
            return read_senml(path, options.source, options.time_column, options.name_column)
        case _:
            raise DeploymentError(f"unknown recording format {options.format!r:.40}")
