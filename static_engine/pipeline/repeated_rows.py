"""Staged files once more, without rows that the lake has, or that another task has staged."""

from collections.abc import Callable, Collection, Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyroaring import BitMap64

from static_engine.lake.kept_readings import EPOCH, GATEWAY, SEQ
from static_engine.lake.message_tables import DIGEST
from static_engine.lake.readings_files import ROW_GROUP_ROWS, remove_files
from static_engine.pipeline.staged_files import Staged

_AGAIN = "-once.parquet"


def without_packs(found: Staged, again: Mapping[tuple[str, int], BitMap64], io: FileIO) -> Staged:
    """Return the files without the rows of packs that are kept otherwise."""

    def stays(rows: pa.Table) -> pa.Array:
        names = zip(
            rows.column(GATEWAY).to_pylist(),
            rows.column(EPOCH).to_pylist(),
            rows.column(SEQ).to_pylist(),
            strict=True,
        )
        none = BitMap64()
        return pa.array([seq not in again.get((g, e), none) for g, e, seq in names], pa.bool_())

    return _filtered(found, stays, io)


def without_digests(found: Staged, again: Collection[bytes], io: FileIO) -> Staged:
    """Return the files without the messages of these digests."""
    known = pa.array(list(again), pa.binary())

    def stays(rows: pa.Table) -> pa.Array:
        return pc.invert(pc.is_in(rows.column(DIGEST), value_set=known))

    return _filtered(found, stays, io)


def _filtered(found: Staged, stays: Callable[[pa.Table], pa.Array], io: FileIO) -> Staged:
    paths: list[str] = []
    count = 0
    for path in found.paths:
        with io.new_input(path).open() as source, pa.PythonFile(source) as file:
            rows = pq.read_table(file, partitioning=None)
        left = rows.filter(stays(rows))
        if left.num_rows:
            address = path.removesuffix(".parquet") + _AGAIN
            with (
                io.new_output(address).create(overwrite=True) as output,
                pa.PythonFile(output) as file,
            ):
                pq.write_table(left, file, compression="zstd", row_group_size=ROW_GROUP_ROWS)
            paths.append(address)
            count += left.num_rows
    remove_files(found.paths, io)
    return msgspec.structs.replace(found, paths=tuple(paths), rows=count)
