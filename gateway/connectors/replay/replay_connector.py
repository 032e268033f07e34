"""The connector of recordings: emits their records when the gateway's clock reaches them."""

import asyncio
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.reading import Memory, Reading
from gateway.connectors.replay.lines import Problem
from gateway.connectors.replay.readers import Recorded, read_csv, read_k7, read_senml
from gateway.connectors.turns import Turn
from host.files.settings_file import require

PAUSE = 0.05
MAX_BATCH = 2_000


class RecordingFormat(StrEnum):
    """Format of a recording."""

    K7 = "k7"
    CSV = "csv"
    SENML = "senml"


class ReplayEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A recording.

    Attributes:
        file: gzip or plain.
        format: See `RecordingFormat`.
        nodes: Only links from these nodes (k7); empty means all.
        least_pdr: Delivery ratio below which a link counts as gone (k7).
        time_column: Of the event time (csv).
        name_column: What the SenML base name is called among the values, or empty.
    """

    file: str
    format: RecordingFormat
    nodes: tuple[str, ...] = ()
    least_pdr: float = 0.5
    time_column: str = "ts"
    name_column: str = ""

    def __post_init__(self) -> None:
        require(self.file != "", "file is empty")
        require(0 < self.least_pdr <= 1, "least_pdr must be above 0 and at most 1")


class ReplaySource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every source gets all records, and takes the values that its columns name."""


class _Kept(msgspec.Struct):
    """Progress in a file.

    Attributes:
        done: Source, version of its definition, number of records that it has had.
    """

    file: str
    done: list[tuple[str, int, int]]


class ReplayConnector:
    """Replays one recording, once; its records must be in order of time.

    The gateway's clock runs in the recording's time, at the chosen speed; what is already past when
    the connector starts is emitted at once, so a restarted gateway catches up, from where the state
    it has kept ends. A source with a new definition gets the recording from its start. A bad line
    is reported and left out. At the end it says so.
    """

    kind = "replay"
    endpoint_options = ReplayEndpoint
    source_options = ReplaySource

    async def run(self, context: ConnectorContext) -> None:
        """Emit until the recording ends, then wait to be cancelled."""
        options = context.endpoint_as(ReplayEndpoint)
        done = _recalled(context.memory, options.file, context.sources)
        met = min(done.values())
        records = await _remaining(options, met, context.problem)
        waiting: Recorded | None = None
        while True:
            now = context.clock()
            batch: list[Recorded] = []
            ended = False
            while len(batch) < MAX_BATCH:
                record = waiting if waiting is not None else next(records, None)
                waiting = None
                if record is None:
                    ended = True
                    break
                if record.ts > now:
                    waiting = record
                    break
                batch.append(record)
            if batch:
                readings: list[Reading] = []
                for source in context.sources:
                    readings.extend(_readings(source, batch[max(done[source.name] - met, 0) :]))
                met += len(batch)
                done = {name: max(number, met) for name, number in done.items()}
                context.remember(_to_remember(options.file, context.sources, done))
                context.emit(readings)
            if ended:
                name = Path(options.file).name
                context.note(f"the replay of {name} has ended after {met} readings")
                await asyncio.Event().wait()
            if len(batch) == MAX_BATCH:
                await context.kept()  # there is more that is past: no faster than it is kept
            else:
                await asyncio.sleep(PAUSE)


def _readings(source: DeclaredSource, batch: Sequence[Recorded]) -> Iterator[Reading]:
    for values, ts, gone in batch:
        if gone:
            yield from source.withdraw_record(values, time=ts)
        else:
            yield from source.read_record(values, time=ts)


def _recalled(
    memory: Memory | None, file: str, sources: Sequence[DeclaredSource]
) -> dict[str, int]:
    """Return how many records each source has had.

    It is none under another version: a source of that name may have been dropped and created again,
    and a definition that changes columns drops the rows of a source without KEY.
    """
    done = dict.fromkeys((source.name for source in sources), 0)
    versions = {source.name: source.definition.version for source in sources}
    try:
        kept = msgspec.convert(memory, _Kept)
    except msgspec.ValidationError:
        return done
    if kept.file == file:
        for name, version, number in kept.done:
            if versions.get(name) == version and number > 0:
                done[name] = number
    return done


def _to_remember(file: str, sources: Sequence[DeclaredSource], done: dict[str, int]) -> Memory:
    progress = [[each.name, each.definition.version, done[each.name]] for each in sources]
    return {"file": file, "done": progress}


async def _remaining(options: ReplayEndpoint, done: int, problem: Problem) -> Iterator[Recorded]:
    """Return the records behind those that are done; bad lines before them were reported once."""
    is_there = done == 0

    def tell(complaint: str) -> None:
        if is_there:
            problem(complaint)

    records = _records(options, tell)
    turn = Turn()
    for _ in range(done):
        if next(records, None) is None:
            break  # the file is shorter than it was
        await turn.or_wait()
    is_there = True
    return records


def _records(options: ReplayEndpoint, problem: Problem) -> Iterator[Recorded]:
    path = Path(options.file)
    match options.format:
        case RecordingFormat.K7:
            owned = frozenset(options.nodes) or None
            return read_k7(path, owned, options.least_pdr, problem)
        case RecordingFormat.CSV:
            return read_csv(path, options.time_column, problem)
        case RecordingFormat.SENML:
            return read_senml(path, options.name_column, problem)
