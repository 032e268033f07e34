"""Puts readings into a lake of a test, as the pipeline does, but without it."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from static_engine.lake.kept_readings import ARRIVED, EVENT_TIME, TIME
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.readings_files import write_readings
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import DataType

ORIGIN = "test"


def lake_in(folder: Path) -> Lake:
    """Return a new lake with all that it has in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return Lake(LakeSettings(f"sqlite:///{folder / 'catalog.db'}", str(folder / "lake")))


def keep(  # noqa: PLR0913  (who sent what, when)
    lake: Lake,
    definition: SourceDefinition,
    events: Iterable[SourceEvent],
    *,
    gateway: str = "gw-1",
    epoch: int = 1,
    first: int = 0,
    arrived: int | None = None,
) -> int:
    """Keep events, each as a pack of its own; return the number of the pack after them.

    Args:
        lake: Where.
        definition: Of their source.
        events: In the order of arrival.
        gateway: Who has sent them.
        epoch: Of it.
        first: Number of the first pack.
        arrived: When all have arrived, in microseconds; None: each at its event time.
    """
    table, _ = lake.ensure(definition)
    schema = lake.schema_of(definition, table)
    found = list(events)
    columns: list[pa.Array] = []
    for position, dtype in enumerate(definition.schema.dtypes):
        values = pa.array([event.row[position] for event in found], _plain(dtype))
        columns.append(values.cast(schema.field(position).type))
    times = [event.ts for event in found]
    own = {
        "_gateway": pa.array([gateway] * len(found)),
        "_epoch": pa.array([epoch] * len(found), pa.int64()),
        "_seq": pa.array(range(first, first + len(found)), pa.int64()),
        "_place": pa.array([0] * len(found), pa.int32()),
        EVENT_TIME: pa.array(times, pa.int64()).cast(TIME),
        "_withdrawn": pa.array([event.delete for event in found]),
        ARRIVED: pa.array(times if arrived is None else [arrived] * len(found), pa.int64()).cast(
            TIME
        ),
    }
    rows = pa.Table.from_arrays([*columns, *own.values()], schema=schema)
    batch = lake.last_batch(table, ORIGIN) + 1
    files = write_readings(rows, table.location(), f"{ORIGIN}-{batch}", table.io)
    assert lake.commit(table, files, batch, ORIGIN)
    return first + len(found)


def _plain(dtype: DataType) -> pa.DataType | None:
    return pa.int64() if dtype in (DataType.TIMESTAMP, DataType.INTERVAL) else None
