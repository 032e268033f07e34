"""Dead letters once more: those that can be read by now become rows, and are letters no longer."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from static_engine.lake.file_swaps import swap_files
from static_engine.lake.kept_readings import ARRIVED
from static_engine.lake.lake_commits import retried
from static_engine.lake.message_tables import DIGEST, SystemTable, ensure_system
from static_engine.lake.readings_files import remove_files, write_readings
from static_engine.pipeline.pack_numbers import PackNumbers
from static_engine.pipeline.pack_rows import LANES
from static_engine.pipeline.pipeline_batches import ALL, REPLAYING, PipelineBatches
from static_engine.pipeline.segment_contents import SegmentContents
from static_engine.pipeline.staged_files import staged
from streamsql.errors import WireError

MAX_LETTERS = 10_000
"""Tried at once."""
ORIGIN = "replay"


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """Outcome of a replay: letters tried, letters that are rows now, and rows kept."""

    tried: int
    recovered: int
    rows: int


def replay_letters(pipeline: PipelineBatches, limit: int = MAX_LETTERS) -> ReplayReport:
    """Try dead letters again, those of the earliest days first.

    Called between two batches. It may be interrupted anywhere and begun again.

    Args:
        pipeline: Whose letters they are.
        limit: Most letters to try.

    Raises:
        FederationError: The lake cannot be changed.
        OSError: Likewise.
    """
    lake = pipeline.lake
    letters = ensure_system(lake, SystemTable.DEAD_LETTERS)
    columns = ("topic", "payload", ARRIVED, DIGEST)
    found = letters.scan(selected_fields=columns, limit=limit).to_arrow()
    if not found.num_rows:
        return ReplayReport(0, 0, 0)
    messages = pa.table(
        [found.column("topic"), found.column("payload"), found.column(ARRIVED)],
        ["topic", "payload", "arrived"],
    )
    contents = _contents(messages, pipeline)
    plan = pipeline.plan(ALL, contents, [])
    pipeline.seen.note(**{REPLAYING: "1"})
    still: set[bytes] = set()
    new = PackNumbers()
    files: dict[str, list[str]] = {}
    rows = 0
    for each in staged(messages.to_batches(), plan):
        if each.is_system:
            still.update(each.digests)
            remove_files(each.paths, letters.io)
            continue
        rows += each.rows
        files.setdefault(each.table, []).extend(each.paths)
        for (gateway, epoch), numbers in PackNumbers(
            {(gateway, epoch): packs for gateway, epoch, packs in each.packs}
        ).items():
            new.add_all(gateway, epoch, numbers)
    for name, paths in sorted(files.items()):
        if paths:
            table = lake.table(name)
            lake.commit(table, paths, lake.last_batch(table, ORIGIN) + 1, ORIGIN)
    pipeline.seen.extend(dict(new.items()))
    pipeline.seen.note(**{REPLAYING: ""})
    recovered = set(found.column(DIGEST).to_pylist()) - still
    if recovered:
        _remove(letters, recovered)
    return ReplayReport(found.num_rows, len(recovered), rows)


def _remove(letters: Table, digests: Collection[bytes]) -> None:
    """Remove letters from their table, whose files are few."""
    gone = pa.array(list(digests), pa.binary())

    def attempt() -> bool:
        letters.refresh()
        old: list[DataFile] = []
        new: list[str] = []
        for task in letters.scan().plan_files():
            with letters.io.new_input(task.file.file_path).open() as source:
                rows = pq.read_table(pa.PythonFile(source), partitioning=None)
            left = rows.filter(pc.invert(pc.is_in(rows.column(DIGEST), value_set=gone)))
            if left.num_rows == rows.num_rows:
                continue
            old.append(task.file)
            if left.num_rows:
                name = f"replay-{uuid4().hex}"
                new += write_readings(left, letters.location(), name, letters.io, ARRIVED)
        with letters.transaction() as transaction:
            swap_files(transaction, old, new, "replay")
        return True

    retried(attempt, letters)


def _contents(messages: pa.Table, pipeline: PipelineBatches) -> SegmentContents:
    contents = SegmentContents(messages=messages.num_rows)
    for topic in messages.column("topic").unique().to_pylist():
        try:
            levels = pipeline.topics.parts(topic)
        except WireError:
            continue
        match levels:
            case ["gw", gateway, lane, stream] if lane in LANES:
                contents.sources.add(stream)
                contents.gateways.add(gateway)
            case _:
                pass
    return contents
