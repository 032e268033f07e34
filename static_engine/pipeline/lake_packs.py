"""Contents of the lake, read from it: packs, and messages of the last hour."""

import logging
from collections.abc import Iterable

import pyarrow as pa
from pyiceberg.table import Table

from host.clocks import wall_clock
from static_engine.lake.kept_readings import ARRIVED, EPOCH, GATEWAY, SEQ
from static_engine.lake.lake import Lake
from static_engine.lake.lake_errors import DAMAGE
from static_engine.lake.lake_scan import moment
from static_engine.lake.message_tables import DIGEST
from static_engine.pipeline.pack_numbers import PackNumbers

RECENT = 3_600_000_000
log = logging.getLogger(__name__)


def packs_of_lake(lake: Lake) -> PackNumbers:
    """Return the packs whose rows are kept; reads three columns of all of them.

    A damaged table is left out: nothing of its source is kept until it is mended.
    """
    packs = PackNumbers()
    for name in lake.kept_sources():
        try:
            _add_packs(lake, name, packs)
        except DAMAGE as error:
            log.warning("table %r of the lake is damaged: %s", name, error)
    return packs


def _add_packs(lake: Lake, name: str, packs: PackNumbers) -> None:
    for batch in lake.plan(name, columns=[GATEWAY, EPOCH, SEQ]).batches():
        rows = pa.Table.from_batches([batch])
        grouped = rows.group_by([GATEWAY, EPOCH]).aggregate([(SEQ, "distinct")])
        for row in grouped.to_pylist():
            packs.add_all(row[GATEWAY], row[EPOCH], row[f"{SEQ}_distinct"])


def recent_digests(tables: Iterable[Table], limit: int) -> list[bytes]:
    """Return the digests of the messages of each table's last hour, at most so many a table.

    The hour before the last arrival, and the one before now: the last may be of a clock that was
    ahead.
    """
    found: list[bytes] = []
    now = wall_clock()
    for table in tables:
        arrived = table.schema().find_field(ARRIVED).field_id
        bounds = [task.file.upper_bounds or {} for task in table.scan().plan_files()]
        last = max([_time(each[arrived]) for each in bounds if arrived in each], default=None)
        if last is None:
            continue
        recent = (now - RECENT, now), (last - RECENT, last)
        hours = [
            f"({ARRIVED} >= '{moment(begin).isoformat()}' AND "
            f"{ARRIVED} <= '{moment(end).isoformat()}')"
            for begin, end in recent
        ]
        scan = table.scan(
            row_filter=" OR ".join(hours), selected_fields=(DIGEST, ARRIVED), limit=limit
        )
        found += scan.to_arrow().column(DIGEST).to_pylist()
    return found


def _time(bound: bytes) -> int:
    """Return the microseconds in a bound of Iceberg's."""
    return int.from_bytes(bound, "little", signed=True)
