"""Messages of segments as Parquet files of the lake's tables, which nobody sees yet.

This is what executors do: `staged` needs no catalog and no Spark. What is staged becomes visible by
a commit of the driver, or never.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO, load_file_io

from static_engine.lake.kept_readings import ARRIVED, EVENT_TIME
from static_engine.lake.message_tables import DIGEST, MESSAGE_SCHEMA, SystemTable, digest_of
from static_engine.lake.readings_files import write_readings
from static_engine.landing.segment_files import SCHEMA
from static_engine.pipeline.pack_numbers import PackNumbers, SerializedPacks
from static_engine.pipeline.pack_rows import LANES, DeadPack, KeptRows, Landed, rows_of_packs
from static_engine.pipeline.segment_contents import damage_of
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import WireError
from streamsql.wire.topics import Topics

FLUSH_ROWS = 200_000
"""Rows of a task in memory; more are written into several files."""
FLUSH_BYTES = 64_000_000
"""Likewise for messages that are kept as they are."""
_CHUNK = 1_000


class Target(msgspec.Struct, frozen=True):
    """Place of the rows of a definition.

    Attributes:
        definition: By which packs are read.
        layout: Of the definition.
        newest: Whether packs without a layout are of it.
        location: Address of the table.
        schema: Of its files: `pyarrow.Schema.serialize`.
    """

    definition: SourceDefinition
    layout: int
    newest: bool
    location: str
    schema: bytes


class StagePlan(msgspec.Struct, frozen=True):
    """All that a task needs to know.

    Attributes:
        site: Name of the federation.
        batch: Number of the batch.
        targets: Of the sources that the batch has packs of.
        system: Addresses of the tables of namespace `system`.
        options: Of the store of files.
        seen: Packs that the lake has.
        unkept: Sources whose packs are left out.
        refused: Sources that the lake cannot take, and why: their packs become dead letters.
    """

    site: str
    batch: int
    targets: tuple[Target, ...]
    system: Mapping[str, str]
    options: Mapping[str, str]
    seen: SerializedPacks
    unkept: tuple[str, ...] = ()
    refused: Mapping[str, str] = {}


class Staged(msgspec.Struct, frozen=True):
    """Files of one table that a task has written.

    Attributes:
        table: Name of the source, or of a table of namespace `system`.
        is_system: Which of these.
        paths: Addresses of the files.
        rows: In all of them.
        packs: Whose rows they have, as (gateway, epoch, bitmap).
        digests: Of the messages they have, 16 bytes each.
        repeated: Packs that were not written since they are kept already.
        damaged: A segment that cannot be read, and why; nothing of it is in the files.
        gone: A segment that is not there, as far as the task sees.
    """

    table: str
    is_system: bool
    paths: tuple[str, ...]
    rows: int
    packs: tuple[tuple[str, int, bytes], ...] = ()
    digests: tuple[bytes, ...] = ()
    repeated: int = 0
    damaged: tuple[str, str] | None = None
    gone: str = ""


def staged_segments(paths: Iterable[str], plan: StagePlan) -> Iterator[Staged]:
    """Write the messages of segments into files; yield what has been written.

    Args:
        paths: Of segments.
        plan: See `StagePlan`.

    Raises:
        OSError: A file cannot be written, or a segment cannot be read at this moment.
    """
    damaged: list[tuple[str, str]] = []
    gone: list[str] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for path in paths:
            try:
                # As a whole first: of a damaged segment nothing is kept.
                table = pq.read_table(
                    path, memory_map=False, partitioning=None, page_checksum_verification=True
                )
                found = table.select(SCHEMA.names).cast(SCHEMA).to_batches()
                table.validate(full=True)
            except FileNotFoundError:
                gone.append(path)
                continue
            except PermissionError:
                raise  # the driver could read it
            except (OSError, pa.ArrowException, KeyError) as error:
                damaged.append((path, damage_of(error)))
                continue
            yield from found

    yield from staged(batches(), plan)
    for each in damaged:
        yield Staged("", False, (), 0, damaged=each)
    for path in gone:
        yield Staged("", False, (), 0, gone=path)


def staged(batches: Iterable[pa.RecordBatch], plan: StagePlan) -> Iterator[Staged]:
    """Write the messages of segments into files; yield what has been written.

    Args:
        batches: With the columns of `segment_files.SCHEMA`.
        plan: See `StagePlan`.

    Raises:
        OSError: A file cannot be written.
    """
    yield from _Stager(plan).run(batches)


def system_table_of(levels: list[str]) -> SystemTable | None:
    """Return the table for a message that is no pack, by its topic (`Topics.parts`)."""
    match levels:
        case ["gw", _, "birth"]:
            return SystemTable.BIRTHS
        case ["gw" | "host", _, "state"]:
            return SystemTable.STATES
        case ["host", _, "alarms"] | ["host", _, "alarms", _]:
            return SystemTable.ALARMS
        case _:
            return None


class _Stager:
    def __init__(self, plan: StagePlan) -> None:
        self._plan = plan
        self._topics = Topics(plan.site)
        self._unkept = frozenset(plan.unkept)
        # A task that is repeated must not write where the first may still do so.
        self._name = f"{plan.batch:012d}-{uuid4().hex}"
        self._files = 0
        self._targets = {(each.definition.name, each.layout): each for each in plan.targets}
        for each in plan.targets:
            if each.newest:
                self._targets[each.definition.name, 0] = each
        self._kept = KeptRows(seen=PackNumbers(plan.seen))
        self._messages: dict[SystemTable, list[tuple[str | None, Landed, str | None]]] = {}
        self._bytes = 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Staged]:
        for batch in batches:
            for start in range(0, batch.num_rows, _CHUNK):
                self._take(batch.slice(start, _CHUNK))
                rows = sum(len(each) for each in self._kept.sources.values())
                if rows >= FLUSH_ROWS or self._bytes >= FLUSH_BYTES:
                    yield from self._flush()
        yield from self._flush()

    def _take(self, batch: pa.RecordBatch) -> None:
        packs: list[Landed] = []
        arrived = pc.cast(batch.column("arrived"), pa.int64()).to_pylist()
        topics = batch.column("topic").to_pylist()
        payloads = batch.column("payload").to_pylist()
        for topic, payload, at in zip(topics, payloads, arrived, strict=True):
            message = Landed(topic, payload, at)
            try:
                levels = self._topics.parts(topic)
            except WireError:
                levels = []
            if len(levels) == 4 and levels[2] in LANES and levels[3] in self._unkept:
                continue
            table = None if levels[2:3] and levels[2] in LANES else system_table_of(levels)
            if table is None:
                packs.append(message)
            else:
                self._keep(table, message, levels[1], None)
        rows_of_packs(packs, self._topics, self._definition, self._kept)
        for dead in self._kept.dead:
            self._keep_dead(dead)
        self._kept.dead.clear()

    def _definition(self, name: str, layout: int) -> SourceDefinition | None:
        target = self._targets.get((name, layout))
        if target is None and name in self._plan.refused:
            raise WireError(self._plan.refused[name])
        return None if target is None else target.definition

    def _keep_dead(self, dead: DeadPack) -> None:
        levels = dead.message.topic.split("/")
        site = levels[4] if len(levels) > 4 and levels[3] == "gw" else None
        self._keep(SystemTable.DEAD_LETTERS, dead.message, site, dead.reason)

    def _keep(
        self, table: SystemTable, message: Landed, site: str | None, reason: str | None
    ) -> None:
        self._messages.setdefault(table, []).append((site, message, reason))
        self._bytes += len(message.payload) + len(message.topic)

    def _flush(self) -> Iterator[Staged]:
        repeated, self._kept.repeated = self._kept.repeated, 0
        for (name, layout), rows in self._kept.sources.items():
            if not len(rows):
                continue
            target = self._targets[name, layout]
            schema = pa.ipc.read_schema(pa.py_buffer(target.schema))
            paths = self._write(rows.table(schema), target.location, EVENT_TIME)
            packs = tuple((*key, numbers) for key, numbers in rows.packs.serialized().items())
            yield Staged(name, False, paths, len(rows), packs, repeated=repeated)
            repeated = 0
        self._kept.sources.clear()
        for table, found in self._messages.items():
            rows_of = message_rows(found)
            paths = self._write(rows_of, self._plan.system[table], ARRIVED)
            digests = tuple(rows_of.column(DIGEST).to_pylist())
            yield Staged(table.value, True, paths, rows_of.num_rows, digests=digests)
        self._messages.clear()
        self._bytes = 0
        if repeated:
            yield Staged("", False, (), 0, repeated=repeated)

    def _write(self, rows: pa.Table, location: str, time: str) -> tuple[str, ...]:
        self._files += 1
        name = f"{self._name}-{self._files}"
        return tuple(write_readings(rows, location, name, self._io(location), time))

    def _io(self, location: str) -> FileIO:
        return load_file_io(dict(self._plan.options), location)


def message_rows(messages: Iterable[tuple[str | None, Landed, str | None]]) -> pa.Table:
    """Return messages as rows of a table of namespace `system`; of equal ones the first.

    Args:
        messages: Site, message, and why it is a dead letter.
    """
    once: dict[bytes, tuple[str | None, Landed, str | None]] = {}
    for each in messages:
        once.setdefault(digest_of(each[1].topic, each[1].payload), each)
    columns: list[list[object]] = [[], [], [], [], [], []]
    for digest, (site, message, reason) in once.items():
        row = (site, message.topic, message.payload, reason, digest, message.arrived)
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    arrays = [
        pa.array(values, pa.int64()).cast(kept.type)
        if kept.name == ARRIVED
        else pa.array(values, kept.type)
        for values, kept in zip(columns, MESSAGE_SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=MESSAGE_SCHEMA)


Work = Callable[[StagePlan, Sequence[str]], list[Staged]]
"""Runs `staged_segments` over the segments of a batch, in parallel."""
