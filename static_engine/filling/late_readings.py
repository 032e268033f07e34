"""Which readings of the lake were late when their gateway ingested them.

Packs and places number what a gateway has ingested, in order. A reading was late when an earlier
one had an event time that is later by more than the watermark allows. Readings before an interval
make none in it late, so the interval alone says it (`stream_engine.state.watermark`). What was
simulated of the past was never ingested, so it is not late and makes nothing late.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from static_engine.lake.kept_readings import EPOCH, EVENT_TIME, GATEWAY, PLACE, SEQ
from static_engine.lake.lake_errors import LakeError
from static_engine.lake.lake_scan import LakeScan
from streamsql.wire.past_packs import PAST_EPOCH

NAME = (GATEWAY, EPOCH, SEQ, PLACE)
"""Columns that name a reading."""
COLUMNS = (*NAME, EVENT_TIME)
MAX_JUDGED = 20_000_000
"""Readings that are judged at once: about 1 GB."""


def late_readings(scan: LakeScan, gateway: str, lateness: int) -> pa.Table:
    """Return the names of the late readings of a scan.

    Args:
        scan: Of at least `COLUMNS`, up to the newest readings.
        gateway: Whose readings; empty: of all, each judged by those of its own gateway.
        lateness: Of the source's watermark, in microseconds.

    Raises:
        LakeError: There are too many to judge.
    """
    tables: list[pa.Table] = []
    count = 0
    for batch in scan.batches():
        table = pa.Table.from_batches([batch]).select(COLUMNS)
        if gateway:
            table = table.filter(pc.equal(table.column(GATEWAY), gateway))
        table = table.filter(pc.not_equal(table.column(EPOCH), PAST_EPOCH))
        tables.append(table)
        count += table.num_rows
        if count > MAX_JUDGED:
            raise LakeError(
                f"the window reaches over more than {MAX_JUDGED:,} readings of a source with a "
                "watermark",
                hint="take a shorter window, or begin empty: backfill = 'no'",
            )
    if not count:
        return pa.table({name: pa.array([], pa.int64()) for name in NAME})
    ordered = pa.concat_tables(tables).sort_by([(name, "ascending") for name in NAME])
    times = np.asarray(ordered.column(EVENT_TIME).cast(pa.int64()).combine_chunks())
    owners = ordered.column(GATEWAY).combine_chunks().dictionary_encode()
    codes = np.asarray(owners.indices)
    is_late = np.zeros(len(times), bool)
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    for start, end in zip(starts, [*starts[1:], len(times)], strict=True):
        newest = np.maximum.accumulate(times[start:end])
        is_late[start + 1 : end] = times[start + 1 : end] < newest[:-1] - lateness
    return ordered.filter(pa.array(is_late)).select(NAME)
