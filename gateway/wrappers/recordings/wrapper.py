"""The replay wrapper: emits a recording's readings when the gateway's clock reaches them."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from gateway.connectors.reading import Memory, Reading
from gateway.wrappers.options import read_options
from gateway.wrappers.recordings.lines import Problem
from gateway.wrappers.recordings.readers import read_csv, read_k7, read_senml
from gateway.wrappers.wrapper import WrapperContext
from host.files.settings_file import require

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

    def __post_init__(self) -> None:
        require(self.format in ("k7", "csv", "senml"), "format must be k7, csv or senml")
        require(0 < self.least_pdr <= 1, "least_pdr must be above 0 and at most 1")


class ReplayWrapper:
    """Replays one recording, once; its readings must be in order of time.

    The gateway's clock runs in the recording's time, at the chosen speed; what is already past when
    the wrapper starts is emitted at once, so a restarted gateway catches up, from where the state
    it has kept ends. A bad line is reported and left out. After a fault the replay goes on where it
    stood. At the end it says so.
    """

    kind = "replay"
    streams: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._done = 0
        self._reported = 0

    async def run(self, context: WrapperContext) -> None:
        """Emit until the recording ends, then wait to be cancelled."""
        options = read_options(context, self.kind, ReplayOptions)
        self.streams = (options.source,)
        self._recall(context.memory, options)
        waiting: Reading | None = None
        readings = self._remaining(options, context.problem)
        while True:
            now = context.clock()
            batch: list[Reading] = []
            ended = False
            while len(batch) < MAX_BATCH:
                reading = waiting if waiting is not None else next(readings, None)
                waiting = None
                if reading is None:
                    ended = True
                    break
                if (reading.ts or 0) > now:
                    waiting = reading
                    break
                batch.append(reading)
            if batch:
                done = self._done + len(batch)
                context.remember({"file": options.file, "done": done})
                context.emit(batch)
                self._done = done
            if ended:
                name = Path(options.file).name
                context.note(f"the replay of {name} has ended after {self._done} readings")
                await asyncio.Event().wait()
            await asyncio.sleep(0 if len(batch) == MAX_BATCH else PAUSE)

    def _recall(self, memory: Memory | None, options: ReplayOptions) -> None:
        if not self._done and memory is not None and memory.get("file") == options.file:
            done = memory.get("done")
            self._done = done if isinstance(done, int) and done > 0 else 0

    def _remaining(self, options: ReplayOptions, problem: Problem) -> Iterator[Reading]:
        """Return the readings not emitted yet; bad lines before them are not reported again."""
        met = 0

        def tell(complaint: str) -> None:
            nonlocal met
            met += 1
            if met > self._reported:
                self._reported = met
                problem(complaint)

        return islice(_readings(options, tell), self._done, None)


def _readings(options: ReplayOptions, problem: Problem) -> Iterator[Reading]:
    path = Path(options.file)
    match options.format:
        case "k7":
            owned = frozenset(options.nodes) or None
            return read_k7(path, options.source, owned, options.least_pdr, problem)
        case "csv":
            return read_csv(path, options.source, options.time_column, problem)
        case _:
            name = options.name_column
            return read_senml(path, options.source, options.time_column, name, problem)
