"""Dead letters once more: those that can be read by now become rows, and are letters no longer."""

from collections.abc import Collection, Iterator
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

MAX_LETTERS = 200_000
"""Tried at once."""
ORIGIN = "replay"
_MENDED_BY_DEFINITIONS = ("there is no source", "the pack was made by", "the lake cannot take")
"""Beginnings of reasons that another definition, or a mended table, may end."""


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """Outcome of a replay: letters tried, letters that are rows now, and rows kept."""

    tried: int
    recovered: int
    rows: int


def replay_letters(pipeline: PipelineBatches, limit: int = MAX_LETTERS) -> ReplayReport:
    """Try dead letters of known sources again; first those that a definition may have mended.

    Called between two batches. It may be interrupted anywhere and begun again. Letters are read
    file by file, however many there are.

    Args:
        pipeline: Whose letters they are.
        limit: Most letters to try.

    Raises:
        FederationError: The lake cannot be changed.
        OSError: Likewise.
    """
    lake = pipeline.lake
    letters = ensure_system(lake, SystemTable.DEAD_LETTERS)
    contents = _contents(letters, pipeline)
    if not contents.messages:
        return ReplayReport(0, 0, 0)
    plan = pipeline.plan(ALL, contents, [])
    pipeline.seen.note(**{REPLAYING: "1"})
    tried: list[bytes] = []
    still: set[bytes] = set()
    new = PackNumbers()
    files: dict[str, list[str]] = {}
    rows = 0
    for each in staged(_candidates(letters, pipeline, limit, tried), plan):
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
    recovered = set(tried) - still
    if recovered:
        _remove(letters, recovered)
    return ReplayReport(len(tried), len(recovered), rows)


def _candidates(
    letters: Table, pipeline: PipelineBatches, limit: int, tried: list[bytes]
) -> Iterator[pa.RecordBatch]:
    """Yield letters as messages of segments, and append their digests to `tried`."""
    columns = ("topic", "payload", "reason", ARRIVED, DIGEST)
    for mended_first in (True, False):
        scan = letters.scan(selected_fields=columns)
        for batch in scan.to_arrow_batch_reader():
            chosen = [
                _source_of(topic, pipeline) is not None
                and str(reason).startswith(_MENDED_BY_DEFINITIONS) == mended_first
                for topic, reason in zip(
                    batch.column("topic").to_pylist(),
                    batch.column("reason").to_pylist(),
                    strict=True,
                )
            ]
            found = batch.filter(pa.array(chosen, pa.bool_())).slice(0, limit - len(tried))
            if found.num_rows:
                tried += found.column(DIGEST).to_pylist()
                names = ("topic", "payload", ARRIVED)
                yield pa.RecordBatch.from_arrays(
                    [found.column(name) for name in names], ["topic", "payload", "arrived"]
                )
            if len(tried) >= limit:
                return


def _source_of(topic: str, pipeline: PipelineBatches) -> tuple[str, str] | None:
    """Return gateway and source of a pack of a source that is known, else None."""
    try:
        levels = pipeline.topics.parts(topic)
    except WireError:
        return None
    match levels:
        case ["gw", gateway, lane, stream] if lane in LANES:
            return (gateway, stream) if pipeline.definitions.find(stream, 0) else None
        case _:
            return None


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


def _contents(letters: Table, pipeline: PipelineBatches) -> SegmentContents:
    contents = SegmentContents()
    for batch in letters.scan(selected_fields=("topic",)).to_arrow_batch_reader():
        for topic in batch.column("topic").unique().to_pylist():
            known = _source_of(topic, pipeline)
            if known is not None:
                contents.messages += 1
                contents.gateways.add(known[0])
                contents.sources.add(known[1])
    return contents
