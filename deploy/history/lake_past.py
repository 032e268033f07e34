"""The lake as trials on history read it: columns of definitions, states of gateways."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from deploy.history.happenings import Presence
from deploy.history.order_run import KeptPast
from static_engine.lake.kept_readings import arrow_type
from static_engine.lake.lake import Lake
from static_engine.lake.lake_scan import LakeScan
from streamsql.catalog.definitions import SourceDefinition


@dataclass(frozen=True, slots=True)
class LakePast(KeptPast):
    """The past of some sources."""

    lake: Lake
    definitions: Mapping[str, SourceDefinition]

    @override
    def kept_sources(self) -> list[str]:
        return self.lake.kept_sources()

    @override
    def presences(self, since: int, until: int) -> list[Presence]:
        return []

    @override
    def plan(
        self, source: str, since: int, until: int, columns: Sequence[str] | None = None
    ) -> "_DefinedScan":
        definition = self.definitions[source]
        kept = self.lake.columns_of(self.lake.table(source)).of(definition)
        own = {
            field.name: None if column is None else column.column
            for field, column in zip(definition.schema.fields, kept, strict=True)
        }
        wanted = list(columns) if columns is not None else [*own]
        places = {name: own.get(name, name) for name in wanted}
        read = [place for place in places.values() if place is not None]
        types = {f.name: arrow_type(f.dtype) for f in definition.schema.fields}
        return _DefinedScan(self.lake.plan(source, since, until, read), places, types)


@dataclass(frozen=True, slots=True)
class _DefinedScan:
    """Rows with the columns of a definition; those that were never kept are NULL."""

    scan: LakeScan
    places: Mapping[str, str | None]
    types: Mapping[str, pa.DataType]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        for batch in self.scan.batches():
            columns = [
                pa.nulls(batch.num_rows, self.types[name])
                if place is None
                else batch.column(batch.schema.get_field_index(place))
                for name, place in self.places.items()
            ]
            yield pa.RecordBatch.from_arrays(columns, names=list(self.places))
