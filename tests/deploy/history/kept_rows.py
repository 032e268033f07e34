"""A lake in memory, with the columns that kept sources have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from typing_extensions import override

from deploy.history.happenings import Presence
from deploy.history.order_run import KeptPast
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType, Row

_TYPES = {
    DataType.BOOLEAN: pa.bool_(),
    DataType.INTEGER: pa.int64(),
    DataType.DOUBLE: pa.float64(),
    DataType.TEXT: pa.string(),
    DataType.TIMESTAMP: pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True)
class KeptRow:
    """A row as the lake has it; times in microseconds."""

    gateway: str
    seq: int
    ts: int
    arrived: int
    row: Row
    withdrawn: bool = False
    place: int = 0
    epoch: int = 1


@dataclass
class RowsInMemory(KeptPast):
    """Rows by source."""

    definitions: dict[str, SourceDefinition]
    rows: dict[str, list[KeptRow]] = field(default_factory=dict)
    states: list[Presence] = field(default_factory=list)

    @override
    def kept_sources(self) -> list[str]:
        return list(self.rows)

    @override
    def presences(self, since: int, until: int) -> list[Presence]:
        return [state for state in self.states if state.at < until]

    @override
    def plan(
        self, source: str, since: int, until: int, columns: Sequence[str] | None = None
    ) -> "_Scan":
        schema = self.definitions[source].schema
        chosen = [row for row in self.rows[source] if since <= row.ts < until]
        data = {
            f.name: pa.array([r.row[p] for r in chosen], _TYPES[f.dtype])
            for p, f in enumerate(schema.fields)
        }
        stamp = pa.timestamp("us", "UTC")
        data["_gateway"] = pa.array([r.gateway for r in chosen], pa.string())
        data["_epoch"] = pa.array([r.epoch for r in chosen], pa.int64())
        data["_seq"] = pa.array([r.seq for r in chosen], pa.int64())
        data["_place"] = pa.array([r.place for r in chosen], pa.int32())
        data["_event_time"] = pa.array([r.ts for r in chosen], stamp)
        data["_withdrawn"] = pa.array([r.withdrawn for r in chosen], pa.bool_())
        data["_arrived"] = pa.array([r.arrived for r in chosen], stamp)
        table = pa.table(data)
        return _Scan(table if columns is None else table.select(list(columns)))


@dataclass
class _Scan:
    table: pa.Table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in small batches."""
        yield from self.table.to_batches(max_chunksize=7)
